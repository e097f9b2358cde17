/* The processor of this machine, whose rates no table knows: they are measured. */
#pragma once
#include "gpu.h"

enum { CPU_SIZES = 4, CPU_LEAST = 1 << 17 };

typedef struct Cpu {
  unsigned threads;
  int lanes;   /* f32 numbers of a vector instruction */
  double mhz;  /* instructions a us that wait for one another */
  double peak; /* GFLOP/s of multiply-adds of f32, all threads */
  double bf16; /* how many times as fast products of bf16 are; 1: it has no instructions for them */
  double moves[CPU_SIZES]; /* GB/s that all threads read and write together, in arrays of so many
                              bytes in all: CPU_LEAST, and each time eight times as many */
} Cpu;

/* As a row of the table, with `cpu` set; the memory is the arena's. Takes a tenth or two of
 * a second, in which all threads compute. */
const Gpu *cpu_measure(Arena *arena);
/* GB/s where a command reads and writes so many bytes; between sizes that were measured, what lies
 * between their rates. */
double cpu_moves(const Cpu *cpu, double bytes);
