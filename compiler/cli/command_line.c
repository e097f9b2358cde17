/* Reads the command line of ampc: first each option by its table row, then their combination. */
#include "command_line.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "compiler/driver.h"
#include "compiler/diag/diag.h"
#include "compiler/help/help.h"
#include "build_line.h"
#include "options.h"
#include "common/file.h"
#include "common/level.h"

/* ---- options that need more than a field ---- */

/* Returns the index of `word` in a NULL-terminated list, or -1. */
static int word_index(const char *word, const char *const *words)
{
  for (int i = 0; words[i]; i++)
    if (strcmp(word, words[i]) == 0) return i;
  return -1;
}

/* Accepts the names of a list only: NVRTC would reject an unknown architecture only when it
 * compiles a kernel, far from the mistake. */
static int read_target(const OptionGiven *given)
{
  CommandLine *cmd = given->into;
  if (word_index(given->value, given->row->words) < 0)
    return option_wrong(given, "expected cpu or an architecture from sm_70 to sm_121");
  cmd->options.target = given->value;
  return OPTIONS_GO_ON;
}

static int read_gpu(const OptionGiven *given)
{
  CommandLine *cmd = given->into;
  cmd->gpu = gpu_find(given->value);
  if (cmd->gpu) return OPTIONS_GO_ON;
  return option_wrong(given, "expected one of %s", gpu_names(given->arena));
}

static int read_warning(const OptionGiven *given)
{
  Options *o = &((CommandLine *)given->into)->options;
  const char *word = given->value;
  if (strcmp(word, "error") == 0) {
    o->werror = true;
  } else if (strncmp(word, "no-", 3) == 0 && diag_is_warning(word + 3)) {
    uint32_t n = o->n_no_warnings++;
    o->no_warnings = arena_grow(given->arena, o->no_warnings, n * sizeof(char *),
                                (n + 1) * sizeof(char *), _Alignof(char *));
    o->no_warnings[n] = word + 3;
  } else if (strcmp(word, "all") != 0 && strcmp(word, "extra") != 0) { /* both are always on */
    return option_wrong(given, "no such warning");
  }
  return OPTIONS_GO_ON;
}

static int read_pass(const OptionGiven *given)
{
  CommandLine *cmd = given->into;
  if (!pass_exists(given->value))
    return option_wrong(given, "no such pass; see ampc --list-passes");
  cmd->options.dump_after = given->value;
  return OPTIONS_GO_ON;
}

static int read_list(const OptionGiven *given)
{
  bool ops = strcmp(given->row->name, "list-ops") == 0;
  ((CommandLine *)given->into)->list = ops ? list_ops : list_passes;
  return OPTIONS_GO_ON;
}

/* ---- options that print something and exit: they return the exit status ---- */

static int read_version(const OptionGiven *given)
{
  return print_version(given->program);
}

static int explain_error(const OptionGiven *given)
{
  if (diag_explain(given->value)) return 0;
  return usage_error(given->program, "no error has the code %s", given->value);
}

static int print_help_on(const OptionGiven *given)
{
  Text text = text_new(given->arena);
  bool all = strcmp(given->value, "all") == 0;
  if (all) help_all(&text);
  if (!all && !help_on(given->value, &text)) {
    const char *near = help_nearest(given->arena, given->value);
    return usage_error(given->program, "the language has no `%s`%s%s%s", given->value,
                       near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
  }
  fwrite(text.at, 1, text.n, stdout);
  return 0;
}

static int read_decode(const OptionGiven *given)
{
  CommandLine *cmd = given->into;
  cmd->options.infer_block = given->value;
  cmd->options.decode = true;
  cmd->options.text_to = INT64_MAX;
  return OPTIONS_GO_ON;
}

/* ---- the table ---- */

/* In the order of OutputKind. */
static const char *const kinds[] = {"ast",    "graph",   "commands", "plan", "params",
                                    "memory", "cuda",    "c",        "ptx",  "cubin",
                                    "header", "fortran", NULL};
static const char *const archs[] = {"cpu",    "sm_70",  "sm_72",  "sm_75",  "sm_80",  "sm_86",
                                    "sm_87",  "sm_88",  "sm_89",  "sm_90",  "sm_90a", "sm_100",
                                    "sm_103", "sm_110", "sm_120", "sm_121", NULL};
static const char *const color_words[] = {"auto", "always", "never", NULL};
static const char *const format_words[] = {"text", "json", NULL};

#define FIELD(name) .field = offsetof(CommandLine, name)

static const OptionRow output_options[] = {
    {NULL, 'o', "FILE",
     "output; - is stdout (default); the suffix .cu .c .ptx .cubin .h .f90 sets the kind",
     .kind = OPTION_text, FIELD(output)},
    {"emit", 0, "KIND", "ast graph commands plan params memory cuda c ptx cubin header fortran",
     .kind = OPTION_choice, FIELD(kind), .words = kinds,
     .expected =
         "ast, graph, commands, plan, params, memory, cuda, c, ptx, cubin, header or fortran"},
    {"target", 0, "ARCH", "sm_70 ... sm_121 (default sm_80), or cpu", .kind = OPTION_call,
     .read = read_target, .words = archs},
    {"library", 0, NULL, "no main(): functions that --emit=header or fortran declares",
     .kind = OPTION_flag, FIELD(library)},
    {"decode", 0, "BLOCK",
     "with --library: functions that compute texts of this infer block token by token",
     .kind = OPTION_call, .read = read_decode},
    {"norms", 0, NULL, "steps also sum the norms of gradients, weights and updates, for --log-dir",
     .kind = OPTION_flag, FIELD(options.norms), .without = "library"},
    {"build-line", 0, NULL, "print the command that builds the output, and exit",
     .kind = OPTION_flag, FIELD(build_line)},
    {"cross", 0, "MACHINE", "--build-line for another machine, by its cross compiler: aarch64",
     .kind = OPTION_choice, FIELD(cross), .words = cross_names, .with = "build-line"},
    {"static", 0, NULL, "--build-line for a program that needs no shared libraries",
     .kind = OPTION_flag, FIELD(is_static), .with = "build-line", .without = "library"},
    {"force", 0, NULL, "overwrite a file that was edited, or that ampc did not write",
     .kind = OPTION_flag, FIELD(force)},
    {"check", 0, NULL, "diagnostics only", .kind = OPTION_flag, FIELD(check)},
    {"explain", 0, "FORMAT",
     "text (default) or json: each node's type with its reason, casts, tensor cores, predicted "
     "time; whether the precision pays",
     .kind = OPTION_choice, FIELD(explain), .words = format_words, .bare = true,
     .without = "emit dump-after blame build-line check"},
    {"gpu", 0, "NAME",
     "what --explain predicts for, one of"
#define GPU(name, ...) " " #name
#include "compiler/cost/gpus.def"
     " (default h200; with --target=cpu it is this machine's processor)",
     .kind = OPTION_call, .read = read_gpu, .with = "explain"},
    {"blame", 0, "LINE", "print the line of the compiler that wrote this line of the output",
     .kind = OPTION_number, FIELD(blame), .least = 1, .expected = "a line number"},
    {"deps", 0, "FILE", "write what the output depends on, for make", .kind = OPTION_text,
     FIELD(deps)},
    {0}};

static const OptionRow message_options[] = {
    {NULL, 'W', "WARNING", "all warnings (always), warnings are errors, one warning off",
     .kind = OPTION_call, .read = read_warning, .shown = "-Wall -Wextra -Werror -Wno-NAME"},
    {"color", 0, "WHEN", "auto always never", .kind = OPTION_choice, FIELD(color),
     .words = color_words},
    {"error-limit", 0, "N", "stop showing errors after N (default 20; 0: never)",
     .kind = OPTION_number, FIELD(options.error_limit)},
    {"error-format", 0, "FORMAT", "text json", .kind = OPTION_choice, FIELD(error_format),
     .words = format_words},
    {"explain-error", 0, "CODE", "explain an error by a wrong and a right program",
     .kind = OPTION_call, .read = explain_error},
    {NULL, 'v', NULL, "report what is read and written", .kind = OPTION_flag, FIELD(verbose)},
    {0}};

static const OptionRow inside_options[] = {
    {"dump-after", 0, "PASS", "print the graph as it is after PASS", .kind = OPTION_call,
     .read = read_pass},
    {"help-on", 0, "NAME", "explain NAME of the language with an example; `all` prints everything",
     .kind = OPTION_call, .read = print_help_on},
    {"list-passes", 0, NULL, "the passes and the reasons for their order", .kind = OPTION_call,
     .read = read_list},
    {"list-ops", 0, NULL, "the op table", .kind = OPTION_call, .read = read_list},
    {"version", 0, NULL, "print the version and how ampc was built", .kind = OPTION_call,
     .read = read_version},
    {0}};

const OptionTable ampc_table = {
    .program = "ampc",
    .usage = "[options] job.amp",
    .about = "Compiles a training job to one CUDA C or C file.",
    .groups = (const OptionGroup[]){{output_options, 0},
                                    {job_options, offsetof(CommandLine, options)},
                                    {ranks_option, offsetof(CommandLine, options)},
                                    {memory_options, offsetof(CommandLine, options)},
                                    {table_options, offsetof(CommandLine, options)},
                                    {message_options, 0},
                                    {inside_options, 0},
                                    {NULL, 0}},
    .notes =
        "exit status: 0 success, 1 errors in the program, 2 bad usage, 3 a file is missing or "
        "unreadable, 4 NVRTC failed, 5 out of memory or over --memory-limit, 70 a bug in ampc"};

/* ---- combinations of options ---- */

/* Sets the kind of output from the suffix of -o. Returns false for an unknown suffix. */
static bool kind_of_suffix(CommandLine *out)
{
  static const char *const suffixes[] = {".cu", ".c", ".ptx", ".cubin", ".h", ".f90", NULL};
  const char *dot = strrchr(out->output, '.');
  int i = dot ? word_index(dot, suffixes) : -1;
  if (i >= 0) out->kind = OUTPUT_cuda + (OutputKind)i;
  return i >= 0;
}

/* True for a file whose suffix counts. The suffix of a device, a pipe or stdout does not. */
static bool is_named_file(const char *output)
{
  return output && strcmp(output, "-") != 0 && !file_is_special(output);
}

/* True if both paths are the same file, which need not exist yet. */
static bool is_same_place(const char *a, const char *b)
{
  char *target[2] = {file_target(a), file_target(b)};
  struct stat in[2];
  bool same = target[0] && target[1] && strcmp(file_name(target[0]), file_name(target[1])) == 0;
  for (int i = 0; i < 2 && same; i++) {
    char *folder = file_folder(target[i]);
    same = folder && stat(folder, &in[i]) == 0;
    free(folder);
  }
  free(target[0]);
  free(target[1]);
  return same && in[0].st_dev == in[1].st_dev && in[0].st_ino == in[1].st_ino;
}

static bool is_cpu(const CommandLine *cmd)
{
  return target_of(cmd->options.target)->kind == TARGET_cpu;
}

/* Sets the kind of output: that of --emit, else of the suffix of -o, else CUDA or C by the target.
 * Returns 0, or 2 after a message. */
static int choose_kind(CommandLine *out)
{
  const char *target = out->options.target;
  bool to_file = is_named_file(out->output);
  if (out->output && !*out->output) return usage_error(ampc_table.program, "-o needs a file name");
  if (to_file && out->deps && is_same_place(out->output, out->deps))
    return usage_error(ampc_table.program, "-o and --deps are both %s", out->output);
  if (out->options.dump_after) return 0;
  if (!out->kind && to_file && !kind_of_suffix(out))
    return usage_error(
        ampc_table.program,
        "-o %s: the suffix is not .cu, .c, .ptx, .cubin, .h or .f90; add --emit=KIND", out->output);
  if (!out->kind) out->kind = target && is_cpu(out) ? OUTPUT_c : OUTPUT_cuda;
  bool text = out->kind == OUTPUT_cuda || out->kind == OUTPUT_c;
  if (out->options.decode && text && !out->library && !out->check)
    return usage_error(ampc_table.program,
                       "--decode %s makes functions for your own program, and no main(): add "
                       "--library",
                       out->options.infer_block);
  if (out->options.decode && out->kind == OUTPUT_fortran)
    return usage_error(ampc_table.program,
                       "--emit=fortran has no functions of --decode: write interfaces with bind(c) "
                       "for those that --emit=header declares");
  return 0;
}

/* With --target=cpu, --explain predicts for the processor of this machine, else for a GPU. If no
 * target is given, the job is compiled for the architecture of that GPU. */
static int choose_gpu(CommandLine *out)
{
  const char *program = ampc_table.program;
  if (!out->explain) return 0;
  bool cpu = out->options.target && is_cpu(out);
  if (cpu && out->gpu)
    return usage_error(program,
                       "--target=cpu predicts for this machine's processor, not for --gpu %s",
                       out->gpu->name);
  if (!out->gpu && !cpu) out->gpu = gpu_find("h200");
  if (!out->options.target) out->options.target = out->gpu->arch;
  out->kind = OUTPUT_explain;
  return 0;
}

/* Refuses --march of a kind of processor that the build line is not for. Returns 0, or 2 after a
 * message. */
static int check_march(const CommandLine *cmd)
{
  const char *march = target_march(&cmd->options);
  const Level *level = ampc_level_named(march); /* NULL: native */
  bool fits = level ? level->is_arm == (cmd->cross || ampc_level()->is_arm) : !cmd->cross;
  if (!cmd->options.march || fits) return 0;
  if (cmd->cross)
    return usage_error(ampc_table.program,
                       "--march=%s is not for --cross %s; omit it for %s, which all of these have",
                       march, cross_names[cmd->cross - 1], cross_targets[cmd->cross - 1].march);
  return usage_error(ampc_table.program, "--march=%s is for another kind of processor%s", march,
                     level->is_arm ? "; add --cross aarch64" : "");
}

static bool is_named_as_text(const char *path)
{
  const char *suffix = strrchr(path, '.');
  return suffix && (strcmp(suffix, target_of("cpu")->suffix) == 0 ||
                    strcmp(suffix, target_of("sm_80")->suffix) == 0);
}

/* Sets the target. Returns 0, or 2 after a message. Contradicting options are errors, because a
 * guess would hide a slip. */
static int choose_target(CommandLine *out)
{
  if (!out->options.target) out->options.target = out->kind == OUTPUT_c ? "cpu" : "sm_80";
  bool cpu = is_cpu(out);
  if ((out->options.march || out->cross) && !cpu)
    return usage_error(ampc_table.program, "--%s needs --target=cpu or C output",
                       out->cross ? "cross" : "march");
  if (out->is_static && (!cpu || !out->options.no_onednn))
    return usage_error(ampc_table.program, "--static needs --target=cpu and --no-onednn: oneDNN "
                                           "and NVIDIA's libraries are shared libraries");
  if (out->options.no_onednn && !cpu)
    return usage_error(ampc_table.program,
                       "--no-onednn needs --target=cpu: no program for a GPU needs oneDNN");
  if (out->kind == OUTPUT_c && !cpu)
    return usage_error(ampc_table.program, "C output is for --target=cpu, not %s",
                       out->options.target);
  if ((out->kind == OUTPUT_cuda || out->kind == OUTPUT_ptx || out->kind == OUTPUT_cubin) && cpu)
    return usage_error(ampc_table.program, "--target=cpu makes C: use -o FILE.c or --emit=c");
  bool text = out->kind == OUTPUT_cuda || out->kind == OUTPUT_c;
  if (!text && (out->blame || out->build_line))
    return usage_error(ampc_table.program, "%s needs CUDA or C output",
                       out->blame ? "--blame" : "--build-line");
  if (out->build_line && is_named_as_text(out->options.input))
    return usage_error(ampc_table.program,
                       "--build-line takes the job, not the emitted file: ampc JOB.amp "
                       "--build-line -o %s",
                       out->options.input);
  bool declares = out->kind == OUTPUT_header || out->kind == OUTPUT_fortran;
  if (declares && out->options.norms)
    return usage_error(ampc_table.program, "--norms cannot be combined with --emit=%s",
                       kinds[out->kind - OUTPUT_ast]);
  return out->build_line ? check_march(out) : 0;
}

/* Applies options for which "not given" is a value of its own. */
static void apply_choices(CommandLine *cmd)
{
  enum { COLOR_auto = 1, COLOR_always, FORMAT_json = 2 };
  if (cmd->color > COLOR_auto) cmd->options.color = cmd->color == COLOR_always;
  cmd->options.json_errors = cmd->error_format == FORMAT_json;
}

/* Prints a list if an option requests one. Returns true then: the program has no more to do. */
static bool print_list(Arena *arena, const CommandLine *cmd)
{
  Text text = text_new(arena);
  if (!cmd->list) return false;
  cmd->list(&cmd->options.view, &text);
  fwrite(text.at, 1, text.n, stdout);
  return true;
}

bool command_line_read(Arena *arena, int argc, char **argv, CommandLine *out, int *status)
{
  Operands jobs = {argv, argc};
  *out = (CommandLine){.options = options_default()};
  if (!options_read(&ampc_table, arena, &jobs, out, status)) return false;
  if (print_list(arena, out)) return false;
  *status = options_count_jobs(&ampc_table, &jobs, 1, 1);
  if (*status) return false;
  out->options.input = jobs.at[0];
  apply_choices(out);
  *status = choose_gpu(out);
  if (*status == 0) *status = choose_kind(out);
  if (*status == 0) *status = choose_target(out);
  return *status == 0;
}
