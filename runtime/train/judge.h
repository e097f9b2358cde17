/* Decisions after an evaluation. */
#pragma once
#include "ampc_metrics.h"
#include "runtime/runtime.h"

/* ---- keep.c ---- */
/* keep_judge returns the block whose first metric ranks checkpoints: the first eval block with a
 * number as metric; NULL: none. keep_lower_is_better: a lower value of the metric is better.
 * keep_assumed: if the job does not say that, writes one line that says it, and returns true. */
enum { JUDGE_ROOM = 1024 };
const ampc_block *keep_judge(const ampc_program *p);
bool keep_lower_is_better(const ampc_metric_desc *m);
bool keep_assumed(const ampc_program *p, char to[JUDGE_ROOM]);

/* ---- plateau.c ---- */
/* Whether plateau_note would count the evaluation of `block` at step `step` for a setting. */
bool plateau_waits_for(const ampc_runtime *rt, uint32_t block, int64_t step);
/* Updates plateaus after the evaluation of `block` at step `step`; `values`: all metrics. Lowers
 * each setting that its plateau requires to be lowered, and reports it with one call of `tell`. */
ampc_status plateau_note(ampc_runtime *rt, uint32_t block, int64_t step, const double *values,
                         ampc_tell *tell, void *to);
