/* amp tune: the command line, and the report in words. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "compiler/cost/cpu.h"
#include "compiler/driver.h"
#include "runner/job/options.h"
#include "runner/job/steps.h"
#include "runner/runner.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/number.h"
#include "runtime/train/train_options.h"
#include "tune.h"

enum { USUAL_STEPS = 100, USUAL_BATCHES = 2 };
/* Gradients of two batches differ by about as much as they are large. An error of 0.05 of that
 * adds 0.25 % to its variance. */
#define USUAL_BOUND 0.05

typedef struct TuneCommand {
  Options compile;
  ampc_train_options train;
  uint32_t steps, batches;
  double bound, budget;
  RegionKind types[4];
  uint32_t n_types; /* 0: not given */
  const Gpu *gpu;
  const char *state, *save;
  bool on_cpu, measure, write, check, quiet;
} TuneCommand;

/* ---- the command line ---- */

static int read_bound(const OptionGiven *given)
{
  TuneCommand *cmd = given->into;
  if (ampc_read_real(given->value, &cmd->bound) && cmd->bound > 0) return OPTIONS_GO_ON;
  return option_wrong(given, "expected a number above 0, such as 0.01");
}

static int read_budget(const OptionGiven *given)
{
  TuneCommand *cmd = given->into;
  ampc_train_options t = {0};
  if (ampc_train_option("max-time", given->value, &t))
    return option_wrong(given, "expected a time such as 90s, 5m or 1h");
  cmd->budget = t.max_time;
  return OPTIONS_GO_ON;
}

static int read_gpu(const OptionGiven *given)
{
  TuneCommand *cmd = given->into;
  cmd->gpu = gpu_find(given->value);
  cmd->on_cpu = strcmp(given->value, "cpu") == 0;
  if (cmd->gpu || cmd->on_cpu) return OPTIONS_GO_ON;
  return option_wrong(given, "expected cpu or one of %s", gpu_names(given->arena));
}

/* Reads "bf16,f16,tf32". f32 is always searched. */
static int read_types(const OptionGiven *given)
{
  TuneCommand *cmd = given->into;
  cmd->n_types = 0;
  for (const char *s = given->value; *s; s += strcspn(s, ","), s += *s == ',') {
    const char *name = arena_strndup(given->arena, s, strcspn(s, ","));
    int kind = 0;
    while (kind < REGION_COUNT && strcmp(region_kind_names[kind], name) != 0) kind++;
    if (kind == REGION_f32) continue;
    if (kind == REGION_COUNT || kind == REGION_off || cmd->n_types == 3)
      return option_wrong(given, "expected types such as f16,bf16,tf32");
    cmd->types[cmd->n_types++] = (RegionKind)kind;
  }
  return OPTIONS_GO_ON;
}

static const OptionRow tune_options[] = {
    {"steps", 0, "N", "train N steps in f32 first, and N to prove the result (default: 100)",
     .kind = OPTION_number, .least = 1, .field = offsetof(TuneCommand, steps)},
    {"batches", 0, "N", "compare the gradients of N batches (default: 2)", .kind = OPTION_number,
     .least = 1, .field = offsetof(TuneCommand, batches)},
    {"bound", 0, "X",
     "how far the loss and the gradients of a batch may deviate from f32, relative to it (default: "
     "0.05)",
     .kind = OPTION_call, .read = read_bound},
    {"types", 0, "LIST", "types to search beside f32: f16, bf16, tf32 (default: the job's, or all)",
     .kind = OPTION_call, .read = read_types},
    {"gpu", 0, "NAME",
     "the GPU that times are predicted for, one of"
#define GPU(name, ...) " " #name
#include "compiler/cost/gpus.def"
     " (default h200); cpu: the processor of this machine",
     .kind = OPTION_call, .read = read_gpu},
    {"measure", 0, NULL, "choose by times measured on this device, not by predicted times",
     .kind = OPTION_flag, .field = offsetof(TuneCommand, measure)},
    {"budget", 0, "TIME", "begin no trial after this time: 90s, 5m, 1h", .kind = OPTION_call,
     .read = read_budget},
    {"state", 0, "FILE", "keep the trials in FILE (default: job.tune.json for job.amp)",
     .kind = OPTION_text, .field = offsetof(TuneCommand, state)},
    {"write", 0, NULL, "change the job: its `precision` gets the pins", .kind = OPTION_flag,
     .field = offsetof(TuneCommand, write)},
    {"save", 0, "FILE", "write the precision to FILE, for `precision profile(\"FILE\")`",
     .kind = OPTION_text, .field = offsetof(TuneCommand, save)},
    {"check", 0, NULL, "search nothing: test the precision that the job has", .kind = OPTION_flag,
     .field = offsetof(TuneCommand, check), .without = "write save"},
    {"quiet", 'q', NULL, "no progress", .kind = OPTION_flag, .field = offsetof(TuneCommand, quiet)},
    {0}};

const OptionTable tune_verb = {
    .program = "amp tune",
    .usage = "[options] job.amp",
    .about =
        "Searches the precision of each module: what deviates from f32 by less than a bound, and "
        "is fastest. Prints the result as a change of the job's text, with the reason of each pin.",
    .groups = (const OptionGroup[]){{tune_options, 0},
                                    {fresh_options, offsetof(TuneCommand, train)},
                                    {job_options, offsetof(TuneCommand, compile)},
                                    {NULL, 0}},
    .notes = "A run that was stopped continues with the trials that it has measured. exit status: "
             "0 done; 1 errors in the program; 2 bad usage; 3 a file is missing or unreadable; 4 "
             "the C compiler failed; 5 the run failed, or --check: the bound is not kept; 130 "
             "interrupted"};

/* ---- preparing ---- */

/* Removes `--set precision=WORD`, which would override the declarations of trials. Returns WORD;
 * NULL: it is not given. */
static const char *take_precision(Options *o)
{
  const char *word = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_settings; i++) {
    if (strcmp(o->settings[i].key, "precision") == 0)
      word = o->settings[i].value;
    else
      o->settings[n++] = o->settings[i];
  }
  o->n_settings = n;
  return word;
}

/* Levels have rules of their own, which a region for each module cannot express. The clauses of a
 * profile are in another file. */
static ampc_status check_word(const char *word)
{
  if (strcmp(word, "auto") == 0 || strncmp(word, "profile", 7) == 0)
    return ampc_fail(AMPC_BAD_USAGE,
                     "`precision %s` reads another file; `--set precision=f16` searches anew",
                     word);
  if (strcmp(word, "O2") != 0 && strcmp(word, "O3") != 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE,
                   "`precision %s` casts whole models; write `precision f16` to "
                   "search the precision of modules",
                   word);
}

/* Sets the types of the search: f32, then those of --types, of the job, or all. */
static void set_types(Tune *t, const TuneCommand *cmd, const char *word)
{
  static const RegionKind usual[] = {REGION_bf16, REGION_f16};
  t->kinds[0] = REGION_f32;
  t->n_kinds = 1;
  for (uint32_t i = 0; i < cmd->n_types; i++) t->kinds[t->n_kinds++] = cmd->types[i];
  if (cmd->n_types) return;
  if (strcmp(word, "O1") == 0) word = "f16";
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (strcmp(word, region_kind_names[usual[i]]) == 0) t->kinds[t->n_kinds++] = usual[i];
  for (size_t i = 0; i < sizeof usual / sizeof *usual && t->n_kinds == 1; i++)
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++) t->kinds[t->n_kinds++] = usual[k];
  bool exact = strstr(t->clauses, "tf32(false)") != NULL;
  if (!t->gpu->cpu && !exact) t->kinds[t->n_kinds++] = REGION_tf32;
}

/* Finds the modules: compiles the job in f32. */
static ampc_status find_units(Tune *t, Compile **out)
{
  Options o = *t->compile;
  o.precision = tune_declaration(t, &(Cover){0}, 0, NULL);
  *out = compile_create(&o);
  if (!compile_job(*out)) return (*out)->cannot_read ? AMPC_BAD_FILE : 1;
  if (tune_block((*out)->program) == (*out)->program->n_blocks)
    return ampc_fail(AMPC_BAD_USAGE, "%s has no train block", t->compile->input);
  if ((*out)->program->members > 1)
    return ampc_fail(AMPC_BAD_USAGE, "amp tune measures one member; add --set train.shards=1");
  t->units = units_find(*out);
  return AMPC_OK;
}

/* ---- the result ---- */

static void print_trial(const Tune *t, const Trial *trial)
{
  printf("gradients deviate by %.2g from f32, the loss by %.2g; the bound is %.2g\n",
         trial->from_f32.gradient, trial->from_f32.loss, t->bound);
}

/* Prints the loss after the training, beside both runs of f32. Returns whether it is the same. */
static bool print_proof(const Tune *t, const Proof *p)
{
  printf("%u steps: loss %.5g; f32 %.5g, f32 with weights moved by one ulp %.5g", t->steps, p->loss,
         t->loss, t->nudged_loss);
  if (p->skipped) printf("; %lld steps skipped", (long long)p->skipped);
  putchar('\n');
  double far = fmax(t->bound * fabs(t->loss), 2 * fabs(t->nudged_loss - t->loss));
  return fabs(p->loss - t->loss) <= far;
}

/* Trains with the result. If steps are skipped, the loss scale begins too high: trains again, and
 * begins with the scale at the end. */
static ampc_status prove(Tune *t, Trial *found, const char **declaration)
{
  Proof p;
  *declaration = tune_result(t, found);
  ampc_status status = tune_train(t, *declaration, &p);
  for (int i = 0; i < 4 && !status && p.skipped && !t->scaler && isfinite(p.loss); i++) {
    found->scale = p.scale;
    *declaration = tune_result(t, found);
    status = tune_train(t, *declaration, &p);
  }
  if (!status && !isfinite(p.loss))
    return ampc_fail(AMPC_RUN_FAILED, "with this precision the run is lost:\n%s", *declaration);
  if (!status && 10 * p.skipped > t->steps)
    printf("warning: f16 overflows in backward at any loss scale; search bf16: --types bf16\n");
  if (!status && !print_proof(t, &p))
    printf("warning: the loss differs from that of f32 by more than the bound\n");
  return status;
}

/* `text`: the declaration to test; NULL: that of the job. */
static ampc_status check(Tune *t, const char *text)
{
  Trial trial = {0};
  Proof p;
  ampc_status status = tune_measure(t, text, &trial);
  if (!status) status = tune_train(t, text, &p);
  if (status) return status;
  print_trial(t, &trial);
  bool same = print_proof(t, &p);
  if (!trial_holds(t, &trial))
    return ampc_fail(AMPC_RUN_FAILED, "the precision of %s does not keep the bound; run amp tune",
                     t->compile->input);
  if (same) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "the loss of %s after %u steps is not that of f32",
                   t->compile->input, t->steps);
}

static ampc_status save(const Tune *t, const char *declaration, const char *path)
{
  const char *text =
      arena_printf(t->arena, "# amp tune: the precision of %s\n%s", t->compile->input, declaration);
  return file_write(path, &file_precision, text, (int64_t)strlen(text));
}

static ampc_status search(Tune *t, Compile *job, const TuneCommand *cmd, bool with_f32)
{
  Trial *found;
  const char *declaration;
  ampc_status status = t->ran ? AMPC_OK : tune_run_f32(t);
  if (status) return status;
  status = tune_search(t, with_f32, &found);
  if (status) return status;
  printf("%u trials, %u of them from %s\n", t->trials.n, t->trials.n - t->measured, t->store);
  print_trial(t, found);
  printf("predicted for %s: %.0f us a step, %.0f us in f32\n", t->gpu->name, found->us,
         tune_predict(t, t->f32));
  status = prove(t, found, &declaration);
  if (!status) status = store_write(t, found);
  if (status) return status;
  Patch patch = patch_make(t, job, declaration);
  patch_print(t, &patch);
  if (cmd->save) status = save(t, declaration, cmd->save);
  return !status && cmd->write ? patch_write(t, &patch) : status;
}

/* Whether the precision of the job is a 16-bit type. */
static bool asks_low(const char *word)
{
  return strcmp(word, "f16") == 0 || strcmp(word, "bf16") == 0 || strcmp(word, "O1") == 0;
}

static ampc_status run(Tune *t, const TuneCommand *cmd)
{
  Compile *job = compile_create(t->compile), *f32 = NULL;
  if (!compile_parse_job(job)) {
    ampc_status status = job->cannot_read ? AMPC_BAD_FILE : 1;
    compile_destroy(job);
    return status;
  }
  const char *given = take_precision(&((TuneCommand *)cmd)->compile), *word = patch_read(t, job);
  if (given) word = given;
  set_types(t, cmd, word);
  const char *text = NULL;
  if (given) text = arena_printf(t->arena, "precision %s {\n%s}\n", given, t->clauses);
  ampc_status status = cmd->check ? AMPC_OK : check_word(word);
  if (!status && cmd->save) status = file_guard(cmd->save, &file_precision);
  if (!status) status = find_units(t, &f32);
  if (!status) status = store_read(t, f32);
  if (!status) status = cmd->check ? check(t, text) : search(t, job, cmd, !asks_low(word));
  tune_close(t);
  compile_destroy(f32);
  compile_destroy(job);
  return status;
}

/* Returns "dir/net.tune.json" for "dir/net.amp". */
static const char *default_store(Arena *arena, const char *job)
{
  size_t n = strlen(job), end = n > 4 && strcmp(job + n - 4, ".amp") == 0 ? n - 4 : n;
  return arena_printf(arena, "%.*s.tune.json", (int)end, job);
}

int tune_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  TuneCommand cmd = {.compile = options_default(),
                     .train = {.device = "auto"},
                     .steps = USUAL_STEPS,
                     .batches = USUAL_BATCHES,
                     .bound = USUAL_BOUND,
                     .gpu = gpu_find("h200")};
  Operands jobs = {argv, argc};
  int status;
  bool good = options_read(&tune_verb, arena, &jobs, &cmd, &status);
  if (good) good = !(status = options_count_jobs(&tune_verb, &jobs, 1, 1));
  if (good) good = !(status = job_prepare(arena, jobs.at[0], &cmd.compile, &cmd.train));
  cmd.compile.quiet = cmd.quiet;
  if (good) {
    Tune t = {.arena = arena,
              .compile = &cmd.compile,
              .train = cmd.train,
              .gpu = cmd.on_cpu ? cpu_measure(arena) : cmd.gpu,
              .store = cmd.state ? cmd.state : default_store(arena, jobs.at[0]),
              .steps = cmd.steps,
              .batches = cmd.batches,
              .measure = cmd.measure,
              .quiet = cmd.quiet,
              .bound = cmd.bound,
              .deadline = cmd.budget > 0 ? seconds_now() + cmd.budget : INFINITY};
    status = (int)run(&t, &cmd);
    if (status && *ampc_last_error()) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  }
  arena_destroy(arena);
  return status;
}
