/* The grid and the block of a launch. */
#include "command_parts.h"
#include "compiler/graph/own.h"

enum {
  CUDA_MAX_GRID =
      1056, /* eight blocks on each of 132 multiprocessors; kernels loop if they need more */
  CPU_SHARE = 32768 /* elements that justify waking one more thread */
};

/* Returns n, but at least 1: on CUDA a grid of 0 blocks is an error. */
static int64_t at_least_1(int64_t n)
{
  return n < 1 ? 1 : n;
}

/* Returns the number of elements that the kernel walks. Without an anchor these are the elements of
 * its nodes' shape, with an anchor those of the largest operand or of an update's range. */
static int64_t work_of(Compile *c, const Group *p, const KernelArgs *args)
{
  const Graph *g = c->graph;
  if (!p->anchor.id) return at_least_1(ir_elements(node_walked(g, p->nodes[0])));
  int64_t most = 1;
  for (uint32_t i = 0; i < args->n; i++) {
    Value v = args->at[i].value;
    int64_t n = v.id ? ir_elements(ir_node(g, v)) : 1;
    if (n > most) most = n;
  }
  int64_t range = node_range(g, ir_node(g, p->anchor));
  if (range >= 0) most = range;
  return most;
}

static uint32_t limit_grid(int64_t blocks)
{
  return (uint32_t)(blocks > CUDA_MAX_GRID ? CUDA_MAX_GRID : at_least_1(blocks));
}

Geometry elements_geometry(int64_t n)
{
  return (Geometry){limit_grid((n + CUDA_BLOCK - 1) / CUDA_BLOCK), CUDA_BLOCK};
}

/* With columns, a block computes a tile, else one or several rows, which its threads share. */
static Geometry row_geometry(const RowShape *r)
{
  if (row_has_columns(r)) {
    ColumnTile t = row_tile(r);
    return (Geometry){limit_grid((r->parts ? r->parts : r->outer) * t.tiles), CUDA_BLOCK};
  }
  const int64_t rows_of_block = CUDA_BLOCK / row_walk(r).threads;
  return (Geometry){limit_grid((r->outer + rows_of_block - 1) / rows_of_block), CUDA_BLOCK};
}

static Geometry work_geometry(Compile *c, const Group *p, const KernelPart *part)
{
  int64_t work = work_of(c, p, &part->args), threads = at_least_1(work / CPU_SHARE);
  if (is_cpu_target(c)) return (Geometry){(uint32_t)(threads > 64 ? 64 : threads), 1};
  const Node *n = p->anchor.id ? ir_node(c->graph, p->anchor) : NULL;
  bool vectors = n && node_range(c->graph, n) >= 0;
  return elements_geometry(vectors ? work / update_vector(c->graph, n) : work);
}

/* A kernel by vectors has one thread for each vector, because EACH_VECTOR is not a loop. */
static Geometry vector_geometry(const MapWalk *m)
{
  int64_t blocks = (map_threads(m) + CUDA_BLOCK - 1) / CUDA_BLOCK;
  return (Geometry){(uint32_t)blocks, CUDA_BLOCK};
}

Geometry part_geometry(Compile *c, const Group *p, const KernelPart *part, bool is_part)
{
  const Node *n = ir_node(c->graph, p->anchor);
  bool cpu = is_cpu_target(c);
  if (!cpu && !is_part && part->map && part->map->vector > 1) return vector_geometry(part->map);
  if (!p->anchor.id) return work_geometry(c, p, part);
  if (own_of(n)) return own_geometry(c, p);
  if (part->tiles) return tiles_geometry(c, p, part->tiles);
  if (op_has(n, T_one_block)) return (Geometry){1, cpu ? 1 : CUDA_BLOCK};
  if (cpu) return work_geometry(c, p, part);
  if (op_has(n, T_partials) && n->rank) return (Geometry){(uint32_t)n->dim[0], CUDA_BLOCK};
  if (part->windows) return elements_geometry(part->windows->threads);
  return part->rows ? row_geometry(&part->rows->shape) : work_geometry(c, p, part);
}

/* On the CPU a block is one thread of the pool. The grid is the number of threads that the work
 * justifies, at most 64. Kernels loop with the stride of the grid, so one kernel text serves both
 * machines. For the same reason all parts of a launch can use the largest grid and block that any
 * of them needs. A part still sums in the order in which it sums as a kernel of its own. Parts that
 * use a single block each get a block of their own. Parts that the last block runs use that block's
 * threads. */
Geometry launch_geometry(Compile *c, const Group *p, const KernelPart *parts)
{
  Geometry most = {1, p->in_turn && !is_cpu_target(c) ? CUDA_BLOCK : 1};
  for (uint32_t i = 0; i < p->last; i++) {
    Geometry at = parts[i].at;
    if (at.grid > most.grid && !p->in_turn) most.grid = at.grid;
    if (at.block > most.block) most.block = at.block;
  }
  if (!is_cpu_target(c) && !p->in_turn && most.grid < p->last) most.grid = p->last;
  return most;
}
