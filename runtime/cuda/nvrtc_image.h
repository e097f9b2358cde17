/* Kernel text to PTX or a cubin through NVRTC. Part of the compiler too. */
#pragma once
#include "load.h"

typedef struct NvrtcImage {
  char *bytes; /* malloced; of PTX without the final zero */
  size_t size;
  char *trouble; /* malloced: why there are no bytes; NULL when there are */
} NvrtcImage;

/* `architecture`: "sm_90" gives a cubin, "compute_90" PTX. True with bytes, else with trouble; both
 * are the caller's. Safe from any thread. */
bool nvrtc_compile(const CudaLoaded *cuda, const char *text, const char *architecture,
                   NvrtcImage *out);
/* What ptxas says about each kernel, as the bytes of `out`: registers, shared memory, spills.
 * `architecture`: "sm_90" */
bool nvrtc_report(const CudaLoaded *cuda, const char *text, const char *architecture,
                  NvrtcImage *out);
bool nvrtc_present(void); /* is NVRTC on this machine? */
/* What decides the bytes beside the text and the architecture: "nvrtc 13.0 --fmad=false ..." */
void nvrtc_identity(const CudaLoaded *cuda, char *out, size_t size);
/* The architecture to compile for, for a GPU of this compute capability (90: 9.0): its own; else,
 * where NVRTC does not know it yet, the newest that runs on it: a cubin's within its major version,
 * or PTX. False: NVRTC knows none. */
bool nvrtc_architecture(const CudaLoaded *cuda, int capability, char out[24]);
