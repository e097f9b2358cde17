/* CUDA: counters that a block keeps in shared memory; the same names on the CPU are in cpu.h. */

// --- COUNTERS
/* n counters of a block, at 0; COUNT adds 1 to counter k for element j of a vector. When all have
 * counted, EACH_COUNTER walks them, and COUNTED(name, k) is what one has. */
#define COUNTERS(name, n)                                                                          \
  __shared__ unsigned name[n];                                                                     \
  __syncthreads(); /* those of the row before are read */                                          \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x) name[k] = 0;                            \
  __syncthreads()
#define COUNT(name, j, k) atomicAdd(&name[k], 1u)
#define COUNTED(name, k)  name[k]
#define EACH_COUNTER(k, n)                                                                         \
  __syncthreads();                                                                                 \
  for (unsigned k = threadIdx.x; k < (n); k += blockDim.x)
