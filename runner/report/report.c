/* `amp report`: writes a job, runs of it, or runs alone as one self-contained page. The page
 * consists of page.html, page.css, the scripts, and two JSON values: all data that it shows, and
 * the texts of kernels.
 *
 * Note [the user's text in a page]
 * No text of the user becomes markup or code. The JSON is base64 of gzip, which has no <. The
 * scripts insert text as text nodes, never as markup. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/cost/cpu.h"
#include "compiler/cost/memory_report.h"
#include "compiler/cli/options.h"
#include "compiler/cli/output.h"
#include "report.h"
#include "runner/runner.h"
#include "common/file.h"
#include "common/shown.h"

extern const char report_page_html[], report_page_css[], report_page_js[], report_run_js[],
    report_tune_js[];

enum {
  MOST_PAGE = 395 * 1000, /* bytes. Kernels have PTX as far as it fits */
  MOST_LOGS = 12
};

typedef struct ReportCommand {
  Options compile;
  VEC(const char *) logs;
  const char *output, *probe, *profile, *tune;
  const Gpu *gpu; /* NULL: the processor of this machine */
  bool gpu_given, no_ptx, force;
} ReportCommand;

/* ---- the command line ---- */

static int read_gpu(const OptionGiven *given)
{
  ReportCommand *cmd = given->into;
  cmd->gpu = gpu_find(given->value);
  cmd->gpu_given = true;
  if (cmd->gpu || strcmp(given->value, "cpu") == 0) return OPTIONS_GO_ON;
  return option_wrong(given, "expected cpu or one of %s", gpu_names(given->arena));
}

static int read_log(const OptionGiven *given)
{
  ReportCommand *cmd = given->into;
  if (cmd->logs.n == MOST_LOGS) return option_wrong(given, "a page has at most %d runs", MOST_LOGS);
  vec_push(given->arena, &cmd->logs, given->value);
  return OPTIONS_GO_ON;
}

static const OptionRow report_options[] = {
    {NULL, 'o', "FILE", "the file to write (default: the job's name with .html, or runs.html)",
     .kind = OPTION_text, .field = offsetof(ReportCommand, output)},
    {"force", 0, NULL, "overwrite a file that is not a page of amp report", .kind = OPTION_flag,
     .field = offsetof(ReportCommand, force)},
    {"gpu", 0, "NAME",
     "the GPU that times are predicted for, one of"
#define GPU(name, ...) " " #name
#include "compiler/cost/gpus.def"
     "; cpu: the processor of this machine (default: h200 if there is a GPU, else cpu)",
     .kind = OPTION_call, .read = read_gpu},
    {"log", 0, "DIR",
     "show curves of a run, the folder of its --log-dir; several: runs beside each other",
     .kind = OPTION_call, .read = read_log},
    {"probe", 0, "FILE", "show ranges of values, from amp probe --json --output FILE",
     .kind = OPTION_text, .field = offsetof(ReportCommand, probe)},
    {"profile", 0, "FILE", "show measured times, from amp profile --json --output FILE",
     .kind = OPTION_text, .field = offsetof(ReportCommand, profile)},
    {"tune", 0, "FILE", "show the trials of amp tune, from the job.tune.json that it writes",
     .kind = OPTION_text, .field = offsetof(ReportCommand, tune)},
    {"no-ptx", 0, NULL, "leave out the PTX of kernels, which NVRTC takes seconds to make",
     .kind = OPTION_flag, .field = offsetof(ReportCommand, no_ptx)},
    {0}};

const OptionTable report_verb = {
    .program = "amp report",
    .usage = "[options] job.amp\n--log DIR [--log DIR ..] [-o FILE]",
    .about =
        "Writes the job as a page for a browser, which needs no network: layers with types, casts "
        "and their reasons, memory over the step, kernels with their lines; and curves of runs. "
        "Without a job, the page compares runs.",
    .groups = (const OptionGroup[]){
        {report_options, 0}, {job_options, offsetof(ReportCommand, compile)}, {NULL, 0}}};

/* Returns "runs.html" without a job, and "gpt2.html" in the working directory for
 * "models/gpt2/gpt2.amp". */
static const char *default_output(Arena *arena, const char *job)
{
  if (!job) return "runs.html";
  const char *slash = strrchr(job, '/'), *name = slash ? slash + 1 : job;
  const char *dot = strrchr(name, '.');
  size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
  return arena_printf(arena, "%.*s.html", (int)n, name);
}

static bool read_command_line(Arena *arena, int argc, char **argv, ReportCommand *cmd, int *status)
{
  Operands jobs = {argv, argc};
  *cmd = (ReportCommand){.compile = options_default(), .gpu = gpu_find("h200")};
  if (!options_read(&report_verb, arena, &jobs, cmd, status)) return false;
  bool of_job = cmd->gpu_given || cmd->no_ptx || cmd->probe || cmd->profile || cmd->tune ||
                cmd->compile.n_consts || cmd->compile.n_settings || !cmd->logs.n;
  *status = options_count_jobs(&report_verb, &jobs, of_job, 1);
  if (*status) return false;
  char here[AMPC_TARGET_ROOM];
  if (!cmd->gpu_given && !ampc_device_target("auto", here) && strcmp(here, "cpu") == 0)
    cmd->gpu = NULL;
  cmd->compile.input = jobs.n ? jobs.at[0] : NULL;
  cmd->compile.target = cmd->gpu ? cmd->gpu->arch : "cpu";
  if (!cmd->output) cmd->output = default_output(arena, cmd->compile.input);
  file_force(cmd->force);
  return true;
}

/* ---- data ---- */

/* Adds the files of other commands. Returns an exit status, after a message. */
static int add_outputs(const Report *r, json_t *data)
{
  json_t *probe = r->probe ? report_probe(r) : json_null();
  json_t *profile = r->profile ? report_profile(r) : json_null();
  json_t *tune = r->tune ? report_tune(r) : json_null();
  bool good = probe && profile && tune;
  json_object_set_new(data, "probe", probe ? probe : json_null());
  json_object_set_new(data, "profile", profile ? profile : json_null());
  json_object_set_new(data, "tune", tune ? tune : json_null());
  return good ? 0 : AMPC_BAD_FILE;
}

static int add_job(const Report *r, json_t *data)
{
  const Compile *c = r->e.c;
  json_t *step = r->e.blocks.n ? explain_block_json(&r->e, &r->e.blocks.at[0]) : json_null();
  json_t *job =
      json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "job", c->program->source,
                "precision", c->program->precision, "target", c->options.target, "gpu",
                r->e.gpu->model, "answer", explain_answer_json(&r->e), "step", step, "nodes",
                report_nodes(r), "memory", report_memory(r), "kernels", report_kernels(r));
  if (!job || json_object_update_missing(data, job)) return AMPC_RUN_FAILED;
  json_decref(job);
  return add_outputs(r, data);
}

/* ---- the page ---- */

static void add_markup_text(Text *out, const char *s)
{
  for (; *s; s++) {
    if (*s == '<')
      text_puts(out, "&lt;");
    else if (*s == '&')
      text_puts(out, "&amp;");
    else
      text_add(out, s, 1);
  }
}

static void fill_page(const Report *r, const char *data, const char *texts, Text *out)
{
  const char *title = r->e.c ? r->e.c->program->source : "runs";
  for (const char *s = report_page_html; *s;) {
    const char *hole = strstr(s, "@@");
    if (!hole) {
      text_puts(out, s);
      return;
    }
    text_add(out, s, (size_t)(hole - s));
    if (strncmp(hole, "@@title@@", 9) == 0)
      add_markup_text(out, arena_shown(r->arena, title, ""));
    else if (strncmp(hole, "@@style@@", 9) == 0)
      text_puts(out, report_page_css);
    else if (strncmp(hole, "@@script@@", 10) == 0)
      text_puts(out, report_run_js), text_puts(out, report_tune_js), text_puts(out, report_page_js);
    else
      text_puts(out, strncmp(hole, "@@data@@", 8) == 0 ? data : texts);
    s = strstr(hole + 2, "@@") + 2;
  }
}

static int refused(ampc_status status)
{
  fprintf(stderr, "amp report: error: %s\n", ampc_last_error());
  return (int)status;
}

/* Makes the page. Returns an exit status, after a message. */
static int make_page(Report *r, Text *page)
{
  const char *texts = "", *packed;
  json_t *data = json_pack("{s:s, s:o*}", "version", AMPC_VERSION, "logs", report_logs(r));
  int status = json_object_get(data, "logs") ? 0 : AMPC_BAD_FILE;
  if (!status && r->e.c) status = add_job(r, data);
  packed = status ? NULL : report_packed(r->arena, data);
  if (packed && r->e.c) {
    fill_page(r, packed, "", page);
    status = report_texts(r, page->n < MOST_PAGE ? MOST_PAGE - page->n : 0, &texts);
    *page = text_new(r->arena);
    if (r->note) json_object_set_new(data, "note", json_string(r->note));
    packed = status ? NULL : report_packed(r->arena, data);
  }
  json_decref(data);
  if (packed) fill_page(r, packed, texts, page);
  return packed || status ? status : refused(ampc_fail(AMPC_RUN_FAILED, "out of memory"));
}

static int write_page(Report *r, const char *output)
{
  Text page = text_new(r->arena);
  int status = make_page(r, &page);
  if (status) return status;
  ampc_status written = file_write(output, &file_page, page.at, (int64_t)page.n);
  if (written) return refused(written);
  printf("%s: %zu kB", arena_shown(r->arena, output, ""), (page.n + 999) / 1000);
  if (r->e.c) printf("; times are predictions for %s", r->e.gpu->model);
  printf("\n%s%s", r->note ? r->note : "", r->note ? "\n" : "");
  return 0;
}

static int read_job(const ReportCommand *cmd, Report *r)
{
  int status = inspect_open(&cmd->compile, &r->in);
  if (status) return status;
  r->arena = r->in.c->arena;
  const Gpu *gpu = cmd->gpu ? cmd->gpu : cpu_measure(r->arena);
  Compile *other = explain_compile_against(r->in.c, explain_against(r->in.c, gpu));
  explain_gather(r->in.c, gpu, other, &r->e);
  compile_destroy(other);
  for (CommandRow *row = r->in.rows.at; row < r->in.rows.at + r->in.rows.n; row++) {
    Prediction p = predict_command(r->in.c, gpu, row->group, NULL);
    row->facts.predicted_us = p.cost.us + p.launch_us;
  }
  return 0;
}

static int make_report(Arena *arena, const ReportCommand *cmd)
{
  Report r = {.arena = arena,
              .logs = cmd->logs.at,
              .n_logs = cmd->logs.n,
              .probe = cmd->probe,
              .profile = cmd->profile,
              .tune = cmd->tune,
              .no_ptx = cmd->no_ptx || !cmd->gpu};
  int status = cmd->compile.input ? read_job(cmd, &r) : 0;
  ampc_status replaces = status ? AMPC_OK : file_guard(cmd->output, &file_page);
  if (replaces) status = refused(replaces);
  if (!status) status = write_page(&r, cmd->output);
  inspect_close(&r.in);
  return status;
}

int report_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  ReportCommand cmd;
  int status;
  if (read_command_line(arena, argc, argv, &cmd, &status)) status = make_report(arena, &cmd);
  arena_destroy(arena);
  return status;
}
