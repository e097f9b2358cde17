/* The instructions of tensor cores that kernels use, for the 32 lanes of a warp. */
#pragma once
#include <stdint.h>

/* Executes an instruction. Element i of `lanes` has the operands of thread first + i and receives
 * its results, as 32-bit words in the order of the instruction. */
typedef void SimtMatrix(unsigned first, uint32_t *const lanes[32]);

SimtMatrix simt_matrix_rows;     /* ldmatrix.sync.aligned.m8n8.x4.shared.b16 */
SimtMatrix simt_matrix_columns;  /* the same with .trans */
SimtMatrix simt_matrix_add_f16;  /* mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 */
SimtMatrix simt_matrix_add_bf16; /* the same with .bf16 */
