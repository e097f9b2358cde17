/* Part of pass layout: pads the channels of images for tensor cores.
 *
 * Tensor cores load vectors of 16 bytes. Libraries compute a convolution of 3 channels slowly. So
 * images and weights get more channels, all 0:
 *
 *   conv2d         x and w are padded, which adds zeros to each sum
 *   conv2d_data    w is padded; a slice drops the channels of the padding
 *
 * The gradient of a weight keeps its channels. With padding, cuDNN 9.14 has an engine for it, but
 * for the first layer of ResNet-50 (batch 128, H200) that takes 2.5 ms, and our own kernel 1.1 ms.
 * Only nodes change: parameters and values of the language keep their shapes. */
#include "compiler/base/target.h"
#include "compiler/command/command.h"
#include "layout.h"

typedef struct Pads {
  Compile *c;
  Rewrite r;
  Value *padded; /* old id of an image or weight -> it with more channels; 0: none yet */
} Pads;

/* Returns how many channels the images or weight in input 1 of convolution n lack. */
static int64_t missing(Compile *c, const Node *n)
{
  if (op_of(n)->tmpl != TMPL_conv || op_has(n, T_gives_weight)) return 0;
  if (attr_int(n, "groups") > 1) return 0;
  const Node *x = ir_in(c, n, 1);
  bool tensor = ampc_is_narrow(x->dtype) || (ir_is_tf32(c, n) && !c->options.real64);
  if (!tensor) return 0;
  int64_t whole = TENSOR_ALIGNMENT / ir_dtype_size(c, x->dtype), left = x->dim[x->rank - 1] % whole;
  return left ? whole - left : 0;
}

static Value append(Pads *p, Value v, OpKind op, const NamedAttr *attrs)
{
  Cursor at = ir_cursor_of(p->c->graph, v);
  at.why = WHY_follow;
  Value out = ir_append(p->c, &at, op, &v, 1, attrs);
  ir_node(p->c->graph, out)->layout = LAYOUT_channels_last;
  return out;
}

/* Returns input k of the convolution with `more` channels, padded once for all its readers. */
static Value padded(Pads *p, const Node *old, uint32_t k, int64_t more)
{
  Value *known = &p->padded[old->in[k].id], v = p->r.map[old->in[k].id];
  int64_t axis = p->r.old[old->in[k].id].rank - 1;
  if (!known->id)
    *known = append(p, v, OP_pad,
                    ATTRS({"dim", {.i = axis}}, {"before", {.i = 0}}, {"after", {.i = more}}));
  return *known;
}

/* Adds convolution n with more channels. If its result has them, a slice drops them. */
static void add_padded(Pads *p, uint32_t id, Node *n, int64_t more)
{
  const Node *old = &p->r.old[id];
  bool forward = !op_has(n, T_gives_image);
  n->in[1] = padded(p, old, 1, more);
  if (forward) n->in[0] = padded(p, old, 0, more);
  ir_infer(p->c, n);
  n->dtype = old->dtype;
  Value v = ir_rewrite_add(&p->r, id, n);
  if (forward) return;
  int64_t axis = old->rank - 1;
  p->r.map[id] =
      append(p, v, OP_slice,
             ATTRS({"dim", {.i = axis}}, {"start", {.i = 0}}, {"stop", {.i = old->dim[axis]}}));
}

void pad_channels(Compile *c)
{
  Pads p = {.c = c, .padded = arena_array(c->arena, Value, c->graph->nodes.n)};
  if (is_cpu_target(c)) return;
  ir_rewrite_begin(&p.r, c);
  for (uint32_t id = 1; id < p.r.n_old; id++) {
    Node n = ir_rewrite_mapped(&p.r, id);
    int64_t more = missing(c, &n);
    if (more)
      add_padded(&p, id, &n, more);
    else
      ir_rewrite_add(&p.r, id, &n);
  }
}
