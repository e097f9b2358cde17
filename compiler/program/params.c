/* Prints --emit=params: the parameters of the job under their PyTorch names. Buffers are listed but
 * are not parameters, so the total does not count them. A tied parameter counts once. */
#include "program.h"
#include "compiler/graph/shares.h"

void emit_params(Compile *c, Text *out)
{
  const Graph *g = c->graph;
  int64_t total = 0;
  for (uint32_t i = 0; i < share_params(g); i++) {
    const Parameter *p = &g->params.at[i];
    text_printf(out, "%s %s %s%s%s\n", p->path, ir_sizes_text(c->arena, p->dim, p->rank),
                p->packing ? ampc_packing_name(p->packing) : ir_dtype_name(p->dtype),
                param_is_state(p) ? " buffer" : "", p->frozen ? " frozen" : "");
    if (!param_is_state(p)) total += dims_product(p->dim, p->rank);
  }
  text_printf(out, "total %lld parameters\n", (long long)total);
}
