/* What ampc and the verbs of amp share: options of the compiler, and how a bug of ours ends them.
 */
#pragma once
#include "compiler/base/compile.h"
#include "option_table.h"

/* Groups for option tables; they fill an Options, whose arrays then belong to the table's arena. */
extern const OptionRow
    job_options[]; /* what is compiled: -D --set -I --data-dir --cuda-path -O --strict-rounding */
extern const OptionRow memory_options[]; /* --memory-limit --check-memory --poison */
extern const OptionRow table_options[];  /* --wide --top */

/* As they are where the command line says nothing. */
Options options_default(void);

/* Reads --cuda-path, for verbs that take it and not job_options. */
int options_cuda_path(const OptionGiven *given);

/* Adds a setting, as --set does. False: `text` is not KEY=VALUE. */
bool options_set(Arena *arena, Options *options, const char *text);

/* From here on an assert ends the program with exit status 70 and a line that asks to report it. */
void exit_on_abort(const char *program);
