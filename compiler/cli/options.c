/* The compiler options that ampc and the verbs of amp share. */
#include "options.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "compiler/base/target.h"
#include "common/toolkit.h"

Options options_default(void)
{
  bool color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  return (Options){.optimize = 2, .error_limit = 20, .color = color};
}

/* ---- lists that grow by one entry for each option ---- */

/* Appends NAME=VALUE to a list. Returns false if `text` has another form. */
static bool assign(Arena *arena, Assignment **list, uint32_t *n, const char *text)
{
  const char *equals = strchr(text, '=');
  if (!equals || equals == text) return false;
  *list = arena_grow(arena, *list, *n * sizeof(Assignment), (*n + 1) * sizeof(Assignment),
                     _Alignof(Assignment));
  (*list)[(*n)++] = (Assignment){arena_strndup(arena, text, (size_t)(equals - text)), equals + 1};
  return true;
}

bool options_set(Arena *arena, Options *options, const char *text)
{
  return assign(arena, &options->settings, &options->n_settings, text);
}

int options_setting(const OptionGiven *given)
{
  if (options_set(given->arena, given->into, given->value)) return OPTIONS_GO_ON;
  return option_wrong(given, "expected NAME=VALUE");
}

int options_const(const OptionGiven *given)
{
  Options *o = given->into;
  if (assign(given->arena, &o->consts, &o->n_consts, given->value)) return OPTIONS_GO_ON;
  return option_wrong(given, "expected NAME=VALUE");
}

static int read_dim(const OptionGiven *given)
{
  Options *o = given->into;
  if (assign(given->arena, &o->dims, &o->n_dims, given->value)) return OPTIONS_GO_ON;
  return option_wrong(given, "expected NAME=SIZE or NAME=SIZE,SIZE");
}

static int read_include(const OptionGiven *given)
{
  Options *o = given->into;
  uint32_t n = o->n_include_dirs++;
  o->include_dirs = arena_grow(given->arena, o->include_dirs, n * sizeof(char *),
                               (n + 1) * sizeof(char *), _Alignof(char *));
  o->include_dirs[n] = given->value;
  return OPTIONS_GO_ON;
}

int options_cuda_path(const OptionGiven *given)
{
  ampc_toolkit_path(given->value);
  return OPTIONS_GO_ON;
}

static int read_level(const OptionGiven *given)
{
  const char *level = given->value;
  if (level[0] < '0' || level[0] > '2' || level[1])
    return option_wrong(given, "expected -O0, -O1 or -O2");
  ((Options *)given->into)->optimize = level[0] - '0';
  return OPTIONS_GO_ON;
}

/* ---- the rows ---- */

/* What shells offer for --set. */
static const char *const setting_words[] = {
    "opt.lr=", "train.batch=", "train.epochs=", "precision=bf16", "precision=f16", "precision=f32",
    NULL};

const OptionRow job_options[] = {
    {"set", 0, "KEY=VALUE",
     "replace a setting: opt.lr=1e-4 (or lr=1e-4 if no other one ends so) train.batch=64 "
     "precision=bf16",
     .kind = OPTION_call, .read = options_setting, .words = setting_words},
    {NULL, 'D', "NAME=VALUE", "replace a const of the job", .kind = OPTION_call,
     .read = options_const},
    {"dim", 0, "NAME=SIZES", "sizes of a dim that infer blocks are compiled for: S=64,512",
     .kind = OPTION_call, .read = read_dim},
    {NULL, 'I', "DIR", "look for imports in DIR too", .kind = OPTION_call, .read = read_include},
    {"data-dir", 0, "DIR", "root of data paths (default: the folder of the job)",
     .kind = OPTION_text, .field = offsetof(Options, data_dir)},
    {"cuda-path", 0, "DIR", "look for NVIDIA's libraries in DIR first", .kind = OPTION_call,
     .read = options_cuda_path},
    {"march", 0, "LEVEL",
     "the processors that kernels on the CPU are compiled for: native (default; this one), x86-64 "
     ".. x86-64-v4, armv8-a .. armv8.2-a+fp16+bf16+sve+sve2",
     .kind = OPTION_choice, .field = offsetof(Options, march), .words = target_marches},
    {NULL, 'O', "LEVEL", "no fusion, fusion, more fusion (default); the results stay the same",
     .kind = OPTION_call, .read = read_level, .shown = "-O0 -O1 -O2"},
    {"no-onednn", 0, NULL,
     "loops of ampc compute products and convolutions on the CPU: a program needs no oneDNN, and "
     "every processor computes the same bits; large products take about twice as long",
     .kind = OPTION_flag, .field = offsetof(Options, no_onednn)},
    {"strict-rounding", 0, NULL, "16-bit weight gradients are rounded before they are summed",
     .kind = OPTION_flag, .field = offsetof(Options, strict_rounding)},
    {0}};

const OptionRow ranks_option[] = {{"ranks", 0, "N", "compile for N processes that train together",
                                   .kind = OPTION_number, .least = 1,
                                   .field = offsetof(Options, ranks)},
                                  {0}};

const OptionRow memory_options[] = {
    {"memory-limit", 0, "SIZE", "refuse a job that needs more: 512MB, 4G (1024^3), 4000000000",
     .kind = OPTION_size, .field = offsetof(Options, memory_limit)},
    {"check-memory", 0, NULL, "check that no two live values overlap in memory",
     .kind = OPTION_flag, .field = offsetof(Options, check_memory)},
    {"poison", 0, NULL, "overwrite memory with NaN as soon as nobody may read it",
     .kind = OPTION_flag, .field = offsetof(Options, poison)},
    {0}};

const OptionRow table_options[] = {
    {"wide", 0, NULL, "tables with all columns and a row for each layer, in lines of any width",
     .kind = OPTION_flag, .field = offsetof(Options, view.wide)},
    {"top", 0, "N", "only the N rows of each table with the highest cost", .kind = OPTION_number,
     .least = 1, .field = offsetof(Options, view.top)},
    {0}};

/* ---- bugs of the compiler ---- */

static const char *aborting_program;

/* Prints a request to report the bug. Calls only functions that are safe in a signal handler. */
static void on_abort(int signal_number)
{
  static const char text[] = ": this is a bug in ampc, not in the job; please report it\n";
  ssize_t ignored = write(STDERR_FILENO, aborting_program, strlen(aborting_program));
  ignored = write(STDERR_FILENO, text, sizeof text - 1);
  (void)ignored;
  (void)signal_number;
  _exit(70);
}

void exit_on_abort(const char *program)
{
  struct sigaction action = {.sa_handler = on_abort, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  aborting_program = program;
  sigaction(SIGABRT, &action, NULL);
}
