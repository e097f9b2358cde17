/* amp inspect: prints the commands that a job compiles to, without running them. This file has the
 * command line; the other files compute and print the rows. */
#include "inspect.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/kernel/kernels.h"
#include "compiler/cli/options.h"
#include "compiler/cost/gpu.h"
#include "runner/runner.h"
#include "runtime/plan/types.h"

/* The options. The job is compiled for the first architecture. */
typedef struct InspectCommand {
  Options compile;
  const char *archs[INSPECT_ARCHS];
  uint32_t n_archs;
  bool arch_given, json, cudnn;
  GpuRequest gpu;
  const char *kernel;
  InspectSum by;
  const char *diff[2];
} InspectCommand;

/* ---- the command line ---- */

/* Whether the word is an architecture: "sm_80", "sm_120", "sm_90a". */
static bool is_arch(const char *word)
{
  size_t digits = strncmp(word, "sm_", 3) == 0 ? strspn(word + 3, "0123456789") : 0;
  const char *rest = word + 3 + digits;
  return digits >= 2 && digits <= 3 && (!*rest || strcmp(rest, "a") == 0);
}

/* Reads --arch; a later --arch replaces an earlier one. */
static int read_archs(const OptionGiven *given)
{
  InspectCommand *cmd = given->into;
  const char *list = given->value;
  cmd->arch_given = true;
  cmd->n_archs = 0;
  cmd->compile.target = strcmp(list, "cpu") == 0 ? "cpu" : "sm_80";
  if (strcmp(list, "cpu") == 0 || strcmp(list, "none") == 0) return OPTIONS_GO_ON;
  for (const char *s = list; s; s = strchr(s, ','), s += s != NULL) {
    const char *word = arena_strndup(given->arena, s, strcspn(s, ","));
    if (!is_arch(word))
      return option_wrong(given, "expected architectures such as sm_80,sm_90, or cpu, or none");
    if (cmd->n_archs == INSPECT_ARCHS)
      return option_wrong(given, "expected at most %d architectures", INSPECT_ARCHS);
    cmd->archs[cmd->n_archs++] = word;
  }
  cmd->compile.target = cmd->archs[0];
  return OPTIONS_GO_ON;
}

static int read_gpu(const OptionGiven *given)
{
  InspectCommand *cmd = given->into;
  const Gpu *gpu = gpu_find(given->value);
  if (!gpu) return option_wrong(given, "expected one of %s", gpu_names(given->arena));
  cmd->gpu.name = gpu->name;
  return OPTIONS_GO_ON;
}

static int read_by(const OptionGiven *given)
{
  InspectCommand *cmd = given->into;
  cmd->by = 0;
  while (cmd->by < BY_COUNT && strcmp(given->value, inspect_by[cmd->by].name) != 0) cmd->by++;
  if (cmd->by < BY_COUNT) return OPTIONS_GO_ON;
  return option_wrong(given, "expected work, layer, line or kernel");
}

static const OptionRow inspect_options[] = {
    {"arch", 0, "LIST",
     "architectures such as sm_80,sm_90 (default sm_80); the job is compiled for the first. cpu: "
     "the commands for the CPU; none: no registers",
     .kind = OPTION_call, .read = read_archs},
    {"kernel", 0, "NAME",
     "print one kernel (fc1_relu_drop, or a part of its name): its text, its lines, its PTX",
     .kind = OPTION_text, .field = offsetof(InspectCommand, kernel), .without = "diff"},
    {"diff", 0, "A B",
     "what changes from precision A to B (" AMPC_NARROW_LIST
     "f32, tf32); with --arch also the registers",
     .kind = OPTION_text, .field = offsetof(InspectCommand, diff[0])},
    {"by", 0, "WHAT", "sum the commands: layer, work (the kind), line, or kernel (equal ones)",
     .kind = OPTION_call, .read = read_by, .without = "kernel diff cudnn"},
    {"gpu", 0, "NAME",
     "what each command costs on a GPU, one of"
#define GPU(name, ...) " " #name
#include "compiler/cost/gpus.def"
     ": instructions, bytes, predicted time, what bounds it",
     .kind = OPTION_call, .read = read_gpu, .without = "kernel diff arch cudnn"},
    {"cudnn", 0, NULL,
     "which engine of cuDNN computes each command on the first --arch, or why none does",
     .kind = OPTION_flag, .field = offsetof(InspectCommand, cudnn), .without = "diff"},
    {"no-cudnn", 0, NULL,
     "with --gpu: predict runs without cuDNN, with our own kernels and matrix products",
     .kind = OPTION_flag, .field = offsetof(InspectCommand, gpu.no_cudnn), .with = "gpu"},
    {"measured", 0, "FILE",
     "with --gpu: also show measured times of commands, as bench_steps --commands writes them",
     .kind = OPTION_text, .field = offsetof(InspectCommand, gpu.measured), .with = "gpu"},
    {"json", 0, NULL, "print JSON", .kind = OPTION_flag, .field = offsetof(InspectCommand, json),
     .without = "kernel"},
    {0}};

const OptionTable inspect_verb = {
    .program = "amp inspect",
    .usage = "[options] job.amp\n"
             "       amp inspect [options] --diff PRECISION PRECISION job.amp",
    .about = "Prints a table of the job's commands: what each computes, from which line, in which "
             "types and sizes, the bytes it moves, its FLOPs, and the registers and shared memory "
             "of its kernel. No GPU is used.",
    .groups = (const OptionGroup[]){{inspect_options, 0},
                                    {job_options, offsetof(InspectCommand, compile)},
                                    {ranks_option, offsetof(InspectCommand, compile)},
                                    {table_options, offsetof(InspectCommand, compile)},
                                    {NULL, 0}},
    .notes =
        "Bytes are those of the operands, each once. FLOPs: 2 for each multiplication of a "
        "product, 1 for each operator and function of an elementwise or row op; - where they are "
        "not counted. Registers (per thread), shared memory (bytes per block) and spills (bytes "
        "per thread) are reported by ptxas, through NVRTC. --arch cpu names what computes a "
        "convolution on this machine: oneDNN's code, a matrix product, or the runtime's loops."};

/* Reads operands. In `--diff A B job`, A is the value of the option; B and the job are operands. */
static int read_operands(const Operands *given, InspectCommand *cmd)
{
  const char *program = inspect_verb.program;
  int precisions = cmd->diff[0] ? 1 : 0;
  if (precisions && given->n == 0)
    return usage_error(program, "--diff needs two precisions and a job");
  if (precisions && given->n == 1)
    return usage_error(
        program, "--diff needs two precisions and a job: no second precision or no job was given");
  int status = options_count_jobs(&inspect_verb, given, 1 + precisions, 1 + precisions);
  if (status) return status;
  if (precisions) cmd->diff[1] = given->at[0];
  if (cmd->gpu.name) cmd->compile.target = gpu_find(cmd->gpu.name)->arch;
  if (cmd->compile.no_onednn && strcmp(cmd->compile.target, "cpu") != 0)
    return usage_error(program, "--no-onednn needs --arch cpu");
  cmd->compile.input = given->at[precisions];
  return 0;
}

static bool read_command_line(Arena *arena, int argc, char **argv, InspectCommand *cmd, int *status)
{
  Operands operands = {argv, argc};
  *cmd = (InspectCommand){
      .compile = options_default(), .archs = {"sm_80"}, .n_archs = 1, .by = BY_NONE};
  cmd->compile.target = "sm_80";
  if (!options_read(&inspect_verb, arena, &operands, cmd, status)) return false;
  *status = read_operands(&operands, cmd);
  return *status == 0;
}

/* ---- the run ---- */

/* Adds the usage. Without NVRTC the default architecture is left out; one of --arch is an error. */
static int add_usage(const InspectCommand *cmd, Inspection *in, const char **note)
{
  int status = 0;
  if (cmd->n_archs && !cmd->arch_given && !nvrtc_present()) {
    *note = "registers, shared memory and spills are not shown: NVRTC (CUDA 12 or 13) is not on "
            "this machine";
    return 0;
  }
  for (uint32_t i = 0; i < cmd->n_archs && status == 0; i++)
    status = inspect_usage(in, cmd->archs[i], NULL);
  return status;
}

/* Prints one job. Returns an exit status, after a message if it is not 0. */
static int inspect_one(const InspectCommand *cmd)
{
  Inspection in;
  const char *note = NULL;
  int status = inspect_open(&cmd->compile, &in);
  if (!status) status = inspect_library(&in);
  if (!status && cmd->cudnn) status = inspect_cudnn(&in, &note);
  if (!status && cmd->kernel) {
    status = inspect_kernel(&in, cmd->kernel);
  } else if (!status) {
    InspectView view = {.by = cmd->by, .gpu = cmd->gpu.name ? &cmd->gpu : NULL};
    status = view.gpu             ? inspect_gpu(&in, view.gpu)
             : view.by != BY_NONE ? 0
                                  : add_usage(cmd, &in, &note);
    view.note = note;
    if (!status) status = cmd->json ? inspect_json(&in, &view) : inspect_table(&in, &view);
  }
  inspect_close(&in);
  return status;
}

/* Compiles the job with --set precision=... added last, so that it overrides others. */
static int open_in(Arena *arena, const InspectCommand *cmd, const char *precision, Inspection *out)
{
  Options options = cmd->compile;
  options_set(arena, &options, arena_printf(arena, "precision=%s", precision));
  return inspect_open(&options, out);
}

static int inspect_two(Arena *arena, const InspectCommand *cmd)
{
  Inspection a, b = {0};
  int status = open_in(arena, cmd, cmd->diff[0], &a);
  if (!status) status = open_in(arena, cmd, cmd->diff[1], &b);
  for (uint32_t i = 0; i < cmd->n_archs && cmd->arch_given && !status; i++) {
    status = inspect_usage(&a, cmd->archs[i], NULL);
    if (!status) status = inspect_usage(&b, cmd->archs[i], NULL);
  }
  if (!status) status = cmd->json ? inspect_diff_json(&a, &b) : inspect_diff(&a, &b);
  inspect_close(&a);
  inspect_close(&b);
  return status;
}

int inspect_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  InspectCommand cmd;
  int status;
  if (read_command_line(arena, argc, argv, &cmd, &status))
    status = cmd.diff[0] ? inspect_two(arena, &cmd) : inspect_one(&cmd);
  arena_destroy(arena);
  return status;
}
