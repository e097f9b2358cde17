/* amp train and amp eval: compile a job in this process, load its kernels and run it; alone, or as
 * one of several ranks. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "compiler/cli/options.h"
#include "runner/job/memory.h"
#include "runner/job/options.h"
#include "runner/jit/jit.h"
#include "runner/probe/look_on.h"
#include "find_lr.h"
#include "runner/runner.h"
#include "runtime/members.h"
#include "common/bytes.h"

/* ---- the command line ---- */

typedef struct TrainCommand {
  Options compile;
  ampc_train_options train;
  LrRange range;
  FindLr *find; /* NULL: no --find-lr */
  bool verbose;
} TrainCommand;

static const OptionRow probe_option[] = {
    {"probe-every", 0, "K", "report every K steps how large the values are (log: probe.jsonl)",
     .kind = OPTION_number, .least = 1, .field = offsetof(Options, probe_every)},
    {0}};

static const OptionRow find_lr_option[] = {
    {"find-lr", 0, "LOW,HIGH",
     "do not train, but find a learning rate: the rate grows from LOW to HIGH (1e-7,10)",
     .kind = OPTION_call, .read = find_lr_read, .bare = true,
     .without = "save save-weights save-every keep-last keep-best early-stop resume log-dir log "
                "probe-every overfit-batches"},
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

const OptionTable train_verb = {
    .program = "amp train",
    .usage = "[options] job.amp",
    .groups = (const OptionGroup[]){{train_options, offsetof(TrainCommand, train)},
                                    {job_options, offsetof(TrainCommand, compile)},
                                    {probe_option, offsetof(TrainCommand, compile)},
                                    {find_lr_option, offsetof(TrainCommand, range)},
                                    {memory_options, offsetof(TrainCommand, compile)},
                                    {verbose_option, offsetof(TrainCommand, verbose)},
                                    {NULL, 0}},
    .notes = train_notes};

const OptionTable eval_verb = {
    .program = "amp eval",
    .usage = "[options] [--weights FILE] job.amp",
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
  cmd->compile.norms = cmd->train.log_dir || (cmd->train.json && !cmd->train.eval_only);
  cmd->compile.input = jobs.at[0];
  cmd->compile.quiet = cmd->train.quiet;
  cmd->train.data_dir =
      cmd->compile.data_dir ? cmd->compile.data_dir : folder_of(arena, cmd->compile.input);
  return true;
}

/* ---- running ---- */

/* Prints an error, on one rank if all have failed for the same reason. The runtime, too, finds bad
 * usage: options that contradict each other or the blocks of the job. */
static void print_error(const char *program, const Ranks *ranks, ampc_status status)
{
  const char *why = ampc_last_error();
  if (status == AMPC_OK || status == AMPC_INTERRUPTED || !*why || ranks_silent()) return;
  bool named = !ranks || strncmp(why, "rank ", 5) == 0;
  const char *name = named ? "" : ranks_name(ranks, ranks->rank), *colon = named ? "" : ": ";
  if (status == AMPC_BAD_USAGE)
    usage_error(program, "%s%s%s", name, colon, why);
  else
    fprintf(stderr, "amp: error: %s%s%s\n", name, colon, why);
}

static void note_lost(void *context, ampc_runtime *rt, int64_t step, ampc_data_position at,
                      const char *begun, const char *saved)
{
  OnLooker *l = context;
  (void)rt;
  l->lost = (Lost){true, step, at, .set = "--set"};
  if (begun) l->lost.begun = arena_strdup(l->arena, begun);
  if (saved) l->lost.saved = arena_strdup(l->arena, saved);
}

/* Compiles the job again, with probes. `context`: the Compile of the run. */
static Compile *compile_probed(void *context, const char *precision)
{
  const Compile *run = context;
  Options o = run->options;
  o.probe_every = 1;
  o.silent = true;
  if (precision) {
    Assignment *settings = arena_array(run->arena, Assignment, o.n_settings + 1);
    if (o.n_settings) memcpy(settings, o.settings, o.n_settings * sizeof *settings);
    settings[o.n_settings++] = (Assignment){"precision", precision}; /* the last one counts */
    o.settings = settings;
  }
  Compile *c = compile_create(&o);
  if (compile_job(c)) return c;
  compile_destroy(c);
  return NULL;
}

/* ---- ranks ---- */

/* Fails on all ranks if the kernels of two ranks differ: their versions of amp, imports or options
 * differ. */
static ampc_status same_kernels(Compile *c, Ranks *ranks)
{
  Text text = text_new(c->arena);
  jit_print(c, &text);
  return ranks_same(ranks, "the compiled job", text.at);
}

/* One rank of a host builds the kernels; the others then find them in the cache. */
static ampc_status load_kernels(Ranks *ranks, Compile *c, Jit **out)
{
  ampc_status status = AMPC_OK;
  bool first = !ranks || ranks->local == 0;
  if (first) status = jit_load(c, out);
  status = ranks_agree(ranks, status);
  if (status || !ranks) return status;
  if (!first) status = jit_load(c, out);
  return ranks_agree(ranks, status);
}

typedef struct RankRow { /* what -v tells of a rank */
  char device[64];
  int64_t first, end, all; /* shares of each batch */
  int64_t sent;
  double waited;
} RankRow;

/* Prints what each rank has done. All ranks call it. */
static ampc_status tell_ranks(Compile *c, Ranks *ranks, const ampc_runtime *rt)
{
  const Members *m = runtime_members(rt);
  RankRow *rows = calloc((size_t)ranks->size, sizeof *rows), *own = rows + ranks->rank;
  if (!rows) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  snprintf(own->device, sizeof own->device, "%s", ampc_device_name(rt));
  own->first = m->first;
  own->end = m->first + m->n;
  own->all = m->all;
  own->sent = runtime_sent(rt);
  own->waited = ranks->waited;
  ampc_status status = ranks_gather(ranks, rows, sizeof *rows);
  Text text = text_new(c->arena);
  Table t;
  table_open(&t, c->arena, &text, &c->options.view, "rank:<16|device|share|sent|waited");
  for (int i = 0; i < ranks->size && !status; i++) {
    char bytes[AMPC_BYTES_ROOM];
    TABLE_ROW(&t, 0, {ranks_name(ranks, i)}, {rows[i].device},
              {arena_printf(c->arena, "%lld of %lld", (long long)(rows[i].end - rows[i].first),
                            (long long)rows[i].all)},
              {arena_strdup(c->arena, ampc_bytes_text(rows[i].sent, bytes))},
              {arena_printf(c->arena, "%.1f s", rows[i].waited)});
  }
  table_put(&t);
  if (!status && ranks->rank == 0)
    fprintf(stderr, "%sconnected by %s\n", text.at, ranks_library(ranks));
  free(rows);
  return status;
}

/* ---- the run ---- */

/* Checks the memory first, so that a job that does not fit is refused before a compiler starts. */
static ampc_status run_program(const char *program, Compile *c, Ranks *ranks,
                               const TrainCommand *cmd)
{
  Jit *jit = NULL;
  ampc_runtime *rt = NULL;
  ampc_train_options options = cmd->train;
  OnLooker looker = {.arena = c->arena, .log_dir = options.log_dir};
  bool leads = !ranks || ranks->rank == 0, verbose = cmd->verbose;
  options.context = &looker;
  if (!ranks) options.lost = note_lost;
  if (c->options.probe_every) {
    watch_init(&looker.watch, c);
    options.after_step = look_on;
  }
  if (cmd->find) find_lr_options(cmd->find, &options);
  ampc_status status = memory_admit(c, options.device, options.quiet || !leads, verbose && leads);
  status = ranks_agree(ranks, status);
  if (status == AMPC_OK && ranks) status = same_kernels(c, ranks);
  if (status == AMPC_OK) status = load_kernels(ranks, c, &jit);
  if (status == AMPC_OK) status = runtime_create(c->program, options.device, ranks, &rt);
  if (status == AMPC_OK) status = ampc_train(rt, &ampc_data, &options);
  if (cmd->find) status = find_lr_tell(cmd->find, status, !leads);
  if (status == AMPC_OK && ranks && verbose) status = tell_ranks(c, ranks, rt);
  print_error(program, ranks, status);
  if (looker.lost.there)
    diagnose(compile_probed, c, options.device, options.data_dir, rt, &looker.lost);
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

/* Compiles and runs the job. All ranks compile it; one prints the messages. */
static int run_job(const OptionTable *table, TrainCommand *cmd, Ranks *ranks, Arena *arena)
{
  char target[AMPC_TARGET_ROOM];
  ampc_status status = ampc_device_target(cmd->train.device, target);
  cmd->compile.target = target;
  if (!status && cmd->range.high > 0)
    status = find_lr_open(arena, cmd->range, &cmd->compile, &cmd->find);
  status = ranks_agree(ranks, status);
  if (status) {
    print_error(table->program, ranks, status);
    return (int)status;
  }
  Compile *c = compile_create(&cmd->compile);
  bool good = compile_job(c), told = !good && !cmd->compile.silent;
  if (!good)
    status =
        ampc_fail(c->cannot_read ? AMPC_BAD_FILE : (ampc_status)1,
                  "the job does not compile on this rank's machine; run ampc there to see why");
  else if (!has_weights(c, cmd))
    status = ampc_fail(
        AMPC_BAD_USAGE,
        "the weights are missing: give --weights FILE, or write `load` in the job's model");
  status = ranks_agree(ranks, status);
  if (status && !told) print_error(table->program, ranks, status);
  if (!status) status = run_program(table->program, c, ranks, cmd);
  compile_destroy(c);
  return (int)status;
}

/* Joins the other ranks, if the process was started as one of several. */
static int run_ranks(const OptionTable *table, TrainCommand *cmd, Arena *arena)
{
  Ranks *ranks = NULL;
  uint32_t size;
  const char *why, *text;
  ampc_status status = ranks_open(&ranks);
  if (!status && ranks) {
    cuda_set_rank(ranks);
    cmd->compile.ranks = (uint32_t)ranks->size;
    cmd->compile.silent = ranks->rank != 0;
    text = source_read(arena, FILE_JOB, cmd->compile.input, &size, &why);
    status = ranks_same(ranks, "the job", text ? text : "");
  }
  print_error(table->program, ranks, status);
  int result = status ? (int)status : run_job(table, cmd, ranks, arena);
  ranks_close(ranks, (ampc_status)result);
  return result;
}

static int run(const OptionTable *table, int argc, char **argv)
{
  Arena *arena = arena_create();
  TrainCommand cmd;
  int status;
  if (read_command_line(table, arena, argc, argv, &cmd, &status))
    status = run_ranks(table, &cmd, arena);
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
