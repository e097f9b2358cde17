/* The numbers that the NVRTC gate reads from cubins, for kernels with known resources. Status 77
 * without NVRTC. */
#include "check.h"
#include "cubin.h"
#include "compiler/nvrtc/nvrtc.h"

static const char text[] =
    "extern \"C\" __global__ void plain(float *x) { x[threadIdx.x] = 1; }\n"
    "extern \"C\" __global__ void shares(float *x) {\n"
    "  __shared__ float s[300]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();\n"
    "  x[threadIdx.x] = s[299 - threadIdx.x]; }\n"
    "extern \"C\" __global__ void __launch_bounds__(1024, 2) spills(float *x) {\n"
    "  float v[100];\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 100; i++) v[i] = x[i * 1024 + threadIdx.x];\n"
    "  __syncthreads();\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 100; i++) x[i * 1024 + threadIdx.x] = v[99 - i] * v[i]; }\n";

int main(void)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM];
  if (!nvrtc_load(&nvrtc, why)) {
    fprintf(stderr, "skipped: %s\n", why);
    return 77;
  }
  NvrtcImage image;
  MUST(nvrtc_compile(nvrtc, text, "sm_80", &image));
  KernelNeeds plain, shares, spills, none;
  MUST(cubin_needs(image.bytes, image.size, "plain", &plain));
  MUST(cubin_needs(image.bytes, image.size, "shares", &shares));
  MUST(cubin_needs(image.bytes, image.size, "spills", &spills));
  CHECK(plain.registers >= 4 && plain.registers <= 16 && plain.shared == 0 && plain.local == 0);
  CHECK(shares.shared == 1200 && shares.local == 0);
  CHECK(spills.registers == 32 && spills.local > 0);
  CHECK(!cubin_needs(image.bytes, image.size, "other", &none));
  for (size_t size = 0; size < image.size; size += 97) /* truncated: no read out of bounds */
    cubin_needs(image.bytes, size, "plain", &none);
  free(image.bytes);
  return check_done();
}
