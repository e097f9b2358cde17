/* NVIDIA's own libraries, if they are installed, without a GPU. cuBLASLt accepts every attribute
 * that ampc sets, in the size that ampc passes. NVRTC compiles for each architecture that it knows,
 * and nvrtc_architecture names a fallback for others. Exits with 77 (skipped) without libraries. */
#include "check.h"
#include "compiler/nvrtc/nvrtc.h"
#include "runtime/cuda/load.h"

static void check_blas(const CudaApi *api)
{
  LtMatmul matmul;
  LtLayout layout;
  LtPreference preference;
  const void *pointer = NULL;
  uint64_t wide = 1 << 20;
  uint32_t narrow = CUBLAS_OP_T;
  MUST(api->cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F) == 0);
#define TAKES(kind, object, what, value)                                                           \
  CHECK(api->cublasLt##kind##SetAttribute(object, what, &(value), sizeof(value)) == 0)
  TAKES(MatmulDesc, matmul, CUBLASLT_MATMUL_DESC_TRANSA, narrow);
  TAKES(MatmulDesc, matmul, CUBLASLT_MATMUL_DESC_TRANSB, narrow);
  narrow = CUBLASLT_EPILOGUE_BIAS;
  TAKES(MatmulDesc, matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, narrow);
  TAKES(MatmulDesc, matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
  narrow = CUDA_R_16BF;
  TAKES(MatmulDesc, matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, narrow);
  MUST(api->cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, 3, 5, 7) == 0);
  TAKES(MatrixLayout, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, narrow);
  TAKES(MatrixLayout, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, wide);
  MUST(api->cublasLtMatmulPreferenceCreate(&preference) == 0);
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, wide);
  narrow = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, narrow);
  narrow = 128;
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, narrow);
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, narrow);
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, narrow);
  TAKES(MatmulPreference, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, narrow);
  CHECK(api->cublasLtMatmulPreferenceDestroy(preference) == 0);
  CHECK(api->cublasLtMatrixLayoutDestroy(layout) == 0);
  CHECK(api->cublasLtMatmulDescDestroy(matmul) == 0);
  CHECK(api->cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)[0] != 0);
}

static void check_compiles(const NvrtcApi *nvrtc, const char *architecture, const char *begins)
{
  NvrtcImage image;
  CHECK_MSG(nvrtc_compile(nvrtc, "extern \"C\" __global__ void k(float *x) { *x = 1; }",
                          architecture, &image),
            "%s: %s", architecture, image.trouble);
  CHECK(image.bytes && image.size > 100 && !image.trouble && strstr(image.bytes, begins));
  free(image.bytes);
  free(image.trouble);
}

static void check_nvrtc(const NvrtcApi *nvrtc)
{
  char architecture[24];
  NvrtcImage image;
  CHECK(nvrtc_architecture(nvrtc, 90, architecture) && strcmp(architecture, "sm_90") == 0);
  check_compiles(nvrtc, architecture, "ELF");
  check_compiles(nvrtc, "compute_90", ".version");
  CHECK(nvrtc_architecture(nvrtc, 909, architecture)); /* newer than NVRTC: PTX */
  CHECK(strncmp(architecture, "compute_", 8) == 0);
  check_compiles(nvrtc, architecture, ".version");
  CHECK(!nvrtc_architecture(nvrtc, 30, architecture));
  CHECK(!nvrtc_compile(nvrtc, "what is this", "sm_90", &image) && !image.bytes);
  CHECK(image.trouble && strstr(image.trouble, "sm_90"));
  free(image.trouble);
}

int main(void)
{
  char why[AMPC_WHY_ROOM];
  const NvrtcApi *nvrtc;
  const CudaApi *cuda;
  if (nvrtc_load(&nvrtc, why)) check_nvrtc(nvrtc);
  if (cuda_load_blas(&cuda, why)) check_blas(cuda);
  if (!nvrtc && !cuda) return 77;
  return check_done();
}
