/* How kernels walk shapes: axes, strides, and how many elements a thread computes at once.
 *
 * An Access has a stride for each axis of a loop, in elements of the operand. Example, for a loop
 * over [32, 512]: the result has strides 512, 1; a bias [512] has 0, 1; a transposed x [512, 32]
 * has 1, 32. */
#pragma once
#include "args.h"
#include "compiler/graph/columns.h"

/* Element (i0, i1, ..) of a loop's shape is at offset + i0 stride[0] + i1 stride[1] + .. */
typedef struct Access {
  int64_t offset, stride[MAX_RANK];
} Access;
/* The shape that a kernel walks. */
typedef struct LoopShape {
  uint32_t rank;
  int64_t dim[MAX_RANK];
} LoopShape;

LoopShape loop_shape_of(const Node *n);
int64_t loop_elements(const LoopShape *s);
Access access_whole(const LoopShape *s); /* to all elements, in order */
/* Returns the access to n in a loop over `s`: element by element in order, with n's pitch if its
 * rows have gaps (Note [pitch]). Then `s` must have n's rows. */
Access access_all(const LoopShape *s, const Node *n);
/* Returns the access to a tensor that is broadcast to `s`. The stride of a broadcast axis is 0. */
Access access_broadcast(const LoopShape *s, const Node *n);
/* Returns the access to an input of elementwise node or move n, in a loop over `s`, n's shape. */
Access access_operand(Compile *c, const LoopShape *s, const Node *n, uint32_t input);
/* Finds the access to v in the bytes of value_root(v), through views and folded moves. Returns
 * false if strides cannot express it. */
bool access_through(const Graph *g, Value v, Access *out);
/* If v pads the end of the last axis, such as channels, returns the width of its vectors; else 0.
 * Such a pad can load its input through any strides. */
uint32_t pad_vector(const Compile *c, Value v);
/* Merges adjacent axes that all n accesses can walk as one axis. Drops axes of size 1. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n);

/* The rows of a row op. Axes [from, to) of input 0 are reduced; [outer, length, inner] is the shape
 * of input 0. */
typedef struct RowShape {
  uint32_t from, to;
  int64_t outer, length, inner;
  int64_t parts;     /* number of parts of a row, each with a result; 0: the row is not split */
  int64_t part_rows; /* elements of the row in a part; without parts, `length` */
  uint32_t widest;   /* the most elements that a thread loads at once, if they divide the row */
  bool alone;        /* one block computes the row op after the other parts: Note [parts] */
  bool joins;        /* the row op sums the parts of a long sum; one block can do that */
  bool loose;        /* no axes of input 0 form the columns, so it is read as [length, inner] */
} RowShape;
RowShape row_shape(const Graph *g, Value v);
/* True if row op v returns one value for each row and its rows have length 1. */
bool row_is_flat(const Graph *g, Value v);

/* True if the elements of a row are not adjacent. Then threads walk adjacent columns together. */
bool row_has_columns(const RowShape *r);
ColumnTile row_tile(const RowShape *r);
/* How threads divide a row whose elements are adjacent: Note [rows]. */
typedef struct RowWalk {
  uint32_t vector;  /* elements that a thread loads at once */
  uint32_t threads; /* threads of one row; a block has CUDA_BLOCK threads */
} RowWalk;
RowWalk row_walk(const RowShape *r);

/* True if all nodes are elementwise, or moves that only change strides: kernel/map.c. */
bool group_is_map(const Graph *g, const Group *p);
bool group_is_dear(const Graph *g, const Group *p); /* true if a node calls a slow function */

typedef struct MapWalk {
  LoopShape shape, left; /* shape: of the nodes; left: `shape` with merged axes */
  VEC(Access)
  walks;           /* accesses over `shape`: the result's, then those of all operands,
                      then those of results with gaps */
  Access *joined;  /* the accesses of `walks`, but over `left` */
  uint32_t vector; /* elements that a thread computes along the last axis: Note [vectors] */
  uint32_t rows;   /* rows in which a thread computes a vector: Note [shared rows] */
} MapWalk;
/* walk_has_vectors: true if operand `a`, one of m->joined, can be loaded in vectors.
 * walk_shares_vectors: true if it can and all rows use the same vectors. */
bool walk_has_vectors(const MapWalk *m, const Access *a);
bool walk_shares_vectors(const MapWalk *m, const Access *a);
int64_t map_threads(const MapWalk *m); /* threads with work; if m->vector > 1 */
/* Returns how a group walks. `args`: the arguments of its kernel; NULL: use no vectors. */
MapWalk map_walk(Compile *c, const Group *p, const KernelArgs *args);

/* How an op of windows (T_windows) walks images. A thread computes a vector of channels: in forward
 * for one window, in backward for all pixels of a tile. */
typedef struct WindowWalk {
  uint32_t vector; /* channels that a thread takes at once */
  int64_t tile[2]; /* pixels of a tile along each axis; forward: 1 */
  int64_t all[2];  /* number of windows or tiles along each axis; tiles start in the padding */
  int64_t threads; /* threads that have work */
} WindowWalk;
WindowWalk window_walk(Compile *c, const Group *p, const KernelArgs *args);
/* True if windows do not overlap and only one tile reads each window. */
bool windows_read_once(const Node *n);

/* How the work of an op with tiles (T_tiles) is divided: Note [attention] in attention.h. */
typedef struct TileWalk {
  int64_t lanes, rows;    /* lanes: queries or keys in a tile; rows: keys or queries in a step */
  int64_t d_room, e_room; /* features of a query or key (d) and of a value (e), rounded up */
  bool tensor;            /* computes on tensor cores: Note [tensor cores] in attention.h */
  bool step;              /* one query for each head: templates/attention_step.cu */
  /* *_units: units of parallel work, whose tiles are keys or queries; *_split: units that share a
   * head. On the CPU a unit of keys is a whole head of keys. All are 0 if the group does not have
   * the result. query_*: also 0 if units of keys compute the gradient of the queries. */
  int64_t key_units, key_split, query_units, query_split;
} TileWalk;
TileWalk tile_walk(Compile *c, const Group *p);
/* True if the kernel of n, an op with tiles, can read an input without a copy, through folded
 * moves. */
bool tiles_read(const Graph *g, const Node *n, uint32_t input);
