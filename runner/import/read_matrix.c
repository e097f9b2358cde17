/* Small integer matrices: PyTorch's older exporter turns its list of pads around as a matrix, [[3,
 * 4], [1, 2]]. */
#include <string.h>
#include "read_ops.h"

static bool is_matrix(const Value *v)
{
  return v && v->kind == VALUE_weight && v->rows &&
         v->type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 && v->tensor->n_dims == 2;
}

static void give_matrix(Reader *r, const int64_t *at, int64_t rows, int64_t columns)
{
  size_t bytes = (size_t)(rows * columns) * sizeof *at;
  const Value *made = made_tensor(r, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, bytes,
                                  (const int64_t[]){rows, columns}, 2);
  memcpy(made->tensor->raw_data.data, at, bytes);
  give_rows(r, made);
}

/* items.reshape(-1, 2), and matrix.reshape(-1) */
static bool reshape(Reader *r, const Value *x, const Value *shape)
{
  int64_t all[MOST_ITEMS], n;
  if (!is_known(shape)) return false;
  if (is_matrix(x) && shape->n == 1 && shape->item[0].n == -1) {
    n = tensor_elements(x->tensor);
    Item *to = arena_array(r->arena, Item, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) to[i].n = tensor_int(x->tensor, i);
    return give_items(r, to, (uint32_t)n, false), true;
  }
  if (!is_known(x) || shape->n != 2 || shape->item[0].n != -1 || shape->item[1].n < 1 || x->n == 0)
    return false;
  if (x->n > MOST_ITEMS || x->n % shape->item[1].n != 0) return false;
  for (uint32_t i = 0; i < x->n; i++) all[i] = x->item[i].n;
  return give_matrix(r, all, x->n / shape->item[1].n, shape->item[1].n), true;
}

bool read_matrix(Reader *r)
{
  const Value *x = in(r, 0);
  const char *op = r->node->op_type;
  int64_t all[MOST_ITEMS];
  if (strcmp(op, "Reshape") == 0 && in(r, 1)) return reshape(r, x, in(r, 1));
  if (!is_matrix(x) || tensor_elements(x->tensor) > MOST_ITEMS) return false;
  int64_t rows = x->tensor->dims[0], columns = x->tensor->dims[1];
  bool flips = strcmp(op, "Slice") == 0 && is_known(in(r, 4)) && in(r, 4)->item[0].n == -1 &&
               is_known(in(r, 3)) && in(r, 3)->item[0].n == 0 && is_known(in(r, 1)) &&
               in(r, 1)->item[0].n == -1;
  bool turns = strcmp(op, "Transpose") == 0;
  Item *order;
  uint32_t n;
  if (turns) turns = attr_list(r, "perm", &order, &n) && n == 2 && order[0].n == 1;
  if (!flips && !turns) return false;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      all[turns ? k * rows + i : (rows - 1 - i) * columns + k] =
          tensor_int(x->tensor, i * columns + k);
  give_matrix(r, all, turns ? columns : rows, turns ? rows : columns);
  return true;
}
