/* The two arguments of a kernel that makes the columns of a convolution, or images of them. */
#pragma once
#include "ampc_rt.h"

typedef struct ColumnsArgs {
  ampc_dtype type[2]; /* in the order of the kernel's arguments: what it reads, what it writes */
  int64_t elements[2], size[2]; /* size: bytes of an element */
} ColumnsArgs;

ColumnsArgs columns_args(const ampc_conv *d, bool real64);
/* Allocates both, the first one with numbers. */
ampc_status columns_fill(const ColumnsArgs *a, void *out[2]);
