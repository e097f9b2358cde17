/* Elaborates train, eval and infer blocks with their variants, and sources of data. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"
#include "runtime/plan/formats.h"

/* ---- block.c ---- */
void lower_members(Lower *l);
void lower_run(Lower *l, const Decl *decl, uint32_t number);
void check_overlap(Lower *l); /* overlap.c */
/* Warns about nodes of a data block, from `first` on, that combine samples: batch_axis.c. */
void check_batch_axis(Lower *l, uint32_t first);
void check_measured(Lower *l);    /* warns about statistics that no train block measures */
void lower_check_names(Lower *l); /* reports two blocks with the same name */
/* Adds a block; from now on nodes are appended to it. If the block is a variant, `first` is the
 * block whose sources and metrics it uses. The versions of parameters begin at 0 in each block.
 * Returns false after a message if there are too many blocks. */
bool begin_block(Lower *l, Run *run, const BlockInfo *info, const Run *first);
void end_block(Lower *l);
/* Adds a value that an infer block returns to its caller. */
void add_output(Lower *l, const char *name, Datum v, Span span);
void lower_body(Lower *l, const Decl *decl);
/* Adds the answer for `amp repl`: a compile-time value as text, tensors as outputs of the block. */
void add_answer(Lower *l, Datum v, Span span);

/* ---- every.c ---- */
void exec_every(Lower *l, Frame *f, const Stmt *st);
/* Called before a train block's body. Adds a choice for the steps of options.probe_every. */
void every_probe(Lower *l, Span span);
/* Writes to `out` the choices of `every` that occur in steps, as bits of b->period, first the
 * choice of all, and returns their number. Sorts the periods and sets b->fires. Returns 0 after a
 * message if there are more than `most`. */
uint32_t every_choices(Lower *l, BlockInfo *b, uint32_t most, uint32_t *out);
/* Records in `to` that the names in `s` end here. The message about a later use names `where`. */
void note_ended_names(Lower *l, Scope *to, const Scope *s, const char *where);

/* ---- watch_end.c ---- */
void watch_end(Lower *l, Scope *s); /* handles options.watch; `s` has the names of the block */

/* ---- look.c ---- */
/* Evaluates `last`, a return statement typed in `amp repl`, which may read data. */
void look_result(Lower *l, Frame *f, const Stmt *last);
/* Called for each source after its samples are counted. Returns false after a message. */
bool look_at(Lower *l, const ampc_source *s);

/* ---- source.c ---- */
extern const Native source_natives[];
/* True if the source is a file. Else it is synthetic, given, or an argument of an infer block. */
bool has_file(const ampc_source *s);
bool is_given(const ampc_source *s); /* true if the calling program gives the values */
/* Checks that the source has labels, as `what` needs. */
bool has_labels(Lower *l, const ampc_source *s, const char *what, Span span);
const char *data_path(Lower *l, const char *path); /* relative to the data folder */

/* ---- target.c ---- */
extern const Native target_natives[];
/* Finds the source behind the target that `balance` names. Sets *out as ampc_block.balance. Returns
 * false after a message. */
bool source_balance(Lower *l, Datum target, const char *name, Span span, uint32_t *out);

/* ---- columns.c ---- */
/* Reads the names of classes from the file, and adds them to the arguments. So the program keeps
 * them, and another file cannot number the classes differently. */
bool read_classes(Lower *l, const ampc_format *format, Span span, ampc_source *s);
