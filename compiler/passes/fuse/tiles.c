/* Part of pass fuse: nodes that multiply the same operands in tiles (T_tiles) share a kernel, which
 * computes their first product once. They differ only in the last attribute, which selects the
 * result. Nodes that the device's library may compute share a command at every level of
 * optimization, so that the same implementation computes them at all levels. */
#include "fuse.h"
#include "compiler/rules/rules.h"

static bool may_share(const Node *n, const Node *m)
{
  if (n->op != m->op || n->block != m->block || n->stream != m->stream) return false;
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id != m->in[i].id) return false;
  for (uint32_t i = 0; i + 1 < sig->n_attrs; i++)
    if (n->attr[i].i != m->attr[i].i) return false;
  return true;
}

void fuse_tiles(Fuse *f)
{
  VEC(uint32_t) all = {0};
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    const Node *n = node_at(f, id);
    if (!f->group[id] || !op_has(n, T_tiles)) continue;
    if (!f->c->options.optimize && !rule_by_library(f->c, n)) continue;
    for (uint32_t i = 0; i < all.n; i++) {
      uint32_t other = all.at[i];
      if (f->group[other] != f->group[id] && may_share(node_at(f, other), n) &&
          fuse_are_apart(f, f->group[other], f->group[id]))
        fuse_join(f, f->group[id], f->group[other]);
    }
    vec_push(f->c->arena, &all, id);
  }
}
