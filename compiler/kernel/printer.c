/* Implements printer.h. Compile.blame is the table of lines. */
#include "printer.h"
#include "kernels.h"
#include <limits.h>
#include <string.h>

typedef struct Origin {
  const char *file;
  uint32_t line;
} Origin;

typedef struct Blame {
  Arena *arena;
  VEC(Origin) lines; /* lines.at[i] is the origin of line i + 1 */
} Blame;

void printer_begin(Printer *p, Compile *c, Text *out)
{
  Blame *blame = arena_new(c->arena, Blame);
  blame->arena = c->arena;
  c->blame = blame;
  *p = (Printer){.c = c, .out = out, .line = 1};
}

/* Returns a path relative to the tree for --blame. __FILE__ may be absolute. */
static const char *tree_path(const char *file)
{
  const char *found = strstr(file, "compiler/");
  for (const char *next = found; next; next = strstr(next + 1, "compiler/")) found = next;
  return found ? found : file;
}

/* Returns a copy of the name for the table. Most lines come from the file of the line before. */
static const char *kept_name(Printer *p, const char *name)
{
  Blame *b = p->c->blame;
  const char *last = b->lines.n ? b->lines.at[b->lines.n - 1].file : "";
  return strcmp(last, name) == 0 ? last : arena_strdup(b->arena, name);
}

static void note_line(Printer *p, const char *file, uint32_t line)
{
  Blame *b = p->c->blame;
  while (b->lines.n < p->line) vec_push(b->arena, &b->lines, (Origin){file, line});
}

/* Prints a text without its comments. */
static void put_bare(Printer *p, const char *text)
{
  for (const char *comment; (comment = strstr(text, "//")); text = comment + strcspn(comment, "\n"))
    text_add(p->out, text, (size_t)(comment - text));
  text_puts(p->out, text);
}

/* Records the origins of lines. A text may end in the middle of a line. The next text continues the
 * line, whose origin is the text that began it. */
static void put_lines(Printer *p, const char *file, uint32_t at, const char *text)
{
  if (p->bare) {
    put_bare(p, text);
    return;
  }
  while (*text) {
    const char *end = strchr(text, '\n');
    size_t n = end ? (size_t)(end - text) : strlen(text);
    note_line(p, file, at);
    if (n && !p->line_open)
      for (int i = 0; i < p->indent; i++) text_puts(p->out, "  ");
    text_add(p->out, text, n);
    p->line_open = !end && (n || p->line_open);
    if (!end) return;
    text_puts(p->out, "\n");
    p->line++;
    text = end + 1;
  }
}

void printer_put(Printer *p, const char *file, int at, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(p->c->arena, fmt, ap);
  va_end(ap);
  put_lines(p, tree_path(file), (uint32_t)at, text);
}

void printer_append(Printer *p, const Text *text, const void *blame)
{
  const Blame *lines = blame;
  Blame *own = p->c->blame;
  for (uint32_t i = 0; i < lines->lines.n; i++)
    vec_push(own->arena, &own->lines, lines->lines.at[i]);
  text_add(p->out, text->at, text->n);
  p->line += lines->lines.n;
}

enum { WIDEST = 112, STATEMENT = 100 /* columns */ };

static size_t room_of(const Printer *p, size_t width)
{
  return p->bare ? SIZE_MAX / 2 : width - 2 * (size_t)p->indent;
}

/* Returns where to break a line with `room` columns left after `lead`: after the last comma that
 * fits and is followed by a space, outside of strings and braces. If no comma fits, after the first
 * one; n if the line has no such comma. Braces at the beginning of a line enclose a whole row and
 * do not count; a comment is outside of all braces. */
static size_t break_of(const char *lead, const char *s, size_t n, size_t room)
{
  static const char marks[] = "\\\"{}/,"; /* the characters that matter */
  size_t at = n;
  bool quoted = false, blank = !lead[strspn(lead, " ")];
  int depth = blank && s[strspn(s, " ")] == '{' ? -1 : 0;
  for (size_t i = strcspn(s, marks); i + 1 < n; i++, i += strcspn(s + i, marks)) {
    bool escape = s[i] == '\\' && quoted;
    if (escape && i + 1 < n) i++; /* the character after it ends no string */
    if (s[i] == '"' && !escape) quoted = !quoted;
    if (!quoted) depth += (s[i] == '{') - (s[i] == '}');
    if (!quoted && s[i] == '/' && strncmp(s + i, "// ", 3) == 0) depth = 0;
    if (quoted || depth > 0 || s[i] != ',' || s[i + 1] != ' ') continue;
    if (at < n && i + 1 > room) break;
    at = i + 1;
  }
  return at;
}

void printer_wrap(Printer *p, const char *file, int at, const char *next, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(p->c->arena, fmt, ap);
  va_end(ap);
  size_t n = strcspn(text, "\n"), room = room_of(p, WIDEST);
  const char *lead = "", *from = kept_name(p, tree_path(file));
  while (strlen(lead) + n > room) {
    size_t stop = break_of(lead, text, n, room - strlen(lead));
    if (stop == n) break;
    put_lines(p, from, (uint32_t)at, arena_printf(p->c->arena, "%s%.*s\n", lead, (int)stop, text));
    text += stop + 1;
    n -= stop + 1;
    lead = next;
  }
  put_lines(p, from, (uint32_t)at, lead);
  put_lines(p, from, (uint32_t)at, text);
}

/* Returns the rank of the operator at s as a place to break a statement; a lower rank is better.
 * Outer brackets come first, and sums before products. UINT_MAX: no operator. */
static unsigned break_rank(const char *s, unsigned depth)
{
  static const char *const loose[] = {" ? ", " : ", " && ", " || ", " + ", " - ", " == ", " > "};
  for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
    if (strncmp(s, loose[i], strlen(loose[i])) == 0) return 2 * depth;
  return strncmp(s, " * ", 3) == 0 || strncmp(s, " / ", 3) == 0 ? 2 * depth + 1 : UINT_MAX;
}

/* Returns the last operator with the lowest rank that leaves a line of at most `room` columns; n if
 * there is no such operator. The line may close brackets of earlier lines. */
static size_t statement_break(const char *s, size_t n, size_t room)
{
  enum { DEEP = 1000 };
  unsigned depth = DEEP, best = UINT_MAX;
  size_t at = n;
  for (size_t i = 0; i < n && i <= room; i++) {
    depth += s[i] == '(' || s[i] == '[';
    depth -= s[i] == ')' || s[i] == ']';
    unsigned rank = i > room / 3 ? break_rank(s + i, depth) : UINT_MAX;
    if (rank == UINT_MAX || rank > best) continue;
    best = rank;
    at = i;
  }
  return at;
}

/* Returns the length of the statement without the comment after it. */
static size_t statement_size(const char *s)
{
  const char *comment = strstr(s, "; //");
  return comment ? (size_t)(comment - s) : strcspn(s, "\n");
}

void printer_statement(Printer *p, const char *file, int at, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(p->c->arena, fmt, ap);
  va_end(ap);
  size_t n = statement_size(text), room = room_of(p, STATEMENT);
  size_t with_comment = room + WIDEST - STATEMENT;
  while (n > room || strcspn(text, "\n") > with_comment) {
    size_t stop = statement_break(text, n, room);
    if (stop == n) stop = break_of("", text, n, room);
    if (stop == n) break;
    put_lines(p, tree_path(file), (uint32_t)at,
              arena_printf(p->c->arena, "%.*s\n", (int)stop, text));
    text = arena_printf(p->c->arena, "    %s", text + stop + 1);
    n = statement_size(text);
  }
  put_lines(p, tree_path(file), (uint32_t)at, text);
}

/* Prints without an indent, to keep the file's own layout. */
void printer_text(Printer *p, const char *name, uint32_t first_line, const char *text, size_t n)
{
  const char *end = text + n;
  name = kept_name(p, name);
  for (uint32_t line = first_line; text < end; line++) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t length = stop ? (size_t)(stop - text) : (size_t)(end - text);
    note_line(p, name, line);
    text_add(p->out, text, length);
    text_puts(p->out, "\n");
    p->line++;
    text += length + 1;
  }
}

const char *emit_blame(const Compile *c, uint32_t line)
{
  const Blame *b = c->blame;
  if (!b || line == 0 || line > b->lines.n) return NULL;
  return arena_printf(c->arena, "%s:%u", b->lines.at[line - 1].file, b->lines.at[line - 1].line);
}
