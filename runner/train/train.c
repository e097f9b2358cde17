/* amp train and amp eval: compile a job in this process, load its kernels and run it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "compiler/cli/options.h"
#include "runner/job/memory.h"
#include "runner/job/options.h"
#include "runner/jit/jit.h"
#include "runner/probe/look_on.h"
#include "runner/runner.h"

/* ---- the command line ---- */

typedef struct TrainCommand {
  Options compile;
  ampc_train_options train;
  bool verbose;
} TrainCommand;

static const OptionRow probe_option[] = {
    {"probe-every", 0, "K", "report every K steps how large the values are (log: probe.jsonl)",
     .kind = OPTION_number, .least = 1, .field = offsetof(Options, probe_every)},
    {0}};

static const OptionRow verbose_option[] = {{NULL, 'v', NULL,
                                            "print how many bytes of memory each purpose needs",
                                            .kind = OPTION_flag, .field = 0},
                                           {0}};

static const char train_notes[] =
    "exit status: 0 done, or stopped by --max-time; 1 errors in the program; 2 bad usage; 3 a file "
    "is missing or unreadable, or a log could not be written (all else was done); 4 the C compiler "
    "failed; 5 the run failed; 130 interrupted by SIGINT, SIGTERM or SIGHUP, after saving. SIGUSR1 "
    "saves and training continues.";

static const OptionTable train_verb = {
    .program = "amp train",
    .usage = "[options] job.amp",
    .groups = (const OptionGroup[]){{train_options, offsetof(TrainCommand, train)},
                                    {job_options, offsetof(TrainCommand, compile)},
                                    {probe_option, offsetof(TrainCommand, compile)},
                                    {memory_options, offsetof(TrainCommand, compile)},
                                    {verbose_option, offsetof(TrainCommand, verbose)},
                                    {NULL, 0}},
    .notes = train_notes};

static const OptionTable eval_verb = {
    .program = "amp eval",
    .usage = "[options] [--resume FILE] job.amp",
    .groups = (const OptionGroup[]){{eval_options, offsetof(TrainCommand, train)},
                                    {job_options, offsetof(TrainCommand, compile)},
                                    {memory_options, offsetof(TrainCommand, compile)},
                                    {verbose_option, offsetof(TrainCommand, verbose)},
                                    {NULL, 0}},
    .notes = "exit status: 0 done; 1 errors in the program; 2 bad usage; 3 a file is missing or "
             "unreadable; 4 the C compiler failed; 5 the run failed; 130 interrupted"};

/* Reads the command line. False: nothing is left to do, and *status is the exit status. */
static bool read_command_line(const OptionTable *table, Arena *arena, int argc, char **argv,
                              TrainCommand *cmd, int *status)
{
  Operands jobs = {argv, argc};
  *cmd = (TrainCommand){.compile = options_default(), .train = {.device = "auto"}};
  if (!options_read(table, arena, &jobs, cmd, status)) return false;
  *status = options_count_jobs(table, &jobs, 1, 1);
  if (*status) return false;
  cmd->train.eval_only = table == &eval_verb;
  cmd->compile.input = jobs.at[0];
  cmd->train.data_dir =
      cmd->compile.data_dir ? cmd->compile.data_dir : folder_of(arena, cmd->compile.input);
  return true;
}

/* ---- running ---- */

/* Prints an error. The runtime finds options that contradict each other or the blocks of the job; a
 * message for bad usage still begins with the verb. */
static void print_error(const char *program, ampc_status status)
{
  if (status == AMPC_OK || status == AMPC_INTERRUPTED || !*ampc_last_error()) return;
  fprintf(stderr, "%s: error: %s\n", status == AMPC_BAD_USAGE ? program : "amp", ampc_last_error());
}

static void note_lost(void *context, ampc_runtime *rt, int64_t step, ampc_data_position at)
{
  (void)rt;
  ((OnLooker *)context)->lost = (Lost){true, step, at};
}

/* Checks the memory first, so that a job that does not fit is refused before a compiler starts. */
static ampc_status run_program(const char *program, Compile *c, const ampc_train_options *given,
                               bool verbose)
{
  Jit *jit = NULL;
  ampc_runtime *rt = NULL;
  ampc_train_options options = *given;
  OnLooker looker = {.log_dir = given->log_dir};
  options.context = &looker;
  options.lost = note_lost;
  if (c->options.probe_every) {
    watch_init(&looker.watch, c);
    options.after_step = look_on;
  }
  ampc_status status = memory_admit(c, options.device, options.quiet, verbose);
  if (status == AMPC_OK) status = jit_load(c, &jit);
  if (status == AMPC_OK) status = ampc_create(c->program, options.device, &rt);
  if (status == AMPC_OK) status = ampc_train(rt, &ampc_data, &options);
  print_error(program, status);
  if (looker.lost.there) diagnose(&c->options, options.device, options.data_dir, rt, &looker.lost);
  ampc_free(rt);
  jit_unload(jit);
  return status;
}

/* Whether the weights exist: from a checkpoint or from the `load` clauses of the job's models. */
static bool has_weights(const Compile *c, const TrainCommand *cmd)
{
  return !cmd->train.eval_only || cmd->train.resume || ampc_resume_path(c->program) ||
         c->program->n_loads;
}

/* Selects the device before the job is compiled, because the device decides the target. */
static int run(const OptionTable *table, int argc, char **argv)
{
  Arena *arena = arena_create();
  TrainCommand cmd;
  int status;
  char target[AMPC_TARGET_ROOM];
  bool good = read_command_line(table, arena, argc, argv, &cmd, &status);
  if (good && (status = (int)ampc_device_target(cmd.train.device, target)) != 0) {
    print_error(table->program, (ampc_status)status);
  } else if (good) {
    cmd.compile.target = target;
    Compile *c = compile_create(&cmd.compile);
    if (!compile_job(c))
      status = c->cannot_read ? AMPC_BAD_FILE : 1;
    else if (!has_weights(c, &cmd))
      status = usage_error(
          table->program,
          "the weights are missing: give --resume FILE, or write `load` in the job's model");
    else
      status = (int)run_program(table->program, c, &cmd.train, cmd.verbose);
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}

int train_main(int argc, char **argv)
{
  return run(&train_verb, argc, argv);
}

int eval_main(int argc, char **argv)
{
  return run(&eval_verb, argc, argv);
}
