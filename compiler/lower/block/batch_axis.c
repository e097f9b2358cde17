/* Warns about data blocks that combine the samples of a batch: W612. Their authors take axis 0 for
 * all samples of the file; so a mean over it changes with each batch, and a slice leaves samples
 * out. */
#include "block.h"
#include <string.h>

/* Whether axis 0 of the result counts the samples of the batch, as axis 0 of input `from` does. */
static bool keeps_batch(const Node *n, const Node *from)
{
  return n->rank && n->dim[0] == from->dim[0] && !op_has(n, T_permutes);
}

/* Whether the op works along axis 0 of input 0, or selects from it. */
static bool works_along_batch(const Node *n)
{
  uint32_t i;
  if (op_has(n, T_permutes | T_repeats)) return false;
  if (!attr_find(op_of(n), "dim", &i) && !attr_find(op_of(n), "axis", &i)) return false;
  if (op_of(n)->signature.attr[i].kind == ATTR_axis) return n->attr[i].i == 0;
  return n->attr[i].i == 0 || n->attr[i].i & 1; /* a mask; 0: all axes */
}

static bool warn(Lower *l, const Node *n)
{
  bool part = op_has(n, T_strided) || n->op == op_named("index_select");
  diag_warning(l->c, W612, n->span,
               part
                   ? "axis 0 in a data block is the batch, so this takes some samples of each batch"
                   : "axis 0 in a data block is the batch, so this is computed from each batch, "
                     "not from the "
                     "file");
  if (part)
    return diag_help(l->c, "rows of a series: `window=25` in the source makes samples of 25 rows; "
                           "axis 1 then counts rows, as in x[:, 0:24]");
  return diag_help(l->c, "put `Standardize(n)` in front of the net: it uses mean and standard "
                         "deviation of n columns over all training samples");
}

void check_batch_axis(Lower *l, uint32_t first)
{
  uint32_t n = l->g->nodes.n;
  OpKind cat = op_named("cat");
  bool *batch = arena_array(l->arena, bool, n), *joined = arena_array(l->arena, bool, n);
  memset(batch, 0, n * sizeof *batch);
  memset(joined, 0, n * sizeof *joined);
  /* roll() slices the batch and joins its parts again. */
  for (uint32_t id = first; id < n; id++) {
    const Node *x = ir_node(l->g, (Value){id});
    for (uint32_t i = 0; i < x->n_in && x->op == cat && works_along_batch(x); i++)
      joined[x->in[i].id] = true;
  }
  for (uint32_t id = first; id < n; id++) {
    const Node *x = ir_node(l->g, (Value){id});
    batch[id] = x->op == OP_source;
    for (uint32_t i = 0; i < x->n_in && !batch[id]; i++) {
      if (!x->in[i].id || !batch[x->in[i].id]) continue;
      batch[id] = keeps_batch(x, ir_in(l->c, x, i));
      if (!batch[id] && !i && !joined[id] && works_along_batch(x)) warn(l, x);
    }
  }
}
