/* Part of pass fuse: ops of windows (T_windows), such as max_pool2d; pads of channels.
 *
 * Ops over the same windows of the same value share a kernel: one op returns the largest elements,
 * another the indices of these. An elementwise node that only ops of windows read is computed as
 * the kernel loads the value, so it needs no memory. The pass does so only if the windows read each
 * element once. The other operands of such a node must have the same layout as the value, one value
 * a channel, or one value.
 *
 * A pad behind the last axis also takes the elementwise nodes that compute its input. */
#include "fuse.h"
#include <string.h>

/* True if operand k of n has the layout of the result of n, one value a channel, or one value. */
static bool is_addressed(const Fuse *f, const Node *n, uint32_t k)
{
  LoopShape s = loop_shape_of(n);
  Access whole = access_whole(&s), a = access_operand(f->c, &s, n, k);
  if (memcmp(a.stride, whole.stride, s.rank * sizeof *a.stride) == 0) return true;
  for (uint32_t i = 0; i + 1 < s.rank; i++)
    if (a.stride[i]) return false;
  return true;
}

/* Returns how many times nodes of both sets read the value. */
static uint32_t reads_inside(const Fuse *f, uint32_t id, uint32_t a, uint32_t b)
{
  uint32_t n = 0;
  for (uint32_t s = 0; s < 2; s++) {
    const Members *m = &f->sets.at[s ? a : b];
    for (uint32_t i = 0; i < m->nodes.n; i++) {
      const Node *reader = node_at(f, m->nodes.at[i]);
      for (uint32_t k = 0; k < reader->n_in; k++) n += f->root[reader->in[k].id] == id;
    }
  }
  return n;
}

/* True if an op of windows over x can compute n, which has the shape of x, and load its operands.
 */
static bool fits_windows(const Fuse *f, Value v, const Node *x)
{
  const Node *n = ir_node(f->g, v);
  for (uint32_t k = 0; k < n->n_in; k++)
    if (n->in[k].id && !is_addressed(f, n, k)) return false;
  return ir_same_dims(n, x);
}

/* True if the kernel of a pad of x can compute v, too: v has as many elements as x, and each of its
 * operands has as many or one. */
static bool fits_pad(const Fuse *f, Value v, const Node *x)
{
  return reads_flat(f->g, v) && ir_elements(ir_node(f->g, v)) == ir_elements(x);
}

/* True if the writer has only cheap elementwise nodes, which fit the operand x of the reader, and
 * only the two sets read them. */
static bool makes_operand_of_frame(const Fuse *f, uint32_t reader, uint32_t writer, const Node *x,
                                   bool (*fits)(const Fuse *f, Value v, const Node *x))
{
  const Members *w = &f->sets.at[writer];
  for (uint32_t i = 0; i < w->nodes.n; i++) {
    uint32_t id = w->nodes.at[i];
    const Node *n = node_at(f, id);
    const OpInfo *op = op_of(n);
    if (op->tmpl != TMPL_map || op_has(n, T_effect) || op->code.dear || op->code.random)
      return false;
    if (!fits(f, (Value){id}, x) || f->readers[id] != reads_inside(f, id, reader, writer))
      return false;
  }
  return w->nodes.n + f->sets.at[reader].nodes.n <= MAX_GROUP;
}

/* True if nodes a and b differ at most in bool attributes, which select what they return. */
static bool same_windows(const Fuse *f, uint32_t a, uint32_t b)
{
  const Node *n = node_at(f, a), *m = node_at(f, b);
  if (n->op != m->op || !run_together(f, a, b)) return false;
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (f->root[n->in[i].id] != f->root[m->in[i].id]) return false;
  for (uint32_t i = 0; i < sig->n_attrs; i++)
    if (sig->attr[i].kind != ATTR_bool && n->attr[i].i != m->attr[i].i) return false;
  return true;
}

/* True if an attribute differs: one node returns the largest elements, the other their indices. */
static bool tells_other(const Node *n, const Node *m)
{
  const OpSignature *sig = &op_of(n)->signature;
  bool other = false;
  for (uint32_t i = 0; i < sig->n_attrs; i++) other |= n->attr[i].i != m->attr[i].i;
  return other;
}

/* True if each kind of result occurs once in the joined set. The kernel stores each kind only once.
 * A node and its clone (checkpoint()) are of one kind. */
static bool tell_apart(const Fuse *f, const Members *a, const Members *b)
{
  for (uint32_t i = 0; i < a->nodes.n; i++)
    for (uint32_t k = 0; k < b->nodes.n; k++) {
      const Node *n = node_at(f, a->nodes.at[i]), *m = node_at(f, b->nodes.at[k]);
      if (op_has(n, T_windows) && op_has(m, T_windows) && !tells_other(n, m)) return false;
    }
  return true;
}

static void join_same(Fuse *f, uint32_t id)
{
  for (uint32_t other = 1; other < id; other++) {
    if (!f->group[other] || f->group[other] == f->group[id]) continue;
    if (!op_has(node_at(f, other), T_windows) || !same_windows(f, other, id)) continue;
    if (tell_apart(f, &f->sets.at[f->group[other]], &f->sets.at[f->group[id]]) &&
        fuse_are_apart(f, f->group[other], f->group[id]))
      fuse_join(f, f->group[id], f->group[other]);
  }
}

static void join_makers(Fuse *f, uint32_t id)
{
  const Node *n = node_at(f, id);
  for (uint32_t k = 0; k < n->n_in && windows_read_once(n); k++) {
    uint32_t reader = f->group[id], writer = f->group[f->root[n->in[k].id]];
    if (!writer || writer == reader) continue;
    const Node *x = ir_node(f->g, n->in[k]);
    if (run_together(f, f->sets.at[writer].nodes.at[0], id) &&
        makes_operand_of_frame(f, reader, writer, x, fits_windows) &&
        !fuse_makes_cycle(f, reader, writer))
      fuse_join(f, reader, writer);
  }
}

static void join_padded(Fuse *f, uint32_t id)
{
  Value x = value_root(f->g, node_at(f, id)->in[0]);
  uint32_t reader = f->group[id], writer = f->group[x.id];
  if (writer && run_together(f, f->sets.at[writer].nodes.at[0], id) &&
      makes_operand_of_frame(f, reader, writer, ir_node(f->g, x), fits_pad) &&
      !fuse_makes_cycle(f, reader, writer))
    fuse_join(f, reader, writer);
}

void fuse_windows(Fuse *f)
{
  for (uint32_t id = 1; id < f->g->nodes.n; id++)
    if (f->group[id] && pad_vector(f->c, (Value){id})) join_padded(f, id);
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t id = 1; id < f->g->nodes.n; id++) {
      if (!f->group[id] || !op_has(node_at(f, id), T_windows)) continue;
      if (pass)
        join_makers(f, id);
      else
        join_same(f, id);
    }
}
