/* amp repl: the session and its loop. */
#include "commands.h"
#include "compiler/base/table.h"
#include "compiler/cli/options.h"
#include "runner/runner.h"
#include "runner/job/options.h"
#include "runtime/base/interrupt.h"
#include "common/terminal.h"
#include <ctype.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ReplCommand {
  Options compile;
  ampc_train_options run; /* only device and seed are used */
} ReplCommand;

const OptionTable repl_verb = {
    .program = "amp repl",
    .usage = "[options] [job.amp]",
    .groups = (const OptionGroup[]){{fresh_options, offsetof(ReplCommand, run)},
                                    {job_options, offsetof(ReplCommand, compile)},
                                    {table_options, offsetof(ReplCommand, compile)},
                                    {NULL, 0}},
    .notes = "Input is the language or a command; ':help' lists the commands. If the input is not "
             "a terminal, there is no prompt; after a mistake the next input is still read, and "
             "the exit status is 1."};

/* ---- messages ---- */

bool repl_error(Repl *r, const char *fmt, ...)
{
  va_list args;
  fflush(stdout);
  va_start(args, fmt);
  const char *text = arena_shown(r->arena, arena_vprintf(r->arena, fmt, args), "\n\t");
  va_end(args);
  int columns = terminal_columns(STDERR_FILENO);
  Text lines = text_new(r->arena);
  text_puts(&lines, "amp: ");
  text_wrap(&lines, text, 2, columns && !strchr(text, '\n') ? columns : INT_MAX);
  fprintf(stderr, "%s\n", lines.at);
  r->failed = true;
  return false;
}

bool repl_check(Repl *r, ampc_status status)
{
  if (status == AMPC_OK) return true;
  if (input_interrupted()) return repl_error(r, "interrupted");
  if (*ampc_last_error()) return repl_error(r, "%s", ampc_last_error());
  r->failed = true; /* jit_tell has printed the message */
  return false;
}

/* ---- the command line ---- */

/* Reads the options into the session; `:open` and `:set` may change them later. */
static bool read_command_line(Repl *r, int argc, char **argv, int *status)
{
  Operands jobs = {argv, argc};
  ReplCommand cmd = {.compile = options_default(), .run = {.device = "auto"}};
  cmd.compile.input = "repl"; /* name of typed text in messages */
  if (!options_read(&repl_verb, r->arena, &jobs, &cmd, status)) return false;
  *status = options_count_jobs(&repl_verb, &jobs, 0, 1);
  r->options = cmd.compile;
  r->device = cmd.run.device;
  r->seed = cmd.run.seed;
  r->seed_given = cmd.run.seed_given;
  r->job = jobs.n ? jobs.at[0] : NULL;
  return *status == 0;
}

/* ---- the session ---- */

/* Runs one input, a command or text of the language, without the blanks around it. A command is
 * copied, so that it is NUL-terminated. */
static void repl_run(Repl *r, const char *text, size_t size)
{
  while (size && isspace((unsigned char)*text)) text++, size--;
  while (size && isspace((unsigned char)text[size - 1])) size--;
  if (!size) return;
  input_calm();
  char *line = strndup(text, size);
  if (!line) arena_out_of_memory();
  const char *input = *line == ':' ? line : input_meaning(r, line);
  bool good = input && (*input == ':'   ? command_run(r, input)
                        : input == line ? program_input(r, text, size)
                                        : program_input(r, input, strlen(input)));
  if (!good) r->failed = true;
  free(line);
  fflush(stdout);
}

/* Opens the session. False: the job's file cannot be read, which ends it, as for other verbs. */
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

/* Frees feeds and runtime before the programs whose tables they read, and kernels last. */
static void close_session(Repl *r)
{
  live_close(r);
  kernel_forget_files(r);
  compiled_drop(r->latest);
  kernels_free(r->kernels);
  free(r->losses.at);
}

/* Whether a bracket is open. A command is one line. The parser reports a bracket that is open at
 * the end of stdin, and program_input an input that exceeds INPUT_LIMIT. */
static bool bracket_is_open(const char *text, size_t size)
{
  bool command = text[strspn(text, " \t")] == ':';
  return size <= INPUT_LIMIT && !command && ast_is_open(text, (uint32_t)size);
}

/* Runs the session. After a mistake, returns 0 for a session on a terminal, 1 for a script. */
static int loop(Repl *r)
{
  const InputStyle style = {"amp> ", "...> ", "history", bracket_is_open, complete, r};
  Input *in = input_open(&style, r->interactive);
  bool good = open_session(r);
  size_t size;
  const char *text;
  while (good && !r->quit && !interrupt_ending() && (text = input_next(in, &size)))
    repl_run(r, text, size);
  if (good && r->interactive && !r->quit) putchar('\n');
  close_session(r);
  input_close(in);
  if (interrupt_ending()) return AMPC_INTERRUPTED;
  return good ? r->failed && !r->interactive : AMPC_BAD_FILE;
}

static bool find_target(const Repl *r, char target[AMPC_TARGET_ROOM], int *status)
{
  *status = (int)ampc_device_target(r->device, target);
  if (*status) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  return !*status;
}

int repl_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  Repl r = {.arena = arena};
  int status;
  const char *locale = setlocale(LC_CTYPE, ""); /* the editor needs the character encoding */
  if (!locale || !strcmp(locale, "C") || !strcmp(locale, "POSIX")) setlocale(LC_CTYPE, "C.UTF-8");
  r.interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  char target[AMPC_TARGET_ROOM];
  if (read_command_line(&r, argc, argv, &status) && find_target(&r, target, &status)) {
    r.options.target = target;
    r.data_dir = r.options.data_dir ? r.options.data_dir : ".";
    if (r.job) r.options.input = r.job;
    r.given = r.options;
    program_as_given(&r);
    interrupt_prompt(r.interactive);
    status = loop(&r);
  }
  arena_destroy(arena);
  return status;
}
