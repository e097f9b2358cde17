/* CUDA: counters that a block keeps in shared memory. cpu.h defines the same names for the CPU. */

// --- COUNTERS
/* Declares n counters of a block and sets them to 0. COUNT adds 1 to counter k for element j of a
 * vector. After counting, EACH_COUNTER loops over the counters and COUNTED(name, k) reads one. */
#define COUNTERS(name, n)                                                                          \
  __shared__ unsigned name[n];                                                                     \
  __syncthreads(); /* all have read the last row's counters */                                     \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x) name[k] = 0;                            \
  __syncthreads()
#define COUNT(name, j, k) atomicAdd(&name[k], 1u)
#define COUNTED(name, k)  name[k]
#define EACH_COUNTER(k, n)                                                                         \
  __syncthreads();                                                                                 \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x)
