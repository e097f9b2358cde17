/* How kernels walk shapes: axes, strides, and how many elements a thread computes at once.
 *
 * An Access gives each axis of a loop a stride, counted in elements of the operand. Example, for a
 * loop of [32, 512]: the result has strides 512, 1; a bias [512] has 0, 1; a transposed x [512, 32]
 * has 1, 32. */
#pragma once
#include "command.h"
#include "compiler/graph/columns.h"

/* Element (i0, i1, ..) of a loop's shape is at offset + i0 stride[0] + i1 stride[1] + .. */
typedef struct Access {
  int64_t offset, stride[MAX_RANK];
} Access;
typedef struct LoopShape { /* the shape that a kernel walks */
  uint32_t rank;
  int64_t dim[MAX_RANK];
} LoopShape;

LoopShape loop_shape_of(const Node *n);
int64_t loop_elements(const LoopShape *s);
Access access_whole(const LoopShape *s); /* all elements, in order */
/* The access to a tensor that is broadcast to `s`. The stride of a broadcast axis is 0. */
Access access_broadcast(const LoopShape *s, const Node *n);
/* The access to input `input` of an elementwise node or move n, in a loop over `s`, the shape that
 * n walks. */
Access access_operand(Compile *c, const LoopShape *s, const Node *n, uint32_t input);
/* The access to v in the bytes of value_root(v), through views and folded moves. Returns false if
 * strides cannot express it. */
bool access_through(const Graph *g, Value v, Access *out);
/* Merges adjacent axes that all accesses can walk as one; drops axes of size 1. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n);

/* True if the elements of a row are not adjacent: the columns between them are walked together. */
bool row_has_columns(const RowShape *r);
ColumnTile row_tile(const RowShape *r);
typedef struct RowWalk { /* for rows whose elements are adjacent: Note [rows] */
  uint32_t vector;       /* elements that a thread takes at once */
  uint32_t threads;      /* threads that share a row; a block has CUDA_BLOCK threads */
} RowWalk;
RowWalk row_walk(const RowShape *r);

/* A group of elementwise nodes, and of moves that only change strides. emit/kernel_map.c prints
 * it. */
bool group_is_map(const Graph *g, const Group *p);
bool group_is_dear(const Graph *g, const Group *p); /* a node calls a slow function */

typedef struct MapWalk {
  LoopShape shape, left; /* shape: of the nodes; left: after axes were merged */
  VEC(Access) walks;     /* over `shape`: of the result, then of all operands */
  Access *joined;        /* the same accesses over `left` */
  uint32_t vector;       /* elements that a thread takes along the last axis: Note [vectors] */
  uint32_t rows;         /* such vectors that a thread takes, in as many rows: Note [shared rows] */
} MapWalk;
/* Can the operand be loaded in vectors? Can it, and do all rows use the same vectors? `a`: one of
 * m->joined. */
bool walk_has_vectors(const MapWalk *m, const Access *a);
bool walk_shares_vectors(const MapWalk *m, const Access *a);
int64_t map_threads(const MapWalk *m); /* threads that have work; needs m->vector > 1 */
/* `args`: the arguments of the group's kernel; NULL: use no vectors. */
MapWalk map_walk(Compile *c, const Group *p, const KernelArgs *args);

/* How an op of windows (T_windows) walks images. A thread computes a vector of channels: in forward
 * for one window, in backward for all pixels of a tile. */
typedef struct WindowWalk {
  uint32_t vector; /* channels that a thread takes at once */
  int64_t tile[2]; /* pixels of a tile along each axis; forward: 1 */
  int64_t all[2];  /* number of windows or tiles along each axis; tiles start in the padding */
  int64_t threads; /* threads that have work */
} WindowWalk;
WindowWalk window_walk(Compile *c, const Group *p);
/* True if windows do not overlap and each is read by only one tile. */
bool windows_read_once(const Node *n);

/* How the work of an op with tiles (T_tiles) is divided: Note [attention] in attention.h. */
typedef struct TileWalk {
  int64_t lanes, rows;    /* lanes in a tile; rows in a step */
  int64_t d_room, e_room; /* features of a row within a tile, rounded up */
  /* Units of parallel work, whose tiles are keys or queries, and how many of them share a head. On
   * the CPU a unit of keys is a whole head. All are 0 if the group does not have the result.
   * query_*: also 0 if units of keys compute the gradient of the queries. */
  int64_t key_units, key_split, query_units, query_split;
} TileWalk;
TileWalk tile_walk(Compile *c, const Group *p);
