/* Convolutions and their gradients as vendor libraries take them: x is the images of the large
 * side, w the weight, y the images of the small side. Any of them can be the result. Since pass
 * layout, all images are [n, h, w, c]. */
#include "command_parts.h"
#include "compiler/rules/rules.h"
#include "runtime/plan/conv_columns.h"
#include <string.h>

enum { X, W, BIAS, Y }; /* of Command.operands */

/* Finds x, w and y among v and its inputs. The gradient of the images and a transposed convolution
 * write x; the gradient of the weight writes w. */
static void find_operands(const Node *n, Value v, Command *out)
{
  bool data = op_has(n, T_gives_image), weight = op_has(n, T_gives_weight);
  Value dy = n->in[0];
  const Value of_data[] = {v, n->in[1], {0}, dy}, of_weight[] = {n->in[1], v, {0}, dy};
  const Value forward[] = {n->in[0], n->in[1], n->in[2], v};
  memcpy(out->operands, data ? of_data : weight ? of_weight : forward, sizeof out->operands);
  out->result = data ? X : weight ? W : Y;
  out->conv.kind = data ? AMPC_CONV_DATA : weight ? AMPC_CONV_WEIGHT : AMPC_CONV_FORWARD;
}

/* Sets the sizes: c and those of x, k and those of y. The weight is [k, kernel.., c / groups]. */
static void set_sizes(const Graph *g, const Value operands[4], const Node *n, ampc_conv *d)
{
  ImageDims x = ir_image_dims(ir_node(g, operands[X])), y = ir_image_dims(ir_node(g, operands[Y]));
  ImageDims w = ir_image_dims(ir_node(g, operands[W]));
  d->n = x.n;
  d->c = x.c;
  d->k = y.c;
  d->groups = attr_int(n, "groups");
  d->spatial = x.spatial;
  for (uint32_t i = 0; i < x.spatial; i++) {
    Window window = rule_window(n, i, w.size[i]);
    d->in[i] = x.size[i];
    d->kernel[i] = window.kernel;
    d->out[i] = y.size[i];
    d->stride[i] = window.stride;
    d->pad[i] = window.pad;
    d->dilation[i] = window.dilation;
  }
}

/* Sets grid and block of the kernel for CUDA. A convolution that no library computes runs in one of
 * two ways: a kernel writes the columns of some images at a time and a product multiplies them, or
 * a kernel computes everything. The device allocates scratch when it knows which way it uses. A 1x1
 * convolution is `direct`: its images already are the columns. */
static void set_cuda(Compile *c, ampc_conv *d)
{
  bool real64 = c->options.real64;
  int64_t n = ampc_conv_kernel_elements(d, real64);
  ConvColumns t = ampc_conv_columns(d, real64);
  if (t.direct || n == 0) return;
  Geometry at = elements_geometry(n / t.vector);
  d->grid = at.grid;
  d->block = at.block;
}

void set_convolution(Compile *c, uint32_t group, Command *out)
{
  const Graph *g = c->graph;
  Value v = g->groups.at[group].anchor;
  const Node *n = ir_node(g, v);
  ampc_conv *d = &out->conv;
  find_operands(n, v, out);
  set_sizes(g, out->operands, n, d);
  d->x_type = ir_node(g, out->operands[X])->dtype;
  d->w_type = ir_node(g, out->operands[W])->dtype;
  d->y_type = ir_node(g, out->operands[Y])->dtype;
  d->has_bias = out->operands[BIAS].id != 0;
  d->bias_type = d->has_bias ? ir_node(g, out->operands[BIAS])->dtype : AMPC_F32;
  d->tf32 = ir_is_tf32(c, n);
  d->accumulate = n->place.space == AMPC_GRAD;
  if (is_cpu_target(c))
    d->workspace = ampc_conv_workspace_cpu(d, c->options.real64);
  else
    set_cuda(c, d);
  out->accumulates = d->accumulate;
  out->workspace = d->workspace;
}
