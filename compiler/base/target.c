/* The table of targets. */
#include "target.h"
#include <string.h>
#include "ampc_plan.h"

static const Target targets[TARGET_COUNT] = {
    {.kind = TARGET_cpu,
     .option = "cpu",
     .suffix = ".c",
     .language = "c",
     .build = {"cc", TARGET_CPU_FLAGS},
     .prelude = "cpu.h",
     .columns = "columns_cpu.h",
     .tiles = "tiles_cpu.h",
     .own_text = "host",
     .own_language = "C",
     .align = AMPC_CPU_ALIGN,
     .table_suffix = "_thunk"},
    {.kind = TARGET_cuda,
     .option = "sm_80",
     .suffix = ".cu",
     .language = "cu",
     .build = {"nvcc", "--fmad=false -lineinfo"},
     .arch = "-arch=",
     .prelude = "cuda.cuh",
     .columns = "columns_cuda.cuh",
     .tiles = "tiles_cuda.cuh",
     .tensor = "tensor_cuda.cuh",
     .counters = "counters_cuda.cuh",
     .own_text = "cuda",
     .own_language = "CUDA C",
     .align = AMPC_CUDA_ALIGN,
     .table_suffix = ""},
};

#define MARCH_true(name) name,
#define MARCH_false(name)
#define X86(name, march, ...) MARCH_##march(name)
#define ARM(name, march, ...) MARCH_##march(name)
const char *const target_marches[] = {"native",
#include "common/levels.def"
                                      NULL};

const char *target_march(const Options *options)
{
  return target_marches[options->march ? options->march - 1 : 0];
}

const Target *target_of(const char *option)
{
  return &targets[strcmp(option, "cpu") == 0 ? TARGET_cpu : TARGET_cuda];
}

bool is_cpu_target(const Compile *c)
{
  return target_of(c->options.target)->kind == TARGET_cpu;
}
