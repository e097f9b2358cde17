/* Finds the brackets around a place. */
#include "context.h"
#include "compiler/syntax/lex_words.h"

typedef struct Open {
  int kind;
  const Token *callee;
  const char *first;
} Open;
typedef VEC(Open) Opens;

static const char *word_of(const Token *t)
{
  return t->kind == TOK_NAME ? t->as.name : "";
}

/* True if the place is in a string, or in a comment behind the token. */
static bool is_quiet(const Query *q, const Token *before)
{
  const char *text = q->source->text, *place = text + (q->offset - q->source->base);
  const char *from = before ? text + (before->span.end - q->source->base) : text;
  if (before && before->kind == TOK_STRING && place <= from) {
    const char *start = text + (before->span.start - q->source->base);
    return place < from || from - start < 2 || from[-1] != *start; /* unclosed */
  }
  for (; from < place; from++)
    if (*from == '#' && !memchr(from, '\n', (size_t)(place - from))) return true;
  return false;
}

/* Sets the name around the place, which is the token before `next` or `next` itself. */
static void find_name(const Query *q, Context *at)
{
  const Token *before = at->next > q->tokens.at ? at->next - 1 : NULL;
  if (before && before->kind == TOK_NAME && before->span.end >= q->offset)
    at->name = before;
  else if (at->next->kind == TOK_NAME && at->next->span.start == q->offset)
    at->name = at->next;
  at->argument = at->name && at->open == '(' && at->name[1].kind == '=';
}

/* Follows a token before the place. */
static void see(const Query *q, Context *at, Opens *open, const Token *t)
{
  const Token *before = t > q->tokens.at && t[-1].kind == TOK_NAME ? t - 1 : NULL;
  if (!*at->first) at->first = word_of(t);
  at->with = at->with || strcmp(word_of(t), "with") == 0;
  if (kind_opens(t->kind))
    vec_push(q->a->arena, open, ((Open){t->kind, before, at->first}));
  else if (kind_closes(t->kind) && open->n)
    open->n--;
  bool inside = open->n && open->at[open->n - 1].kind != '{';
  bool ends = ONE_OF(t->kind, '{', '}') || (!inside && ONE_OF(t->kind, RAW_NEWLINE, RAW_SEMICOLON));
  if (!ends) return;
  at->first = "";
  at->with = false;
}

Context context_at(const Query *q)
{
  const Token *end = q->tokens.at + q->tokens.n - 1;
  Context at = {.next = q->tokens.at, .first = "", .header = ""};
  Opens open = {0};
  for (; at.next < end && at.next->span.start < q->offset; at.next++) see(q, &at, &open, at.next);
  at.code = !is_quiet(q, at.next > q->tokens.at ? at.next - 1 : NULL);
  const Open *top = open.n ? &open.at[open.n - 1] : NULL;
  if (top) {
    at.open = top->kind;
    at.callee = top->kind == '(' ? top->callee : NULL;
    at.header = top->kind == '{' ? top->first : "";
  }
  if (at.code) find_name(q, &at);
  return at;
}
