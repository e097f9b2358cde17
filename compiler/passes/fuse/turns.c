/* Part of pass fuse: finds which sets wait for which.
 *
 * Note [turns]: each set has a turn, a number that is higher than the turns of all sets that it
 * waits for. So a search for a set stops at sets with earlier turns, and a query visits only
 * sets between the two, not the whole program. When two sets join, the sets between their turns
 * are numbered again: first those that the later one waits for, then the joined set, then the
 * others. */
#include "fuse.h"

bool fuse_next_wait(const Fuse *f, uint32_t id, Wait *w)
{
  const Node *n = &f->g->nodes.at[id];
  if (w->input < n->n_in) {
    w->set = f->group[f->root[n->in[w->input++].id]];
    return true;
  }
  w->edge = w->in_edges ? f->order.edges.at[w->edge].next : f->order.first[id];
  w->in_edges = true;
  w->set = w->edge ? f->group[f->order.edges.at[w->edge].before] : 0;
  return w->edge != 0;
}

/* ---- turns ---- */

/* Gives each set its first turn: the order of the graph is a valid order of execution. */
void fuse_turns_create(Fuse *f)
{
  uint32_t n = f->sets.n;
  f->turn = arena_array(f->c->arena, uint32_t, n);
  f->taker = arena_array(f->c->arena, uint32_t, n);
  f->room = arena_array(f->c->arena, uint32_t, n);
  for (uint32_t i = 1; i < n; i++) f->turn[i] = f->taker[i] = i;
}

/* Marks the sets with turns after `from` that the set waits for. */
static void mark_waited(Fuse *f, uint32_t set, uint32_t from)
{
  f->mark[set] = f->search;
  const Members *m = &f->sets.at[set];
  for (uint32_t i = 0; i < m->nodes.n; i++)
    for (Wait w = {0}; fuse_next_wait(f, m->nodes.at[i], &w);)
      if (f->turn[w.set] > from && f->mark[w.set] != f->search) mark_waited(f, w.set, from);
}

static void take(Fuse *f, uint32_t turn, uint32_t set)
{
  f->turn[set] = turn;
  f->taker[turn] = set;
}

void fuse_turns_join(Fuse *f, uint32_t reader, uint32_t writer)
{
  bool after = f->turn[reader] > f->turn[writer];
  uint32_t first = f->turn[after ? writer : reader], last = f->turn[after ? reader : writer];
  uint32_t n = 0, at = first;
  f->search++;
  mark_waited(f, after ? reader : writer, first);
  for (uint32_t i = first + 1; i < last; i++) {
    uint32_t set = f->taker[i];
    if (set && f->mark[set] == f->search)
      take(f, at++, set);
    else if (set)
      f->room[n++] = set;
  }
  f->turn[reader] = 0;
  take(f, at++, writer);
  for (uint32_t i = 0; i < n; i++) take(f, at++, f->room[i]);
  while (at <= last) f->taker[at++] = 0;
}

/* ---- queries ---- */

static bool waits_for(Fuse *f, uint32_t set, uint32_t target)
{
  if (set == target) return true;
  if (f->turn[set] < f->turn[target] || f->mark[set] == f->search) return false;
  f->mark[set] = f->search;
  const Members *m = &f->sets.at[set];
  for (uint32_t i = 0; i < m->nodes.n; i++)
    for (Wait w = {0}; fuse_next_wait(f, m->nodes.at[i], &w);)
      if (waits_for(f, w.set, target)) return true;
  return false;
}

bool fuse_waits_for(Fuse *f, uint32_t set, uint32_t target)
{
  f->search++;
  return waits_for(f, set, target);
}

/* If a waits for b, and b for c, one command for a and c would wait for b, which waits for it. */
bool fuse_makes_cycle(Fuse *f, uint32_t reader, uint32_t writer)
{
  f->search++;
  const Members *m = &f->sets.at[reader];
  for (uint32_t i = 0; i < m->nodes.n; i++)
    for (Wait w = {0}; fuse_next_wait(f, m->nodes.at[i], &w);)
      if (w.set != reader && w.set != writer && waits_for(f, w.set, writer)) return true;
  return false;
}

bool fuse_are_apart(Fuse *f, uint32_t a, uint32_t b)
{
  return !fuse_waits_for(f, a, b) && !fuse_waits_for(f, b, a);
}
