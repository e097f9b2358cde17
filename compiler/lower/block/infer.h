/* Infer blocks, and their sizes that the caller chooses. */
#pragma once
#include "compiler/lower/lower.h"

struct Dim { /* dim S(max=512, multiple=64) */
  const char *name;
  int64_t least, most, multiple;
  Span span;
  bool given;           /* by --dim */
  const int64_t *asked; /* sizes to elaborate: those, else the greatest one */
  uint32_t n_asked;
};

/* Note [dims]
 * No size is ever unknown: a block with dims is elaborated anew for each choice of them that is
 * asked for, as train blocks are for their last batch, and each choice is a block of its own. What
 * depends on a size and is wrong for some shows only where it is elaborated, so pass lower goes
 * through such blocks with all dims at their least and at their most, too, and drops what that
 * gives. */
typedef enum Sizing {
  SIZING_asked, /* by --dim or by the data; those not asked for are at their most */
  SIZING_least,
  SIZING_most
} Sizing;

/* What one run of pass lower tells the next one about its blocks with dims. */
typedef struct Sizes {
  Sizing sizing;
  uint32_t ends_missed;          /* of some block nobody asked for the least (1), the most (2) */
  bool known, again;             /* `found` are known; they have just been: again, with them */
  int64_t found[AMPC_MAX_SIZES]; /* of the block whose arguments are data */
} Sizes;

void lower_infer(Lower *l, const Decl *decl);
BlockInfo infer_info(const Lower *l, const Decl *decl);

typedef struct Choice { /* of the dims that a signature names, in its order */
  uint32_t n;
  const Dim *dim[AMPC_MAX_SIZES];
  bool given[AMPC_MAX_SIZES]; /* not to be found in data */
  int64_t value[AMPC_MAX_SIZES];
} Choice;

/* Of an argument; its sizes are evaluated in s. */
bool infer_argument_type(Lower *l, Scope *s, const Param *p, ampc_source *out);
void infer_bind(Lower *l, Scope *s, const Param *p, Datum v);

/* ---- infer_data.c: arguments that are data (options.infer_inputs) ---- */
/* The first size of all arguments: samples of a batch. */
bool infer_batch(Lower *l, Scope *s, const Function *def, int64_t *out);
bool infer_bind_data(Lower *l, Scope *s, const Function *def);
/* Finds sizes that were not given, in l->sizes->found. */
bool infer_measure(Lower *l, Scope *s, const Function *def, Choice *x);

/* ---- dim.c ---- */
Datum declare_dim(Lower *l, File *f, const Decl *decl);
/* A dim where a number is wanted. */
Datum dim_misplaced(Lower *l, const Dim *d, Span span);
/* --dim of names that are no dims. */
void check_dims(Lower *l);

/* The dims of a block and the values asked for. False after a message. */
bool dims_of(Lower *l, const Function *def, Choice *out);
/* Binds the names, and lets messages tell the values. */
void dims_enter(Lower *l, Scope *s, const Choice *x);
void dims_leave(Lower *l);
/* The dim that this size is, alone; or AMPC_MAX_SIZES. */
uint32_t dim_named(const Choice *x, const Expr *size);
/* Is this a size that the dim can have? `what` begins the message. */
bool dim_takes(Lower *l, const Dim *d, int64_t size, Span span, const char *what);
/* The next choice, the last dim first; false: that was the last. */
bool dims_next(Choice *x, uint32_t at[AMPC_MAX_SIZES]);
const char *dims_text(Lower *l, const Choice *x, const char *is); /* "N = 1, S = 64" */
