/* Predicts the microseconds of one launch on the processor of this machine, without waking the
 * threads: Note [on a processor] in predict_cpu.c. */
#pragma once
#include "cpu.h"
#include "load.h"

/* bytes: operands and results of a launch, each once. memory: bytes of the whole job, which decide
 * in which cache the operands are. */
typedef struct CpuBytes {
  double bytes, memory;
} CpuBytes;

/* Returns why 16-bit products are not faster than f32; NULL if they are, or the type is f32. */
const char *cpu_against(const Cpu *cpu, ampc_dtype type);
double cpu_gemm_us(const Cpu *cpu, const ampc_gemm *d, CpuBytes moved);
double cpu_conv_us(const Cpu *cpu, const ampc_conv *d, CpuBytes moved);
double cpu_tiles_us(const Cpu *cpu, const TileLoad *t);
double cpu_kernel_us(Compile *c, const Cpu *cpu, uint32_t group, CpuBytes moved);
