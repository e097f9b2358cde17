/* The options of the training loop (runtime/train/train_options.def) as rows of option tables. Each
 * group fills an ampc_train_options. */
#pragma once
#include "compiler/cli/option_table.h"

/* The folder that a path names something in; that of the job is where data paths start when nothing
 * else is said. */
const char *folder_of(Arena *arena, const char *path);

extern const OptionRow train_options[]; /* amp train has them all */
extern const OptionRow eval_options[];  /* those that mean something in an evaluation */
extern const OptionRow fresh_options[]; /* --device --seed --force: runs with new weights */
