/* Convolutions as matrix products: Note [columns] in conv_tiling.c. */
#pragma once
#include "cpu.h"

ampc_status conv_by_product_prepare(GemmCache *products, bool real64, const ampc_conv *d);
ampc_status conv_by_product(Pool *pool, GemmCache *products, bool real64, const ampc_conv *d,
                            const ConvOperands *at);
