/* The predicted time of a command on the processor of this machine: Note [on a processor] in
 * predict_cpu.c. Microseconds of one launch, without waking the threads. */
#pragma once
#include "cpu.h"
#include "load.h"

/* `bytes`: operands and results of a launch, each once. `memory`: that of the whole job, which
 * decides the cache they are in. */
typedef struct CpuBytes {
  double bytes, memory;
} CpuBytes;

/* Why 16-bit products are not faster than f32; NULL: they are, or the type is f32. */
const char *cpu_against(const Cpu *cpu, ampc_dtype type);
double cpu_gemm_us(const Cpu *cpu, const ampc_gemm *d, CpuBytes moved);
double cpu_conv_us(const Cpu *cpu, const ampc_conv *d, CpuBytes moved);
double cpu_tiles_us(const Cpu *cpu, const TileLoad *t);
double cpu_kernel_us(Compile *c, const Cpu *cpu, uint32_t group, CpuBytes moved);
