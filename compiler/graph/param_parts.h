/* What norms of single parameters ask for: a group of parameters cut into parts, of which none has
 * elements of two. One kernel walks them all, however many parameters there are. */
#pragma once
#include "ir.h"

typedef struct ParamParts {
  int64_t size;    /* elements of a part; the last one of a parameter may have fewer */
  int64_t n;       /* parts, 1 at least */
  uint32_t params; /* of the group */
} ParamParts;

/* They follow from the shapes alone, so sums over them have one order on every machine. */
ParamParts param_parts(const Graph *g, int64_t optimizer, uint32_t group);
/* Calls `each` for the parameters of the group in the order in which they lie, with their elements
 * and the first of their parts. */
typedef void EachParam(const Parameter *p, int64_t elements, int64_t first_part, void *data);
void param_parts_each(const Graph *g, int64_t optimizer, uint32_t group, const ParamParts *parts,
                      EachParam *each, void *data);
