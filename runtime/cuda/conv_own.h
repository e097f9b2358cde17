/* Convolutions by the program's kernels and matrix products: conv.c. */
#pragma once
#include "cuda_device.h"

/* Bytes of scratch that conv_own needs; without a product, none for it. */
int64_t conv_own_scratch(const CudaDevice *d, const ampc_conv *c);
/* The workspace is this scratch. */
ampc_status conv_own(CudaDevice *d, const ampc_conv *c, const ConvOperands *at);
