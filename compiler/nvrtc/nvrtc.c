/* NVRTC: see nvrtc.h. */
#include "nvrtc.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only an explicit fmaf fuses a multiply and an add, so the bits are those of the CPU. */
#define FLAG_CONTRACTION "--fmad=false"
#define FLAG_LANGUAGE    "--std=c++17"
#define FLAG_REPORT      "--ptxas-options=-v"

/* ---- the library ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static NvrtcApi loaded;
static bool is_loaded;
static char why_not[AMPC_WHY_ROOM];

static void load(void)
{
  static const ampc_symbol symbols[] = {
#define CUDA_API(result, name, parameters) {#name, offsetof(NvrtcApi, name)},
#include "nvrtc.def"
  };
  const ampc_library l = {"libnvrtc", symbols, sizeof symbols / sizeof *symbols, 0, 0, NULL};
  is_loaded = ampc_toolkit_open(&l, &loaded, why_not) != 0;
}

bool nvrtc_load(const NvrtcApi **out, char why[AMPC_WHY_ROOM])
{
  pthread_once(&once, load);
  if (!is_loaded) snprintf(why, AMPC_WHY_ROOM, "%s", why_not);
  *out = is_loaded ? &loaded : NULL;
  return is_loaded;
}

/* ---- one compilation ---- */

__attribute__((format(printf, 2, 3))) static void trouble(NvrtcImage *out, const char *fmt, ...)
{
  va_list args;
  va_start(args, fmt);
  if (vasprintf(&out->trouble, fmt, args) < 0) out->trouble = NULL;
  va_end(args);
}

/* Returns NVRTC's log, which the caller frees; "" if there is none; NULL: out of memory. */
static char *log_of(const NvrtcApi *api, NvrtcProgram p)
{
  size_t size = 0;
  if (api->nvrtcGetProgramLogSize(p, &size) != 0) size = 0;
  char *log = calloc(1, size + 1);
  if (log && size && api->nvrtcGetProgramLog(p, log) != 0) log[0] = 0;
  return log;
}

static void refused(const NvrtcApi *api, NvrtcProgram p, NvrtcResult r, const char *architecture,
                    NvrtcImage *out)
{
  char *log = log_of(api, p);
  trouble(out, "NVRTC refuses the kernels for %s: %s\n%s", architecture,
          api->nvrtcGetErrorString(r), log ? log : "");
  free(log);
}

static NvrtcResult take_image(const NvrtcApi *api, NvrtcProgram p, bool cubin, NvrtcImage *out)
{
  size_t size = 0;
  NvrtcResult r = cubin ? api->nvrtcGetCUBINSize(p, &size) : api->nvrtcGetPTXSize(p, &size);
  if (r != 0) return r;
  out->bytes = malloc(size + 1);
  if (!out->bytes) return 0;
  r = cubin ? api->nvrtcGetCUBIN(p, out->bytes) : api->nvrtcGetPTX(p, out->bytes);
  out->size = !cubin && size > 0 ? size - 1 : size; /* NVRTC counts PTX's NUL */
  out->bytes[out->size] = 0;
  return r;
}

static NvrtcResult take(const NvrtcApi *api, NvrtcProgram p, const char *architecture, bool report,
                        NvrtcImage *out)
{
  if (!report) return take_image(api, p, strncmp(architecture, "sm_", 3) == 0, out);
  out->report = log_of(api, p);
  return out->report ? take_image(api, p, false, out) : 0;
}

static bool compile(const NvrtcApi *api, const char *text, const char *architecture, bool report,
                    NvrtcImage *out)
{
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

bool nvrtc_compile(const NvrtcApi *api, const char *text, const char *architecture, NvrtcImage *out)
{
  return compile(api, text, architecture, false, out);
}

bool nvrtc_report(const NvrtcApi *api, const char *text, const char *architecture, NvrtcImage *out)
{
  return compile(api, text, architecture, true, out);
}

/* ---- queries ---- */

bool nvrtc_present(void)
{
  const NvrtcApi *api;
  char why[AMPC_WHY_ROOM];
  return nvrtc_load(&api, why);
}

void nvrtc_identity(const NvrtcApi *api, char *out, size_t size)
{
  int major = 0, minor = 0;
  api->nvrtcVersion(&major, &minor);
  snprintf(out, size, "nvrtc %d.%d " FLAG_CONTRACTION " " FLAG_LANGUAGE, major, minor);
}

bool nvrtc_architecture(const NvrtcApi *api, int capability, char out[24])
{
  int n = 0, best = 0;
  if (api->nvrtcGetNumSupportedArchs(&n) != 0 || n <= 0) return false;
  int *known = calloc((size_t)n, sizeof *known);
  bool good = known && api->nvrtcGetSupportedArchs(known) == 0;
  for (int i = 0; good && i < n; i++)
    if (known[i] <= capability && known[i] > best) best = known[i];
  free(known);
  snprintf(out, 24, "%s_%d", best / 10 == capability / 10 ? "sm" : "compute", best);
  return best > 0;
}
