/* The options that fill ampc_train_options: those of train_options.def, as `amp` and emitted
 * programs take them. */
#pragma once
#include "ampc_rt.h"

typedef struct ampc_option {
  const char *name, *value, *help; /* value: as --help writes it; NULL: takes none */
  char letter;                     /* 0: has none */
} ampc_option;
extern const ampc_option ampc_train_option_list[]; /* ends with a null name */

/* Takes the option `name` of the list. The text of `value` must outlive t. */
ampc_status ampc_train_option(const char *name, const char *value, ampc_train_options *t);
