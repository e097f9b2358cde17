/* What differs between the architectures of processors. Beside this header, only AMPC_PROCESSOR
 * and templates/cpu.h ask for the architecture that a file is compiled for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* FOR_V3, FOR_V4: a function is compiled for x86-64-v3, or for x86-64-v4 with vectors of 512 bits.
 *   Only a processor of that level calls it. On Arm they are empty.
 * X86_HAS(test), ARM_HAS(test): a test of levels.def; false on the other architecture.
 * machine_relax(): tells the processor that this thread waits in a loop.
 * machine_widen(), machine_narrow(): convert arrays of n f16 numbers by the processor's
 * instructions, as far as whole vectors go. They return how many numbers they converted: 0 if the
 * processor has no such instructions. They round to nearest. A NaN becomes quiet and keeps its
 * upper bits. */
#if defined __x86_64__
#  include <cpuid.h>
#  include <immintrin.h>
#  define X86_HAS(test) (test)
#  define ARM_HAS(test) false
#  define FOR_V3        __attribute__((target("avx2,fma,f16c")))
#  ifdef __clang__ /* clang lacks an attribute for the width */
#    define FOR_V4 __attribute__((target("avx512f")))
#  else
#    define FOR_V4 __attribute__((target("avx512f,prefer-vector-width=512")))
#  endif
static inline bool machine_has_avx512fp16(void)
{
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 23 & 1;
}

static inline void machine_relax(void)
{
  __builtin_ia32_pause();
}

FOR_V3 static inline int64_t widen_v3(const uint16_t *from, float *to, int64_t n)
{
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
  return i;
}

FOR_V3 static inline int64_t narrow_v3(const float *from, uint16_t *to, int64_t n)
{
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

/* clang 14 cannot query F16C: every processor with AVX2 has it. */
static inline int64_t machine_widen(const uint16_t *from, float *to, int64_t n)
{
  return __builtin_cpu_supports("avx2") ? widen_v3(from, to, n) : 0;
}

static inline int64_t machine_narrow(const float *from, uint16_t *to, int64_t n)
{
  return __builtin_cpu_supports("avx2") ? narrow_v3(from, to, n) : 0;
}
#elif defined __aarch64__
#  include <arm_neon.h>
#  include <sys/auxv.h>
#  define X86_HAS(test) false
#  define ARM_HAS(test) (test)
#  define FOR_V3
#  define FOR_V4
static inline void machine_relax(void)
{
  __asm__ volatile("isb"); /* waits longer than yield, which does nothing on most */
}

static inline int64_t machine_widen(const uint16_t *from, float *to, int64_t n)
{
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
  return i;
}

static inline int64_t machine_narrow(const float *from, uint16_t *to, int64_t n)
{
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
  return i;
}
#else
#  error "ampc runs on x86-64 and on 64-bit Arm"
#endif
