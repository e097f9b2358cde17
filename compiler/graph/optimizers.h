/* The optimizer table in memory: what optimizers.def expands to. */
#pragma once
#include "ops.h"

enum {
  MAX_MOMENTS = 3, /* the plan has the spaces AMPC_MOMENT1 to AMPC_MOMENT3 */
  MAX_WORDS = 4,   /* for flags and for those that are always true, together */
  MAX_ARGUMENTS = MAX_SIGNATURE + MAX_WORDS
};

/* A condition on settings and flags, as bit masks. Settings in `nonzero` must not be the literal 0.
 * Settings in `zero` must be the literal 0. An empty condition always holds. `momentum !dampening`
 * of SGD is {1 << 1, 1 << 2}. */
typedef struct SettingCondition {
  uint32_t nonzero, zero;
  uint32_t flags; /* bits of flags that must be set */
} SettingCondition;

/* An argument of an optimizer in the language. In the table settings come first, then flags. */
typedef struct OptimizerArgument {
  const char *name;  /* "lr"; "betas" for beta1 and beta2 */
  bool flag;         /* a flag, not a setting: `first` is its bit in ParamGroup.flags */
  bool optional;     /* may be `none`: then the update lacks these inputs */
  bool whole;        /* applies to the whole optimizer; a `group` clause cannot set it */
  uint32_t first, n; /* settings [first, first + n); several are given as a list */
} OptimizerArgument;

typedef struct OptimizerInfo {
  const char *name;       /* "AdamW" */
  OpKind update, measure; /* measure: OP_COUNT if there is none */
  bool matrices; /* its parameters have two axes, and their change is a matrix: Note [muon] */
  const char *moments_text, *flags_text, *always_text, *formula_text; /* columns */
  OptimizerKind of;          /* of a variant: the row that has its update, else OPT_COUNT */
  const char *defaults_text; /* of a variant: the settings with other defaults; else "" */
  const InputInfo *setting[MAX_SIGNATURE];    /* inputs of `update` and `measure` */
  const char *setting_default[MAX_SIGNATURE]; /* "1e-3"; NULL: it must be given */
  uint32_t n_settings;
  uint32_t moments;        /* bit i: a group keeps moment i + 1 if keep[i] holds */
  uint32_t never_negative; /* bits of moments that are never negative: Note [codes] */
  SettingCondition keep[MAX_MOMENTS];
  uint32_t n_flags, n_words; /* words: the flags, then those that are always true */
  const char *word[MAX_WORDS];
  const char *flag_default[MAX_WORDS]; /* "true"; NULL: false */
  SettingCondition needs[MAX_WORDS];   /* a flag is an error unless its condition holds */
  OptimizerArgument argument[MAX_ARGUMENTS];
  uint32_t n_arguments;
  OpCode formula; /* statements of kinds let and set */
} OptimizerInfo;

#define MUON_SCALE "match_rms_adamw"                /* a flag that passes/orthogonal.c reads */
extern const char *const moment_names[MAX_MOMENTS]; /* in formulas: "m", "v", "u" */

/* Returns a row. The table is parsed and checked at first use, once per process; thread-safe. A
 * mistake in the table ends the program with a message about the optimizer and the word. */
const OptimizerInfo *optimizer_row(OptimizerKind kind);
static inline const OptimizerInfo *optimizer_of(const Optimizer *o)
{
  return optimizer_row(o->kind);
}
bool optimizer_lookup(const char *name, OptimizerKind *out);
const char *optimizer_setting_name(const OptimizerInfo *row, uint32_t i); /* "beta1" */
/* Finds the index of a setting. Returns false if the row has no setting of that name. */
bool optimizer_setting_find(const OptimizerInfo *row, const char *name, uint32_t *out);
/* Returns the number of slices of each group of o, which members update: one for each member. If an
 * update needs norms of whole parameters, there is one slice, which every member updates. */
int64_t optimizer_slices(const Graph *g, const Optimizer *o);
bool optimizer_has_group(const Graph *g, int64_t optimizer, uint32_t group); /* not an empty one */
/* Returns the moments that any group of o keeps: bit i is moment i + 1. */
uint32_t optimizer_moments(const Optimizer *o);
/* True if word[0, n) is a flag that the group sets, or one that is always true. */
bool optimizer_holds(const Optimizer *o, const ParamGroup *group, const char *word, size_t n);

/* Finds the domain of the setting `name` in settings.def. `value` is the domain of the setting that
 * a schedule computes. Returns false if the table does not contain the name. */
bool setting_domain(const char *name, ampc_domain value, ampc_domain *out);

/* Returns a `def` for each optimizer and each op with T_schedule: optimizer_defs.c. */
Text table_defs(Arena *arena);

/* Reports a bug in a row of the table: ends the program with the row's name. */
_Noreturn void optimizer_broken(const char *name, const char *what, const char *word);
