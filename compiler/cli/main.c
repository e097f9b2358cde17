/* ampc: compiles a job to a file. */
#include "compiler/driver.h"
#include "compiler/cost/cpu.h"
#include "compiler/kernel/kernels.h"
#include "compiler/program/program.h"
#include "compiler/explain/explain.h"
#include "compiler/graph/shares.h"
#include "build_line.h"
#include "compiler/cost/memory_report.h"
#include "options.h"
#include "output.h"
#include "replace.h"
#include "runtime/plan/attention.h"
#include "common/standard_files.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"

enum { BAD_PROGRAM = 1, BAD_USAGE = 2, BAD_FILE = 3, NO_COMPILER = 4, NO_MEMORY = 5, OUR_BUG = 70 };

/* Runs the passes that the output needs; for a syntax tree, only parses. Returns an exit status. */
static int compile(Compile *c, const CommandLine *cmd)
{
  bool good = cmd->kind == OUTPUT_ast ? compile_parse_job(c) : compile_job(c);
  if (cmd->verbose) {
    for (uint32_t i = 0; i < c->sources.n; i++)
      if (c->sources.at[i].file)
        fprintf(stderr, "ampc: read %s, %u bytes\n", c->sources.at[i].shown, c->sources.at[i].size);
    if (good && c->graph)
      fprintf(stderr, "ampc: %u nodes, %u parameters, target %s\n", c->graph->nodes.n - 1,
              share_params(c->graph), c->options.target);
  }
  if (good) return 0;
  return c->cannot_read ? BAD_FILE : BAD_PROGRAM;
}

/* Makes the output: text, or the bytes of a cubin. Returns 0, or an exit status after a message. */
static int produce(Compile *c, const CommandLine *cmd, Text *out)
{
  if (cmd->options.dump_after && cmd->kind != OUTPUT_graph) {
    ir_print(c, out, false);
    return 0;
  }
  switch (cmd->kind) {
  case OUTPUT_ast:
    ast_print(c, c->ast, out);
    return 0;
  case OUTPUT_graph:
    ir_print(c, out, true);
    return 0;
  case OUTPUT_commands:
    emit_commands(c, out);
    return 0;
  case OUTPUT_plan:
    emit_plan(c, out);
    return 0;
  case OUTPUT_params:
    emit_params(c, out);
    return 0;
  case OUTPUT_memory:
    memory_report(c, -1, out);
    return 0;
  case OUTPUT_cuda:
  case OUTPUT_c:
    emit_program(c, out, !cmd->library);
    return 0;
  case OUTPUT_header:
    emit_header(c, out);
    return 0;
  case OUTPUT_fortran:
    return emit_fortran(c, out) ? 0 : BAD_PROGRAM;
  case OUTPUT_ptx:
    return emit_ptx(c, out) ? 0 : NO_COMPILER;
  case OUTPUT_cubin:
    return emit_cubin(c, out) ? 0 : NO_COMPILER;
  case OUTPUT_explain:
    return explain_job(c, cmd->gpu ? cmd->gpu : cpu_measure(c->arena), cmd->explain == EXPLAIN_JSON,
                       out)
               ? 0
               : BAD_PROGRAM;
  default:
    return OUR_BUG;
  }
}

/* Prints the line of the output that --blame names, and the compiler's line that printed it. */
static int show_blame(Compile *c, const CommandLine *cmd, const Text *text)
{
  const char *line = text->at, *end = text->at + text->n;
  for (uint32_t i = 1; i < cmd->blame && line < end; i++) {
    const char *next = memchr(line, '\n', (size_t)(end - line));
    line = next ? next + 1 : end;
  }
  const char *writer = emit_blame(c, cmd->blame);
  if (line == end || !writer)
    return usage_error("ampc", "--blame=%u: the output has no such line", cmd->blame);
  printf("%u: %.*s\nwritten by %s\n", cmd->blame, (int)strcspn(line, "\n"), line, writer);
  return 0;
}

/* Adds a name as make reads it: $ is doubled, and a backslash precedes each character of `special`
 * and each backslash before such a character. Returns false for a newline, which make cannot
 * read. */
static bool add_make_name(Text *out, const char *name, const char *special)
{
  for (const char *p = name; *p; p++) {
    const char *after = p + strspn(p, "\\");
    if (*p == '\n') return false;
    if (strchr(special, *p) || (*p == '\\' && *after && strchr(special, *after)))
      text_puts(out, "\\");
    if (*p == '$') text_puts(out, "$");
    text_add(out, p, 1);
  }
  return true;
}

/* Writes the file of --deps: "output: job.amp imported.amp". */
static int write_deps(Compile *c, const CommandLine *cmd)
{
  Text text = text_new(c->arena);
  bool good = add_make_name(&text, cmd->output ? cmd->output : "-", " \t#:%");
  text_puts(&text, ":");
  for (uint32_t i = 0; i < c->sources.n; i++) {
    if (!c->sources.at[i].file) continue;
    text_puts(&text, " ");
    good = add_make_name(&text, c->sources.at[i].path, " \t#:") && good;
  }
  text_puts(&text, "\n");
  if (!good) {
    fprintf(stderr, "ampc: error: --deps: make cannot read a file name with a newline in it\n");
    return BAD_FILE;
  }
  if (!replace_deps(cmd, &text)) return BAD_FILE;
  return output_write(cmd->deps, text.at, text.n) ? 0 : BAD_FILE;
}

/* Checks --memory-limit. Does not count scratch space of vendor libraries, whose size is known only
 * on the machine that runs the job. */
static int check_limit(Compile *c)
{
  int64_t need = memory_of_spaces(c->program), limit = c->options.memory_limit;
  if (!limit || need <= limit) return 0;
  fprintf(stderr, "ampc: error: %s\n",
          memory_refusal(c, need, limit, "--memory-limit is", memory_of_spaces));
  return NO_MEMORY;
}

/* Prints the build line for the file that -o names or would have named. Reads neither that file,
 * which may have been edited, nor the job. */
static int print_build_line(Compile *c, const CommandLine *cmd)
{
  Text line = text_new(c->arena);
  if (!build_line(cmd, &line)) return BAD_FILE;
  return output_write(NULL, line.at, line.n) ? 0 : BAD_FILE;
}

/* Rejects an output that is an input, under any path. Returns 0, or 2 after a message. */
static int check_places(const CommandLine *cmd)
{
  const char *const written[] = {cmd->check ? NULL : cmd->output, cmd->deps};
  for (int i = 0; i < 2; i++)
    if (written[i] && strcmp(written[i], "-") != 0 && file_guard(written[i], NULL))
      return usage_error("ampc", "%s %s: %s", i ? "--deps" : "-o", written[i], ampc_last_error());
  return 0;
}

/* Writes the complete output `text`, or prints the line of --blame. */
static int deliver(Compile *c, const CommandLine *cmd, const Text *text)
{
  const char *output = cmd->check ? NULL : cmd->output;
  if (cmd->blame) return show_blame(c, cmd, text);
  if (cmd->kind == OUTPUT_cubin && !cmd->output && isatty(STDOUT_FILENO))
    return usage_error("ampc", "a cubin is not for a terminal: use -o FILE.cubin");
  if (!replace_output(cmd, output, text)) return BAD_FILE;
  int status = cmd->deps ? write_deps(c, cmd) : 0;
  if (status) return status;
  if (!output_write(output, text->at, text->n)) return BAD_FILE;
  if (cmd->verbose && output)
    fprintf(stderr, "ampc: wrote %s, %zu bytes\n", arena_shown(c->arena, output, ""), text->n);
  return 0;
}

/* Does what the command line requests. No file is written before the complete output exists. */
static int run(Compile *c, const CommandLine *cmd)
{
  if (ampc_attention_check()) return usage_error("ampc", "%s", ampc_last_error());
  if (cmd->build_line) return print_build_line(c, cmd);
  int status = compile(c, cmd);
  if (!status && c->program) status = check_limit(c);
  if (!status) status = check_places(cmd);
  if (status || (cmd->check && !cmd->options.dump_after)) return status;
  Text text = text_new(c->arena);
  status = produce(c, cmd, &text);
  return status ? status : deliver(c, cmd, &text);
}

int main(int argc, char **argv)
{
  if (!standard_files_open()) return BAD_FILE;
  file_keep_inputs();
  if (!stack_suffices("ampc")) return AMPC_RUN_FAILED;
  exit_on_abort("ampc");
  Arena *arena = arena_create();
  CommandLine cmd;
  int status;
  if (command_line_read(arena, argc, argv, &cmd, &status)) {
    if (cmd.kind == OUTPUT_graph && !cmd.options.dump_after) cmd.options.dump_after = "simplify";
    Compile *c = compile_create(&cmd.options);
    status = run(c, &cmd);
    compile_destroy(c);
  }
  arena_destroy(arena);
  return file_end_stdout("ampc", status);
}
