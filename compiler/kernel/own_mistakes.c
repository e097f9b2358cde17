/* Reports a compiler's errors about the text of an own op at their places in the job. It reads the
 * messages of cc ("job.amp:5:12: error: ..") and of nvcc and NVRTC ("job.amp(5): error: ..",
 * followed by the line and a ^ below the error). */
#include "compiler/graph/own.h"
#include "kernels.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Mistake { /* an error in one line of a log */
  const char *file;
  size_t file_size;
  uint32_t line, column; /* column 0: unknown */
  const char *text;
  size_t size;
} Mistake;

/* Reads the number in "5:12" or "5)" and moves *s after it. */
static uint32_t number_at(const char **s)
{
  char *end;
  unsigned long n = isdigit((unsigned char)**s) ? strtoul(*s, &end, 10) : 0;
  if (n) *s = end;
  return (uint32_t)n;
}

static bool read_mistake(const char *s, size_t size, Mistake *out)
{
  const char *mark = memmem(s, size, "error", 5), *p = s;
  if (!mark) return false;
  while (p < mark && !(*p == ':' && isdigit((unsigned char)p[1])) &&
         !(*p == '(' && isdigit((unsigned char)p[1])))
    p++;
  *out = (Mistake){.file = s, .file_size = (size_t)(p - s)};
  bool edg = *p == '(';
  if (p++ >= mark || !(out->line = number_at(&p))) return false;
  if (!edg && *p == ':' && p++) out->column = number_at(&p);
  const char *text = memmem(mark, size - (size_t)(mark - s), ": ", 2);
  if (!text) return false;
  out->text = text + 2;
  out->size = size - (size_t)(out->text - s);
  return true;
}

/* Returns the column of an error of NVRTC in `line` of the job; 0: unknown. NVRTC prints the line
 * below its message, perhaps with another indentation, and a ^ below the error. */
static uint32_t column_below(const char *log, const char *line, size_t size)
{
  const char *shown = strchr(log, '\n'), *mark = shown ? strchr(shown + 1, '\n') : NULL;
  if (!mark) return 0;
  size_t at = strspn(mark + 1, " "), lead = strspn(shown + 1, " \t"), own = strspn(line, " \t");
  if (mark[1 + at] != '^' || at < lead || at - lead + own >= size) return 0;
  return (uint32_t)(at - lead + own + 1);
}

/* Returns the word or the character at the error; without a column the whole line. */
static Span mistake_span(const Source *s, const Mistake *m, const char *log)
{
  const char *line = s->text, *end = s->text + s->size;
  for (uint32_t i = 1; i < m->line && line < end; i++) {
    const char *next = memchr(line, '\n', (size_t)(end - line));
    line = next ? next + 1 : end;
  }
  const char *stop = memchr(line, '\n', (size_t)(end - line));
  size_t size = (size_t)((stop ? stop : end) - line), from = strspn(line, " \t"), to = size;
  uint32_t column = m->column ? m->column : column_below(log, line, size);
  if (column && column <= size) {
    from = to = column - 1;
    while (to < size && in_name(line[to])) to++;
    if (to == from) to++;
  }
  uint32_t base = s->base + (uint32_t)(line - s->text);
  return (Span){base + (uint32_t)from, base + (uint32_t)(to > from ? to : from + 1)};
}

static bool is_in(const Compile *c, const OwnText *t, const Mistake *m)
{
  Place first = diag_place(c, t->span), last = diag_place(c, (Span){t->span.end, t->span.end});
  return is_name(m->file, m->file_size, file_name(first.source->path)) && m->line >= first.line &&
         (m->line <= last.line || last.source != first.source);
}

/* Reports the error if it is in the text of an own op; returns true then. */
static bool tell(Compile *c, const Mistake *m, const char *log)
{
  const Target *target = target_of(c->options.target);
  for (uint32_t id = 1; id < c->graph->nodes.n; id++) {
    const OwnOp *own = own_of(&c->graph->nodes.at[id]);
    const OwnText *t = own ? &own->text[target->kind] : NULL;
    if (!t || !t->text || !is_in(c, t, m)) continue;
    Mistake at = *m;
    if (!t->raw) at.column = 0; /* escapes shift the columns */
    Span span = mistake_span(diag_place(c, t->span).source, &at, t->raw ? log : "");
    diag_error(c, E704, t->raw ? span : t->span, "%.*s", (int)m->size, m->text);
    diag_note(c, own->span, "in the %s text of op %s", target->own_text, own->name);
    return true;
  }
  return false;
}

bool emit_own_mistakes(Compile *c, const char *log)
{
  bool any = false;
  for (const char *s = log; s && *s;) {
    size_t n = strcspn(s, "\n");
    Mistake m;
    if (read_mistake(s, n, &m)) any = tell(c, &m, s) || any;
    s += n + (s[n] == '\n');
  }
  return any;
}
