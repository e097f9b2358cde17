/* Functions of ampc and the verbs of amp: compiler options, and the exit after a compiler bug. */
#pragma once
#include "compiler/base/compile.h"
#include "option_table.h"

/* Groups for option tables. They fill an Options, whose arrays belong to the arena of the table. */
extern const OptionRow ranks_option[];   /* --ranks: not for verbs that run as ranks themselves */
extern const OptionRow job_options[];    /* what is compiled: -D --set -I --data-dir --cuda-path
                                            --march -O --strict-rounding */
extern const OptionRow memory_options[]; /* --memory-limit --check-memory --poison */
extern const OptionRow table_options[];  /* --wide --top */

/* Returns the default options. */
Options options_default(void);

/* Read --cuda-path, --set and -D, for verbs that have them but not all of job_options. The last two
 * fill an Options. */
int options_cuda_path(const OptionGiven *given);
int options_setting(const OptionGiven *given);
int options_const(const OptionGiven *given);

/* Adds a setting, as --set does. Returns false if `text` is not KEY=VALUE. */
bool options_set(Arena *arena, Options *options, const char *text);

/* Prints the version of the program and how it was built. Returns 0. */
int print_version(const char *program);

/* After this call, a failed assert prints a request to report the bug and exits with status 70. */
void exit_on_abort(const char *program);
