/* Pass simplify. Needs the whole graph, backward included. It changes no bit of any result, with
 * one exception: powers by some numbers (2, 0.5) become products, quotients and roots.
 *
 * First each node gets a standard form: matmul becomes gemm on matrices or on two batches of the
 * same number of matrices, x^2 becomes x * x. Then it is folded (casts that undo each other, views
 * of views). If an earlier node computes the same bits, that node replaces it. Finally, unused
 * nodes are dropped. Later passes rely on the absence of matmul and detach. */
#include "compiler/rules/rules.h"
#include "passes.h"
#include <string.h>

typedef struct Simplify {
  Compile *c;
  Rewrite r;
  uint32_t *table; /* open addressing: ids of nodes in the new array; 0: free */
  uint32_t mask;
  /* id of the last effect: two counters are equal only if no effect is between them */
  uint32_t updates;
} Simplify;

/* ---- folding ---- */

/* True if type b represents each value of type a exactly: f16 in f32, but not f16 in bf16. */
static bool widens(DType a, DType b)
{
  if (a == b || a == AMPC_BOOL) return true;
  const ampc_type *from = ampc_type_of(a), *to = ampc_type_of(b);
  if (dtype_is_float(a)) return to->exponent >= from->exponent && to->mantissa >= from->mantissa;
  if (a == AMPC_U8) return b != AMPC_BOOL;
  return a == AMPC_I32 && b == AMPC_I64;
}

/* Folds casts: cast(cast(x, wide), d) is cast(x, d): the cast to the wider type is exact, so both
 * round once. A cast of x to its own type is x. */
static Value fold_cast(Compile *c, Node *n)
{
  const Node *inner = ir_in(c, n, 0);
  if (op_has(inner, T_casts) && widens(ir_in(c, inner, 0)->dtype, inner->dtype))
    n->in[0] = inner->in[0];
  return ir_in(c, n, 0)->dtype == n->dtype ? n->in[0] : (Value){0};
}

/* Folds views: a reshape of a reshape reads the first input; a view without effect is its input. */
static Value fold_view(Compile *c, Node *n)
{
  if (n->op == OP_reshape) {
    while (ir_in(c, n, 0)->op == OP_reshape) n->in[0] = ir_in(c, n, 0)->in[0];
  }
  return ir_same_dims(ir_in(c, n, 0), n) ? n->in[0] : (Value){0};
}

/* Folds two permutes that undo each other to the original value. */
static Value fold_transpose(Compile *c, const Node *n)
{
  const Node *inner = ir_in(c, n, 0);
  if (inner->op != n->op) return (Value){0};
  for (uint32_t i = 0; i < n->rank; i++)
    if (ir_permuted_axis(inner, ir_permuted_axis(n, i)) != i) return (Value){0};
  return inner->in[0];
}

/* Makes add(x, b) of add(x, expand(b)), since kernels broadcast operands with stride 0. One input
 * must keep the full shape, since the shape of the result follows from the inputs. */
static void skip_expands(Compile *c, Node *n)
{
  uint32_t first, end = op_mixed_inputs(n, &first);
  if (op_of(n)->tmpl != TMPL_map || end < first + 2) return;
  for (uint32_t i = 0; i < n->n_in; i++) {
    bool covered = false;
    for (uint32_t k = 0; k < n->n_in; k++)
      covered = covered || (k != i && ir_same_dims(ir_in(c, n, k), n));
    if (covered && ir_in(c, n, i)->op == OP_expand) n->in[i] = ir_in(c, n, i)->in[0];
  }
}

/* Folds x * 1 and, of integers, x + 0 to x. In floats -0 + 0 is not -0. */
static Value fold_neutral(Compile *c, const Node *n)
{
  bool product = strcmp(op_of(n)->code_text, "$0 * $1") == 0;
  bool sum = strcmp(op_of(n)->code_text, "$0 + $1") == 0 && !dtype_is_float(n->dtype);
  double value;
  if (!product && !sum) return (Value){0};
  for (uint32_t i = 0; i < 2; i++) {
    const Node *other = ir_in(c, n, 1 - i);
    if (rule_literal(ir_in(c, n, i), &value) && value == (product ? 1 : 0) &&
        other->dtype == n->dtype && ir_same_dims(other, n))
      return n->in[1 - i];
  }
  return (Value){0};
}

/* Returns the value that may replace n, or {0}. May replace inputs of n by simpler ones. */
static Value fold(Compile *c, Node *n)
{
  switch (n->op) {
  case OP_cast:
    return fold_cast(c, n);
  case OP_reshape:
  case OP_expand:
    return fold_view(c, n);
  case OP_transpose:
    return fold_transpose(c, n);
  case OP_detach:
    return n->in[0];
  case OP_cat:
    return n->n_in == 1 ? n->in[0] : (Value){0};
  default:
    skip_expands(c, n);
    return fold_neutral(c, n);
  }
}

/* ---- matmul to gemm ---- */

/* Reshapes the operands of n to two matrices, or to two batches of the same number of
 * matrices. */
static void set_operands(Compile *c, const Cursor *at, Node *n)
{
  Node a = *ir_in(c, n, 0), b = *ir_in(c, n, 1);
  if (b.rank <= 2) { /* one product for all rows of the left operand */
    int64_t k = a.dim[a.rank - 1];
    n->in[0] = ir_reshape(c, at, n->in[0], (int64_t[]){ir_elements(&a) / k, k}, 2);
    n->in[1] = ir_reshape(c, at, n->in[1], (int64_t[]){k, b.rank == 1 ? 1 : b.dim[1]}, 2);
    return;
  }
  uint32_t n_lead = (uint32_t)n->rank - (a.rank == 1 ? 1 : 2);
  n->in[0] = rule_as_batch(c, at, n->in[0], n->dim, n_lead);
  n->in[1] = rule_as_batch(c, at, n->in[1], n->dim, n_lead);
}

/* Returns a matmul as gemm: [5, 2, 3] by [3, 4] becomes reshape, gemm [10, 3] x [3, 4], reshape.
 * The gemm gets the name and the reason of the matmul. */
static Value matmul_as_gemm(Compile *c, Node *n)
{
  Cursor at = ir_cursor_at(n, WHY_follow);
  at.origin = n->origin;
  Node product = *n;
  set_operands(c, &at, &product);
  Value v = ir_append(c, &at, OP_gemm, product.in, 2, NULL);
  ir_node(c->graph, v)->name = n->name;
  ir_node(c->graph, v)->why = n->why;
  return ir_reshape(c, &at, v, n->dim, n->rank);
}

/* ---- one form ---- */

static void unify_forms(Compile *c)
{
  Rewrite r;
  ir_rewrite_begin(&r, c);
  for (uint32_t id = 1; id < r.n_old; id++) {
    Node n = ir_rewrite_mapped(&r, id);
    if (op_of(&n)->shape == shape_matmul)
      r.map[id] = matmul_as_gemm(c, &n);
    else if (!(r.map[id] = rule_simple_power(c, &n)).id)
      ir_rewrite_add(&r, id, &n);
  }
}

/* ---- equal nodes ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

/* Hashes what equal() compares, except properties that follow from the inputs. */
static uint64_t hash(const Node *n)
{
  uint64_t h = mix(mix((uint64_t)n->op, n->dtype), n->block);
  for (uint32_t i = 0; i < n->n_in; i++) h = mix(h, n->in[i].id);
  for (uint32_t i = 0; i < MAX_ATTR; i++) h = mix(h, (uint64_t)n->attr[i].i);
  return mix(h, n->stream);
}

/* True if both nodes compute the same bits. Their regions may differ, unless products round their
 * operands to tf32 or sums are f64 in one of them. */
static bool equal(const Compile *c, const Node *a, const Node *b)
{
  return a->op == b->op && a->row == b->row && a->dtype == b->dtype && a->block == b->block &&
         a->weak == b->weak && a->stream == b->stream && a->n_in == b->n_in && ir_same_dims(a, b) &&
         ir_is_tf32(c, a) == ir_is_tf32(c, b) && op_is_wide(c, a) == op_is_wide(c, b) &&
         memcmp(a->attr, b->attr, sizeof a->attr) == 0 &&
         memcmp(a->in, b->in, a->n_in * sizeof *a->in) == 0;
}

/* True if n reads the loss scale or a counter. These have no inputs, but each update changes them.
 * Two such nodes are equal only if no effect is between them. */
static bool reads_state(const Node *n)
{
  return op_has(n, T_varies);
}

/* Returns the equal node before n, or {0} and the free slot of the table for n. */
static Value find_equal(Simplify *s, const Node *n, uint32_t **slot)
{
  const Graph *g = s->c->graph;
  uint64_t h = reads_state(n) ? mix(hash(n), s->updates) : hash(n);
  for (uint32_t i = (uint32_t)h & s->mask;; i = (i + 1) & s->mask) {
    *slot = &s->table[i];
    if (!s->table[i]) return (Value){0};
    bool same_time = !reads_state(n) || s->table[i] >= s->updates;
    if (same_time && equal(s->c, &g->nodes.at[s->table[i]], n)) return (Value){s->table[i]};
  }
}

/* Adds n unless an equal node exists. Effects and outputs are never shared: the same metric twice
 * is two metrics. Nor are exchanges: members with other numbers of samples must have them, too.
 * After an effect, nodes with reads_state() differ from earlier ones. */
static void share(Simplify *s, uint32_t id, const Node *n)
{
  uint32_t *slot = NULL;
  bool fixed = op_has(n, T_effect) || op_has(n, T_kept), meets = op_of(n)->tmpl == TMPL_exchange;
  Value v = fixed || meets ? (Value){0} : find_equal(s, n, &slot);
  if (v.id) {
    s->r.map[id] = v;
    return;
  }
  v = ir_rewrite_add(&s->r, id, n);
  if (fixed)
    s->updates = v.id;
  else if (!meets)
    *slot = v.id;
}

static void simplify_node(Simplify *s, uint32_t id)
{
  Node n = ir_rewrite_mapped(&s->r, id);
  Value v = fold(s->c, &n);
  if (v.id)
    s->r.map[id] = v;
  else
    share(s, id, &n);
}

static void share_all(Compile *c)
{
  Simplify s = {.c = c};
  ir_rewrite_begin(&s.r, c);
  uint32_t size = 16;
  while (size < 4 * s.r.n_old) size *= 2;
  s.mask = size - 1;
  s.table = arena_array(c->arena, uint32_t, size);
  for (uint32_t id = 1; id < s.r.n_old; id++) simplify_node(&s, id);
}

bool pass_simplify(Compile *c)
{
  unify_forms(c);
  share_all(c);
  ir_drop_dead(c);
  return true;
}
