/* The arguments of a kernel that makes the columns of a convolution: images and columns, and of a
 * gradient of images also weights, as they lie and turned. */
#pragma once
#include "ampc_rt.h"

enum { COLUMNS_ARGS = 4 };
typedef struct ColumnsArgs {
  int n;
  ampc_dtype type[COLUMNS_ARGS]; /* in the order of the kernel's arguments: reads, writes, .. */
  int64_t elements[COLUMNS_ARGS], size[COLUMNS_ARGS]; /* size: bytes of an element */
} ColumnsArgs;

ColumnsArgs columns_args(const ampc_conv *d, bool real64);
/* Allocates all, what is read with numbers. */
ampc_status columns_fill(const ColumnsArgs *a, void *out[COLUMNS_ARGS]);
void columns_free(void *args[COLUMNS_ARGS]);
