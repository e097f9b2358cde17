/* Finds what a program says in PyTorch or Python, and quotes the program in the cure. The parser
 * calls foreign_statement(); lower/foreign.c reports names that a job does not declare. */
#include "foreign.h"
#include "amp.tab.h"
#include "mistakes.h"
#include <string.h>

const Foreign foreign[] = {
#define GROUP(title)
#define SAME(example, cure)
#define NAME(key, example, cure)        {key, NULL, cure},
#define FORM(key, found, example, cure) {key, found, cure},
#define LOSS(key, function)                                                                        \
  {key, NULL, "write `" function "`: a loss is a function, as in `" function "(net(x), y)`"},
#include "foreign.def"
    {NULL, NULL, NULL}};

const Foreign *foreign_name(const char *key)
{
  for (const Foreign *f = foreign; f->key; f++)
    if (!f->found && strcmp(f->key, key) == 0) return f;
  return NULL;
}

const char *foreign_cure(Arena *arena, const Foreign *f, const Quotes *q)
{
  static const char *const names[QUOTE_COUNT] = {"$args", "$1", "$2", "$value", "$base", "$word"};
  Text out = text_new(arena);
  for (const char *text = f->cure; *text;) {
    size_t plain = strcspn(text, "$");
    text_add(&out, text, plain);
    text += plain;
    for (int i = 0; *text && i < QUOTE_COUNT; i++) {
      size_t n = strlen(names[i]);
      if (strncmp(text, names[i], n) != 0) continue;
      text_puts(&out, q->at[i] ? q->at[i] : "..");
      text += n;
      break;
    }
  }
  return out.at;
}

/* ---- statements ---- */

static bool reads(const Parser *p, uint32_t i, const char *word, size_t n)
{
  Span s = p->tokens.at[i].span;
  return s.end - s.start == n &&
         memcmp(p->source->text + (s.start - p->source->base), word, n) == 0;
}

/* True if the tokens begin with the words of the key before `..` and contain those behind it. */
static bool matches(const Parser *p, Stuck s, const char *key)
{
  bool anywhere = false;
  for (uint32_t i = s.from; *key;) {
    size_t n = strcspn(key, " ");
    if (n == 2 && memcmp(key, "..", 2) == 0) {
      anywhere = true;
    } else {
      while (anywhere && i < s.to && !reads(p, i, key, n)) i++;
      if (i >= s.to || !reads(p, i++, key, n)) return false;
    }
    key += n + (key[n] == ' ');
  }
  return true;
}

/* Returns the index behind the bracket that closes the one at token i. */
static uint32_t behind_bracket(const Parser *p, uint32_t i, uint32_t to)
{
  for (uint32_t depth = 0; i < to; i++) {
    if (kind_opens(p->tokens.at[i].kind)) depth++;
    if (kind_closes(p->tokens.at[i].kind) && --depth == 0) return i + 1;
  }
  return to;
}

/* Quotes the name at token i and its arguments. Sets *end to the index behind them. */
static Quotes quotes_at(const Parser *p, Stuck s, uint32_t i, uint32_t *end)
{
  Quotes q = {{NULL}};
  *end = i + 1;
  if (i + 1 >= s.to || p->tokens.at[i + 1].kind != '(') return q;
  *end = behind_bracket(p, i + 1, s.to);
  q.at[Q_args] = syntax_text(p, i + 2, *end - 1);
  uint32_t start = i + 2, number = Q_1;
  for (uint32_t k = start; k < *end && number <= Q_2; k++) {
    int kind = p->tokens.at[k].kind;
    if (kind_opens(kind)) k = behind_bracket(p, k, *end) - 1;
    if (kind != ',' && k + 1 < *end) continue;
    q.at[number++] = syntax_text(p, start, k);
    start = k + 1;
  }
  return q;
}

static Span span_of(const Parser *p, uint32_t from, uint32_t to)
{
  return (Span){p->tokens.at[from].span.start, p->tokens.at[to - 1].span.end};
}

static int kind_at(const Parser *p, uint32_t i)
{
  return p->tokens.at[i].kind;
}

/* Returns the first token of `a.b(c).d`, whose last token is i. */
static uint32_t start_of_chain(const Parser *p, uint32_t i, uint32_t from)
{
  for (;;) {
    for (uint32_t depth = 0; i > from; i--) {
      if (kind_closes(kind_at(p, i))) depth++;
      if (kind_opens(kind_at(p, i))) depth--;
      if (!depth) break;
    }
    if (i > from && kind_opens(kind_at(p, i)) && ONE_OF(kind_at(p, i - 1), TOK_NAME, ')', ']'))
      i--;
    else if (i > from + 1 && kind_at(p, i - 1) == '.')
      i -= 2;
    else
      return i;
  }
}

/* Reports `m.float()`, whose name is a reserved word here, and `torch.float`. */
static bool type_as_name(Parser *p, Stuck s)
{
  if (s.at < s.from + 2 || p->tokens.at[s.at - 1].kind != '.') return false;
  uint32_t base = start_of_chain(p, s.at - 2, s.from), end;
  const char *name = syntax_text(p, s.at, s.at + 1), *of = syntax_text(p, base, s.at - 1);
  const Foreign *f = foreign_name(arena_printf(p->c->arena, "%s.%s", of, name));
  if (!f) f = foreign_name(arena_printf(p->c->arena, ".%s", name));
  if (!f) return false;
  Quotes q = quotes_at(p, s, s.at, &end);
  q.at[Q_base] = of;
  diag_error(p->c, E201, span_of(p, base, end), "there is no `%s.%s`", of, name);
  diag_help(p->c, "%s", foreign_cure(p->c->arena, f, &q));
  return true;
}

/* Reports a call at the top level, as in `loader = DataLoader(..)`. */
static bool name_at_top(Parser *p, Stuck s)
{
  for (uint32_t i = s.from; i + 1 < s.to && !p->open_braces; i++) {
    if (p->tokens.at[i].kind != TOK_NAME || p->tokens.at[i + 1].kind != '(') continue;
    if (i && ONE_OF(kind_at(p, i - 1), TOK_DEF, TOK_OP, TOK_MODULE, TOK_DATA, TOK_INFER)) continue;
    const char *name = p->tokens.at[i].as.name;
    const Foreign *f = foreign_name(name);
    if (!f) continue;
    uint32_t end;
    Quotes q = quotes_at(p, s, i, &end);
    diag_error(p->c, E201, span_of(p, s.from, s.to), "there is no `%s`", name);
    diag_help(p->c, "%s", foreign_cure(p->c->arena, f, &q));
    return true;
  }
  return false;
}

bool foreign_statement(Parser *p, Stuck s)
{
  for (const Foreign *f = foreign; f->key; f++) {
    if (!f->found || !matches(p, s, f->key)) continue;
    Quotes q = {{NULL}};
    q.at[Q_word] = s.from + 1 < s.to ? syntax_text(p, s.from + 1, s.from + 2) : NULL;
    diag_error(p->c, E100, span_of(p, s.from, s.to), "%s", f->found);
    diag_help(p->c, "%s", foreign_cure(p->c->arena, f, &q));
    return true;
  }
  return type_as_name(p, s) || name_at_top(p, s);
}
