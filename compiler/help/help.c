/* Reads the chapters, which the build embeds into the program, and prints entries. A chapter is
 * simple Markdown:
 *   # Title          a chapter; the text after it is about the whole chapter
 * ## name          an entry whose signature is in a table
 *   ## name(a, b)    an entry with its signature, which is in no table
 * Text follows a heading. In the text, lines that begin with four blanks are an example. */
#include "help.h"
#include "compiler/lower/interpret/describe.h"
#include "compiler/base/embedded.h"
#include "compiler/base/names.h"
#include "compiler/base/table.h"
#include "compiler/diag/diag.h"
#include <string.h>

static const char *const chapters[] = {
    "declarations.md", "statements.md",   "settings.md", "numbers.md", "elementwise.md",
    "matrix.md",       "reductions.md",   "shapes.md",   "random.md",  "image.md",
    "layers.md",       "initialisers.md", "losses.md",   "metrics.md", "optimizers.md",
    "schedules.md",    "sources.md",      NULL};

enum { WIDTH = 96 }; /* columns of the output */

typedef struct Entry {
  const char *name;    /* "Conv2d" */
  const char *heading; /* as written: "Conv2d", "range(start, stop, step=1)" */
  const char *text;    /* text after the heading; not NUL-terminated */
  size_t size;         /* bytes of the text */
  const char *title;   /* title of the chapter, if this is its first entry; else NULL */
  const char *about;   /* the chapter's text before its first entry */
  size_t about_size;
} Entry;
typedef VEC(Entry) Entries;

/* ---- reading ---- */

static const char *line_of(Arena *arena, const char *p)
{
  return arena_strndup(arena, p, strcspn(p, "\n"));
}

/* Returns the identifier at the start of a heading; the whole heading if it has none. */
static const char *name_of(Arena *arena, const char *heading)
{
  size_t n = name_size(heading);
  return arena_strndup(arena, heading, n ? n : strlen(heading));
}

/* Returns the first line from p on that begins with `mark`, or NULL. p is the start of a line. */
static const char *next_heading(const char *p, const char *mark)
{
  for (; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
    if (strncmp(p, mark, strlen(mark)) == 0) return p;
  return NULL;
}

static void read_chapter(Arena *arena, const char *text, Entries *out)
{
  const char *title = line_of(arena, text + strlen("# "));
  const char *about = strchr(text, '\n') + 1, *p = next_heading(about, "## ");
  size_t about_size = p ? (size_t)(p - about) : strlen(about);
  while (p) {
    const char *heading = line_of(arena, p + strlen("## "));
    const char *body = strchr(p, '\n') ? strchr(p, '\n') + 1 : p + strlen(p);
    const char *next = next_heading(body, "## ");
    size_t size = next ? (size_t)(next - body) : strlen(body);
    vec_push(arena, out,
             (Entry){name_of(arena, heading), heading, body, size, title, about, about_size});
    title = NULL;
    p = next;
  }
}

static void read_entries(Arena *arena, Entries *out)
{
  for (const char *const *c = chapters; *c; c++) {
    const EmbeddedFile *f = embedded_find(*c);
    if (f) read_chapter(arena, f->text, out);
  }
}

/* ---- printing ---- */

static const Builtin *builtin_named(const Builtins *list, const char *name)
{
  for (uint32_t i = 0; i < list->n; i++)
    if (same_name(list->at[i].name, name)) return &list->at[i];
  return NULL;
}

/* True if the heading is more than a name. Then it is the signature. */
static bool has_own_signature(const Entry *e)
{
  return strlen(e->heading) > strlen(e->name);
}

/* Prints a text. Wraps paragraphs, but prints examples unchanged. */
static void put_text(Text *out, const char *text, size_t size)
{
  const char *end = text + size;
  Text words = text_new(out->arena);
  for (const char *line = text, *stop; line <= end; line = stop + 1) {
    stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (!stop) stop = end;
    bool filled = line < stop && strncmp(line, "    ", 4) != 0;
    if (filled) text_printf(&words, "%s%.*s", words.n ? " " : "", (int)(stop - line), line);
    if ((!filled || stop == end) && words.n) {
      text_wrap(out, words.at, 0, WIDTH);
      text_puts(out, "\n");
      text_init(&words, out->arena);
    }
    if (!filled && line < end) text_printf(out, "%.*s\n", (int)(stop - line), line);
  }
}

/* Returns the size of the text up to a blank in the outer brackets that follows one of `ends`.
 * Updates the depth of brackets. */
static size_t part_size(const char *p, const char *ends, int *depth)
{
  size_t n = 0;
  for (; p[n] && !(p[n] == ' ' && *depth == 1 && n && strchr(ends, p[n - 1])); n++)
    *depth += (p[n] == '(' || p[n] == '[') - (p[n] == ')' || p[n] == ']');
  return n;
}

/* Prints a signature. Breaks long lines between arguments, and in a list of texts that is longer
 * than a line. */
static void put_signature(Text *out, const char *text)
{
  size_t start = out->n;
  int depth = 0;
  for (const char *p = text; *p;) {
    int before = depth;
    size_t n = part_size(p, ",", &depth);
    if (n > WIDTH - 4) depth = before, n = part_size(p, ",|", &depth);
    bool full = out->n > start && out->n - start + 1 + n > WIDTH;
    if (full) start = out->n + 1;
    text_printf(out, "%s%.*s", full ? "\n    " : p > text ? " " : "", (int)n, p);
    p += n + (p[n] != 0);
  }
  text_puts(out, "\n");
}

static void put_entry(const Entry *e, const Builtins *list, Text *out)
{
  const Builtin *b = has_own_signature(e) ? NULL : builtin_named(list, e->name);
  size_t n = e->size;
  while (n && e->text[n - 1] == '\n') n--;
  put_signature(out, b && b->signature ? b->signature : e->heading);
  if (b && b->facts) text_printf(out, "(%s)\n", b->facts);
  text_puts(out, "\n");
  put_text(out, e->text, n);
}

typedef struct Reference {
  Entries entries;
  Builtins builtins;
} Reference;

static Reference reference(Arena *arena)
{
  Reference r = {0};
  read_entries(arena, &r.entries);
  list_builtins(arena, &r.builtins);
  return r;
}

bool help_on(const char *name, Text *out)
{
  Reference r = reference(out->arena);
  bool any = false;
  for (uint32_t i = 0; i < r.entries.n; i++) {
    if (strcmp(r.entries.at[i].name, name) != 0) continue;
    if (any) text_puts(out, "\n");
    put_entry(&r.entries.at[i], &r.builtins, out);
    any = true;
  }
  return any;
}

void help_all(Text *out)
{
  Reference r = reference(out->arena);
  for (uint32_t i = 0; i < r.entries.n; i++) {
    const Entry *e = &r.entries.at[i];
    if (i) text_puts(out, "\n");
    if (e->title) {
      text_printf(out, "==== %s ====\n", e->title);
      put_text(out, e->about, e->about_size);
    }
    text_puts(out, "---- ");
    put_entry(e, &r.builtins, out);
  }
}

/* ---- names ---- */

void help_names(Arena *arena, NameVec *out)
{
  Entries entries = {0};
  read_entries(arena, &entries);
  for (uint32_t i = 0; i < entries.n; i++) {
    bool known = false;
    for (uint32_t k = 0; k < out->n && !known; k++)
      known = strcmp(out->at[k], entries.at[i].name) == 0;
    if (!known) vec_push(arena, out, entries.at[i].name);
  }
}

void help_chapter(Arena *arena, const char *chapter, HelpEntries *out)
{
  Entries entries = {0};
  read_chapter(arena, embedded_find(chapter)->text, &entries);
  for (uint32_t i = 0; i < entries.n; i++)
    vec_push(arena, out, (HelpEntry){entries.at[i].name, entries.at[i].heading});
}

const char *help_nearest(Arena *arena, const char *name)
{
  NameVec names = {0};
  help_names(arena, &names);
  return diag_nearest(name, names.at, names.n);
}

void help_check(Text *out)
{
  Reference r = reference(out->arena);
  for (uint32_t i = 0; i < r.builtins.n; i++) {
    const char *name = r.builtins.at[i].name;
    bool found = false;
    for (uint32_t k = 0; k < r.entries.n && !found; k++)
      found = same_name(r.entries.at[k].name, name);
    if (!found)
      text_printf(out, "`%s` has no entry: add one to a chapter of compiler/help\n", name);
  }
  for (uint32_t i = 0; i < r.entries.n; i++) {
    const Entry *e = &r.entries.at[i];
    const Builtin *b = builtin_named(&r.builtins, e->name);
    if (!has_own_signature(e) && b && !b->signature)
      text_printf(out, "the heading of `%s` needs the signature: no table knows it\n", e->name);
  }
}
