/* amp inspect: what a job becomes, without running it. The command line; the rows and what is made
 * of them are in the other files. */
#include "inspect.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ampc_rt.h"
#include "runtime/cuda/nvrtc_image.h"
#include "compiler/emit/emit.h"
#include "compiler/options.h"
#include "runner/runner.h"

enum { OPTION_arch = OPTION_last, OPTION_kernel, OPTION_diff, OPTION_json, OPTION_help };

static const struct option long_options[] = {{"arch", required_argument, NULL, OPTION_arch},
                                             {"kernel", required_argument, NULL, OPTION_kernel},
                                             {"diff", required_argument, NULL, OPTION_diff},
                                             {"json", no_argument, NULL, OPTION_json},
                                             {"set", required_argument, NULL, OPTION_set},
                                             {"data-dir", required_argument, NULL, OPTION_data_dir},
                                             {"help", no_argument, NULL, OPTION_help},
                                             {NULL, 0, NULL, 0}};

static const char help_text[] =
    "usage: amp inspect [options] job.amp\n"
    "       amp inspect [options] --diff PRECISION PRECISION job.amp\n"
    "\n"
    "A table of the job's commands: what each computes, from which line, in which types and "
    "sizes,\n"
    "the bytes it moves and its arithmetic; and what each kernel needs on a GPU. No GPU is used.\n"
    "\n"
    "  --arch LIST       architectures: sm_80,sm_90 (default sm_80); the first is compiled for.\n"
    "                    cpu: the commands of the CPU; none: no registers\n"
    "  --kernel NAME     one kernel (k05_relu_drop, or k05): its text, its lines, its PTX\n"
    "  --diff A B        what changes from precision A to B (f32, tf32, f16, bf16); registers too\n"
    "                    where --arch is given\n"
    "  --json            for programs\n"
    "  --set KEY=VALUE   replace a setting: train.batch=64 precision=bf16\n"
    "  -D NAME=VALUE     replace a const of the job\n"
    "  -I DIR            look for imports in DIR too\n"
    "  --data-dir DIR    root of data paths (default: the folder of the job)\n"
    "  -O0 -O1 -O2       no fusion, fusion, more fusion (default)\n"
    "\n"
    "Bytes are those of the operands, each once. FLOPs: 2 for each multiplication of a product, 1\n"
    "for each operator and function of an elementwise or row op; - where they are not counted.\n"
    "Registers (a thread), shared memory (bytes a block) and spills (bytes a thread) are those "
    "that\n"
    "ptxas tells through NVRTC.\n";

typedef struct InspectCommand {
  Options compile;
  const char *archs[INSPECT_ARCHS];
  uint32_t n_archs;
  bool arch_given, json;
  const char *kernel;
  const char *diff[2];
} InspectCommand;

/* ---- the command line -------------------------------------------------------------------------
 */

static bool is_arch(const char *word)
{
  size_t digits = strncmp(word, "sm_", 3) == 0 ? strspn(word + 3, "0123456789") : 0;
  const char *rest = word + 3 + digits;
  return digits >= 2 && digits <= 3 && (!*rest || strcmp(rest, "a") == 0);
}

static int read_archs(Arena *arena, const char *list, InspectCommand *cmd)
{
  cmd->arch_given = true;
  cmd->n_archs = 0;
  cmd->compile.target = "sm_80";
  if (strcmp(list, "cpu") == 0) cmd->compile.target = "cpu";
  if (strcmp(list, "cpu") == 0 || strcmp(list, "none") == 0) return 0;
  for (const char *s = list; s; s = strchr(s, ','), s += s != NULL) {
    const char *word = arena_strndup(arena, s, strcspn(s, ","));
    if (!is_arch(word))
      return usage_error(
          "amp", "--arch %s: expected architectures as in sm_80,sm_90, or cpu or none", list);
    if (cmd->n_archs == INSPECT_ARCHS)
      return usage_error("amp", "--arch %s: no more than %d", list, INSPECT_ARCHS);
    cmd->archs[cmd->n_archs++] = word;
  }
  cmd->compile.target = cmd->archs[0];
  return 0;
}

static int read_option(Arena *arena, int option, char **argv, InspectCommand *cmd)
{
  switch (option) {
  case OPTION_arch:
    return read_archs(arena, optarg, cmd);
  case OPTION_kernel:
    cmd->kernel = optarg;
    return 0;
  case OPTION_diff:
    cmd->diff[0] = optarg;
    return 0;
  case OPTION_json:
    cmd->json = true;
    return 0;
  case 'O':
  case 'D':
  case 'I':
  case OPTION_set:
  case OPTION_data_dir:
    return options_read(arena, "amp", &cmd->compile, option, optarg);
  case ':':
    return usage_error("amp", "%s needs a value", argv[optind - 1]);
  default:
    return usage_error("amp", "no option %s", argv[optind - 1]);
  }
}

static int read_operands(int argc, char **argv, InspectCommand *cmd)
{
  int wanted = cmd->diff[0] ? 2 : 1, given = argc - optind;
  if (given < wanted)
    return usage_error("amp", cmd->diff[0] && given < 1 ? "--diff needs two precisions and a job"
                              : cmd->diff[0]            ? "--diff: no second precision, or no job"
                                                        : "no job was given");
  if (given > wanted) return usage_error("amp", "more than one job: %s", argv[optind + wanted]);
  if (cmd->diff[0]) cmd->diff[1] = argv[optind];
  if (cmd->diff[0] && cmd->kernel) return usage_error("amp", "--kernel does not go with --diff");
  if (cmd->json && cmd->kernel) return usage_error("amp", "--json does not go with --kernel");
  cmd->compile.input = argv[argc - 1];
  return 0;
}

static bool read_command_line(Arena *arena, int argc, char **argv, InspectCommand *cmd, int *status)
{
  *cmd = (InspectCommand){.compile = {.optimize = 2, .error_limit = 20, .target = "sm_80"},
                          .archs = {"sm_80"},
                          .n_archs = 1};
  cmd->compile.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, ":D:I:O:", long_options, NULL)) != -1;) {
    if (o == OPTION_help) fputs(help_text, stdout);
    *status = o == OPTION_help ? 0 : read_option(arena, o, argv, cmd);
    if (o == OPTION_help || *status) return false;
  }
  *status = read_operands(argc, argv, cmd);
  return *status == 0;
}

/* ---- doing it ---------------------------------------------------------------------------------
 */

/* The default architecture is left out where there is no NVRTC; one that was asked for is not. */
static int add_usage(const InspectCommand *cmd, Inspection *in, const char **note)
{
  int status = 0;
  if (cmd->n_archs && !cmd->arch_given && !nvrtc_present()) {
    *note = "no registers, shared memory and spills: NVRTC (CUDA 12 or 13) is not on this machine";
    return 0;
  }
  for (uint32_t i = 0; i < cmd->n_archs && status == 0; i++)
    status = inspect_usage(in, cmd->archs[i]);
  return status;
}

static int inspect_one(const InspectCommand *cmd)
{
  Inspection in;
  const char *note = NULL;
  int status = inspect_open(&cmd->compile, &in);
  if (!status && cmd->kernel) {
    status = inspect_kernel(&in, cmd->kernel);
  } else if (!status) {
    status = add_usage(cmd, &in, &note);
    if (!status) status = cmd->json ? inspect_json(&in) : inspect_table(&in, note);
  }
  inspect_close(&in);
  return status;
}

static int open_in(Arena *arena, const InspectCommand *cmd, const char *precision, Inspection *out)
{
  Options options = cmd->compile;
  const char *setting = arena_printf(arena, "precision=%s", precision);
  int status = options_read(arena, "amp", &options, OPTION_set, setting);
  return status ? status : inspect_open(&options, out);
}

static int inspect_two(Arena *arena, const InspectCommand *cmd)
{
  Inspection a, b = {0};
  int status = open_in(arena, cmd, cmd->diff[0], &a);
  if (!status) status = open_in(arena, cmd, cmd->diff[1], &b);
  for (uint32_t i = 0; i < cmd->n_archs && cmd->arch_given && !status; i++) {
    status = inspect_usage(&a, cmd->archs[i]);
    if (!status) status = inspect_usage(&b, cmd->archs[i]);
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
