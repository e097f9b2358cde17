/* How long a command is expected to take on this machine's processor: Note [on a processor] in
 * predict_cpu.c. Microseconds of one launch, without waking the threads. */
#pragma once
#include "cpu.h"
#include "load.h"

/* `bytes`: of a launch, operands and results once; `memory`: of the whole job, which tells from
 * which cache they come. */
typedef struct CpuBytes {
  double bytes, memory;
} CpuBytes;

/* Why products of 16 bits are not faster than those of f32; NULL: they are, or it is f32. */
const char *cpu_against(const Cpu *cpu, ampc_dtype type);
double cpu_gemm_us(const Cpu *cpu, const ampc_gemm *d, CpuBytes moved);
double cpu_conv_us(const Cpu *cpu, const ampc_conv *d, CpuBytes moved);
double cpu_tiles_us(const Cpu *cpu, const TileLoad *t);
double cpu_kernel_us(Compile *c, const Cpu *cpu, uint32_t group, CpuBytes moved);
