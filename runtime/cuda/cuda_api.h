/* NVIDIA's driver and cuBLASLt with prototypes of our own: handles are pointers to undefined
 * structs, enumerations are ints. The functions come from libraries that are loaded at run time
 * (load.h); driver.def and blas.def list them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* ---- the driver: libcuda.so.1 ---- */

typedef int CuResult, CuDevice, CuDeviceAttribute, CuCaptureMode, CuJitOption;
typedef unsigned long long CuPointer; /* a device address */
typedef struct CUctx_st *CuContext;
typedef struct CUstream_st *CuStream;
typedef struct CUevent_st *CuEvent;
typedef struct CUmod_st *CuModule;
typedef struct CUfunc_st *CuFunction;
typedef struct CUgraph_st *CuGraph;
typedef struct CUgraphExec_st *CuGraphExec;

enum { /* CuResult, those that the code distinguishes */
       CUDA_SUCCESS = 0,
       CUDA_ERROR_OUT_OF_MEMORY = 2,
       CUDA_ERROR_STUB_LIBRARY = 34,
       CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
       CUDA_ERROR_NO_DEVICE = 100,
       CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
       CUDA_ERROR_NOT_READY = 600,
       CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
};
enum { /* CuDeviceAttribute */
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
       CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
       CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};
enum { CU_COMPUTEMODE_PROHIBITED = 2, CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_EVENT_RECORD_EXTERNAL = 1 }; /* in a capture: a node of the graph that can be timed */
enum { CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

/* ---- cuBLASLt: libcublasLt.so.13 or .12 ---- */

typedef int LtStatus, LtCompute, LtType, LtMatmulAttribute, LtLayoutAttribute,
    LtPreferenceAttribute;
typedef struct cublasLtContext *LtHandle;
typedef struct LtOpaqueMatmul *LtMatmul;
typedef struct LtOpaqueLayout *LtLayout;
typedef struct LtOpaquePreference *LtPreference;
typedef struct LtAlgorithm {
  uint64_t data[8];
} LtAlgorithm;
typedef struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace;
  LtStatus state; /* 0: usable */
  float waves;
  int reserved[4];
} LtHeuristic;

enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum {                                           /* LtMatmulAttribute, with the type of the value */
       CUBLASLT_MATMUL_DESC_TRANSA = 3,          /* int32_t */
       CUBLASLT_MATMUL_DESC_TRANSB = 4,          /* int32_t */
       CUBLASLT_MATMUL_DESC_EPILOGUE = 7,        /* uint32_t */
       CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,    /* const void * */
       CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26, /* int32_t */
};
enum { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_RELU = 2, CUBLASLT_EPILOGUE_BIAS = 4 };
enum {                                                  /* LtLayoutAttribute */
       CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32_t */
       CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t, elements */
};
enum {                                                 /* LtPreferenceAttribute */
       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   /* uint64_t */
       CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, /* uint32_t */
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32_t */
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};
/* A second kernel adds the parts of a long sum, in a fixed order and in f32. INPLACE (1) would
 * round each part to the type of the result. */
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };

/* ---- the functions ---- */

typedef struct CudaApi { /* NULL if the library is not loaded */
#define CUDA_API(result, name, parameters) result(*name) parameters;
#include "driver.def"
#define CUDA_API(result, name, parameters) result(*name) parameters;
#include "blas.def"
} CudaApi;
