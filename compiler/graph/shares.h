/* A parameter that several optimizers update.
 *
 * Note [shares]
 * The parameter belongs to the first of its optimizers, as if there were no other. For each further
 * optimizer the table of parameters has a *share*, after all parameters. A share has its own slots
 * of gradients and moments (`offset` counts elements of these spaces). Its weight is that of the
 * parameter `of`. As a consequence:
 * - The gradients and moments of an optimizer are one interval, whoever else has the parameters.
 * - Each loss adds to the slots of the optimizers that minimize it. When one optimizer is done with
 *   a gradient, the others still have theirs.
 * - Only updates write weights. The weights of shares may lie elsewhere and in several intervals.
 *   Shares whose weights are adjacent in MASTER form a group, with the settings of the group that
 *   they come from.
 * - There is one average of a weight, at the weight's own offset. */
#pragma once
#include "ir.h"

enum { NO_SHARE = UINT32_MAX };

/* The entry of the table through which the optimizer has the parameter: the parameter itself or a
 * share; NO_SHARE: the optimizer does not have it. */
uint32_t share_find(const Graph *g, uint32_t param, int64_t optimizer);
/* The parameter that this entry is, or is a share of. */
static inline const Parameter *share_weight(const Graph *g, const Parameter *p)
{
  return p->of < 0 ? p : &g->params.at[p->of];
}
/* The number of entries that are parameters. Shares follow them. */
uint32_t share_params(const Graph *g);
/* Adds a share: this optimizer updates the parameter, too. */
void share_add(Compile *c, uint32_t param, int optimizer);
/* The optimizer that keeps an average of the parameter; -1: none. */
int share_average(const Graph *g, uint32_t param);
/* Called when all shares are known: sorts them by their weights' order in memory, and makes groups
 * of shares with adjacent weights. */
void shares_settle(Compile *c);
