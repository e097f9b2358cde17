/* The relu of products whose library turns NaN into 0: Note [NaN through a product] in gemm.c. It
 * is written in PTX, because the runtime has no CUDA compiler. */
#include <stdio.h>
#include "cuda_device.h"
#include "runtime/plan/types.h"

/* The bits of negative numbers, read as integers, are a range from the one after -0 to -inf:
 * `count` values from `first` on. NaN and -0 are outside and stay, as in ampc_relu. One thread per
 * element. Rows of `columns` elements have gaps of `gap` elements between them. */
#define RELU(BITS, BYTES)                                                                          \
  ".visible .entry ampc_relu" BITS "(.param .u64 x_, .param .u64 n_, .param .u64 first_,\n"        \
  "                            .param .u64 count_, .param .u64 columns_, .param .u64 gap_)\n"      \
  "{\n"                                                                                            \
  "  .reg .pred %outside;\n"                                                                       \
  "  .reg .u32 %block, %size, %thread;\n"                                                          \
  "  .reg .u64 %x, %n, %i, %t, %wide;\n"                                                           \
  "  .reg .u" BITS " %first, %count, %bits, %zero;\n"                                              \
  "  ld.param.u64 %x, [x_];\n"                                                                     \
  "  ld.param.u64 %n, [n_];\n"                                                                     \
  "  mov.u32 %block, %ctaid.x;\n"                                                                  \
  "  mov.u32 %size, %ntid.x;\n"                                                                    \
  "  mov.u32 %thread, %tid.x;\n"                                                                   \
  "  mul.wide.u32 %i, %block, %size;\n"                                                            \
  "  cvt.u64.u32 %t, %thread;\n"                                                                   \
  "  add.u64 %i, %i, %t;\n"                                                                        \
  "  setp.ge.u64 %outside, %i, %n;\n"                                                              \
  "  @%outside bra done;\n"                                                                        \
  "  ld.param.u64 %wide, [columns_];\n"                                                            \
  "  div.u64 %t, %i, %wide;\n"                                                                     \
  "  ld.param.u64 %wide, [gap_];\n"                                                                \
  "  mad.lo.u64 %i, %t, %wide, %i;\n"                                                              \
  "  cvta.to.global.u64 %x, %x;\n"                                                                 \
  "  mad.lo.u64 %x, %i, " BYTES ", %x;\n"                                                          \
  "  ld.param.u64 %wide, [first_];\n"                                                              \
  "  cvt.u" BITS ".u64 %first, %wide;\n"                                                           \
  "  ld.param.u64 %wide, [count_];\n"                                                              \
  "  cvt.u" BITS ".u64 %count, %wide;\n"                                                           \
  "  ld.global.u" BITS " %bits, [%x];\n"                                                           \
  "  sub.u" BITS " %bits, %bits, %first;\n"                                                        \
  "  setp.ge.u" BITS " %outside, %bits, %count;\n"                                                 \
  "  @%outside bra done;\n"                                                                        \
  "  mov.u" BITS " %zero, 0;\n"                                                                    \
  "  st.global.u" BITS " [%x], %zero;\n"                                                           \
  "done:\n"                                                                                        \
  "  ret;\n"                                                                                       \
  "}\n"

/* PTX for the oldest GPU that programs support; newer GPUs accept it, too. */
const char cuda_relu_ptx[] = ".version 6.3\n"
                             ".target sm_70\n"
                             ".address_size 64\n" RELU("16", "2") RELU("32", "4") RELU("64", "8");

typedef struct Format { /* the range of a type's negative numbers */
  int bits;
  uint64_t first, count; /* first: the bits after -0; count: the bits of +inf */
} Format;

static Format format_of(const CudaDevice *d, ampc_dtype type)
{
  int64_t size = ampc_element_size(d->program, type);
  int mantissa = size == 8 ? 52 : ampc_type_of(type)->mantissa;
  uint64_t sign = 1ull << (8 * size - 1);
  return (Format){(int)size * 8, sign + 1, sign - (1ull << mantissa)};
}

ampc_status cuda_relu(CudaDevice *d, ampc_dtype type, void *x, const Rows *rows)
{
  Format f = format_of(d, type);
  char kernel[16];
  snprintf(kernel, sizeof kernel, "ampc_relu%d", f.bits);
  CuPointer at = cuda_address(x);
  int64_t n = rows->count * rows->columns;
  uint64_t elements = (uint64_t)n, columns = (uint64_t)rows->columns, gap = (uint64_t)rows->gap;
  void *arguments[] = {&at, &elements, &f.first, &f.count, &columns, &gap};
  return cuda_run_own(d, OWN_RELU, kernel, (n + OWN_BLOCK - 1) / OWN_BLOCK, arguments);
}
