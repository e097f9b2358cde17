/* The op table: rows from ops.def, look-up by name, parsed signatures, attributes of nodes. The
 * text columns are parsed at first use. A parse error is a bug of the compiler and ends the program
 * with the op's name. */
#include "ops.h"
#include "compiler/base/names.h"
#include "compiler/base/embedded.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OpInfo table[OP_COUNT] = {
#define grad_by(text) grad_formula, .gradient_text = text
#define AMPC_OP(op_name, sig, rule, prec, grad, template, trait_set, text, about)                  \
  [OP_##op_name] = {.name = #op_name,                                                              \
                    .signature_text = sig,                                                         \
                    .shape = shape_##rule,                                                         \
                    .precision = PREC_##prec,                                                      \
                    .gradient = grad_##grad,                                                       \
                    .tmpl = TMPL_##template,                                                       \
                    .traits = trait_set,                                                           \
                    .code_text = text,                                                             \
                    .doc = about},
#include "ops.def"
#undef grad_by
};
static pthread_once_t parse_once = PTHREAD_ONCE_INIT;
_Atomic(const OpInfo *) op_rows_parsed;

/* Reports a mistake in the table, which is a bug of the compiler. */
static _Noreturn void broken(const char *op, const char *what, const char *word)
{
  fprintf(stderr, "ampc: ops.def: op %s: %s `%s`\n", op, what, word);
  abort();
}

/* ---- signatures ---- */

enum { MAX_SIGNATURE_TEXT = 240 };

/* Names point into these copies of the signatures, which the parser splits in place. */
static char texts[OP_COUNT][MAX_SIGNATURE_TEXT];

typedef struct SignatureParser {
  const char *op;
  OpSignature *out;
} SignatureParser;

static char *trim(char *s)
{
  while (*s == ' ') s++;
  for (size_t n = strlen(s); n && s[n - 1] == ' '; n--) s[n - 1] = 0;
  return s;
}

/* Parses an input: "weight?" (optional), "tensors*" (any number), "settings?*" (both), "lr=0.1". */
static void parse_input(SignatureParser *p, char *item)
{
  if (p->out->n_inputs == MAX_SIGNATURE) broken(p->op, "more than MAX_SIGNATURE inputs at", item);
  InputInfo *in = &p->out->input[p->out->n_inputs++];
  char *value = strchr(item, '=');
  if (value) *value++ = 0;
  in->default_text = value;
  size_t n = strlen(item);
  in->variadic = item[n - 1] == '*';
  if (in->variadic) item[--n] = 0;
  in->optional = item[n - 1] == '?';
  if (in->optional) item[n - 1] = 0;
  in->name = item;
}

static AttrInfo *add_attr(SignatureParser *p, const char *name, AttrKind kind)
{
  if (p->out->n_attrs == MAX_ATTR) broken(p->op, "more than MAX_ATTR attributes at", name);
  AttrInfo *attr = &p->out->attr[p->out->n_attrs++];
  *attr = (AttrInfo){.name = name, .kind = kind, .required = true};
  return attr;
}

/* Returns the kind that the word between : and = names. The head of ops.def lists these words. */
static AttrKind parse_kind(const SignatureParser *p, const char *word)
{
  static const struct {
    const char *word;
    AttrKind kind;
  } kinds[] = {{"i", ATTR_int},
               {"f", ATTR_float},
               {"b", ATTR_bool},
               {"axis", ATTR_axis},
               {"axes", ATTR_axes},
               {"d", ATTR_dtype},
               {"source", ATTR_source},
               {"param", ATTR_param},
               {"setting", ATTR_setting},
               {"metric", ATTR_metric},
               {"optimizer", ATTR_optimizer},
               {"group", ATTR_group},
               {"output", ATTR_output},
               {"loop", ATTR_loop}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(word, kinds[i].word) == 0) return kinds[i].kind;
  }
  broken(p->op, "no kind of attribute:", word);
}

static Attr parse_default(AttrKind kind, const char *text)
{
  if (kind == ATTR_float) return (Attr){.f = strtod(text, NULL)};
  if (kind == ATTR_bool) return (Attr){.i = strcmp(text, "true") == 0};
  if (kind == ATTR_axes) return (Attr){.i = 0}; /* the only default is `none` */
  return (Attr){.i = strtoll(text, NULL, 10)};
}

/* Parses an attribute: "eps:f=1e-5", "dim:axis" (required), "shape" (a rank and MAX_RANK sizes). */
static void parse_attr(SignatureParser *p, char *item)
{
  static const char *const sizes[] = {"size0", "size1", "size2", "size3", "size4", "size5"};
  if (strcmp(item, "shape") == 0) {
    add_attr(p, "rank", ATTR_int);
    for (int i = 0; i < MAX_RANK; i++) add_attr(p, sizes[i], ATTR_int)->required = false;
    return;
  }
  char *colon = strchr(item, ':');
  if (!colon) broken(p->op, "attribute without a kind:", item);
  *colon = 0;
  char *value = strchr(colon + 1, '=');
  if (value) *value++ = 0;
  AttrInfo *attr = add_attr(p, item, parse_kind(p, colon + 1));
  if (!value) return;
  attr->required = false;
  attr->value = parse_default(attr->kind, value);
}

/* Calls `parse` for each item between commas. Splits `list` in place. */
static void parse_list(SignatureParser *p, char *list, void (*parse)(SignatureParser *, char *))
{
  char *rest;
  for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    item = trim(item);
    if (*item) parse(p, item);
  }
}

/* Parses a signature: "!x, weight?; dim:axis=-1" is internal, with two inputs and an attribute. */
static void parse_signature(OpInfo *op, char *text)
{
  SignatureParser p = {op->name, &op->signature};
  if (strlen(op->signature_text) >= MAX_SIGNATURE_TEXT)
    broken(op->name, "signature longer than MAX_SIGNATURE_TEXT:", op->signature_text);
  strcpy(text, op->signature_text);
  op->signature.internal = *text == '!';
  if (op->signature.internal) text++;
  char *attrs = strchr(text, ';');
  if (attrs) *attrs++ = 0;
  parse_list(&p, text, parse_input);
  if (attrs) parse_list(&p, attrs, parse_attr);
}

/* ---- code ---- */

static FileArg parse_file_arg(const OpInfo *op, const char *word)
{
  static const char *const words[] = {[FILE_inputs] = "inputs",
                                      [FILE_out] = "out",
                                      [FILE_state] = "state",
                                      [FILE_metric] = "metric",
                                      [FILE_optimizer] = "optimizer",
                                      [FILE_buffer] = "buffer",
                                      [FILE_grad] = "grad",
                                      [FILE_ranges] = "ranges",
                                      [FILE_moments] = "moments",
                                      [FILE_weights] = "weights",
                                      [FILE_const_state] = "const_state",
                                      [FILE_const_optimizer] = "const_optimizer",
                                      [FILE_random] = "random",
                                      [FILE_group_grad] = "group_grad",
                                      [FILE_group_weights] = "group_weights"};
  for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(word, words[i]) == 0) return (FileArg)i;
  broken(op->name, "no argument of a file op:", word);
}

bool op_takes(const OpInfo *op, FileArg what)
{
  uint32_t i = 0;
  while (i < op->n_file_args && op->file_args[i] != what) i++;
  return i < op->n_file_args;
}

/* Parses the arguments of a file op's kernel in templates/<op>.cu, in order: "inputs metric state".
 * Or parses what members exchange. */
static void parse_file_args(OpInfo *op)
{
  char copy[MAX_FILE_ARGS * 16], *rest;
  if (strlen(op->code_text) >= sizeof copy)
    broken(op->name, "too long a list of arguments:", op->code_text);
  strcpy(copy, op->code_text);
  for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    if (op->n_file_args == MAX_FILE_ARGS) broken(op->name, "more than MAX_FILE_ARGS at", word);
    op->file_args[op->n_file_args] = parse_file_arg(op, word);
    if (op->file_args[op->n_file_args++] == FILE_random) op->code.random = "uniform";
  }
  char file[64];
  snprintf(file, sizeof file, "%s.cu", op->name);
  if (op->tmpl == TMPL_file && !op_takes(op, FILE_ranges) && !embedded_find(file))
    broken(op->name, "there is no templates/", file);
}

/* Rejects a variadic row op: row kernels have a fixed number of operands. */
static void refuse_variadic_row(const OpInfo *op)
{
  const OpSignature *s = &op->signature;
  if (op->tmpl == TMPL_row && s->n_inputs && s->input[s->n_inputs - 1].variadic)
    broken(op->name, "a row op cannot take any number of", s->input[s->n_inputs - 1].name);
}

/* Holds the parsed code columns, which the table uses until the process ends. */
static Arena *memory;

static void free_memory(void)
{
  arena_destroy(memory);
}

/* ---- steps ---- */

static uint32_t first_step[OP_COUNT]; /* for each row op: number of its first step */

static void add_input(OpInfo *op, const char *name)
{
  OpSignature *s = &op->signature;
  if (s->n_inputs == MAX_SIGNATURE) broken(op->name, "more than MAX_SIGNATURE inputs at", name);
  s->input[s->n_inputs++] = (InputInfo){.name = name};
}

static OpInfo step_of(const OpInfo *row, uint32_t i)
{
  const OpCode *code = &row->code;
  const char *name = code->statements[i].name;
  bool each = code->statements[i].kind == STATEMENT_each;
  OpInfo op = {.name = arena_printf(memory, "%s_%s", row->name,
                                    name   ? name
                                    : each ? "each"
                                           : "row"),
               .shape = shape_step,
               .precision = PREC_fixed,
               .gradient = grad_none,
               .tmpl = TMPL_map,
               .traits = T_as_is,
               .doc = "",
               .signature = row->signature};
  op.code = code_step(memory, code, i, row->signature.n_inputs);
  for (uint32_t k = 0; k < code->n_statements; k++)
    add_input(&op, code->statements[k].name ? code->statements[k].name : "result");
  for (uint32_t k = 0; k < op.signature.n_inputs; k++) op.signature.input[k].optional = true;
  add_attr(&(SignatureParser){op.name, &op.signature}, "length", ATTR_int);
  add_attr(&(SignatureParser){op.name, &op.signature}, "inner", ATTR_int);
  op.signature.internal = true;
  return op;
}

/* Returns the rows of the table, and then those of the steps. */
static const OpInfo *add_steps(void)
{
  uint32_t n = OP_COUNT;
  for (uint32_t i = 0; i < OP_COUNT; i++)
    if (table[i].tmpl == TMPL_row) n += table[i].code.n_statements;
  OpInfo *rows = arena_array(memory, OpInfo, n);
  memcpy(rows, table, sizeof table);
  n = OP_COUNT;
  for (uint32_t i = 0; i < OP_COUNT; i++) {
    if (table[i].tmpl != TMPL_row) continue;
    first_step[i] = n;
    for (uint32_t k = 0; k < table[i].code.n_statements; k++) rows[n++] = step_of(&table[i], k);
  }
  return rows;
}

static void parse_all(void)
{
  memory = arena_create();
  atexit(free_memory);
  for (OpInfo *op = table; op < table + OP_COUNT; op++) {
    parse_signature(op, texts[op - table]);
    refuse_variadic_row(op);
    if (op->tmpl == TMPL_file || op->tmpl == TMPL_exchange)
      parse_file_args(op);
    else
      op->code = code_parse(memory, op->name, op->code_text, &op->signature, op->tmpl == TMPL_row);
    if (op->gradient_text)
      op->back = lets_parse(memory, op->name, op->gradient_text, &op->signature, true);
  }
  atomic_store_explicit(&op_rows_parsed, add_steps(), memory_order_release);
}

/* ---- rows ---- */

void op_broken(const OpInfo *op, const char *what, const char *word)
{
  broken(op->name, what, word);
}

const OpInfo *op_rows_parse(void)
{
  pthread_once(&parse_once, parse_all);
  return atomic_load_explicit(&op_rows_parsed, memory_order_acquire);
}

OpKind op_step(OpKind row, uint32_t statement)
{
  op_row(row);
  return (OpKind)(first_step[row] + statement);
}

bool op_lookup(const char *name, OpKind *out)
{
  for (OpKind op = 0; op < OP_COUNT; op++) {
    if (op_row(op)->signature.internal || !same_name(table[op].name, name)) continue;
    *out = op;
    return true;
  }
  return false;
}

OpKind op_named(const char *name)
{
  for (OpKind op = 0; op < OP_COUNT; op++)
    if (same_name(op_row(op)->name, name)) return op;
  broken(name, "the table lacks", name);
}

bool op_input_optional(const OpInfo *op, uint32_t i)
{
  const OpSignature *sig = &op->signature;
  uint32_t last = sig->n_inputs - 1;
  if (i > last && sig->input[last].variadic) i = last;
  return i <= last && sig->input[i].optional;
}

bool op_by_library(const OpInfo *op)
{
  return op->tmpl == TMPL_gemm || op->tmpl == TMPL_conv;
}

bool op_may_add(const OpInfo *op)
{
  return op_by_library(op) || (op->traits & T_keeps_sum);
}

bool op_says_type(const OpInfo *op)
{
  return op->precision >= PREC_stored;
}

uint32_t op_image_inputs(const OpInfo *op)
{
  return op->traits & T_images ? ~0u : op->traits & T_image ? 1 : 0;
}

/* ---- attributes ---- */

bool attr_find(const OpInfo *op, const char *name, uint32_t *out)
{
  for (*out = 0; *out < op->signature.n_attrs; (*out)++)
    if (same_name(op->signature.attr[*out].name, name)) return true;
  return false;
}

/* Returns the index of an attribute. Ends the program if the op lacks it: the caller has a bug. */
static uint32_t attr_place(const Node *n, const char *name)
{
  uint32_t i;
  if (!attr_find(op_of(n), name, &i)) op_broken(op_of(n), "no attribute", name);
  return i;
}

int64_t attr_int(const Node *n, const char *name)
{
  return n->attr[attr_place(n, name)].i;
}

double attr_float(const Node *n, const char *name)
{
  return n->attr[attr_place(n, name)].f;
}

double attr_as_number(const Node *n, uint32_t i)
{
  bool real = op_of(n)->signature.attr[i].kind == ATTR_float;
  return real ? n->attr[i].f : (double)n->attr[i].i;
}

void attr_set_int(Node *n, const char *name, int64_t value)
{
  n->attr[attr_place(n, name)].i = value;
}

/* Only attributes of kind `axes` are masks: the `dim` of softmax is a single axis. */
bool op_axes(const Node *n, uint64_t *out)
{
  uint32_t i;
  const OpInfo *op = op_of(n);
  if (!attr_find(op, "dim", &i) || op->signature.attr[i].kind != ATTR_axes) return false;
  *out = (uint64_t)n->attr[i].i;
  return true;
}

bool op_draws(const Node *n)
{
  const OpInfo *op = op_of(n);
  return op->code.random && (op->tmpl != TMPL_file || attr_float(n, "p") > 0);
}

bool gradient_reads_result(const OpInfo *op)
{
  bool reads = op->gradient == grad_relu;
  for (uint32_t i = 0; i < op->back.n_statements && !reads; i++) {
    const CodeStatement *s = &op->back.statements[i];
    reads = s->value && formula_mentions(s->value, "y");
    if (s->kind == STATEMENT_value) break; /* that of the first input */
  }
  return reads;
}

bool gradient_is_passed(const OpInfo *op)
{
  for (uint32_t i = 0; i < op->back.n_statements; i++) {
    const Formula *f = op->back.statements[i].value;
    if (f && f->kind == FORMULA_minus) f = f->in[0];
    if (!f || f->kind != FORMULA_name || strcmp(f->name, "dy") != 0) return false;
  }
  return op->back.n_statements > 0;
}

/* ---- code ---- */

bool code_stands(const Node *n, int condition)
{
  if (condition < 0) return true;
  return attr_as_number(n, (uint32_t)condition) != 0;
}

const Formula *code_standing(const Node *n, const Formula *f)
{
  while (!code_stands(n, f->condition)) f = f->otherwise;
  return f;
}

uint32_t code_reads(const Node *n, const Formula *f, FormulaKind kind, uint32_t input)
{
  f = code_standing(n, f);
  uint32_t found = f->kind == kind && f->index == input;
  for (uint32_t i = 0; i < f->n; i++) found += code_reads(n, f->in[i], kind, input);
  return found;
}
