/* Data that the files of pass fuse share: sets of nodes, which become groups at the end. */
#pragma once
#include "compiler/command/walk.h"

enum { MAX_GROUP = 48 }; /* nodes of a set; more would not fit in registers */

typedef struct Members {
  VEC(uint32_t) nodes; /* in execution order */
} Members;

/* An order between two nodes of which neither reads the other, such as two effects (order.c). */
typedef struct Edge {
  uint32_t before, next; /* before: the node that comes first; next: next edge of the list, or 0 */
} Edge;
typedef struct Order {
  uint32_t *first; /* node -> its first edge; 0: no edge */
  VEC(Edge) edges; /* edges.at[0] is unused */
} Order;

typedef struct Fuse {
  Compile *c;
  Graph *g;
  uint32_t *root;  /* node -> value_root() of it */
  uint32_t *group; /* node -> index into sets; 0: not computed by a command */
  uint32_t *part;  /* node -> index of its set before sets shared launches: Note [parts] */
  uint32_t *phase; /* node -> number of fences before it, see Note [fences] */
  Order order;
  VEC(Members) sets;    /* sets.at[0] is unused */
  uint32_t *readers;    /* value -> how often it is read */
  uint32_t *sums;       /* block, parameter -> number of gradients added to its slot */
  uint32_t *reader;     /* value -> the last row op or small node that reads it; 0: no such node */
  uint32_t *row_reader; /* set -> the last small row op that reads a value of the set; else 0 */
  bool *in_turn;        /* set -> one block computes it, and its parts run one after the other */
  uint32_t *level;      /* part -> 1 + the highest level of parts that it waits for; 0: not known */
  uint32_t *turn;       /* set -> its turn, later than those of all sets that it waits for */
  uint32_t *taker;      /* turn -> the set that has it; 0: no set */
  uint32_t *room;       /* scratch space for n sets */
  uint32_t *begin;      /* loop -> the set that begins it */
  uint32_t *mark;       /* set -> the last search that visited it */
  uint32_t search;
} Fuse;

static inline const Node *node_at(const Fuse *f, uint32_t id)
{
  return &f->g->nodes.at[id];
}

/* True if one command may compute both nodes: they are in the same block and the same loop. */
static inline bool run_together(const Fuse *f, uint32_t a, uint32_t b)
{
  const Node *n = node_at(f, a), *m = node_at(f, b);
  return n->block == m->block && n->loop == m->loop;
}

/* order.c: Finds the order of effects. Runs after fold_nodes(). */
void order_effects(Compile *c, Order *out);

/* loops.c: Puts the nodes of each loop together, between `scan` and `scan_end`. */
void bound_loops(Compile *c);

/* fuse.c: */
/* True if a command computes the node. No command computes leaves, which exist already; aliases,
 * which have the bytes of another node; folded nodes, which readers compute; and working copies,
 * which the optimizer writes. */
bool fuse_has_command(const Graph *g, uint32_t id);
/* Moves the nodes of set `reader` into set `writer`. */
void fuse_join(Fuse *f, uint32_t reader, uint32_t writer);

/* passes/fuse/turns.c finds which sets wait for which. */
typedef struct Wait { /* an iterator over what a node waits for; begin with {0} */
  uint32_t input, edge, set;
  bool in_edges;
} Wait;
/* Finds the next set that node `id` waits for: first the sets of its operands, then the sets in its
 * edges (order.c). If no set computes an operand, w->set is 0. Returns false at the end. */
bool fuse_next_wait(const Fuse *f, uint32_t id, Wait *w);
void fuse_turns_create(Fuse *f);
void fuse_turns_join(Fuse *f, uint32_t reader, uint32_t writer);
/* True if `set` waits for `target`, directly or through other sets. */
bool fuse_waits_for(Fuse *f, uint32_t set, uint32_t target);
/* True if `reader` waits for `writer` through a third set. Then one command cannot compute both. */
bool fuse_makes_cycle(Fuse *f, uint32_t reader, uint32_t writer);
bool fuse_are_apart(Fuse *f, uint32_t a, uint32_t b); /* true if neither waits for the other */

/* passes/fuse/windows.c: Joins ops of windows with each other and with the makers of their
 * operands. */
void fuse_windows(Fuse *f);
/* passes/fuse/tiles.c: Joins nodes that multiply the same operands in tiles. */
void fuse_tiles(Fuse *f);

/* passes/fuse/groups.c: */
void make_groups(Fuse *f);

/* share.c: Lets several sets share a launch. */
void share_launches(Fuse *f);
/* Returns the group of a set. Each part of the group follows the parts that it waits for. */
Group share_group(Fuse *f, const Members *m);
