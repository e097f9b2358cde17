/* Prints the embedded helpers that a text needs. A helper is the text from its marker line, `// ---
 * name`, to the next one. Each helper uses only helpers that come before it, in the order of files
 * and of helpers, so one pass from the last to the first finds all used helpers. */
#include "compiler/base/embedded.h"
#include "kernel_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char marker[] = "// --- ";

typedef struct Section {
  const char *file, *name; /* name NULL: the head of the file */
  size_t name_size;
  const char *text;
  size_t size;
  uint32_t line;
  bool used;
} Section;

typedef struct Helpers {
  Compile *c;
  VEC(Section) sections;
  Section **by_name; /* sections that have a name, sorted by it */
  /* the lengths of the names with this first letter, one bit for each length */
  uint64_t sizes[256];
  uint32_t n_named;
  uint32_t first_after_prelude;
} Helpers;

/* ---- reading ---- */

/* Cuts an embedded file at its marker lines. The text before the first one has no name. */
static void read_file(Helpers *h, const char *name)
{
  const EmbeddedFile *file = embedded_find(name);
  assert(file);
  const char *s = file->text, *end = s + file->size;
  Section open = {.file = arena_printf(h->c->arena, "templates/%s", name), .text = s, .line = 1};
  for (uint32_t line = 1; s < end; line++) {
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    const char *next = stop ? stop + 1 : end;
    if (strncmp(s, marker, sizeof marker - 1) == 0) {
      open.size = (size_t)(s - open.text);
      vec_push(h->c->arena, &h->sections, open);
      open.name = s + sizeof marker - 1;
      open.name_size = (size_t)((stop ? stop : end) - open.name);
      open.text = next;
      open.line = line + 1;
    }
    s = next;
  }
  open.size = (size_t)(end - open.text);
  vec_push(h->c->arena, &h->sections, open);
}

static int by_name(const void *left, const void *right)
{
  const Section *a = *(Section *const *)left, *b = *(Section *const *)right;
  size_t n = a->name_size, m = b->name_size;
  int order = memcmp(a->name, b->name, n < m ? n : m);
  return order ? order : (n > m) - (n < m);
}

/* Sorts the names, so that each word costs a binary search: every compilation emits text. */
static void sort_names(Helpers *h)
{
  h->by_name = arena_array(h->c->arena, Section *, h->sections.n);
  for (uint32_t i = 0; i < h->sections.n; i++) {
    Section *s = &h->sections.at[i];
    if (!s->name) continue;
    h->sizes[(unsigned char)*s->name] |= (uint64_t)1 << (s->name_size & 63);
    h->by_name[h->n_named++] = s;
  }
  qsort(h->by_name, h->n_named, sizeof *h->by_name, by_name);
}

/* ---- finding ---- */

/* Marks the helper of that name, if it exists. Most words are not names of helpers. */
static void use(Helpers *h, const char *name, size_t n)
{
  Section wanted = {.name = name, .name_size = n}, *key = &wanted;
  if (!(h->sizes[(unsigned char)*name] >> (n & 63) & 1)) return;
  Section **s = bsearch(&key, h->by_name, h->n_named, sizeof *h->by_name, by_name);
  if (s) (*s)->used = true;
}

/* Returns the end of the comment, string or character that begins at s; s if none begins there. */
static const char *ignored_end(const char *s, const char *end)
{
  char quote = *s, next = end - s > 1 ? s[1] : 0;
  if (quote == '"' || quote == '\'') {
    for (s++; s < end && *s != quote; s++) s += *s == '\\';
    return s < end ? s + 1 : end;
  }
  if (quote != '/' || (next != '*' && next != '/')) return s;
  for (s += next == '/' ? 2 : 3; s < end; s++)
    if (next == '/' ? *s == '\n' : s[-1] == '*' && *s == '/') return s + 1;
  return end;
}

/* Marks all words of the text except those in comments and strings. */
static void use_words(Helpers *h, const char *s, size_t size)
{
  for (const char *end = s + size; s < end;) {
    const char *from = s;
    if ((s = ignored_end(s, end)) != from) continue;
    while (s < end && in_name(*s)) s++;
    if (s > from)
      use(h, from, (size_t)(s - from));
    else
      s++;
  }
}

/* ---- printing ---- */

static void put_used(Helpers *h, Printer *p, uint32_t from, uint32_t to)
{
  for (uint32_t i = from; i < to; i++) {
    const Section *s = &h->sections.at[i];
    if (s->used && s->size) printer_text(p, s->file, s->line, s->text, s->size);
  }
}

/* Prints `real`, the prelude of the machine, and the mathematics that builds on both. Without
 * kernels it prints nothing: compilers warn of unused functions. */
void emit_helpers(Printer *p, const Text *kernels)
{
  Helpers h = {.c = p->c};
  if (!kernels->n) return;
  const Target *target = target_of(p->c->options.target);
  read_file(&h, target->prelude);
  h.sections.at[0].used = true; /* the head is always needed */
  read_file(&h, target->columns);
  if (p->c->options.real64 && is_cpu_target(p->c)) read_file(&h, "cpu64.h");
  if (target->counters) read_file(&h, target->counters);
  h.first_after_prelude = h.sections.n;
  read_file(&h, p->c->options.real64 ? "maths64.cuh" : "maths.cuh");
  read_file(&h, "device.cuh");
  read_file(&h, "update.cuh");
  if (!p->c->options.real64) read_file(&h, "maths16.cuh");
  read_file(&h, "rows.cuh");
  read_file(&h, target->tiles);
  if (target->tensor) read_file(&h, target->tensor);
  sort_names(&h);
  use_words(&h, kernels->at, kernels->n);
  for (uint32_t i = h.sections.n; i > 0; i--) {
    const Section *s = &h.sections.at[i - 1];
    if (s->used) use_words(&h, s->text, s->size);
  }
  EMIT(p, "typedef %s real; /* the type of arithmetic */\n",
       p->c->options.real64 ? "double" : "float");
  EMIT(p, "#define R(x) ((real)(x))\n\n");
  put_used(&h, p, 0, h.first_after_prelude);
  EMIT(p, "/* the code below is the same on every machine */\n\n");
  put_used(&h, p, h.first_after_prelude, h.sections.n);
}
