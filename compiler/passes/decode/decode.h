/* Pass decode: what its files share. decode.c explains the pass. */
#pragma once
#include "compiler/graph/ops.h"

/* What a value depends on.
 *   CONST  positions and weights, but no token. It keeps all positions of the longest text
 *   NOW    tokens. The step computes it for the new positions only, along axis `now`
 *   LAST   tokens, and it belongs to the last position: it has no axis of positions
 *   TURN   the same inside a loop over positions: it belongs to the position of the iteration */
typedef enum Kind { CONST, NOW, LAST, TURN } Kind;

/* Note [ahead]
 * Besides its own axis of positions, a NOW value may have a second one, `keys`: scores have one
 * number for each pair of a new position and any position. A reduction over the keys would see
 * later positions, unless these all have the same number, `ahead`, that adds nothing to the result:
 * -inf in front of a softmax, 0 in front of a sum. A mask of constants decides that: where() or a
 * sum with it. Its elements are computed here (ahead.c). */
typedef struct Info {
  Kind kind;
  uint32_t now;   /* NOW: the axis of the new positions */
  int64_t outer;  /* NOW: that axis has `outer` groups of positions, as [heads positions] has */
  bool is_ahead;  /* all elements with a key after the position are `ahead` */
  bool looked;    /* CONST: is_ahead and ahead are known; for axes `now` and `keys` */
  uint32_t keys;
  double ahead;
} Info;

typedef struct Decode {
  Compile *c;
  Graph *g;
  const Node *old; /* the nodes before the pass */
  uint32_t first, end, twin; /* nodes of the block are [first, end); those of the twin begin at twin */
  int64_t length, other;     /* positions of the block, of the twin */
  int64_t chunk;             /* new positions of the program that is being made */
  uint16_t block;            /* its block */
  Info *info;                /* the rest: by old id */
  Value *map;                /* the new value: CONST of all positions, else of the new ones */
  Value *whole;              /* NOW: all positions up to now; 0: not needed so far */
  Value *picked[MAX_RANK];   /* CONST: the new positions along that axis; 0: not needed so far */
  uint32_t *state;           /* 1 + the buffer that keeps earlier positions; 0: none */
  uint16_t *loops;           /* by old loop: the loop in the new block; 0: none yet */
  bool carries;              /* some state is not rows by position */
  Value position, positions; /* the first new position, i64[1]; all of them, i64[chunk] */
} Decode;

/* ---- decode.c ---- */

/* Reports E614: the block computes something that a step cannot continue. Returns false. */
bool decode_refuse(Decode *d, const Node *n, const char *why, const char *help);
bool decode_looks_ahead(Decode *d, const Node *n, const char *what);
/* Returns how often the axis has all positions: 0: it has none; 1: S; 4: 4 S. -1: as no step could
 * divide it. */
int64_t decode_share(const Decode *d, uint32_t id, uint32_t axis);
/* Returns the axis of positions other than `now`; -1: none; -2: several. */
int decode_keys(const Decode *d, uint32_t id, uint32_t now);
/* Returns the cursor for a node beside the old node. */
Cursor decode_cursor(const Decode *d, const Node *old);
/* Returns a copy of the old node with these inputs and attributes `shape` for the new positions
 * along axis `now`; now -1: as it was. */
Node decode_copy(Decode *d, uint32_t id, const Value *in, int now);
/* Adds the copy; its type stays that of the old node. */
Value decode_add(Decode *d, uint32_t id, Node *n);
/* Returns the buffer that keeps earlier positions for an old value: `rows` of them along `axis`. */
Value decode_state(Decode *d, uint32_t id, const int64_t *dim, uint32_t rank);
/* Adds the effect that stores x. axis -1: as a whole, else the rows at the new positions. */
void decode_store(Decode *d, uint32_t id, Value x, int axis);
/* Returns all positions up to now of a NOW value, which its step stores; those of a CONST value. */
Value decode_whole(Decode *d, uint32_t id);
/* Returns `first` at position 0, else `later`. */
Value decode_begins(Decode *d, const Node *like, Value first, Value later);

/* ---- derive.c ---- */
bool derive_node(Decode *d, uint32_t id);

/* ---- pick.c ---- */

/* Returns a CONST value at the new positions along the axis. {0} after a message. */
Value decode_pick(Decode *d, uint32_t id, uint32_t axis);

/* ---- loop.c ---- */
bool derive_crossing(Decode *d, uint32_t id);
bool derive_in_loop(Decode *d, uint32_t id);

/* ---- shift.c ---- */

/* ---- ahead.c ---- */

/* Finds what a CONST value is wherever the index along `keys` is above that along `now`. Returns
 * false if its elements there differ or are not known. */
bool ahead_of_const(Decode *d, uint32_t id, uint32_t now, uint32_t keys, double *out);
/* Sets is_ahead of an elementwise NOW node. */
void ahead_of_map(Decode *d, uint32_t id, int keys);
