/* Prints moves that are not one affine walk: cat, pad, gradients of slices, flips, shifts. */
#include "kernel_parts.h"

const char *moved_element(const Kernel *k, uint32_t input, const char *index)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]);
  uint32_t from = argument_of(k, n->in[input]);
  const Index first = {0};
  if (from >= k->args.n) return stored(k, n->dtype, load_operand(k, n->in[input], &first).text);
  return arena_printf(k->c->arena, "%s[%s]", k->arg_names[from], index);
}

static uint32_t axis_of(const Node *n, int64_t axis)
{
  return (uint32_t)(axis < 0 ? axis + n->rank : axis);
}

/* Prints a loop that copies one input: [outer, its size along the axis times inner] to [outer,
 * all]. */
static void put_input(Kernel *k, uint32_t input, uint32_t axis, int64_t row, int64_t *at)
{
  const Node *x = ir_in(k->c, ir_node(k->g, k->group->nodes[0]), input);
  int64_t outer = dims_product(x->dim, axis), own = dims_product(x->dim + axis, x->rank - axis);
  if (outer == 0 || own == 0) return;
  const char *to = pointer_name(k, k->group->nodes[0]);
  const char *index = arena_printf(k->c->arena, "r * %lld + c", (long long)own);
  const char *element = moved_element(k, input, index);
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, (long long)outer,
       (long long)own);
  Index place = {.offset = *at};
  index_add_term(&place, VAR_r, row);
  index_add_term(&place, VAR_c, 1);
  EMIT(k->p, "  %s[%s] = %s;\n}\n", to, index_text(k, &place), element);
  *at += own;
}

/* C compilers need a second for a hundred loops, and the time grows with their square. */
enum { MANY_INPUTS = 32 };

/* Returns the number of inputs from `first` on that have one size and places in memory. *same: all
 * are one tensor, as on a GPU, where a table would be in local memory. */
static uint32_t alike_inputs(const Kernel *k, const Node *n, uint32_t first, uint32_t axis,
                             bool *same)
{
  uint32_t from = argument_of(k, n->in[first]), i = first;
  int64_t size = ir_in(k->c, n, first)->dim[axis];
  *same = true;
  for (; i < n->n_in && ir_in(k->c, n, i)->dim[axis] == size; i++) {
    uint32_t own = argument_of(k, n->in[i]);
    if (own >= k->args.n || (own != from && !is_cpu_target(k->c))) break;
    *same = *same && own == from;
  }
  return i - first;
}

/* Prints one loop over many inputs of one size, which takes their pointers from a table. */
static void put_alike(Kernel *k, uint32_t first, uint32_t many, bool same, uint32_t axis,
                      int64_t row, int64_t *at)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]), *x = ir_in(k->c, n, first);
  int64_t outer = dims_product(x->dim, axis), own = dims_product(x->dim + axis, x->rank - axis);
  if (outer == 0 || own == 0) return;
  const char *from = k->arg_names[argument_of(k, n->in[first])];
  if (!same) {
    from = "ampc_from[k]";
    EMIT(k->p, "{\n");
    k->p->indent++;
    EMIT(k->p, "const %s *const ampc_from[] = {\n", ampc_type_of(n->dtype)->kernel);
    for (uint32_t i = 0; i < many; i++)
      EMIT(k->p, "  %s,\n", k->arg_names[argument_of(k, n->in[first + i])]);
    EMIT(k->p, "};\n");
  }
  EMIT(k->p, "for (int k = 0; k < %u; k++)\n", many);
  EMIT(k->p, "  GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, (long long)outer,
       (long long)own);
  EMIT(k->p, "    %s[r * %lld + k * (%s)%lld + c + %lld] = %s[r * %lld + c];\n",
       pointer_name(k, k->group->nodes[0]), (long long)row, k->index_type, (long long)own,
       (long long)*at, from, (long long)own);
  EMIT(k->p, "  }\n");
  if (!same) {
    k->p->indent--;
    EMIT(k->p, "}\n");
  }
  *at += many * own;
}

/* Prints a cat, one loop an input. `at`: where the input begins in a row of the result. */
void emit_cat(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]);
  uint32_t axis = axis_of(n, attr_int(n, "dim"));
  int64_t at = 0, row = dims_product(n->dim + axis, n->rank - axis);
  for (uint32_t i = 0, many; i < n->n_in; i += many) {
    bool same;
    many = alike_inputs(k, n, i, axis, &same);
    if (many >= MANY_INPUTS) {
      put_alike(k, i, many, same, axis, row, &at);
      continue;
    }
    many = 1;
    put_input(k, i, axis, row, &at);
  }
}

typedef struct Filled { /* input 0 along an axis of the result, one value elsewhere */
  uint32_t axis;
  long long start, step;
  double value;
} Filled;

/* Returns a pad or gradient of a slice as Filled. pad has step 1 and its own fill value. */
static Filled filled_of(const Node *n)
{
  uint32_t axis = axis_of(n, attr_int(n, "dim"));
  if (n->op == OP_pad) return (Filled){axis, attr_int(n, "before"), 1, attr_float(n, "value")};
  return (Filled){axis, attr_int(n, "start"), attr_int(n, "step"), 0};
}

/* Returns the fill value in the type in which the result is stored. */
static const char *fill_text(const Kernel *k, const Node *n, double value)
{
  if (value == 0) return "0";
  const char *number = real_text(k, value);
  return stored(k, n->dtype, number);
}

/* ---- pads behind the last axis ---- */

/* Prints the elementwise nodes that pass fuse has put before the pad. Returns element i of the
 * padded value as element_place() stores it in argument `out` at index `to`. */
static const char *put_padded(Kernel *k, Value x, uint32_t out, const Index *to)
{
  const Node *n = ir_node(k->g, x);
  Chain ch;
  chain_begin(&ch, k);
  for (uint32_t i = 0; i < k->group->n; i++)
    if (k->group->nodes[i].id != k->group->anchor.id) chain_add(&ch, k->group->nodes[i]);
  if (!ch.nodes.n) return moved_element(k, 0, "i");
  chain_put_loads(&ch);
  for (uint32_t i = 0; i < ch.nodes.n; i++) chain_put_node(&ch, ch.nodes.at[i], index_at(VAR_i));
  return stored_at(k, out, to, n->dtype, chain_operand(&ch, x, index_at(VAR_i)).text, false);
}

/* Prints a pad behind the last axis. A thread stores a vector, such as all channels of a pixel. */
static void put_pad(Kernel *k, uint32_t vector)
{
  Value v = k->group->anchor;
  const Node *n = ir_node(k->g, v), *x = ir_node(k->g, n->in[0]);
  LoopShape s = loop_shape_of(x);
  Access a;
  if (!access_through(k->g, n->in[0], &a)) kernel_bug(k, v, "no strides lead to its input");
  uint32_t axis = n->rank - 1u;
  long long size = n->dim[axis], kept = x->dim[axis];
  const char *type = k->index_type;
  Index to = {0}, at = {.offset = a.offset}, i = index_at(VAR_at);
  index_add_term(&to, VAR_r, size);
  index_add_term(&to, VAR_c, 1);
  index_add(&at, &s, &a, 0, axis, (IndexTerm){.of = VAR_r});
  index_add(&i, &s, &a, axis, axis + 1, (IndexTerm){.of = VAR_kept});
  EMIT(k->p, "GRID_ROW_VECTORS(%u, %s, r, c, %lld, %lld) {\n", vector, type,
       (long long)dims_product(n->dim, axis), size);
  k->p->indent++;
  EMIT(k->p, "const %s at = %s;\n", type, index_text(k, &at));
  const char *width = arena_printf(k->c->arena, "%u", vector);
  uint32_t out = argument_of(k, v);
  put_result_vector(k, false, width, out, &to);
  EMIT(k->p, "VECTOR_EACH(%u, j) {\n", vector);
  k->p->indent++;
  EMIT(k->p, "const int kept = c + j < %lld;\n", kept);
  EMIT(k->p, "const %s i = %s;\n", type, index_text(k, &i));
  const char *element = put_padded(k, n->in[0], out, &to);
  double value = attr_float(n, "value");
  const char *fill =
      value == 0 ? "0" : stored_at(k, out, &to, n->dtype, real_text(k, value), false);
  EMIT(k->p, "%s = kept ? %s : %s; // %%%u pad\n", element_place(k, out, &to), element, fill, v.id);
  k->p->indent--;
  EMIT(k->p, "}\n");
  store_vectors(k, 0);
  k->p->indent--;
  EMIT(k->p, "}\n");
}

/* ---- moves along one axis ---- */

/* Prints a Filled. Element d of the axis is element (d - start) / step of the input, if that is an
 * integer in range; otherwise the fill value. */
void emit_filled(Kernel *k)
{
  uint32_t vector = pad_vector(k->c, k->group->anchor);
  if (vector) {
    put_pad(k, vector);
    return;
  }
  const Node *n = ir_node(k->g, k->group->nodes[0]), *x = ir_node(k->g, n->in[0]);
  Filled f = filled_of(n);
  long long size = n->dim[f.axis], count = x->dim[f.axis];
  long long outer = dims_product(n->dim, f.axis),
            inner = dims_product(n->dim + f.axis + 1, n->rank - f.axis - 1);
  const char *to = pointer_name(k, k->group->nodes[0]);
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, outer * size, inner);
  k->p->indent++;
  EMIT(k->p, "const %s d = r %% %lld - %lld;\n", k->index_type, size, f.start);
  const char *fits = f.step == 1 ? "" : arena_printf(k->c->arena, " && d %% %lld == 0", f.step);
  EMIT(k->p, "const int kept = d >= 0 && d < %lld%s;\n", (count - 1) * f.step + 1, fits);
  const char *row = f.step == 1 ? "d" : arena_printf(k->c->arena, "d / %lld", f.step);
  const char *index =
      arena_printf(k->c->arena, "(r / %lld * %lld + %s) * %lld + c", size, count, row, inner);
  EMIT(k->p, "%s[r * %lld + c] = kept ? %s : %s; // %%%u %s\n", to, inner,
       moved_element(k, 0, index), fill_text(k, n, f.value), k->group->nodes[0].id, op_of(n)->name);
  k->p->indent--;
  EMIT(k->p, "}\n");
}

/* Prints a flip. Row r of [outer * size] is row k, whose position along the axis is mirrored: k = r
 * - p + (size - 1 - p) with p = r % size. */
void emit_flip(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]);
  uint32_t axis = axis_of(n, attr_int(n, "dim"));
  long long size = n->dim[axis], outer = dims_product(n->dim, axis),
            inner = dims_product(n->dim + axis + 1, n->rank - axis - 1);
  const char *to = pointer_name(k, k->group->nodes[0]);
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, outer * size, inner);
  EMIT(k->p, "  const %s k = r - r %% %lld + %lld - r %% %lld;\n", k->index_type, size, size - 1,
       size);
  const char *index = arena_printf(k->c->arena, "k * %lld + c", inner);
  EMIT(k->p, "  %s[r * %lld + c] = %s; // %%%u flip_axis\n}\n", to, inner,
       moved_element(k, 0, index), k->group->nodes[0].id);
}

/* Copies one row of pixels after the other; s is the index of the sample's two offsets. */
void emit_shifted(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]), *x = ir_node(k->g, n->in[0]);
  long long h = x->dim[x->rank - 2], w = x->dim[x->rank - 1];
  long long oh = n->dim[n->rank - 2], ow = n->dim[n->rank - 1];
  const char *to = pointer_name(k, k->group->nodes[0]);
  const char *offset = pointer_name(k, n->in[1]), *type = k->index_type;
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", type,
       (long long)dims_product(n->dim, n->rank - 1), ow);
  k->p->indent++;
  EMIT(k->p, "const %s s = r / %lld * 2;\n", type,
       (long long)dims_product(n->dim + 1, n->rank - 2u));
  EMIT(k->p, "const %s i = r %% %lld + %s[s], j = c + %s[s + 1];\n", type, oh, offset, offset);
  EMIT(k->p, "const int kept = i >= 0 && i < %lld && j >= 0 && j < %lld;\n", h, w);
  const char *index = arena_printf(k->c->arena, "(r / %lld * %lld + i) * %lld + j", oh, h, w);
  EMIT(k->p, "%s[r * %lld + c] = kept ? %s : 0; // %%%u shifted\n", to, ow,
       moved_element(k, 0, index), k->group->nodes[0].id);
  k->p->indent--;
  EMIT(k->p, "}\n");
}
