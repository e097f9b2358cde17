/* Reports W409, sizes that make tensor cores slow (if that matters), and W410, integers and sums
 * beyond the range of f16. Pass precision warns about numbers in the text (W408). */
#include <math.h>
#include "explain.h"
#include "runtime/plan/types.h"

/* ---- sizes ---- */

static void warn_sizes(Explanation *e)
{
  Compile *c = e->c;
  const ExplainBlock *b = &e->blocks.at[0];
  for (uint32_t i = 0; i < b->sizes.n; i++) {
    const ExplainSize *s = &b->sizes.at[i];
    const Node *n = ir_node(c->graph, s->value);
    diag_warning(c, W409, n->span,
                 "%lld elements of %s are no multiple of 16 bytes, so tensor cores are slow here",
                 (long long)s->size, ir_dtype_name(s->type));
    diag_help(c, "with %lld a step would be %s shorter on %s", (long long)s->padded,
              time_text(c->arena, s->saves), e->gpu->name);
  }
}

/* ---- the range of narrow types ---- */

/* Warns about integers that may overflow: arange(100000).to(f16). Returns true if it warned. */
static bool warn_integers(Explanation *e, const Node *n)
{
  Compile *c = e->c;
  const ampc_type *type = ampc_type_of(n->dtype);
  if (!op_has(n, T_casts) || !ampc_is_narrow(n->dtype)) return false;
  const Node *from = ir_in(c, n, 0);
  if (dtype_is_float(from->dtype) || from->dtype == AMPC_BOOL) return false;
  Interval r = integer_range(c, n->in[0]);
  double most = fmax(fabs(r.low), fabs(r.high));
  if (isinf(most) || most < type->overflow) return false;
  diag_warning(c, W410, n->span, "integers up to %.0f become %s, whose largest number is %s", most,
               type->name, type->greatest_text);
  diag_help(c, "`.to(f32)`");
  return true;
}

/* Warns about a sum in 16 bits that overflows unless the mean of its numbers is below 1. */
static bool warn_sum(Explanation *e, const Node *n)
{
  Compile *c = e->c;
  const ampc_type *type = ampc_type_of(n->dtype);
  if (!ampc_is_narrow(n->dtype) || !op_has(n, T_sums) || op_of(n)->code.uses_length) return false;
  const Node *x = ir_in(c, n, 0);
  int64_t of = ir_elements(n) ? ir_elements(x) / ir_elements(n) : 0;
  if ((double)of <= type->greatest) return false;
  diag_warning(c, W410, n->span, "a sum of %lld numbers is stored as %s, whose largest is %s",
               (long long)of, type->name, type->greatest_text);
  diag_help(c, "`.to(f32)` before the sum");
  return true;
}

/* Warns once for each location: loops and backward create several nodes for one line. */
static void warn_range(Explanation *e)
{
  const Graph *g = e->c->graph;
  VEC(Span) said = {0};
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    Span span = diag_user_span(e->c, n->span);
    bool known = n->origin.id != 0;
    for (uint32_t i = 0; i < said.n && !known; i++) known = said.at[i].start == span.start;
    if (known || !(warn_integers(e, n) || warn_sum(e, n))) continue;
    vec_push(e->c->arena, &said, span);
  }
}

void explain_warn(Explanation *e)
{
  if (!e->blocks.n) return;
  warn_sizes(e);
  warn_range(e);
}
