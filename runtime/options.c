/* main() of emitted programs: the command line, then ampc_train. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"

enum {
  OPTION_device = 256,
  OPTION_data_dir,
  OPTION_eval,
  OPTION_help,
  OPTION_log,
  OPTION_quiet,
  OPTION_resume,
  OPTION_save,
  OPTION_save_every,
  OPTION_seed,
  OPTION_set,
  OPTION_steps
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, OPTION_device},
    {"data-dir", required_argument, NULL, OPTION_data_dir},
    {"eval", no_argument, NULL, OPTION_eval},
    {"help", no_argument, NULL, OPTION_help},
    {"log", required_argument, NULL, OPTION_log},
    {"quiet", no_argument, NULL, OPTION_quiet},
    {"resume", required_argument, NULL, OPTION_resume},
    {"save", required_argument, NULL, OPTION_save},
    {"save-every", required_argument, NULL, OPTION_save_every},
    {"seed", required_argument, NULL, OPTION_seed},
    {"set", required_argument, NULL, OPTION_set},
    {"steps", required_argument, NULL, OPTION_steps},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "  --device DEVICE   cpu, cuda or auto (default): cuda where there is one\n"
    "  --data-dir DIR    root of data paths (default: the current folder)\n"
    "  --seed N          of weights, order of the data and dropout\n"
    "  --steps N         end after N optimizer steps, those before a resume included\n"
    "  --save FILE       write a checkpoint at the end, and when interrupted by Ctrl-C\n"
    "  --save-every N    and every N steps\n"
    "  --resume FILE     go on from a checkpoint\n"
    "  --eval            only evaluate the weights of --resume\n"
    "  --set NAME=VALUE  replace a setting, as in --set opt.lr=1e-4\n"
    "  --log N           a line every N steps\n"
    "  --quiet           results only\n";

typedef struct Command {
  ampc_train_options train;
  char **settings; /* "name=value", in argv */
  int n_settings;
  bool help;
} Command;

static ampc_status read_number(const char *text, const char *option, uint64_t least, uint64_t most,
                               uint64_t *out)
{
  char *end = NULL;
  errno = 0;
  *out = strtoull(text, &end, 10);
  bool digits = *text >= '0' && *text <= '9' && !*end;
  if (digits && !errno && *out >= least && *out <= most) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--%s %s: expected a number from %llu on", option, text,
                   (unsigned long long)least);
}

static ampc_status read_count(const char *text, const char *option, int64_t *out)
{
  uint64_t n;
  ampc_status status = read_number(text, option, 1, INT64_MAX, &n);
  *out = (int64_t)n;
  return status;
}

static ampc_status read_option(int option, char **argv, Command *c)
{
  ampc_train_options *t = &c->train;
  switch (option) {
  case OPTION_device:
    t->device = optarg;
    return AMPC_OK;
  case OPTION_data_dir:
    t->data_dir = optarg;
    return AMPC_OK;
  case OPTION_eval:
    t->eval_only = true;
    return AMPC_OK;
  case OPTION_help:
    c->help = true;
    return AMPC_OK;
  case OPTION_log:
    return read_count(optarg, "log", &t->log);
  case OPTION_quiet:
    t->quiet = true;
    return AMPC_OK;
  case OPTION_resume:
    t->resume = optarg;
    return AMPC_OK;
  case OPTION_save:
    t->save = optarg;
    return AMPC_OK;
  case OPTION_save_every:
    return read_count(optarg, "save-every", &t->save_every);
  case OPTION_seed:
    t->seed_given = true;
    return read_number(optarg, "seed", 0, INT64_MAX, &t->seed);
  case OPTION_set:
    c->settings[c->n_settings++] = optarg;
    return AMPC_OK;
  case OPTION_steps:
    return read_count(optarg, "steps", &t->steps);
  case ':':
    return ampc_fail(AMPC_BAD_USAGE, "%s needs a value", argv[optind - 1]);
  default:
    return ampc_fail(AMPC_BAD_USAGE, "no option %s; --help lists them", argv[optind - 1]);
  }
}

static ampc_status read_command(int argc, char **argv, Command *c)
{
  ampc_status status = AMPC_OK;
  opterr = 0;
  for (int o; !status && (o = getopt_long(argc, argv, ":", long_options, NULL)) != -1;)
    status = read_option(o, argv, c);
  if (status || c->help) return status;
  if (optind < argc) return ampc_fail(AMPC_BAD_USAGE, "unexpected argument %s", argv[optind]);
  if (c->train.eval_only && !c->train.resume)
    return ampc_fail(AMPC_BAD_USAGE, "--eval needs the weights: --resume FILE");
  return AMPC_OK;
}

static ampc_status apply_setting(ampc_runtime *rt, char *text)
{
  char *equals = strchr(text, '='), *end = NULL;
  double value = equals ? strtod(equals + 1, &end) : 0;
  if (!equals || equals == text || end == equals + 1 || *end)
    return ampc_fail(AMPC_BAD_USAGE, "--set %s: expected NAME=NUMBER", text);
  *equals = 0;
  return ampc_set(rt, text, value);
}

static ampc_status run(const ampc_program *program, const ampc_data_interface *data,
                       const Command *c)
{
  ampc_runtime *rt = NULL;
  ampc_status status = ampc_create(program, c->train.device, &rt);
  for (int i = 0; i < c->n_settings && !status; i++) status = apply_setting(rt, c->settings[i]);
  if (!status) status = ampc_train(rt, data, &c->train);
  ampc_free(rt);
  return status;
}

int ampc_main(int argc, char **argv, const ampc_program *program, const ampc_data_interface *data)
{
  Command c = {.train = {.device = "auto", .data_dir = "."}};
  c.settings = calloc((size_t)argc + 1, sizeof *c.settings);
  ampc_status status =
      c.settings ? read_command(argc, argv, &c) : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status && c.help) {
    printf("usage: %s [options]\ntrains %s\n\n%s", argv[0], program->source, help_text);
  } else if (!status) {
    status = run(program, data, &c);
  }
  if (status && status != AMPC_INTERRUPTED)
    fprintf(stderr, "%s: error: %s\n", program->name, ampc_last_error());
  free(c.settings);
  return (int)status;
}
