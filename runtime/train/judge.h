/* What evaluations decide, for whoever makes them: the training loop and the prompt. */
#pragma once
#include "runtime/runtime.h"

/* ---- keep.c ---- */
/* The block whose evaluation says what is best; NULL: none does. And which value of it is. */
const ampc_block *keep_judge(const ampc_program *p);
bool keep_lower_is_better(const ampc_metric_desc *m);

/* ---- early_stop.c ---- */
/* A train block begins that ends after `most` evaluations without a better one (0: never); `anew`:
 * with its first step. True: it has ended already. */
bool patience_begin(ampc_runtime *rt, int64_t most, bool anew);
/* After the evaluation of `block` behind step `step`; `value`: of its first metric. True: the train
 * block ends. */
bool patience_note(ampc_runtime *rt, uint32_t block, int64_t most, int64_t step, double value);
/* Whether the evaluation would count. */
bool patience_waits_for(const ampc_runtime *rt, uint32_t block, int64_t most, int64_t step);
/* Why it did, one line. */
enum { PATIENCE_ROOM = 256 };
void patience_text(const ampc_runtime *rt, char to[PATIENCE_ROOM]);

/* ---- plateau.c ---- */
/* Whether the evaluation of `block` behind step `step` would count for some setting. */
bool plateau_waits_for(const ampc_runtime *rt, uint32_t block, int64_t step);
/* After the evaluation of `block` behind step `step`; `values` of all metrics. Lowers settings
 * where it is time and tells that, a line each. */
ampc_status plateau_note(ampc_runtime *rt, uint32_t block, int64_t step, const double *values,
                         ampc_tell *tell, void *to);
