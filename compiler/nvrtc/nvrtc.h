/* Kernel text to PTX or a cubin through NVRTC, for --emit and for the JIT of the runner. */
#pragma once
#include "nvrtc_api.h"
#include "runtime/plan/toolkit.h"

typedef struct NvrtcImage {
  char *bytes; /* malloced; of PTX without the final zero */
  size_t size;
  char *trouble; /* malloced: why there are no bytes; NULL when there are */
} NvrtcImage;

/* `architecture`: "sm_90" gives a cubin, "compute_90" PTX. True with bytes, else with trouble; both
 * are the caller's. Safe from any thread. */
bool nvrtc_compile(const NvrtcApi *api, const char *text, const char *architecture,
                   NvrtcImage *out);
/* What ptxas says about each kernel, as the bytes of `out`: registers, shared memory, spills.
 * `architecture`: "sm_90" */
bool nvrtc_report(const NvrtcApi *api, const char *text, const char *architecture, NvrtcImage *out);
bool nvrtc_present(void); /* is NVRTC on this machine? */
/* The functions of the library, which is loaded when it is first asked for and kept until the
 * process ends; false with the reason in `why`. Safe from any thread. */
bool nvrtc_load(const NvrtcApi **out, char why[AMPC_WHY_ROOM]);
/* What decides the bytes beside the text and the architecture: "nvrtc 13.0 --fmad=false ..." */
void nvrtc_identity(const NvrtcApi *api, char *out, size_t size);
/* The architecture to compile for, for a GPU of this compute capability (90: 9.0): its own; else,
 * where NVRTC does not know it yet, the newest that runs on it: a cubin's within its major version,
 * or PTX. False: NVRTC knows none. */
bool nvrtc_architecture(const NvrtcApi *api, int capability, char out[24]);
