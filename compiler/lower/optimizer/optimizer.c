/* Lowers optimizers, their settings, and `metric`. The settings of an optimizer are evaluated at
 * its first `minimize`, where the sizes of the train block are known, so a schedule can use
 * `steps_per_epoch`. The arguments of each optimizer are in compiler/graph/optimizers.def; groups
 * are in param_group.c, schedules in schedule.c, `minimize` in minimize.c. */
#include "ampc_metrics.h"
#include "optimizer.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/watch.h"
#include "compiler/graph/shares.h"
#include "common/number.h"
#include <assert.h>

#define ARG(i) (args->at.at[i].value)

/* Adds the optimizer to the tables. Its settings may need total_steps, so they wait for its train
 * block. Group 0 has the parameters that no clause names. */
Opt *declare_optimizer(Lower *l, File *f, const Decl *decl)
{
  Opt *o = arena_new(l->arena, Opt);
  o->name = decl->name.text;
  o->decl = decl;
  o->file = f;
  o->index = (int)l->g->optimizers.n;
  vec_push(l->arena, &l->optimizers, o);
  Optimizer q = {.name = o->name, .span = decl->span};
  vec_push(l->arena, &q.groups, (ParamGroup){0});
  vec_push(l->arena, &l->g->optimizers, q);
  return o;
}

/* ---- what an optimizer updates ---- */

/* The search for the parameters that an optimizer updates. */
typedef struct Adoption {
  Opt *opt;
  Span span;      /* span of the optimizer's call */
  uint32_t count; /* parameters found, including rejected ones */
  bool reported;  /* one was rejected; others have the same fault */
  bool copies;    /* some belong to a copy() */
} Adoption;

/* Checks that only one optimizer averages a weight, since eval blocks read the average. */
static bool check_averages(Lower *l, const Adoption *a, uint32_t param)
{
  int other = share_average(l->g, param);
  if (other < 0 || other == a->opt->index || !l->g->optimizers.at[a->opt->index].ema) return true;
  const Optimizer *o = &l->g->optimizers.at[other];
  fail(l, E605, a->span, "`%s` keeps an average of `%s`, and so does `%s`", a->opt->name,
       l->g->params.at[param].path, o->name);
  diag_note(l->c, o->span, "`%s` is declared here", o->name);
  return diag_help(l->c,
                   "eval blocks can read only one average: leave out the `ema` of one optimizer");
}

/* Adopts a parameter. Skips frozen parameters and buffers without an error, since a model usually
 * has some. A second optimizer of a parameter gets a share, Note [shares]. */
static void adopt(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Adoption *a = data;
  (void)path, (void)alias;
  if (p->index < 0) return;
  uint32_t index = (uint32_t)p->index;
  Parameter *q = &l->g->params.at[index];
  a->copies = a->copies || p->copy_of;
  if (q->buffer || q->frozen || !optimizer_selects(l, a->opt, index)) return;
  a->count++;
  if (share_find(l->g, index, a->opt->index) != NO_SHARE) return;
  if (a->reported || !check_averages(l, a, index) || !check_matrix(l, a->opt, q, a->span))
    a->reported = true;
  else if (q->optimizer < 0)
    q->optimizer = a->opt->index;
  else
    share_add(l->c, index, a->opt->index);
}

/* Adopts the parameters of `Adam(net)`, `Adam(net.head)`, `Adam([encoder, decoder])`. */
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
    return refuse(l, E209, a->span,
                  "an optimizer needs a model, a part of one or a list of them, "
                  "got %s",
                  d_kind_text(l, model));
  if (!model.as.instance->path)
    return refuse(l, E210, a->span, "this module is not part of a model");
  walk_members(l, model.as.instance, model.as.instance->path, &(MemberVisitor){NULL, adopt, a});
  return true;
}

/* ---- settings ---- */

/* Returns "opt.lr", "opt.group1.lr": the key in --set and in checkpoints. */
static const char *setting_key(Lower *l, const char *group, const char *name)
{
  return arena_printf(l->arena, "%s.%s", group, name);
}

/* Returns the range of a setting. optimizers.c has checked that the table has every setting. */
static ampc_domain domain_of(const char *name)
{
  ampc_domain domain = AMPC_FINITE;
  setting_domain(name, AMPC_FINITE, &domain);
  return domain;
}

/* True if the setting can be `none`. */
static bool is_optional(Lower *l, const Opt *o, const char *name)
{
  const OptimizerInfo *row = optimizer_of(&l->g->optimizers.at[o->index]);
  uint32_t i;
  return optimizer_setting_find(row, name, &i) && row->setting[i]->optional;
}

/* Applies --set to *v, and checks that it is a value of the setting. `key`: key of the group. */
bool check_setting(Lower *l, const Opt *o, const char *key, const char *name, Datum *v, Span span)
{
  if (!setting_value(l, setting_key(l, key, name), v, &span)) return false;
  if (v->kind == D_none && is_optional(l, o, name)) return true;
  if (!d_is_number(*v) && v->kind != D_schedule) {
    fail(l, E209, span, "`%s` of `%s` needs a number or a schedule, got %s", name, o->name,
         d_kind_text(l, *v));
    if (v->kind == D_str) foreign_help(l, v->as.text);
    return false;
  }
  double number;
  return !d_is_number(*v) ||
         want_in(l, *v, span, arena_printf(l->arena, "`%s` of `%s`", name, o->name),
                 domain_of(name), &number);
}

/* Adds a setting. The settings have the order of the kernel's arguments. */
static bool add_setting(Lower *l, Opt *o, const char *name, Datum v, Span span)
{
  if (!check_setting(l, o, o->name, name, &v, span)) return false;
  o->setting[o->n_settings] = name;
  o->value[o->n_settings] = v;
  o->n_settings++;
  return true;
}

/* True for the literal 0, not for a schedule, whatever value it has during a run. */
static bool is_zero(Datum v)
{
  return d_is_number(v) && d_number(v) == 0;
}

/* True if group `group` has the settings that a moment or a flag of optimizers.def requires. */
static bool condition_holds(const Opt *o, uint32_t group, uint32_t flags, uint32_t n,
                            SettingCondition c)
{
  const char *key;
  if (c.flags & ~flags) return false;
  for (uint32_t i = 0; i < n; i++) {
    bool zero = is_zero(group_setting(o, group, i, &key));
    if ((zero ? c.nonzero : c.zero) >> i & 1) return false;
  }
  return true;
}

/* Returns "a momentum and no dampening" */
static const char *condition_text(Lower *l, const OptimizerInfo *row, SettingCondition c)
{
  Text t = text_new(l->arena);
  for (uint32_t i = 0; i < row->n_settings; i++) {
    if (!((c.nonzero | c.zero) >> i & 1)) continue;
    text_printf(&t, "%s%s %s", t.n ? " and " : "", c.zero >> i & 1 ? "no" : "a",
                optimizer_setting_name(row, i));
  }
  return t.at;
}

/* Checks that the two numbers of `clamp` are in order. A schedule cannot be checked here. */
static bool check_clamp(Lower *l, const Opt *o, uint32_t group, Span span)
{
  const char *key;
  for (uint32_t i = 0; i + 1 < o->n_settings; i++) {
    if (strcmp(o->setting[i], "clamp1") != 0) continue;
    Datum low = group_setting(o, group, i, &key), high = group_setting(o, group, i + 1, &key);
    if (!d_is_number(low) || !d_is_number(high) || d_number(low) <= d_number(high)) return true;
    return refuse(l, E209, span,
                  "`clamp` of `%s` is [%s, %s]; the first must not exceed the second", key,
                  ir_number_text(l->c, d_number(low)), ir_number_text(l->c, d_number(high)));
  }
  return true;
}

/* Checks that moments may be codes, Note [codes]. `clamp` moves the unused elements behind a
 * parameter, and so their moments, which share a scale with used ones and are in no checkpoint. */
static bool check_codes(Lower *l, const Opt *o, uint32_t group, Span span)
{
  const OptimizerInfo *row = optimizer_of(&l->g->optimizers.at[o->index]);
  const char *key, *what = row->measure == OP_COUNT ? NULL : row->name;
  if (l->g->moment_type != AMPC_U8) return true;
  for (uint32_t i = 0; i < o->n_settings; i++)
    if (strcmp(o->setting[i], "clamp1") == 0 && group_setting(o, group, i, &key).kind != D_none)
      what = "`clamp`";
  if (!what) return true;
  fail(l, E605, span, "%s does not work with `moments(u8)`", what);
  return diag_help(l->c, "write `moments(bf16)` in `precision`");
}

bool settle_group(Lower *l, const Opt *o, uint32_t group, Span span)
{
  if (!check_clamp(l, o, group, span) || !check_codes(l, o, group, span)) return false;
  const Optimizer *q = &l->g->optimizers.at[o->index];
  const OptimizerInfo *row = optimizer_of(q);
  ParamGroup *own = &q->groups.at[group];
  for (uint32_t i = 0; i < MAX_MOMENTS; i++)
    if (row->moments >> i & 1 &&
        condition_holds(o, group, own->flags, row->n_settings, row->keep[i]))
      own->moments |= 1u << i;
  for (uint32_t i = 0; i < row->n_flags; i++) {
    if (!(own->flags >> i & 1)) continue;
    if (condition_holds(o, group, own->flags, row->n_settings, row->needs[i])) continue;
    return refuse(l, E605, span, "%s needs %s", row->word[i],
                  condition_text(l, row, row->needs[i]));
  }
  return true;
}

const Datum *argument_values(Lower *l, const OptimizerArgument *a, const Datum *v, Span span)
{
  static const char *const numbers[] = {"no", "one", "two", "three", "four"};
  static const Datum absent[2] = {{.kind = D_none}, {.kind = D_none}};
  if (a->n == 1) return v;
  if (a->optional && v->kind == D_none) return absent;
  if (v->kind == D_list && v->n == a->n) return v->as.list;
  assert(a->n < sizeof numbers / sizeof *numbers);
  fail(l, E209, span, "`%s` are %s numbers, got %s", a->name, numbers[a->n], d_text(l, *v));
  return NULL;
}

bool set_flag(Lower *l, const OptimizerArgument *a, ParamGroup *group, Datum v, Span span)
{
  bool truth;
  if (!want_bool(l, v, span, arena_printf(l->arena, "`%s`", a->name), &truth)) return false;
  group->flags = (group->flags & ~(1u << a->first)) | (uint32_t)truth << a->first;
  return true;
}

/* True if an optional setting is given. */
static bool has_setting(const Opt *o, const char *name)
{
  for (uint32_t i = 0; i < o->n_settings; i++)
    if (strcmp(o->setting[i], name) == 0) return o->value[i].kind != D_none;
  return false;
}

/* Returns an argument. optimizer_defs.c passes all of them by name. */
static const Datum *named_argument(const OptimizerInfo *row, const Args *args, const char *name)
{
  for (uint32_t i = 0; i < args->at.n; i++)
    if (args->at.at[i].key && strcmp(args->at.at[i].key, name) == 0) return &args->at.at[i].value;
  optimizer_broken(row->name, "its def does not give", name);
}

/* Adds the settings and flags that a def of the layer library passes, in the order of the table. */
static bool add_arguments(Lower *l, Opt *o, const Args *args)
{
  const Optimizer *q = &l->g->optimizers.at[o->index];
  const OptimizerInfo *row = optimizer_of(q);
  for (uint32_t i = 0; i < row->n_arguments; i++) {
    const OptimizerArgument *a = &row->argument[i];
    const Datum *v = named_argument(row, args, a->name);
    const Datum *values = argument_values(l, a, v, args->span);
    if (!values) return false;
    if (a->flag && !set_flag(l, a, &q->groups.at[0], *v, args->span)) return false;
    for (uint32_t k = 0; !a->flag && k < a->n; k++)
      if (!add_setting(l, o, optimizer_setting_name(row, a->first + k), values[k], args->span))
        return false;
  }
  return true;
}

/* Reads the number of bodies per step. It is read before the other settings, since total_steps
 * counts steps. If neither the declaration itself nor --set has it (`optimizer opt = mine(net)`),
 * it is known only after the other settings. */
static bool read_accumulate(Lower *l, Opt *o, Datum v, Span span)
{
  int64_t n;
  if (!setting_value(l, setting_key(l, o->name, "accumulate"), &v, &span)) return false;
  const char *what = arena_printf(l->arena, "`accumulate` of `%s`", o->name);
  if (!want_count(l, v, span, what, (Counts){1, AMPC_MOST_STEPS}, &n)) return false;
  if (n != o->accumulate && l->steps_asked) {
    fail(l, E210, span,
         "`steps_per_epoch` and `total_steps` are used before `accumulate` is known");
    return diag_help(l->c, "pass `accumulate=%lld` by name in the declaration of `%s` itself",
                     (long long)n, o->name);
  }
  o->accumulate = n;
  return true;
}

static bool find_accumulate(Lower *l, Opt *o)
{
  const Expr *e = o->decl->as.object.value;
  o->accumulate = 1;
  l->steps_asked = false;
  for (uint32_t i = 0; e->kind == EXPR_call && i < e->as.call.args.n; i++) {
    const Arg *arg = &e->as.call.args.at[i];
    if (!arg->key.text || strcmp(arg->key.text, "accumulate") != 0) continue;
    Datum v = eval(l, scope_new(l, NULL, o->file, NULL), arg->value);
    return !d_is(v, D_error) && read_accumulate(l, o, v, arg->value->span);
  }
  return read_accumulate(l, o, d_int(1), o->decl->span); /* --set may have another number */
}

/* Runs _optimizer("SGD", model, clip_norm, skip_above, accumulate, lr=lr, ...): every argument of
 * the table. */
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
  if (!optimizer_lookup(kind, &q->kind)) optimizer_broken(kind, "a def has it and no row:", kind);
  if (!add_arguments(l, o, args) || !read_accumulate(l, o, ARG(4), args->span))
    return d_of(D_error);
  q->clip = ARG(2).kind != D_none;
  q->skip = ARG(3).kind != D_none;
  q->ema = has_setting(o, "ema");
  if (q->clip && !add_setting(l, o, "clip_norm", ARG(2), args->span)) return d_of(D_error);
  if (q->skip && !add_setting(l, o, "skip_above", ARG(3), args->span)) return d_of(D_error);
  if (!settle_group(l, o, 0, args->span)) return d_of(D_error);
  Adoption a = {.opt = o, .span = args->span};
  if (!optimizer_select(l, o, ARG(1))) return d_of(D_error);
  if (!adopt_all(l, ARG(1), &a)) return d_of(D_error);
  if (a.reported || (!a.count && l->broken)) return d_of(D_error);
  if (!a.count) {
    fail(l, E601, args->span, "`%s` has no parameter to update", o->name);
    if (a.copies) diag_help(l->c, "a copy is not trained; `follow(target, net)` changes it");
    return d_of(D_error);
  }
  if (!check_without(l, o, args->span) || !optimizer_groups(l, o, ARG(1))) return d_of(D_error);
  return (Datum){.kind = D_optimizer, .as.optimizer = o};
}

/* Returns "SGD(...), Adam(...) or AdamW(...)" */
static const char *optimizer_choice(Lower *l)
{
  Text t = text_new(l->arena);
  for (OptimizerKind k = 0; k < OPT_COUNT; k++)
    text_printf(&t, "%s%s(...)",
                k == 0               ? ""
                : k == OPT_COUNT - 1 ? " or "
                                     : ", ",
                optimizer_row(k)->name);
  return t.at;
}

/* Evaluates the declaration's expression once, at the first `minimize` or at the end of the pass.
 * The native `_optimizer` finds the declaration in l->settings_of. */
bool optimizer_settle(Lower *l, Opt *o)
{
  if (o->state != GLOBAL_new) return o->good;
  o->state = GLOBAL_busy;
  Opt *outer = l->settings_of; /* whose clause `without` names this one */
  l->settings_of = o;
  Datum v = find_accumulate(l, o)
                ? eval(l, scope_new(l, NULL, o->file, NULL), o->decl->as.object.value)
                : d_of(D_error);
  l->settings_of = outer;
  o->state = GLOBAL_done;
  if (!d_is(v, D_error) && v.kind != D_optimizer)
    fail(l, E209, o->decl->as.object.value->span, "an optimizer is %s, got %s", optimizer_choice(l),
         d_kind_text(l, v));
  return o->good = v.kind == D_optimizer;
}

/* Makes the node of a setting. A schedule in it counts the steps that the optimizer has taken. A
 * step that is skipped because of a NaN does not count. *out is value 0 for `none`; false after a
 * message. */
bool optimizer_setting(Lower *l, const Opt *o, uint32_t group, uint32_t i, Value *out)
{
  const char *key;
  Datum d = group_setting(o, group, i, &key);
  key = setting_key(l, key, o->setting[i]);
  ampc_domain domain = domain_of(o->setting[i]);
  *out = (Value){0};
  if (d.kind == D_none) return true;
  if (d.kind != D_schedule) {
    *out = setting_node(l, key, d_number(d), domain, o->decl->span);
    return true;
  }
  const NamedAttr *own = ATTRS({"optimizer", {.i = o->index}});
  Value step = ir_append(l->c, &l->at, OP_steps_taken, NULL, 0, own);
  *out = setting_schedule(l, d.as.schedule, step, key, domain, o->decl->span);
  if (out->id) ir_node(l->g, *out)->name = key;
  return out->id != 0;
}

/* ---- metrics ---- */

bool has_metric(const Lower *l, const char *name)
{
  for (uint32_t k = l->run->first_metric; k < l->run->first_metric + l->run->n_metrics; k++)
    if (strcmp(l->g->metrics.at[k].name, name) == 0) return true;
  return false;
}

/* Returns the index of a metric of the block; -1 if the name is already used. All variants use the
 * metrics of the first one, which checks their names. */
static int64_t add_metric(Lower *l, Metric m, Span span)
{
  uint32_t index = l->run->first_metric + l->run->n_metrics;
  m.block = (uint16_t)l->run->first;
  if (index == l->g->metrics.n && has_metric(l, m.name)) {
    fail(l, E210, span, "the block has two metrics `%s`", m.name);
    return -1;
  }
  l->run->n_metrics++;
  if (index == l->g->metrics.n) vec_push(l->arena, &l->g->metrics, m);
  return index;
}

int64_t common_metric(Lower *l, Metric m, Span span)
{
  const Run *r = l->run;
  for (uint32_t i = r->first_metric; i < l->g->metrics.n; i++) {
    const Metric *other = &l->g->metrics.at[i];
    if (other->block != r->first || strcmp(other->name, m.name) != 0) continue;
    if (i == r->first_metric + r->n_metrics) l->run->n_metrics++;
    return i;
  }
  return add_metric(l, m, span);
}

/* Lowers a metric. It is printed as one number, so its value becomes a scalar of a float type.
 * OP_metric sums it over the samples. */
void lower_metric(Lower *l, Metric m, Value value, Span span)
{
  if (!m.mode && !m.is_loss) m.mode = mode_of(l, value);
  int64_t index = add_metric(l, m, span);
  if (index < 0) return;
  watch_value(l, m.name, d_tensor(value));
  const Node *n = ir_node(l->g, value);
  Datum d = d_tensor(value);
  if (n->rank && ir_elements(n) == 1) d = reshape_to(l, value, NULL, 0, span);
  if (!dtype_is_float(ir_node(l->g, value)->dtype)) d = cast_to(l, d.as.tensor, AMPC_F32, span);
  if (d_is(d, D_error)) return;
  append(l, span, OP_metric, &d.as.tensor, 1,
         ATTRS({"metric", {.i = index}}, {"samples", {.i = l->run->all_batch}}));
}

void lower_statistics(Lower *l, Metric m, const Statistics *s, Span span)
{
  m.kind = s->kind;
  m.statistics = (uint32_t)ir_elements(ir_node(l->g, s->values));
  m.classes = s->classes;
  int64_t index = add_metric(l, m, span);
  if (index < 0) return;
  watch_value(l, m.name, d_tensor(s->values));
  append(l, span, OP_statistics, &s->values, 1,
         ATTRS({"metric", {.i = index}}, {"samples", {.i = l->run->all_batch}}));
}

/* Runs _statistics(values, "f1_macro", "f1"): a value for `metric`, of a kind of AMPC_METRICS. A
 * matrix may have the names of its classes as a fourth argument. */
static Datum run_statistics(Lower *l, Args *args)
{
  static const char *const names[AMPC_METRIC_KIND_COUNT] = {
#define ROW(KIND, name, mode) #name,
      AMPC_METRICS(ROW)
#undef ROW
  };
  Statistics *s = arena_new(l->arena, Statistics);
  s->values = as_tensor(l, args->at.at[0].value, args->span);
  s->name = args->at.at[2].value.as.text;
  if (args->at.n > 3 && ARG(3).as.text[0]) s->classes = ARG(3).as.text;
  if (!s->values.id) return d_of(D_error);
  for (int k = 0; k < AMPC_METRIC_KIND_COUNT; k++)
    if (strcmp(names[k], args->at.at[1].value.as.text) == 0) {
      s->kind = (ampc_metric_kind)k;
      return (Datum){.kind = D_statistics, .as.statistics = s};
    }
  library_broken("_statistics()", "does not know the metric ", args->at.at[1].value.as.text);
}

const Native optimizer_natives[] = {
    {"optimizer", 5, ANY_NUMBER, .keys = true, .internal = true, .run = run_optimizer},
    {"statistics", 3, 4, .internal = true, .run = run_statistics},
    {0},
};
