/* The kinds of machines that text is emitted for. What differs between them as a fact is a field
 * here; how work is divided is asked with is_cpu_target (compiler/command/). */
#pragma once
#include "compile.h"

typedef enum TargetKind { TARGET_cpu, TARGET_cuda, TARGET_COUNT } TargetKind;

/* How a C compiler must build kernels: each gives the same bits whatever stands beside it in the
 * file. So there is no contraction, no reordering, no flush to zero. The last two flags change no
 * value: math functions do not set errno, and nobody reads the floating-point exceptions. */
#define TARGET_CPU_FLAGS                                                                           \
  "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"

typedef struct Target {
  TargetKind kind;
  const char *option;          /* what --target is where only the kind is known: "sm_80" */
  const char *suffix;          /* of emitted files: ".cu" */
  const char *language;        /* of cc and nvcc, for -x: "cu" */
  const char *build[8];        /* the compiler and its flags; the architecture follows */
  const char *arch;            /* what stands before the architecture: "-arch="; NULL: nothing */
  const char *prelude, *tiles; /* templates/: the primitives; products of tiles */
  const char *counters;        /* templates/: what blocks count with; NULL: nothing */
  const char *own_text;        /* the clause of `op` that has the text for it: "host" */
  const char *own_language;    /* what that is written in */
  int64_t align;               /* bytes, of places in WORK and INPUT */
  const char *table_suffix;    /* of a kernel's name in the table of kernels: "_thunk" */
} Target;

const Target *target_of(const char *option); /* "cpu", "sm_80" */
bool is_cpu_target(const Compile *c);
