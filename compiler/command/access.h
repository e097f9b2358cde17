/* Where the nodes of a kernel read their operands and store their results: indices in the variables
 * of its loops. */
#pragma once
#include "walk.h"

/* The variables of loops. */
typedef enum LoopVariable {
  VAR_i,      /* the element of the nodes' shape */
  VAR_r,      /* row of a map */
  VAR_c,      /* column of a map; position along a reduced row */
  VAR_row,    /* row of a kernel that reduces rows: index over `outer` of RowShape */
  VAR_o,      /* the same if it reduces columns */
  VAR_column, /* index over `inner` */
  VAR_cell,   /* the result of a column: o * inner + column */
  /* of pads */
  VAR_at,
  VAR_kept,
  /* of attention */
  VAR_image,
  VAR_head,
  VAR_kv_head,
  VAR_query,
  VAR_key
} LoopVariable;

/* variable / over % size * stride */
typedef struct IndexTerm {
  LoopVariable of;
  bool each;    /* the variable plus j, the position in a vector */
  int64_t over; /* 1: no division */
  int64_t size; /* 0: no remainder */
  int64_t stride;
} IndexTerm;

/* Where an element of an operand is, in elements: the sum of the terms and the offset. */
typedef struct Index {
  int64_t offset;
  uint32_t n; /* 0: every element is at `offset` */
  IndexTerm term[MAX_RANK];
} Index;

Index index_at(LoopVariable of);   /* returns the index "i" */
Index index_each(LoopVariable of); /* returns the index "(i + j)" */
void index_add_term(Index *x, LoopVariable of, int64_t stride);
/* Adds the terms of axes [from, to), whose elements the variable of `through` counts in order. */
void index_add(Index *x, const LoopShape *s, const Access *a, uint32_t from, uint32_t to,
               IndexTerm through);
bool index_equal(const Index *a, const Index *b);
bool index_is(const Index *x, LoopVariable of);  /* true for "i" and "(i + j)" */
bool index_has(const Index *x, LoopVariable of); /* true if a term has the variable */
/* True if the last term is the variable itself, as in "r * 8 + c": neighbours are adjacent. */
bool index_counts(const Index *x, LoopVariable of);

/* The loops of a kernel of row ops. */
typedef struct RowLoops {
  RowShape shape;
  LoopShape space; /* that of x */
  const Node *x;   /* input 0 of all row ops has this shape */
  bool columns;    /* the kernel reduces columns: inner > 1, or channels */
  ColumnTile tile;
  RowWalk walk;    /* used if the kernel reduces no columns */
  uint32_t vector; /* elements that a thread processes at once, for rows and for columns */
  bool odd;        /* vectors do not divide the row: Note [odd rows] */
  bool flat;       /* row_is_flat: elementwise nodes are computed once a row */
} RowLoops;
RowLoops row_loops(const Graph *g, const Group *p);
/* True if elementwise node v has the shape of the rows; else it has the shape of a row op's
 * result. */
bool is_row_element(const Graph *g, const RowLoops *r, Value v);
/* Returns the index of a value that exists once a row; for columns, of the first column. */
Index row_result_index(const RowLoops *r);

/* What a node reads. The indices are {0} for absent inputs. */
typedef struct NodeAccess {
  Index *element; /* for each input: the element; of a row op: $k of Note [row programs] */
  Index *row;     /* of a row op, for each input: @k; else NULL */
} NodeAccess;

/* The accesses of all nodes of a kernel. */
typedef struct KernelAccess {
  const NodeAccess *node; /* one for each node of the group */
  Index dense, pitched;   /* of results of the nodes' shape, without and with gaps between rows */
} KernelAccess;
KernelAccess map_access(Compile *c, const Group *p, const MapWalk *m);
KernelAccess row_access(Compile *c, const Group *p, const RowLoops *r);
KernelAccess window_access(Compile *c, const Group *p);
KernelAccess pad_access(Compile *c, const Group *p);
