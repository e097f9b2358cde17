/* amp: runs jobs. The first argument is the verb. Each verb parses the remaining arguments. */
#include "runner.h"
#include "compiler/diag/diag.h"
#include "compiler/cli/options.h"
#include "ampc_rt.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/out_of_memory.h"
#include "runtime/plan/attention.h"
#include "common/file.h"
#include "common/standard_files.h"
#include "runtime/ranks/ranks.h"
#include <stdio.h>
#include <string.h>

enum { MOST_VERBS = 32 };

static int print_help(void)
{
  puts("usage: amp VERB [options] job.amp\n");
  for (const Verb *v = verbs; v->name; v++) printf("  %-8s  %s\n", v->name, v->help);
  printf("\n'amp VERB --help' lists the options of a verb\n\n%s\n", amp_notes);
  return 0;
}

static int unknown_verb(const char *word)
{
  const char *dot = strrchr(word, '.');
  if (dot && strcmp(dot, ".amp") == 0)
    return usage_error("amp", "no verb was given; type amp train %s", word);
  if (dot && strcmp(dot, ".gguf") == 0)
    return usage_error("amp",
                       "no verb was given; 'amp import %s -o net.amp' writes a job, then 'amp chat "
                       "net.amp' works",
                       word);
  const char *names[MOST_VERBS] = {"help"};
  uint32_t n = 1;
  for (const Verb *v = verbs; v->name; v++) names[n++] = v->name;
  const char *near = diag_nearest(word, names, n);
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
  bool help = strcmp(argv[1], "help") == 0;
  if (help && argc > 2)
    argv[1] = argv[2], argv[2] = "--help"; /* amp help train */
  else if (help || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
    return print_help();
  if (strcmp(argv[1], "--version") == 0) return print_version("amp");
  if (ampc_attention_check()) return usage_error("amp", "%s", ampc_last_error());
  for (const Verb *v = verbs; v->name; v++)
    if (strcmp(argv[1], v->name) == 0) return run_verb(v, argc - 1, argv + 1);
  return unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
  if (!standard_files_open()) return AMPC_BAD_FILE;
  file_keep_inputs();
  interrupt_begin("amp");
  if (!stack_suffices("amp")) return AMPC_RUN_FAILED;
  exit_on_abort("amp");
  out_of_memory_catch("amp");
  return file_end_stdout("amp", run(argc, argv));
}
