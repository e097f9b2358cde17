/* Splits a group of parameters into parts for the norms of single parameters. No part contains
 * elements of two parameters. One kernel processes all parts, however many parameters there are. */
#pragma once
#include "ir.h"

typedef struct ParamParts {
  int64_t size;    /* elements of a part; the last part of a parameter may have fewer */
  int64_t n;       /* number of parts, at least 1 */
  uint32_t params; /* parameters of the group */
} ParamParts;

/* Computes the parts from the shapes only, so sums have the same order on every machine. */
ParamParts param_parts(const Graph *g, int64_t optimizer, uint32_t group);
/* Calls `each` for the parameters of the group in memory order, with the number of their elements
 * and the index of their first part. */
typedef void EachParam(const Parameter *p, int64_t elements, int64_t first_part, void *data);
void param_parts_each(const Graph *g, int64_t optimizer, uint32_t group, const ParamParts *parts,
                      EachParam *each, void *data);
