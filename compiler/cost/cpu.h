/* The processor of this machine. No table has its rates, so they are measured. */
#pragma once
#include "gpu.h"

enum { CPU_SIZES = 4, CPU_LEAST = 1 << 17 };

typedef struct Cpu {
  unsigned threads;
  int lanes;   /* f32 numbers in a vector */
  double mhz;  /* dependent instructions per microsecond */
  double peak; /* GFLOP/s of f32 multiply-adds, all threads */
  double bf16; /* speed of bf16 products relative to f32; 1: it has no instructions for them */
  double moves[CPU_SIZES]; /* GB/s that all threads together read and write, if their arrays
                              together have CPU_LEAST << 3 * i bytes */
} Cpu;

/* Measures the processor. Returns a row as in the GPU table, in the arena, with `cpu` set. All
 * threads compute for 0.1 or 0.2 seconds. */
const Gpu *cpu_measure(Arena *arena);
/* GB/s of a command that reads and writes this many bytes, interpolated between the measured
 * sizes. */
double cpu_moves(const Cpu *cpu, double bytes);
