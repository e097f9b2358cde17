/* Optimizers, their settings, `minimize` and `metric`. The settings of an optimizer are worked out
 * at its first `minimize`, where the sizes of the training block are known. */
#include "lower.h"

#define ARG(i) (args->at.at[i].value)

/* Only its place in the tables: the settings may need total_steps, so they wait for the block
 * that trains with it. Group 0 has the parameters that no clause names. */
Opt *declare_optimizer(Lower *l, File *f, const Decl *decl)
{
  Opt *o = arena_new(l->arena, Opt);
  o->name = decl->as.object.name.text;
  o->decl = decl;
  o->file = f;
  o->index = (int)l->g->optimizers.n;
  vec_push(l->arena, &l->optimizers, o);
  Optimizer q = {.name = o->name, .span = decl->span};
  vec_push(l->arena, &q.groups, (OptimizerGroup){0});
  vec_push(l->arena, &l->g->optimizers, q);
  return o;
}

/* ---- what an optimizer updates ---- */

/* The parameters that an optimizer takes over. */
typedef struct Adoption {
  Opt *opt;
  Span span;
  uint32_t count;
} Adoption;

/* Frozen parameters and buffers are left alone; no error, since a model usually has both
 * kinds. */
static void adopt(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Adoption *a = data;
  (void)alias;
  if (p->index < 0) return;
  Parameter *q = &l->g->params.at[p->index];
  if (q->buffer || q->frozen) return;
  a->count++;
  if (q->optimizer >= 0 && q->optimizer != a->opt->index)
    not_yet(l, a->span, "a parameter in two optimizers (%s)", path);
  else
    q->optimizer = a->opt->index;
}

/* `Adam(net)`, `Adam(net.head)`, `Adam([encoder, decoder])` */
static bool adopt_all(Lower *l, Datum model, Adoption *a)
{
  if (model.kind == D_list) {
    for (uint32_t i = 0; i < model.n; i++)
      if (!adopt_all(l, model.as.list[i], a)) return false;
    return true;
  }
  if (model.kind == D_param) {
    adopt(l, model.as.param, model.as.param->name, false, a);
    return true;
  }
  if (model.kind != D_instance)
    return fail(l, E209, a->span,
                "an optimizer needs a model, a part of one or a list of them, "
                "got %s",
                d_kind_text(l, model)),
           false;
  if (!model.as.instance->path)
    return fail(l, E210, a->span, "this module is not part of a model"), false;
  walk_members(l, model.as.instance, model.as.instance->path, &(MemberVisitor){NULL, adopt, a});
  return true;
}

/* ---- settings ---- */

/* "opt.lr", "opt.group1.lr": what --set names and checkpoints keep. */
static const char *setting_key(Lower *l, const char *group, const char *name)
{
  return arena_printf(l->arena, "%s.%s", group, name);
}

/* What --set makes of it, if it is a setting's value; `key` is that of its group. */
bool check_setting(Lower *l, const Opt *o, const char *key, const char *name, Datum *v, Span span)
{
  if (!setting_value(l, setting_key(l, key, name), v)) return false;
  if (!d_is_number(*v) && v->kind != D_schedule)
    return fail(l, E209, span, "`%s` of `%s` needs a number or a schedule, got %s", name, o->name,
                d_kind_text(l, *v)),
           false;
  if (d_is_number(*v) && d_number(*v) < 0)
    return fail(l, E209, span, "`%s` of `%s` is %s; it cannot be negative", name, o->name,
                d_text(l, *v)),
           false;
  return true;
}

/* Settings stand in the order of the kernel's arguments. */
static bool add_setting(Lower *l, Opt *o, const char *name, Datum v, Span span)
{
  if (!check_setting(l, o, o->name, name, &v, span)) return false;
  o->setting[o->n_settings] = name;
  o->value[o->n_settings] = v;
  o->n_settings++;
  return true;
}

static bool is_zero(Datum v)
{
  return d_is_number(v) && d_number(v) == 0;
}

/* Of SGD: what the settings of a group make of its kernel. */
bool check_momentum(Lower *l, const Opt *o, uint32_t group, Span span)
{
  const char *key;
  OptimizerGroup *q = &l->g->optimizers.at[o->index].groups.at[group];
  q->momentum = !is_zero(group_setting(o, group, SGD_momentum, &key));
  bool damped = !is_zero(group_setting(o, group, SGD_dampening, &key));
  if (!q->nesterov || (q->momentum && !damped)) return true;
  return fail(l, E605, span, "nesterov needs a momentum and no dampening"), false;
}

/* _optimizer(kind, model, names, values, nesterov, clip_norm): what SGD() and Adam() of the
 * library end in. Settings may be numbers or schedules, nesterov picks another kernel and is a
 * compile-time bool. */
static Datum run_optimizer(Lower *l, Args *args)
{
  Opt *o = l->settings_of;
  const char *kind = ARG(0).as.text;
  if (!o) {
    fail(l, E210, args->span, "an optimizer stands in an `optimizer` declaration");
    diag_help(l->c, "`optimizer opt = %s(...)`", kind);
    return d_of(D_error);
  }
  Optimizer *q = &l->g->optimizers.at[o->index];
  q->kind = strcmp(kind, "SGD") == 0 ? OPT_sgd : strcmp(kind, "Adam") == 0 ? OPT_adam : OPT_adamw;
  for (uint32_t i = 0; i < ARG(2).n; i++)
    if (!add_setting(l, o, ARG(2).as.list[i].as.text, ARG(3).as.list[i], args->span))
      return d_of(D_error);
  q->clip = ARG(5).kind != D_none;
  if (q->clip && !add_setting(l, o, "clip_norm", ARG(5), args->span)) return d_of(D_error);
  q->groups.at[0].nesterov = ARG(4).as.truth;
  if (q->kind == OPT_sgd && !check_momentum(l, o, 0, args->span)) return d_of(D_error);
  Adoption a = {o, args->span, 0};
  if (!adopt_all(l, ARG(1), &a)) return d_of(D_error);
  if (!a.count && l->broken) return d_of(D_error);
  if (!a.count) return fail(l, E601, args->span, "`%s` has no parameter to update", o->name);
  if (!optimizer_groups(l, o, ARG(1))) return d_of(D_error);
  return (Datum){.kind = D_optimizer, .as.optimizer = o};
}

/* Runs the declaration's expression once, at the first `minimize` or at the end of the pass. */
bool optimizer_settle(Lower *l, Opt *o)
{
  if (o->state != GLOBAL_new) return o->good;
  o->state = GLOBAL_done;
  l->settings_of = o;
  Datum v = eval(l, scope_new(l, NULL, o->file, NULL), o->decl->as.object.value);
  l->settings_of = NULL;
  if (!d_is(v, D_error) && v.kind != D_optimizer)
    fail(l, E209, o->decl->as.object.value->span,
         "an optimizer is SGD(...), Adam(...) or "
         "AdamW(...), got %s",
         d_kind_text(l, v));
  return o->good = v.kind == D_optimizer;
}

/* ---- nodes of settings and schedules ---- */

/* A setting is read from the state at run time, so `--set opt.lr=` and a resumed run may
 * change it without a new compile. The same key is one setting, however many blocks read it. */
static Value setting_node(Lower *l, const char *key, double number, Span span)
{
  uint32_t i = 0;
  while (i < l->g->settings.n && strcmp(l->g->settings.at[i].name, key) != 0) i++;
  if (i == l->g->settings.n) vec_push(l->arena, &l->g->settings, (Setting){key, number, span});
  Value v = ir_append(l->c, &l->at, OP_setting, NULL, 0, ATTRS({"index", {.i = i}}));
  ir_node(l->g, v)->name = key;
  return v;
}

/* A schedule is arithmetic on the step. In an optimizer its numbers are settings,
 * "opt.lr.peak"; elsewhere `key` is NULL and they are constants. */
static Value schedule_node(Lower *l, const Schedule *s, Value step, const char *key, Span span)
{
  const OpSignature *sig = &op_row(s->op)->signature;
  Value in[MAX_SIGNATURE] = {step};
  for (uint32_t i = 0; i < s->n_args; i++) {
    double number = s->args[i];
    if (!key) {
      in[i + 1] = ir_number(l->c, &l->at, number);
      continue;
    }
    const char *name = arena_printf(l->arena, "%s.%s", key, sig->input[i + 1].name);
    Datum v = d_float(number);
    if (!setting_value(l, name, &v)) return (Value){0};
    in[i + 1] = setting_node(l, name, d_number(v), span);
  }
  return ir_append(l->c, &l->at, s->op, in, s->n_args + 1, NULL);
}

/* A schedule outside of optimizers, `0.1 * cosine_schedule(...)`, counts the block's steps. */
Value schedule_value(Lower *l, const Schedule *s, Span span)
{
  Value step = ir_append(l->c, &l->at, OP_step, NULL, 0, NULL);
  return schedule_node(l, s, step, NULL, span);
}

/* In an optimizer a schedule counts the steps that it has taken: a step that a NaN made it
 * skip does not count. */
static Value optimizer_setting(Lower *l, const Opt *o, uint32_t group, uint32_t i)
{
  const char *key;
  Datum d = group_setting(o, group, i, &key);
  key = setting_key(l, key, o->setting[i]);
  if (d.kind != D_schedule) return setting_node(l, key, d_number(d), o->decl->span);
  const NamedAttr *own = ATTRS({"optimizer", {.i = o->index}});
  Value step = ir_append(l->c, &l->at, OP_steps_taken, NULL, 0, own);
  Value v = schedule_node(l, d.as.schedule, step, key, o->decl->span);
  if (v.id) ir_node(l->g, v)->name = key;
  return v;
}

/* _schedule("linear", [arguments]) */
static Datum run_schedule(Lower *l, Args *args)
{
  Schedule *s = arena_new(l->arena, Schedule);
  s->op = op_named(arena_printf(l->arena, "schedule_%s", ARG(0).as.text));
  s->n_args = ARG(1).n;
  double *numbers = arena_array(l->arena, double, s->n_args);
  for (uint32_t i = 0; i < s->n_args; i++)
    if (!want_float(l, ARG(1).as.list[i], args->span,
                    arena_printf(l->arena, "`%s` of the schedule",
                                 op_row(s->op)->signature.input[i + 1].name),
                    &numbers[i]))
      return d_of(D_error);
  s->args = numbers;
  return (Datum){.kind = D_schedule, .as.schedule = s};
}

/* step_schedule(lr, every, gamma=0.1): not in the layer library, where `every` is a reserved
 * word. */
static Datum run_step_schedule(Lower *l, Args *args)
{
  static const char *const names[] = {"lr", "every", "gamma"};
  static const char signature[] = "step_schedule(lr, every, gamma=0.1)";
  Datum value[3] = {d_of(D_absent), d_of(D_absent), d_float(0.1)};
  for (uint32_t i = 0; i < args->at.n; i++) {
    const ArgValue *arg = &args->at.at[i];
    uint32_t slot = i;
    for (uint32_t k = 0; arg->key && k < 3; k++)
      if (strcmp(names[k], arg->key) == 0) slot = k + 3;
    if (arg->key && slot < 3) return wrong_key(l, "step_schedule", arg, names, 3, signature);
    value[slot % 3] = arg->value;
  }
  if (d_is(value[0], D_absent) || d_is(value[1], D_absent)) {
    fail(l, E205, args->span, "step_schedule needs `lr` and `every`");
    diag_help(l->c, "`%s`", signature);
    return d_of(D_error);
  }
  Args all = {.span = args->span};
  args_push(l, &all, d_str("step"), args->span);
  args_push(l, &all, d_list(value, 3), args->span);
  return run_schedule(l, &all);
}

/* ---- minimize ---- */

typedef struct Reach { /* what a loss depends on */
  bool found;          /* a parameter of the optimizer */
  const Node *stale;   /* a parameter read before its optimizer stepped */
  const Node *cut;     /* where a path was cut */
} Reach;

/* `version` counts the steps of the parameter's optimizer before the read. */
static void reach_param(Lower *l, Reach *r, const Node *n, const Opt *opt)
{
  int owner = l->g->params.at[attr_int(n, "index")].optimizer;
  if (owner == opt->index) r->found = true;
  if (owner >= 0 && attr_int(n, "version") != l->optimizers.at[owner]->updates) r->stale = n;
}

/* The value itself, cut off from differentiation: detach. */
static bool cuts(const Node *n)
{
  return op_of(n)->tmpl == TMPL_alias && op_of(n)->gradient == grad_none;
}

/* Does a change of the optimizer's parameters change the loss? Inputs stand before their
 * users, so one walk from the loss down the array is enough. */
static Reach reach(Lower *l, const Opt *opt, Value loss)
{
  Reach r = {0};
  bool *needed = arena_array(l->arena, bool, loss.id + 1);
  needed[loss.id] = true;
  for (uint32_t id = loss.id; id > 0; id--) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id]) continue;
    if (n->op == OP_param) {
      reach_param(l, &r, n, opt);
    } else if (cuts(n) || l->g->regions.at[n->region].no_grad) {
      r.cut = n;
    } else {
      for (uint32_t i = 0; i < n->n_in; i++) needed[n->in[i].id] = true;
    }
  }
  return r;
}

/* Both are silent mistakes in PyTorch: a loss that nothing can lower, and one made of values
 * from before a step, as in a GAN whose generator is judged by the discriminator of before. */
static bool check_loss(Lower *l, const Opt *o, Value loss, Span span)
{
  Reach r = reach(l, o, loss);
  if (!r.found && l->broken) return false;
  if (!r.found) {
    fail(l, E601, span, "the loss does not depend on any parameter of `%s`", o->name);
    if (r.cut) diag_note(l->c, r.cut->span, "this cuts a path");
    return false;
  }
  if (!r.stale) return true;
  const Opt *owner = l->optimizers.at[l->g->params.at[attr_int(r.stale, "index")].optimizer];
  fail(l, E602, span, "this loss uses values of `%s` from before `minimize ... with %s`",
       r.stale->name, owner->name);
  diag_help(l->c, "compute what depends on it again after that `minimize`");
  return false;
}

/* The node that pass gradient replaces by backward pass, check, clip and update. Its inputs:
 * the loss; the settings group by group; clip_norm, which is of all groups together. */
static void append_minimize(Lower *l, Opt *o, Value loss, const Stmt *st)
{
  uint16_t region = l->at.region;
  VEC(Value) in = {0};
  vec_push(l->arena, &in, loss);
  l->at.region = 0;
  l->at.span = st->span;
  bool good = true, clip = l->g->optimizers.at[o->index].clip;
  uint32_t n = o->n_settings - clip;
  for (uint32_t i = 0; i < n * (o->groups.n + 1) + clip; i++) {
    bool last = i == n * (o->groups.n + 1);
    Value v = last ? optimizer_setting(l, o, 0, n) : optimizer_setting(l, o, i / n, i % n);
    vec_push(l->arena, &in, v);
    good = good && v.id;
  }
  l->at.span = st->as.minimize.loss->span;
  if (good) append(l, l->at.span, OP_minimize, in.at, in.n, ATTRS({"optimizer", {.i = o->index}}));
  l->at.region = region;
  o->updates++;
}

/* `minimize loss with opt` */
void lower_minimize(Lower *l, Frame *f, const Stmt *st)
{
  const NameList *names = &st->as.minimize.optimizers;
  const Expr *e = st->as.minimize.loss;
  if (f->kind != FRAME_train) {
    fail(l, E210, st->span, "`minimize` stands in train blocks only");
    return;
  }
  if (names->n > 1) {
    not_yet(l, st->span, "`minimize` with several optimizers");
    return;
  }
  Datum d = lookup(l, f->scope, names->at[0].text, names->at[0].span);
  Datum v = eval(l, f->scope, e);
  if (d_is(d, D_error)) return;
  if (d.kind != D_optimizer) {
    fail(l, E209, names->at[0].span, "`minimize` needs an optimizer, got %s", d_kind_text(l, d));
    return;
  }
  bool settled = optimizer_settle(l, d.as.optimizer);
  Value loss = as_tensor(l, v, e->span);
  if (!settled || !loss.id || !check_loss(l, d.as.optimizer, loss, e->span)) return;
  const char *name =
      l->run->n_losses++ ? arena_printf(l->arena, "loss_%s", d.as.optimizer->name) : "loss";
  /* before the update, which does not happen when the loss is not finite */
  if (ir_elements(ir_node(l->g, loss)) == 1) lower_metric(l, name, loss, true, e->span);
  append_minimize(l, d.as.optimizer, loss, st);
}

/* ---- metrics ---- */

/* A metric is shown as one number, so its value is made a scalar of a float type; OP_metric
 * adds it up over the samples. The remainder of a block shares the metrics of its full
 * batches. */
void lower_metric(Lower *l, const char *name, Value value, bool is_loss, Span span)
{
  uint16_t first = (uint16_t)l->run->first;
  uint32_t index = l->run->first_metric + l->run->n_metrics;
  for (uint32_t k = l->run->first_metric; k < index; k++)
    if (strcmp(l->g->metrics.at[k].name, name) == 0) {
      fail(l, E210, span, "the block has two metrics `%s`", name);
      return;
    }
  l->run->n_metrics++;
  if (index == l->g->metrics.n) vec_push(l->arena, &l->g->metrics, (Metric){name, first, is_loss});
  const Node *n = ir_node(l->g, value);
  Datum d = d_tensor(value);
  if (n->rank && ir_elements(n) == 1) d = reshape_to(l, value, NULL, 0, span);
  if (!dtype_is_float(ir_node(l->g, value)->dtype)) d = cast_to(l, d.as.tensor, AMPC_F32, span);
  if (d_is(d, D_error)) return;
  append(l, span, OP_metric, &d.as.tensor, 1,
         ATTRS({"metric", {.i = index}}, {"samples", {.i = l->run->batch}}));
}

const Native optimizer_natives[] = {
    {"optimizer", 6, 6, false, true, run_optimizer},
    {"schedule", 2, 2, false, true, run_schedule},
    {"step_schedule", 1, 3, true, false, run_step_schedule},
    {0},
};
