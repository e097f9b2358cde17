/* Measures the rates of this machine's processor, because no table has them. */
#pragma once
#include "gpu.h"

enum { CPU_SIZES = 4, CPU_LEAST = 1 << 17 };

typedef struct Cpu {
  unsigned threads;
  int lanes;   /* f32 numbers in a vector */
  double mhz;  /* number of dependent instructions per microsecond */
  double peak; /* GFLOP/s of f32 multiply-adds in all threads together */
  double bf16; /* speed of bf16 products relative to f32; 1: no instructions for them */
  /* GB/s that all threads together read and write, for arrays of CPU_LEAST << 3 * i bytes in all */
  double moves[CPU_SIZES];
} Cpu;

/* Measures the processor. Returns a row as in the GPU table, in the arena, with `cpu` set. All
 * threads compute for 0.1 or 0.2 seconds. */
const Gpu *cpu_measure(Arena *arena);
/* The same after `before`; the faster rate of the two counts. */
const Gpu *cpu_measure_again(Arena *arena, const Gpu *before);
/* Returns the GB/s of a command that moves this many bytes, interpolated between measured sizes. */
double cpu_moves(const Cpu *cpu, double bytes);
