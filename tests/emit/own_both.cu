// both: x and b are one tensor here
float *const mine = (float *)shared;
if (flag) mine[threadIdx.x] = x[0] + b[0];
__syncthreads();
for (int64_t at = threadIdx.x; at < N; at += blockDim.x) y[at] = mine[0] * k + eps;
