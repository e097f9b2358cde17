/* Convolutions by the program's kernels and matrix products: conv.c. */
#pragma once
#include "cuda_device.h"

/* Returns the bytes of scratch that conv_own needs, with space for a product if it needs one. */
int64_t conv_own_scratch(const CudaDevice *d, const ampc_conv *c);
/* Computes the convolution; at->workspace has conv_own_scratch bytes. */
ampc_status conv_own(CudaDevice *d, const ampc_conv *c, const ConvOperands *at);
