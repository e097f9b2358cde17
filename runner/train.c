/* amp train and amp eval: compiles a job in this process, loads its kernels and runs it. */
#include "runner.h"
#include "driver.h"
#include "jit.h"
#include "memory.h"
#include "options.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  OPTION_device = OPTION_last,
  OPTION_seed,
  OPTION_steps,
  OPTION_save,
  OPTION_save_every,
  OPTION_resume,
  OPTION_log,
  OPTION_quiet,
  OPTION_help
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, OPTION_device},
    {"seed", required_argument, NULL, OPTION_seed},
    {"steps", required_argument, NULL, OPTION_steps},
    {"save", required_argument, NULL, OPTION_save},
    {"save-every", required_argument, NULL, OPTION_save_every},
    {"resume", required_argument, NULL, OPTION_resume},
    {"log", required_argument, NULL, OPTION_log},
    {"quiet", no_argument, NULL, OPTION_quiet},
    {"set", required_argument, NULL, OPTION_set},
    {"data-dir", required_argument, NULL, OPTION_data_dir},
    {"memory-limit", required_argument, NULL, OPTION_memory_limit},
    {"poison", no_argument, NULL, OPTION_poison},
    {"check-memory", no_argument, NULL, OPTION_check_memory},
    {"help", no_argument, NULL, OPTION_help},
    {NULL, 0, NULL, 0}};

static const char help_text[] =
    "usage: amp train|eval [options] job.amp\n"
    "\n"
    "  --device DEVICE   cpu, cuda or auto (default): cuda where there is one\n"
    "  --seed N          of weights, order of the data and dropout (default: the job's, or 0)\n"
    "  --steps N         end after N optimizer steps, those before a resume included\n"
    "  --save FILE       write a checkpoint at the end, and when interrupted by Ctrl-C\n"
    "  --save-every N    and every N steps\n"
    "  --resume FILE     go on from a checkpoint; for eval: the weights to use\n"
    "  --log N           a line every N steps\n"
    "  --quiet           results only\n"
    "  --set KEY=VALUE   replace a setting: opt.lr=1e-4 train.batch=64 precision=bf16\n"
    "  -D NAME=VALUE     replace a const of the job\n"
    "  -I DIR            look for imports in DIR too\n"
    "  --data-dir DIR    root of data paths (default: the folder of the job)\n"
    "  -O0 -O1 -O2       no fusion, fusion, more fusion (default)\n"
    "  --memory-limit SIZE  refuse a job that needs more memory: 512MB, 4G (1024^3), 4000000000\n"
    "  --check-memory    check that no two live values overlap in memory\n"
    "  --poison          overwrite memory with NaN as soon as nobody may read it\n";

typedef struct TrainCommand {
  Options compile;
  ampc_train_options train;
} TrainCommand;

/* ---- the command line -------------------------------------------------------------------------
 */

static bool read_whole(const char *text, uint64_t max, uint64_t *out)
{
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 && *out <= max;
}

static int read_count(const char *name, const char *text, int64_t *out)
{
  uint64_t n;
  if (!read_whole(text, INT64_MAX, &n) || n == 0)
    return usage_error("amp", "--%s %s: expected a number from 1 on", name, text);
  *out = (int64_t)n;
  return 0;
}

static int read_device(const char *word, TrainCommand *cmd)
{
  if (strcmp(word, "cpu") != 0 && strcmp(word, "cuda") != 0 && strcmp(word, "auto") != 0)
    return usage_error("amp", "--device %s: expected cpu, cuda or auto", word);
  cmd->train.device = word;
  return 0;
}

static int read_option(Arena *arena, int option, char **argv, TrainCommand *cmd)
{
  ampc_train_options *t = &cmd->train;
  switch (option) {
  case OPTION_device:
    return read_device(optarg, cmd);
  case OPTION_seed:
    t->seed_given = true;
    if (read_whole(optarg, INT64_MAX, &t->seed)) return 0;
    return usage_error("amp", "--seed %s: expected a number from 0 on", optarg);
  case OPTION_steps:
    return read_count("steps", optarg, &t->steps);
  case OPTION_save:
    t->save = optarg;
    return 0;
  case OPTION_save_every:
    return read_count("save-every", optarg, &t->save_every);
  case OPTION_resume:
    t->resume = optarg;
    return 0;
  case OPTION_log:
    return read_count("log", optarg, &t->log);
  case OPTION_quiet:
    t->quiet = true;
    return 0;
  case 'O':
    if (optarg[0] < '0' || optarg[0] > '2' || optarg[1])
      return usage_error("amp", "-O%s: expected -O0, -O1 or -O2", optarg);
    cmd->compile.optimize = optarg[0] - '0';
    return 0;
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
  default:
    return usage_error("amp", "no option %s", argv[optind - 1]);
  }
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
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, ":D:I:O:", long_options, NULL)) != -1;) {
    if (o == OPTION_help) fputs(help_text, stdout);
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
      status = run_program(c, &cmd.train);
    else
      status = c->cannot_read ? AMPC_BAD_FILE : 1;
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}
