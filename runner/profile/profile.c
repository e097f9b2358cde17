/* amp profile: runs some training steps and reports where their time goes. Writes no checkpoint. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "profile.h"
#include "runner/jit/jit.h"
#include "runner/job/json.h"
#include "runner/job/memory.h"
#include "runner/job/options.h"
#include "runner/job/steps.h"
#include "runner/runner.h"
#include "common/file.h"

enum { USUAL_STEPS = 10 };

typedef struct ProfileCommand {
  Options compile;
  ampc_train_options train;
  uint32_t steps;
  const char *output, *trace;
  bool json;
} ProfileCommand;

static const OptionRow profile_options[] = {
    {"steps", 0, "N",
     "time N training steps, and at most N batches of each evaluation (default: 10)",
     .kind = OPTION_number, .least = 1, .field = offsetof(ProfileCommand, steps)},
    {"resume", 0, "FILE", "start from a checkpoint", .kind = OPTION_text,
     .field = offsetof(ProfileCommand, train.resume)},
    {"json", 0, NULL, "everything as JSON", .kind = OPTION_flag,
     .field = offsetof(ProfileCommand, json)},
    {"output", 0, "FILE", "write the JSON to FILE, not to stdout; amp report --profile reads it",
     .kind = OPTION_text, .field = offsetof(ProfileCommand, output), .with = "json"},
    {"trace", 0, "FILE", "also write the steps as trace events, for ui.perfetto.dev",
     .kind = OPTION_text, .field = offsetof(ProfileCommand, trace)},
    {0}};

const OptionTable profile_verb = {
    .program = "amp profile",
    .usage = "[options] job.amp",
    .about =
        "Trains some steps and reports the time of each command, beside the predicted time and "
        "the limits of memory and arithmetic; sums by kind, layer and line; and the time for "
        "data. Saves nothing.",
    .groups = (const OptionGroup[]){{profile_options, 0},
                                    {fresh_options, offsetof(ProfileCommand, train)},
                                    {job_options, offsetof(ProfileCommand, compile)},
                                    {memory_options, offsetof(ProfileCommand, compile)},
                                    {table_options, offsetof(ProfileCommand, compile)},
                                    {NULL, 0}},
    .notes = "As many steps run without times, in turn with the others, after some steps of "
             "warm-up. exit status: 0 done; 1 errors in the program; 2 bad usage; 3 a file is "
             "missing or unreadable; 4 the C compiler failed; 5 the run failed; 130 interrupted"};

static ampc_status after_step(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                              const char **out_note)
{
  (void)block, (void)step, (void)out_note;
  return turns_next(context, rt);
}

static ampc_status tell(const Measured *m, const ProfileCommand *cmd)
{
  ampc_status status = AMPC_OK;
  if (cmd->trace)
    status = json_save(profile_trace(m), cmd->trace, &file_trace,
                       JSON_COMPACT | JSON_REAL_PRECISION(15));
  if (!status && cmd->json)
    return json_save(profile_json(m), cmd->output, &file_profile,
                     JSON_INDENT(1) | JSON_REAL_PRECISION(9));
  if (!status) profile_print(m);
  return status;
}

static ampc_status check_files(const ProfileCommand *cmd)
{
  ampc_status status = cmd->output ? file_guard(cmd->output, &file_profile) : AMPC_OK;
  return !status && cmd->trace ? file_guard(cmd->trace, &file_trace) : status;
}

static ampc_status train(Turns *t, const ProfileCommand *cmd)
{
  ampc_train_options o = cmd->train;
  o.after_step = after_step;
  o.context = t;
  o.train_only = o.steps_given = o.quiet = true;
  ampc_status status = job_more_steps(t->rt, &o, turns_steps(t, cmd->steps));
  if (!status) status = turns_next(t, t->rt);
  if (!status) status = ampc_train(t->rt, &ampc_data, &o);
  return status ? status : profile_evaluate(t, o.data_dir, cmd->steps);
}

static ampc_status run_program(Inspection *in, const ProfileCommand *cmd)
{
  Jit *jit = NULL;
  Compile *c = in->c;
  Turns turns = {.arena = c->arena, .profile = profile_create()};
  Measured m;
  ampc_status status = turns.profile ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status) status = memory_admit(c, cmd->train.device, cmd->json, false);
  if (!status) status = jit_load(c, &jit);
  if (!status) status = ampc_create(c->program, cmd->train.device, &turns.rt);
  if (!status) status = check_files(cmd);
  if (!status) profile_name_ranges(turns.profile, in, turns.rt);
  if (!status) status = train(&turns, cmd);
  if (!status && profile_lost(turns.profile)) status = ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (status && *ampc_last_error()) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  if (!status || (status == AMPC_INTERRUPTED && turns.timed.n)) {
    profile_finish(&turns, in, &m);
    ampc_status told = tell(&m, cmd);
    if (told) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
    if (!status) status = told;
  }
  ampc_free(turns.rt);
  jit_unload(jit);
  profile_free(turns.profile);
  return status;
}

int profile_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  ProfileCommand cmd = {
      .compile = options_default(), .train = {.device = "auto"}, .steps = USUAL_STEPS};
  Operands jobs = {argv, argc};
  int status;
  bool good = options_read(&profile_verb, arena, &jobs, &cmd, &status);
  if (good) good = !(status = options_count_jobs(&profile_verb, &jobs, 1, 1));
  if (good) good = !(status = job_prepare(arena, jobs.at[0], &cmd.compile, &cmd.train));
  if (good) {
    Inspection in;
    status = inspect_open(&cmd.compile, &in);
    if (!status) status = (int)run_program(&in, &cmd);
    inspect_close(&in);
  }
  arena_destroy(arena);
  return status;
}
