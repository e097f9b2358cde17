/* Translates the nodes of an infer block to ONNX, one after the other. */
#include <string.h>
#include "compiler/graph/ops.h"
#include "put_ops.h"

const char *cannot(Export *e, const Node *n, const char *why)
{
  if (*why)
    diag_error(e->c, E801, n->span, "cannot export `%s`: %s", op_of(n)->name, why);
  else
    diag_error(e->c, E801, n->span, "ONNX has no op for `%s`", op_of(n)->name);
  e->failed = true;
  return NULL;
}

const Node *in_node(const Export *e, const Node *n, uint32_t i)
{
  return i < n->n_in && n->in[i].id ? ir_node(e->g, n->in[i]) : NULL;
}

const char *in_value(Export *e, const Node *n, uint32_t i)
{
  const Node *x = in_node(e, n, i);
  if (!x) return "";
  return x->op == OP_param ? weight_value(e, x, x->dtype) : e->name[n->in[i].id];
}

const char *put_cast(Export *e, const char *x, DType from, DType to)
{
  if (from == to) return x;
  return build_node(e->b, "Cast", FROM(x), WITH(INT("to", onnx_type(to))));
}

const char *in_as(Export *e, const Node *n, uint32_t i, DType type)
{
  return put_cast(e, in_value(e, n, i), in_node(e, n, i)->dtype, type);
}

/* ---- ops that ONNX has ---- */

typedef struct Same {
  OpKind op;
  const char *onnx;
} Same;
static const Same same[] = {
#define AMPC_ONNX(op, onnx, text) {OP_##op, #onnx},
#include "runner/onnx/onnx.def"
};

const char *onnx_same(OpKind op)
{
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (same[i].op == op) return same[i].onnx;
  return NULL;
}

/* ONNX promotes no types, so all operands get the type of the result; the operands of comparisons
 * get the widest type of theirs. Few ops of ONNX compute with u8 and bool. */
const char *put_same(Export *e, const Node *n, const char *op)
{
  const char *in[4] = {0};
  DType type = n->dtype;
  if (op_has(n, T_compares)) {
    type = in_node(e, n, 0)->dtype;
    for (uint32_t i = 1; i < n->n_in; i++) type = dtype_promote(type, in_node(e, n, i)->dtype);
  }
  if ((type == AMPC_U8 || type == AMPC_BOOL) && !op_has(n, T_as_is)) type = AMPC_I32;
  for (uint32_t i = 0; i < n->n_in; i++) {
    bool kept = i == 0 && op_has(n, T_condition);
    in[i] = in_as(e, n, i, kept ? AMPC_BOOL : type);
  }
  const char *x = build_node(e->b, op, in, NO_ATTRS);
  return op_has(n, T_compares) ? x : put_cast(e, x, type, n->dtype);
}

/* ---- loops: a `scan` becomes the op Scan ---- */

typedef struct Scan {
  uint16_t loop;
  uint32_t first, end; /* its nodes are among these */
  OnnxBuild *outer, *body;
  NameVec in, out; /* of the op: first the states, then slices */
  uint32_t n_turns, n_stacks;
} Scan;

static bool put_nodes(Export *e, uint16_t loop, uint32_t first, uint32_t end);

static const Node *node_at(const Export *e, uint32_t id)
{
  return ir_node(e->g, (Value){id});
}

/* The loop that computes n. A carry is computed before its loop, but stands for a value in it. */
static uint16_t loop_of(const Node *n)
{
  return n->op == OP_carry ? (uint16_t)attr_int(n, "loop") : n->loop;
}

/* Makes the states (OP_carry) or slices (OP_turn) inputs of the body and, in the same order, of the
 * op. */
static void enter(Export *e, Scan *s, OpKind op)
{
  for (uint32_t id = s->first; id < s->end; id++) {
    const Node *n = node_at(e, id);
    if (n->op != op || loop_of(n) != s->loop) continue;
    e->name[id] = build_name(s->body, op_of(n)->name);
    vec_push(e->arena, &s->in, in_value(e, n, 0));
    build_value(s->body, true, e->name[id], n->dtype, NULL, NULL, NO_RANK);
    s->n_turns += op == OP_turn;
  }
}

/* Adds an output of the body and of the op. Identity gives the output a name of its own: the value
 * may be one of the outer graph, or be two outputs. */
static const char *leave(Export *e, Scan *s, const char *value, DType type)
{
  const char *inner = build_node(s->body, "Identity", FROM(value), NO_ATTRS);
  const char *out = build_name(s->outer, "Scan");
  build_value(s->body, false, inner, type, NULL, NULL, NO_RANK);
  vec_push(e->arena, &s->out, out);
  return out;
}

/* Returns the node that gives a carried value its next one, or NULL. */
static uint32_t next_of(const Export *e, const Scan *s, uint32_t carry)
{
  for (uint32_t id = s->first; id < s->end; id++)
    if (node_at(e, id)->op == OP_next && node_at(e, id)->in[0].id == carry) return id;
  return 0;
}

static void leave_all(Export *e, Scan *s)
{
  for (uint32_t id = s->first; id < s->end; id++) {
    const Node *n = node_at(e, id);
    if (n->op != OP_carry || loop_of(n) != s->loop) continue;
    uint32_t next = next_of(e, s, id);
    const char *out = leave(e, s, next ? in_value(e, node_at(e, next), 1) : e->name[id], n->dtype);
    if (next) e->name[next] = out;
  }
  for (uint32_t id = s->first; id < s->end; id++) {
    const Node *n = node_at(e, id);
    if (n->op != OP_stack || n->loop != s->loop) continue;
    e->name[id] = leave(e, s, in_value(e, n, 0), n->dtype);
    s->n_stacks++;
  }
}

/* The slices tell Scan how often to run. A loop without slices gets zeros. */
static bool count_turns(Export *e, Scan *s, const Node *at)
{
  Sized count = {{0}};
  for (uint32_t v = 0; v < e->n_variants; v++) count.at[v] = e->graph[v]->loops.at[s->loop].count;
  const char *size = sized_value(e, at, count);
  if (!size) return false;
  const char *name = build_name(s->body, "turn");
  vec_push(e->arena, &s->in, build_node(s->outer, "ConstantOfShape", FROM(size), NO_ATTRS));
  build_value(s->body, true, name, AMPC_F32, NULL, NULL, NO_RANK);
  s->n_turns = 1;
  return true;
}

static bool put_scan(Export *e, uint16_t loop, uint32_t first, uint32_t end)
{
  Scan s = {.loop = loop, .first = first, .end = end, .outer = e->b};
  s.body = build_begin(e->arena, e->b);
  enter(e, &s, OP_carry);
  enter(e, &s, OP_turn);
  if (!s.n_turns && !count_turns(e, &s, node_at(e, first))) return false;
  e->b = s.body;
  bool good = put_nodes(e, loop, first, end);
  if (good) leave_all(e, &s);
  e->b = s.outer;
  if (!good) return false;
  bool back = e->g->loops.at[loop].reversed;
  uint32_t most = s.n_turns > s.n_stacks ? s.n_turns : s.n_stacks;
  int64_t *directions = arena_array(e->arena, int64_t, most);
  for (uint32_t i = 0; i < most; i++) directions[i] = back;
  vec_push(e->arena, &s.in, NULL);
  vec_push(e->arena, &s.out, NULL);
  build_results(e->b, "Scan", s.in.at, s.out.at,
                WITH(BODY("body", build_end(s.body, "body")), INT("num_scan_inputs", s.n_turns),
                     INTS("scan_input_directions", directions, s.n_turns),
                     INTS("scan_output_directions", directions, s.n_stacks)));
  return true;
}

/* ---- nodes ---- */

typedef const char *PutOp(Export *e, const Node *n);

static PutOp *put_op(OpKind op)
{
  switch (op) {
#define PUT(name, put, file)                                                                       \
  case OP_##name:                                                                                  \
    return put;
#include "put_ops.def"
  default:
    return NULL;
  }
}

/* Attributes that functions read by sized_attr, or that are sizes of the result */
static bool may_vary(const char *name)
{
  static const char *const names[] = {"value", "start", "stop", "before", "after", "d",
                                      "h",     "w",     "oh",   "ow",     "rows"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], name) == 0) return true;
  return strncmp(name, "size", 4) == 0;
}

/* Returns the name of an attribute that depends on the sizes of arguments and may not; or NULL. */
static const char *varying_attr(const Export *e, const Node *n)
{
  const OpSignature *s = &op_of(n)->signature;
  for (uint32_t i = 0; i < s->n_attrs; i++) {
    const char *name = s->attr[i].name;
    if (s->attr[i].kind != ATTR_float && !may_vary(name) && sized_varies(e, sized_attr(e, n, name)))
      return name;
  }
  return NULL;
}

/* The path of the module that created n: as in the names of weights, without the model's name if
 * the job has one model. */
static const char *module_of(const Export *e, const Node *n)
{
  const char *path = n->layer ? n->layer : "", *dot = strchr(path, '.');
  for (uint32_t i = 0; i < e->g->params.n; i++) {
    const Parameter *p = &e->g->params.at[i];
    if (strncmp(p->path, p->model, strlen(p->model)) == 0 && p->path[strlen(p->model)] == '.')
      return path;
  }
  return dot ? dot + 1 : "";
}

static const char *put_node(Export *e, const Node *n)
{
  PutOp *put = put_op(n->op);
  const char *op = put ? NULL : onnx_same(n->op), *varies = varying_attr(e, n);
  e->b->scope = module_of(e, n);
  e->bf16 = e->bf16 || n->dtype == AMPC_BF16;
  if (varies) return cannot(e, n, arena_printf(e->arena, "its `%s` depends on a size", varies));
  const char *value = put ? put(e, n) : op ? put_same(e, n, op) : cannot(e, n, "");
  /* in_value() may have failed for a weight; functions do not check it. */
  return e->failed ? NULL : value;
}

/* Returns the loop in `around` that contains n; 0: n is in no loop of `around`. */
static uint16_t loop_inside(const Export *e, const Node *n, uint16_t around)
{
  uint16_t at = loop_of(n);
  while (at && at != around && e->g->loops.at[at].parent != around) at = e->g->loops.at[at].parent;
  return at == around ? 0 : at;
}

static uint32_t last_inside(const Export *e, uint16_t loop, uint32_t first, uint32_t end)
{
  uint32_t last = first;
  for (uint32_t id = first; id < end; id++)
    if (ir_loop_within(e->g, loop_of(node_at(e, id)), loop)) last = id;
  return last;
}

/* Appends the nodes of a loop, or of the block (0). A loop inside becomes a Scan at the place of
 * its last node; no node around it reads its results before that. */
static bool put_nodes(Export *e, uint16_t loop, uint32_t first, uint32_t end)
{
  for (uint32_t id = first; id < end; id++) {
    const Node *n = node_at(e, id);
    uint16_t inner = loop_inside(e, n, loop);
    bool crosses = /* enter() and leave_all() translate these */
        loop && (n->op == OP_carry || n->op == OP_next || n->op == OP_turn || n->op == OP_stack);
    if (!ir_loop_within(e->g, loop_of(n), loop) || (loop_of(n) == loop && crosses)) continue;
    if (!inner) {
      e->name[id] = put_node(e, n);
      if (!e->name[id]) return false;
    } else if (id == last_inside(e, inner, first, end) && !put_scan(e, inner, first, end)) {
      return false;
    }
  }
  return true;
}

/* ---- arguments and results ---- */

/* Declares an argument or a result. A size that varies gets the name of the caller's size that it
 * equals, else NAME_AXIS. */
static void declare(Export *e, const Node *n, bool is_input, const char *name)
{
  const char *dims[MAX_RANK] = {0};
  for (uint32_t axis = 0; axis < n->rank; axis++) {
    Sized q = sized_dim(e, n, axis);
    if (!sized_varies(e, q)) continue;
    dims[axis] = arena_printf(e->arena, "%s_%u", name, axis);
    for (uint32_t i = 0; i < e->n_sizes; i++)
      if (memcmp(q.at, e->size[i].at, e->n_variants * sizeof *q.at) == 0)
        dims[axis] = e->size_name[i];
  }
  build_value(e->root, is_input, name, n->dtype, n->dim, dims, n->rank);
}

static bool is_argument(const Export *e, const char *name)
{
  for (uint32_t i = 0; i < e->root->inputs.n; i++)
    if (strcmp(e->root->inputs.at[i]->name, name) == 0) return true;
  return false;
}

bool put_is_public(const Export *e, const char *name)
{
  for (uint32_t i = 0; i < e->g->outputs.n; i++)
    if (strcmp(e->g->outputs.at[i].name, name) == 0) return true;
  return is_argument(e, name);
}

bool put_block(Export *e)
{
  const Graph *g = e->g;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = node_at(e, id);
    if (n->op != OP_source || state_is_position(e, n)) continue;
    e->name[id] = g->sources.at[attr_int(n, "index")].path; /* an argument's is its name */
    declare(e, n, true, e->name[id]);
  }
  if (!state_begin(e) || !put_nodes(e, 0, 1, g->nodes.n)) return false;
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const Node *n = ir_node(g, g->outputs.at[i].value);
    const char *name = g->outputs.at[i].name;
    if (is_argument(e, name)) name = arena_printf(e->arena, "%s.result", name);
    build_results(e->b, "Identity", FROM(in_value(e, n, 0)), FROM(name), NO_ATTRS);
    declare(e, n, false, name);
  }
  return state_end(e);
}
