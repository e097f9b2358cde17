/* The weights of LSTM, GRU and RNN: those of ONNX with the gates in the order of jobs. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

/* Gate i of jobs is gate order[i] of ONNX. */
typedef struct Kind {
  const char *stem;
  int64_t gates, order[4];
} Kind;
static const Kind kinds[] = {{"lstm", 4, {0, 2, 3, 1}}, /* i o f c; jobs: i f g o */
                             {"gru", 3, {1, 0, 2}},     /* z r h; jobs: r z n */
                             {"rnn", 1, {0}}};

Value *made_tensor(Reader *r, int32_t type, size_t bytes, const int64_t *dims, size_t n)
{
  OnnxTensor *t = arena_new(r->arena, OnnxTensor);
  onnx__tensor_proto__init(t);
  t->data_type = type;
  t->n_dims = n;
  t->dims = arena_array(r->arena, int64_t, n + 1);
  memcpy(t->dims, dims, n * sizeof *dims);
  t->raw_data =
      (ProtobufCBinaryData){bytes, arena_alloc(r->arena, bytes + 1, _Alignof(max_align_t))};
  Value *v = arena_new(r->arena, Value);
  *v = (Value){.name = "", .kind = VALUE_weight, .type = type, .tensor = t};
  v->shape = fixed_shape(r, dims, (uint32_t)n);
  return v;
}

/* Rows of a tensor from `from` on, with the gates in the order of jobs. columns 0: a vector */
static Value *gates_of(Reader *r, const Kind *kind, const OnnxTensor *t, int64_t from,
                       int64_t hidden, int64_t columns)
{
  int64_t elements = tensor_elements(t), dims[] = {kind->gates * hidden, columns};
  size_t size = t->raw_data.len / (size_t)elements * (size_t)(columns ? columns : 1);
  Value *v = made_tensor(r, t->data_type, (size_t)dims[0] * size, dims, columns ? 2 : 1);
  for (int64_t g = 0; g < kind->gates; g++)
    memcpy(v->tensor->raw_data.data + (size_t)(g * hidden) * size,
           t->raw_data.data + (size_t)(from + kind->order[g] * hidden) * size,
           (size_t)hidden * size);
  return v;
}

const char *cells_layer(Reader *r, const char *stem, const char *made, Value *const *weights)
{
  static const char *const names[] = {
      "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
      "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"};
  const Value *w = weights[0], *b = weights[2];
  const char *used[8], *around = scope_path(r), *path;
  const Kind *kind = kinds;
  while (strcmp(kind->stem, stem) != 0) kind++;
  int64_t rows = w->tensor->dims[1], hidden = rows / kind->gates;
  uint32_t n = 0;
  /* a second call has the same tensors */
  void **known =
      names_at(&r->cells, text(r, "%u %u %u %s", w->id, weights[1]->id, b ? b->id : 0, made));
  if (*known) return layer(r, "cells", made, *known, NULL, 0);
  Value **tensor = arena_array(r->arena, Value *, 8);
  *known = tensor;
  for (int64_t d = 0; d < w->tensor->dims[0]; d++)
    for (int64_t i = 0; i < (b ? 4 : 2); i++) {
      int64_t from = i < 2 ? d * rows : (2 * d + i - 2) * rows, columns = i == 0
                                                                              ? w->tensor->dims[2]
                                                                          : i == 1 ? hidden
                                                                                   : 0;
      tensor[n] = gates_of(r, kind, weights[i < 2 ? i : 2]->tensor, from, hidden, columns);
      used[n++] = names[4 * d + i];
    }
  path = *around ? around : stem;
  const char *first = path;
  for (int i = 1; names_get(&r->paths, path); i++) path = text(r, "%s_l%d", first, i);
  tensor[0]->name = text(r, "%s.weight", path);
  return layer(r, "cells", made, tensor, used, n);
}
