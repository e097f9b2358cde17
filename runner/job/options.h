/* The options of the training loop (runtime/train/train_options.def) as rows of option tables. Each
 * group fills an ampc_train_options. */
#pragma once
#include "compiler/cli/option_table.h"

/* Returns the folder of a path, "." if it has none. Data paths are relative to the job's folder
 * unless --data-dir names another folder. */
const char *folder_of(Arena *arena, const char *path);

extern const OptionRow train_options[]; /* amp train: all options */
extern const OptionRow eval_options[];  /* amp eval: options that apply to an evaluation */
extern const OptionRow fresh_options[]; /* probe, infer, repl: --device --seed --force */
