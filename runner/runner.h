/* The verbs of `amp`. argv[0] is the verb's own name. Each verb returns an exit status: an
 * ampc_status, or 1 for errors in the program. */
#pragma once
#include "compiler/cli/option_table.h"

typedef struct Verb {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
  const OptionTable *table;
  bool together; /* several ranks can run it together */
} Verb;
extern const Verb verbs[];     /* ends with an empty row */
extern const char amp_notes[]; /* the end of `amp --help`, in lines */

extern const OptionTable train_verb, eval_verb, infer_verb, inspect_verb, profile_verb, probe_verb,
    report_verb, tune_verb, weights_verb, export_verb, import_verb, fmt_verb, repl_verb, lsp_verb,
    selftest_verb, tokens_verb, chat_verb;

int train_main(int argc, char **argv);
int eval_main(int argc, char **argv);
int infer_main(int argc, char **argv);
int chat_main(int argc, char **argv);
int inspect_main(int argc, char **argv);
int profile_main(int argc, char **argv);
int probe_main(int argc, char **argv);
int report_main(int argc, char **argv);
int repl_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int weights_main(int argc, char **argv);
int export_main(int argc, char **argv);
int import_main(int argc, char **argv);
int fmt_main(int argc, char **argv);
int tokens_main(int argc, char **argv);
int lsp_main(int argc, char **argv);
int selftest_main(int argc, char **argv);
