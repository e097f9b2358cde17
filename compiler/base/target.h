/* The kinds of machines that text is emitted for. A fact that differs between the kinds is a field
 * here. Code that divides work differently on a CPU calls is_cpu_target() (compiler/command/). */
#pragma once
#include "compile.h"

typedef enum TargetKind { TARGET_cpu, TARGET_cuda, TARGET_COUNT } TargetKind;

/* How a C compiler must build kernels. A kernel must compute the same bits in every file, so these
 * flags allow no contraction, no reordering and no flush to zero. The last two flags change no
 * value: math functions do not set errno, and no code reads the floating-point exceptions. */
#define TARGET_CPU_FLAGS "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"

typedef struct Target {
  TargetKind kind;
  const char *option;   /* the default of --target for this kind: "sm_80" */
  const char *suffix;   /* suffix of emitted files: ".cu" */
  const char *language; /* the argument of -x for cc and nvcc: "cu" */
  const char *build[8]; /* the compiler and its flags, before the architecture */
  /* prefix of the architecture in the command: "-arch="; NULL: it is not passed */
  const char *arch;
  const char *prelude, *columns; /* in templates/: primitives; those for columns */
  const char *tiles;             /* products of tiles */
  const char *tensor;            /* in templates/: products on tensor cores; NULL: none */
  const char *counters;          /* in templates/: counters that blocks share; NULL: none */
  const char *own_text;          /* the clause of `op` with its kernel text: "host" */
  const char *own_language;      /* the language of that text */
  int64_t align;                 /* alignment of places in WORK and INPUT, in bytes */
  const char *table_suffix;      /* suffix of a kernel's name in the kernel table: "_thunk" */
} Target;

/* Values of -march for kernels on the CPU, ending with NULL. The first one is the default. */
extern const char *const target_marches[];
const char *target_march(const Options *options);

const Target *target_of(const char *option); /* option: "cpu", "sm_80" */
bool is_cpu_target(const Compile *c);
