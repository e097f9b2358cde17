/* Handles tensors: converts values to nodes, applies operators, and calls ops by the signatures of
 * the op table. append() makes the nodes of operations in the program text. */
#include "elaborate.h"
#include "evaluate.h"
#include <stdlib.h>

/* Sets *number to the number at the start of a text. Returns what follows; NULL: there is none. */
static const char *read_number(Lower *l, const char *text, const char **number)
{
  char *rest;
  text += strspn(text, " ");
  strtod(text, &rest);
  *number = arena_strndup(l->arena, text, (size_t)(rest - text));
  return rest == text ? NULL : rest + strspn(rest, " ");
}

/* Finds the number of `ones(8) * 2.0` or `2.0 * ones(8)`, of which the call has this span. Returns
 * false if the call is a part of another expression. */
static bool find_factor(Lower *l, Span call, const char **factor)
{
  const Source *s = diag_place(l->c, call).source;
  const char *from = s->text + (call.start - s->base), *end = s->text + (call.end - s->base);
  end += strspn(end, " ");
  while (from > s->text && from[-1] == ' ') from--;
  if (*end == '*') {
    end = read_number(l, end + 1, factor);
  } else if (from > s->text && from[-1] == '*') {
    const char *star = --from;
    while (from > s->text && !strchr("(=,", from[-1])) from--;
    if (read_number(l, from, factor) != star) return false;
  }
  return end && strchr("),;#}\r\n", *end) && from > s->text && strchr("(=,", from[-1]);
}

/* Helps if a member shall be a tensor, as in `Parameter(ones(8))` or `mask = zeros(8, 8)`. Always
 * returns false. */
static bool help_member(Lower *l, Span span)
{
  static const char *const made[][3] = {{"ones", "ones_()", "constant_(%s)"},
                                        {"zeros", "zeros_()", "zeros_()"},
                                        {"randn", "normal_()", "normal_(std=%s)"},
                                        {"rand", "uniform_()", "uniform_(0.0, %s)"}};
  const char *text = source_text(l, diag_user_span(l->c, span)), *open = strchr(text, '('),
             *factor = "";
  bool alone = find_factor(l, diag_user_span(l->c, span), &factor);
  for (size_t i = 0; open && alone && i < sizeof made / sizeof made[0]; i++) {
    if (!is_name(text, (size_t)(open - text), made[i][0])) continue;
    if (*factor == '-' && i > 1) break; /* no deviation is negative */
    const char *init = made[i][*factor ? 2 : 1], *at = strchr(init, '%');
    if (at) init = arena_printf(l->arena, "%.*s%s)", (int)(at - init), init, factor);
    int n = (int)strlen(open) - 2;
    bool list = open[1] == '[';
    return diag_help(
        l->c,
        "write `Parameter(%s%.*s%s, %s)`: a shape and an initialiser; a `Buffer` is not trained",
        list ? "" : "[", n, open + 1, list ? "" : "]", init);
  }
  return diag_help(
      l->c,
      "compute it in a `def`, such as `forward`; a `Parameter` has a shape and an initialiser");
}

/* Checks that a node can be made: it belongs to a block. Settings are evaluated outside of the
 * step; there, arithmetic with schedules yields a schedule: schedule_of(). */
static bool in_run(Lower *l, Span span)
{
  if (l->run && !l->settings_of) return true;
  if (l->settings_of)
    return refuse(l, E210, span,
                  "a setting is computed from numbers and schedules; it cannot use a tensor");
  fail(l, E210, span, "tensors exist in train, eval, infer and data blocks only");
  return l->building && help_member(l, span);
}

/* Notes the path of the innermost module whose code is running. */
static void note_module(Lower *l)
{
  if (l->inside && l->inside->path && l->inside->path[0])
    diag_note(l->c, l->inside_call, "in %s.%s", l->inside->model, l->inside->path);
}

/* Notes facts of an appended node. Without a value, the shape rule has reported the mistake. */
static Datum appended(Lower *l, Value v)
{
  if (!v.id) {
    note_module(l);
    return d_of(D_error);
  }
  if (!count_work(l, NODE_WORK, l->at.span)) return d_of(D_error);
  Node *n = ir_node(l->g, v);
  if (op_draws(n) && l->at.loop) {
    v = draw_before_scan(l, v);
    return v.id ? d_tensor(v) : d_of(D_error);
  }
  if (op_draws(n)) n->stream = l->g->n_streams++;
  return d_tensor(v);
}

/* Appends the node of an operation in the program text. Inside the library the span is the job's
 * call, the line that the user knows. */
Datum append(Lower *l, Span span, OpKind op, const Value *in, uint32_t n_in, const NamedAttr *attrs)
{
  if (!in_run(l, span)) return d_of(D_error);
  l->at.span = diag_user_span(l->c, span);
  return appended(l, ir_append(l->c, &l->at, op, in, n_in, attrs));
}

/* Returns a bool as a tensor by a cast of 0 or 1, since there are no bool constants. */
static Value bool_tensor(Lower *l, bool v)
{
  Value number = ir_integer(l->c, &l->at, v);
  return ir_cast(l->c, &l->at, number, AMPC_BOOL);
}

/* Returns an operand as a node: a number becomes a constant, a parameter is read. */
Value as_tensor(Lower *l, Datum d, Span span)
{
  if (d_is(d, D_error) || !in_run(l, span)) return (Value){0};
  l->at.span = diag_user_span(l->c, span);
  switch ((DatumKind)d.kind) {
  case D_tensor:
    return d.as.tensor;
  case D_param:
    return param_value(l, d.as.param, span);
  case D_schedule:
    return schedule_value(l, d.as.schedule, span);
  case D_int:
    return ir_integer(l->c, &l->at, d.as.integer);
  case D_float:
    return ir_number(l->c, &l->at, d.as.number);
  case D_bool:
    return bool_tensor(l, d.as.truth);
  default:
    fail(l, E209, span, "a tensor is needed here, got %s", d_kind_text(l, d));
    if (d.kind == D_statistics)
      diag_help(l->c,
                "write `metric name = %s(...)`: the value is computed from counts over all samples",
                d.as.statistics->name);
    if (d.kind == D_class) diag_help(l->c, "build it first: `%s(...)`", d.as.class->name);
    return (Value){0};
  }
}

/* Finds the shape, without making a node: for `x.shape` of a parameter, and for numbers, which have
 * no axes. Returns false if the value cannot be an operand. *dim is valid only until the next node
 * is appended. */
bool tensor_dims(Lower *l, Datum d, const int64_t **dim, uint32_t *rank)
{
  static const int64_t none[1];
  switch ((DatumKind)d.kind) {
  case D_tensor:
    *dim = ir_node(l->g, d.as.tensor)->dim;
    *rank = ir_node(l->g, d.as.tensor)->rank;
    return true;
  case D_param:
    *dim = d.as.param->dim;
    *rank = d.as.param->rank;
    return true;
  case D_bool:
  case D_int:
  case D_float:
  case D_schedule:
    *dim = none;
    *rank = 0;
    return true;
  default:
    return false;
  }
}

/* Returns the type of a tensor; for a number the type that its node would have. */
DType tensor_dtype(Lower *l, Datum d)
{
  if (d.kind == D_tensor) return ir_node(l->g, d.as.tensor)->dtype;
  const ParamSlot *p = d.kind == D_param ? d.as.param : NULL;
  if (p && p->given.id) return ir_node(l->g, p->given)->dtype;
  if (p) return p->buffer && p->store == AMPC_F32 ? p->dtype : p->store;
  return d.kind == D_int ? AMPC_I64 : d.kind == D_bool ? AMPC_BOOL : AMPC_F32;
}

/* Returns the result of a view that changes nothing: x itself. In a no_grad region x is detached,
 * like the result of any other view. */
Datum unchanged(Lower *l, Value x, Span span)
{
  if (!l->g->regions.at[l->at.region].no_grad) return d_tensor(x);
  return append(l, span, OP_detach, &x, 1, NULL);
}

Datum reshape_to(Lower *l, Value x, const int64_t *dim, uint32_t rank, Span span)
{
  if (ir_is_itself(l->c, x, dim, rank)) return unchanged(l, x, span);
  if (!in_run(l, span)) return d_of(D_error);
  l->at.span = diag_user_span(l->c, span);
  return d_tensor(ir_reshape(l->c, &l->at, x, dim, rank));
}

/* Applies `.to(d)`, always by a node for float types, since they are not final yet. */
Datum cast_to(Lower *l, Value x, DType d, Span span)
{
  if (!dtype_is_float(d) && ir_node(l->g, x)->dtype == d) return d_tensor(x);
  l->at.why = WHY_asked;
  Datum r = append(l, span, OP_cast, &x, 1, ATTRS({"dtype", {.i = d}}));
  l->at.why = WHY_none;
  return r;
}

/* ---- operators ---- */

/* Returns the op of an operator; `and`, `or` and `not` have no op. */
static OpKind operator_op(Operator op)
{
  static const OpKind ops[OPER_count] = {
      [OPER_add] = OP_add,
      [OPER_sub] = OP_sub,
      [OPER_mul] = OP_mul,
      [OPER_div] = OP_div,
      [OPER_floordiv] = OP_floor_divide,
      [OPER_mod] = OP_remainder,
      [OPER_matmul] = OP_matmul,
      [OPER_pow] = OP_pow,
      [OPER_lt] = OP_lt,
      [OPER_gt] = OP_gt,
      [OPER_le] = OP_le,
      [OPER_ge] = OP_ge,
      [OPER_eq] = OP_eq,
      [OPER_ne] = OP_ne,
      [OPER_bitand] = OP_logical_and,
      [OPER_bitor] = OP_logical_or,
  };
  return ops[op];
}

/* True if the value can be an operand. Strings, lists and modules cannot. */
static bool is_operand(Datum d)
{
  return d_is_tensor(d) || d_is_number(d) || d.kind == D_bool;
}

/* True for a schedule in an optimizer's settings: arithmetic on it yields a schedule. */
static bool is_setting(const Lower *l, Datum d)
{
  return l->settings_of && d.kind == D_schedule;
}

/* Divides number / tensor as reciprocal(tensor) * number, as in PyTorch: category f32. */
static Datum divide_number(Lower *l, Datum a, Value b, Span span)
{
  Datum r = append(l, span, OP_reciprocal, &b, 1, NULL);
  if (d_is(r, D_error) || d_number(a) == 1) return r;
  Value in[2] = {r.as.tensor, as_tensor(l, a, span)};
  return append(l, span, OP_mul, in, 2, NULL);
}

/* Applies an operator to tensors; `x == none` tests at compile time whether x was given. */
Datum tensor_binary(Lower *l, Operator op, Datum a, Datum b, Span span)
{
  if ((op == OPER_eq || op == OPER_ne) && (a.kind == D_none || b.kind == D_none))
    return d_bool(op == OPER_ne);
  if (!is_operand(a) || !is_operand(b))
    return fail(l, E209, span, "`%s` cannot take %s and %s", operator_text(op), d_kind_text(l, a),
                d_kind_text(l, b));
  if (is_setting(l, a) || is_setting(l, b))
    return schedule_of(l, operator_op(op), (Datum[]){a, b}, 2, NULL, span);
  Value in[2];
  if (op == OPER_div && d_is_number(a))
    return (in[1] = as_tensor(l, b, span)).id ? divide_number(l, a, in[1], span) : d_of(D_error);
  in[0] = as_tensor(l, a, span);
  in[1] = as_tensor(l, b, span);
  if (!in[0].id || !in[1].id) return d_of(D_error);
  return append(l, span, operator_op(op), in, 2, NULL);
}

Datum tensor_unary(Lower *l, Operator op, Datum a, Span span)
{
  if (is_setting(l, a))
    return schedule_of(l, op == OPER_neg ? OP_neg : OP_logical_not, &a, 1, NULL, span);
  Value x = as_tensor(l, a, span);
  if (!x.id) return d_of(D_error);
  if (op == OPER_neg) return append(l, span, OP_neg, &x, 1, NULL);
  DType d = ir_node(l->g, x)->dtype;
  if (d != AMPC_BOOL)
    return fail(l, E406, span, "`~` needs bool, got %s", ir_type_text(l->c, ir_node(l->g, x)));
  return append(l, span, OP_logical_not, &x, 1, NULL);
}

/* ---- calls by signature ---- */

enum { MAX_SLOTS = MAX_SIGNATURE + MAX_ATTR };
typedef struct Bound { /* the arguments of an op, in the order of its signature */
  const OpInfo *info;
  const OpSignature *sig;
  const ArgValue *slot[MAX_SLOTS];
  Span span;
} Bound;

/* Returns the name of a slot. Inputs come first, then attributes, as in a call. */
static const char *slot_name(const void *of, uint32_t i)
{
  const OpSignature *sig = of;
  return i < sig->n_inputs ? sig->input[i].name : sig->attr[i - sig->n_inputs].name;
}

static void attr_default(Text *t, const AttrInfo *a)
{
  switch (a->kind) {
  case ATTR_float:
    text_printf(t, "=%g", a->value.f);
    break;
  case ATTR_bool:
    text_puts(t, a->value.i ? "=true" : "=false");
    break;
  case ATTR_axes:
    text_puts(t, "=none");
    break;
  default:
    text_printf(t, "=%lld", (long long)a->value.i);
  }
}

static bool slot_optional(const void *of, uint32_t i)
{
  const OpSignature *sig = of;
  return i < sig->n_inputs ? sig->input[i].optional : !sig->attr[i - sig->n_inputs].required;
}

/* Returns the signature: `softmax(x, dim)`, `sum(x, dim=none, keepdim=false)`. */
static const char *op_text(Lower *l, const char *name, const void *of)
{
  const OpSignature *sig = of;
  Text t = text_new(l->arena);
  text_printf(&t, "%s(", name);
  for (uint32_t i = 0; i < sig->n_inputs + sig->n_attrs; i++) {
    text_printf(&t, "%s%s", i ? ", " : "", slot_name(sig, i));
    if (!slot_optional(sig, i)) continue;
    if (i < sig->n_inputs)
      text_puts(&t, "=none");
    else
      attr_default(&t, &sig->attr[i - sig->n_inputs]);
  }
  text_puts(&t, ")");
  return t.at;
}

typedef VEC(Value) ValueVec;

static bool push_input(Lower *l, Datum d, Span span, ValueVec *out)
{
  Value v = as_tensor(l, d, span);
  if (v.id) vec_push(l->arena, out, v);
  return v.id != 0;
}

/* Adds a list of inputs, which is one argument: `cat([a, b], dim=1)`. */
static bool push_variadic(Lower *l, const Bound *b, const ArgValue *arg, ValueVec *out)
{
  if (arg->value.kind != D_list || !arg->value.n)
    return refuse(l, E209, arg->span, "%s needs a list of tensors, got %s", b->info->name,
                  d_kind_text(l, arg->value));
  for (uint32_t i = 0; i < arg->value.n; i++)
    if (!push_input(l, arg->value.as.list[i], arg->span, out)) return false;
  return true;
}

/* Binds inputs. An optional input that is not given becomes value 0: `linear(x, w)` has no bias. */
static bool bind_inputs(Lower *l, const Bound *b, ValueVec *out)
{
  for (uint32_t i = 0; i < b->sig->n_inputs; i++) {
    const ArgValue *arg = b->slot[i];
    const InputInfo *in = &b->sig->input[i];
    if (!arg || (in->optional && arg->value.kind == D_none))
      vec_push(l->arena, out, (Value){0});
    else if (in->variadic ? !push_variadic(l, b, arg, out)
                          : !push_input(l, arg->value, arg->span, out))
      return false;
  }
  return true;
}

/* Reads an axis: -1 is the last axis. In the graph, axes count from 0. */
bool normal_axis(Lower *l, int64_t axis, uint32_t rank, Datum x, Span span, int64_t *out)
{
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return refuse(l, E311, span, "axis %lld is not one of %s, which has %u", (long long)axis,
                  d_text(l, x), rank);
  *out = axis < 0 ? axis + rank : axis;
  return true;
}

/* Reads `dim=[0, 2]` as a bit mask. 0 means all axes. */
static bool axes_mask(Lower *l, const ArgValue *arg, Datum x, uint32_t rank, const char *what,
                      int64_t *mask)
{
  int64_t list[MAX_RANK], axis;
  uint32_t n;
  *mask = 0;
  if (arg->value.kind == D_none) return true;
  if (!want_sizes(l, arg->value, arg->span, what, list, &n)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (!normal_axis(l, list[i], rank, x, arg->span, &axis)) return false;
    if (*mask & (1 << axis))
      return refuse(l, E311, arg->span, "axis %lld is named twice", (long long)axis);
    *mask |= 1 << axis;
  }
  return true;
}

/* Reads an attribute. An axis is checked against the rank of the first input, even if it is the
 * default: a scalar has no axis for softmax. */
static bool attr_value(Lower *l, const Bound *b, uint32_t i, const ArgValue *arg, Value x,
                       Attr *out)
{
  const AttrInfo *info = &b->sig->attr[i];
  const char *what = arena_printf(l->arena, "`%s` of %s", info->name, b->info->name);
  Datum tensor = d_tensor(x);
  uint32_t rank = x.id ? ir_node(l->g, x)->rank : 0;
  *out = info->value;
  if (info->kind == ATTR_axis) {
    int64_t axis = info->value.i;
    if (arg && !want_int(l, arg->value, arg->span, what, &axis)) return false;
    return normal_axis(l, axis, rank, tensor, arg ? arg->span : b->span, &out->i);
  }
  if (!arg) return true;
  bool truth = false;
  DType d = AMPC_F32;
  switch (info->kind) {
  case ATTR_int:
    return want_int(l, arg->value, arg->span, what, &out->i);
  case ATTR_float:
    return want_float(l, arg->value, arg->span, what, &out->f);
  case ATTR_axes:
    return axes_mask(l, arg, tensor, rank, what, &out->i);
  case ATTR_bool:
    if (!want_bool(l, arg->value, arg->span, what, &truth)) return false;
    out->i = truth;
    return true;
  default:
    if (!want_dtype(l, arg->value, arg->span, what, &d)) return false;
    out->i = d;
    return true;
  }
}

static bool bind_attrs(Lower *l, const Bound *b, Value x, Attr *out)
{
  for (uint32_t i = 0; i < b->sig->n_attrs; i++)
    if (!attr_value(l, b, i, b->slot[b->sig->n_inputs + i], x, &out[i])) return false;
  return true;
}

/* Calls an op in the settings of an optimizer: `sqrt(cosine_schedule(0.1))`. */
static Datum call_in_setting(Lower *l, OpKind op, const Bound *b)
{
  Datum operand[MAX_SIGNATURE];
  Attr attr[MAX_ATTR] = {{0}};
  uint32_t n = b->sig->n_inputs;
  for (uint32_t i = 0; i < n; i++) operand[i] = b->slot[i] ? b->slot[i]->value : d_of(D_none);
  if (!bind_attrs(l, b, (Value){0}, attr)) return d_of(D_error);
  return schedule_of(l, op, operand, n, attr, b->span);
}

/* Calls an op of the op table by its name: sorts the arguments into slots, checks inputs and
 * attributes, and appends one node. */
Datum call_op(Lower *l, OpKind op, Args *args)
{
  Bound b = {op_row(op), &op_row(op)->signature, {0}, args->span};
  const Callee f = {b.info->name, b.sig,         b.sig->n_inputs + b.sig->n_attrs,
                    slot_name,    slot_optional, op_text};
  ValueVec in = {0};
  Attr attr[MAX_ATTR] = {{0}};
  if (b.sig->input[0].variadic && args_lack_list(l, b.info->name, args)) return d_of(D_error);
  if (!args_sort(l, &f, args, b.slot)) return d_of(D_error);
  for (uint32_t i = 0; i < b.sig->n_inputs; i++)
    if (b.slot[i] && is_setting(l, b.slot[i]->value)) return call_in_setting(l, op, &b);
  if (!bind_inputs(l, &b, &in)) return d_of(D_error);
  if (!bind_attrs(l, &b, in.n ? in.at[0] : (Value){0}, attr)) return d_of(D_error);
  if (!in_run(l, args->span)) return d_of(D_error);
  l->at.span = diag_user_span(l->c, args->span);
  return appended(l, ir_append_values(l->c, &l->at, op, in.at, in.n, attr));
}
