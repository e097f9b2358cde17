/* --emit=params: the parameters of the job under their PyTorch names. Buffers are listed, but they
 * are no parameters and the total leaves them out; a tied parameter counts once. */
#include "emit.h"
#include "compiler/graph/shares.h"

/* A parameter of rank 0 has one element. */
static int64_t elements(const Parameter *p)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < p->rank; i++) n *= p->dim[i];
  return n;
}

static void print_shape(Text *out, const Parameter *p)
{
  text_puts(out, "[");
  for (uint32_t i = 0; i < p->rank; i++)
    text_printf(out, "%s%lld", i ? ", " : "", (long long)p->dim[i]);
  text_puts(out, "]");
}

void emit_params(Compile *c, Text *out)
{
  const Graph *g = c->graph;
  int64_t total = 0;
  for (uint32_t i = 0; i < share_params(g); i++) {
    const Parameter *p = &g->params.at[i];
    text_printf(out, "%s ", p->path);
    print_shape(out, p);
    text_printf(out, " %s%s%s\n", ir_dtype_name(p->dtype), p->buffer ? " buffer" : "",
                p->frozen ? " frozen" : "");
    if (!p->buffer) total += elements(p);
  }
  text_printf(out, "total %lld parameters\n", (long long)total);
}
