/* Statuses, the types of values, and the memory spaces. */
#ifndef AMPC_VALUES_H
#define AMPC_VALUES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses ---- */

/* Statuses of functions, and exit statuses of programs. */
typedef enum ampc_status {
  AMPC_OK = 0,
  AMPC_BAD_USAGE = 2,   /* wrong option or name */
  AMPC_BAD_FILE = 3,    /* a file is missing, unreadable, truncated, damaged, or of another model */
  AMPC_NO_COMPILER = 4, /* cc, nvcc or NVRTC failed */
  AMPC_RUN_FAILED = 5,  /* failed device, not enough memory, non-finite loss */
  AMPC_INTERRUPTED = 130
} ampc_status;

const char *ampc_last_error(void); /* one per thread; never NULL */
ampc_status ampc_fail(ampc_status status, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* sets ampc_last_error, returns `status` */
/* Sets ampc_last_error to a log of several lines, and returns `status`. */
ampc_status ampc_fail_log(ampc_status status, const char *log);

/* ---- processors ---- */

/* The level of processors for which the C compiler compiles the file that includes this. */
#if defined __aarch64__
#  if defined __ARM_FEATURE_ATOMICS && defined __ARM_FEATURE_QRDMX
#    define AMPC_ARM "armv8.2-a"
#  else
#    define AMPC_ARM "armv8-a"
#  endif
#  if defined __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
#    define AMPC_ARM_FP16 "+fp16"
#  else
#    define AMPC_ARM_FP16
#  endif
#  if defined __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#    define AMPC_ARM_BF16 "+bf16"
#  else
#    define AMPC_ARM_BF16
#  endif
#  if defined __ARM_FEATURE_SVE2
#    define AMPC_ARM_SVE "+sve+sve2"
#  elif defined __ARM_FEATURE_SVE
#    define AMPC_ARM_SVE "+sve"
#  else
#    define AMPC_ARM_SVE
#  endif
#  define AMPC_PROCESSOR AMPC_ARM AMPC_ARM_FP16 AMPC_ARM_BF16 AMPC_ARM_SVE
#elif defined __AVX512FP16__
#  define AMPC_PROCESSOR "avx512fp16"
#elif defined __AVX512BF16__
#  define AMPC_PROCESSOR "avx512bf16"
#elif defined __AVX512BW__ && defined __AVX512DQ__ && defined __AVX512VL__
#  define AMPC_PROCESSOR "x86-64-v4"
#elif defined __AVX2__
#  define AMPC_PROCESSOR "x86-64-v3"
#elif defined __SSE4_2__
#  define AMPC_PROCESSOR "x86-64-v2"
#else
#  define AMPC_PROCESSOR "x86-64"
#endif

/* ---- types and spaces ---- */

typedef enum ampc_dtype {
  AMPC_F32, /* IEEE binary32; double under Note [real64] of compiler/graph/ir.h */
  AMPC_F16, /* IEEE binary16 */
  AMPC_BF16,
  AMPC_I32,
  AMPC_I64,
  AMPC_U8,
  AMPC_BOOL, /* one byte, 0 or 1 */
  AMPC_DTYPE_COUNT
} ampc_dtype;

enum { AMPC_MAX_RANK = 6 };

enum {
  AMPC_CPU_ALIGN = 64,     /* bytes; alignment of places in WORK and INPUT: a cache line */
  AMPC_CUDA_ALIGN = 256,   /* bytes; the same on CUDA: cuBLASLt's fast kernels need it */
  AMPC_PARAM_ALIGN = 64,   /* elements; alignment of parameters in the spaces from MASTER to EMA */
  AMPC_CODE_BLOCK = 256,   /* elements of a moment in 8 bits that share a scale; also the alignment
                              of parameters and slices in such a program */
  AMPC_BUFFER_ALIGN = 256, /* bytes; alignment of a buffer in BUFFER */
};

typedef enum ampc_space {
  AMPC_NONE,   /* no memory. `offset` is the operand itself: a number, or 0 for NULL */
  AMPC_STATE,  /* ampc_state.h */
  AMPC_MASTER, /* weights, parameter after parameter, each aligned; padding is zero. f32, or bf16 if
                  the program has no f32 masters (ampc_program.weights) */
  AMPC_COPY16, /* f16 copies of MASTER, at the same element offsets */
  AMPC_COPYBF, /* bf16 copies of MASTER, at the same element offsets */
  AMPC_RESIDUE, /* params(.., rounding="kahan"): the bf16 rounding errors of the weights in MASTER,
                   at the same element offsets */
  AMPC_GRAD,    /* f32 gradients, at the element offsets of MASTER; zero when a step begins */
  AMPC_MOMENT1, /* optimizer state, at the element offsets of MASTER: momentum buffer, Adam's m.
                   f32, bf16 or 8-bit codes (ampc_program.moments) */
  AMPC_MOMENT2, /* Adam's v */
  AMPC_MOMENT3, /* the largest v of amsgrad; the mean gradient of a centered RMSprop */
  AMPC_SCALE1,  /* an f32 scale for each AMPC_CODE_BLOCK codes of MOMENT1 */
  AMPC_SCALE2,
  AMPC_SCALE3,
  AMPC_EMA, /* f32 averages of the weights, at their offsets in MASTER; eval and infer blocks read
               them */
  AMPC_BUFFER, /* state that is not trained, in any type: running statistics; frozen weights that
                  are stored in 16 bits or fewer */
  AMPC_KEPT,   /* steps of several bodies: BUFFER as it was before the first body */
  AMPC_CACHE,  /* of a decoder: what earlier calls have left of a text. Each sequence has one */
  AMPC_INPUT,  /* the batch of the current step */
  AMPC_WORK,   /* everything else, placed by lifetime */
  AMPC_SPACE_COUNT
} ampc_space;

typedef struct ampc_ref {
  ampc_space space;
  int64_t offset; /* bytes */
} ampc_ref;

/* Returns the smallest multiple of `multiple` that is not below n. */
int64_t ampc_round_up(int64_t n, int64_t multiple);
int64_t ampc_dtype_size(ampc_dtype t);     /* bytes */
const char *ampc_dtype_name(ampc_dtype t); /* "f32", ... */

#ifdef __cplusplus
}
#endif
#endif
