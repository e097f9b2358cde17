/* Ops that repeat, pad, select, place or order elements. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

/* ---- shapes ---- */

void read_tile(Reader *r)
{
  const Value *counts = in(r, 1);
  if (!counts || counts->kind != VALUE_items) return refuse(r, "with computed counts");
  give(r, text(r, "%s.repeat(%s)", whole_ref(r, in(r, 0)), list_text(r, counts->item, counts->n)));
}

/* A list of n equal integers, whose number is known when the job compiles. */
static void give_equal_items(Reader *r, int64_t number, const Value *shape, int32_t type)
{
  int64_t n = shape->n ? shape->item[0].n : 1;
  Item *to = arena_array(r->arena, Item, (size_t)n + 1);
  for (int64_t i = 0; i < n; i++) to[i].n = number;
  give_shaped_items(r, to, &n, shape->n, type);
}

/* `value` is a tensor of one element; without it, f32 0. */
void read_constant_of_shape(Reader *r)
{
  const Value *shape = in(r, 0), *y = result(r, 0);
  const OnnxAttribute *a = attribute(r, "value");
  if (shape->kind != VALUE_items || shape->n > READ_RANK)
    return refuse(r, "with a computed shape, or one of more than 6 axes");
  if (a && a->t && tensor_load(r, a->t)) return refuse(r, ampc_last_error());
  if (a && (!a->t || tensor_elements(a->t) != 1))
    return refuse(r, "with a value that is not one number");
  int32_t type = a ? a->t->data_type : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  if (y) r->values.at[y->id]->type = type;
  if (onnx_is_float(type))
    return give_number(r, a ? tensor_real(a->t, 0) : 0, shape->item, shape->n);
  bool list = shape->n < 2 && is_known(shape);
  for (uint32_t i = 0; i < shape->n; i++)
    list = list && shape->item[i].n >= 0 && shape->item[i].n <= MOST_ITEMS;
  if (list) return give_equal_items(r, tensor_int(a->t, 0), shape, type);
  give(r, text(r, "full([%s], %" PRId64 ", dtype=%s)", list_text(r, shape->item, shape->n),
               tensor_int(a->t, 0), type_word(type)));
}

/* The mode of `pad`; NULL after refusing. */
static const char *pad_mode(Reader *r)
{
  static const char *const modes[][2] = {
      {"constant", ""}, {"reflect", "reflect"}, {"edge", "replicate"}, {"wrap", "circular"}};
  const char *mode = attr_word(r, "mode", "constant");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(modes[i][0], mode) == 0) return modes[i][1];
  return refuse(r, text(r, "with mode=%s", mode)), NULL;
}

/* Pads all axes, or those that input 3 lists. Jobs count from the last axis. */
void read_pad(Reader *r)
{
  Value *x = in(r, 0), *fill = in(r, 2);
  Item *at, *axes, pairs[2 * READ_RANK] = {{0}};
  const char *all = "", *mode = pad_mode(r);
  uint32_t n, n_axes, last = 0;
  int64_t rank = rank_of(x);
  if (!mode || !read_list(r, 1, "pads", &at, &n)) return;
  bool some = read_axes(r, 3, &axes, &n_axes);
  if (n != 2 * (some ? n_axes : rank)) return refuse(r, "without two pads for each axis");
  for (uint32_t i = 0; i < n / 2; i++) {
    int64_t axis = some ? axis_of(x, axes[i].n) : i;
    if (axis < 0 || axis >= rank) return refuse(r, "along an axis that is out of range");
    uint32_t pair = (uint32_t)(rank - 1 - axis);
    pairs[2 * pair] = at[i];
    pairs[2 * pair + 1] = at[n / 2 + i];
    bool moves = at[i].text || at[i].n || at[n / 2 + i].text || at[n / 2 + i].n;
    if (moves && pair >= last) last = pair + 1;
  }
  if (last == 0) return give_value(r, x);
  if (*mode) all = text(r, ", mode=\"%s\"", mode);
  double value = attr_real(r, "value", 0);
  if (fill && !one_number(fill, &value)) return refuse(r, "with a computed value");
  if (value != 0 && !*mode) all = text(r, ", value=%s", float_text(r, value));
  give(r, text(r, "pad(%s, [%s]%s)", whole_ref(r, x), list_text(r, pairs, 2 * last), all));
}

/* DepthToSpace and SpaceToDepth. */
void read_blocks(Reader *r)
{
  bool depth = r->node->op_type[0] == 'D', crd = strcmp(attr_word(r, "mode", "DCR"), "CRD") == 0;
  const char *name = depth ? (crd ? "pixel_shuffle" : "depth_to_space")
                           : (crd ? "pixel_unshuffle" : "space_to_depth");
  give(r, text(r, "%s(%s, %" PRId64 ")", name, whole_ref(r, in(r, 0)),
               attr_number(r, "blocksize", 1)));
}

/* ---- selection ---- */

const char *index_ref(Reader *r, const Value *v, int64_t size)
{
  bool negative = false;
  if (is_known(v)) {
    Value own = *v;
    own.item = arena_array(r->arena, Item, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++)
      own.item[i].n = v->item[i].n + (v->item[i].n < 0 ? size : 0);
    return ref(r, &own);
  }
  for (int64_t i = 0; v->kind == VALUE_weight && !negative && i < tensor_elements(v->tensor); i++)
    negative = tensor_int(v->tensor, i) < 0;
  const char *at = ref(r, v);
  return negative ? text(r, "where(%s < 0, %s + %" PRId64 ", %s)", at, at, size, at) : at;
}

/* ---- matrices and order ---- */

void read_trilu(Reader *r)
{
  const Value *k = in(r, 1);
  const char *word = attr_number(r, "upper", 1) ? "triu" : "tril", *x = whole_ref(r, in(r, 0));
  if (k && k->kind != VALUE_items) return refuse(r, "with a computed diagonal");
  bool middle = !k || (is_known(k) && k->item[0].n == 0);
  give(r, middle ? text(r, "%s(%s)", word, x)
                 : text(r, "%s(%s, %s)", word, x, item_text(r, k->item[0])));
}

void read_top_k(Reader *r)
{
  const char *x = whole_ref(r, in(r, 0)),
             *more = attr_number(r, "largest", 1) ? "" : ", largest=false";
  const Value *k = in(r, 1);
  int64_t axis = attr_number(r, "axis", -1);
  attribute(r, "sorted"); /* those of jobs always are */
  if (k ? k->kind != VALUE_items : !attribute(r, "k")) return refuse(r, "with a computed k");
  Item n = k ? k->item[0] : (Item){.n = attr_number(r, "k", 1)};
  const char *at = axis == -1 ? "" : text(r, ", dim=%" PRId64, axis);
  give_results(r, text(r, "topk(%s, %s%s%s)", x, item_text(r, n), at, more), 2);
}

void read_einsum(Reader *r)
{
  Text all = text_new(r->arena);
  for (size_t i = 0; i < r->node->n_input; i++) {
    if (!in(r, i)) return refuse(r, "without an input");
    list_add(&all, whole_ref(r, in(r, i)));
  }
  const char *equation = attr_word(r, "equation", "");
  if (strspn(equation, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,-> ") !=
      strlen(equation))
    return refuse(r, "with an equation that has other characters than letters and .,->");
  give(r, text(r, "einsum(\"%s\", [%s])", equation, all.at));
}
