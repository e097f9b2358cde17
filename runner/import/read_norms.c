/* Normalization: layers if their weights are tensors of the file, else functions. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "read_ops.h"

static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};

/* ", eps=0.001"; "" if it is the usual one of the layer */
static const char *eps_text(Reader *r, double usual)
{
  double eps = attr_real(r, "epsilon", 1e-5);
  return (float)eps == (float)usual ? "" : text(r, ", eps=%s", float_text(r, eps));
}

/* Calls a layer with weight and bias; `made` is its constructor. */
static void give_layer(Reader *r, const char *made, Value *const *tensor, uint32_t n)
{
  made = layer(r, "norm", made, tensor, names, n);
  give(r, text(r, "%s(%s)", made, whole_ref(r, in(r, 0))));
}

/* Whether both are tensors of the file with one axis of the same size. */
static bool is_vector(const Value *v, const Value *other)
{
  bool tensors = v->kind == VALUE_weight && other->kind == VALUE_weight && !v->turned;
  return tensors && v->tensor->n_dims == 1 && other->tensor->n_dims == 1 &&
         v->tensor->dims[0] == other->tensor->dims[0];
}

/* The layer without weight and bias. layer() takes its path from the name of the first tensor. */
static void give_plain(Reader *r, const char *made, Value *const *statistics)
{
  const char *name = statistics[0]->name, *dot = strrchr(name, '.');
  bool own = dot && strcmp(dot, ".running_mean") == 0;
  if (own) statistics[0]->name = text(r, "%.*s.weight", (int)(dot - name), name);
  made = layer(r, "norm", made, statistics, names + 2, 2);
  statistics[0]->name = name;
  give(r, text(r, "%s(%s)", made, whole_ref(r, in(r, 0))));
}

void read_batch_norm(Reader *r)
{
  Value *tensor[] = {in(r, 1), in(r, 2), in(r, 3), in(r, 4)};
  int64_t rank = rank_of(in(r, 0));
  bool own = true;
  if (others_needed(r)) return refuse(r, "with more than one result");
  for (int i = 0; i < 4; i++) {
    if (!tensor[i]) return refuse(r, text(r, "without input %d", i + 1));
    own = own && is_vector(tensor[i], tensor[0]);
  }
  own = own && is_weight(tensor[0]) && is_weight(tensor[1]);
  bool plain = is_all(tensor[0], 1) && is_zero(tensor[1]) && is_vector(tensor[2], tensor[2]) &&
               is_vector(tensor[3], tensor[2]);
  attribute(
      r, "training_mode"); /* a train block computes the statistics of the batch, others do not */
  const char *more = eps_text(r, 1e-5);
  double momentum =
      nearbyint((1 - attr_real(r, "momentum", 0.9)) * 1e6) / 1e6; /* 1 - 0.9f is not 0.1f */
  if (!own && !plain) {
    const char *all = whole_ref(r, in(r, 0));
    for (int i = 0; i < 4; i++) all = text(r, "%s, %s", all, whole_ref(r, tensor[(i + 2) % 4]));
    return give(r, text(r, "batch_norm(%s%s)", all, more));
  }
  if (momentum != 0.1) more = text(r, "%s, momentum=%s", more, float_text(r, momentum));
  const char *made = text(r, "BatchNorm%dd(%" PRId64 "%s%s)",
                          rank < 4    ? 1
                          : rank == 4 ? 2
                                      : 3,
                          tensor[2]->tensor->dims[0], more, plain ? ", affine=false" : "");
  if (plain)
    give_plain(r, made, tensor + 2);
  else
    give_layer(r, made, tensor, 4);
}

/* Whether both are weights of the file with the same n sizes. */
static bool are_weights(const Value *w, const Value *b, uint32_t n)
{
  bool own = is_weight(w) && (!b || is_weight(b)) && w->tensor->n_dims == n &&
             (!b || b->tensor->n_dims == n);
  for (uint32_t i = 0; own && b && i < n; i++) own = b->tensor->dims[i] == w->tensor->dims[i];
  return own;
}

/* LayerNormalization and RMSNormalization, over the axes from `axis` on. */
void read_layer_norm(Reader *r)
{
  Value *x = in(r, 0), *w = in(r, 1), *b = is_zero(in(r, 2)) ? NULL : in(r, 2);
  bool rms = r->node->op_type[0] == 'R';
  int64_t rank = rank_of(x), axis = axis_of(x, attr_number(r, "axis", -1));
  Item dims[READ_RANK];
  if (others_needed(r)) return refuse(r, "with more than one result");
  if (!w || axis < 0 || axis >= rank) return refuse(r, "over an axis that is out of range");
  uint32_t n = (uint32_t)(rank - axis);
  bool own = are_weights(w, b, n);
  for (uint32_t i = 0; i < n; i++)
    dims[i] = own ? (Item){.n = w->tensor->dims[i]} : item_of_size(r, x, axis + i);
  const char *more = eps_text(r, rms ? -1 : 1e-5), *shape = list_text(r, dims, n),
             *name = rms ? "RMSNorm" : "LayerNorm";
  if (n > 1 || !own) shape = text(r, "[%s]", shape);
  if (own)
    return give_layer(r, text(r, "%s(%s%s%s)", name, shape, more, b || rms ? "" : ", bias=false"),
                      (Value *const[]){w, b}, rms ? 1 : 2);
  const char *bias = b ? text(r, ", %s", whole_ref(r, b)) : "";
  give(r, text(r, "%s(%s, %s, %s%s%s)", rms ? "rms_norm" : "layer_norm", whole_ref(r, x), shape,
               whole_ref(r, w), bias, more));
}

/* GroupNormalization, and InstanceNormalization: a group for each channel. */
void read_group_norm(Reader *r)
{
  Value *x = in(r, 0), *w = in(r, 1), *b = in(r, 2);
  bool instance = r->node->op_type[0] == 'I';
  int64_t rank = rank_of(x), channels = 0, groups = attr_number(r, "num_groups", 1);
  const char *more = eps_text(r, 1e-5);
  if (!w || !b || rank < 2 || !size_of(w, 0, &channels))
    return refuse(r, "without weight and bias, or of a tensor without channels");
  if (!instance && r->opset < 21) return refuse(r, "before opset 21");
  if (is_weight(w) && is_weight(b) && instance && rank > 2 && rank < 6)
    return give_layer(
        r, text(r, "InstanceNorm%dd(%" PRId64 "%s, affine=true)", (int)rank - 2, channels, more),
        (Value *const[]){w, b}, 2);
  if (is_weight(w) && is_weight(b) && !instance)
    return give_layer(r, text(r, "GroupNorm(%" PRId64 ", %" PRId64 "%s)", groups, channels, more),
                      (Value *const[]){w, b}, 2);
  give(r, text(r, "group_norm(%s, %" PRId64 ", %s, %s%s)", whole_ref(r, x),
               instance ? channels : groups, whole_ref(r, w), whole_ref(r, b), more));
}

/* A layer if the weight is one slope, or one for each channel; elsewhere the slope is broadcast. */
void read_prelu(Reader *r)
{
  Value *x = in(r, 0), *w = in(r, 1);
  int64_t rank = rank_of(x), n;
  bool channels = is_weight(w) && w->tensor->n_dims == 1;
  if (channels && rank > 2) channels = w->slopes || w->tensor->dims[0] == 1;
  if (channels && rank > 1 && size_of(w, 0, &n)) {
    const char *made = text(r, n == 1 ? "PReLU()" : "PReLU(%" PRId64 ")", n);
    made = layer(r, "prelu", made, &w, names, 1);
    return give(r, text(r, "%s(%s)", made, whole_ref(r, x)));
  }
  const char *of = operand(r, 0);
  give(r, text(r, "where(%s > 0, %s, %s * %s)", of, of, of, operand(r, 1)));
}
