/* What expands from optimizers.def, the one table of optimizers. */
#pragma once
#include "ops.h"

enum {
  MAX_MOMENTS = 3, /* the spaces of the plan: AMPC_MOMENT1 to AMPC_MOMENT3 */
  MAX_WORDS = 4,   /* flags and variant together */
  MAX_ARGUMENTS = MAX_SIGNATURE + MAX_WORDS
};

/* Which settings must not be the literal 0, and which must: bit masks over the settings.
 * Both empty: it always holds. `momentum !dampening` of SGD is {1 << 1, 1 << 2}. */
typedef struct SettingCondition {
  uint32_t nonzero, zero;
  uint32_t flags; /* bits of flags that must be set */
} SettingCondition;

/* What the language takes, in order: settings, then flags. */
typedef struct OptimizerArgument {
  const char *name;  /* "lr"; "betas" for beta1 and beta2 */
  bool flag;         /* then `first` is its bit in ParamGroup.flags */
  bool optional;     /* may be `none`: the update then lacks these inputs */
  bool whole;        /* of the optimizer: no clause `group` has it */
  uint32_t first, n; /* settings [first, first + n); more than one are given as a list */
} OptimizerArgument;

typedef struct OptimizerInfo {
  const char *name;       /* "AdamW" */
  OpKind update, measure; /* measure: OP_COUNT where there is none */
  const char *measure_text, *moments_text, *flags_text, *variant_text; /* see optimizers.def */
  const InputInfo *setting[MAX_SIGNATURE];                             /* inputs of these ops */
  uint32_t n_settings;
  uint32_t moments; /* bit i: moment i + 1 is kept where keep[i] holds */
  SettingCondition keep[MAX_MOMENTS];
  uint32_t n_flags, n_words; /* words: the flags, then the variant */
  const char *word[MAX_WORDS];
  SettingCondition needs[MAX_WORDS]; /* of a flag: what it is an error without */
  OptimizerArgument argument[MAX_ARGUMENTS];
  uint32_t n_arguments;
} OptimizerInfo;

/* The table is parsed and checked at first use, once a process; thread-safe. A mistake in it ends
 * the program with a message that names the optimizer and the word. */
const OptimizerInfo *optimizer_row(OptimizerKind kind);
static inline const OptimizerInfo *optimizer_of(const Optimizer *o)
{
  return optimizer_row(o->kind);
}
bool optimizer_lookup(const char *name, OptimizerKind *out);
const char *optimizer_setting_name(const OptimizerInfo *row, uint32_t i); /* "beta1" */
/* Index of a setting; false: it has none of that name. */
bool optimizer_setting_find(const OptimizerInfo *row, const char *name, uint32_t *out);
/* The moments that some group of o keeps: bit i is moment i + 1. */
uint32_t optimizer_moments(const Optimizer *o);
/* Whether word[0, n) is a flag that the group has, or of the optimizer's variant. */
bool optimizer_holds(const Optimizer *o, const ParamGroup *group, const char *word, size_t n);

/* The numbers that the setting `name` takes, by settings.def; `value` is the domain of what a
 * schedule stands for. False: the table does not have it. */
bool setting_domain(const char *name, ampc_domain value, ampc_domain *out);

/* A mistake of ours about a row: the program ends with the row's name. */
_Noreturn void optimizer_broken(const char *name, const char *what, const char *word);
