/* amp probe: runs some training steps and reports how large their values are. Writes no
 * checkpoint. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/driver.h"
#include "compiler/cli/options.h"
#include "probe.h"
#include "runner/jit/jit.h"
#include "runner/runner.h"
#include "runner/job/json.h"
#include "runner/job/memory.h"
#include "runner/job/options.h"
#include "runner/job/steps.h"
#include "common/file.h"

enum { USUAL_STEPS = 10, USUAL_ROWS = 12 };

typedef struct ProbeCommand {
  Options compile;
  ampc_train_options train;
  uint32_t steps;
  const char *resume, *output, *path;
  bool json;
} ProbeCommand;

static const OptionRow probe_options[] = {
    {"steps", 0, "N", "train N steps and probe all of them (default: 10)", .kind = OPTION_number,
     .least = 1, .field = offsetof(ProbeCommand, steps)},
    {"resume", 0, "FILE", "start from a checkpoint", .kind = OPTION_text,
     .field = offsetof(ProbeCommand, resume)},
    {"path", 0, "PATH", "only values whose name begins with PATH, such as net.fc2",
     .kind = OPTION_text, .field = offsetof(ProbeCommand, path)},
    {"json", 0, NULL, "everything as JSON, with histograms of exponents", .kind = OPTION_flag,
     .field = offsetof(ProbeCommand, json)},
    {"output", 0, "FILE", "write the JSON to FILE, not to stdout", .kind = OPTION_text,
     .field = offsetof(ProbeCommand, output), .with = "json"},
    {0}};

const OptionTable probe_verb = {
    .program = "amp probe",
    .usage = "[options] job.amp",
    .about =
        "Trains some steps and reports how large activations, gradients, weights and updates are. "
        "The worst come first: values that leave the range of their type or become 0. Saves "
        "nothing.",
    .groups = (const OptionGroup[]){{probe_options, 0},
                                    {fresh_options, offsetof(ProbeCommand, train)},
                                    {job_options, offsetof(ProbeCommand, compile)},
                                    {memory_options, offsetof(ProbeCommand, compile)},
                                    {table_options, offsetof(ProbeCommand, compile)},
                                    {NULL, 0}},
    .notes = "exit status: 0 done; 1 errors in the program; 2 bad usage; 3 a file is missing or "
             "unreadable; 4 the C compiler failed; 5 the run failed; 130 interrupted"};

static ampc_status look(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                        const char **out_note)
{
  bool found;
  (void)step, (void)out_note;
  return watch_read(context, rt, block, &found);
}

static ampc_status tell(const Watch *w, const ProbeCommand *cmd)
{
  if (cmd->json) return json_save(watch_json(w), cmd->output, &file_probe, JSON_INDENT(1));
  printf("%lld steps of %s, %s\n\n", (long long)w->steps, w->c->program->source,
         w->c->program->precision);
  uint32_t top = cmd->compile.view.top, most = top ? top : USUAL_ROWS;
  watch_print(w, cmd->path, cmd->compile.view.wide || cmd->path ? 0 : most);
  return AMPC_OK;
}

static ampc_status run_program(Compile *c, const ProbeCommand *cmd)
{
  Jit *jit = NULL;
  ampc_runtime *rt = NULL;
  Watch w;
  ampc_train_options o = cmd->train;
  watch_init(&w, c);
  o.after_step = look;
  o.context = &w;
  o.train_only = o.steps_given = true;
  o.resume = cmd->resume;
  ampc_status status = memory_admit(c, o.device, o.quiet, false);
  if (!status) status = jit_load(c, &jit);
  if (!status) status = ampc_create(c->program, o.device, &rt);
  if (!status && cmd->output) status = file_guard(cmd->output, &file_probe);
  if (!status) status = job_more_steps(rt, &o, cmd->steps);
  if (!status) status = ampc_train(rt, &ampc_data, &o);
  /* if the run was lost, the steps up to the last one are still reported */
  if (status && *ampc_last_error()) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  ampc_status told = w.steps ? tell(&w, cmd) : AMPC_OK;
  if (told) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  ampc_free(rt);
  jit_unload(jit);
  return status ? status : told;
}

int probe_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  ProbeCommand cmd = {
      .compile = options_default(), .train = {.device = "auto"}, .steps = USUAL_STEPS};
  Operands jobs = {argv, argc};
  int status;
  bool good = options_read(&probe_verb, arena, &jobs, &cmd, &status);
  if (good) good = !(status = options_count_jobs(&probe_verb, &jobs, 1, 1));
  if (good) good = !(status = job_prepare(arena, jobs.at[0], &cmd.compile, &cmd.train));
  if (good) {
    cmd.compile.probe_every = 1;
    Compile *c = compile_create(&cmd.compile);
    if (compile_job(c))
      status = (int)run_program(c, &cmd);
    else
      status = c->cannot_read ? AMPC_BAD_FILE : 1;
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}
