/* Levels of processors; see level.h. A program that was compiled for another processor is refused
 * here; otherwise its first kernel would end the process by SIGILL. */
#include "common/level.h"
#include <cpuid.h>
#include <string.h>

/* Each level has the instructions of those before it. -march has the first four; AMPC_PROCESSOR can
 * be any of them. */
static const char *const levels[] = {"x86-64",    "x86-64-v2",  "x86-64-v3",
                                     "x86-64-v4", "avx512bf16", "avx512fp16"};
enum { LEVELS = sizeof levels / sizeof *levels, MARCHES = 4 };

static bool has_avx512fp16(void)
{
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 23 & 1;
}

/* Returns the number of levels that this processor has. */
static int count_levels(void)
{
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) return 1;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    return 2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return 3;
  if (!__builtin_cpu_supports("avx512bf16")) return 4;
  return has_avx512fp16() ? 6 : 5;
}

ampc_status ampc_level_suffices(const char *level)
{
  int has = count_levels();
  for (int i = 0; i < has; i++)
    if (strcmp(level, levels[i]) == 0) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED,
                   "the kernels are compiled for processors of level %s, and this one has %s; "
                   "compile them with --march=%s",
                   level, levels[has - 1], levels[(has < MARCHES ? has : MARCHES) - 1]);
}
