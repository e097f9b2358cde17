/* The text of syntax messages: the expected tokens, and quotes of the program. */
#include "mistakes.h"
#include "amp.tab.h"
#include <string.h>

/* ---- what was expected ---- */

typedef struct Expected {
  const SyntaxError *e;
  Text text;
  int n;
} Expected;

/* True if the grammar accepts the symbol. Compares names, because bison's header lacks symbol
 * kinds. */
static bool takes(const Expected *x, const char *symbol)
{
  for (int i = 0; i < x->e->n_expected; i++)
    if (strcmp(parse_symbol_name(x->e->expected[i]), symbol) == 0) return true;
  return false;
}

/* Adds an item of "a", "a or b" or "a, b or c"; `left`: number of items that follow. */
static void add(Expected *x, const char *what, int left)
{
  if (x->n++) text_puts(&x->text, left ? ", " : " or ");
  text_puts(&x->text, what);
}

/* begins: may start an expression, so `an expression` includes it. goes_on: may continue an
 * expression that has ended. */
static const struct Kind {
  const char *symbol, *what;
  bool begins, goes_on;
} kinds[] = {
    {"newline", "the end of the line", false, false},
    {"'='", "`=`", false, false},
    {"','", "`,`", false, false},
    {"':'", "`:`", false, false},
    {"')'", "`)`", false, false},
    {"']'", "`]`", false, false},
    {"'{'", "`{`", false, false},
    {"'('", "`(`", true, true},
    {"'['", "`[`", true, true},
    {"->", "`->`", false, false},
    {"IN", "`in`", false, false},
    {"WITH", "`with`", false, false},
    {"CARRY", "`carry`", false, false},
    {"ELSE", "`else`", false, false},
    {"FOR", "`for`", false, false},
    {"STRING", "a text in quotes", true, false},
    {"type name", "a type", true, false},
    {"name", "a name", true, false},
    {"...", "`...`", false, false},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Lists what the grammar accepts here: at most N_KINDS + 1 texts, whose number is returned. All
 * tokens that start an expression are one text. Tokens that continue an expression are left out. */
static int list_expected(const Expected *x, const char **list)
{
  bool begins = takes(x, "INT"); /* an expression may start here ... */
  bool ended = takes(x, "AND");  /* ... or has just ended and may continue */
  int n = 0;
  if (takes(x, "RETURN")) return list[0] = "a statement", 1;
  if (begins) list[n++] = "an expression";
  for (int i = 0; i < N_KINDS; i++) {
    const struct Kind *k = &kinds[i];
    if ((begins && k->begins) || (ended && k->goes_on) || !takes(x, k->symbol)) continue;
    /* `=` is rarely intended in ( ) */
    if (ended && strcmp(k->symbol, "'='") == 0 && takes(x, "')'")) continue;
    list[n++] = k->what;
  }
  return n;
}

/* Returns a message that lists the accepted tokens. A list of more than four items does not help,
 * so the message then names only the found token. */
const char *syntax_expected(const Parser *p, const SyntaxError *e)
{
  const Token *t = &p->tokens.at[p->current];
  const char *found = parse_found(p, t), *list[N_KINDS + 1];
  Expected x = {.e = e};
  text_init(&x.text, p->c->arena);
  int n = list_expected(&x, list);
  if (!n || n > 4) return arena_printf(p->c->arena, "%s cannot stand here", found);
  if (p->raw.at[t->raw].kind == TOK_NAME && t->kind != TOK_NAME && strcmp(list[0], "a name") == 0 &&
      n == 1)
    return arena_printf(p->c->arena, "%s is a reserved word and cannot be a name", found);
  for (int i = 0; i < n; i++) add(&x, list[i], n - 1 - i);
  return arena_printf(p->c->arena, "expected %s, found %s", x.text.at, found);
}

/* ---- quotes of the program ---- */

static bool is_comparison(int kind)
{
  return ONE_OF(kind, '<', '>', TOK_LE, TOK_GE, TOK_EQ, TOK_NE);
}

/* True if this token ends the operand of a comparison. */
static bool is_border(int kind)
{
  return is_comparison(kind) ||
         ONE_OF(kind, 0, TOK_NL, TOK_AND, TOK_OR, TOK_NOT, TOK_IF, TOK_ELSE, TOK_FOR, TOK_IN,
                TOK_RETURN, TOK_ASSERT, TOK_AUG, '=', ',', ':', '{', '}');
}

/* Goes from token `i` through an operand, in steps of 1 or -1. Returns the token beyond it. */
static uint32_t behind_operand(const Parser *p, int64_t i, int step)
{
  uint32_t depth = 0;
  for (; i >= 0 && p->tokens.at[i].kind; i += step) {
    int kind = p->tokens.at[i].kind;
    bool left = kind == '(' || kind == '[', right = kind == ')' || kind == ']';
    if (step > 0 ? left : right)
      depth++;
    else if (depth && (left || right))
      depth--;
    else if (!depth && (left || right || is_border(kind)))
      break;
  }
  return (uint32_t)i;
}

const char *syntax_text(const Parser *p, uint32_t from, uint32_t to)
{
  if (to <= from) return "...";
  uint32_t start = p->tokens.at[from].span.start, end = p->tokens.at[to - 1].span.end;
  const char *text = p->source->text + (start - p->source->base);
  if (end - start > 60 || memchr(text, '\n', end - start)) return "...";
  return arena_strndup(p->c->arena, text, end - start);
}

/* Returns a chain `a < b < c`, with the error at the second `<`, as written or as it should be. */
static const char *chain(const Parser *p, bool mended)
{
  uint32_t second = p->current, middle = behind_operand(p, (int64_t)second - 1, -1) + 1;
  if (!middle) return "...";
  uint32_t first = middle - 1, left = behind_operand(p, (int64_t)first - 1, -1) + 1,
           right = behind_operand(p, (int64_t)second + 1, 1);
  const char *b = syntax_text(p, middle, second);
  const char *a = syntax_text(p, left, first), *op1 = syntax_text(p, first, first + 1);
  const char *op2 = syntax_text(p, second, second + 1), *c = syntax_text(p, second + 1, right);
  if (!mended) return arena_printf(p->c->arena, "`%s %s %s %s %s`", a, op1, b, op2, c);
  return arena_printf(p->c->arena, "`%s %s %s and %s %s %s`", a, op1, b, b, op2, c);
}

/* Returns a header that ends with a colon, such as `def f(self, x)`, without the `self`. */
static const char *header(const Parser *p)
{
  uint32_t from = p->current, self = 0;
  while (from && !ONE_OF(p->tokens.at[from - 1].kind, TOK_NL, '{', '}')) from--;
  for (uint32_t i = from; i < p->current && !self; i++)
    if (p->tokens.at[i].kind == TOK_NAME && strcmp(p->tokens.at[i].as.name, "self") == 0) self = i;
  if (!self || p->tokens.at[from].kind != TOK_DEF) return syntax_text(p, from, p->current);
  return arena_printf(p->c->arena, "%s%s", syntax_text(p, from, self),
                      syntax_text(p, self + 1 + (p->tokens.at[self + 1].kind == ','), p->current));
}

/* Replaces $found by the token with the error, $before by the one before it, $header by the
 * text before it, and $chain and $unchained by a chained comparison as written and as it should
 * be. */
const char *syntax_fill(const Parser *p, const char *text)
{
  const Token *t = &p->tokens.at[p->current], *before = p->current ? t - 1 : t;
  Text out = text_new(p->c->arena);
  while (*text) {
    size_t plain = strcspn(text, "$");
    text_add(&out, text, plain);
    text += plain;
    static const char *const names[] = {"$found", "$before", "$chain", "$unchained", "$header"};
    enum { NAMES = sizeof names / sizeof *names };
    size_t which = 0;
    while (which < NAMES && strncmp(text, names[which], strlen(names[which])) != 0) which++;
    if (which == NAMES) {
      if (*text) text_add(&out, text++, 1);
      continue;
    }
    text_puts(&out, which == 0   ? parse_found(p, t)
                    : which == 1 ? parse_found(p, before)
                    : which == 4 ? header(p)
                                 : chain(p, which == 3));
    text += strlen(names[which]);
  }
  return out.at;
}
