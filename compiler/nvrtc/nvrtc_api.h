/* The functions of NVRTC, libnvrtc.so.13 or .12. The prototypes are part of this project: the
 * library is loaded at run time, and its header is never included. nvrtc.def lists the
 * functions. */
#pragma once
#include <stddef.h>

typedef int NvrtcResult; /* 0: success */
typedef struct _nvrtcProgram *NvrtcProgram;

typedef struct NvrtcApi {
#define CUDA_API(result, name, parameters) result(*name) parameters;
#include "nvrtc.def"
} NvrtcApi;
