/* Infer blocks, and dims: sizes that the caller of such a block chooses. */
#pragma once
#include "compiler/lower/lower.h"

struct Dim { /* dim S(max=512, multiple=64) */
  const char *name;
  int64_t least, most, multiple;
  Span span;
  bool given;           /* --dim names it */
  const int64_t *asked; /* the sizes to elaborate: from --dim, or else the largest */
  uint32_t n_asked;
};

/* Note [dims]
 * Sizes are never unknown. A block with dims is elaborated once for each choice of sizes that is
 * requested, like a train block for its last batch, and each choice is a block of its own. A
 * mistake that depends on a size shows only if that size is elaborated. So pass lower also
 * elaborates such blocks with all dims at their minimum and at their maximum, and discards the
 * results. */
typedef enum Sizing {
  SIZING_asked, /* the sizes of --dim or of the data; other dims at their maximum */
  SIZING_least,
  SIZING_most
} Sizing;

/* What one elaboration of the job passes to the next one about blocks with dims. */
typedef struct Sizes {
  Sizing sizing;
  bool twin;            /* for the whole batch: Note [samples] in passes/members.c */
  uint32_t ends_missed; /* bit 0: some block's minimum was not elaborated; bit 1: its maximum */
  bool known, again;    /* known: `found` is valid; again: `found` is new, so elaborate again */
  int64_t found[AMPC_MAX_SIZES]; /* sizes of the block whose arguments are data */
  bool whole; /* its arguments differ in the size of axis 0, so each file is one sample */
} Sizes;

void lower_infer(Lower *l, const Decl *decl);
BlockInfo infer_info(const Lower *l, const Decl *decl);

typedef struct Choice { /* values of the dims that a signature names, in its order */
  uint32_t n;
  const Dim *dim[AMPC_MAX_SIZES];
  bool given[AMPC_MAX_SIZES]; /* --dim gives it, so it is not read from the data */
  int64_t value[AMPC_MAX_SIZES];
} Choice;

/* Reads the type of an argument; its sizes are evaluated in s. */
bool infer_argument_type(Lower *l, Scope *s, const Param *p, ampc_source *out);
void infer_bind(Lower *l, Scope *s, const Param *p, Datum v);

/* ---- infer_data.c: arguments that are data (options.infer_inputs) ---- */
/* Finds the size of axis 0 of all arguments that have axes, which is the number of samples of a
 * batch. If these sizes differ, the batch is 1 and l->sizes->whole is true. */
bool infer_batch(Lower *l, Scope *s, const Function *def, const Choice *x, int64_t *out);
bool infer_bind_data(Lower *l, Scope *s, const Function *def);
/* Reads the dims that --dim does not give from the data, into l->sizes->found. */
bool infer_measure(Lower *l, Scope *s, const Function *def, Choice *x);

/* ---- dim.c ---- */
Datum declare_dim(Lower *l, File *f, const Decl *decl);
/* Reports a dim where a number is needed. */
Datum dim_misplaced(Lower *l, const Dim *d, Span span);
/* Reports a --dim whose name is not a dim. */
void check_dims(Lower *l);

/* Finds the dims of a block and their requested values. Returns false after a message. */
bool dims_of(Lower *l, const Function *def, Choice *out);
/* Binds the names of the dims, and adds their values to messages. */
void dims_enter(Lower *l, Scope *s, const Choice *x);
void dims_leave(Lower *l);
/* Returns the index of the dim whose name is the expression `size`; else AMPC_MAX_SIZES. */
uint32_t dim_named(const Choice *x, const Expr *size);
/* Checks that the dim can have this size. Returns false after a message that begins with `what`. */
bool dim_takes(Lower *l, const Dim *d, int64_t size, Span span, const char *what);
/* Moves to the next choice; the last dim changes fastest. Returns false after the last choice. */
bool dims_next(Choice *x, uint32_t at[AMPC_MAX_SIZES]);
const char *dims_text(Lower *l, const Choice *x, const char *is); /* returns "N = 1, S = 64" */

/* ---- decoder.c: checks for options.decode, with messages ---- */
void decoder_check_name(Lower *l); /* whether the infer block exists */
/* Whether the block takes the tokens of a text and returns logits: E614. */
bool decoder_check(Lower *l, const Function *def, const Choice *x);
