/* Part of pass recompute: computes the result of a batch norm again in its backward.
 *
 * The backward of `y = relu(b)`, `b = batch_norm(x, ..)` runs two kernels: one sums over each
 * channel, one computes the gradient of x. Both load x and the channel's mean, rstd and weight
 * anyway, so recomputing b costs little. Then neither kernel reads y, and the gradient of b (m
 * below) is not stored:
 *
 *   before                                     after
 *   m = relu_backward(dy, y)                   b1 = batch_norm(x, ..)   m1 = relu_backward(dy, b1)
 *   sums of m and x       reads 3, writes 1    sums of m1 and x               reads 2
 *   dx of m and x         reads 2, writes 1    b2, m2, dx of m2 and x         reads 2, writes 1
 *
 * The clones compute the same bits. Before an expensive activation such as SiLU nothing is
 * recomputed: its derivative and the sums together need too many registers. At -O0 nothing is
 * recomputed either, because without fusion each clone would be a command. */
#include "recompute.h"
#include "compiler/graph/ops.h"

typedef struct Norms {
  Rewrite r;
  uint32_t *readers; /* value -> inputs that read it */
  uint32_t *own;     /* value -> those of sums over channels and of the backward of batch norm */
  uint32_t *norm;    /* gradient m -> the batch norm whose result it reads; 0: none */
} Norms;

/* Returns the batch norm whose result gradient m reads in input k, itself or through relu; or 0. */
static uint32_t norm_read(const Norms *x, const Node *m, uint32_t k)
{
  uint32_t id = m->in[k].id;
  bool by_sign = op_has(m, T_by_sign) && k == 1;
  if (by_sign && op_has(&x->r.old[id], T_rectifies)) id = x->r.old[id].in[0].id;
  return op_has(&x->r.old[id], T_normalizes) ? id : 0;
}

/* True if n belongs to the backward of batch norm b: it reads the same x and moments. */
static bool is_back_of(const Node *n, const Node *b)
{
  for (uint32_t k = 0; k < 3; k++)
    if (n->in[k + 1].id != b->in[k].id) return false;
  return true;
}

/* Finds the slope that n, a sum in the backward of a batch norm, reads: a node of backward that
 * reads the result of the batch norm. */
static void find_slope(Norms *x, const Node *n)
{
  const Node *m = &x->r.old[n->in[0].id];
  if (op_of(m)->tmpl != TMPL_map || op_of(m)->code.dear || !m->origin.id) return;
  for (uint32_t k = 0; k < m->n_in; k++) {
    uint32_t b = norm_read(x, m, k);
    if (b && is_back_of(n, &x->r.old[b])) x->norm[n->in[0].id] = b;
  }
}

static void find_slopes(Norms *x)
{
  uint32_t channel;
  for (uint32_t id = 1; id < x->r.n_old; id++) {
    const Node *n = &x->r.old[id];
    bool sums = op_of(n)->tmpl == TMPL_row && attr_find(op_of(n), "channel", &channel);
    for (uint32_t k = 0; k < n->n_in; k++) x->readers[n->in[k].id]++;
    if (sums || op_has(n, T_norm_back)) x->own[n->in[0].id]++;
    if (sums && op_has(n, T_norm_back)) find_slope(x, n);
  }
}

/* True if the backward of the batch norm alone reads slope m, which is cheap to compute again: from
 * the batch norm and one gradient. */
static bool is_cheap(const Norms *x, uint32_t m)
{
  const Node *n = &x->r.old[m];
  return n->n_in == 2 && !op_draws(n) && x->own[m] == x->readers[m];
}

/* Adds slope m, which reads a clone of its batch norm instead of the original. */
static Value add_slope(Norms *x, uint32_t m)
{
  uint32_t b = x->norm[m];
  Value first = x->r.map[b];
  Node norm = ir_rewrite_mapped(&x->r, b), slope = ir_rewrite_mapped(&x->r, m);
  norm.origin = first;
  norm.after = recompute_after(&x->r, m);
  Value clone = ir_rewrite_add(&x->r, b, &norm);
  x->r.map[b] = first;
  for (uint32_t k = 0; k < slope.n_in; k++)
    if (norm_read(x, &x->r.old[m], k) == b) slope.in[k] = clone;
  return ir_rewrite_add(&x->r, m, &slope);
}

void recompute_norms(Compile *c)
{
  uint32_t n = c->graph->nodes.n;
  Norms x = {.readers = arena_array(c->arena, uint32_t, n),
             .own = arena_array(c->arena, uint32_t, n),
             .norm = arena_array(c->arena, uint32_t, n)};
  ir_rewrite_begin(&x.r, c);
  find_slopes(&x);
  for (uint32_t id = 1; id < n; id++) {
    const Node *old = &x.r.old[id];
    uint32_t m = old->n_in ? old->in[0].id : 0;
    bool dx = op_of(old)->tmpl == TMPL_map && op_has(old, T_norm_back);
    if (dx && x.norm[m] && is_cheap(&x, m) && is_back_of(old, &x.r.old[x.norm[m]]))
      add_slope(&x, m);
    if (x.norm[id])
      add_slope(&x, id);
    else
      ir_rewrite_copy(&x.r, id);
  }
  ir_drop_dead(c);
}
