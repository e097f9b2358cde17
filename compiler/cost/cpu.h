/* The processor of this machine, whose rates no table knows: they are measured. */
#pragma once
#include "gpu.h"

typedef struct Cpu {
  unsigned threads;
  int lanes;        /* f32 numbers of a vector instruction */
  double mhz;       /* instructions a us that wait for one another */
  double peak;      /* GFLOP/s of multiply-adds of f32, all threads */
  double bf16;      /* how many times as fast products of bf16 are; 1: it has no instructions for them */
  double near, far; /* GB/s that all threads read and write: from their caches, from memory */
} Cpu;

/* As a row of the table, with `cpu` set; the memory is the arena's. Takes about a tenth of a
 * second, in which all threads compute. */
const Gpu *cpu_measure(Arena *arena);
