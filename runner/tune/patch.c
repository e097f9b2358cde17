/* The job's text: what its `precision` says, and the same text with another `precision`. */
#include <stdio.h>
#include <string.h>
#include "compiler/syntax/source.h"
#include "common/file.h"
#include "tune.h"

static const Decl *find_decl(const Compile *c, DeclKind kind)
{
  for (uint32_t i = 0; i < c->ast->n; i++)
    if (c->ast->at[i]->kind == kind) return c->ast->at[i];
  return NULL;
}

static const char *text_at(const Compile *c, uint32_t offset)
{
  const Source *s = diag_place(c, (Span){offset, offset}).source;
  return s->text + (offset - s->base);
}

static bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Adds the lines of text[0, n), without those that amp tune has written. */
static void add_lines(Text *out, const char *text, size_t n)
{
  while (n && is_space(text[n - 1])) n--;
  while (n && is_space(*text)) text++, n--;
  for (const char *end = text + n; text < end;) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    size_t size = (size_t)((next ? next : end) - text);
    if (!memmem(text, size, "# " TUNE_MARK, strlen("# " TUNE_MARK))) {
      if (!is_space(*text)) text_puts(out, "  ");
      text_add(out, text, size);
      text_puts(out, "\n");
    }
    text += size + (next != NULL);
  }
}

/* Adds the clauses that f32 itself needs: no pins, no types of weights and moments. */
static void add_f32(const Compile *c, Text *out, const Block *b)
{
  static const char *const lowers[] = {"autocast", "params", "moments", "scaler", "fewest_casts"};
  for (uint32_t i = 0; i < b->n; i++) {
    const char *text = text_at(c, b->at[i]->span.start);
    bool lower = false;
    for (size_t k = 0; k < sizeof lowers / sizeof *lowers; k++)
      lower = lower || strncmp(text, lowers[k], strlen(lowers[k])) == 0;
    if (!lower) add_lines(out, text, b->at[i]->span.end - b->at[i]->span.start);
  }
}

/* Sets the clauses: the text between the braces, with `scaler` apart. */
static void read_clauses(Tune *t, const Compile *c, const Block *b)
{
  Text out = text_new(t->arena);
  uint32_t from = b->span.start + 1, end = b->span.end - 1;
  for (uint32_t i = 0; i < b->n; i++) {
    Span s = b->at[i]->span;
    const char *text = text_at(c, s.start);
    size_t line = strcspn(text, "\n");
    if (strncmp(text, "scaler", 6) != 0) continue;
    if (!memmem(text, line, "# " TUNE_MARK, strlen("# " TUNE_MARK)))
      t->scaler = arena_strndup(t->arena, text, s.end - s.start);
    add_lines(&out, text_at(c, from), s.start - from);
    from = s.end;
    while (from < end && strchr(" ;", *text_at(c, from))) from++;
  }
  add_lines(&out, text_at(c, from), end - from);
  if (out.at) t->clauses = out.at;
}

const char *patch_read(Tune *t, Compile *c)
{
  const Decl *d = find_decl(c, DECL_precision);
  Text f32 = text_new(t->arena);
  t->clauses = "";
  t->f32 = "precision f32\n";
  if (!d) return "";
  add_f32(c, &f32, &d->as.object.clauses);
  if (f32.at && *f32.at) t->f32 = arena_printf(t->arena, "precision f32 {\n%s}\n", f32.at);
  Span word = d->as.object.value->span;
  if (d->as.object.clauses.span.end) read_clauses(t, c, &d->as.object.clauses);
  return arena_strndup(t->arena, text_at(c, word.start), word.end - word.start);
}

/* Returns the end of a comment of amp tune that follows on the same line, else `end`. */
static uint32_t after_mark(const char *source, uint32_t end)
{
  uint32_t at = end;
  while (source[at] == ' ') at++;
  bool marked = strncmp(source + at, "# " TUNE_MARK, strlen("# " TUNE_MARK)) == 0;
  return marked ? at + (uint32_t)strcspn(source + at, "\n") : end;
}

Patch patch_make(const Tune *t, Compile *c, const char *declaration)
{
  const Decl *d = find_decl(c, DECL_precision), *train = find_decl(c, DECL_train);
  const Decl *at = d ? d : train;
  const Source *s = diag_place(c, at->span).source;
  Patch p = {.path = s->path, .source = s->text, .size = s->size};
  p.start = at->span.start - s->base;
  p.end = d ? after_mark(s->text, d->span.end - s->base) : p.start;
  size_t n = strlen(declaration);
  p.text =
      d ? arena_strndup(t->arena, declaration, n - 1) : arena_printf(t->arena, "%s\n", declaration);
  return p;
}

static void print_lines(char sign, const char *text, size_t n)
{
  for (const char *end = text + n; text < end;) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    size_t size = (size_t)((next ? next : end) - text);
    printf("%c%.*s\n", sign, (int)size, text);
    text += size + (next != NULL);
  }
}

void patch_print(const Tune *t, const Patch *p)
{
  uint32_t line = 1;
  (void)t;
  for (uint32_t i = 0; i < p->start; i++) line += p->source[i] == '\n';
  printf("--- %s, line %u\n", p->path, line);
  print_lines('-', p->source + p->start, p->end - p->start);
  print_lines('+', p->text, strlen(p->text));
}

ampc_status patch_write(const Tune *t, const Patch *p)
{
  Text out = text_new(t->arena);
  uint32_t size;
  const char *why, *now = source_read(t->arena, FILE_JOB, p->path, &size, &why);
  if (!now || size != p->size || memcmp(now, p->source, size) != 0)
    return ampc_fail(AMPC_BAD_FILE, "%s has changed during the search; nothing is written",
                     p->path);
  text_add(&out, p->source, p->start);
  text_puts(&out, p->text);
  text_add(&out, p->source + p->end, p->size - p->end);
  return file_write(p->path, &file_job, out.at, (int64_t)strlen(out.at));
}
