/* Ops that repeat, pad, select, place or order elements. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

static bool same_node(const Reader *r, const char *op)
{
  return strcmp(r->node->op_type, op) == 0;
}

/* ---- shapes ---- */

void read_tile(Reader *r)
{
  const Value *counts = in(r, 1);
  if (!counts || counts->kind != VALUE_items) return refuse(r, "with computed counts");
  give(r, text(r, "%s.repeat(%s)", whole_ref(r, in(r, 0)), list_text(r, counts->item, counts->n)));
}

/* `value` is a tensor of one element; without it, f32 0. */
void read_constant_of_shape(Reader *r)
{
  const Value *shape = in(r, 0);
  const OnnxAttribute *a = attribute(r, "value");
  if (shape->kind != VALUE_items || shape->n > READ_RANK)
    return refuse(r, "with a computed shape, or one of more than 6 axes");
  if (a && a->t && tensor_load(r, a->t)) return refuse(r, ampc_last_error());
  if (a && (!a->t || tensor_elements(a->t) != 1))
    return refuse(r, "with a value that is not one number");
  int32_t type = a ? a->t->data_type : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  if (result(r, 0)) result(r, 0)->type = type;
  if (onnx_is_float(type))
    return give_number(r, a ? tensor_real(a->t, 0) : 0, shape->item, shape->n);
  if (!type_word(type)) return refuse(r, "of a type that jobs do not have");
  int64_t number = tensor_int(a->t, 0);
  if (shape->n == 0 || (shape->n == 1 && is_known(shape) && shape->item[0].n >= 0 &&
                        shape->item[0].n <= MOST_ITEMS)) {
    uint32_t n = shape->n ? (uint32_t)shape->item[0].n : 1;
    Item *to = arena_array(r->arena, Item, n + 1);
    for (uint32_t i = 0; i < n; i++) to[i].n = number;
    return give_shaped_items(r, to, (const int64_t[]){n}, shape->n, type);
  }
  give(r, text(r, "full([%s], %" PRId64 ", dtype=%s)", list_text(r, shape->item, shape->n), number,
               type_word(type)));
}

/* The numbers of a Pad: all before the axes, then all after. False after refusing. */
static bool pads_of(Reader *r, int64_t rank, Item **at, uint32_t *n)
{
  Value *given = in(r, 1), *axes = in(r, 3);
  bool listed = given ? given->kind == VALUE_items : attr_list(r, "pads", at, n);
  if (given && listed) *at = given->item, *n = given->n;
  if (!listed) return refuse(r, "with computed pads"), false;
  if (axes && !is_known(axes)) return refuse(r, "with computed axes"), false;
  if (axes ? 2 * axes->n != *n : *n != 2 * rank)
    return refuse(r, "without two pads for each axis"), false;
  return true;
}

/* Pads all axes, or those that input 3 lists. Jobs count from the last axis. */
void read_pad(Reader *r)
{
  static const char *const modes[][2] = {
      {"constant", ""}, {"reflect", "reflect"}, {"edge", "replicate"}, {"wrap", "circular"}};
  Value *x = in(r, 0), *fill = in(r, 2), *axes = in(r, 3);
  Item *at, pairs[2 * READ_RANK] = {{0}};
  const char *all = "", *mode = attr_word(r, "mode", "constant");
  uint32_t n, row = 0, last = 0;
  int64_t rank = rank_of(x);
  while (row < 4 && strcmp(modes[row][0], mode) != 0) row++;
  if (row == 4) return refuse(r, text(r, "with mode=%s", mode));
  if (!pads_of(r, rank, &at, &n)) return;
  for (uint32_t i = 0; i < n / 2; i++) {
    int64_t axis = axes ? axis_of(x, axes->item[i].n) : i;
    if (axis < 0 || axis >= rank) return refuse(r, "along an axis that is not known");
    uint32_t pair = (uint32_t)(rank - 1 - axis);
    pairs[2 * pair] = at[i];
    pairs[2 * pair + 1] = at[n / 2 + i];
    bool moves = at[i].text || at[i].n || at[n / 2 + i].text || at[n / 2 + i].n;
    if (moves && pair >= last) last = pair + 1;
  }
  if (last == 0) return give_value(r, x);
  if (*modes[row][1]) all = text(r, ", mode=\"%s\"", modes[row][1]);
  double value = attr_real(r, "value", 0);
  if (fill && !one_number(fill, &value)) return refuse(r, "with a computed value");
  if (value != 0 && row == 0) all = text(r, ", value=%s", float_text(r, value));
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

/* PyTorch's gather and scatter take no negative indices. */
static bool from_pytorch(const Reader *r)
{
  return r->model->producer_name && strcmp(r->model->producer_name, "pytorch") == 0;
}

const char *index_ref(Reader *r, const Value *v, int64_t size, bool computed)
{
  bool negative = computed && v->kind == VALUE_tensor;
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

void read_gather_elements(Reader *r)
{
  const Value *at = in(r, 1);
  const char *x = whole_ref(r, in(r, 0));
  int64_t axis = attr_number(r, "axis", 0), size;
  if (!at || !size_of(in(r, 0), axis, &size))
    return refuse(r, "along an axis whose size depends on the arguments");
  give(r,
       text(r, "gather(%s, %" PRId64 ", %s)", x, axis, index_ref(r, at, size, !from_pytorch(r))));
}

static const char *input_name(const OnnxNode *n, size_t i)
{
  return n && i < n->n_input && n->input[i] ? n->input[i] : "";
}

/* The node that computes input i of a node, if it is such an op. */
static const OnnxNode *made_by(Reader *r, const OnnxNode *reader, size_t i, const char *op)
{
  const Value *v = value_named(r, input_name(reader, i));
  return v && v->maker && strcmp(v->maker->op_type, op) == 0 ? v->maker : NULL;
}

/* Whether the columns of an index are expanded to the shape of their maximum: tensors as an index
 * of jobs broadcast in the same way. */
static bool only_broadcast(Reader *r, const OnnxNode *joined)
{
  const char *target = NULL;
  for (size_t i = 0; i < joined->n_input; i++) {
    const OnnxNode *wide = made_by(r, made_by(r, joined, i, "Unsqueeze"), 0, "Expand");
    const OnnxNode *shape = made_by(r, wide, 1, "Shape"), *common = made_by(r, shape, 0, "Max");
    if (!common || common->n_input != joined->n_input ||
        strcmp(input_name(wide, 0), input_name(common, i)) != 0)
      return false;
    for (size_t k = 0; k < shape->n_attribute; k++)
      if (!shape->attribute[k]->name || strcmp(shape->attribute[k]->name, "start") != 0 ||
          shape->attribute[k]->i)
        return false;
    if (target && strcmp(target, input_name(wide, 1)) != 0) return false;
    target = input_name(wide, 1);
  }
  return true;
}

/* The index tensor whose numbers are column i of the index, if that is a Concat of unsqueezed
 * tensors. */
static const Value *column_of(Reader *r, const OnnxNode *joined, size_t i)
{
  const OnnxNode *column = made_by(r, joined, i, "Unsqueeze");
  const Value *inner = value_named(r, input_name(column, 0)),
              *axis = value_named(r, input_name(column, 1));
  if (!inner || !is_known(axis) || axis->n != 1) return NULL;
  if (axis->item[0].n != -1 && axis->item[0].n != rank_of(inner)) return NULL;
  return only_broadcast(r, joined) ? value_named(r, input_name(made_by(r, column, 0, "Expand"), 0))
                                   : inner;
}

/* Whether Concat joins its inputs along the last axis. */
static bool joins_last(const OnnxNode *joined, const Value *y)
{
  int64_t axis = 0;
  for (size_t i = 0; i < joined->n_attribute; i++)
    if (joined->attribute[i]->name && strcmp(joined->attribute[i]->name, "axis") == 0)
      axis = joined->attribute[i]->i;
  return axis == -1 || axis == rank_of(y) - 1;
}

/* Reads the columns of the index of GatherND and ScatterND, which are indices along the first axes.
 * Returns their number; 0: the node has been refused. */
static uint32_t read_columns(Reader *r, const char **column)
{
  Value *at = in(r, 1);
  int64_t n = 0;
  const OnnxNode *joined = at ? made_by(r, r->node, 1, "Concat") : NULL;
  if (joined && (!column_of(r, joined, 0) || !joins_last(joined, at))) joined = NULL;
  if (joined)
    n = (int64_t)joined->n_input;
  else if (!at || !size_of(at, -1, &n))
    return refuse(r, "with indices whose shape depends on the arguments"), 0;
  if (n < 1 || n > READ_RANK) return refuse(r, "with an index of no axis or of more than 6"), 0;
  for (int64_t i = 0; i < n; i++) {
    const Value *v = joined ? column_of(r, joined, (size_t)i) : NULL;
    if (joined && !v)
      return refuse(r, "with an index whose columns are not all made by Unsqueeze"), 0;
    column[i] = v ? ref(r, v) : text(r, "%s[..., %" PRId64 "]", ref(r, at), i);
  }
  return (uint32_t)n;
}

void read_gather_nd(Reader *r)
{
  const char *column[READ_RANK];
  Text all = text_new(r->arena);
  if (attr_number(r, "batch_dims", 0)) return refuse(r, "with batch_dims");
  uint32_t n = read_columns(r, column);
  for (uint32_t i = 0; i < n; i++) list_add(&all, column[i]);
  if (n) give(r, text(r, "%s[%s]", whole_ref(r, in(r, 0)), all.at));
}

/* The reduction of scatter_reduce; NULL: none. False after refusing. */
static bool reduction_of(Reader *r, const char **reduce)
{
  static const char *const names[][2] = {
      {"none", NULL}, {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}};
  const char *how = attr_word(r, "reduction", "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(how, names[i][0]) == 0) return *reduce = names[i][1], true;
  return refuse(r, text(r, "with reduction=%s", how)), false;
}

void read_scatter_elements(Reader *r)
{
  const Value *at = in(r, 1), *from = in(r, 2);
  const char *reduce;
  int64_t axis = attr_number(r, "axis", 0), size;
  if (!at || !from || !size_of(in(r, 0), axis, &size))
    return refuse(r, "along an axis whose size depends on the arguments");
  if (!reduction_of(r, &reduce)) return;
  const char *index = index_ref(r, at, size, !from_pytorch(r)), *x = whole_ref(r, in(r, 0)),
             *y = whole_ref(r, from);
  if (reduce)
    return give(
        r, text(r, "scatter_reduce(%s, %" PRId64 ", %s, %s, \"%s\")", x, axis, index, y, reduce));
  give(r, text(r, "scatter(%s, %" PRId64 ", %s, %s)", x, axis, index, y));
}

void read_scatter_nd(Reader *r)
{
  const char *column[READ_RANK], *reduce;
  Text all = text_new(r->arena);
  uint32_t n = in(r, 2) ? read_columns(r, column) : 0;
  if (n == 0 || !reduction_of(r, &reduce)) return;
  for (uint32_t i = 0; i < n; i++) list_add(&all, column[i]);
  const char *how = reduce ? text(r, ", \"%s\"", reduce) : "";
  give(r, text(r, "scatter_nd(%s, [%s], %s%s)", whole_ref(r, in(r, 0)), all.at,
               whole_ref(r, in(r, 2)), how));
}

/* The numbers of the two elements of a constant. */
static bool two_numbers(const Value *v, double *off, double *on)
{
  if (is_known(v) && v->n == 2)
    return *off = (double)v->item[0].n, *on = (double)v->item[1].n, true;
  if (!v || v->kind != VALUE_weight || tensor_elements(v->tensor) != 2) return false;
  return *off = tensor_real(v->tensor, 0), *on = tensor_real(v->tensor, 1), true;
}

void read_one_hot(Reader *r)
{
  Value *x = in(r, 0), *depth = in(r, 1), *values = in(r, 2);
  double off, on, count;
  int64_t axis = attr_number(r, "axis", -1);
  if (!depth || !one_number(depth, &count) || count < 1 || count > (double)MOST_SIZE)
    return refuse(r, "with a computed depth");
  if (!two_numbers(values, &off, &on)) return refuse(r, "with computed values");
  const char *type = type_word(values->type), *more = "";
  if (off != 0 || on != 1) more = text(r, ", %s, %s", float_text(r, off), float_text(r, on));
  const char *hot =
      text(r, "hot(%s, %" PRId64 ", %" PRId64 "%s)", whole_ref(r, x), (int64_t)count, axis, more);
  give(r, type && (strcmp(type, "i64") != 0 || *more) ? text(r, "%s.to(%s)", hot, type) : hot);
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

void read_cumulative(Reader *r)
{
  const Value *x = in(r, 0);
  int64_t axis = axis_of(x, item_at(r, in(r, 1), 0));
  if (axis < 0) return refuse(r, "along an axis that is out of range");
  const char *of = whole_ref(r, x), *type = x->type ? type_word(x->type) : NULL;
  bool product = same_node(r, "CumProd"), back = attr_number(r, "reverse", 0) != 0;
  if (attr_number(r, "exclusive", 0) && product) return refuse(r, "with exclusive=1");
  const char *y = back ? text(r, "flip(%s, %" PRId64 ")", of, axis) : of;
  y = text(r, "%s(%s, %" PRId64 ")", product ? "cumprod" : "cumsum", y, axis);
  if (attr_number(r, "exclusive", 0)) y = text(r, "shifted(%s, %" PRId64 ")", y, axis);
  if (back) y = text(r, "flip(%s, %" PRId64 ")", y, axis);
  bool narrow = type && !onnx_is_float(x->type) && strcmp(type, "i64") != 0;
  give(r, narrow ? text(r, "(%s).to(%s)", y, type) : y);
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

void read_arg(Reader *r)
{
  const char *word = same_node(r, "ArgMax") ? "argmax" : "argmin", *x = whole_ref(r, in(r, 0));
  int64_t axis = attr_number(r, "axis", 0);
  const char *keep = attr_number(r, "keepdims", 1) ? ", keepdim=true" : "";
  bool last = attr_number(r, "select_last_index", 0) != 0; /* of equal ones */
  give(r, text(r, "%s%s(%s, %" PRId64 "%s)", last ? "last_" : "", word, x, axis, keep));
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
