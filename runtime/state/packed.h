/* Quantizes matrices: Note [packed] in runtime/plan/types.h. */
#pragma once
#include "runtime/plan/types.h"

/* The values of NF4, in ascending order. */
extern const float packed_nf4[16];
/* Quantizes n elements, which are whole blocks. False if a value is not finite. */
bool packed_from(ampc_packing packing, int64_t block, const float *from, int64_t n, uint8_t *codes,
                 float *scales);
/* Computes the values of n elements as kernels do. */
void packed_to(ampc_packing packing, int64_t block, const uint8_t *codes, const float *scales,
               float *to, int64_t n);
