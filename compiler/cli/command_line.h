/* The command line of ampc. */
#pragma once
#include "compiler/base/target.h"
#include "option_table.h"
#include "compiler/cost/gpu.h"

typedef enum OutputKind {
  OUTPUT_unset,
  OUTPUT_ast,
  OUTPUT_graph,
  OUTPUT_commands,
  OUTPUT_plan,
  OUTPUT_params,
  OUTPUT_memory,
  OUTPUT_cuda,
  OUTPUT_c,
  OUTPUT_ptx,
  OUTPUT_cubin,
  OUTPUT_header,
  OUTPUT_fortran,
  OUTPUT_explain
} OutputKind;

extern const OptionTable ampc_table;

enum { EXPLAIN_TEXT = 1, EXPLAIN_JSON }; /* CommandLine.explain */
typedef struct CommandLine {
  Options options;
  OutputKind kind;
  const char *output; /* path; NULL or "-": stdout */
  const char *deps;   /* path of the file for make's dependencies, or NULL */
  bool library, build_line, force, check, verbose;
  void (*list)(const TableView *, Text *); /* --list-ops, --list-passes: print this and exit */
  uint32_t blame;                          /* the line to explain; 0: not given */
  int explain;                             /* EXPLAIN_TEXT ..; 0: not given */
  bool is_static;                          /* --static */
  int cross;                               /* 1 + index in cross_targets; 0: this machine */
  /* the GPU that --explain predicts for; NULL: not given */
  const Gpu *gpu;
  int color, error_format; /* 1 + index of the word; 0: not given; `options` has the result */
} CommandLine;

/* Reads the command line into `out`, whose arrays belong to `arena`. Returns false if the program
 * is to exit with *status: 0 after options like --help, 2 after a message about wrong usage. */
bool command_line_read(Arena *arena, int argc, char **argv, CommandLine *out, int *status);
