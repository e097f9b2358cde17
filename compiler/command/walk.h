/* How kernels walk shapes: axes, strides, and how many elements a thread takes at once.
 *
 * An Access gives each axis of a loop a stride, in elements of the operand. For a loop of [32,
 * 512]: the result has strides 512, 1; a bias [512] has 0, 1; a transposed x [512, 32] has 1, 32.
 */
#pragma once
#include "command.h"
#include "compiler/graph/columns.h"

/* Element (i0, i1, ..) of a loop's shape lies at offset + i0 stride[0] + i1 stride[1] + .. */
typedef struct Access {
  int64_t offset, stride[MAX_RANK];
} Access;
typedef struct LoopShape { /* the shape that a kernel walks */
  uint32_t rank;
  int64_t dim[MAX_RANK];
} LoopShape;

LoopShape loop_shape_of(const Node *n);
int64_t loop_elements(const LoopShape *s);
Access access_whole(const LoopShape *s); /* the elements in order */
/* Of a tensor that broadcasts to the space: 0 strides where it does. */
Access access_broadcast(const LoopShape *s, const Node *n);
/* Of input `input` of an elementwise node or move, over the shape that it walks. */
Access access_operand(Compile *c, const LoopShape *s, const Node *n, uint32_t input);
/* Of v in the bytes of value_root, through views and folded moves. False: no strides say it. */
bool access_through(const Graph *g, Value v, Access *out);
/* Joins neighbouring axes that all accesses walk as one; drops axes of size 1. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n);

/* Whether a row's elements lie apart, with columns between them that are walked together. */
bool row_has_columns(const RowShape *r);
ColumnTile row_tile(const RowShape *r);
typedef struct RowWalk { /* of rows whose elements lie side by side: Note [rows] */
  uint32_t vector;       /* elements that a thread takes at once */
  uint32_t threads;      /* of a block of CUDA_BLOCK that share a row */
} RowWalk;
RowWalk row_walk(const RowShape *r);

/* A group of elementwise nodes and of moves that are other strides: emit/kernel_map.c prints it. */
bool group_is_map(const Graph *g, const Group *p);
bool group_is_dear(const Graph *g, const Group *p); /* a node calls a long function */

typedef struct MapWalk {
  LoopShape shape, left; /* of the nodes; and what is left of it once axes are joined */
  VEC(Access) walks;     /* of all operands; the first one is in order */
  Access *joined;        /* the same over `left` */
  uint32_t vector;       /* elements along its last axis that a thread takes: Note [vectors] */
  uint32_t rows;         /* and rows of them; above 1 where some operands are alike in all rows */
} MapWalk;
/* Whether the operand has vectors of the walk, which may be loaded at once; whether they are the
 * same in all rows. */
bool walk_has_vectors(const MapWalk *m, const Access *a);
bool walk_shares_vectors(const MapWalk *m, const Access *a);
int64_t map_threads(const MapWalk *m); /* that have work, where it has vectors */
/* `args` of its kernel; NULL: without vectors. */
MapWalk map_walk(Compile *c, const Group *p, const KernelArgs *args);

/* How an op of windows (T_windows) walks images: a thread takes a vector of channels, forward of a
 * window, backward of all pixels of a tile. */
typedef struct WindowWalk {
  uint32_t vector; /* channels that a thread takes at once */
  int64_t tile[2]; /* pixels of a tile along each axis; of a window 1 */
  int64_t all[2];  /* windows or tiles of an image: tiles begin where padding does */
  int64_t threads; /* that have work */
} WindowWalk;
WindowWalk window_walk(Compile *c, const Group *p);
/* Windows lie apart, and no two tiles look at the same one. */
bool windows_read_once(const Node *n);

/* How the work of an op of tiles (T_tiles) is cut. */
typedef struct TileWalk {
  int64_t lanes, rows;    /* of a tile, and of a step */
  int64_t d_room, e_room; /* features of a row in a tile, rounded up */
  /* of the launch: tiles of all heads, or heads; and how many tiles of a head run side by side; 0:
   * the group has none of these results, or those of keys make them too */
  int64_t key_units, key_split, query_units, query_split;
} TileWalk;
TileWalk tile_walk(Compile *c, const Group *p);
