/* The state of a decoder, for amp export --decode.
 *
 * Note [state]
 * Pass decode makes one program here, for T new tokens (options.decode_new), and T is a size that
 * the caller chooses: Note [sizes]. So a prompt of any length is one call, and no call has padding,
 * which would enter carried values. Each buffer of the space CACHE is an argument `past_N` and a
 * result `present_N` of the same shape. A `store` of rows replaces the value that later nodes read.
 * A `store` of a whole buffer belongs to the next call: nodes of this one read `past_N`. */
#include "compiler/graph/ops.h"
#include "put_ops.h"

enum { ATTENTION_POSITION = 4 };

/* Returns the name, with `_` behind it if an argument or result has it. */
static const char *unused_name(Export *e, const char *name)
{
  while (put_is_public(e, name)) name = arena_printf(e->arena, "%s_", name);
  return name;
}

bool state_is_position(const Export *e, const Node *source)
{
  return e->c->options.decode && attr_int(source, "index") == e->g->blocks.at[0].first_source + 1;
}

/* Sets *rows to the numbers of the rows of input 0 along the axis, i64[n], if input `i` numbers the
 * first one, and *end to the number behind the last one, i64[1]. */
static void number_rows(Export *e, const Node *n, uint32_t i, int64_t axis, const char **rows,
                        const char **end)
{
  OnnxBuild *b = e->b;
  Numbered *last = &e->numbered;
  const char *first = in_value(e, n, i);
  int64_t size = in_node(e, n, 0)->dim[axis];
  if (b != e->root || last->size != size || last->first != first) {
    const char *count = build_node(b, "Shape", FROM(in_value(e, n, 0)),
                                   WITH(INT("start", axis), INT("end", axis + 1)));
    const char *scalar = build_node(b, "Squeeze", FROM(count), NO_ATTRS);
    const char *each = build_node(
        b, "Range", FROM(build_number(b, AMPC_I64, 0), scalar, build_number(b, AMPC_I64, 1)),
        NO_ATTRS);
    *rows = build_node(b, "Add", FROM(first, each), NO_ATTRS);
    *end = build_node(b, "Add", FROM(first, count), NO_ATTRS);
    if (b == e->root) *last = (Numbered){first, size, *rows, *end};
  } else {
    *rows = last->rows;
    *end = last->end;
  }
}

bool state_begin(Export *e)
{
  if (!e->c->options.decode) return true;
  const char *position = unused_name(e, "position");
  e->state = arena_array(e->arena, const char *, e->g->params.n + 1);
  e->present = arena_array(e->arena, const char *, e->g->params.n + 1);
  build_value(e->root, true, position, AMPC_I64, (const int64_t[]){1}, NULL, 1);
  for (uint32_t id = 1; id < e->g->nodes.n; id++) {
    const Node *n = ir_node(e->g, (Value){id});
    if (n->op == OP_source && state_is_position(e, n)) e->name[id] = position;
  }
  for (uint32_t i = 0; i < e->g->params.n; i++) {
    const Parameter *p = &e->g->params.at[i];
    if (!p->decodes) continue;
    e->state[i] = unused_name(e, arena_printf(e->arena, "past_%u", e->n_states++));
    e->present[i] = unused_name(e, arena_printf(e->arena, "present_%u", e->n_states - 1));
    build_value(e->root, true, e->state[i], p->dtype, p->dim, NULL, p->rank);
  }
  return true;
}

bool state_end(Export *e)
{
  for (uint32_t id = 1; id < e->g->nodes.n && e->state; id++) {
    const Node *n = ir_node(e->g, (Value){id});
    if (n->op != OP_store || in_node(e, n, 1)) continue;
    int64_t i = attr_int(n, "param");
    const char *x = in_as(e, n, 0, e->g->params.at[i].dtype);
    build_results(e->b, "Identity", FROM(x), FROM(e->present[i]), NO_ATTRS);
  }
  for (uint32_t i = 0; i < e->g->params.n && e->state; i++) {
    const Parameter *p = &e->g->params.at[i];
    if (!p->decodes) continue;
    build_value(e->root, false, e->present[i], p->dtype, p->dim, NULL, p->rank);
  }
  return !e->failed;
}

const char *state_value(Export *e, const Node *param, DType type)
{
  return put_cast(e, e->state[attr_int(param, "index")], param->dtype, type);
}

/* Whether a later node stores other rows of the buffer, such as learned keys in front. */
static bool is_stored_again(const Export *e, const Node *n)
{
  for (const Node *later = n + 1; later < e->g->nodes.at + e->g->nodes.n; later++)
    if (later->op == OP_store && attr_int(later, "param") == attr_int(n, "param")) return true;
  return false;
}

/* Returns the row of each element that the node stores, in the shape of input 0. */
static const char *stored_rows(Export *e, const Node *n)
{
  const Node *x = in_node(e, n, 0);
  int64_t axis = attr_int(n, "axis"), shape[MAX_RANK];
  const char *numbers, *end;
  number_rows(e, n, 1, axis, &numbers, &end);
  for (uint32_t k = 0; k < x->rank; k++) shape[k] = k == axis ? -1 : 1;
  const char *one = build_ints(e->b, shape, x->rank);
  const char *at = build_node(e->b, "Reshape", FROM(numbers, one), NO_ATTRS);
  const char *all = build_node(e->b, "Shape", FROM(in_value(e, n, 0)), NO_ATTRS);
  return build_node(e->b, "Expand", FROM(at, all), NO_ATTRS);
}

/* The last store of a buffer gives its result the name present_N. So ONNX Runtime copies nothing if
 * the caller passes one buffer as past_N and present_N. */
const char *put_store(Export *e, const Node *n)
{
  int64_t i = attr_int(n, "param");
  if (!in_node(e, n, 1)) return ""; /* state_end() */
  if (attr_int(n, "block") != 1) return cannot(e, n, "its rows are in blocks");
  const char *x = in_as(e, n, 0, e->g->params.at[i].dtype), *at = stored_rows(e, n);
  const OnnxAttr *along = WITH(INT("axis", attr_int(n, "axis")));
  if (is_stored_again(e, n)) {
    e->state[i] = build_node(e->b, "ScatterElements", FROM(e->state[i], at, x), along);
  } else {
    build_results(e->b, "ScatterElements", FROM(e->state[i], at, x), FROM(e->present[i]), along);
    e->state[i] = e->present[i];
  }
  return "";
}

/* ---- attention ---- */

const char *state_rows(Export *e, const Node *n, uint32_t i, uint32_t axis, DType type)
{
  const char *rows, *end;
  if (!in_node(e, n, ATTENTION_POSITION)) return in_as(e, n, i, type);
  number_rows(e, n, ATTENTION_POSITION, 1, &rows, &end);
  const char *x =
      build_node(e->b, "Slice",
                 FROM(in_value(e, n, i), build_int(e->b, 0), end, build_int(e->b, axis)), NO_ATTRS);
  return put_cast(e, x, in_node(e, n, i)->dtype, type);
}

const char *state_mask(Export *e, const Node *n)
{
  OnnxBuild *b = e->b;
  const char *rows, *end;
  if (!in_node(e, n, ATTENTION_POSITION)) return NULL;
  number_rows(e, n, ATTENTION_POSITION, 1, &rows, &end);
  const char *all = build_node(b, "Squeeze", FROM(end), NO_ATTRS);
  const char *key = build_node(
      b, "Range", FROM(build_number(b, AMPC_I64, 0), all, build_number(b, AMPC_I64, 1)), NO_ATTRS);
  const char *query = build_node(b, "Unsqueeze", FROM(rows, build_int(b, 1)), NO_ATTRS);
  return build_node(b, "LessOrEqual", FROM(key, query), NO_ATTRS);
}
