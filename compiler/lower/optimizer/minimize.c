/* Lowers `minimize`: checks the nodes that the loss depends on, and appends the node that pass
 * gradient replaces by the backward pass, check, clip and update. */
#include "ampc_metrics.h"
#include "optimizer.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/watch.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"

typedef struct Reach { /* what a loss depends on */
  bool found;          /* it depends on a parameter of the optimizer */
  const Node *stale;   /* a read of a parameter from before its optimizer stepped; or NULL */
  const Node *cut;     /* a node that cuts a path; or NULL */
} Reach;

/* Records a read of a parameter. `version`: how often its optimizers had stepped before. */
static void reach_param(Lower *l, Reach *r, const Node *n, const Opt *opt)
{
  uint32_t index = (uint32_t)attr_int(n, "index");
  const Parameter *p = &l->g->params.at[index];
  if (share_find(l->g, index, opt->index) != NO_SHARE) r->found = true;
  if (p->optimizer >= 0 && attr_int(n, "version") != param_version(l, index)) r->stale = n;
}

/* Returns the optimizer of the parameter that stepped last. */
static const Opt *last_step(const Lower *l, uint32_t param)
{
  const Opt *last = NULL;
  for (uint32_t i = 0; i < l->optimizers.n; i++) {
    const Opt *o = l->optimizers.at[i];
    if (!o->updates || share_find(l->g, param, i) == NO_SHARE) continue;
    if (!last || o->last >= last->last) last = o;
  }
  return last;
}

/* True if the node passes its value on but no gradient, like detach. */
static bool cuts(const Lower *l, const Node *n)
{
  bool detaches = op_of(n)->tmpl == TMPL_alias && op_of(n)->gradient == grad_none;
  return detaches || l->g->regions.at[n->region].no_grad;
}

/* Finds out if the loss depends on the optimizer's parameters. Inputs precede their users in the
 * array, so one pass from the loss to the front is enough. */
static Reach reach(Lower *l, const Opt *opt, Value loss)
{
  Reach r = {0};
  bool *needed = arena_array(l->arena, bool, loss.id + 1);
  needed[loss.id] = true;
  for (uint32_t id = loss.id; id > 0; id--) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id]) continue;
    if (ir_parameter(l->g, n)) {
      if (!reads_average(l->g, n)) reach_param(l, &r, n, opt);
    } else if (cuts(l, n)) {
      r.cut = n;
    } else {
      /* cast_like reads only the type of its second input */
      uint32_t values = n->op == OP_cast_like ? 1 : n->n_in;
      for (uint32_t i = 0; i < values; i++) needed[n->in[i].id] = true;
    }
  }
  return r;
}

/* Reports two mistakes that PyTorch does not: a loss that no parameter can lower, and a loss of
 * values from before a step, as in a GAN that judges its generator by the discriminator of before
 * the step. */
static bool check_loss(Lower *l, const Opt *o, Value loss, Span span)
{
  Reach r = reach(l, o, loss);
  if (!r.found && l->broken) return false;
  if (!r.found) {
    fail(l, E601, span, "the loss does not depend on any parameter of `%s`", o->name);
    if (r.cut) diag_note(l->c, r.cut->span, "no gradient passes through this");
    return false;
  }
  if (!r.stale) return true;
  fail(l, E602, span, "this loss uses values of `%s` from before `minimize ... with %s`",
       r.stale->name, last_step(l, (uint32_t)attr_int(r.stale, "index"))->name);
  return diag_help(l->c,
                   "after that `minimize`, compute the values that depend on the model again");
}

/* Returns the index of the first metric for norms of the optimizer's groups. An earlier `minimize`
 * of the block may have added them. Names with a dot are never names of the job. */
static int64_t norm_metrics(Lower *l, const Opt *o)
{
  int64_t first = -1;
  for (uint32_t i = 0; i <= o->groups.n; i++) {
    if (!optimizer_has_group(l->g, o->index, i)) continue;
    l->g->optimizers.at[o->index].groups.at[i].logged = true;
    const char *key = i ? o->groups.at[i - 1].key : o->name;
    const Metric m = {.name = arena_printf(l->arena, "update.%s", key),
                      .kind = AMPC_METRIC_UPDATES,
                      .statistics = AMPC_UPDATES_COUNT};
    int64_t index = common_metric(l, m, o->decl->span);
    if (first < 0) first = index;
  }
  return first;
}

/* Appends the node that pass gradient replaces by the backward pass, check, clip and update. Its
 * inputs are the loss, the settings of each group, and those that apply to all groups together. */
static void append_minimize(Lower *l, Opt *o, Value loss, const Stmt *st)
{
  uint16_t region = l->at.region;
  VEC(Value) in = {0};
  vec_push(l->arena, &in, loss);
  l->at.region = 0;
  l->at.span = st->span;
  l->run->again = o->updates ? o->name : NULL;
  Optimizer *q = &l->g->optimizers.at[o->index];
  bool good = true;
  uint32_t whole = (uint32_t)q->clip + q->skip, n = o->n_settings - whole;
  uint32_t of_groups = n * (o->groups.n + 1);
  for (uint32_t i = 0; i < of_groups + whole; i++) {
    bool own = i < of_groups;
    Value v;
    good = optimizer_setting(l, o, own ? i / n : 0, own ? i % n : n + i - of_groups, &v) && good;
    vec_push(l->arena, &in, v);
  }
  l->at.span = st->as.minimize.loss->span;
  int64_t updates = l->c->options.norms ? norm_metrics(l, o) : -1;
  if (good)
    append(l, l->at.span, OP_minimize, in.at, in.n,
           ATTRS({"optimizer", {.i = o->index}}, {"updates", {.i = updates}}));
  l->at.region = region;
  if (++o->updates > q->updates) q->updates = o->updates;
  o->last = l->run->n_minimized + 1;
}

/* Checks `accumulate`. All optimizers of a block have the same value, so they step together. With
 * accumulation each may minimize only once in a body, since a slot would sum the gradients of two
 * losses. `another`: an earlier optimizer of the block has set `accumulate`. */
static bool set_accumulate(Lower *l, const Opt *o, bool another, Span span)
{
  BlockInfo *b = &l->g->blocks.at[l->run->block];
  if (o->updates && o->accumulate > 1) {
    fail(l, E605, span,
         "`%s` has accumulate=%lld and minimizes twice in a body, but a parameter has only one sum "
         "of gradients",
         o->name, (long long)o->accumulate);
    return diag_help(l->c, "minimize the sum of the losses, or leave out `accumulate`");
  }
  if (another && b->accumulate != o->accumulate)
    return refuse(l, E605, span,
                  "`%s` has accumulate=%lld, but the optimizers before it in this block have %lld",
                  o->name, (long long)o->accumulate, (long long)b->accumulate);
  b->accumulate = o->accumulate;
  return true;
}

/* Returns the name of a loss: "loss" for the first, "loss_opt" for a later one, "loss_opt_2" for
 * the next one of that optimizer. */
static const char *loss_name(Lower *l, const Opt *o)
{
  const char *first = arena_printf(l->arena, "loss_%s", o->name), *name = first;
  if (!l->run->n_losses) return "loss";
  for (uint32_t i = 2; has_metric(l, name) && i <= l->run->n_losses; i++)
    name = arena_printf(l->arena, "%s_%u", first, i);
  return name;
}

/* Finds the optimizers that a `minimize` names; returns false after a message. */
static bool find_optimizers(Lower *l, Scope *s, const NameList *names, Opt **out)
{
  bool good = true;
  for (uint32_t i = 0; i < names->n; i++) {
    const Name *name = &names->at[i];
    Datum d = lookup(l, s, name->text, name->span);
    if (d.kind != D_optimizer && !d_is(d, D_error))
      fail(l, E209, name->span, "`minimize` needs an optimizer, got %s", d_kind_text(l, d));
    good = good && d.kind == D_optimizer;
    if (!good) continue;
    out[i] = d.as.optimizer;
    for (uint32_t k = 0; k < i; k++) {
      if (out[k] != out[i]) continue;
      fail(l, E605, name->span, "`minimize` names `%s` twice", name->text);
      good = false;
    }
  }
  return good;
}

/* Lowers `minimize loss with a, b`: one backward pass for the parameters of both, then a check,
 * clip and update for each optimizer. */
void lower_minimize(Lower *l, Frame *f, const Stmt *st)
{
  const NameList *names = &st->as.minimize.optimizers;
  const Expr *e = st->as.minimize.loss;
  if (f->kind != FRAME_train) {
    fail(l, E210, st->span, "`minimize` stands in train blocks only");
    return;
  }
  Opt **opts = arena_array(l->arena, Opt *, names->n);
  bool good = find_optimizers(l, f->scope, names, opts);
  Datum v = eval(l, f->scope, e);
  if (!good) return;
  for (uint32_t i = 0; i < names->n; i++) good = optimizer_settle(l, opts[i]) && good;
  Value loss = as_tensor(l, v, e->span);
  if (!good || !loss.id) return;
  for (uint32_t i = 0; i < names->n; i++)
    if (!check_loss(l, opts[i], loss, e->span) ||
        !set_accumulate(l, opts[i], i || l->run->n_losses, names->at[i].span))
      return;
  const char *name = loss_name(l, opts[0]);
  l->run->n_losses++;
  /* before the update, since a loss that is not finite skips the update */
  if (ir_elements(ir_node(l->g, loss)) == 1)
    lower_metric(l, (Metric){.name = name, .is_loss = true}, loss, e->span);
  if (watch_stops_updates(l)) return;
  for (uint32_t i = 0; i < names->n; i++) append_minimize(l, opts[i], loss, st);
  l->run->n_minimized++;
}
