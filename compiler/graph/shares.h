/* A parameter that several optimizers update.
 *
 * Note [shares] It belongs to the first of them, as if there were no other. For each further one
 * the table of parameters has a *share*, behind all parameters: slots of gradients and moments of
 * its own (`offset` counts elements of these spaces) and the weight of the parameter `of`. So what
 * an optimizer looks at, its gradients and moments, is one interval whoever else has the
 * parameters, each loss adds to the slots of those that minimize it, and a gradient that one
 * optimizer has done with is still there for the other. Only updates write weights, and these may
 * lie elsewhere and not in one piece: shares that lie together in MASTER are a group of parameters
 * with the settings of that which they are of. There is one average of a weight, where the weight
 * has its place. */
#pragma once
#include "ir.h"

enum { NO_SHARE = UINT32_MAX };

/* The entry of the table by which the optimizer has the parameter: the parameter itself, or a share
 * of it; NO_SHARE: it does not have it. */
uint32_t share_find(const Graph *g, uint32_t param, int64_t optimizer);
/* The parameter that an entry of the table is, or is a share of. */
static inline const Parameter *share_weight(const Graph *g, const Parameter *p)
{
  return p->of < 0 ? p : &g->params.at[p->of];
}
/* How many entries of the table are parameters: shares are behind them. */
uint32_t share_params(const Graph *g);
/* The optimizer has the parameter, too. */
void share_add(Compile *c, uint32_t param, int optimizer);
/* The optimizer that keeps averages of the parameter; -1: none. */
int share_average(const Graph *g, uint32_t param);
/* When all are known: puts shares in the order of their weights, and makes groups of those that lie
 * together. */
void shares_settle(Compile *c);
