/* Prints the formulas of the op table as C: their words are replaced, operands are converted to the
 * type in which the op computes, and results are rounded to the type of the node. */
#include "kernel_parts.h"
#include "compiler/graph/columns.h"
#include <stdlib.h>

/* ---- words of formulas ---- */

/* Returns an integer as C: C would negate a literal that is out of range for the smallest one. */
static const char *integer_text(const Kernel *k, int64_t v)
{
  if (v == INT64_MIN) return "(-9223372036854775807 - 1)";
  return arena_printf(k->c->arena, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

static const char *attribute_text(const CodeScope *s, uint32_t i)
{
  const AttrInfo *info = &op_of(s->n)->signature.attr[i];
  if (info->kind == ATTR_float) return real_text(s->k, s->n->attr[i].f);
  return integer_text(s->k, s->n->attr[i].i);
}

/* Returns $n: a literal, or in a part of a channel the variable n: the last part may have fewer
 * rows. */
static const char *length_text(const CodeScope *s)
{
  if (s->length_text) return s->length_text;
  return s->integers ? integer_text(s->k, s->length) : real_text(s->k, (double)s->length);
}

/* Returns $size: how many rows of a channel part $c has (Note [channels]). */
static const char *size_text(const CodeScope *s)
{
  const Node *parts = ir_node(s->k->g, s->n->in[0]);
  long long rows = attr_int(s->n, "rows"), each = column_part_rows(rows, parts->dim[1]);
  if (rows % each == 0) return real_text(s->k, (double)each);
  return arena_printf(s->k->c->arena, "ampc_part_rows(%s, %lld, %lld)", s->column, each, rows);
}

/* Returns $0. For an absent input this is the number in the code: $1|1 becomes R(1.0). */
static const char *element_text(const CodeScope *s, const Formula *f)
{
  if (s->element && s->element[f->index].text) return s->element[f->index].text;
  if (s->n->in[f->index].id || !f->absent) return NULL;
  return arena_printf(s->k->c->arena, "R(%s.0)", f->absent);
}

/* Returns the kernel's variable for a name of a row program: "m", "m[j]" in columns, or "row_m_2"
 * if another op of the kernel has its own m. */
static const char *local_text(const CodeScope *s, const Formula *f)
{
  uint32_t i = 0;
  while (s->locals && s->locals[i] && !same_name(f->name, s->locals[i])) i++;
  if (!s->locals || !s->locals[i] || !s->local_texts[i]) return NULL;
  return arena_printf(s->k->c->arena, "%s%s", s->local_texts[i], s->local_suffix);
}

/* The key is the seed, a counter of train bodies, and the op's stream. Eval and infer blocks add
 * the number of the batch or call to the counter. */
const char *key_text(const Kernel *k, const Node *n)
{
  bool trains = k->c->graph->blocks.at[n->block].kind == AMPC_TRAIN;
  return arena_printf(k->c->arena, "state->seed, state->body%s, %s", trains ? "" : " + state->call",
                      k->arg_names[stream_argument(k, n)]);
}

const char *drawn_number(const Kernel *k, const Node *n, const char *index)
{
  Arena *a = k->c->arena;
  const Draws *d = &n->draws;
  if (!d->each) return index;
  const char *text = arena_printf(a, "%s + state->first_sample * %lld", index, (long long)d->each);
  if (!d->span) return text;
  return arena_printf(a, "%s + (%s) / %lld * %lld", text, index, (long long)d->span,
                      (long long)d->skip);
}

/* Returns the element's random number: a call, or an element of the vector that the loop has
 * drawn. */
static const char *drawn_text(const CodeScope *s)
{
  Arena *a = s->k->c->arena;
  const char *vector = drawn_vector(s->k, stream_argument(s->k, s->n));
  if (vector) return arena_printf(a, "%s[j]", vector);
  return arena_printf(a, "ampc_%s(%s, %s)", op_of(s->n)->code.random, key_text(s->k, s->n),
                      drawn_number(s->k, s->n, s->index));
}

/* Returns the text of an operand, or the name of a function; NULL: it stands for nothing. */
static const char *text_of(const CodeScope *s, const Formula *f)
{
  switch (f->kind) {
  case FORMULA_number: /* an integer takes the type of the other operand */
    return strchr(f->name, '.') ? real_text(s->k, strtod(f->name, NULL)) : f->name;
  case FORMULA_name:
    return local_text(s, f);
  case FORMULA_call: /* max becomes ampc_max, or ampc_max_int */
    return arena_printf(s->k->c->arena, "ampc_%s%s", f->name,
                        s->integers ? "_int"
                        : s->halves ? "_16"
                                    : "");
  case FORMULA_element:
    return element_text(s, f);
  case FORMULA_row_value:
    return s->row_value[f->index];
  case FORMULA_attribute:
    return attribute_text(s, f->index);
  case FORMULA_index:
    return s->index;
  case FORMULA_column:
    return s->column;
  case FORMULA_length:
    return length_text(s);
  case FORMULA_size:
    return size_text(s);
  default: /* FORMULA_uniform, FORMULA_normal */
    return drawn_text(s);
  }
}

static const char *formula_word(const void *frame, const Formula *f)
{
  const CodeScope *s = frame;
  const char *text = text_of(s, f);
  if (!text) kernel_bug(s->k, value_of(s->k, s->n), "a word of its code stands for nothing here");
  return text;
}

/* True if the formula is this integer. */
static bool is_integer(const CodeScope *s, const Formula *f, int64_t number)
{
  f = code_standing(s->n, f);
  if (f->kind == FORMULA_element && s->element) {
    const Operand *o = &s->element[f->index];
    return o->literal && o->number == number;
  }
  bool whole =
      f->kind == FORMULA_attribute && op_of(s->n)->signature.attr[f->index].kind != ATTR_float;
  return whole && s->n->attr[f->index].i == number;
}

/* Returns the operand that is equal to f in the arithmetic of integers: x for x * 1, x + 0. */
static const Formula *equal_operand(const CodeScope *s, const Formula *f)
{
  bool products = f->kind == FORMULA_mul || f->kind == FORMULA_div;
  bool sums = f->kind == FORMULA_add || f->kind == FORMULA_sub;
  if (!products && !sums) return NULL;
  if (is_integer(s, f->in[1], products)) return f->in[0];
  bool changes = f->kind == FORMULA_div || f->kind == FORMULA_sub;
  return !changes && is_integer(s, f->in[0], products) ? f->in[1] : NULL;
}

static const Formula *standing(const void *frame, const Formula *f)
{
  const CodeScope *s = frame;
  f = code_standing(s->n, f);
  const Formula *same = s->integers ? equal_operand(s, f) : NULL;
  return same ? standing(frame, same) : f;
}

/* Returns "$0 * gelu($1)" in C: "t7 * ampc_gelu(x[i])". */
const char *code_text(const CodeScope *s, const Formula *f)
{
  return formula_text(s->k->c->arena, &(FormulaTexts){s, formula_word, standing}, f);
}

/* ---- operands ---- */

/* Returns a number as text: it has no place in memory. */
static Operand literal(const Kernel *k, const Node *n)
{
  if (n->op == OP_number)
    return (Operand){.text = real_text(k, attr_float(n, "value")), .real = true};
  int64_t v = attr_int(n, "value");
  return (Operand){.text = integer_text(k, v), .literal = true, .number = v};
}

const char *element_place(const Kernel *k, uint32_t argument, const Index *index)
{
  const Vector *v = find_vector(k, argument, index);
  if (v) return arena_printf(k->c->arena, "%s[j]", v->name);
  return arena_printf(k->c->arena, "%s[%s]", k->arg_names[argument], index_text(k, index));
}

static bool is_wide_at(const Kernel *k, uint32_t argument, const Index *index)
{
  const Vector *v = find_vector(k, argument, index);
  return v && v->wide;
}

/* True if the kernel computes v itself and no earlier loop has stored it. */
static bool is_pending(const Kernel *k, Value v)
{
  for (uint32_t i = 0; i < k->group->n; i++)
    if (k->group->nodes[i].id == v.id) return !k->stored || !k->stored[i];
  return false;
}

/* Returns "from_f16(x)", or "x" for a type that is not converted. */
static const char *converted(const Kernel *k, const char *what, DType d, const char *x)
{
  if (!ampc_is_narrow(d)) return x;
  return arena_printf(k->c->arena, "%s(%s)", conversion_name(k, what, d), x);
}

Operand load_operand(const Kernel *k, Value in, const Index *index)
{
  if (!in.id) return (Operand){0};
  const Node *root = ir_node(k->g, value_root(k->g, in));
  if (op_has(root, T_literal)) return literal(k, root);
  if (is_pending(k, value_root(k->g, in))) kernel_bug(k, in, "it is read before it is computed");
  uint32_t i = pointer_of(k, in);
  const KernelArg *a = &k->args.at[i];
  const char *place = element_place(k, i, index);
  bool wide = is_wide_at(k, i, index);
  return (Operand){.text = wide ? place : converted(k, "from", a->type, place),
                   .real = dtype_is_float(a->type)};
}

/* Returns the operand as a real. A literal becomes "R(3.0)" rather than "(real)3". */
Operand as_real(const Kernel *k, Operand o)
{
  if (!o.text || o.real) return o;
  const char *text =
      o.literal ? real_text(k, (double)o.number) : arena_printf(k->c->arena, "(real)%s", o.text);
  return (Operand){.text = text, .real = true};
}

/* Converts a float that is stored in a tensor of integers: full_like(x, 2.5). */
static Operand as_integer(const Kernel *k, Operand o)
{
  if (!o.text || !o.real) return o;
  return (Operand){.text = arena_printf(k->c->arena, "ampc_to_i64(%s)", o.text)};
}

/* Converts a number that is stored in a tensor of bools: full_like(x, 2). */
static Operand as_bool(const Kernel *k, Operand o)
{
  return (Operand){.text = arena_printf(k->c->arena, "(%s != 0)", o.text)};
}

static bool is_made_bool(const Kernel *k, const Node *n, uint32_t input)
{
  bool keeps = n->dtype == AMPC_BOOL && !op_has(n, T_compares | T_tests);
  return keeps && n->in[input].id && ir_node(k->g, n->in[input])->dtype != AMPC_BOOL;
}

static bool any_float(const Kernel *k, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && dtype_is_float(ir_node(k->g, n->in[i])->dtype)) return true;
  return false;
}

/* True if n computes in floats. The result of a comparison is a bool, so its operands decide. */
static bool computes_real(const Kernel *k, const Node *n)
{
  if (op_has(n, T_compares)) return any_float(k, n);
  return op_has(n, T_tests) || dtype_is_float(n->dtype);
}

/* True if n computes a function that templates/maths16.cuh has for 16 bits: its operand, the last
 * input, and its result are rounded to 16 bits. */
static bool computes_halves(const Kernel *k, const Node *n)
{
  if (!op_has(n, T_halves) || k->c->options.real64 || !ampc_is_narrow(n->dtype)) return false;
  return ampc_is_narrow(ir_node(k->g, n->in[n->n_in - 1])->dtype);
}

/* Converts an operand of n: to real for a float op, to long long for an integer op. */
static Operand convert_operand(const Kernel *k, const Node *n, uint32_t input, Operand o)
{
  bool condition = op_has(n, T_condition) && input == 0;
  if (op_has(n, T_as_is) || condition) return o;
  if (is_made_bool(k, n, input)) return as_bool(k, o);
  return computes_real(k, n) ? as_real(k, o) : as_integer(k, o);
}

/* Returns a cast. A cast to a float type only rounds its result, which other code prints. From a
 * float to an integer, the C cast is undefined out of range; ampc_to_i32 and others define it. */
static const char *cast_text(const Kernel *k, const Node *n, Operand x)
{
  Arena *a = k->c->arena;
  if (dtype_is_float(n->dtype)) return as_real(k, x).text;
  if (n->dtype == AMPC_BOOL) return arena_printf(a, "%s != 0", x.text);
  if (x.real) return arena_printf(a, "ampc_to_%s(%s)", ir_dtype_name(n->dtype), x.text);
  if (n->dtype == AMPC_I64) return arena_printf(a, "(long long)%s", x.text);
  return arena_printf(a, n->dtype == AMPC_I32 ? "(int)%s" : "(unsigned char)%s", x.text);
}

/* Returns $c of a step (Note [steps]): the position in its row of the element with this index. */
static const char *column_text(const Kernel *k, const char *index, bool is_sum, int64_t length,
                               int64_t inner)
{
  const char *i = arena_printf(k->c->arena, is_sum ? "(%s)" : "%s", index);
  if (inner > 1) i = arena_printf(k->c->arena, "%s / %lld", i, (long long)inner);
  return arena_printf(k->c->arena, "%s %% %lld", i, (long long)length);
}

/* Prints the lets of a node's code, and returns the formula of its value. */
static const char *value_text(CodeScope *s)
{
  const OpCode *code = &op_of(s->n)->code;
  const char *names[MAX_STATEMENTS + 1] = {NULL}, *texts[MAX_STATEMENTS];
  uint32_t i = 0, number = value_number(s->k, value_of(s->k, s->n));
  s->locals = names;
  s->local_texts = texts;
  s->local_suffix = "";
  for (; code->statements[i].kind == STATEMENT_let; i++) {
    const char *value = code_text(s, code->statements[i].value);
    names[i] = code->statements[i].name;
    texts[i] = arena_printf(s->k->c->arena, "t%u_%s", number, names[i]);
    EMIT_STATEMENT(s->k->p, "const real %s = %s;\n", texts[i], value);
  }
  return code_text(s, code->statements[i].value);
}

/* In a loop over vectors the element's number is the index plus j. */
const char *node_expression(const Kernel *k, const Node *n, const Operand *in, const Index *index)
{
  if (n->op == OP_cast) return cast_text(k, n, in[0]);
  if (op_of(n)->tmpl == TMPL_move) return in[0].text;
  Operand *converted = arena_array(k->c->arena, Operand, n->n_in + 1);
  for (uint32_t i = 0; i < n->n_in; i++) converted[i] = convert_operand(k, n, i, in[i]);
  const char *at = index_text(k, index);
  if (k->by_vectors) at = arena_printf(k->c->arena, "(%s + j)", at);
  CodeScope s = {.k = k,
                 .n = n,
                 .element = converted,
                 .index = at,
                 .integers = !computes_real(k, n),
                 .halves = computes_halves(k, n)};
  if (op_is_step(n)) {
    s.length = attr_int(n, "length");
    bool is_sum = !k->by_vectors && !index_is(index, VAR_i);
    s.column = column_text(k, at, is_sum, s.length, attr_int(n, "inner"));
  }
  return value_text(&s);
}

/* ---- results ---- */

/* True if n must round its value. Ops that pick an operand and moves by strides need no rounding if
 * all operands have the node's type. A literal is R(0.1) even in f16. */
bool needs_rounding(const Kernel *k, const Node *n)
{
  if (!ampc_is_narrow(n->dtype)) return false;
  if (!op_has(n, T_picks | T_strided)) return true;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id || (op_has(n, T_condition) && i == 0)) continue;
    const Node *in = ir_node(k->g, value_root(k->g, n->in[i]));
    if (in->dtype != n->dtype || op_has(in, T_literal)) return true;
  }
  return false;
}

/* Returns "(int)(x)" for integers; for 16-bit floats the conversion `how`. */
static const char *narrowed(const Kernel *k, const char *how, DType d, const char *expression)
{
  const char *type = d == AMPC_I32 ? "int" : d == AMPC_U8 ? "unsigned char" : NULL;
  return type ? arena_printf(k->c->arena, "(%s)(%s)", type, expression)
              : converted(k, how, d, expression);
}

/* Returns the value rounded to d. `real` has more than 16 bits, so a 16-bit node rounds its value
 * even if it is not stored. */
const char *rounded(const Kernel *k, DType d, const char *expression)
{
  return narrowed(k, "round", d, expression);
}

/* Returns `expression` as it is stored: 16-bit floats are plain integers in memory. */
const char *stored(const Kernel *k, DType d, const char *expression)
{
  return narrowed(k, "to", d == AMPC_BOOL ? AMPC_U8 : d, expression);
}

const char *stored_at(const Kernel *k, uint32_t argument, const Index *index, DType d,
                      const char *expression, bool is_rounded)
{
  if (is_wide_at(k, argument, index)) return expression;
  bool cuts = is_rounded && is_cpu_target(k->c) && d == AMPC_BF16;
  return cuts ? narrowed(k, "to_rounded", d, expression) : stored(k, d, expression);
}
