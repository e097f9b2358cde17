/* NVRTC: see nvrtc_image.h. */
#include "nvrtc_image.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same bits as on the CPU: products are contracted only by fmaf. */
#define FLAG_CONTRACTION "--fmad=false"
#define FLAG_LANGUAGE    "--std=c++17"
#define FLAG_REPORT      "--ptxas-options=-v"

__attribute__((format(printf, 2, 3))) static void trouble(NvrtcImage *out, const char *fmt, ...)
{
  va_list args;
  va_start(args, fmt);
  if (vasprintf(&out->trouble, fmt, args) < 0) out->trouble = NULL;
  va_end(args);
}

/* Malloced, "" where NVRTC says nothing; NULL: out of memory. */
static char *log_of(const CudaApi *api, NvrtcProgram p)
{
  size_t size = 0;
  if (api->nvrtcGetProgramLogSize(p, &size) != 0) size = 0;
  char *log = calloc(1, size + 1);
  if (log && size && api->nvrtcGetProgramLog(p, log) != 0) log[0] = 0;
  return log;
}

static void refused(const CudaApi *api, NvrtcProgram p, NvrtcResult r, const char *architecture,
                    NvrtcImage *out)
{
  char *log = log_of(api, p);
  trouble(out, "NVRTC refuses the kernels for %s: %s\n%s", architecture,
          api->nvrtcGetErrorString(r), log ? log : "");
  free(log);
}

static NvrtcResult take_image(const CudaApi *api, NvrtcProgram p, bool cubin, NvrtcImage *out)
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

static NvrtcResult take(const CudaApi *api, NvrtcProgram p, const char *architecture, bool report,
                        NvrtcImage *out)
{
  if (!report) return take_image(api, p, strncmp(architecture, "sm_", 3) == 0, out);
  out->bytes = log_of(api, p);
  out->size = out->bytes ? strlen(out->bytes) : 0;
  return 0;
}

static bool compile(const CudaLoaded *cuda, const char *text, const char *architecture, bool report,
                    NvrtcImage *out)
{
  const CudaApi *api = &cuda->api;
  char target[64];
  snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
  const char *options[] = {target, FLAG_CONTRACTION, FLAG_LANGUAGE, FLAG_REPORT};
  NvrtcProgram p = NULL;
  *out = (NvrtcImage){0};
  NvrtcResult r = api->nvrtcCreateProgram(&p, text, "kernels.cu", 0, NULL, NULL);
  if (r != 0) {
    trouble(out, "NVRTC does not start: %s", api->nvrtcGetErrorString(r));
    return false;
  }
  r = api->nvrtcCompileProgram(p, report ? 4 : 3, options);
  if (r == 0) r = take(api, p, architecture, report, out);
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

bool nvrtc_compile(const CudaLoaded *cuda, const char *text, const char *architecture,
                   NvrtcImage *out)
{
  return compile(cuda, text, architecture, false, out);
}

bool nvrtc_report(const CudaLoaded *cuda, const char *text, const char *architecture,
                  NvrtcImage *out)
{
  return compile(cuda, text, architecture, true, out);
}

bool nvrtc_present(void)
{
  const CudaLoaded *cuda;
  char why[CUDA_ERROR_ROOM];
  return cuda_load_nvrtc(&cuda, why);
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
