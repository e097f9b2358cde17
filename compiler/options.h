/* The command line of ampc, and the part of it that amp shares. */
#pragma once
#include "compile.h"

typedef enum OutputKind {
  OUTPUT_unset,
  OUTPUT_ast,
  OUTPUT_graph,
  OUTPUT_plan,
  OUTPUT_params,
  OUTPUT_memory,
  OUTPUT_cuda,
  OUTPUT_c,
  OUTPUT_ptx,
  OUTPUT_cubin,
  OUTPUT_header
} OutputKind;

typedef struct CommandLine {
  Options options;
  OutputKind kind;
  const char *output; /* NULL or "-": stdout */
  const char *deps;   /* file for make's dependencies, or NULL */
  bool library, build_line, check, verbose;
  uint32_t blame; /* line, or 0 */
} CommandLine;

/* Reads the command line into `out`, whose arrays belong to `arena`. False when there is nothing
 * left to do: *status is 0 after --help and the like, 2 after a message about wrong usage. */
bool command_line_read(Arena *arena, int argc, char **argv, CommandLine *out, int *status);

/* Options of both programs: `option` is 'O', 'D', 'I' or one of these. 0, or 2 after a message. */
enum {
  OPTION_set = 256,
  OPTION_data_dir,
  OPTION_poison,
  OPTION_check_memory,
  OPTION_memory_limit,
  OPTION_last
};
int options_read(Arena *arena, const char *program, Options *options, int option,
                 const char *value);

/* Prints "program: error: text" and the way to --help to stderr; returns 2. */
int usage_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* From here on an assert ends the program with exit status 70 and a line that asks to report it. */
void exit_on_abort(const char *program);
