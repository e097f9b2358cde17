/* The parser of the code column; see code.h. It runs once per process, on text that is part of the
 * compiler. So a mistake in the text is a bug: it ends the program with the op's name. */
#include "code.h"
#include "ops.h"
#include "compiler/base/names.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIECES = 96 }; /* for all statements of one op */

/* `at` advances through the text once. The pieces of all statements are in one array. */
typedef struct CodeParser {
  Arena *arena;
  const char *op, *at;
  const OpSignature *signature;
  int condition; /* attribute of the brackets around `at`; -1: no brackets */
  CodePiece pieces[MAX_PIECES];
  CodeStatement statements[MAX_STATEMENTS];
  uint32_t first[MAX_STATEMENTS]; /* for each statement: index of its first piece */
  uint32_t n_pieces, n_statements;
} CodeParser;

static _Noreturn void broken(const CodeParser *p, const char *what, const char *word, size_t n)
{
  fprintf(stderr, "ampc: ops.def: code of op %s: %s `%.*s`\n", p->op, what, (int)n, word);
  abort();
}

static void *keep(const CodeParser *p, const void *items, size_t size)
{
  return memcpy(arena_alloc(p->arena, size, _Alignof(max_align_t)), items, size);
}

/* ---- pieces ---- */

static CodePiece *add_piece(CodeParser *p, PieceKind kind, size_t size)
{
  if (p->n_pieces == MAX_PIECES) broken(p, "too long at", p->at, size);
  CodePiece *piece = &p->pieces[p->n_pieces++];
  *piece =
      (CodePiece){.kind = kind, .text = p->at, .size = (uint32_t)size, .condition = p->condition};
  p->at += size;
  return piece;
}

/* Adds text. Adjacent text is merged into one piece, so `$0 * $1` has three pieces. */
static void add_text(CodeParser *p, size_t size)
{
  CodePiece *last = p->n_pieces > p->first[p->n_statements] ? &p->pieces[p->n_pieces - 1] : NULL;
  bool joins = last && last->kind == PIECE_text && last->condition == p->condition &&
               last->text + last->size == p->at;
  if (!joins) {
    add_piece(p, PIECE_text, size);
    return;
  }
  last->size += (uint32_t)size;
  p->at += size;
}

/* Reads an operand: $0, $1|0 or @1. */
static void add_operand(CodeParser *p)
{
  PieceKind kind = *p->at == '$' ? PIECE_element : PIECE_row_value;
  uint32_t input = (uint32_t)(p->at[1] - '0');
  if (input >= p->signature->n_inputs) broken(p, "no such input", p->at, 2);
  CodePiece *piece = add_piece(p, kind, 2);
  piece->input = input;
  if (*p->at != '|' || !isdigit((unsigned char)p->at[1])) return;
  piece->absent = p->at + 1;
  while (isdigit((unsigned char)piece->absent[piece->absent_size])) piece->absent_size++;
  p->at += 1 + piece->absent_size;
}

/* Returns the index of the attribute that $name or [name: ..] names, in the op's signature. */
static uint32_t find_attribute(const CodeParser *p, const char *name, size_t n)
{
  uint32_t i = 0;
  while (i < p->signature->n_attrs && !is_name(name, n, p->signature->attr[i].name)) i++;
  if (i == p->signature->n_attrs) broken(p, "no such attribute:", name, n);
  return i;
}

/* Reads $name: an attribute, or a word of the table below. */
static void add_dollar(CodeParser *p)
{
  static const struct {
    const char *word;
    PieceKind kind;
  } words[] = {{"i", PIECE_index},   {"c", PIECE_column},      {"n", PIECE_length},
               {"size", PIECE_size}, {"uniform", PIECE_drawn}, {"normal", PIECE_drawn}};
  const char *name = p->at + 1;
  size_t n = name_size(name);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!is_name(name, n, words[i].word)) continue;
    add_piece(p, words[i].kind, n + 1);
    return;
  }
  uint32_t attribute = find_attribute(p, name, n);
  add_piece(p, PIECE_attribute, n + 1)->attribute = attribute;
}

static bool is_defined(const CodeParser *p, const char *name, size_t n)
{
  for (uint32_t i = 0; i < p->n_statements; i++)
    if (p->statements[i].name && is_name(name, n, p->statements[i].name)) return true;
  return false;
}

/* Reads a word: a function if a parenthesis follows, else a name that a statement has defined. */
static void add_name(CodeParser *p)
{
  size_t n = name_size(p->at);
  if (p->at[n] == '(')
    add_piece(p, PIECE_call, n);
  else if (is_defined(p, p->at, n))
    add_piece(p, PIECE_name, n);
  else
    broken(p, "no statement before defines", p->at, n);
}

/* ---- statements ---- */

/* Reads "[name:". The text up to "]" is included only if the attribute is nonzero. */
static void open_bracket(CodeParser *p)
{
  size_t n = strcspn(p->at + 1, ":]");
  if (p->condition >= 0 || p->at[1 + n] != ':') broken(p, "bad bracket", p->at, 1 + n);
  p->condition = (int)find_attribute(p, p->at + 1, n);
  p->at += n + 2;
}

/* Reads "[name:" or "]"; false if there is neither. Brackets give the text between them a
 * condition. They do not nest. */
static bool take_brackets(CodeParser *p)
{
  if (*p->at == '[') {
    open_bracket(p);
  } else if (*p->at == ']') {
    p->condition = -1;
    p->at++;
  } else {
    return false;
  }
  return true;
}

/* Reads up to the next semicolon. A number with letters, such as 1e5, is one piece of text. */
static void read_expression(CodeParser *p)
{
  while (*p->at && *p->at != ';') {
    bool sign = strchr("$@", *p->at) != NULL;
    if (take_brackets(p)) continue;
    if (sign && isdigit((unsigned char)p->at[1]))
      add_operand(p);
    else if (*p->at == '$')
      add_dollar(p);
    else if (isalpha((unsigned char)*p->at))
      add_name(p);
    else
      add_text(p, isdigit((unsigned char)*p->at) ? name_size(p->at) : 1);
  }
}

/* Opens a statement. Pieces belong to it until end_statement. */
static CodeStatement *add_statement(CodeParser *p, StatementKind kind, const char *name)
{
  if (p->n_statements == MAX_STATEMENTS) broken(p, "too many statements at", p->at, 8);
  CodeStatement *s = &p->statements[p->n_statements];
  *s = (CodeStatement){.kind = kind, .name = name, .condition = p->condition};
  p->first[p->n_statements] = p->n_pieces;
  return s;
}

static void end_statement(CodeParser *p)
{
  p->statements[p->n_statements].n_pieces = p->n_pieces - p->first[p->n_statements];
  p->n_statements++;
}

/* Reads argmax or argmin as two reductions: find the best E, then the first index that has it. */
static void read_arg(CodeParser *p, StatementKind kind, const char *name)
{
  const char *expression = p->at;
  char best[64];
  snprintf(best, sizeof best, "%s_best", name);
  const char *kept = arena_strdup(p->arena, best);
  add_statement(p, kind, kept);
  read_expression(p);
  end_statement(p);
  p->at = expression;
  add_statement(p, STATEMENT_first, name)->best = kept;
  read_expression(p);
  end_statement(p);
}

/* Reads the "m = " of "max m = $0" and returns the name. */
static const char *read_name(CodeParser *p)
{
  size_t n = name_size(p->at);
  const char *name = arena_strndup(p->arena, p->at, n);
  p->at += n;
  p->at += strspn(p->at, " ");
  if (n == 0 || *p->at != '=') broken(p, "expected a name and =, found", p->at, 8);
  p->at++;
  p->at += strspn(p->at, " ");
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
  if (i == sizeof words / sizeof *words) broken(p, "no kind of statement:", p->at, n);
  p->at += n;
  p->at += strspn(p->at, " ");
  const char *name = words[i].kind < STATEMENT_each ? read_name(p) : NULL;
  if (words[i].index) {
    read_arg(p, words[i].kind, name);
    return;
  }
  add_statement(p, words[i].kind, name);
  read_expression(p);
  end_statement(p);
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
static bool is_cheap(const CodePiece *call)
{
  static const char *const cheap[] = {
      "abs", "ceil", "clamp", "finite_or_zero", "floor", "hardswish", "isfinite", "isnan",  "max",
      "min", "nan",  "relu",  "round",          "rsqrt", "sign",      "sqrt",     "sub_max"};
  size_t prefix = strlen("ampc_");
  for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++)
    if (call->size > prefix && is_name(call->text + prefix, call->size - prefix, cheap[i]))
      return true;
  return false;
}

static void find_piece_facts(OpCode *code, const CodePiece *piece)
{
  switch (piece->kind) {
  case PIECE_element:
    code->reads_element[piece->input] = true;
    break;
  case PIECE_row_value:
    code->reads_row_value[piece->input] = true;
    break;
  case PIECE_drawn:
    code->random = is_name(piece->text, piece->size, "$normal") ? "normal" : "uniform";
    code->dear = code->uses_index = true;
    break;
  case PIECE_length:
    code->uses_length = true;
    break;
  case PIECE_index:
  case PIECE_column: /* outside of a row's loop, $c is computed from the index */
    code->uses_index = true;
    break;
  case PIECE_call:
    code->dear |= !is_cheap(piece);
    break;
  case PIECE_text:
    code->chooses |= memchr(piece->text, '?', piece->size) != NULL;
    break;
  default:
    break;
  }
}

/* True if the statement needs another walk along the row, because it needs a result of the whole
 * row for each element: it is a result per element, or a reduction that uses an earlier name. */
static bool walks_again(const CodeStatement *s)
{
  bool again = s->kind == STATEMENT_each || s->kind == STATEMENT_first;
  for (uint32_t i = 0; i < s->n_pieces; i++)
    again |= s->pieces[i].kind == PIECE_name && statement_reduces(s->kind);
  return again;
}

/* Sets the facts in OpCode, so that no other file searches the text. */
static void find_facts(OpCode *code)
{
  code->walks_once = true;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    code->result = s->kind;
    code->walks_once &= !walks_again(s);
    for (uint32_t k = 0; k < s->n_pieces; k++) find_piece_facts(code, &s->pieces[k]);
  }
}

OpCode code_parse(Arena *arena, const char *op, const char *text, const OpSignature *signature,
                  bool row)
{
  OpCode code = {0};
  CodeParser p = {.arena = arena, .op = op, .at = text, .signature = signature, .condition = -1};
  if (!*text) return code;
  if (row) {
    read_program(&p);
  } else {
    add_statement(&p, STATEMENT_value, NULL);
    read_expression(&p);
    end_statement(&p);
  }
  CodePiece *pieces = keep(&p, p.pieces, p.n_pieces * sizeof *pieces);
  for (uint32_t i = 0; i < p.n_statements; i++) p.statements[i].pieces = pieces + p.first[i];
  code.statements = keep(&p, p.statements, p.n_statements * sizeof *p.statements);
  code.n_statements = p.n_statements;
  find_facts(&code);
  return code;
}

/* ---- steps ---- */

typedef struct Step {
  Arena *arena;
  const OpCode *program;
  uint32_t n_inputs;
  VEC(CodePiece) pieces;
} Step;

/* Returns a piece for the input that holds the result of statement `name`. */
static CodePiece given_piece(const Step *t, const char *name, size_t n)
{
  uint32_t i = 0;
  while (!t->program->statements[i].name || !is_name(name, n, t->program->statements[i].name)) i++;
  return (CodePiece){.kind = PIECE_element, .input = t->n_inputs + i, .condition = -1};
}

static void step_text(Step *t, PieceKind kind, const char *text)
{
  CodePiece p = {.kind = kind, .text = text, .size = (uint32_t)strlen(text), .condition = -1};
  vec_push(t->arena, &t->pieces, p);
}

static void step_expression(Step *t, const CodeStatement *s)
{
  for (uint32_t i = 0; i < s->n_pieces; i++) {
    CodePiece p = s->pieces[i];
    if (p.kind == PIECE_row_value) p.kind = PIECE_element;
    if (p.kind == PIECE_name) p = given_piece(t, p.text, p.size);
    p.condition = s->pieces[i].condition;
    vec_push(t->arena, &t->pieces, p);
  }
}

/* Adds the code of a STATEMENT_first: the smallest index at which the value is `best` or NaN. */
static void step_first(Step *t, const CodeStatement *s)
{
  bool single = s->n_pieces == 1;
  step_text(t, PIECE_text, single ? "" : "(");
  step_expression(t, s);
  step_text(t, PIECE_text, single ? " == " : ") == ");
  vec_push(t->arena, &t->pieces, given_piece(t, s->best, strlen(s->best)));
  step_text(t, PIECE_text, " || ampc_isnan(");
  step_expression(t, s);
  step_text(t, PIECE_text, ") ? ");
  step_text(t, PIECE_column, "$c");
  step_text(t, PIECE_text, " : ");
  step_text(t, PIECE_length, "$n");
}

OpCode code_step(Arena *arena, const OpCode *program, uint32_t i, uint32_t n_inputs)
{
  const CodeStatement *from = &program->statements[i];
  Step t = {.arena = arena, .program = program, .n_inputs = n_inputs};
  CodeStatement *s = arena_new(arena, CodeStatement);
  if (from->kind == STATEMENT_first)
    step_first(&t, from);
  else
    step_expression(&t, from);
  *s = (CodeStatement){
      .kind = STATEMENT_value, .condition = -1, .n_pieces = t.pieces.n, .pieces = t.pieces.at};
  OpCode code = {.statements = s, .n_statements = 1};
  find_facts(&code);
  return code;
}
