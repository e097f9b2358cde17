/* Convolutions by kernels of the program and matrix products: conv.c. */
#pragma once
#include "cuda_device.h"

/* Bytes of scratch that it needs: no room for products where none runs. */
int64_t conv_own_scratch(const CudaDevice *d, const ampc_conv *c);
/* The workspace is that scratch. */
ampc_status conv_own(CudaDevice *d, const ampc_conv *c, const ConvOperands *at);
