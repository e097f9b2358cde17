/* Finds parameters of an optimizer that get no gradient from any of its losses. As in PyTorch,
 * where their `grad` is None, nothing changes them: no weight decay, no moments, no average of
 * weights. So the optimizer no longer has them. Warning W607 names those that then have no
 * optimizer. */
#include "optimizer.h"
#include "compiler/graph/shares.h"

/* Marks the nodes to which marked nodes pass a gradient. Inputs precede their users in the
 * array. */
static void mark_back(const Lower *l, bool *needed)
{
  for (uint32_t id = l->g->nodes.n; id-- > 1;) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id] || ir_stops_gradient(l->g, n)) continue;
    /* cast_like reads only the type of its second input */
    uint32_t values = n->op == OP_cast_like ? 1 : n->n_in;
    for (uint32_t i = 0; i < values; i++) needed[n->in[i].id] = true;
  }
}

/* Marks what the losses of the optimizer depend on. In a loop, a needed `carry` also needs the
 * value that its `next` computes, though no edge leads there. */
static bool *reached(Lower *l, int64_t optimizer)
{
  uint32_t count = l->g->nodes.n;
  bool *needed = arena_array(l->arena, bool, count + 1);
  for (uint32_t id = 1; id < count; id++) {
    const Node *n = &l->g->nodes.at[id];
    if (n->op == OP_minimize && attr_int(n, "optimizer") == optimizer) needed[n->in[0].id] = true;
  }
  for (bool more = true; more;) {
    mark_back(l, needed);
    more = false;
    for (uint32_t id = 1; id < count; id++) {
      const Node *n = &l->g->nodes.at[id];
      if (n->op != OP_next || needed[id] || !needed[n->in[0].id]) continue;
      needed[id] = more = true;
    }
  }
  return needed;
}

/* Returns the path of the module of parameter p, or p's own if a loss reaches another parameter of
 * the module. A `model` names its parameters without the "net." that a job with several models puts
 * in front. */
static const char *frozen_path(Lower *l, const Parameter *p, const bool *read)
{
  size_t model = strlen(p->model);
  bool prefixed = l->models.n > 1 && strncmp(p->path, p->model, model) == 0;
  const char *path = p->path + (prefixed && p->path[model] == '.' ? model + 1 : 0);
  const char *dot = strrchr(path, '.');
  size_t n = dot ? (size_t)(dot - p->path) + 1 : 0; /* the module and its dot */
  for (uint32_t i = 0; i < share_params(l->g); i++)
    if (n && read[i] && strncmp(l->g->params.at[i].path, p->path, n) == 0) return path;
  return dot ? arena_strndup(l->arena, path, (size_t)(dot - path)) : path;
}

/* Sets read[i] if a loss of the optimizer reaches entry i, a parameter or a share. If it reaches
 * none, all entries stay: without a `minimize` there are no updates, and with one pass gradient
 * reports what cuts the loss off. */
static void mark_read(Lower *l, const Opt *o, bool *read)
{
  bool *needed = reached(l, o->index), any = false;
  for (uint32_t id = 1; id < l->g->nodes.n; id++) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id] || !ir_parameter(l->g, n) || reads_average(l->g, n)) continue;
    uint32_t entry = share_find(l->g, (uint32_t)attr_int(n, "index"), o->index);
    if (entry != NO_SHARE) read[entry] = any = true;
  }
  for (uint32_t i = 0; i < l->g->params.n; i++)
    if (!any && l->g->params.at[i].optimizer == o->index) read[i] = true;
}

static void warn(Lower *l, const Parameter *p, const bool *read)
{
  diag_warning(l->c, W607, p->span, "no loss reaches `%s`, so `%s` does not train it", p->path,
               l->g->optimizers.at[p->optimizer].name);
  diag_help(l->c, "use it, or write `freeze(\"%s\")` in `model %s`", frozen_path(l, p, read),
            p->model);
}

/* Removes entry i. If a later optimizer of the parameter has a share, the first share that is
 * reached becomes the parameter's own entry. */
static void give_up(Lower *l, uint32_t i, bool *read)
{
  Parameter *p = &l->g->params.at[i];
  p->optimizer = -1;
  p->group = 0;
  for (uint32_t k = share_params(l->g); k < l->g->params.n && p->optimizer < 0; k++) {
    Parameter *share = &l->g->params.at[k];
    if (share->of != (int)i || !read[k]) continue;
    p->optimizer = share->optimizer;
    p->group = share->group;
    read[k] = false;
    read[i] = true;
  }
}

/* Removes the shares that no loss reaches, and those that give_up() has used. */
static void drop_shares(Lower *l, const bool *read)
{
  uint32_t kept = share_params(l->g);
  for (uint32_t k = kept; k < l->g->params.n; k++)
    if (read[k]) l->g->params.at[kept++] = l->g->params.at[k];
  l->g->params.n = kept;
}

/* The average of a weight that nothing changes is the weight. So `.ema()` reads the weight. */
static void read_weights(Lower *l)
{
  for (uint32_t id = 1; id < l->g->nodes.n; id++) {
    Node *n = &l->g->nodes.at[id];
    if (n->op != OP_param || !attr_int(n, "average")) continue;
    if (share_average(l->g, (uint32_t)attr_int(n, "index")) < 0) attr_set_int(n, "average", 0);
  }
}

/* True if the optimizer of an entry keeps an average of a weight that another optimizer trains. The
 * update keeps the average, so the entry stays. */
static bool averages(const Graph *g, uint32_t entry, const bool *read)
{
  const Parameter *p = &g->params.at[entry];
  bool trained = false;
  for (uint32_t i = 0; i < g->params.n; i++)
    trained = trained || (read[i] && share_weight(g, &g->params.at[i]) == share_weight(g, p));
  return trained && p->optimizer >= 0 && g->optimizers.at[p->optimizer].ema;
}

void drop_unreached(Lower *l)
{
  Graph *g = l->g;
  if (l->c->options.watch) return; /* the watched block may lack its `minimize` */
  bool *read = arena_array(l->arena, bool, g->params.n + 1);
  for (uint32_t i = 0; i < l->optimizers.n; i++) mark_read(l, l->optimizers.at[i], read);
  for (uint32_t i = 0; i < g->params.n; i++) read[i] = read[i] || averages(g, i, read);
  for (uint32_t i = 0; i < share_params(g); i++) {
    const Parameter before = g->params.at[i];
    if (read[i] || before.optimizer < 0) continue;
    give_up(l, i, read);
    if (!read[i]) warn(l, &before, read);
  }
  drop_shares(l, read);
  read_weights(l);
}
