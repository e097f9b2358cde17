/* The arguments of the kernels that convolutions have only on CUDA: see conv_columns.h. */
#pragma once
#include "ampc_rt.h"
#include "runtime/plan/conv_columns.h"

typedef struct ColumnsArgs {
  uint32_t n;
  ampc_dtype type[CONV_KERNEL_ARGS]; /* one for each of the kernel's arguments, in order */
  bool read[CONV_KERNEL_ARGS];       /* true: filled with numbers before the launch */
  int64_t elements[CONV_KERNEL_ARGS], size[CONV_KERNEL_ARGS]; /* size: bytes of an element */
} ColumnsArgs;

ColumnsArgs columns_args(const ampc_conv *d, bool real64);
/* Allocates all arguments, and fills those that the kernel reads; the others with NaN. */
ampc_status columns_fill(const ColumnsArgs *a, void *out[CONV_KERNEL_ARGS]);
/* True if the kernel has written all elements of the arguments that it does not read. */
bool columns_are_written(const ColumnsArgs *a, void *const at[CONV_KERNEL_ARGS]);
void columns_free(void *args[CONV_KERNEL_ARGS]);
