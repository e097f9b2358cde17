/* See param_parts.h. */
#include "param_parts.h"

/* MOST: the largest number of parts of a group, not counting the partly filled last part of each
 * parameter. A GPU can run that many blocks at once. LEAST: the smallest number of elements that
 * keeps a block of 256 threads busy. */
enum { MOST = 1024, LEAST = 1024 };

static bool belongs(const Parameter *p, int64_t optimizer, uint32_t group)
{
  return !p->buffer && p->optimizer == optimizer && p->group == group;
}

void param_parts_each(const Graph *g, int64_t optimizer, uint32_t group, const ParamParts *parts,
                      EachParam *each, void *data)
{
  int64_t at = 0;
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *p = &g->params.at[i];
    if (!belongs(p, optimizer, group)) continue;
    int64_t n = dims_product(p->dim, p->rank);
    each(p, n, at, data);
    at += (n + parts->size - 1) / parts->size;
  }
}

static void add_elements(const Parameter *p, int64_t elements, int64_t first_part, void *data)
{
  (void)p, (void)first_part;
  *(int64_t *)data += elements;
}

static void add_parts(const Parameter *p, int64_t elements, int64_t first_part, void *data)
{
  ParamParts *parts = data;
  (void)p;
  parts->n = first_part + (elements + parts->size - 1) / parts->size;
  parts->params++;
}

ParamParts param_parts(const Graph *g, int64_t optimizer, uint32_t group)
{
  ParamParts parts = {.size = LEAST};
  int64_t all = 0;
  param_parts_each(g, optimizer, group, &parts, add_elements, &all);
  int64_t of_most = (all + MOST - 1) / MOST;
  if (of_most > LEAST) parts.size = ampc_round_up(of_most, LEAST);
  param_parts_each(g, optimizer, group, &parts, add_parts, &parts);
  if (parts.n == 0) parts.n = 1;
  return parts;
}
