/* main() of emitted programs: reads the command line and calls ampc_train. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/interrupt.h"
#include "runtime/base/out_of_memory.h"
#include "common/file.h"
#include "common/number.h"
#include "common/standard_files.h"
#include "common/toolkit.h"
#include "runtime/runtime.h"
#include "train_options.h"

enum {
  OPTION_cuda_path = 256,
  OPTION_data_dir,
  OPTION_eval,
  OPTION_help,
  OPTION_set,
  OPTION_train,
  MAX_OPTIONS = 40
};

/* Own options. The options of the training loop follow, numbered from OPTION_train on. */
static const struct option own_options[] = {
    {"cuda-path", required_argument, NULL, OPTION_cuda_path},
    {"data-dir", required_argument, NULL, OPTION_data_dir},
    {"eval", no_argument, NULL, OPTION_eval},
    {"help", no_argument, NULL, OPTION_help},
    {"set", required_argument, NULL, OPTION_set},
};

static const char help_text[] =
    "  --cuda-path DIR        look for NVIDIA's libraries in DIR first\n"
    "  --data-dir DIR         root of paths of data and weights (default: the current folder)\n"
    "  --eval                 only evaluate the weights of --resume, or those that models load\n"
    "  --set NAME=VALUE       replace a setting, as in --set opt.lr=1e-4\n"
    "\n"
    "exit status: 0 done, or stopped by --max-time; 2 bad usage; 3 a file, or a log could not be\n"
    "written (all else was done); 5 the run failed; 130 interrupted by SIGINT, SIGTERM or SIGHUP,\n"
    "after saving. SIGUSR1 saves, and training continues.\n";

typedef struct Command {
  ampc_train_options train;
  char **settings; /* "name=value", in argv */
  int n_settings;
  bool help;
} Command;

/* Returns the row of the training loop's option that getopt_long found, by letter or number. */
static const ampc_option *list_row(int option)
{
  const ampc_option *row = ampc_train_option_list;
  if (option >= OPTION_train) return row + (option - OPTION_train);
  while (row->letter != option) row++; /* getopt_long returns no other letters */
  return row;
}

static ampc_status read_option(int option, char **argv, Command *c)
{
  ampc_train_options *t = &c->train;
  switch (option) {
  case OPTION_cuda_path:
    ampc_toolkit_path(optarg);
    return AMPC_OK;
  case OPTION_data_dir:
    t->data_dir = optarg;
    return AMPC_OK;
  case OPTION_eval:
    t->eval_only = true;
    return AMPC_OK;
  case OPTION_help:
  case 'h':
    c->help = true;
    return AMPC_OK;
  case OPTION_set:
    c->settings[c->n_settings++] = optarg;
    return AMPC_OK;
  case ':':
    return ampc_fail(AMPC_BAD_USAGE, "%s needs a value", argv[optind - 1]);
  case '?':
    return ampc_fail(AMPC_BAD_USAGE, "no option %s; --help lists them", argv[optind - 1]);
  default:
    return ampc_train_option(list_row(option)->name, optarg, t);
  }
}

/* Fills getopt's tables: our own options, then those of the training loop. */
static void fill_options(struct option out[MAX_OPTIONS], char letters[2 * MAX_OPTIONS])
{
  size_t n = sizeof own_options / sizeof *own_options;
  memcpy(out, own_options, sizeof own_options);
  *letters++ = ':';
  *letters++ = 'h';
  for (int i = 0; ampc_train_option_list[i].name; i++) {
    const ampc_option *row = &ampc_train_option_list[i];
    out[n++] = (struct option){row->name, row->value ? required_argument : no_argument, NULL,
                               OPTION_train + i};
    if (row->letter) *letters++ = row->letter;
    if (row->letter && row->value) *letters++ = ':';
  }
  out[n] = (struct option){NULL, 0, NULL, 0};
  *letters = 0;
}

static ampc_status read_command(int argc, char **argv, Command *c)
{
  ampc_status status = AMPC_OK;
  struct option options[MAX_OPTIONS];
  char letters[2 * MAX_OPTIONS];
  fill_options(options, letters);
  opterr = 0;
  for (int o; !status && (o = getopt_long(argc, argv, letters, options, NULL)) != -1;)
    status = read_option(o, argv, c);
  if (status || c->help) return status;
  if (optind < argc) return ampc_fail(AMPC_BAD_USAGE, "unexpected argument %s", argv[optind]);
  return AMPC_OK;
}

static void print_help(const char *program, const char *source)
{
  printf("usage: %s [options]\ntrains %s\n\n", program, source);
  for (const ampc_option *o = ampc_train_option_list; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "%s%.1s%s--%s%s%s", o->letter ? "-" : "", &o->letter,
             o->letter ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
    printf("  %-22s %s\n", left, o->help);
  }
  fputs(help_text, stdout);
}

static ampc_status apply_setting(ampc_runtime *rt, char *text)
{
  char *equals = strchr(text, '=');
  double value;
  if (!equals || equals == text || !ampc_read_real(equals + 1, &value))
    return ampc_fail(AMPC_BAD_USAGE, "--set %s: expected NAME=NUMBER", text);
  *equals = 0;
  return ampc_set(rt, text, value);
}

/* Runs the program. --set is applied first; a checkpoint restores only the settings of plateaus. */
static ampc_status run(const ampc_program *program, const ampc_data_interface *data,
                       const Command *c, Ranks *ranks)
{
  ampc_runtime *rt = NULL;
  bool weights = c->train.resume || ampc_resume_path(program) || program->n_loads;
  if (c->train.eval_only && !weights)
    return ranks_agree(ranks, ampc_fail(AMPC_BAD_USAGE, "--eval needs the weights: --resume FILE"));
  ampc_status status = runtime_create(program, c->train.device, ranks, &rt);
  for (int i = 0; i < c->n_settings && !status; i++) status = apply_setting(rt, c->settings[i]);
  if (rt) status = ranks_agree(ranks, status);
  if (!status) status = ampc_train(rt, data, &c->train);
  ampc_free(rt);
  return status;
}

/* Joins the other ranks, if the process was started as one of several, and runs the program. */
static ampc_status run_ranks(const ampc_program *program, const ampc_data_interface *data,
                             const Command *c)
{
  Ranks *ranks = NULL;
  ampc_status status = ranks_open(&ranks);
  if (ranks) cuda_set_rank(ranks);
  if (!status) status = run(program, data, c, ranks);
  const char *why = ampc_last_error();
  bool named = !ranks || strncmp(why, "rank ", 5) == 0;
  if (status && status != AMPC_INTERRUPTED && !ranks_silent())
    fprintf(stderr, "%s: error: %s%s%s\n", program->name,
            named ? "" : ranks_name(ranks, ranks->rank), named ? "" : ": ", why);
  ranks_close(ranks, status);
  return status;
}

int ampc_main(int argc, char **argv, const ampc_program *program, const ampc_data_interface *data)
{
  if (argc < 1 || !argv || !program || !data)
    return (int)ampc_fail(AMPC_BAD_USAGE, "ampc_main: an argument is NULL");
  if (!standard_files_open()) return AMPC_BAD_FILE;
  file_keep_inputs();
  interrupt_begin(program->name);
  if (!stack_suffices(program->name)) return AMPC_RUN_FAILED;
  out_of_memory_catch(program->name);
  Command c = {.train = {.device = "auto", .data_dir = "."}};
  c.settings = calloc((size_t)argc + 1, sizeof *c.settings);
  ampc_status status =
      c.settings ? read_command(argc, argv, &c) : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status && c.help) {
    print_help(argv[0], program->source);
  } else if (!status) {
    status = run_ranks(program, data, &c);
  } else {
    fprintf(stderr, "%s: error: %s\n", program->name, ampc_last_error());
  }
  free(c.settings);
  return file_end_stdout(program->name, (int)status);
}
