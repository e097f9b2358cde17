/* amp repl: the session and its loop. */
#include "repl.h"
#include "compiler/options.h"
#include "runner/runner.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_device = OPTION_last, OPTION_seed, OPTION_help };

static const struct option long_options[] = {{"device", required_argument, NULL, OPTION_device},
                                             {"seed", required_argument, NULL, OPTION_seed},
                                             {"set", required_argument, NULL, OPTION_set},
                                             {"data-dir", required_argument, NULL, OPTION_data_dir},
                                             {"help", no_argument, NULL, OPTION_help},
                                             {NULL, 0, NULL, 0}};

static const char help_text[] =
    "usage: amp repl [options] [job.amp]\n"
    "\n"
    "  --device DEVICE   cpu, cuda or auto (default): cuda where there is one\n"
    "  --seed N          of weights, order of the data and dropout (default: the job's, or 0)\n"
    "  --set KEY=VALUE   replace a setting: opt.lr=1e-4 train.batch=64 precision=bf16\n"
    "  -D NAME=VALUE     replace a const of the job\n"
    "  -I DIR            look for imports in DIR too\n"
    "  --data-dir DIR    root of data paths (default: the folder of the job)\n"
    "  -O0 -O1 -O2       no fusion, fusion, more fusion (default)\n"
    "\n"
    "Input is the language or a command; ':help' lists the commands. Where the input is no\n"
    "terminal there is no prompt; after a mistake the next input is read all the same, and the\n"
    "exit status is then 1.\n";

/* ---- messages ---------------------------------------------------------------------------------
 */

bool repl_error(Repl *r, const char *fmt, ...)
{
  va_list args;
  fflush(stdout);
  va_start(args, fmt);
  fputs("amp: ", stderr);
  vfprintf(stderr, fmt, args);
  fputc('\n', stderr);
  va_end(args);
  r->failed = true;
  return false;
}

bool repl_check(Repl *r, ampc_status status)
{
  if (status == AMPC_OK) return true;
  if (input_interrupted()) return repl_error(r, "interrupted");
  return repl_error(r, "%s", ampc_last_error());
}

/* ---- the command line -------------------------------------------------------------------------
 */

static int read_seed(Repl *r, const char *text)
{
  char *end;
  errno = 0;
  r->seed = strtoull(text, &end, 10);
  r->seed_given = *text >= '0' && *text <= '9' && !*end && !errno && r->seed <= INT64_MAX;
  return r->seed_given ? 0 : usage_error("amp", "--seed %s: expected a number from 0 on", text);
}

static int read_option(Repl *r, int option, char **argv)
{
  switch (option) {
  case OPTION_device:
    if (strcmp(optarg, "cpu") && strcmp(optarg, "cuda") && strcmp(optarg, "auto"))
      return usage_error("amp", "--device %s: expected cpu, cuda or auto", optarg);
    r->device = optarg;
    return 0;
  case OPTION_seed:
    return read_seed(r, optarg);
  case 'O':
  case 'D':
  case 'I':
  case OPTION_set:
  case OPTION_data_dir:
    return options_read(r->arena, "amp", &r->options, option, optarg);
  case ':':
    return usage_error("amp", "%s needs a value", argv[optind - 1]);
  default:
    return usage_error("amp", "no option %s", argv[optind - 1]);
  }
}

static bool read_command_line(Repl *r, int argc, char **argv, int *status)
{
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, ":D:I:O:", long_options, NULL)) != -1;) {
    if (o == OPTION_help) fputs(help_text, stdout);
    *status = o == OPTION_help ? 0 : read_option(r, o, argv);
    if (o == OPTION_help || *status) return false;
  }
  *status = 2;
  if (argc - optind > 1) return usage_error("amp", "more than one job"), false;
  *status = 0;
  r->job = optind < argc ? argv[optind] : NULL;
  return true;
}

/* ---- the session ------------------------------------------------------------------------------
 */

void repl_run(Repl *r, const char *text, size_t size)
{
  while (size && isspace((unsigned char)*text)) text++, size--;
  while (size && isspace((unsigned char)text[size - 1])) size--;
  if (!size) return;
  input_calm();
  bool command = *text == ':';
  char *line = strndup(text, size);
  if (!line) abort();
  if (!(command ? command_run(r, line) : program_input(r, text, size))) r->failed = true;
  free(line);
  fflush(stdout);
}

/* False: there is no such file, as for the other verbs. */
static bool open_session(Repl *r)
{
  r->kernels = kernels_create();
  if (r->interactive)
    printf("amp %s, %s; :help lists the commands, :quit ends\n", AMPC_VERSION,
           r->job ? r->job : "no job");
  fflush(stdout);
  if (!r->job) return program_latest(r) != NULL;
  bool readable = access(r->job, R_OK) == 0;
  command_open(r, r->job);
  return readable;
}

static void close_session(Repl *r)
{
  live_close(r);
  kernel_forget_files(r);
  compiled_drop(r->latest);
  kernels_free(r->kernels);
  free(r->losses.at);
}

static int loop(Repl *r)
{
  Input *in = input_open(r);
  bool good = open_session(r);
  size_t size;
  const char *text;
  while (good && !r->quit && (text = input_next(in, &size))) repl_run(r, text, size);
  if (good && r->interactive && !r->quit) putchar('\n');
  close_session(r);
  input_close(in);
  return good ? r->failed && !r->interactive : AMPC_BAD_FILE;
}

static bool find_target(const Repl *r, char target[AMPC_TARGET_ROOM], int *status)
{
  *status = ampc_device_target(r->device, target);
  if (*status) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  return !*status;
}

int repl_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  Repl r = {.arena = arena,
            .options = {.input = "repl", .optimize = 2, .error_limit = 20},
            .device = "auto"};
  int status;
  const char *locale = setlocale(LC_CTYPE, ""); /* the editor must know what a character is */
  if (!locale || !strcmp(locale, "C") || !strcmp(locale, "POSIX")) setlocale(LC_CTYPE, "C.UTF-8");
  r.options.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  r.interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  char target[AMPC_TARGET_ROOM];
  if (read_command_line(&r, argc, argv, &status) && find_target(&r, target, &status)) {
    r.options.target = target;
    r.data_dir = r.options.data_dir ? r.options.data_dir : ".";
    if (r.job) r.options.input = r.job;
    r.given = r.options;
    program_as_given(&r);
    input_interrupts(r.interactive);
    status = loop(&r);
  }
  arena_destroy(arena);
  return status;
}
