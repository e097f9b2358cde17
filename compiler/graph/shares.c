/* See Note [shares] in shares.h. */
#include "shares.h"
#include "ops.h"

uint32_t share_params(const Graph *g)
{
  uint32_t i = g->params.n;
  while (i > 0 && g->params.at[i - 1].of >= 0) i--;
  return i;
}

uint32_t share_find(const Graph *g, uint32_t param, int64_t optimizer)
{
  if (g->params.at[param].optimizer == optimizer) return param;
  for (uint32_t i = g->params.n; i-- > 0 && g->params.at[i].of >= 0;)
    if (g->params.at[i].of == (int)param && g->params.at[i].optimizer == optimizer) return i;
  return NO_SHARE;
}

void share_add(Compile *c, uint32_t param, int optimizer)
{
  Parameter share = c->graph->params.at[param];
  share.of = (int)param;
  share.optimizer = optimizer;
  share.group = 0;
  vec_push(c->arena, &c->graph->params, share);
}

int share_average(const Graph *g, uint32_t param)
{
  int optimizer = g->params.at[param].optimizer;
  if (optimizer >= 0 && g->optimizers.at[optimizer].ema) return optimizer;
  for (uint32_t i = g->params.n; i-- > 0 && g->params.at[i].of >= 0;)
    if (g->params.at[i].of == (int)param && g->optimizers.at[g->params.at[i].optimizer].ema)
      return g->params.at[i].optimizer;
  return -1;
}

/* ---- groups of adjacent weights ---- */

/* True if share a precedes b: by optimizer and group, then by the place of their weights. */
static bool stands_before(const Graph *g, const Parameter *a, const Parameter *b)
{
  const Parameter *v = &g->params.at[a->of], *w = &g->params.at[b->of];
  if (a->optimizer != b->optimizer) return a->optimizer < b->optimizer;
  if (a->group != b->group) return a->group < b->group;
  if (v->optimizer != w->optimizer) return v->optimizer < w->optimizer;
  if (v->group != w->group) return v->group < w->group;
  return a->of < b->of;
}

static void sort(Graph *g, uint32_t first)
{
  for (uint32_t i = first + 1; i < g->params.n; i++) {
    Parameter p = g->params.at[i];
    uint32_t at = i;
    for (; at > first && stands_before(g, &p, &g->params.at[at - 1]); at--)
      g->params.at[at] = g->params.at[at - 1];
    g->params.at[at] = p;
  }
}

/* True if shares a and b have the same optimizer and group, and their weights are adjacent. */
static bool lie_together(const Graph *g, const Parameter *a, const Parameter *b)
{
  const Parameter *v = &g->params.at[a->of], *w = &g->params.at[b->of];
  if (a->optimizer != b->optimizer || a->group != b->group || v->optimizer != w->optimizer ||
      v->group != w->group)
    return false;
  for (int i = a->of + 1; i < b->of; i++) {
    const Parameter *p = &g->params.at[i];
    if (!p->buffer && p->optimizer == v->optimizer && p->group == v->group) return false;
  }
  return true;
}

void shares_settle(Compile *c)
{
  Graph *g = c->graph;
  uint32_t first = share_params(g), begin = first;
  sort(g, first);
  for (uint32_t i = first; i < g->params.n; i++) {
    if (i + 1 < g->params.n && lie_together(g, &g->params.at[i], &g->params.at[i + 1])) continue;
    Optimizer *o = &g->optimizers.at[g->params.at[i].optimizer];
    ParamGroup group = o->groups.at[g->params.at[i].group];
    group.shared = true;
    for (; begin <= i; begin++) g->params.at[begin].group = o->groups.n;
    vec_push(c->arena, &o->groups, group);
  }
}

bool reads_average(const Graph *g, const Node *param)
{
  bool trains = g->blocks.n && g->blocks.at[param->block].kind == AMPC_TRAIN;
  if (trains) return attr_int(param, "average");
  return share_average(g, (uint32_t)attr_int(param, "index")) >= 0;
}
