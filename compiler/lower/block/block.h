/* Blocks: train, eval and infer, with their variants; sources of data. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* ---- block.c ---- */
void lower_run(Lower *l, const Decl *decl, uint32_t number);
void lower_check_names(Lower *l); /* reports two blocks with the same name */
/* Adds a block; nodes are now appended to it. If the block is a variant, `first` is the block whose
 * sources and metrics it uses. The versions of parameters begin at 0 in each block. Returns false
 * after a message if there are too many blocks. */
bool begin_block(Lower *l, Run *run, const BlockInfo *info, const Run *first);
void end_block(Lower *l);
/* Adds a value that an infer block returns to its caller. */
void add_output(Lower *l, const char *name, Datum v, Span span);
void lower_body(Lower *l, const Decl *decl);
/* Adds the answer for a prompt: a compile-time value as text, tensors as outputs of the block. */
void add_answer(Lower *l, Datum v, Span span);

/* ---- every.c ---- */
void exec_every(Lower *l, Frame *f, const Stmt *st);
/* Called before the body of a train block. Steps that options.probe_every selects are a kind. */
void every_probe(Lower *l, Span span);
/* The choices of `every` that occur in steps, as bits of b->period; the choice of all comes first.
 * Also sorts the periods and sets b->fires. Returns 0 after a message if there are more than
 * `most`. */
uint32_t every_choices(Lower *l, BlockInfo *b, uint32_t most, uint32_t *out);
/* The names in `s` end here. A later use of one gets a message that names `where`. */
void note_ended_names(Lower *l, Scope *to, const Scope *s, const char *where);

/* ---- watch_end.c ---- */
void watch_end(Lower *l, Scope *s); /* for options.watch; `s` has the names of the block */

/* ---- look.c ---- */
/* Evaluates `last`, a return statement of a prompt, which may read data. */
void look_result(Lower *l, Frame *f, const Stmt *last);
bool look_at(Lower *l,
             const ampc_source
                 *s); /* for each source, after its samples are counted; false after a message */

/* ---- source.c ---- */
extern const Native source_natives[];
