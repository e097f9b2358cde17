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
 * sum with it. Its elements are computed here (ahead.c). A mask may also have a finite number of at
 * most FAR_BELOW, such as -1e9. Scores are taken to be so much larger that its exponential is 0
 * beside theirs. If a row has no other number, the softmax is a mean of all keys; so the key of the
 * position itself must not have it.
 *
 * A factor, such as a temperature, must be known to be positive, because -inf * t is inf for t < 0:
 * exp, softplus, a square plus a number. A finite number may become too small by it, so only -inf
 * stays. A result that is rounded to 0, as exp(-200) is, is not considered.
 *
 * Other columns may be beside those of the keys, such as a learned sink: `front` of them before the
 * first one. An element at column k depends on tokens up to the position, or up to k - front. */
#define FAR_BELOW (-9e3) /* -1e4 is -9984 in bf16 */

/* What is known of a number that is not known: nothing; it is at least 0; it is above 0. */
typedef enum Sign { SIGN_any, SIGN_not_negative, SIGN_positive } Sign;

typedef struct Maybe { /* a number, or an unknown one */
  bool known;
  double v;
  Sign sign;
} Maybe;

typedef struct Info {
  Kind kind;
  uint32_t now;  /* NOW: the axis of the new positions */
  int64_t outer; /* NOW: that axis has `outer` groups of positions, as [heads positions] has */
  int64_t front; /* NOW: columns before that of the first key; those behind are no keys, either */
  Maybe ahead;   /* all elements with a key after the position */
  bool looked;   /* CONST: `ahead` was looked for, for axes `now` and `keys` */
  uint32_t keys; /* and for this `front` */
  int64_t early; /* Note [early] in shift.c */
  bool is_first;
  double first;
  Value rows; /* the first `early` rows; 0: not known, or `first` alone is */
} Info;

typedef struct Seen {   /* what is known of the elements of a value */
  bool set, looked;     /* `v` was computed, `all` was */
  int64_t at[MAX_RANK]; /* the index of v, the element computed last */
  Maybe v, all;         /* all: the number that all elements are */
} Seen;

typedef struct Decode {
  Compile *c;
  Graph *g;
  const Node *old;           /* the nodes before the pass */
  uint32_t first, end;       /* nodes of the block */
  uint32_t twin;             /* the first node of the twin */
  int64_t length, other;     /* positions of the block, of the twin */
  int64_t chunk;             /* new positions of the program that is being made */
  uint16_t block;            /* its block */
  Info *info;                /* the rest: by old id */
  Value *map;                /* the new value: CONST of all positions, else of the new ones */
  Value *whole;              /* NOW: all positions up to now; 0: not needed so far */
  Value *keys;               /* keys of attention: the same, in blocks */
  Value *settled;            /* NOW with rows in front: the rows at the new positions; the same */
  Value *picked[MAX_RANK];   /* CONST: the new positions along that axis; 0: not needed so far */
  Value *state;              /* of a carry: the buffer with its value after the last call */
  uint32_t first_state;      /* of the parameters: buffers */
  uint32_t n_states;         /* buffers that the program has so far */
  uint16_t *loops;           /* by old loop: the loop in the new block; 0: none yet */
  uint8_t *same;             /* by old id, CONST: same.c */
  Seen *seen;                /* by old id, also of the twin: ahead.c */
  bool *over;                /* by old loop: it has an iteration for each position */
  bool carries;              /* some state is not rows by position */
  Value position, positions; /* the first new position, i64[1]; all of them, i64[chunk] */
} Decode;

/* ---- decode.c ---- */

/* Reports E614: the block computes something that a step cannot continue. Returns false. */
bool decode_refuse(Decode *d, const Node *n, const char *why, const char *help);
bool decode_looks_ahead(Decode *d, const Node *n, const char *what);
bool decode_depends(Decode *d, uint32_t id); /* a number depends on the number of tokens */
/* Returns how often the axis has all positions: 0: it has none; 1: S, or some more or less; 4: 4 S.
 * -1: as no step could divide it. */
int64_t decode_share(const Decode *d, uint32_t id, uint32_t axis);
const Node *decode_twin(const Decode *d, uint32_t id);
/* Whether the attributes that are floats are those of the twin. */
bool decode_same_numbers(const Decode *d, uint32_t id);
/* Returns the axes that a row op or an op along an axis reduces or joins, a bit each. */
uint64_t decode_worked_axes(const Node *n);
/* Returns the axis of positions other than `now`; -1: none; -2: several. */
int decode_keys(const Decode *d, uint32_t id, uint32_t now);
/* Returns the cursor for a node beside the old node. */
Cursor decode_cursor(const Decode *d, const Node *old);
/* Returns a copy of the old node with these inputs and attributes `shape` for the new positions
 * along axis `now`; now -1: as it was. */
Node decode_copy(Decode *d, uint32_t id, const Value *in, int now);
/* Adds the copy; its type stays that of the old node. */
Value decode_add(Decode *d, uint32_t id, Node *n);
/* Returns the buffer of this type and shape that keeps earlier positions for an old node. */
Value decode_state(Decode *d, uint32_t id, DType dtype, const int64_t *dim, uint32_t rank);
/* Adds the effect that stores x in such a buffer. axis -1: as a whole, else from that row on. */
void decode_store(Decode *d, uint32_t id, Value state, Value x, int axis, Value row);
/* Returns the first new position plus a number. */
Value decode_position(Decode *d, uint32_t id, int64_t more);
/* Returns all positions up to now of a NOW value, which its step stores; those of a CONST value. */
Value decode_whole(Decode *d, uint32_t id);
/* Returns `first` at position 0, else `later`. */
Value decode_begins(Decode *d, const Node *like, Value first, Value later);

static inline const Info *decode_info(const Decode *d, Value v)
{
  return &d->info[v.id];
}

static inline bool decode_is_now(const Decode *d, const Node *n, uint32_t i)
{
  return i < n->n_in && n->in[i].id && decode_info(d, n->in[i])->kind == NOW;
}

/* ---- derive.c ---- */
bool derive_node(Decode *d, uint32_t id);
/* Adds the node with these inputs. It is a NOW value along axis `now`. */
bool derive_finish(Decode *d, uint32_t id, const Value *in, uint32_t now, int64_t outer);
/* True if the sizes of a value do not depend on the number of positions. */
bool decode_is_plain(const Decode *d, Value v);
/* Refuses an op that reads unknown positions; one that reads later keys. Both return false. */
bool decode_refuse_op(Decode *d, uint32_t id);
bool decode_refuse_keys(Decode *d, uint32_t id);

/* ---- product.c ---- */
bool derive_product(Decode *d, uint32_t id);
bool derive_attention(Decode *d, uint32_t id);

/* ---- pick.c ---- */

/* Returns a CONST value at the new positions along the axis. {0} after a message. */
Value decode_pick(Decode *d, uint32_t id, uint32_t axis);

/* ---- loop.c ---- */
bool derive_crossing(Decode *d, uint32_t id);
bool derive_in_loop(Decode *d, uint32_t id);

/* ---- shift.c ---- */

/* Returns a value at the new positions: one that is moved along them, with rows of earlier calls.
 * {0} after a message. */
Value decode_now(Decode *d, uint32_t id);
/* Along the positions: padding, slices, rows in front, convolutions, pools, cumulative ops. */
bool derive_pad(Decode *d, uint32_t id);
bool derive_shift(Decode *d, uint32_t id);
bool derive_prefix(Decode *d, uint32_t id);
bool derive_window(Decode *d, uint32_t id);
bool derive_cumulative(Decode *d, uint32_t id);

/* ---- ahead.c ---- */

/* Returns what a CONST value is wherever the key, the index along `keys` minus `front`, is above
 * the index along `now`; unknown if its elements there differ. */
Maybe ahead_of_const(Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front);
/* Finds the number that all elements of a CONST value are. */
bool decode_is_uniform(const Decode *d, uint32_t id, double *out);
/* Sets `ahead` of an elementwise NOW node. Without keys, only the sign of its elements. */
void ahead_of_map(Decode *d, uint32_t id, int keys);
/* The same of `cat` along another axis. */
void ahead_of_cat(Decode *d, uint32_t id, int keys);

/* Returns false if a CONST mask also excludes the key at the position itself. */
bool ahead_leaves_own(Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front);
/* Returns an element of a CONST value or of one of the twin; unknown if weights decide it. */
Maybe decode_element(const Decode *d, uint32_t id, const int64_t at[MAX_RANK]);

/* ---- same.c ---- */

/* Checks that the CONST inputs of a node have the same elements at the same positions for both
 * lengths. Returns false after a message. */
bool decode_inputs_same(Decode *d, uint32_t id);

/* ---- value.c ---- */

/* Returns an element of a map op from those of its inputs. index: its row-major index. */
Maybe maybe_of_code(const Node *n, const Maybe *in, double index);
/* Whether elements x of input 0 add nothing to the reductions of a row op. out: its result there.
 */
bool maybe_of_row(const Node *n, Maybe x, Maybe *out);
