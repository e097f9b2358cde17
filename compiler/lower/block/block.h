/* Blocks: train, eval and infer, each variant of one; sources of data. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* ---- block.c ---- */
void lower_run(Lower *l, const Decl *decl, uint32_t number);
void lower_check_names(Lower *l); /* of blocks: no two are equal */
/* Makes the block the one that nodes are appended to. `first` is the block whose sources and
 * metrics it shares, if it is the remainder of one. Versions of parameters begin anew in each
 * block. False after a message when there are too many. */
bool begin_block(Lower *l, Run *run, const BlockInfo *info, const Run *first);
void end_block(Lower *l);
/* A value that the caller of an infer block gets. */
void add_output(Lower *l, const char *name, Datum v, Span span);
void lower_body(Lower *l, const Decl *decl);
/* What a prompt gets: a compile-time value as text, tensors as outputs of the block. */
void add_answer(Lower *l, Datum v, Span span);

/* ---- every.c ---- */
void exec_every(Lower *l, Frame *f, const Stmt *st);
/* Of a train block, before its body: the steps that options.probe_every asks for are a kind of
 * their own. */
void every_probe(Lower *l, Span span);
/* The choices of `every` that come in steps, as bits of b->period, that with all of them first;
 * sorts the periods and sets those of b itself. 0 after a message: there are more than `most`. */
uint32_t every_choices(Lower *l, BlockInfo *b, uint32_t most, uint32_t *out);
/* The names in `s` end here; who asks for one later learns where it was. */
void note_ended_names(Lower *l, Scope *to, const Scope *s, const char *where);

/* ---- watch_end.c ---- */
void watch_end(Lower *l, Scope *s); /* options.watch: `s` has the names of the block */

/* ---- look.c ---- */
/* Data that a prompt looks at. `last` is a return. False after a message. */
void look_result(Lower *l, Frame *f, const Stmt *last);
bool look_at(Lower *l, const ampc_source *s); /* of a source whose samples are counted */

/* ---- source.c ---- */
extern const Native source_natives[];
