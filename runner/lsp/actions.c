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

/* Returns the first error that begins in these lines, or NULL; counts all errors in *count. A
 * warning counts if it has the code. */
static const Message *find_message(const Analysis *a, const Compile *c, const Message *like,
                                   const char *uri, uint32_t first, uint32_t last, uint32_t *count)
{
  uint32_t n;
  const Message *list = diag_kept(c, &n), *found = NULL;
  *count = 0;
  for (uint32_t i = 0; i < n; i++) {
    const Message *m = &list[i];
    if (!m->code || (m->severity != SEVERITY_error && strcmp(m->code, like->code) != 0)) continue;
    Place place = diag_place(c, m->span);
    bool file = place.source && place.source->file;
    bool here = file && strcmp(analysis_uri(a, place.source->path), uri) == 0 &&
                place.line >= first && place.line <= last;
    if (here && !found) found = m;
    ++*count;
  }
  return found;
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

/* True if the result of the edit for a message has no error in the edited lines, or one whose cure
 * is accepted. Lines that are removed leave fewer errors. */
static bool is_accepted(const Analysis *a, const Compile *c, const Message *m, const Edit *e,
                        int depth)
{
  const Place place = diag_place(c, e->span);
  const char *uri = analysis_uri(a, place.source->path);
  Compile *next = edits_compile(a, c, &(Edits){&(Edit){e->span, e->text}, 1, 1}, c->options);
  uint32_t before, after, last = place.line;
  for (const char *p = e->text; *p; p++) last += *p == '\n';
  find_message(a, c, m, uri, 1, 0, &before);
  const Message *left = find_message(a, next, m, uri, place.line, last, &after);
  Edit more;
  bool good = *e->text ? !left || (depth < MOST_CURES && cure_of(a, next, left, &more) &&
                                   is_accepted(a, next, left, &more, depth + 1))
                       : after < before;
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
