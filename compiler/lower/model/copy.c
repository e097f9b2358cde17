/* Copies of modules, and statements that change them: `copy(net)`, `follow(target, net)`,
 * `target.fc.weight = ..`. The parameters of a copy are Buffers, so no optimizer trains them, and
 * checkpoints contain them. A run copies the initial values (`copies_begin` of
 * runtime/state/init.c). */
#include "model.h"

/* The modules and parameters below a module in the order of definition, without tied names. */
typedef struct Part {
  Instance *module; /* NULL: a parameter */
  ParamSlot *param;
  const char *path;
} Part;
typedef VEC(Part) Parts;

static void add_module(Lower *l, Instance *m, const char *path, void *data)
{
  vec_push(l->arena, (Parts *)data, ((Part){m, NULL, path}));
}

static void add_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  if (!alias) vec_push(l->arena, (Parts *)data, ((Part){NULL, p, path}));
}

/* ---- copy ---- */

bool param_is_weight(const ParamSlot *p)
{
  while (p->copy_of) p = p->copy_of;
  return !p->buffer;
}

/* Runs copy(module): builds the module again, with the same arguments, pins and stored types. */
static Datum run_copy(Lower *l, Args *args)
{
  const ArgValue *arg = &args->at.at[0];
  Parts from = {0}, to = {0};
  if (d_is(arg->value, D_error)) return arg->value;
  if (l->run) {
    fail(l, E210, args->span, "a block cannot make a copy");
    diag_help(l->c, "declare it at the top of the file: `model target = copy(net)`");
    return d_of(D_error);
  }
  if (arg->value.kind != D_instance)
    return fail(l, E209, arg->span, "`copy` takes a module, got %s", d_kind_text(l, arg->value));
  if (arg->value.as.instance->of)
    return fail(l, E209, arg->span,
                "`copy` takes a model or a part of one, not its averages: write `copy(net)`");
  Datum v = instance_copy(l, arg->value.as.instance);
  if (d_is(v, D_error)) return v;
  copy_adapters(l, v.as.instance, arg->value.as.instance, args->span);
  walk_members(l, arg->value.as.instance, "", &(MemberVisitor){add_module, add_param, &from});
  walk_members(l, v.as.instance, "", &(MemberVisitor){add_module, add_param, &to});
  for (uint32_t i = 0; i < from.n && from.n == to.n; i++) { /* else its body has a mistake */
    const Instance *m = from.at[i].module;
    ParamSlot *p = to.at[i].param;
    if (m && m->pinned) {
      to.at[i].module->pinned = true;
      to.at[i].module->pin = m->pin;
      to.at[i].module->pin_span = m->pin_span;
    }
    if (!p || p == from.at[i].param) continue;
    p->copy_of = from.at[i].param;
    p->buffer = true;
    p->init_span = diag_user_span(l->c, args->span);
  }
  return v;
}

/* ---- assignment ---- */

void assign_path(Lower *l, Scope *s, const Expr *target, Datum v)
{
  const Name *name = &target->as.attr.name;
  const char *text = source_text(l, target->span);
  Datum base = eval(l, s, target->as.attr.base);
  if (d_is(base, D_error)) return;
  if (base.kind != D_instance) {
    fail(l, E210, target->span, "only names, and Buffers of modules, can be assigned here");
    return;
  }
  Datum old = instance_attr(l, base.as.instance, name->text, name->span);
  if (d_is(old, D_error)) return;
  if (old.kind != D_param) {
    fail(l, E210, target->span, "`%s` is not a Buffer, so it cannot be assigned", text);
  } else if (old.as.param->buffer) {
    assign_buffer(l, old.as.param, text, v, target->span, true, NULL);
  } else {
    fail(l, E210, target->span, "`%s` is a Parameter, which only `minimize` changes", text);
    diag_help(l->c, "a copy can be assigned: `model target = copy(net)` declares one of `net`");
  }
}

/* ---- follow ---- */

static bool members_of(Lower *l, const ArgValue *arg, Parts *out)
{
  if (d_is(arg->value, D_error)) return false;
  if (arg->value.kind != D_instance)
    return refuse(l, E209, arg->span, "`follow` takes modules, got %s", d_kind_text(l, arg->value));
  if (arg->value.as.instance->of)
    return refuse(
        l, E209, arg->span,
        "`follow` takes a model or a part of one, not its averages: `.ema()` needs no copy");
  walk_members(l, arg->value.as.instance, "", &(MemberVisitor){NULL, add_param, out});
  return true;
}

static const char *part_text(Lower *l, const Parts *parts, uint32_t i)
{
  if (i >= parts->n) return "nothing";
  Datum d = {.kind = D_param, .as.param = parts->at[i].param};
  return arena_printf(l->arena, "`%s`, %s", parts->at[i].path, d_text(l, d));
}

/* Checks that both modules have the same names and shapes. */
static bool same_parts(Lower *l, const Parts *to, const Parts *from, Span span)
{
  for (uint32_t i = 0; i < to->n || i < from->n; i++) {
    const ParamSlot *p = i < to->n ? to->at[i].param : NULL;
    const ParamSlot *q = i < from->n ? from->at[i].param : NULL;
    if (p && q && strcmp(to->at[i].path, from->at[i].path) == 0 && p->rank == q->rank &&
        memcmp(p->dim, q->dim, p->rank * sizeof *p->dim) == 0)
      continue;
    fail(l, E311, span,
         "`follow` takes two modules of one structure, but the first has %s, and "
         "the second %s",
         part_text(l, to, i), part_text(l, from, i));
    return diag_help(l->c, "pass the module that was copied as the second argument");
  }
  return true;
}

/* Returns a parameter's value as it is stored, without the cast to its 16-bit type. */
static Value stored_value(Lower *l, ParamSlot *p, Span span)
{
  Value v = param_value(l, p, span);
  const Node *n = ir_node(l->g, v);
  return v.id && p->store != AMPC_F32 && op_has(n, T_casts) ? n->in[0] : v;
}

/* Reads `decay`: a number from 0 to 1, or a value of the step. *rest becomes 1 - decay. */
static bool read_decay(Lower *l, const ArgValue *arg, Datum *decay, Datum *rest)
{
  double d = 0;
  if (d_is_number(arg->value)) {
    if (!want_float(l, arg->value, arg->span, "`decay`", &d)) return false;
    *decay = d_float(d);
    *rest = d_float(1 - d);
    return (d >= 0 && d <= 1) ||
           refuse(l, E209, arg->span, "`decay` is from 0 to 1, got %s", d_text(l, arg->value));
  }
  Value v = as_tensor(l, arg->value, arg->span);
  if (!v.id) return false;
  if (ir_node(l->g, v)->rank || !dtype_is_float(ir_node(l->g, v)->dtype))
    return refuse(l, E311, arg->span, "`decay` is one float, got %s", d_text(l, d_tensor(v)));
  *decay = d_tensor(v);
  *rest = tensor_binary(l, OPER_sub, d_float(1), *decay, arg->span);
  return true;
}

/* Assigns decay p + rest source to p. After a step, if p has not been assigned in this body, the
 * effect itself mixes the Buffer's value with the source. Then the mixed weights need no memory
 * unless the body reads them. */
static void mix(Lower *l, const Part *to, Value source, Datum decay, Datum rest, Span span)
{
  Value old = stored_value(l, to->param, span);
  source = ir_cast(l->c, &l->at, source, AMPC_F32); /* bf16, if there are no masters */
  Value in[] = {source, as_tensor(l, decay, span), as_tensor(l, rest, span)};
  if (!old.id || !source.id || !in[1].id || !in[2].id) return;
  Datum kept = tensor_binary(l, OPER_mul, d_tensor(in[1]), d_tensor(old), span);
  Datum added = tensor_binary(l, OPER_mul, d_tensor(in[2]), d_tensor(source), span);
  bool first = l->run && l->run->n_minimized && ir_parameter(l->g, ir_node(l->g, old));
  assign_buffer(l, to->param, to->path, tensor_binary(l, OPER_add, kept, added, span), span, true,
                first ? in : NULL);
}

/* Runs _follow(target, source, decay, buffers): weights become decay target + (1 - decay) source;
 * with `buffers`, other Buffers become those of the source. */
static Datum run_follow(Lower *l, Args *args)
{
  const ArgValue *a = args->at.at;
  Parts to = {0}, from = {0};
  Span span = diag_user_span(l->c, args->span);
  Datum decay, rest;
  if (!members_of(l, &a[0], &to) || !members_of(l, &a[1], &from) ||
      !same_parts(l, &to, &from, span) || !read_decay(l, &a[2], &decay, &rest))
    return d_of(D_error);
  bool plain = d_is_number(decay) && d_number(decay) == 0;
  uint16_t region = l->at.region;
  l->at.region = 0; /* weights are mixed in f32 */
  for (uint32_t i = 0; i < to.n; i++) {
    ParamSlot *p = to.at[i].param;
    bool weight = param_is_weight(p);
    if (!weight && !a[3].value.as.truth) continue;
    Value source = stored_value(l, from.at[i].param, span);
    if (!p->buffer) {
      fail(l, E210, a[0].span,
           "`follow` changes copies, but `%s` is a Parameter that only "
           "`minimize` changes",
           to.at[i].path);
      diag_help(l->c, "declare the first model as a copy: `model target = copy(net)`");
      break;
    }
    if (weight && !plain)
      mix(l, &to.at[i], source, decay, rest, span);
    else if (source.id)
      assign_buffer(l, p, to.at[i].path, d_tensor(source), span, true, NULL);
  }
  l->at.region = region;
  return d_of(D_none);
}

const Native copy_natives[] = {
    {"copy", 1, 1, .run = run_copy}, {"follow", 4, 4, .internal = true, .run = run_follow}, {0}};
