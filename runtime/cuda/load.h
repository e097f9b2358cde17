/* NVIDIA's libraries, loaded when they are first asked for and kept until the process ends. Part of
 * the compiler too, so errors are texts: what is wrong and what to do, in one line. */
#pragma once
#include <stdbool.h>
#include "cuda_api.h"

enum { CUDA_ERROR_ROOM = 400 };

typedef struct CudaLoaded {
  CudaApi api;
  int driver;      /* the CUDA version that the driver supports: 12040 for 12.4; 0: no driver */
  int nvrtc, blas; /* major version in the library's name: 13; 0: not loaded */
} CudaLoaded;

/* Each gives the table with the functions of its library filled in; false with the reason in
 * `why`. Safe from any thread. */
bool cuda_load_driver(const CudaLoaded **out, char why[CUDA_ERROR_ROOM]); /* and calls cuInit */
bool cuda_load_nvrtc(const CudaLoaded **out, char why[CUDA_ERROR_ROOM]);
bool cuda_load_blas(const CudaLoaded **out, char why[CUDA_ERROR_ROOM]);
