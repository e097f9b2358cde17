/* A parameter that several optimizers update.
 *
 * Note [shares]
 * The parameter belongs to the first of its optimizers, as if it had no other. For each further
 * optimizer the table of parameters has a *share*, after all parameters. A share has its own
 * gradients and moments (`offset` counts elements of these spaces). It has no weight of its own:
 * `of` is the parameter with the weight. As a consequence:
 * - The gradients and moments of an optimizer are one interval, even if its parameters are shared.
 * - Each loss adds to the slots of the optimizers that minimize it. When one optimizer
 *   clears its gradient, the others still have theirs.
 * - Only updates write weights. The weights of an optimizer's shares may be in several intervals of
 *   MASTER. Shares whose weights are adjacent form a group, with the settings of the group that
 *   they come from.
 * - A weight has one average, at the weight's own offset. */
#pragma once
#include "ir.h"

enum { NO_SHARE = UINT32_MAX };

/* Returns the entry through which the optimizer updates the parameter: the parameter itself or a
 * share; NO_SHARE if it does not update the parameter. */
uint32_t share_find(const Graph *g, uint32_t param, int64_t optimizer);
/* Returns the parameter that has the weight: p itself, or the parameter of which p is a share. */
static inline const Parameter *share_weight(const Graph *g, const Parameter *p)
{
  return p->of < 0 ? p : &g->params.at[p->of];
}
/* Returns the number of entries that are parameters. Shares follow them. */
uint32_t share_params(const Graph *g);
/* Adds a share, so that this optimizer also updates the parameter. */
void share_add(Compile *c, uint32_t param, int optimizer);
/* Returns the optimizer that keeps an average of the parameter; -1: none. */
int share_average(const Graph *g, uint32_t param);
/* True if eval and infer blocks read the optimizer's running average in place of this parameter. */
bool reads_average(const Graph *g, const Node *param);
/* Sorts the shares by the order of their weights in memory, and makes groups of shares with
 * adjacent weights. Called when all shares are known. */
void shares_settle(Compile *c);
