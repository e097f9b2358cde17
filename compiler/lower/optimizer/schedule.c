/* Lowers schedules: run-time numbers, computed from the number of steps that an optimizer has
 * taken. It also makes the nodes of settings: numbers that are data of the program, so --set and
 * checkpoints can change them. The arguments of a schedule are settings too:
 * `lr=cosine_schedule(0.1, steps=100)` of `opt` makes opt.lr.peak, opt.lr.steps, ... */
#include "optimizer.h"
#include "plateau.h"

#define ARG(i) (args->at.at[i].value)

/* ---- nodes of settings and schedules ---- */

/* Returns the node of a setting. The program reads a setting from STATE at run time, so `--set
 * opt.lr=` and a resumed run can change it without a new compile. All blocks share the setting of a
 * key. */
Value setting_node(Lower *l, const char *key, double number, ampc_domain domain, Span span)
{
  uint32_t n = l->g->settings.n;
  uint32_t i = name_find(l->arena, &l->settings_index, l->g->settings.at, n, sizeof(Setting), key);
  if (i == NO_NAME) i = n;
  if (i == n)
    vec_push(l->arena, &l->g->settings,
             (Setting){.name = key, .value = number, .domain = domain, .span = span});
  Value v = ir_append(l->c, &l->at, OP_setting, NULL, 0, ATTRS({"index", {.i = i}}));
  ir_node(l->g, v)->name = key;
  return v;
}

/* The purpose for which a schedule is lowered. */
typedef struct Purpose {
  const char *key; /* "opt.lr"; NULL outside of optimizers */
  ampc_domain domain;
  Span span;
} Purpose;

/* Checks that updates are evenly spaced. A schedule counts updates. So its length follows from the
 * length of the block only if the optimizer updates at a fixed interval. */
static bool counts_evenly(Lower *l, const Setting *s, Span span)
{
  const Run *r = l->run;
  if (!r->again && (!s->steps_of || s->every == r->every)) return true;
  if (r->again)
    fail(l, E605, span,
         "`%s` minimizes several times in a step, so the length of its schedule is unknown",
         r->again);
  else
    fail(l, E605, span,
         "the optimizer updates every %lld steps in one block and every %lld in another, so the "
         "length of this schedule is unknown",
         (long long)s->every, (long long)r->every);
  return diag_help(l->c, "set `steps=` to the total number of updates");
}

/* Returns a setting that holds the number of steps of the block. Pass plan computes it from the
 * job; the run corrects it, since --steps and the length of the data can change it. If several
 * train blocks read the setting, it is the sum of their steps. */
static Value length_node(Lower *l, const char *key, Span span, bool of_updates)
{
  enum { NAMED = 64 };
  uint32_t block = (uint32_t)l->run->first;
  if (block >= NAMED) {
    fail(l, E210, span, "only the first %d blocks of a job can use a schedule without `steps`",
         NAMED);
    return (Value){0};
  }
  Value v = setting_node(l, key, 0, AMPC_POSITIVE, span);
  Setting *s = &l->g->settings.at[attr_int(ir_node(l->g, v), "index")];
  if (of_updates && !counts_evenly(l, s, span)) return (Value){0};
  s->every = of_updates ? l->run->every : 1;
  s->steps_of |= (uint64_t)1 << block;
  return v;
}

/* Returns input `input` of the op: a setting called `name`, or outside of optimizers a constant. */
static Value argument_node(Lower *l, const Purpose *to, const InputInfo *input, const char *name,
                           double number, bool own)
{
  const char *object = to->key ? to->key : l->run->name;
  const char *key = arena_printf(l->arena, "%s.%s", object, to->key ? name : "schedule_steps");
  if (own && !setting_given(l, key)) return length_node(l, key, to->span, to->key != NULL);
  if (!to->key && !own) return ir_number(l->c, &l->at, number);
  Datum v = own ? d_of(D_none) : d_float(number);
  ampc_domain domain = to->domain;
  setting_domain(input->name, to->domain, &domain);
  Span span = to->span;
  if (!setting_value(l, key, &v, &span) ||
      !want_in(l, v, span, arena_printf(l->arena, "`%s`", key), domain, &number))
    return (Value){0};
  return setting_node(l, key, number, domain, to->span);
}

/* Returns the node of a schedule. A repeated op makes a chain: value -> op(value, first) ->
 * op(that, second) -> ... */
static Value schedule_node(Lower *l, const Schedule *s, Value step, const char *key,
                           ampc_domain domain, Span span)
{
  if (s->plateau) return plateau_node(l, s->plateau, key, domain, span);
  const Purpose to = {key, domain, span};
  const OpSignature *sig = &op_row(s->op)->signature;
  Value in[MAX_SIGNATURE] = {step};
  uint32_t n = 1;
  for (uint32_t i = 0; i < s->n_args; i++, n++) {
    in[n] = argument_node(l, &to, &sig->input[n], sig->input[n].name, s->args[i], s->own >> i & 1);
    if (!in[n].id) return (Value){0};
  }
  if (!s->repeated) return ir_append(l->c, &l->at, s->op, in, n, NULL);
  for (uint32_t i = 0; i < s->n_each; i++) {
    const char *name = arena_printf(l->arena, "%s.%u", sig->input[n].name, i);
    in[n] = argument_node(l, &to, &sig->input[n], name, s->each[i], false);
    if (!in[n].id) return (Value){0};
    in[1] = ir_append(l->c, &l->at, s->op, in, n + 1, NULL);
  }
  return in[1];
}

/* The state while the arithmetic of one setting is lowered. */
typedef struct Making {
  Value step;
  const char *key;
  Span span;
  /* schedules so far; arguments of the second one get keys such as opt.lr.2.peak */
  uint32_t schedules;
} Making;

static Value part_node(Lower *l, Making *m, Datum d);

/* Returns arithmetic. Its numbers are constants; arguments of schedules are settings. */
static Value arithmetic_node(Lower *l, Making *m, const Schedule *s)
{
  Value in[MAX_SIGNATURE];
  for (uint32_t i = 0; i < s->n_operands; i++) {
    in[i] = part_node(l, m, s->operand[i]);
    if (!in[i].id) return in[i];
  }
  l->at.span = m->span;
  return ir_append_values(l->c, &l->at, s->op, in, s->n_operands, s->attr);
}

static Value part_node(Lower *l, Making *m, Datum d)
{
  if (d.kind == D_int) return ir_integer(l->c, &l->at, d.as.integer);
  if (d.kind == D_float) return ir_number(l->c, &l->at, d.as.number);
  const Schedule *s = d.as.schedule;
  if (s->operand) return arithmetic_node(l, m, s);
  const char *key = m->schedules++ ? arena_printf(l->arena, "%s.%u", m->key, m->schedules) : m->key;
  return schedule_node(l, s, m->step, key, AMPC_FINITE, m->span);
}

Value setting_schedule(Lower *l, const Schedule *s, Value step, const char *key, ampc_domain domain,
                       Span span)
{
  Making m = {.step = step, .key = key, .span = span};
  return s->operand ? arithmetic_node(l, &m, s) : schedule_node(l, s, step, key, domain, span);
}

Datum schedule_of(Lower *l, OpKind op, const Datum *operand, uint32_t n, const Attr *attr,
                  Span span)
{
  const OpInfo *row = op_row(op);
  Schedule *s = arena_new(l->arena, Schedule);
  if (row->tmpl != TMPL_map || row->code.random)
    return fail(l, E209, span, "`%s` cannot stand in a setting, which is one number", row->name);
  for (uint32_t i = 0; i < n; i++)
    if (!d_is_number(operand[i]) && operand[i].kind != D_schedule)
      return fail(l, E209, span, "a setting is computed from numbers and schedules, got %s",
                  d_kind_text(l, operand[i]));
  Datum *copy = arena_array(l->arena, Datum, n + 1);
  if (n) memcpy(copy, operand, n * sizeof *copy);
  Attr *values = arena_array(l->arena, Attr, MAX_ATTR);
  for (uint32_t i = 0; i < row->signature.n_attrs; i++)
    values[i] = attr ? attr[i] : row->signature.attr[i].value;
  *s = (Schedule){.op = op, .operand = copy, .n_operands = n, .attr = values};
  return (Datum){.kind = D_schedule, .as.schedule = s};
}

Datum extreme_schedule(Lower *l, const Args *args)
{
  OpKind op = op_named(args->native->value == OPER_lt ? "minimum" : "maximum");
  Datum best = ARG(0);
  for (uint32_t i = 0; i < args->at.n; i++) {
    if (args->at.at[i].key)
      return fail(l, E205, args->at.at[i].key_span, "%s of numbers has no named arguments",
                  args->native->name);
    if (i) best = schedule_of(l, op, (Datum[]){best, ARG(i)}, 2, NULL, args->span);
    if (d_is(best, D_error)) break;
  }
  return best;
}

Datum counting_schedule(Lower *l, OpKind op)
{
  static const Datum none = {.kind = D_none};
  static const Attr no_attr[MAX_ATTR];
  Schedule *s = arena_new(l->arena, Schedule);
  *s = (Schedule){.op = op, .operand = &none, .attr = no_attr};
  return (Datum){.kind = D_schedule, .as.schedule = s};
}

/* Returns the node of a schedule outside of optimizers, which counts the steps of the run. */
Value schedule_value(Lower *l, const Schedule *s, Span span)
{
  Value step = ir_append(l->c, &l->at, OP_step, NULL, 0, NULL);
  return schedule_node(l, s, step, NULL, AMPC_FINITE, span);
}

/* Returns the numbers of a list. Only `steps` can be `none`: then bit i of *own is set, and the
 * block's number of steps is used. */
static const double *numbers_of(Lower *l, Datum list, uint32_t *own)
{
  double *numbers = arena_array(l->arena, double, list.n);
  for (uint32_t i = 0; i < list.n; i++) {
    if (list.as.list[i].kind == D_none) *own |= 1u << i;
    numbers[i] = list.as.list[i].kind == D_none ? 0 : d_number(list.as.list[i]);
  }
  return numbers;
}

/* Checks that a def passes all inputs after `step`, and that settings.def has their names. */
static void check_inputs(const OpInfo *op, uint32_t given)
{
  ampc_domain domain;
  if (1 + given != op->signature.n_inputs) op_broken(op, "its def passes", "too few or too many");
  for (uint32_t i = 1; i < op->signature.n_inputs; i++)
    if (!setting_domain(op->signature.input[i].name, AMPC_FINITE, &domain))
      op_broken(op, "settings.def has no row", op->signature.input[i].name);
}

/* Runs _schedule("linear", [start, ...]): the op schedule_linear, applied to the steps taken and
 * these numbers. _schedule("milestone", [value, gamma], milestones) applies the op once for each
 * element of the list, which is its last input. Each result replaces the first number of the next
 * application. */
static Datum run_schedule(Lower *l, Args *args)
{
  Schedule *s = arena_new(l->arena, Schedule);
  s->op = op_named(arena_printf(l->arena, "schedule_%s", ARG(0).as.text));
  s->n_args = ARG(1).n;
  s->repeated = args->at.n > 2;
  check_inputs(op_row(s->op), s->n_args + s->repeated);
  s->args = numbers_of(l, ARG(1), &s->own);
  if (s->repeated) {
    s->n_each = ARG(2).n;
    s->each = numbers_of(l, ARG(2), &s->own);
  }
  return (Datum){.kind = D_schedule, .as.schedule = s};
}

const Native schedule_natives[] = {
    {"schedule", 2, 3, .internal = true, .run = run_schedule},
    {0},
};
