/* THE table of element types, and the table of memory spaces. */
#pragma once
#include "ampc_plan.h"

enum { AMPC_WHY_ROOM = 800 }; /* bytes of a reason: what is wrong and what to do, in one line */

/* A row of a float type:
 *   KIND, name   AMPC_KIND; the type is called KIND in safetensors and `name` everywhere else
 *   SPACE, copy  the space for copies of weights in the type; their name in kernels and ampc_param
 *   cpu, lt, dnn the constant of oneDNN, cuBLASLt, cuDNN; only the library's callers expand it
 * and the fields of ampc_type from `size` on. Kernels have from_name, to_name and round_name in
 * templates/cpu.h and cuda.cuh; the host has name_widen, name_narrow in runtime/base/convert.c. */
#define AMPC_NARROW_FLOATS(ROW)                                                                    \
  ROW(F16, f16, COPY16, copy16, dnnl_f16, CUDA_R_16F, CUDNN_DATA_HALF, 2, "f16", "uint16_t",       \
      "<f2", 5, 10, 65504, 65520, 0x1p-24, 0x1p-14, "65504", "5.96e-8", 0)                         \
  ROW(BF16, bf16, COPYBF, copybf, dnnl_bf16, CUDA_R_16BF, CUDNN_DATA_BFLOAT16, 2, "bf16",          \
      "uint16_t", "", 8, 7, 0x1.fep127, 0x1.ffp127, 0x1p-133, 0x1p-126, "3.38953e38", "9.2e-41",   \
      80)
#define AMPC_FLOATS(ROW)                                                                           \
  ROW(F32, f32, NONE, none, dnnl_f32, CUDA_R_32F, CUDNN_DATA_FLOAT, 4, "real", "float", "<f4", 8,  \
      23, 0x1.fffffep127, 0x1.ffffffp127, 0x1p-149, 0x1p-126, "3.40282e38", "1.4e-45", 0)          \
  AMPC_NARROW_FLOATS(ROW)

typedef struct ampc_type {
  const char *name, *constant; /* name: "bf16"; constant: "AMPC_BF16" */
  ampc_space copies; /* space of the copies of weights in this type; AMPC_NONE: no such space */
  int64_t size;      /* bytes */
  const char *kernel, *c; /* type in kernels; in C, where a narrow float is an integer */
  const char *npy;        /* type in NPY files; "": NumPy has no such type, so files have f32 */
  /* The fields below are of floats only. */
  int exponent, mantissa; /* bits */
  double greatest;        /* largest finite value */
  double overflow;        /* numbers from here on round to infinity: `greatest` plus half an ulp */
  double least;           /* smallest value above 0; numbers up to half of it round to 0 */
  double normal;          /* smallest normal value: from here on numbers have full precision */
  const char *greatest_text, *least_text; /* for messages: "65504", "5.96e-8" */
  int capability; /* compute capability of the first GPUs with full speed in this type; 0: all */
} ampc_type;

const ampc_type *ampc_type_of(ampc_dtype d);
int64_t ampc_size_of(ampc_dtype d, bool real64); /* bytes; f32 is 8 with real64 */
bool ampc_is_float(ampc_dtype d);
bool ampc_is_narrow(ampc_dtype d);          /* a float of fewer bits than f32 */
ampc_dtype ampc_dtype_by(const char *name); /* AMPC_DTYPE_COUNT: no such type */

/* Note [packed]: a frozen matrix that is quantized has codes of a byte (int8) or half a byte (nf4).
 * A block of elements has the same scale, the largest magnitude in it, as an f32: a row of int8, 64
 * elements of nf4. An element is the value of its code, from -1 to 1, times the scale. BUFFER holds
 * all codes, then all scales. A code of int8 is 128 + k for the value k / 127. A byte of nf4 holds
 * two codes, the first one in its upper half, as bitsandbytes stores them. The host reads and
 * writes f32. Values that were read quantize to the same codes and scales again: the element of the
 * largest magnitude has the value 1 or -1 times the scale, which is exact. */
typedef struct ampc_packed { /* the codes and scales of a matrix */
  int64_t block;             /* elements that share a scale */
  int64_t codes;             /* bytes of all codes */
  int64_t scales;            /* offset of the scales, in bytes */
  int64_t bytes;             /* all in all */
} ampc_packed;
ampc_packed ampc_packed_of(ampc_packing packing, int64_t rows, int64_t columns);
const char *ampc_packing_name(ampc_packing packing); /* "nf4" */

/* Writes "u8[28, 28]" to `to`. */
enum { AMPC_TYPE_ROOM = 200 };
const char *ampc_type_text(char to[AMPC_TYPE_ROOM], ampc_dtype d, uint32_t rank,
                           const int64_t *dim);

typedef struct ampc_space_row {
  const char *name, *constant; /* name: "copy16"; constant: "AMPC_COPY16" */
  ampc_dtype type;             /* type of its elements; AMPC_DTYPE_COUNT: several types. Use
                                  ampc_space_type: a program may have weights and moments in bf16 */
  const char *shown, *purpose; /* shown: "f16 copies"; purpose: "f16 copies of weights" */
} ampc_space_row;

const ampc_space_row *ampc_space_of(ampc_space s);
/* Returns the type of the elements of a space in this program; AMPC_DTYPE_COUNT: several types. */
ampc_dtype ampc_space_type(const ampc_program *p, ampc_space s);
/* Returns what the space is for, with its type if that depends on the program. */
const char *ampc_space_purpose(const ampc_program *p, ampc_space s);
bool ampc_space_is_moment(ampc_space s); /* or of the scales of moments */
int64_t ampc_space_each(ampc_space s);   /* elements of a parameter for one of the space */

#define AMPC_CONSTANT(KIND, ...)     AMPC_##KIND,
#define AMPC_QUOTED(KIND, name, ...) #name,
/* "f16, bf16, ": for messages. */
#define AMPC_LISTED(KIND, name, ...) #name ", "
#define AMPC_NARROW_LIST             AMPC_NARROW_FLOATS(AMPC_LISTED)
