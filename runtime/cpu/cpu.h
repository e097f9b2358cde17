/* What the files of the CPU device share. */
#pragma once
#include "device.h"
#include "pool.h"

/* Once before the first product: see Note [gemm threads]. */
void cpu_gemm_set_up(void);
/* See ampc_gemm; operands are plain memory. */
ampc_status cpu_gemm(Pool *pool, bool real64, const ampc_gemm *g, const void *a, const void *b,
                     const void *bias, void *c, void *workspace);
