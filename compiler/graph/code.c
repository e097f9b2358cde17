/* The parser of the columns of code and gradients; see code.h. Their text is part of the compiler.
 * So a mistake in it is a bug: it ends the program with the op's name. */
#include "code.h"
#include "ops.h"
#include "compiler/base/names.h"
#include <ctype.h>
#include <string.h>

/* `at` advances through the text once. */
typedef struct CodeParser {
  Arena *arena;
  const char *at;
  FormulaWords words;
  const char *inputs[MAX_SIGNATURE], *attributes[MAX_ATTR];
  /* those that the statements so far define; before them those that may be used from the start */
  const char *names[MAX_CODE_NAMES + MAX_STATEMENTS];
  int condition; /* attribute of the brackets around `at`; -1: no brackets */
  CodeStatement statements[MAX_STATEMENTS];
  uint32_t n_statements;
} CodeParser;

/* ---- statements ---- */

/* Reads "[name:" or "]"; false if there is neither. Brackets give the statements between them a
 * condition. They do not nest. */
static bool take_brackets(CodeParser *p)
{
  if (*p->at == '[') {
    size_t n = strcspn(p->at + 1, ":]");
    if (p->condition >= 0 || p->at[1 + n] != ':')
      formula_broken(&p->words, "bad bracket", p->at, 1 + n);
    p->condition = (int)formula_attribute(&p->words, p->at + 1, n);
    p->at += n + 2;
  } else if (*p->at == ']') {
    p->condition = -1;
    p->at++;
  } else {
    return false;
  }
  return true;
}

/* Reads the value of a statement and adds the statement. `name` may be NULL. */
static CodeStatement *add_statement(CodeParser *p, StatementKind kind, const char *name)
{
  if (p->n_statements == MAX_STATEMENTS)
    formula_broken(&p->words, "too many statements at", p->at, 8);
  CodeStatement *s = &p->statements[p->n_statements++];
  *s = (CodeStatement){.kind = kind, .name = name, .condition = p->condition};
  s->value = formula_read(p->arena, &p->words, &p->at);
  if (name) p->names[p->words.n_names++] = name;
  return s;
}

/* Reads argmax or argmin as two reductions: find the best E, then the first index that has it. */
static void read_arg(CodeParser *p, StatementKind kind, const char *name)
{
  const char *expression = p->at, *best = arena_printf(p->arena, "%s_best", name);
  add_statement(p, kind, best);
  p->at = expression;
  add_statement(p, STATEMENT_first, name)->best = best;
}

/* Reads the "m = " of "max m = $0" and returns the name. */
static const char *read_name(CodeParser *p)
{
  size_t n = name_size(p->at);
  const char *name = arena_strndup(p->arena, p->at, n);
  p->at += n;
  p->at += strspn(p->at, " ");
  if (n == 0 || *p->at != '=') formula_broken(&p->words, "expected a name and =, found", p->at, 8);
  p->at++;
  return name;
}

static void read_statement(CodeParser *p)
{
  static const struct {
    const char *word;
    StatementKind kind;
    bool index; /* the result is the index, not the value */
  } words[] = {{"near", STATEMENT_near, false},       {"sum", STATEMENT_sum, false},
               {"product", STATEMENT_product, false}, {"max", STATEMENT_max, false},
               {"min", STATEMENT_min, false},         {"argmax", STATEMENT_max, true},
               {"argmin", STATEMENT_min, true},       {"let", STATEMENT_let, false},
               {"each", STATEMENT_each, false},       {"row", STATEMENT_row, false}};
  size_t n = name_size(p->at), i = 0;
  while (i < sizeof words / sizeof *words && !is_name(p->at, n, words[i].word)) i++;
  if (i == sizeof words / sizeof *words)
    formula_broken(&p->words, "no kind of statement:", p->at, n);
  p->at += n;
  p->at += strspn(p->at, " ");
  const char *name = words[i].kind < STATEMENT_each ? read_name(p) : NULL;
  if (words[i].index)
    read_arg(p, words[i].kind, name);
  else
    add_statement(p, words[i].kind, name);
}

/* Reads statements between semicolons. A bracket may contain whole statements: [label_smoothing:
 * sum a = $0;]. */
static void read_program(CodeParser *p)
{
  while (*p->at) {
    if (*p->at == ';' || isspace((unsigned char)*p->at))
      p->at++;
    else if (!take_brackets(p))
      read_statement(p);
  }
}

/* ---- facts ---- */

/* True for functions of one or a few instructions. All others are expensive, so kernels do not
 * recompute them in every walk along a row. A function that is not listed here counts as
 * expensive. */
static bool is_cheap(const char *function)
{
  static const char *const cheap[] = {
      "abs", "ceil", "clamp", "finite_or_zero", "floor", "hardswish", "isfinite", "isnan",  "max",
      "min", "nan",  "relu",  "round",          "rsqrt", "sign",      "sqrt",     "sub_max"};
  for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++)
    if (same_name(function, cheap[i])) return true;
  return false;
}

static void find_formula_facts(OpCode *code, const Formula *f)
{
  switch (f->kind) {
  case FORMULA_element:
    code->reads_element[f->index] = true;
    break;
  case FORMULA_row_value:
    code->reads_row_value[f->index] = true;
    break;
  case FORMULA_uniform:
  case FORMULA_normal:
    code->random = f->kind == FORMULA_normal ? "normal" : "uniform";
    code->dear = code->uses_index = true;
    break;
  case FORMULA_length:
    code->uses_length = true;
    break;
  case FORMULA_index:
  case FORMULA_column: /* outside of a row's loop, $c is computed from the index */
    code->uses_index = true;
    break;
  case FORMULA_call:
    code->dear |= !is_cheap(f->name);
    break;
  case FORMULA_choose:
    code->chooses = true;
    break;
  default:
    break;
  }
  for (uint32_t i = 0; i < f->n; i++) find_formula_facts(code, f->in[i]);
}

/* True if the statement needs another walk along the row, because it needs a result of the whole
 * row for each element: it is a result per element, or a reduction that uses an earlier name. */
static bool walks_again(const CodeStatement *s)
{
  if (s->kind == STATEMENT_each || s->kind == STATEMENT_first) return true;
  return statement_reduces(s->kind) && formula_has(s->value, FORMULA_name);
}

/* Sets the facts in OpCode, so that no other file searches the formulas for them. */
static void find_facts(OpCode *code)
{
  code->walks_once = true;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    code->result = s->kind;
    code->walks_once &= !walks_again(s);
    find_formula_facts(code, s->value);
  }
}

static void begin(CodeParser *p, const char *place, const char *op, const OpSignature *signature)
{
  for (uint32_t i = 0; i < signature->n_inputs; i++) p->inputs[i] = signature->input[i].name;
  for (uint32_t i = 0; i < signature->n_attrs; i++) p->attributes[i] = signature->attr[i].name;
  p->condition = -1;
  p->words = (FormulaWords){.place = arena_printf(p->arena, "%s op %s", place, op),
                            .n_inputs = signature->n_inputs,
                            .inputs = p->inputs,
                            .attributes = p->attributes,
                            .n_attributes = signature->n_attrs,
                            .names = p->names};
}

static OpCode keep(const CodeParser *p)
{
  CodeStatement *kept = arena_array(p->arena, CodeStatement, p->n_statements);
  memcpy(kept, p->statements, p->n_statements * sizeof *kept);
  return (OpCode){.statements = kept, .n_statements = p->n_statements};
}

OpCode code_parse(Arena *arena, const char *op, const char *text, const OpSignature *signature,
                  bool row)
{
  CodeParser p = {.arena = arena, .at = text};
  if (!*text) return (OpCode){0};
  begin(&p, "ops.def: code of", op, signature);
  if (row) {
    read_program(&p);
  } else {
    for (; strncmp(p.at, "let ", 4) == 0; p.at += strspn(p.at, "; ")) read_statement(&p);
    add_statement(&p, STATEMENT_value, NULL);
  }
  if (*p.at) formula_broken(&p.words, "nothing may follow:", p.at, 8);
  OpCode code = keep(&p);
  find_facts(&code);
  return code;
}

OpCode lets_parse(Arena *arena, const char *op, const char *text, const OpSignature *signature,
                  bool gradient)
{
  CodeParser p = {.arena = arena, .at = text, .names = {"dy", "y"}};
  begin(&p, gradient ? "ops.def: gradient of" : "put_forms.def:", op, signature);
  p.words.n_names = gradient ? 2 : 0;
  for (;;) {
    p.at += strspn(p.at, " ");
    if (p.n_statements == MAX_STATEMENTS)
      formula_broken(&p.words, "too many statements at", p.at, 8);
    if (strncmp(p.at, "let ", 4) == 0)
      read_statement(&p);
    else if (*p.at && *p.at != ';')
      add_statement(&p, STATEMENT_value, NULL);
    else
      p.statements[p.n_statements++] = (CodeStatement){.kind = STATEMENT_value, .condition = -1};
    if (*p.at != ';') break;
    p.at++;
  }
  if (*p.at) formula_broken(&p.words, "nothing may follow:", p.at, 8);
  return keep(&p);
}

OpCode update_parse(Arena *arena, const char *optimizer, const char *text, const char *const *names,
                    uint32_t n_names)
{
  CodeParser p = {.arena = arena, .at = text, .condition = -1};
  p.words = (FormulaWords){.place = arena_printf(arena, "optimizers.def: %s", optimizer),
                           .names = p.names};
  if (n_names > MAX_CODE_NAMES) formula_broken(&p.words, "more than MAX_CODE_NAMES", text, 0);
  memcpy(p.names, names, n_names * sizeof *names);
  p.words.n_names = n_names;
  while (*p.at) {
    p.at += strspn(p.at, "; ");
    if (strncmp(p.at, "let ", 4) == 0)
      read_statement(&p);
    else if (*p.at)
      add_statement(&p, STATEMENT_set, read_name(&p));
  }
  return keep(&p);
}

const CodeStatement *code_statement(const OpCode *code, const char *name)
{
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (s->name && same_name(s->name, name)) return s;
  }
  return NULL;
}

/* ---- steps ---- */

typedef struct Step {
  Arena *arena;
  const OpCode *program;
  uint32_t n_inputs;
} Step;

/* Returns the input that holds the result of statement `name`. */
static const Formula *given_input(const Step *t, const char *name)
{
  uint32_t i = (uint32_t)(code_statement(t->program, name) - t->program->statements);
  return formula_operand(t->arena, FORMULA_element, t->n_inputs + i);
}

/* Returns the formula with elements instead of row values and names. */
static const Formula *step_formula(const Step *t, const Formula *f)
{
  if (!f) return NULL;
  if (f->kind == FORMULA_name) return given_input(t, f->name);
  const Formula **in = arena_array(t->arena, const Formula *, f->n);
  Formula *copy = arena_new(t->arena, Formula);
  *copy = *f;
  copy->in = in;
  copy->otherwise = NULL;
  if (f->kind == FORMULA_row_value) copy->kind = FORMULA_element;
  for (uint32_t i = 0; i < f->n; i++) {
    in[i] = step_formula(t, f->in[i]);
    if (f->in[i] == f->otherwise) copy->otherwise = in[i];
  }
  return copy;
}

/* Returns the value of a STATEMENT_first: the index if the element is `best` or NaN, else n. */
static const Formula *step_first(const Step *t, const CodeStatement *s)
{
  const Formula *x = step_formula(t, s->value);
  const Formula *is_nan = formula_call(t->arena, "isnan", &x, 1);
  const Formula *equal =
      formula_new(t->arena, FORMULA_equal, (const Formula *[]){x, given_input(t, s->best)}, 2);
  const Formula *is_best = formula_new(t->arena, FORMULA_or, (const Formula *[]){equal, is_nan}, 2);
  const Formula *index = formula_operand(t->arena, FORMULA_column, 0);
  const Formula *none = formula_operand(t->arena, FORMULA_length, 0);
  return formula_new(t->arena, FORMULA_choose, (const Formula *[]){is_best, index, none}, 3);
}

OpCode code_step(Arena *arena, const OpCode *program, uint32_t i, uint32_t n_inputs)
{
  const CodeStatement *from = &program->statements[i];
  Step t = {arena, program, n_inputs};
  CodeStatement *s = arena_new(arena, CodeStatement);
  bool first = from->kind == STATEMENT_first;
  *s = (CodeStatement){.kind = STATEMENT_value,
                       .condition = -1,
                       .value = first ? step_first(&t, from) : step_formula(&t, from->value)};
  OpCode code = {.statements = s, .n_statements = 1};
  find_facts(&code);
  return code;
}
