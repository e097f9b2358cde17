/* Compiles kernel text to PTX or a cubin with NVRTC, for --emit and for the JIT of the runner. */
#pragma once
#include "nvrtc_api.h"
#include "common/toolkit.h"

typedef struct NvrtcImage {
  char *bytes; /* the caller frees it; PTX without its NUL */
  size_t size;
  char *report;  /* nvrtc_report(): the report of ptxas; the caller frees it; else NULL */
  char *trouble; /* why there are no bytes; the caller frees it; NULL: there are bytes */
} NvrtcImage;

/* Compiles to a cubin for architecture "sm_90", to PTX for "compute_90". Returns true with bytes,
 * or false with trouble; the caller frees them. Thread-safe. */
bool nvrtc_compile(const NvrtcApi *api, const char *text, const char *architecture,
                   NvrtcImage *out);
/* Compiles to PTX, and also sets out->report: the registers, shared memory and spills of each
 * kernel on `architecture`, such as "sm_90". Otherwise as nvrtc_compile(). */
bool nvrtc_report(const NvrtcApi *api, const char *text, const char *architecture, NvrtcImage *out);
bool nvrtc_present(void); /* true if NVRTC is on this machine */
/* Returns the functions of the library in *out. The first call loads the library, which stays
 * loaded until the process ends. Returns false with the reason in `why`. Thread-safe. */
bool nvrtc_load(const NvrtcApi **out, char why[AMPC_WHY_ROOM]);
/* Writes what else (not text, not architecture) determines the bytes: "nvrtc 13.0 --fmad=false
 * ..". */
void nvrtc_identity(const NvrtcApi *api, char *out, size_t size);
/* Writes the architecture to compile for, for a GPU of this compute capability (90 means 9.0). It
 * is the GPU's own if NVRTC supports that, else the newest older one: a cubin within the same major
 * version, otherwise PTX. Returns false if NVRTC supports none. */
bool nvrtc_architecture(const NvrtcApi *api, int capability, char out[24]);
