/* The options of ampc_train_options for `amp` and emitted programs, from train_options.def. */
#pragma once
#include "ampc_rt.h"

typedef struct ampc_option {
  const char *name, *value, *help; /* value: its name in --help; NULL: the option takes no value */
  char letter;                     /* short name; 0: none */
} ampc_option;
extern const ampc_option ampc_train_option_list[]; /* the last entry has a null name */

/* Reads `value` of the option `name` into t. The text of `value` must outlive t. */
ampc_status ampc_train_option(const char *name, const char *value, ampc_train_options *t);

/* Returns the number that row i of the list has in t: a count, or seconds. 0: it was not given, or
 * the option is no number. */
double ampc_train_option_number(size_t i, const ampc_train_options *t);
