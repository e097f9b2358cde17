/* Compiles kernel text to PTX or a cubin with NVRTC, for --emit and for the JIT of the runner. */
#pragma once
#include "nvrtc_api.h"
#include "runtime/plan/toolkit.h"

typedef struct NvrtcImage {
  char *bytes; /* allocated with malloc; PTX without its NUL */
  size_t size;
  char *trouble; /* allocated with malloc: why there are no bytes; NULL if there are */
} NvrtcImage;

/* `architecture`: "sm_90" gives a cubin, "compute_90" PTX. Returns true with bytes, or false with
 * trouble; the caller frees both. Safe from any thread. */
bool nvrtc_compile(const NvrtcApi *api, const char *text, const char *architecture,
                   NvrtcImage *out);
/* The report of ptxas on each kernel, as the bytes of `out`: registers, shared memory, spills.
 * `architecture`: "sm_90". */
bool nvrtc_report(const NvrtcApi *api, const char *text, const char *architecture, NvrtcImage *out);
bool nvrtc_present(void); /* is NVRTC on this machine? */
/* The functions of the library. The first call loads it, and it stays loaded until the process
 * ends. Returns false with the reason in `why`. Safe from any thread. */
bool nvrtc_load(const NvrtcApi **out, char why[AMPC_WHY_ROOM]);
/* Everything else that determines the bytes, besides text and architecture: "nvrtc 13.0
 * --fmad=false ...". */
void nvrtc_identity(const NvrtcApi *api, char *out, size_t size);
/* The architecture to compile for, for a GPU of this compute capability (90 means 9.0). It is the
 * GPU's own if NVRTC knows it, else the newest older one: a cubin within the same major version,
 * otherwise PTX. Returns false if NVRTC knows none. */
bool nvrtc_architecture(const NvrtcApi *api, int capability, char out[24]);
