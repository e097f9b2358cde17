/* amp train and amp eval: compiles a job in this process, loads its kernels and runs it. */
#include "runner/runner.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "memory.h"
#include "compiler/options.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_help = OPTION_last, OPTION_train, MAX_OPTIONS = 40 };

/* Those of the training loop come after these, numbered from OPTION_train on. */
static const struct option own_options[] = {
    {"set", required_argument, NULL, OPTION_set},
    {"data-dir", required_argument, NULL, OPTION_data_dir},
    {"memory-limit", required_argument, NULL, OPTION_memory_limit},
    {"poison", no_argument, NULL, OPTION_poison},
    {"check-memory", no_argument, NULL, OPTION_check_memory},
    {"help", no_argument, NULL, OPTION_help},
};

static const char help_text[] =
    "  --set KEY=VALUE        replace a setting: opt.lr=1e-4 train.batch=64 precision=bf16\n"
    "  -D NAME=VALUE          replace a const of the job\n"
    "  -I DIR                 look for imports in DIR too\n"
    "  --data-dir DIR         root of data paths (default: the folder of the job)\n"
    "  -O0 -O1 -O2            no fusion, fusion, more fusion (default)\n"
    "\n"
    "  --memory-limit SIZE    refuse a job that needs more memory: 512MB, 4G (1024^3)\n"
    "  --check-memory         check that no two live values overlap in memory\n"
    "  --poison               overwrite memory with NaN as soon as nobody may read it\n"
    "\n"
    "exit status: 0 done, or stopped by --max-time; 1 errors in the program; 2 bad usage; 3 a "
    "file\n"
    "is missing or unreadable, or a log could not be written (all else was done); 4 the C "
    "compiler\n"
    "failed; 5 the run failed; 130 interrupted by SIGINT or SIGTERM, after saving. SIGUSR1 saves\n"
    "and goes on.\n";

typedef struct TrainCommand {
  Options compile;
  ampc_train_options train;
} TrainCommand;

/* ---- the command line -------------------------------------------------------------------------
 */

static int read_option(Arena *arena, int option, char **argv, TrainCommand *cmd)
{
  switch (option) {
  case 'q':
    cmd->train.quiet = true;
    return 0;
  case 'O':
  case 'D':
  case 'I':
  case OPTION_set:
  case OPTION_data_dir:
  case OPTION_poison:
  case OPTION_check_memory:
  case OPTION_memory_limit:
    return options_read(arena, "amp", &cmd->compile, option, optarg);
  case ':':
    return usage_error("amp", "%s needs a value", argv[optind - 1]);
  case '?':
    return usage_error("amp", "no option %s", argv[optind - 1]);
  default:
    if (ampc_train_option((uint32_t)(option - OPTION_train), optarg, &cmd->train) == AMPC_OK)
      return 0;
    return usage_error("amp", "%s", ampc_last_error());
  }
}

static void fill_options(struct option out[MAX_OPTIONS])
{
  size_t n = sizeof own_options / sizeof *own_options;
  memcpy(out, own_options, sizeof own_options);
  for (int i = 0; ampc_train_option_list[i].name; i++)
    out[n++] = (struct option){ampc_train_option_list[i].name,
                               ampc_train_option_list[i].value ? required_argument : no_argument,
                               NULL, OPTION_train + i};
  out[n] = (struct option){NULL, 0, NULL, 0};
}

static void print_help(const char *verb)
{
  printf("usage: amp %s [options] job.amp\n\n", verb);
  ampc_train_options_print();
  fputs(help_text, stdout);
}

/* The folder of the job, where data paths start when nothing else is said. */
static const char *folder_of(Arena *arena, const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

static bool read_command_line(Arena *arena, int argc, char **argv, TrainCommand *cmd, int *status)
{
  *cmd = (TrainCommand){.compile = {.optimize = 2, .error_limit = 20}, .train = {.device = "auto"}};
  cmd->compile.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  struct option options[MAX_OPTIONS];
  fill_options(options);
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, ":D:I:O:q", options, NULL)) != -1;) {
    if (o == OPTION_help) print_help(argv[0]);
    *status = o == OPTION_help ? 0 : read_option(arena, o, argv, cmd);
    if (o == OPTION_help || *status) return false;
  }
  *status = 2;
  if (argc - optind != 1)
    return usage_error("amp", optind == argc ? "no job was given" : "more than one job"), false;
  cmd->train.eval_only = strcmp(argv[0], "eval") == 0;
  if (cmd->train.eval_only && !cmd->train.resume)
    return usage_error("amp", "eval needs the weights: --resume FILE"), false;
  cmd->compile.input = argv[optind];
  cmd->train.data_dir =
      cmd->compile.data_dir ? cmd->compile.data_dir : folder_of(arena, cmd->compile.input);
  return true;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static ampc_status run_program(Compile *c, const ampc_train_options *options)
{
  Jit *jit = NULL;
  ampc_runtime *rt = NULL;
  ampc_status status = memory_admit(c, options->device, options->quiet);
  if (status == AMPC_OK) status = jit_load(c, &jit);
  if (status == AMPC_OK) status = ampc_create(c->program, options->device, &rt);
  if (status == AMPC_OK) status = ampc_train(rt, &ampc_data, options);
  if (status != AMPC_OK && status != AMPC_INTERRUPTED)
    fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  ampc_free(rt);
  jit_unload(jit);
  return status;
}

static bool find_target(TrainCommand *cmd, char target[AMPC_TARGET_ROOM], int *out_status)
{
  ampc_status status = ampc_device_target(cmd->train.device, target);
  cmd->compile.target = target;
  if (status == AMPC_OK) return true;
  fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  *out_status = status;
  return false;
}

int train_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  TrainCommand cmd;
  int status;
  char target[AMPC_TARGET_ROOM];
  if (read_command_line(arena, argc, argv, &cmd, &status) && find_target(&cmd, target, &status)) {
    Compile *c = compile_create(&cmd.compile);
    if (compile_job(c))
      status = (int)run_program(c, &cmd.train);
    else
      status = c->cannot_read ? AMPC_BAD_FILE : 1;
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}
