/* Pass precision. Needs shapes. Gives every node its type and the reason for it.
 *
 * The pass casts each node's inputs to the type that the region and the op's category ask for. Then
 * the shape rule derives the type of the result from the inputs. After this pass every conversion
 * is a node, which all users of the same value in the same type share. The pass comes before
 * gradient, so that the derivative of a conversion is a conversion too. */
#include "passes.h"
#include "compiler/graph/own.h"
#include "compiler/rules/rules.h"
#include "fewest_casts.h"
#include <string.h>

/* The casts of one node so far, indexed by type and by whether the user is in no_grad. No gradient
 * flows through a cast inside no_grad, so users outside of it need another one. */
typedef struct SharedCasts {
  Value to[AMPC_DTYPE_COUNT][2];
} SharedCasts;

typedef struct Precision {
  Compile *c;
  Rewrite r;
  VEC(SharedCasts) casts; /* indexed by id of the new node */
  /* indexed by id of an old `carry`: its type; AMPC_DTYPE_COUNT: undecided */
  DType *carried;
  bool refused; /* an error about sums of f64 has been reported */
  bool settled; /* every `next` has the type of its `carry` */
} Precision;

static const Region *region_of(const Precision *p, const Node *n)
{
  return &p->c->graph->regions.at[n->region];
}

/* ---- casts ---- */

/* Returns x in type d, for `user`. All users of x share the cast, so a weight is rounded once. The
 * cast of a weight is the 16-bit working copy, which the optimizer's kernel updates. */
static Value shared_cast(Precision *p, const Node *user, Value x, DType d)
{
  if (ir_node(p->c->graph, x)->dtype == d) return x;
  while (p->casts.n <= x.id) vec_push(p->c->arena, &p->casts, (SharedCasts){0});
  Value *slot = &p->casts.at[x.id].to[d][region_of(p, user)->no_grad];
  if (slot->id) return *slot;
  Cursor at = ir_cursor_at(user, WHY_cast_for);
  return *slot = ir_cast(p->c, &at, x, d);
}

/* True if input i of n is cast. Numbers are not: a literal takes the type of the other operand. */
static bool is_castable(const Precision *p, const Node *n, uint32_t i)
{
  return n->in[i].id && !ir_in(p->c, n, i)->weak;
}

static bool is_float_input(const Precision *p, const Node *n, uint32_t i)
{
  return is_castable(p, n, i) && dtype_is_float(ir_in(p->c, n, i)->dtype);
}

static void cast_floats(Precision *p, Node *n, DType d)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (is_float_input(p, n, i)) n->in[i] = shared_cast(p, n, n->in[i], d);
  }
}

/* Casts the float inputs that enter one expression. */
static void cast_mixed(Precision *p, Node *n, DType d)
{
  uint32_t first, end = op_mixed_inputs(n, &first);
  for (uint32_t i = first; i < end; i++)
    if (is_float_input(p, n, i)) n->in[i] = shared_cast(p, n, n->in[i], d);
}

/* Casts inputs to their common type, as in PyTorch: f16 + f32 computes in f32. full_like(x, v)
 * copies v into a tensor of x's type, so v is cast to the type of x. */
static void cast_to_common(Precision *p, Node *n)
{
  uint32_t first, end = op_mixed_inputs(n, &first);
  if (!n->n_in) return;
  DType common = op_common_type(p->c, n);
  for (uint32_t i = first; i < end; i++) {
    if (is_castable(p, n, i)) n->in[i] = shared_cast(p, n, n->in[i], common);
  }
  if (end <= 1 && op_has(n, T_copies)) /* input 1 is a number that is copied into the result */
    for (uint32_t i = 1; i < n->n_in; i++)
      if (is_castable(p, n, i)) n->in[i] = shared_cast(p, n, n->in[i], common);
}

/* ---- categories ---- */

static const char *region_name(const Region *r)
{
  return r->label ? r->label : "`autocast(off)`";
}

/* Reports operands of different float types. With `autocast(off)` or category none, products do not
 * cast their operands. As in PyTorch, the user must then make the types equal. */
static void check_off(Precision *p, const Node *n)
{
  const OpSignature *sig = &op_of(n)->signature;
  uint32_t first = n->n_in;
  for (uint32_t i = 0; i < n->n_in && op_of(n)->precision == PREC_low; i++) {
    if (!is_float_input(p, n, i)) continue;
    if (first == n->n_in) first = i;
    DType a = ir_in(p->c, n, first)->dtype, b = ir_in(p->c, n, i)->dtype;
    if (a == b) continue;
    diag_error(p->c, E401, n->span, "%s mixes %s %s and %s %s in %s", op_of(n)->name,
               sig->input[first].name, ir_dtype_name(a), sig->input[i].name, ir_dtype_name(b),
               region_name(region_of(p, n)));
    diag_help(p->c, "`.to(f32)`, or `autocast(f32) { }`");
    return;
  }
}

/* Returns the category of the op, or the category that `policy` gives it. */
static OpPrecision class_of(const Precision *p, const Node *n)
{
  const uint8_t *policy = p->c->graph->policy;
  bool said = policy && !n->row && n->op < OP_COUNT && policy[n->op];
  return said ? (OpPrecision)(policy[n->op] - 1) : op_of(n)->precision;
}

/* Casts as torch.autocast("cuda") does, in a region whose 16-bit type is `low`. */
static WhyKind autocast(Precision *p, Node *n, DType low)
{
  DType widest = low;
  if (n->why == WHY_fewest) {
    cast_mixed(p, n, low);
    return WHY_fewest;
  }
  switch (class_of(p, n)) {
  case PREC_low:
    cast_floats(p, n, low);
    return WHY_low;
  case PREC_f32:
    cast_floats(p, n, AMPC_F32);
    return WHY_f32;
  case PREC_promote:
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (is_float_input(p, n, i)) widest = dtype_promote(widest, ir_in(p->c, n, i)->dtype);
    }
    cast_floats(p, n, widest);
    return WHY_promote;
  default:
    check_off(p, n); /* `policy` may give category none to a product */
    return WHY_follow;
  }
}

/* Obeys the `cast` of an op of the job, in regions that cast. Returns false if it has no `cast`. */
static bool by_own_cast(Precision *p, Node *n)
{
  RegionKind kind = region_of(p, n)->kind;
  const OwnOp *own = own_of(n);
  DType widest = AMPC_F32;
  bool found = false;
  if (!own || own->cast == OWN_region || kind == REGION_off || kind == REGION_tf32) return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!is_float_input(p, n, i)) continue;
    DType d = ir_in(p->c, n, i)->dtype;
    widest = found ? dtype_promote(widest, d) : d;
    found = true;
  }
  if (own->cast == OWN_promote) cast_floats(p, n, widest);
  if (own->cast == OWN_type) cast_floats(p, n, own->type);
  if (own->cast == OWN_low) cast_floats(p, n, region_low(kind));
  return true;
}

/* Reports inputs of other types than the op of the job declares: its text relies on `x: f32[N]`. */
static void check_own_types(Precision *p, const Node *n)
{
  const OwnOp *own = own_of(n);
  for (uint32_t i = 0; own && i < own->n_inputs; i++) {
    DType want, have = ir_in(p->c, n, i)->dtype;
    const char *name = own->input[i].name;
    if (!own_exact_type(&own->input[i], &want) || want == have) continue;
    diag_error(p->c, E306, n->span, "`%s` of %s is declared as %s, but is %s here", name, own->name,
               ir_dtype_name(want), ir_dtype_name(have));
    diag_note(p->c, own->input[i].span, "declared here");
    diag_help(p->c, "write `cast = %s` in the op, or `%s: float[..]` and the type %s_t in its text",
              ir_dtype_name(want), name, name);
  }
}

static WhyKind by_region(Precision *p, Node *n)
{
  if (by_own_cast(p, n)) return WHY_own;
  RegionKind kind = region_of(p, n)->kind;
  if (ampc_is_narrow(region_low(kind))) return autocast(p, n, region_low(kind));
  if (kind == REGION_off) {
    check_off(p, n);
    return WHY_off;
  }
  cast_floats(p, n, AMPC_F32);
  return WHY_region;
}

/* Casts the inputs as the region asks, then casts mixed inputs to their common type. The shape rule
 * derives the type of the result from the inputs. */
static void type_by_rules(Precision *p, Node *n)
{
  n->why = (uint8_t)by_region(p, n);
  cast_to_common(p, n);
  check_own_types(p, n);
  ir_infer(p->c, n);
  if (n->weak || !dtype_is_float(n->dtype)) n->why = WHY_fixed;
}

/* ---- ops with a type of their own ---- */

/* Casts inputs to f32: metrics and settings are f32 in every precision. */
static void cast_state_inputs(Precision *p, Node *n)
{
  uint32_t first = n->op == OP_minimize ? 1 : 0; /* input 0 is the loss, which keeps its type */
  for (uint32_t i = first; i < n->n_in; i++) {
    if (n->in[i].id) n->in[i] = shared_cast(p, n, n->in[i], AMPC_F32);
  }
}

static WhyKind fixed_reason(OpPrecision precision)
{
  switch (precision) {
  case PREC_stored:
    return WHY_storage;
  case PREC_asked:
    return WHY_asked;
  case PREC_kept:
    return WHY_follow;
  case PREC_fixed:
    return WHY_fixed;
  default:
    return WHY_state;
  }
}

static void type_fixed(Precision *p, Node *n)
{
  if (op_has(n, T_state_inputs)) cast_state_inputs(p, n);
  ir_infer(p->c, n);
  if (op_has(n, T_casts) && n->why == WHY_region) return; /* `policy` made this cast */
  n->why = (uint8_t)fixed_reason(op_of(n)->precision);
}

/* ---- constants ---- */

/* Rounds a number operand. As in PyTorch, a number that is compared with a tensor is first rounded
 * to the type of the tensor: in f16, 0.1 equals a stored 0.1. A number in `//` or `%` is rounded
 * too: in f16, 0.7 % 0.7 is 0. */
static void round_number(Precision *p, Node *n)
{
  if (!op_has(n, T_compares | T_rounds_number)) return; /* other ops may have no inputs */
  DType d = op_common_type(p->c, n);
  if (!dtype_is_float(d) || d == AMPC_F32) return;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *x = ir_in(p->c, n, i);
    if (x->op != OP_number) continue;
    Cursor at = ir_cursor_at(n, WHY_fixed);
    double v = attr_float(x, "value");
    if (rule_rounded(d, v) != v) n->in[i] = ir_number(p->c, &at, rule_rounded(d, v));
  }
}

/* ---- sums ---- */

/* Reports the first op that cannot sum in f64. A def of the library may contain one. */
static void check_wide(Precision *p, const Node *n)
{
  const char *why = op_against_wide(op_of(n));
  bool wide = p->c->graph->regions.at[n->region].wide;
  bool adds = op_by_library(op_of(n)) || op_has(n, T_tiles) || op_of(n)->tmpl == TMPL_own ||
              (op_of(n)->tmpl == TMPL_row && op_types(p->c, n).accumulate);
  if (!wide || !why || !adds || p->refused) return;
  p->refused = true;
  diag_error(p->c, E407, n->span, "this calls `%s`, which cannot sum in f64: %s", op_of(n)->name,
             why);
  diag_help(p->c, "leave it out of `accumulate`");
}

/* Marks n if it is an op that `accumulate` names, which sums in f64. */
static void set_sums(Precision *p, Node *n)
{
  const bool *wide = p->c->graph->wide;
  if (wide && !n->row && n->op < OP_COUNT && wide[n->op])
    n->region = ir_region_sums(p->c, n->region, true);
  check_wide(p, n);
}

/* ---- the pass ---- */

/* Appends a sum in f64 over axes that are not adjacent. A permute moves these axes after the others
 * and one node reduces them, so no intermediate result is rounded. */
static Value turned_reduction(Precision *p, const Node n, uint64_t axes)
{
  Compile *c = p->c;
  Cursor at = ir_cursor_at(&n, (WhyKind)n.why);
  uint32_t order[MAX_RANK], rank = ir_in(c, &n, 0)->rank, count = 0;
  for (uint32_t reduced = 0; reduced < 2; reduced++)
    for (uint32_t i = 0; i < rank; i++)
      if ((axes >> i & 1) == reduced) order[count++] = i;
  uint32_t kept = rank - (uint32_t)__builtin_popcountll(axes);
  uint64_t last = (((uint64_t)1 << rank) - 1) & ~(((uint64_t)1 << kept) - 1);
  Value x = ir_permute(c, &at, n.in[0], order);
  Value v = ir_reduce(c, &at, n.op, x, last, false);
  ir_node(c->graph, v)->name = n.name;
  return ir_reshape(c, &at, v, n.dim, n.rank);
}

/* sum(x, dim=[0, 2]) becomes two nodes, since one node reduces adjacent axes. The sums between them
 * are f32 even for a 16-bit x, so the result is rounded only once. */
static Value split_reduction(Precision *p, Node n, uint64_t axes)
{
  if (op_is_wide(p->c, &n)) return turned_reduction(p, n, axes);
  Compile *c = p->c;
  Cursor at = ir_cursor_at(&n, (WhyKind)n.why);
  Value x = n.in[0];
  StatementKind first = op_of(&n)->code.statements[0].kind;
  bool sums = first == STATEMENT_sum || first == STATEMENT_product;
  if (sums && dtype_is_float(n.dtype)) x = shared_cast(p, &n, x, AMPC_F32);
  Value v = ir_reduce(c, &at, n.op, x, axes, attr_int(&n, "keepdim"));
  v = ir_cast(c, &at, v, n.dtype);
  ir_node(c->graph, v)->name = n.name;
  return v;
}

/* Returns x for .to() with the type that x has. Inside no_grad no gradient may flow to x, so the
 * result is a detach there. */
static Value as_it_is(Precision *p, const Node *n)
{
  Cursor at = ir_cursor_at(n, WHY_follow);
  return region_of(p, n)->no_grad ? ir_append(p->c, &at, OP_detach, n->in, 1, NULL) : n->in[0];
}

/* ---- loops ---- */

/* Finds the type of a carried value. It is the same at the beginning and the end of each iteration.
 * The first candidate is the type of the initial value, the next one the type that the body
 * returns, and so on. If the body returns another type each time, the wider type is kept. */
static void settle_carried(Precision *p, uint32_t carry, DType leaves)
{
  DType finds = ir_node(p->c->graph, p->r.map[carry])->dtype;
  bool again = p->carried[carry] != AMPC_DTYPE_COUNT;
  DType better = again ? dtype_promote(finds, leaves) : leaves;
  if (!dtype_is_float(leaves) || better == finds) return;
  p->carried[carry] = better;
  p->settled = false;
}

static void type_carried(Precision *p, uint32_t id, Node *n)
{
  if (ir_carries(n) && p->carried[id] != AMPC_DTYPE_COUNT)
    n->in[0] = shared_cast(p, n, n->in[0], p->carried[id]);
  if (n->op != OP_next || ir_in(p->c, n, 1)->weak) return;
  settle_carried(p, p->r.old[id].in[0].id, ir_in(p->c, n, 1)->dtype);
  n->in[1] = shared_cast(p, n, n->in[1], ir_in(p->c, n, 0)->dtype);
}

/* Returns x cast for .to(x.dtype): the type of the other tensor is known here. */
static Value as_type_of(Precision *p, const Node *n)
{
  Cursor at = ir_cursor_at(n, n->why == WHY_region ? WHY_region : WHY_asked);
  DType d = ir_in(p->c, n, 1)->dtype;
  const Node *x = ir_in(p->c, n, 0);
  for (uint32_t i = 2; i < n->n_in; i++) d = dtype_promote(d, ir_in(p->c, n, i)->dtype);
  if (x->dtype == d && !x->weak) return as_it_is(p, n);
  Value v = ir_cast_asked(p->c, &at, n->in[0], d);
  rule_check_numbers(p->c, ir_node(p->c->graph, v));
  return v;
}

/* Determines the type of node `id` of the old array of nodes. Its inputs are already in the new
 * array and have their final types. */
static void type_node(Precision *p, uint32_t id)
{
  Node n = ir_rewrite_mapped(&p->r, id);
  uint64_t axes;
  if (op_has(&n, T_casts) && ir_in(p->c, &n, 0)->dtype == (DType)attr_int(&n, "dtype") &&
      !ir_in(p->c, &n, 0)->weak) {
    p->r.map[id] = as_it_is(p, &n);
    return;
  }
  if (n.op == OP_cast_like) {
    p->r.map[id] = as_type_of(p, &n);
    return;
  }
  /* cast_like may have put it into a loop, only to read a type there. */
  n.loop = ir_loop_for(p->c->graph, &n);
  type_carried(p, id, &n);
  if (op_says_type(op_of(&n)))
    type_fixed(p, &n);
  else
    type_by_rules(p, &n);
  rule_check_numbers(p->c, &n);
  round_number(p, &n);
  set_sums(p, &n);
  if (op_axes(&n, &axes) && !ir_axes_touch(axes))
    p->r.map[id] = split_reduction(p, n, axes);
  else
    ir_rewrite_add(&p->r, id, &n);
}

/* Removes the nodes from `first` on, and the casts among them from p->casts. */
static void forget_from(Precision *p, uint32_t first)
{
  p->c->graph->nodes.n = first;
  if (p->casts.n > first) p->casts.n = first;
  for (uint32_t i = 0; i < p->casts.n; i++)
    for (uint32_t d = 0; d < AMPC_DTYPE_COUNT; d++)
      for (uint32_t k = 0; k < 2; k++)
        if (p->casts.at[i].to[d][k].id >= first) p->casts.at[i].to[d][k].id = 0;
}

/* Returns the id after an outermost loop if node `id` is a carry of that loop; else 0. */
static uint32_t end_of_loop(const Precision *p, uint32_t id)
{
  const Graph *g = p->c->graph;
  const Node *n = &p->r.old[id];
  uint16_t loop = ir_carries(n);
  uint32_t end = 0;
  if (!loop || n->loop) return 0;
  for (uint32_t i = id + 1; i < p->r.n_old; i++)
    if (ir_loop_within(g, p->r.old[i].loop, loop)) end = i + 1;
  return end;
}

/* Types the nodes of a loop again and again, until the types of the carried values settle. Returns
 * the id after the loop. */
static uint32_t type_loop(Precision *p, uint32_t from, uint32_t end)
{
  uint32_t begin = p->c->graph->nodes.n;
  for (;;) {
    p->settled = true;
    for (uint32_t id = from; id < end; id++) type_node(p, id);
    if (p->settled || diag_error_count(p->c)) return end;
    forget_from(p, begin);
  }
}

/* ---- warnings ---- */

/* If x is 16-bit and p is a parameter in f32, then x + p is f32, and so is every node that reads
 * the sum, at twice the memory. Returns the parameter that widens n in this way, or 0. */
static Value widening_parameter(const Graph *g, const Node *n)
{
  Value param = {0};
  bool narrow = false;
  if (n->why != WHY_follow || n->dtype != AMPC_F32) return param;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *in = ir_node(g, n->in[i]);
    if (in->why == WHY_cast_for) narrow = narrow || ir_node(g, in->in[0])->dtype != AMPC_F32;
    while (in->op == OP_reshape || op_has(in, T_repeats)) in = ir_node(g, in->in[0]);
    if (ir_parameter(g, in)) param.id = (uint32_t)(in - g->nodes.at);
  }
  return narrow ? param : (Value){0};
}

/* Counts the nodes that are f32 because of `first`, directly or through other nodes. */
static uint32_t count_followers(const Graph *g, uint32_t first, bool *wide)
{
  uint32_t count = 0;
  for (uint32_t id = first; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    wide[id] = id == first;
    for (uint32_t i = 0; i < n->n_in && n->why == WHY_follow; i++)
      wide[id] = wide[id] || (n->in[i].id >= first && wide[n->in[i].id]);
    count += wide[id] && n->dtype == AMPC_F32 && !op_has(n, T_kept);
  }
  return count;
}

static bool is_word_char(char c)
{
  return in_name(c) || c == '.';
}

static bool has_word(const char *text, size_t size, const char *word)
{
  size_t n = strlen(word);
  for (size_t i = 0; i + n <= size; i++) {
    bool begins = !i || !is_word_char(text[i - 1]),
         ends = i + n == size || !is_word_char(text[i + n]);
    if (begins && ends && memcmp(text + i, word, n) == 0) return true;
  }
  return false;
}

/* Returns the name of n's 16-bit operand in the source text of n; NULL if it has no name there. */
static const char *narrow_name(Compile *c, const Node *n)
{
  Place p = diag_place(c, n->span);
  if (!p.source) return NULL;
  const char *text = p.source->text + (n->span.start - p.source->base);
  size_t size = n->span.end - n->span.start;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *in = ir_in(c, n, i);
    if (in->why == WHY_cast_for) in = ir_in(c, in, 0);
    if (in->dtype == AMPC_F32 || !dtype_is_float(in->dtype) || !in->name) continue;
    if (has_word(text, size, in->name)) return in->name;
  }
  return NULL;
}

/* Suggests a cast to the dtype of the other operand, which is right in any precision of the job. If
 * that operand has no name in the text, suggests the type itself. */
static void help_widened(Compile *c, const Node *n, const char *path)
{
  const char *name = narrow_name(c, n);
  DType low = region_low(c->graph->regions.at[n->region].kind);
  if (name)
    diag_help(c, "`%s.to(%s.dtype)`", path, name);
  else
    diag_help(c, "`%s.to(%s)`", path, ampc_is_narrow(low) ? ir_dtype_name(low) : "f16");
}

static void warn_widened(Compile *c)
{
  const Graph *g = c->graph;
  bool *wide = arena_array(c->arena, bool, g->nodes.n);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    Value v = widening_parameter(g, n);
    if (!v.id) continue;
    int64_t param = attr_int(ir_node(g, v), "index");
    const char *path = g->params.at[param].path;
    uint32_t count = count_followers(g, id, wide);
    vec_push(c->arena, &c->graph->widened, (Widened){param, count, n->span});
    diag_warning(c, W406, n->span, "f32 `%s` makes %u operation%s f32", path, count,
                 count == 1 ? "" : "s");
    help_widened(c, n, path);
  }
}

static void type_all(Precision *p)
{
  forget_from(p, 1);
  for (uint32_t id = 1; id < p->r.n_old; id++) p->carried[id] = AMPC_DTYPE_COUNT;
  for (uint32_t id = 1; id < p->r.n_old;) {
    uint32_t end = end_of_loop(p, id);
    if (end)
      id = type_loop(p, id, end);
    else
      type_node(p, id++);
  }
}

bool pass_precision(Compile *c)
{
  Precision p = {.c = c};
  ir_rewrite_begin(&p.r, c);
  p.carried = arena_array(c->arena, DType, p.r.n_old);
  do type_all(&p);
  while (c->graph->fewest_casts && !diag_error_count(c) && fewest_casts(c, &p.r));
  if (diag_error_count(c)) return false;
  warn_widened(c);
  bounds_warn(c);
  return true;
}
