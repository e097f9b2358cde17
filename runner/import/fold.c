/* Computes small integer tensors, so that what PyTorch writes as Shape, Gather and Concat becomes
 * the numbers of a `reshape`. PyTorch reorders the gates of recurrent layers by the same ops.
 * Functions of sizes.amp say what the ops do: moved_X tells the places of elements, sizes_X
 * computes a number. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "read_ops.h"

enum { MOST_FOLDED = 8 /* inputs */ };

/* Where the elements of a result are in the inputs, which follow each other. */
typedef struct Moved {
  uint32_t rank;
  int64_t dim[READ_RANK];
  int64_t unit;   /* elements that stay together */
  int64_t *place; /* of units */
  int64_t n;      /* elements */
} Moved;

static int64_t place_of(const Moved *m, int64_t i)
{
  return m->place[i / m->unit] * m->unit + i % m->unit;
}

/* The sizes of the inputs: "[[2, 3], [1]]". */
static const char *sizes_of_inputs(Reader *r)
{
  Text all = text_new(r->arena);
  for (size_t i = 0; i < r->node->n_input; i++) {
    const Value *v = in(r, i);
    Item at[READ_RANK] = {{0}};
    for (uint32_t k = 0; v && v->shape && k < v->shape->rank; k++) at[k].n = v->shape->dim[0][k];
    list_add(&all, text(r, "[%s]", v && v->shape ? list_text(r, at, v->shape->rank) : ""));
  }
  return text(r, "[%s]", all.at);
}

/* Reads numbers up to a bracket, and goes behind it. Returns how many there are; out has the first
 * ones. */
static int64_t read_numbers(const char **at, int64_t most, int64_t *out)
{
  int64_t n = 0;
  char *end;
  for (++*at; **at != ']'; *at = end + strspn(end, ", "), n++) {
    int64_t number = strtoll(*at, &end, 10);
    assert(end > *at);
    if (n < most) out[n] = number;
  }
  ++*at;
  return n;
}

/* Calls a function that returns [sizes, unit, places]. input: its second argument; NULL: it is the
 * node's. False: it needs numbers that are computed, or the node has been refused. */
static bool ask_moved(Reader *r, const char *function, const char *input, Moved *out)
{
  const char *at =
      call_prelude(r, function, (const char *[]){sizes_of_inputs(r), input}, input ? 2 : 1);
  if (!at || *at != '[') return false;
  size_t most = strlen(at++);
  out->place = arena_array(r->arena, int64_t, most);
  out->rank = (uint32_t)read_numbers(&at, READ_RANK, out->dim);
  if (out->rank > READ_RANK) return refuse(r, "to more than 6 axes"), false;
  out->unit = strtoll(at + 2, (char **)(uintptr_t)&at, 10);
  at += 2;
  out->n = read_numbers(&at, (int64_t)most, out->place) * out->unit;
  int64_t n = 1;
  for (uint32_t i = 0; i < out->rank; i++) n = out->dim[i] < 0 ? -1 : n * out->dim[i];
  return n == out->n || (refuse(r, "to a shape of another number of elements"), false);
}

/* The inputs of a node that it moves; the others say where to. */
static size_t moved_inputs(const OnnxNode *n)
{
  return strcmp(n->op_type, "Concat") == 0 ? n->n_input : 1;
}

static bool move_items(Reader *r, const char *function)
{
  VEC(Item) all = {0};
  Moved to;
  for (size_t i = 0; i < r->node->n_input; i++) {
    const Value *v = in(r, i);
    bool moved = i < moved_inputs(r->node);
    if (v && (moved ? v->kind != VALUE_items : !is_known(v))) return false;
    for (uint32_t k = 0; v && moved && k < v->n; k++) vec_push(r->arena, &all, v->item[k]);
  }
  if (!ask_moved(r, function, NULL, &to)) return r->dropped;
  if (to.n > MOST_ITEMS) return refuse(r, "of more elements than amp import computes"), true;
  Item *at = arena_array(r->arena, Item, (size_t)to.n + 1);
  for (int64_t i = 0; i < to.n; i++) at[i] = all.at[place_of(&to, i)];
  give_shaped_items(r, at, to.dim, to.rank, in(r, 0)->type);
  return true;
}

/* Moves the elements of weights of recurrent layers, which the file computes. */
static bool move_weight(Reader *r, const char *function)
{
  size_t n = moved_inputs(r->node);
  const Value *from[MOST_FOLDED] = {0};
  Moved to;
  for (size_t i = 0; i < n; i++) {
    from[i] = n <= MOST_FOLDED ? in(r, i) : NULL;
    if (!from[i] || from[i]->kind != VALUE_weight || from[i]->turned ||
        from[i]->type != from[0]->type)
      return false;
  }
  if (!tensor_elements(from[0]->tensor) || !ask_moved(r, function, NULL, &to)) return r->dropped;
  size_t size = from[0]->tensor->raw_data.len / (size_t)tensor_elements(from[0]->tensor);
  const Value *made = made_tensor(r, from[0]->type, size * (size_t)to.n, to.dim, to.rank);
  for (int64_t k = 0; k < to.n; k += to.unit) {
    size_t place = (size_t)place_of(&to, k) * size, i = 0;
    for (; place >= from[i]->tensor->raw_data.len; i++) place -= from[i]->tensor->raw_data.len;
    memcpy(made->tensor->raw_data.data + (size_t)k * size, from[i]->tensor->raw_data.data + place,
           size * (size_t)to.unit);
  }
  Value *y = result(r, 0);
  if (y)
    y->kind = VALUE_weight, y->type = made->type, y->tensor = made->tensor, y->shape = made->shape;
  return true;
}

/* ---- arithmetic ---- */

/* A text for messages: values have their names in the file. */
static const char *named_text(Reader *r, const char *code)
{
  Text out = text_new(r->arena);
  for (const char *at = code; *at;) {
    size_t n = strcspn(at, "$");
    text_add(&out, at, n);
    at += n;
    if (!*at) break;
    const Value *v = r->values.at[strtoul(at + 1, (char **)(uintptr_t)&at, 10)];
    text_puts(&out, *v->name ? arena_shown(r->arena, v->name, "") : "a value");
  }
  return out.at;
}

/* amp import assumes that a comparison of sizes has one result for all of them, and warns unless a
 * size is compared with a number below 0. */
static void note_granted(Reader *r, Item a, Item b, const char *truth)
{
  bool size_below_0 = (a.text && !b.text && b.n < 0) || (b.text && !a.text && a.n < 0);
  if (size_below_0 || (!a.text && !b.text)) return;
  vec_push(r->arena, &r->granted,
           text(r, "%s of %s and %s is %s", r->node->op_type, named_text(r, item_text(r, a)),
                named_text(r, item_text(r, b)), truth));
}

/* Computes a number of n numbers. False after refusing. */
static bool compute(Reader *r, const char *function, const Item *of, uint32_t n, Item *out,
                    bool *truth)
{
  const char *given[MOST_FOLDED];
  for (uint32_t i = 0; i < n; i++) given[i] = item_text(r, of[i]);
  const char *code = call_prelude(r, function, given, n);
  if (!code || !ask_item(r, code, out)) return false;
  *truth = strcmp(code, "true") == 0 || strcmp(code, "false") == 0;
  if (*truth && n == 2) note_granted(r, of[0], of[1], code);
  return true;
}

/* Computes an element of n elements. Max of three is Max of Max and the third. */
static bool fold_element(Reader *r, const char *function, uint32_t params, const Item *of,
                         uint32_t n, Item *out, bool *truth)
{
  if (params != 2) return compute(r, function, of, n, out, truth);
  *out = of[0];
  for (uint32_t k = 1; k < n; k++)
    if (!compute(r, function, (Item[]){*out, of[k]}, 2, out, truth)) return false;
  return true;
}

/* Computes each element of inputs that are broadcast. */
static bool fold_elements(Reader *r, const char *function, const Function *f)
{
  uint32_t n = (uint32_t)r->node->n_input;
  const Value *v[MOST_FOLDED];
  Moved to[MOST_FOLDED];
  Item of[MOST_FOLDED] = {{0}};
  bool truth = false, where = *r->node->op_type == 'W';
  for (uint32_t i = 0; i < n; i++) {
    v[i] = n <= MOST_FOLDED ? in(r, i) : NULL;
    if (!v[i] || v[i]->kind != VALUE_items || (where && !i && !is_known(v[i]))) return false;
  }
  for (uint32_t i = 0; i < n; i++)
    if (!ask_moved(r, "moved_with", text(r, "%u", i), &to[i])) return r->dropped;
  if (to->n > MOST_ITEMS) return refuse(r, "of more elements than amp import computes"), true;
  Item *at = arena_array(r->arena, Item, (size_t)to->n + 1);
  for (int64_t i = 0; i < to->n; i++) {
    for (uint32_t k = 0; k < n; k++) of[k] = v[k]->item[place_of(&to[k], i)];
    if (!fold_element(r, function, f->params.n, of, n, &at[i], &truth)) return true;
  }
  give_shaped_items(r, at, to->dim, to->rank,
                    truth ? ONNX__TENSOR_PROTO__DATA_TYPE__BOOL : v[where]->type);
  return true;
}

/* ReduceProd and so on, of all elements of a list. */
static bool fold_reduce(Reader *r, const char *function)
{
  const Value *x = in(r, 0);
  Item *axes, *out = arena_new(r->arena, Item);
  uint32_t n;
  bool truth;
  if (x->kind != VALUE_items || x->shape->rank != 1 || x->n == 0) return false;
  read_axes(r, 1, &axes, &n);
  if (n == 0 && attr_number(r, "noop_with_empty_axes", 0)) return false;
  if (!fold_element(r, function, 2, x->item, x->n, out, &truth)) return true;
  give_shaped_items(r, out, (const int64_t[]){1}, attr_number(r, "keepdims", 1) != 0, x->type);
  return true;
}

/* An elementwise op of numbers, of which at most one stands for a tensor. */
static bool fold_numbers(Reader *r, const char *function, const Function *f)
{
  const char *given[2];
  const Value *shape = in(r, 0);
  uint32_t n = (uint32_t)r->node->n_input;
  bool elementwise = f && n && f->params.n == n && strcmp(f->params.at[0].name.text, "a") == 0;
  if (!elementwise || n > 2) return false;
  for (uint32_t i = 0; i < n; i++) {
    const Value *v = in(r, i);
    if (!v || v->kind != VALUE_number || (i && v->n && shape->n)) return false;
    if (v->n) shape = v;
    given[i] = ref(r, v);
  }
  const char *code = call_prelude(r, function, given, n);
  char *end = NULL;
  double number = code ? strtod(code, &end) : 0;
  if (code && !*end) give_number(r, number, shape->item, shape->n);
  return r->dropped || (code && !*end);
}

bool read_folded(Reader *r)
{
  const char *op = r->node->op_type, *moved = text(r, "moved_%s", op),
             *sizes = text(r, "sizes_%s", op);
  const Function *f = ask_function(r, sizes);
  if (r->node->n_input == 0) return false;
  if (ask_function(r, moved)) {
    bool weight = r->node->n_output && feeds_cells(r, r->node->output[0]);
    return weight ? move_weight(r, moved) : move_items(r, moved);
  }
  const char *plain = text(r, "onnx_%s", op);
  if (fold_numbers(r, plain, ask_function(r, plain))) return true;
  if (!f) return false;
  return strncmp(op, "Reduce", 6) == 0 ? fold_reduce(r, sizes) : fold_elements(r, sizes, f);
}

void keep_number(Reader *r)
{
  const Value *x = in(r, 0), *y = result(r, 0), *of[] = {x, in(r, 1)};
  bool moves = x && x->kind == VALUE_number && y && y->kind == VALUE_tensor && y->shape &&
               moved_inputs(r->node) == 1 && ask_function(r, text(r, "moved_%s", r->node->op_type));
  Item at[READ_RANK];
  for (uint32_t i = 0; moves && i < y->shape->rank; i++) {
    moves = size_of(y, i, &at[i].n);
    at[i].text = NULL;
    for (size_t k = 0; !moves && k < 2; k++)
      for (uint32_t j = 0; of[k] && of[k]->kind != VALUE_tensor && j < of[k]->n && !moves; j++)
        if (is_size(y, i, of[k]->item[j])) at[i] = of[k]->item[j], moves = true;
  }
  if (!moves) return;
  r->steps.n--;
  give_number(r, x->number, at, y->shape->rank);
}
