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
/* For a tensor that is broadcast to `s`: the stride of a broadcast axis is 0. */
Access access_broadcast(const LoopShape *s, const Node *n);
/* For input `input` of an elementwise node or move, over the shape that the node walks. */
Access access_operand(Compile *c, const LoopShape *s, const Node *n, uint32_t input);
/* For v within the bytes of value_root, through views and folded moves. False: strides cannot
 * express it. */
bool access_through(const Graph *g, Value v, Access *out);
/* Merges adjacent axes that all accesses can walk as one; drops axes of size 1. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n);

/* True if the elements of a row are not adjacent: the columns between them are walked together. */
bool row_has_columns(const RowShape *r);
ColumnTile row_tile(const RowShape *r);
typedef struct RowWalk { /* for rows whose elements are adjacent: Note [rows] */
  uint32_t vector;       /* elements that a thread takes at once */
  uint32_t threads;      /* threads of a block of CUDA_BLOCK that share a row */
} RowWalk;
RowWalk row_walk(const RowShape *r);

/* A group of elementwise nodes, and of moves that only change strides. emit/kernel_map.c prints
 * it. */
bool group_is_map(const Graph *g, const Group *p);
bool group_is_dear(const Graph *g, const Group *p); /* a node calls a slow function */

typedef struct MapWalk {
  LoopShape shape, left; /* of the nodes; and after axes were merged */
  VEC(Access) walks;     /* of all operands; the first one is dense */
  Access *joined;        /* the same accesses over `left` */
  uint32_t vector;       /* elements that a thread takes along the last axis of `left`: Note
                            [vectors] */
  uint32_t rows;         /* rows of them that a thread takes: Note [shared rows] */
} MapWalk;
/* Can the operand be loaded in vectors along this walk? Are these vectors the same in all rows? */
bool walk_has_vectors(const MapWalk *m, const Access *a);
bool walk_shares_vectors(const MapWalk *m, const Access *a);
int64_t map_threads(const MapWalk *m); /* threads with work, if m->vector > 1 */
/* `args`: those of the group's kernel; NULL: without vectors. */
MapWalk map_walk(Compile *c, const Group *p, const KernelArgs *args);

/* How an op of windows (T_windows) walks images. A thread has a vector of channels: in forward
 * those of one window, in backward those of all pixels of a tile. */
typedef struct WindowWalk {
  uint32_t vector; /* channels that a thread takes at once */
  int64_t tile[2]; /* pixels of a tile along each axis; forward: 1 */
  int64_t all[2];  /* windows or tiles along each axis of an image; tiles start in the padding */
  int64_t threads; /* threads with work */
} WindowWalk;
WindowWalk window_walk(Compile *c, const Group *p);
/* True if windows do not overlap and each is read by only one tile. */
bool windows_read_once(const Node *n);

/* How the work of an op with tiles (T_tiles) is divided. */
typedef struct TileWalk {
  int64_t lanes, rows;    /* of a tile; of a step */
  int64_t d_room, e_room; /* features of a row within a tile, rounded up */
  /* Units of the launch (tiles of all heads, or heads), and the number of tiles of a head that run
   * in parallel. 0: the group has no such result, or the units of keys compute it too. */
  int64_t key_units, key_split, query_units, query_split;
} TileWalk;
TileWalk tile_walk(Compile *c, const Group *p);
