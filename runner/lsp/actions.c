/* textDocument/codeAction: cures of messages as edits. A help says what to write instead of the
 * text that its message underlines. An edit is offered only if the compiler accepts its result. */
#include "edits.h"
#include <string.h>

enum { MOST_CURES = 3 }; /* of one mistake after another in a line */

/* Returns the text behind `words` up to the closing quote; NULL if the help does not begin so, or
 * if the text stands for other texts: `f(..)`. */
static const char *quoted(Arena *arena, const char *help, const char *words, const char *close)
{
  size_t n = strlen(words);
  const char *end = strncmp(help, words, n) == 0 ? strstr(help + n, close) : NULL;
  const char *text = end ? arena_strndup(arena, help + n, (size_t)(end - help) - n) : NULL;
  return text && *text && !strstr(text, "..") ? text : NULL;
}

/* Returns the text that the help wants instead of the underlined one; NULL: it names none. */
static const char *replacement(Arena *arena, const char *help)
{
  const char *text = quoted(arena, help, "write `", "`");
  if (!text) text = quoted(arena, help, "did you mean `", "`?");
  if (text) return text;
  text = quoted(arena, help, "did you mean \"", "\"?");
  return text ? arena_printf(arena, "\"%s\"", text) : NULL;
}

/* Returns the lines of a span, if they seem to have one statement and no comment; else an empty
 * span. */
static Span whole_lines(const Source *s, Span span)
{
  int depth = 0;
  uint32_t from = span.start - s->base, to = span.end - s->base;
  while (from && s->text[from - 1] != '\n') from--;
  while (to < s->size && s->text[to] != '\n') to++;
  for (uint32_t i = from; i < to; i++) {
    if (strchr("{};#", s->text[i])) return (Span){0, 0};
    depth +=
        ((s->text[i] == '(') | (s->text[i] == '[')) - ((s->text[i] == ')') | (s->text[i] == ']'));
  }
  return depth ? (Span){0, 0} : (Span){s->base + from, s->base + to + (to < s->size)};
}

/* Sets the edit that a help asks for; false: it asks for none that is exact. */
static bool edit_of(const Analysis *a, const Source *s, const Message *m, const char *help, Edit *e)
{
  const char *text = replacement(a->arena, help);
  bool removes = strncmp(help, "leave it out", 12) == 0;
  *e = (Edit){removes ? whole_lines(s, m->span) : m->span, removes ? "" : text};
  return e->text && e->span.end > e->span.start;
}

/* How many errors a compile has with the code and text of a message, up to `last`; with text NULL:
 * how many errors. A warning counts if it has the code of `like`. */
static uint32_t count_errors(const Compile *c, const Message *like, const char *text,
                             const Message *last)
{
  uint32_t n, count = 0;
  const Message *list = diag_kept(c, &n);
  for (uint32_t i = 0; i < n && (!last || &list[i] <= last); i++) {
    const Message *m = &list[i];
    if (!m->code || (m->severity != SEVERITY_error && strcmp(m->code, like->code) != 0)) continue;
    count += !text || (strcmp(m->code, like->code) == 0 && strcmp(m->text, text) == 0);
  }
  return count;
}

/* Returns the first error of an edited job that the job does not have; *n: how many there are. */
static const Message *find_new(const Compile *c, const Compile *edited, uint32_t *n)
{
  uint32_t all;
  const Message *list = diag_kept(edited, &all), *first = NULL;
  *n = 0;
  for (uint32_t i = 0; i < all; i++) {
    const Message *m = &list[i];
    bool error = m->code && m->severity == SEVERITY_error;
    if (!error || count_errors(edited, m, m->text, m) <= count_errors(c, m, m->text, NULL))
      continue;
    if (!first) first = m;
    ++*n;
  }
  return first;
}

/* Sets the edit of the first help of a message that asks for an exact one. */
static bool cure_of(const Analysis *a, const Compile *c, const Message *m, Edit *e)
{
  uint32_t n;
  const Message *end = diag_kept(c, &n) + n;
  const Source *s = diag_place(c, m->span).source;
  for (const Message *help = m + 1; help < end && !help->code; help++)
    if (help->severity == SEVERITY_help && edit_of(a, s, m, help->text, e)) return true;
  return false;
}

/* True if the job has fewer errors after an edit of the compile `c`, and none that it did not have
 * before; or one such error, in the edited lines, whose cure is accepted in turn. */
static bool is_accepted(const Analysis *a, const Compile *c, const Message *m, const Edit *e,
                        int depth)
{
  Compile *next = edits_compile(a, c, &(Edits){&(Edit){e->span, e->text}, 1, 1}, c->options);
  const Place from = diag_place(c, e->span);
  uint32_t n, last = from.line;
  for (const char *p = e->text; *p; p++) last += *p == '\n';
  const Message *left = find_new(a->found, next, &n);
  bool good = !left && count_errors(next, m, NULL, NULL) < count_errors(a->found, m, NULL, NULL);
  if (n == 1 && depth < MOST_CURES) {
    const Place at = diag_place(next, left->span);
    Edit more;
    good = at.source && at.source->file && strcmp(at.source->path, from.source->path) == 0 &&
           at.line >= from.line && at.line <= last && cure_of(a, next, left, &more) &&
           is_accepted(a, next, m, &more, depth + 1);
  }
  compile_destroy(next);
  return good;
}

static void offer_cure(const Query *q, const Source *s, const Message *m, const char *help,
                       json_t *out)
{
  const Analysis *a = q->a;
  Edit e;
  if (!edit_of(a, s, m, help, &e) || !is_accepted(a, a->found, m, &e, 1)) return;
  json_array_append_new(out, json_pack("{s:o, s:s, s:b, s:o}", "title", analysis_text(a, help),
                                       "kind", "quickfix", "isPreferred", json_array_size(out) == 0,
                                       "edit", edits_json(a, a->found, &(Edits){&e, 1, 1})));
}

json_t *answer_actions(Query *q)
{
  json_t *out = json_array();
  const Source *s = analysis_source(q->a, q->a->found, analysis_uri(q->a, q->source->path));
  const json_t *range = json_object_get(q->params, "range");
  if (!s) return out;
  uint32_t from = query_offset(q, json_object_get(range, "start")) - q->source->base + s->base;
  uint32_t to = query_offset(q, json_object_get(range, "end")) - q->source->base + s->base, n;
  const Message *m = diag_kept(q->a->found, &n), *last = m;
  for (uint32_t i = 0; i < n; i++) {
    if (m[i].code) last = &m[i];
    if (m[i].severity == SEVERITY_help && diag_place(q->a->found, last->span).source == s &&
        last->span.start <= to && last->span.end >= from)
      offer_cure(q, s, last, m[i].text, out);
  }
  return out;
}
