/* The reader and the printer of formulas. The reader reads text that is part of the compiler. So a
 * mistake in the text is a bug: it ends the program with the place. */
#include "formula.h"
#include "compiler/base/names.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levels of binding, as in C: operators of a higher level bind closer. */
enum { LEVEL_choose, LEVEL_or, LEVEL_unary = 9, LEVEL_word };

/* If a text begins like another one, it comes first. */
static const struct {
  const char *text;
  int level;
} operators[FORMULA_choose] = {
    [FORMULA_mul] = {"*", 8},      [FORMULA_div] = {"/", 8},      [FORMULA_add] = {"+", 7},
    [FORMULA_sub] = {"-", 7},      [FORMULA_at_most] = {"<=", 6}, [FORMULA_at_least] = {">=", 6},
    [FORMULA_less] = {"<", 6},     [FORMULA_more] = {">", 6},     [FORMULA_equal] = {"==", 5},
    [FORMULA_unequal] = {"!=", 5}, [FORMULA_and] = {"&&", 2},     [FORMULA_or] = {"||", LEVEL_or},
    [FORMULA_bits_and] = {"&", 4}, [FORMULA_bits_or] = {"|", 3}};

_Noreturn void formula_broken(const FormulaWords *words, const char *what, const char *word,
                              size_t size)
{
  fprintf(stderr, "ampc: %s: %s `%.*s`\n", words->place, what, (int)size, word);
  abort();
}

uint32_t formula_attribute(const FormulaWords *words, const char *name, size_t size)
{
  uint32_t i = 0;
  while (i < words->n_attributes && !is_name(name, size, words->attributes[i])) i++;
  if (i == words->n_attributes) formula_broken(words, "no such attribute:", name, size);
  return i;
}

/* ---- trees ---- */

Formula *formula_new(Arena *arena, FormulaKind kind, const Formula *const *in, uint32_t n)
{
  Formula *f = arena_new(arena, Formula);
  const Formula **kept = arena_array(arena, const Formula *, n);
  for (uint32_t i = 0; i < n; i++) kept[i] = in[i];
  *f = (Formula){.kind = kind, .condition = -1, .in = kept, .n = n};
  return f;
}

const Formula *formula_operand(Arena *arena, FormulaKind kind, uint32_t index)
{
  Formula *f = formula_new(arena, kind, NULL, 0);
  f->index = index;
  return f;
}

const Formula *formula_call(Arena *arena, const char *function, const Formula *const *in,
                            uint32_t n)
{
  Formula *f = formula_new(arena, FORMULA_call, in, n);
  f->name = function;
  return f;
}

bool formula_has(const Formula *f, FormulaKind kind)
{
  bool has = f->kind == kind;
  for (uint32_t i = 0; i < f->n; i++) has |= formula_has(f->in[i], kind);
  return has;
}

bool formula_mentions(const Formula *f, const char *name)
{
  bool mentions = f->kind == FORMULA_name && same_name(f->name, name);
  for (uint32_t i = 0; i < f->n; i++) mentions |= formula_mentions(f->in[i], name);
  return mentions;
}

/* ---- reading ---- */

typedef struct Reader {
  Arena *arena;
  const FormulaWords *words;
  const char *at;
} Reader;

static const Formula *read_choice(Reader *r);
static const Formula *read_unary(Reader *r);

static void skip_blanks(Reader *r)
{
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(Reader *r, char c)
{
  skip_blanks(r);
  bool is_there = *r->at == c;
  r->at += is_there;
  return is_there;
}

static void expect(Reader *r, char c)
{
  if (!take(r, c)) formula_broken(r->words, (char[]){'n', 'o', ' ', c, ' ', 'a', 't', 0}, r->at, 8);
}

static const char *take_name(Reader *r, size_t n)
{
  const char *name = arena_strndup(r->arena, r->at, n);
  r->at += n;
  return name;
}

/* Returns the kind of the operator at r->at; FORMULA_choose if there is none. */
static FormulaKind operator_at(Reader *r)
{
  skip_blanks(r);
  for (int k = FORMULA_mul; k < FORMULA_choose; k++)
    if (strncmp(r->at, operators[k].text, strlen(operators[k].text)) == 0) return (FormulaKind)k;
  return FORMULA_choose;
}

/* Reads "[name:" and returns the attribute; -1 if there is no bracket. */
static int open_bracket(Reader *r)
{
  skip_blanks(r);
  if (*r->at != '[') return -1;
  size_t n = name_size(r->at + 1);
  if (r->at[1 + n] != ':') formula_broken(r->words, "bad bracket", r->at, 1 + n);
  int attribute = (int)formula_attribute(r->words, r->at + 1, n);
  r->at += n + 2;
  return attribute;
}

/* Reads $0, $1|0 or @1. */
static const Formula *read_operand(Reader *r)
{
  Formula *f = formula_new(r->arena, *r->at == '$' ? FORMULA_element : FORMULA_row_value, NULL, 0);
  f->index = (uint32_t)(r->at[1] - '0');
  if (f->index >= r->words->n_inputs) formula_broken(r->words, "no such input", r->at, 2);
  r->at += 2;
  if (*r->at != '|' || !isdigit((unsigned char)r->at[1])) return f;
  r->at++;
  f->absent = take_name(r, strspn(r->at, "0123456789"));
  return f;
}

/* Reads $name: an input, an attribute, or a word of the table below. */
static const Formula *read_dollar(Reader *r)
{
  static const struct {
    const char *word;
    FormulaKind kind;
  } words[] = {{"i", FORMULA_index},   {"c", FORMULA_column},        {"n", FORMULA_length},
               {"size", FORMULA_size}, {"uniform", FORMULA_uniform}, {"normal", FORMULA_normal}};
  const char *name = ++r->at;
  size_t n = name_size(name);
  r->at += n;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_name(name, n, words[i].word)) return formula_operand(r->arena, words[i].kind, 0);
  for (uint32_t i = 0; r->words->inputs && i < r->words->n_inputs; i++)
    if (is_name(name, n, r->words->inputs[i])) return formula_operand(r->arena, FORMULA_element, i);
  return formula_operand(r->arena, FORMULA_attribute, formula_attribute(r->words, name, n));
}

static const Formula *read_call(Reader *r, const char *name)
{
  const Formula *in[8];
  uint32_t n = 0;
  expect(r, '(');
  if (!take(r, ')')) {
    do {
      if (n == sizeof in / sizeof *in) formula_broken(r->words, "too many operands at", r->at, 8);
      in[n++] = read_choice(r);
    } while (take(r, ','));
    expect(r, ')');
  }
  return formula_call(r->arena, name, in, n);
}

/* Reads a function, if a parenthesis follows, else a name that a statement has defined. */
static const Formula *read_name(Reader *r)
{
  const char *start = r->at;
  size_t n = name_size(start);
  uint32_t i = 0;
  if (start[n] == '(') return read_call(r, take_name(r, n));
  while (i < r->words->n_names && !is_name(start, n, r->words->names[i])) i++;
  if (n == 0 || i == r->words->n_names)
    formula_broken(r->words, "no statement before defines", start, n ? n : 8);
  r->at += n;
  Formula *f = formula_new(r->arena, FORMULA_name, NULL, 0);
  f->name = r->words->names[i];
  return f;
}

/* Reads a number such as 2, 0.5 or 1e5. */
static const Formula *read_number(Reader *r)
{
  char *end;
  strtod(r->at, &end);
  Formula *f = formula_new(r->arena, FORMULA_number, NULL, 0);
  f->name = take_name(r, (size_t)(end - r->at));
  return f;
}

/* Reads [name: a *]b. */
static const Formula *read_prefixed(Reader *r, int condition)
{
  const Formula *left = read_unary(r);
  FormulaKind kind = operator_at(r);
  if (kind != FORMULA_mul && kind != FORMULA_div) formula_broken(r->words, "no factor", r->at, 8);
  r->at++;
  expect(r, ']');
  const Formula *right = read_unary(r);
  Formula *f = formula_new(r->arena, kind, (const Formula *[]){left, right}, 2);
  f->condition = condition;
  f->otherwise = right;
  return f;
}

static const Formula *read_unary(Reader *r)
{
  int condition = open_bracket(r);
  if (condition >= 0) return read_prefixed(r, condition);
  skip_blanks(r);
  bool minus = *r->at == '-', is_not = *r->at == '!';
  if (minus || is_not) {
    r->at++;
    const Formula *operand = read_unary(r);
    return formula_new(r->arena, minus ? FORMULA_minus : FORMULA_not, &operand, 1);
  }
  if (take(r, '(')) {
    const Formula *inside = read_choice(r);
    expect(r, ')');
    return inside;
  }
  bool sign = *r->at == '$' || *r->at == '@';
  if (sign && isdigit((unsigned char)r->at[1])) return read_operand(r);
  if (*r->at == '$') return read_dollar(r);
  return isdigit((unsigned char)*r->at) ? read_number(r) : read_name(r);
}

/* Reads operators that bind at least as close as `level`, one of which may be in brackets with its
 * right operand: a[name: + b]. */
static const Formula *read_binary(Reader *r, int level)
{
  const Formula *left = read_unary(r);
  for (;;) {
    const char *start = r->at;
    int condition = open_bracket(r);
    FormulaKind kind = operator_at(r);
    if (kind == FORMULA_choose || operators[kind].level < level) {
      r->at = start;
      return left;
    }
    r->at += strlen(operators[kind].text);
    const Formula *right = read_binary(r, operators[kind].level + 1);
    Formula *f = formula_new(r->arena, kind, (const Formula *[]){left, right}, 2);
    if (condition >= 0) {
      expect(r, ']');
      f->condition = condition;
      f->otherwise = left;
    }
    left = f;
  }
}

/* Reads a ? b : c. */
static const Formula *read_choice(Reader *r)
{
  const Formula *in[3] = {read_binary(r, LEVEL_or)};
  if (!take(r, '?')) return in[0];
  in[1] = read_choice(r);
  expect(r, ':');
  in[2] = read_choice(r);
  return formula_new(r->arena, FORMULA_choose, in, 3);
}

const Formula *formula_read(Arena *arena, const FormulaWords *words, const char **at)
{
  Reader r = {arena, words, *at};
  const Formula *f = read_choice(&r);
  skip_blanks(&r);
  if (*r.at && *r.at != ';' && *r.at != ']') formula_broken(words, "no operator at", r.at, 8);
  *at = r.at;
  return f;
}

/* ---- printing ---- */

static void put(Text *out, const FormulaTexts *texts, const Formula *f, int level);

static void put_call(Text *out, const FormulaTexts *texts, const Formula *f)
{
  text_printf(out, "%s(", texts->word(texts->frame, f));
  for (uint32_t i = 0; i < f->n; i++) {
    if (i) text_puts(out, ", ");
    put(out, texts, f->in[i], LEVEL_choose);
  }
  text_puts(out, ")");
}

/* Prints a ? b : c in brackets, but not as the last operand of another one. */
static void put_choice(Text *out, const FormulaTexts *texts, const Formula *f)
{
  put(out, texts, f->in[0], LEVEL_or);
  text_puts(out, " ? ");
  put(out, texts, f->in[1], LEVEL_choose);
  text_puts(out, " : ");
  const Formula *rest = texts->standing(texts->frame, f->in[2]);
  if (rest->kind == FORMULA_choose)
    put_choice(out, texts, rest);
  else
    put(out, texts, rest, LEVEL_choose);
}

static int level_of(const Formula *f)
{
  switch (f->kind) {
  case FORMULA_choose:
    return LEVEL_choose - 1;
  case FORMULA_minus:
  case FORMULA_not:
    return LEVEL_unary;
  default:
    return f->n && f->kind != FORMULA_call ? operators[f->kind].level : LEVEL_word;
  }
}

/* Prints a formula, in brackets if it binds less than `level`. */
static void put(Text *out, const FormulaTexts *texts, const Formula *f, int level)
{
  f = texts->standing(texts->frame, f);
  bool brackets = level_of(f) < level;
  if (brackets) text_puts(out, "(");
  switch (f->kind) {
  case FORMULA_call:
    put_call(out, texts, f);
    break;
  case FORMULA_choose:
    put_choice(out, texts, f);
    break;
  case FORMULA_minus:
  case FORMULA_not:
    text_puts(out, f->kind == FORMULA_minus ? "-" : "!");
    put(out, texts, f->in[0], LEVEL_word); /* -(-x), since --x is another operator in C */
    break;
  default:
    if (f->n == 0) {
      text_puts(out, texts->word(texts->frame, f));
      break;
    }
    put(out, texts, f->in[0], operators[f->kind].level);
    text_printf(out, " %s ", operators[f->kind].text);
    put(out, texts, f->in[1], operators[f->kind].level + 1);
  }
  if (brackets) text_puts(out, ")");
}

const char *formula_text(Arena *arena, const FormulaTexts *texts, const Formula *f)
{
  Text out = text_new(arena);
  put(&out, texts, f, LEVEL_choose);
  return out.at;
}
