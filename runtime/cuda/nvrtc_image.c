/* NVRTC: see nvrtc_image.h. */
#include "nvrtc_image.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same bits as on the CPU: products are contracted only by fmaf. */
#define FLAG_CONTRACTION "--fmad=false"
#define FLAG_LANGUAGE    "--std=c++17"

__attribute__((format(printf, 2, 3))) static void trouble(NvrtcImage *out, const char *fmt, ...)
{
  va_list args;
  va_start(args, fmt);
  if (vasprintf(&out->trouble, fmt, args) < 0) out->trouble = NULL;
  va_end(args);
}

static void refused(const CudaApi *api, NvrtcProgram p, NvrtcResult r, const char *architecture,
                    NvrtcImage *out)
{
  size_t size = 0;
  char *log = api->nvrtcGetProgramLogSize(p, &size) == 0 && size > 1 ? malloc(size) : NULL;
  if (log && api->nvrtcGetProgramLog(p, log) != 0) log[0] = 0;
  trouble(out, "NVRTC refuses the kernels for %s: %s\n%s", architecture,
          api->nvrtcGetErrorString(r), log ? log : "");
  free(log);
}

static NvrtcResult take(const CudaApi *api, NvrtcProgram p, bool cubin, NvrtcImage *out)
{
  size_t size = 0;
  NvrtcResult r = cubin ? api->nvrtcGetCUBINSize(p, &size) : api->nvrtcGetPTXSize(p, &size);
  if (r != 0) return r;
  out->bytes = malloc(size + 1);
  if (!out->bytes) return 0;
  r = cubin ? api->nvrtcGetCUBIN(p, out->bytes) : api->nvrtcGetPTX(p, out->bytes);
  out->size = !cubin && size > 0 ? size - 1 : size; /* NVRTC counts the final zero of PTX */
  out->bytes[out->size] = 0;
  return r;
}

bool nvrtc_compile(const CudaLoaded *cuda, const char *text, const char *architecture,
                   NvrtcImage *out)
{
  const CudaApi *api = &cuda->api;
  char target[64];
  snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
  const char *options[] = {target, FLAG_CONTRACTION, FLAG_LANGUAGE};
  NvrtcProgram p = NULL;
  *out = (NvrtcImage){0};
  NvrtcResult r = api->nvrtcCreateProgram(&p, text, "kernels.cu", 0, NULL, NULL);
  if (r != 0) {
    trouble(out, "NVRTC does not start: %s", api->nvrtcGetErrorString(r));
    return false;
  }
  r = api->nvrtcCompileProgram(p, 3, options);
  if (r == 0) r = take(api, p, strncmp(architecture, "sm_", 3) == 0, out);
  if (r != 0) {
    refused(api, p, r, architecture, out);
    free(out->bytes);
    out->bytes = NULL;
  } else if (!out->bytes) {
    trouble(out, "out of memory for compiled kernels");
  }
  api->nvrtcDestroyProgram(&p);
  return out->bytes != NULL;
}

void nvrtc_identity(const CudaLoaded *cuda, char *out, size_t size)
{
  int major = 0, minor = 0;
  cuda->api.nvrtcVersion(&major, &minor);
  snprintf(out, size, "nvrtc %d.%d " FLAG_CONTRACTION " " FLAG_LANGUAGE, major, minor);
}

bool nvrtc_architecture(const CudaLoaded *cuda, int capability, char out[24])
{
  int n = 0, best = 0;
  if (cuda->api.nvrtcGetNumSupportedArchs(&n) != 0 || n <= 0) return false;
  int *known = calloc((size_t)n, sizeof *known);
  bool good = known && cuda->api.nvrtcGetSupportedArchs(known) == 0;
  for (int i = 0; good && i < n; i++)
    if (known[i] <= capability && known[i] > best) best = known[i];
  free(known);
  snprintf(out, 24, "%s_%d", best / 10 == capability / 10 ? "sm" : "compute", best);
  return best > 0;
}
