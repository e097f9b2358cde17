/* Part of pass precision, for `fewest_casts(true)`: which ops run in 16 bits although autocast
 * makes them f32. It reads the graph with the types of autocast; precision.c then casts for these
 * ops.
 *
 * Note [fewest casts]
 * A cast within a kernel is free (Note [bytes of a cast] in explain/gather.c). A cast moves bytes
 * if memory holds both forms of a value, f32 and 16 bits, or if the cast is a kernel of its own:
 *   forward   an op computes v in f32; one reader needs v in 16 bits, another one in f32
 *   backward  x + y is f32, and y is a product: the gradient is f32 for x, 16 bits for the product
 *   move      cat, slices and the like cannot widen what they move, in forward or in backward
 * Each case needs an f32 form because some op is f32. An op is free if autocast leaves its type to
 * its inputs. Casts move the fewest bytes if all free ops are 16-bit: no two sides compete, and no
 * minimum cut has to be found. But 16 bits round. So a free op becomes 16-bit only if its operands
 * get second forms with fewer elements than its result, and if it is in one of the cases:
 *   forward   it makes v; or it reads v, v must be f32, and all f32 readers of v are free
 *   backward  it is the sum
 *   move      it is the move
 * The op may then read an f32 value that others need in f32. So types are found again, until no op
 * changes.
 *
 * Fusion is not known yet. If it keeps in registers what is expected in memory here, an op becomes
 * 16-bit in vain. tests/random/fewest_casts.py compares the bytes with those of all choices. */
#include "fewest_casts.h"
#include "compiler/graph/ops.h"
#include "compiler/rules/rules.h"
#include <math.h>

/* How a value is read, directly or through views. READ_free and READ_f32 read f32 from memory, in
 * an op that is free and in another one. READ_kept: the value must be f32 in memory, as a result of
 * the block or for an op that cannot widen it. */
enum { READ_narrowed = 1, READ_free = 2, READ_f32 = 4, READ_kept = 8, READ_register = 16 };

/* Each array is indexed by node. */
typedef struct Fewest {
  const Graph *g;
  uint32_t *depth; /* products before it; the ops between two products can share a kernel */
  bool *narrowed;  /* a cast to 16 bits reads it */
  bool *free;      /* is_free() */
  uint8_t *read;   /* READ_ .. */
} Fewest;

/* ---- nodes ---- */

static DType low_of(const Graph *g, const Node *n)
{
  return region_low(g->regions.at[n->region].kind);
}

static bool is_view(const Node *n)
{
  return op_of(n)->tmpl == TMPL_alias && !op_has(n, T_kept);
}

/* Returns the node of which v is a view, or that of v. */
static Value made_at(const Graph *g, Value v)
{
  while (is_view(ir_node(g, v))) v = ir_node(g, v)->in[0];
  return v;
}

static bool is_product(const Node *n)
{
  return op_by_library(op_of(n)) || op_has(n, T_tiles);
}

static bool is_narrowing(const Graph *g, const Node *n)
{
  return op_has(n, T_casts) && ampc_is_narrow(n->dtype) && n->dtype == low_of(g, n);
}

static bool is_widening_of(const Graph *g, const Node *n)
{
  return op_has(n, T_casts) && n->dtype == AMPC_F32 && ampc_is_narrow(ir_node(g, n->in[0])->dtype);
}

static bool is_trained(const Graph *g, const Node *n)
{
  return g->blocks.n && g->blocks.at[n->block].kind == AMPC_TRAIN &&
         !g->regions.at[n->region].no_grad;
}

/* True for moves whose gradient is a move, too: not for lookups. */
static bool is_shuffle(const Node *n)
{
  return op_of(n)->tmpl == TMPL_move && op_has(n, T_strided | T_permutes | T_mixes | T_copies);
}

static bool adds(const Node *n)
{
  return op_has(n, T_mixes) && gradient_is_passed(op_of(n));
}

static void find_depths(Fewest *f)
{
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    const Node *n = &f->g->nodes.at[id];
    if (is_narrowing(f->g, n)) f->narrowed[n->in[0].id] = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
      uint32_t depth = f->depth[n->in[i].id] + is_product(n);
      if (depth > f->depth[id]) f->depth[id] = depth;
    }
  }
}

/* ---- free ops ---- */

static bool fits(DType d, double v)
{
  double rounded = rule_rounded(d, v);
  return !isfinite(v) || v == 0 || (isfinite(rounded) && rounded != 0);
}

/* True if the numbers that n contains neither overflow nor vanish in type d. */
static bool numbers_fit(const Graph *g, const Node *n, DType d)
{
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *x = ir_node(g, n->in[i]);
    double v;
    if (!n->in[i].id || !x->weak) continue;
    if (!rule_literal(x, &v) || !fits(d, v) || (v != 0 && !fits(d, 1 / v))) return false;
  }
  for (uint32_t i = 0; i < sig->n_attrs; i++)
    if (sig->attr[i].kind == ATTR_float && !fits(d, n->attr[i].f)) return false;
  return true;
}

/* True if no kernel makes x, which could also store 16 bits: its readers read a leaf. */
static bool is_given(const Graph *g, Value x)
{
  const Node *n = ir_node(g, x);
  while (is_view(n) || op_has(n, T_strided | T_repeats)) n = ir_node(g, n->in[0]);
  return op_of(n)->tmpl == TMPL_leaf;
}

/* True if all floats that n computes with are f32. A leaf must be small: a kernel that only casts
 * it reads 4 bytes and stores 2 for an element. */
static bool can_narrow(const Fewest *f, const Node *n)
{
  uint32_t first, end = op_mixed_inputs(n, &first), floats = 0;
  for (uint32_t i = first; i < end; i++) {
    Value v = n->in[i];
    const Node *x = ir_node(f->g, v);
    if (!v.id || x->weak) continue;
    bool copied = is_given(f->g, v) && !f->narrowed[v.id];
    if (x->dtype != AMPC_F32 || (copied && 3 * ir_elements(x) > ir_elements(n))) return false;
    floats++;
  }
  return floats > 0;
}

/* True if autocast leaves the type of node `id` to its inputs, it is f32, and it can be 16-bit. */
static bool is_free(const Fewest *f, uint32_t id)
{
  const Graph *g = f->g;
  const Node *n = &g->nodes.at[id];
  bool follows = n->why == WHY_follow || n->why == WHY_promote;
  return follows && n->dtype == AMPC_F32 && ampc_is_narrow(low_of(g, n)) && !n->weak && !n->row &&
         !is_view(n) && !op_says_type(op_of(n)) && !(f->read[id] & READ_kept) &&
         !is_given(g, (Value){id}) && numbers_fit(g, n, low_of(g, n)) && can_narrow(f, n);
}

/* ---- readers ---- */

/* True if the kernel that makes x has ended when node `id`, or its gradient, reads x. The gradient
 * of a linear op does not read x. A move has a kernel of its own. */
static bool reads_memory(const Fewest *f, uint32_t id, Value x)
{
  const Node *n = &f->g->nodes.at[id];
  bool linear = adds(n) || op_has(n, T_linear | T_picks), moves = op_of(n)->tmpl == TMPL_move;
  return moves || f->depth[id] > f->depth[x.id] || (is_trained(f->g, n) && !linear);
}

static uint8_t reads(const Fewest *f, uint32_t id, Value x)
{
  const Node *n = &f->g->nodes.at[id];
  if (is_view(n)) return f->read[id];
  if (op_has(n, T_kept) || op_by_library(op_of(n)) || op_of(n)->tmpl == TMPL_own) return READ_kept;
  if (is_narrowing(f->g, n)) return READ_narrowed;
  if (!reads_memory(f, id, x)) return READ_register;
  return f->free[id] ? READ_free : READ_f32;
}

/* From the last node to the first: the readers of a node are known before it. Dead nodes read
 * nothing. */
static void find_readers(Fewest *f)
{
  for (uint32_t id = f->g->nodes.n - 1; id > 0; id--) {
    const Node *n = &f->g->nodes.at[id];
    if (!f->read[id] && !op_has(n, T_effect | T_kept | T_crosses)) continue;
    f->free[id] = is_free(f, id);
    for (uint32_t i = 0; i < n->n_in; i++) f->read[n->in[i].id] |= reads(f, id, n->in[i]);
  }
}

/* ---- the cases ---- */

/* True if memory holds v in f32 as long as its op is f32: for these readers, or for its gradient.
 */
static bool lies_in_f32(const Fewest *f, Value v, uint8_t readers)
{
  const Node *n = ir_node(f->g, v);
  if (f->read[v.id] & readers) return true;
  return gradient_reads_result(op_of(n)) && is_trained(f->g, n);
}

/* Forward: node `id` makes a value of which both forms are needed. */
static bool makes_both_forms(const Fewest *f, uint32_t id)
{
  return (f->read[id] & READ_narrowed) && lies_in_f32(f, (Value){id}, READ_free | READ_f32);
}

/* Forward: node `id` reads such a value, which must be f32, as only free ops do. */
static bool reads_both_forms(const Fewest *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  for (uint32_t i = 0; i < n->n_in; i++) {
    Value x = n->in[i], made = made_at(f->g, x);
    const Node *maker = ir_node(f->g, made);
    bool must = !f->free[made.id] && maker->dtype == AMPC_F32 && !ir_parameter(f->g, maker);
    bool only_free = !(f->read[made.id] & (READ_f32 | READ_kept));
    if (must && only_free && (f->read[x.id] & READ_narrowed) && reads_memory(f, id, x)) return true;
  }
  return false;
}

/* Backward: node `id` adds a product and another tensor. If only 16-bit ops read the sum, its
 * gradient is 16-bit anyway. */
static bool splits_gradient(const Fewest *f, uint32_t id)
{
  const Graph *g = f->g;
  const Node *n = &g->nodes.at[id];
  bool product = false;
  if (!adds(n) || !is_trained(g, n) || f->read[id] == READ_narrowed) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const Node *x = ir_node(g, n->in[i]);
    if (x->weak) return false;
    product = product || (x->why == WHY_cast_for && is_widening_of(g, x) &&
                          is_product(ir_node(g, made_at(g, x->in[0]))));
  }
  return product;
}

/* Move: node `id` reads a widened value; or its result is narrowed, and its gradient widened. */
static bool moves_cast(const Fewest *f, uint32_t id)
{
  const Graph *g = f->g;
  const Node *n = &g->nodes.at[id];
  if (op_of(n)->tmpl != TMPL_move) return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (is_widening_of(g, ir_node(g, made_at(g, n->in[i])))) return true;
  return f->read[id] == READ_narrowed && is_shuffle(n);
}

static int64_t new_forms(const Fewest *f, const Node *n);

/* Returns how many elements get a second form of 2 bytes in memory if a 16-bit op reads x. A move
 * cannot narrow x, and in backward it cannot widen its gradient; but it may become 16-bit, too. */
static int64_t new_form(const Fewest *f, const Node *reader, Value x)
{
  Value made = made_at(f->g, x);
  const Node *n = ir_node(f->g, made);
  bool free = f->free[made.id], leaf = op_of(n)->tmpl == TMPL_leaf; /* leaf: can_narrow() */
  if (!x.id || n->weak || n->dtype != AMPC_F32 || leaf || f->narrowed[x.id]) return 0;
  if (is_shuffle(n) && free && !(f->read[made.id] & (READ_f32 | READ_register)))
    return new_forms(f, n);
  if (is_shuffle(n)) return 2 * ir_elements(n);
  bool stays = !free && !is_widening_of(f->g, n) && lies_in_f32(f, made, READ_f32 | READ_kept);
  bool part = ir_elements(n) > ir_elements(reader); /* a slice of n */
  return stays || part ? ir_elements(n) : 0;
}

static int64_t new_forms(const Fewest *f, const Node *n)
{
  int64_t elements = 0;
  for (uint32_t i = 0; i < n->n_in; i++) elements += new_form(f, n, n->in[i]);
  return elements;
}

static bool saves(const Fewest *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  bool cases = f->free[id] && (makes_both_forms(f, id) || reads_both_forms(f, id) ||
                               splits_gradient(f, id) || moves_cast(f, id));
  return cases && new_forms(f, n) < ir_elements(n);
}

bool fewest_casts(Compile *c, const Rewrite *r)
{
  const Graph *g = c->graph;
  Fewest f = {.g = g,
              .depth = arena_array(c->arena, uint32_t, g->nodes.n),
              .narrowed = arena_array(c->arena, bool, g->nodes.n),
              .free = arena_array(c->arena, bool, g->nodes.n),
              .read = arena_array(c->arena, uint8_t, g->nodes.n)};
  bool any = false;
  find_depths(&f);
  find_readers(&f);
  for (uint32_t id = 1; id < r->n_old; id++) {
    Node *n = &r->old[id];
    if (n->why == WHY_fewest || !saves(&f, r->map[id].id)) continue;
    n->why = WHY_fewest;
    any = true;
  }
  return any;
}
