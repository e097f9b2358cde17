/* Optimizers, their groups, settings and schedules; `minimize` and `metric`. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"
#include "compiler/lower/model/model.h"

/* ---- optimizer.c ---- */
Opt *declare_optimizer(Lower *l, File *f, const Decl *decl);
bool optimizer_settle(Lower *l, Opt *o);
bool check_setting(Lower *l, const Opt *o, const char *key, const char *name, Datum *v, Span span);
/* Determines from a group's settings the moments that it keeps. Reports flags that do not fit. */
bool settle_group(Lower *l, const Opt *o, uint32_t group, Span span);
bool set_flag(Lower *l, const OptimizerArgument *a, ParamGroup *group, Datum v, Span span);
/* Returns the values of the settings that an argument sets: `v` itself, or the elements of list
 * `v`. Returns NULL after a message. */
const Datum *argument_values(Lower *l, const OptimizerArgument *a, const Datum *v, Span span);
/* Makes the node of setting i; value 0 for `none`. Returns false after a message. */
bool optimizer_setting(Lower *l, const Opt *o, uint32_t group, uint32_t i, Value *out);
/* True for metrics of the current block so far. */
bool has_metric(const Lower *l, const char *name);
/* Finds or adds a metric that several statements of the block share. Returns its index. */
int64_t common_metric(Lower *l, Metric m, Span span);
/* `m` has the metric's name, its mode if the job gives one, and is_loss. */
void lower_metric(Lower *l, Metric m, Value value, Span span);
void lower_statistics(Lower *l, Metric m, const Statistics *s, Span span);
extern const Native optimizer_natives[], schedule_natives[];

/* ---- mode.c ---- */
/* Records the mode of a function of the library, which its body has given by `_mode`, for the value
 * that it returns. `outer`: the mode of the function that calls it. */
void mode_leave(Lower *l, Datum result, ampc_mode outer);
ampc_mode mode_of(const Lower *l, Value v);
/* Reads `mode` of a `metric`. Returns false after a message. */
bool metric_options(Lower *l, Scope *s, const ArgList *with, Metric *m);
extern const Native mode_natives[];

/* ---- param_group.c ---- */
bool optimizer_groups(Lower *l, Opt *o, Datum model);
/* Returns the value and the key of setting i for the parameters of group `group`. */
Datum group_setting(const Opt *o, uint32_t group, uint32_t i, const char **key);

/* Adds what an optimizer of `model` updates, as roots of patterns. `listed`: within a list. */
void optimizer_roots(Lower *l, Datum model, bool listed, RootVec *roots);
/* Matches patterns args[0, n), or all parameters if n is 0. Returns false after a message. */
bool match_params(Lower *l, const Match *m, const Args *args, uint32_t n);
bool want_rank(Lower *l, const ArgValue *arg, int64_t *out);

/* ---- selection.c ---- */
/* Lowers the clauses `only` and `without`. Returns false after a message. */
bool optimizer_select(Lower *l, Opt *o, Datum model);
bool selects(const Stmt *st); /* is one of these clauses */
/* True if the optimizer updates this parameter of its model. Records one that `only` leaves out. */
bool optimizer_selects(Lower *l, Opt *o, uint32_t param);
/* Warns of parameters that an `only` leaves out and no optimizer updates, and of optimizers that no
 * `minimize` names: W613. Call it after all blocks are lowered. */
void warn_left_out(Lower *l);
/* Returns false after a message if a `without` leaves out nothing. Call it after adoption. */
bool check_without(Lower *l, const Opt *o, Span span);
/* Returns false after a message if the optimizer updates matrices and `p` is none. */
bool check_matrix(Lower *l, const Opt *o, const Parameter *p, Span span);

/* ---- minimize.c ---- */
void lower_minimize(Lower *l, Frame *f, const Stmt *s);

/* ---- unreached.c ---- */
/* Takes parameters that no loss reaches away from their optimizers, and warns: W607. Call it before
 * shares are settled. */
void drop_unreached(Lower *l);

/* ---- schedule.c ---- */
/* Returns the node of a setting: one node for each key and block. */
Value setting_node(Lower *l, const char *key, double number, ampc_domain domain, Span span);
/* Returns the node of a setting that is a schedule or arithmetic on schedules. `step` counts the
 * steps; `key`, "opt.lr", is the prefix of the keys of its arguments; `domain` is the range of the
 * setting. Returns value 0 after a message. */
Value setting_schedule(Lower *l, const Schedule *s, Value step, const char *key, ampc_domain domain,
                       Span span);
Datum extreme_schedule(Lower *l, const Args *args); /* `min(a, b)` in a setting */
Datum counting_schedule(Lower *l, OpKind op);       /* `step` and `epoch` in a setting */
