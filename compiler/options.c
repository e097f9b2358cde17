/* Reads the command line of ampc: options first one by one, then what they mean together. */
#include "options.h"
#include "driver.h"
#include "memory_report.h"
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  OPTION_emit = OPTION_last,
  OPTION_target,
  OPTION_library,
  OPTION_build_line,
  OPTION_check,
  OPTION_dim,
  OPTION_explain,
  OPTION_fmt,
  OPTION_dump_after,
  OPTION_list_passes,
  OPTION_list_ops,
  OPTION_blame,
  OPTION_explain_error,
  OPTION_deps,
  OPTION_color,
  OPTION_error_limit,
  OPTION_error_format,
  OPTION_strict_rounding,
  OPTION_version,
  OPTION_help
};

static const struct option long_options[] = {
    {"emit", required_argument, NULL, OPTION_emit},
    {"target", required_argument, NULL, OPTION_target},
    {"library", no_argument, NULL, OPTION_library},
    {"build-line", no_argument, NULL, OPTION_build_line},
    {"check", no_argument, NULL, OPTION_check},
    {"set", required_argument, NULL, OPTION_set},
    {"dim", required_argument, NULL, OPTION_dim},
    {"data-dir", required_argument, NULL, OPTION_data_dir},
    {"memory-limit", required_argument, NULL, OPTION_memory_limit},
    {"poison", no_argument, NULL, OPTION_poison},
    {"check-memory", no_argument, NULL, OPTION_check_memory},
    {"explain", optional_argument, NULL, OPTION_explain},
    {"fmt", no_argument, NULL, OPTION_fmt},
    {"dump-after", required_argument, NULL, OPTION_dump_after},
    {"list-passes", no_argument, NULL, OPTION_list_passes},
    {"list-ops", no_argument, NULL, OPTION_list_ops},
    {"blame", required_argument, NULL, OPTION_blame},
    {"explain-error", required_argument, NULL, OPTION_explain_error},
    {"deps", required_argument, NULL, OPTION_deps},
    {"color", required_argument, NULL, OPTION_color},
    {"error-limit", required_argument, NULL, OPTION_error_limit},
    {"error-format", required_argument, NULL, OPTION_error_format},
    {"strict-rounding", no_argument, NULL, OPTION_strict_rounding},
    {"version", no_argument, NULL, OPTION_version},
    {"help", no_argument, NULL, OPTION_help},
    {NULL, 0, NULL, 0}};
enum { LONG_COUNT = sizeof long_options / sizeof long_options[0] - 1 };

static const char help_text[] =
    "usage: ampc [options] job.amp\n"
    "Compiles a training job to one CUDA C or C file.\n"
    "\n"
    "  -o FILE               output, - is stdout (default); .cu .c .ptx .cubin say what is made\n"
    "  --emit=KIND           ast graph plan params memory cuda c ptx cubin\n"
    "  --target=ARCH         sm_70 ... sm_121 (default sm_80), or cpu\n"
    "  -O0 -O1 -O2           no fusion, fusion, more fusion (default); the results stay the same\n"
    "  --library             no main()\n"
    "  --build-line          print the command that builds the output\n"
    "  --check               diagnostics only\n"
    "  --strict-rounding     16-bit weight gradients are rounded before they are summed\n"
    "  -D NAME=VALUE         replace a const of the job\n"
    "  --set KEY=VALUE       replace a setting: opt.lr=1e-4 train.batch=64 precision=bf16\n"
    "  -I DIR                look for imports in DIR too\n"
    "  --data-dir=DIR        root of data paths (default: the folder of the job)\n"
    "  -Wall -Wextra -Werror -Wno-NAME\n"
    "                        all warnings, warnings are errors, one warning off\n"
    "  --dump-after=PASS     print the graph as it is after PASS\n"
    "  --check-memory        check that no two live values overlap\n"
    "  --poison              overwrite memory with NaN as soon as nobody may read it\n"
    "  --memory-limit=SIZE   refuse a job that needs more: 512MB, 4G (1024^3), 4000000000\n"
    "  --list-passes         the passes and why they stand in this order\n"
    "  --list-ops            the op table\n"
    "  --blame=LINE          which line of the compiler wrote this line of the output\n"
    "  --explain-error CODE  an error with its cure\n"
    "  --deps=FILE           write what the output depends on, for make\n"
    "  --color=WHEN          auto always never\n"
    "  --error-limit=N       stop showing errors after N (default 20; 0: never)\n"
    "  --error-format=FORMAT text json\n"
    "  -v, --version, --help\n"
    "\n"
    "exit status: 0 success, 1 errors in the program, 2 bad usage, 3 a file is missing or\n"
    "unreadable, 4 NVRTC failed, 5 out of memory or over --memory-limit, 70 a bug in ampc\n";

int usage_error(const char *program, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "%s: error: ", program);
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "\ntry '%s --help'\n", program);
  va_end(ap);
  return 2;
}

static const char *aborting_program;

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
  aborting_program = program;
  signal(SIGABRT, on_abort);
}

/* ---- single options ---------------------------------------------------------------------------
 */

/* False: `value` is not of the option's form. */
static bool add(Arena *arena, Options *options, int option, const char *value)
{
  if (option == OPTION_memory_limit) return memory_read_size(value, &options->memory_limit);
  if (option == OPTION_poison) return options->poison = true;
  if (option == OPTION_check_memory) return options->check_memory = true;
  if (option == OPTION_data_dir) {
    options->data_dir = value;
    return true;
  }
  if (option == 'O') {
    options->optimize = value[0] - '0';
    return value[0] >= '0' && value[0] <= '2' && !value[1];
  }
  if (option == 'I') {
    uint32_t n = options->n_include_dirs++;
    options->include_dirs = arena_grow(arena, options->include_dirs, n * sizeof(char *),
                                       (n + 1) * sizeof(char *), _Alignof(char *));
    options->include_dirs[n] = value;
    return true;
  }
  const char *equals = strchr(value, '=');
  if (!equals || equals == value) return false;
  Assignment **list = option == 'D' ? &options->consts : &options->settings;
  uint32_t *count = option == 'D' ? &options->n_consts : &options->n_settings;
  uint32_t n = (*count)++;
  *list = arena_grow(arena, *list, n * sizeof(Assignment), (n + 1) * sizeof(Assignment),
                     _Alignof(Assignment));
  (*list)[n] = (Assignment){arena_strndup(arena, value, (size_t)(equals - value)), equals + 1};
  return true;
}

int options_read(Arena *arena, const char *program, Options *options, int option, const char *value)
{
  if (add(arena, options, option, value)) return 0;
  if (option == 'O') return usage_error(program, "-O%s: expected -O0, -O1 or -O2", value);
  if (option == OPTION_memory_limit)
    return usage_error(program, "--memory-limit %s: expected a size such as 4G, 512MB or 1000000",
                       value);
  return usage_error(program, "%s %s: expected NAME=VALUE", option == 'D' ? "-D" : "--set", value);
}

/* Index of `word` in a list that ends with NULL, or -1. */
static int word_index(const char *word, const char *const *words)
{
  for (int i = 0; words[i]; i++)
    if (strcmp(word, words[i]) == 0) return i;
  return -1;
}

static bool read_number(const char *text, uint32_t *out)
{
  char *end;
  unsigned long n = strtoul(text, &end, 10);
  if (*end || end == text || *text < '0' || *text > '9' || n > INT_MAX) return false;
  *out = (uint32_t)n;
  return true;
}

static int read_kind(const char *word, CommandLine *out)
{
  static const char *const words[] = {"ast", "graph", "plan",  "params", "memory", "cuda",
                                      "c",   "ptx",   "cubin", "header", NULL};
  int i = word_index(word, words);
  if (i < 0)
    return usage_error(
        "ampc", "--emit=%s: expected ast, graph, plan, params, memory, cuda, c, ptx or cubin",
        word);
  out->kind = OUTPUT_ast + (OutputKind)i;
  return 0;
}

static int read_target(const char *word, CommandLine *out)
{
  static const char *const words[] = {"cpu",    "sm_70",  "sm_72",  "sm_75",  "sm_80",  "sm_86",
                                      "sm_87",  "sm_88",  "sm_89",  "sm_90",  "sm_90a", "sm_100",
                                      "sm_103", "sm_110", "sm_120", "sm_121", NULL};
  if (word_index(word, words) < 0)
    return usage_error("ampc", "--target=%s: expected cpu or an architecture from sm_70 to sm_121",
                       word);
  out->options.target = word;
  return 0;
}

static int read_color(const char *word, CommandLine *out)
{
  static const char *const words[] = {"auto", "always", "never", NULL};
  int i = word_index(word, words);
  if (i < 0) return usage_error("ampc", "--color=%s: expected auto, always or never", word);
  if (i) out->options.color = i == 1;
  return 0;
}

static int read_error_format(const char *word, CommandLine *out)
{
  static const char *const words[] = {"text", "json", NULL};
  int i = word_index(word, words);
  if (i < 0) return usage_error("ampc", "--error-format=%s: expected text or json", word);
  out->options.json_errors = i == 1;
  return 0;
}

static int read_warning(Arena *arena, const char *word, CommandLine *out)
{
  Options *o = &out->options;
  if (strcmp(word, "error") == 0) {
    o->werror = true;
  } else if (strcmp(word, "all") == 0 || strcmp(word, "extra") == 0) {
    return 0; /* every warning is on from the start */
  } else if (strncmp(word, "no-", 3) == 0 && diag_is_warning(word + 3)) {
    uint32_t n = o->n_no_warnings++;
    o->no_warnings = arena_grow(arena, o->no_warnings, n * sizeof(char *), (n + 1) * sizeof(char *),
                                _Alignof(char *));
    o->no_warnings[n] = word + 3;
  } else {
    return usage_error("ampc", "-W%s: no such warning", word);
  }
  return 0;
}

static int read_pass(const char *word, CommandLine *out)
{
  if (!pass_exists(word))
    return usage_error("ampc", "--dump-after=%s: no such pass; see ampc --list-passes", word);
  out->options.dump_after = word;
  return 0;
}

static int read_count(const char *name, const char *word, uint32_t *out)
{
  return read_number(word, out) ? 0 : usage_error("ampc", "%s=%s: expected a number", name, word);
}

static int unknown_option(char **argv)
{
  const char *names[LONG_COUNT], *word = argv[optind - 1];
  if (strncmp(word, "--", 2) != 0) return usage_error("ampc", "no option -%c", optopt);
  for (int i = 0; i < LONG_COUNT; i++) names[i] = long_options[i].name;
  const char *equals = strchr(word, '=');
  char name[64];
  snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word - 2) : 63, word + 2);
  const char *near = diag_nearest(name, names, LONG_COUNT);
  if (!near) return usage_error("ampc", "no option %s", word);
  return usage_error("ampc", "no option %s; did you mean --%s?", word, near);
}

static int print_list(Arena *arena, void (*list)(Text *out))
{
  Text text;
  text_init(&text, arena);
  list(&text);
  fwrite(text.at, 1, text.n, stdout);
  return 0;
}

/* ---- all options ------------------------------------------------------------------------------
 */

enum { GO_ON = -1 };

/* Options that answer at once: an exit status; else GO_ON. */
static int answer(Arena *arena, int option)
{
  switch (option) {
  case OPTION_help:
    fputs(help_text, stdout);
    return 0;
  case OPTION_version:
    puts("ampc " AMPC_VERSION);
    return 0;
  case OPTION_list_passes:
    return print_list(arena, list_passes);
  case OPTION_list_ops:
    return print_list(arena, list_ops);
  case OPTION_explain_error:
    return diag_explain(optarg) ? 0 : usage_error("ampc", "no error has the code %s", optarg);
  case OPTION_explain:
    return usage_error("ampc", "--explain is not supported yet");
  case OPTION_fmt:
    return usage_error("ampc", "--fmt is not supported yet");
  case OPTION_dim:
    return usage_error("ampc", "--dim is not supported yet");
  default:
    return GO_ON;
  }
}

/* 0, or 2 after a message. */
static int read_option(Arena *arena, int option, char **argv, CommandLine *out)
{
  switch (option) {
  case 'o':
    out->output = optarg;
    return 0;
  case 'W':
    return read_warning(arena, optarg, out);
  case 'v':
    out->verbose = true;
    return 0;
  case 'O':
  case 'D':
  case 'I':
  case OPTION_set:
  case OPTION_data_dir:
  case OPTION_poison:
  case OPTION_check_memory:
  case OPTION_memory_limit:
    return options_read(arena, "ampc", &out->options, option, optarg);
  case OPTION_emit:
    return read_kind(optarg, out);
  case OPTION_target:
    return read_target(optarg, out);
  case OPTION_library:
    out->library = true;
    return 0;
  case OPTION_build_line:
    out->build_line = true;
    return 0;
  case OPTION_check:
    out->check = true;
    return 0;
  case OPTION_strict_rounding:
    out->options.strict_rounding = true;
    return 0;
  case OPTION_dump_after:
    return read_pass(optarg, out);
  case OPTION_deps:
    out->deps = optarg;
    return 0;
  case OPTION_color:
    return read_color(optarg, out);
  case OPTION_error_format:
    return read_error_format(optarg, out);
  case OPTION_error_limit:
    return read_count("--error-limit", optarg, &out->options.error_limit);
  case OPTION_blame:
    if (read_number(optarg, &out->blame) && out->blame) return 0;
    return usage_error("ampc", "--blame=%s: expected a line number", optarg);
  case ':':
    return usage_error("ampc", "%s needs a value", argv[optind - 1]);
  default:
    return unknown_option(argv);
  }
}

/* ---- what they mean together ------------------------------------------------------------------
 */

static bool kind_of_suffix(CommandLine *out)
{
  static const char *const suffixes[] = {".cu", ".c", ".ptx", ".cubin", ".h", NULL};
  const char *dot = strrchr(out->output, '.');
  int i = dot ? word_index(dot, suffixes) : -1;
  if (i >= 0) out->kind = OUTPUT_cuda + (OutputKind)i;
  return i >= 0;
}

static bool same_file(const char *a, const char *b)
{
  struct stat at_a, at_b;
  return stat(a, &at_a) == 0 && stat(b, &at_b) == 0 && at_a.st_dev == at_b.st_dev &&
         at_a.st_ino == at_b.st_ino;
}

/* A name whose suffix says what to make; that of a device or a pipe says nothing. */
static bool is_named_file(const char *output)
{
  struct stat at;
  if (!output || strcmp(output, "-") == 0) return false;
  return stat(output, &at) != 0 || S_ISREG(at.st_mode) || S_ISDIR(at.st_mode);
}

static int choose_kind(CommandLine *out)
{
  const char *target = out->options.target;
  bool to_file = is_named_file(out->output);
  if (to_file && same_file(out->output, out->options.input))
    return usage_error("ampc", "-o %s would overwrite the job", out->output);
  if (out->options.dump_after) return 0;
  if (!out->kind && to_file && !kind_of_suffix(out))
    return usage_error("ampc",
                       "-o %s: the suffix does not tell what to make; use --emit=", out->output);
  if (!out->kind) out->kind = target && strcmp(target, "cpu") == 0 ? OUTPUT_c : OUTPUT_cuda;
  if (out->kind == OUTPUT_header) return usage_error("ampc", "a C API header is not supported yet");
  return 0;
}

static int choose_target(CommandLine *out)
{
  if (!out->options.target) out->options.target = out->kind == OUTPUT_c ? "cpu" : "sm_80";
  bool cpu = strcmp(out->options.target, "cpu") == 0;
  if (out->kind == OUTPUT_c && !cpu)
    return usage_error("ampc", "C output is for --target=cpu, not %s", out->options.target);
  if ((out->kind == OUTPUT_cuda || out->kind == OUTPUT_ptx || out->kind == OUTPUT_cubin) && cpu)
    return usage_error("ampc", "--target=cpu makes C: use -o FILE.c or --emit=c");
  bool text = out->kind == OUTPUT_cuda || out->kind == OUTPUT_c;
  if (!text && (out->blame || out->build_line))
    return usage_error("ampc", "%s is about CUDA or C output",
                       out->blame ? "--blame" : "--build-line");
  return 0;
}

bool command_line_read(Arena *arena, int argc, char **argv, CommandLine *out, int *status)
{
  *out = (CommandLine){.options = {.optimize = 2, .error_limit = 20}};
  out->options.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":o:O:W:D:I:v", long_options, NULL)) != -1;) {
    *status = answer(arena, option);
    if (*status != GO_ON) return false;
    *status = read_option(arena, option, argv, out);
    if (*status) return false;
  }
  if (argc - optind != 1) {
    *status = optind == argc ? usage_error("ampc", "no job was given")
                             : usage_error("ampc", "more than one job: %s", argv[optind + 1]);
    return false;
  }
  out->options.input = argv[optind];
  *status = choose_kind(out);
  if (*status == 0) *status = choose_target(out);
  return *status == 0;
}
