/* amp: runs jobs. The first argument is the verb. Each verb parses the remaining arguments. */
#include "runner.h"
#include "compiler/diag/diag.h"
#include "compiler/cli/options.h"
#include "ampc_rt.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/out_of_memory.h"
#include "runtime/plan/file.h"
#include "runtime/plan/standard_files.h"
#include "runtime/ranks/ranks.h"
#include <stdio.h>
#include <string.h>

typedef struct Verb {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
  bool together; /* several ranks can run it together */
} Verb;

static const Verb verbs[] = {
    {"train", train_main, "train the job", true},
    {"eval", eval_main, "run the eval blocks of the job on saved weights", true},
    {"infer", infer_main, "run an infer block of the job over data", false},
    {"inspect", inspect_main, "print the kernels that the job compiles to", false},
    {"profile", profile_main, "run some steps and report where their time goes", false},
    {"probe", probe_main, "run some steps and report how large their values are", false},
    {"report", report_main, "write a web page: layers, types, casts, memory, kernels, curves",
     false},
    {"weights", weights_main, "write weights as PyTorch's load_state_dict takes them", false},
    {"repl", repl_main, "a prompt for declarations, statements and commands", false},
    {"selftest", selftest_main, "check every op against references on this machine", false},
};
enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static int print_help(void)
{
  puts("usage: amp VERB [options] job.amp\n");
  for (const Verb *v = verbs; v < verbs + VERB_COUNT; v++) printf("  %-8s  %s\n", v->name, v->help);
  puts("\n'amp VERB --help' lists the options of a verb\n"
       "\n"
       "exit status: 0 success, 1 errors in the program, 2 bad usage, 3 a file is\n"
       "missing or unreadable, 4 the C compiler failed, 5 the run failed, 70 a bug in\n"
       "amp, 130 interrupted by SIGINT, SIGTERM or SIGHUP; training saves first");
  return 0;
}

static int unknown_verb(const char *word)
{
  const char *names[VERB_COUNT];
  for (int i = 0; i < VERB_COUNT; i++) names[i] = verbs[i].name;
  const char *near = diag_nearest(word, names, VERB_COUNT);
  if (!near) return usage_error("amp", "no verb %s", word);
  return usage_error("amp", "no verb %s; did you mean %s?", word, near);
}

/* Refuses to run a verb several times beside itself, which a launcher would do. */
static int run_verb(const Verb *v, int argc, char **argv)
{
  if (v->together || !ranks_started()) return v->run(argc, argv);
  return usage_error("amp", "%s works with one rank; start it without mpirun or srun", v->name);
}

static int run(int argc, char **argv)
{
  if (argc < 2) return usage_error("amp", "no verb was given");
  if (strcmp(argv[1], "--help") == 0) return print_help();
  if (strcmp(argv[1], "--version") == 0) return puts("amp " AMPC_VERSION), 0;
  for (const Verb *v = verbs; v < verbs + VERB_COUNT; v++)
    if (strcmp(argv[1], v->name) == 0) return run_verb(v, argc - 1, argv + 1);
  return unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
  if (!standard_files_open()) return AMPC_BAD_FILE;
  interrupt_begin("amp");
  if (!stack_suffices("amp")) return AMPC_RUN_FAILED;
  exit_on_abort("amp");
  out_of_memory_catch("amp");
  return file_end_stdout("amp", run(argc, argv));
}
