/* The processor of this machine. No table has its rates, so they are measured. */
#pragma once
#include "gpu.h"

enum { CPU_SIZES = 4, CPU_LEAST = 1 << 17 };

typedef struct Cpu {
  unsigned threads;
  int lanes;               /* f32 numbers in a vector */
  double mhz;              /* dependent instructions in a microsecond */
  double peak;             /* GFLOP/s of f32 multiply-adds, all threads */
  double bf16;             /* speed of bf16 products relative to f32; 1: no instructions for them */
  double moves[CPU_SIZES]; /* GB/s that all threads together read and write. Total bytes of their
                              arrays: CPU_LEAST, and eight times as many from size to size */
} Cpu;

/* Measures the processor as a row of the GPU table, with `cpu` set. The memory is the arena's.
 * Takes 0.1 or 0.2 seconds, in which all threads compute. */
const Gpu *cpu_measure(Arena *arena);
/* GB/s of a command that reads and writes this many bytes, interpolated between the measured
 * sizes. */
double cpu_moves(const Cpu *cpu, double bytes);
