/* Finds the brackets around a place. */
#include "context.h"
#include "compiler/base/limits.h"

typedef struct Open {
  char kind;
  uint32_t at, statement;
} Open;

typedef struct Scan {
  const char *text;
  uint32_t at, end;
  bool code;
  uint32_t statement;
  uint32_t depth; /* open brackets, of which the first MAX_OPEN_BRACKETS are kept */
  Open open[MAX_OPEN_BRACKETS];
} Scan;

/* Skips from `at` to behind `close`. If the text ends before it, the place is inside. */
static void skip_to(Scan *s, const char *close)
{
  size_t n = strlen(close);
  bool string = n == 1 && *close != '\n';
  for (; s->at < s->end; s->at++) {
    if (string && s->text[s->at] == '\\') {
      s->at++;
    } else if (s->at + n <= s->end && memcmp(s->text + s->at, close, n) == 0) {
      s->at += (uint32_t)n - (*close == '\n'); /* the line end also ends the statement */
      return;
    } else if (string && s->text[s->at] == '\n') {
      return; /* an unclosed string */
    }
  }
  s->at = s->end;
  s->code = false;
}

/* Skips a comment or a string. Returns false if none begins here. */
static bool skip_quiet(Scan *s)
{
  const char *p = s->text + s->at;
  if (*p == '#') {
    skip_to(s, "\n");
    return true;
  }
  if (*p != '"' && *p != '\'') return false;
  const char quote[] = {*p, 0};
  bool whole = s->at + 3 <= s->end && memcmp(p, "\"\"\"", 3) == 0;
  s->at += whole ? 3 : 1;
  skip_to(s, whole ? "\"\"\"" : quote);
  return true;
}

static void see(Scan *s, char c)
{
  Open *top = s->depth && s->depth <= MAX_OPEN_BRACKETS ? &s->open[s->depth - 1] : NULL;
  if (c == '(' || c == '[' || c == '{') {
    if (s->depth < MAX_OPEN_BRACKETS) s->open[s->depth] = (Open){c, s->at, s->statement};
    s->depth++;
  } else if ((c == ')' || c == ']' || c == '}') && s->depth) {
    s->depth--;
  }
  bool ends = c == '{' || c == '}' || ((c == '\n' || c == ';') && (!top || top->kind == '{'));
  bool blank = s->text[s->statement] == ' ' && s->statement == s->at;
  if (ends || blank) s->statement = s->at + 1;
}

Context context_at(const Query *q)
{
  Scan s = {.text = q->source->text, .end = q->offset - q->source->base, .code = true};
  while (s.at < s.end) {
    if (skip_quiet(&s)) continue;
    see(&s, s.text[s.at]);
    s.at++;
  }
  Context out = {.code = s.code, .statement = s.statement};
  if (!s.depth || s.depth > MAX_OPEN_BRACKETS) return out;
  const Open *top = &s.open[s.depth - 1];
  out.open = top->kind;
  out.open_at = top->at;
  out.header = top->statement;
  return out;
}

const char *context_callee(const Query *q, const Context *at)
{
  uint32_t from = at->open == '(' ? at->open_at : 0;
  while (from && in_name(q->source->text[from - 1])) from--;
  return at->open == '(' ? context_word(q, from) : "";
}

const char *context_word(const Query *q, uint32_t at)
{
  return arena_strndup(q->a->arena, q->source->text + at, name_size(q->source->text + at));
}
