/* Kernels to PTX or a cubin through NVRTC. The library is loaded when it is asked for, so that ampc
 * runs where there is no CUDA. The few functions used have had the same form since CUDA 11. */
#include "emit.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef void *NvrtcProgram;
typedef int NvrtcResult; /* 0: success */

typedef struct Nvrtc {
  void *library;
  NvrtcResult (*create)(NvrtcProgram *out, const char *text, const char *name, int n_headers,
                        const char *const *headers, const char *const *names);
  NvrtcResult (*compile)(NvrtcProgram p, int n, const char *const *options);
  NvrtcResult (*destroy)(NvrtcProgram *p);
  NvrtcResult (*log_size)(NvrtcProgram p, size_t *out);
  NvrtcResult (*log)(NvrtcProgram p, char *out);
  NvrtcResult (*ptx_size)(NvrtcProgram p, size_t *out);
  NvrtcResult (*ptx)(NvrtcProgram p, char *out);
  NvrtcResult (*cubin_size)(NvrtcProgram p, size_t *out);
  NvrtcResult (*cubin)(NvrtcProgram p, char *out);
  const char *(*error_text)(NvrtcResult r);
} Nvrtc;

static void *open_library(void)
{
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  glob_t found;
  void *library = NULL;
  if (glob("/usr/local/cuda*/lib64/libnvrtc.so.1[23]", 0, NULL, &found) == 0) {
    for (size_t i = found.gl_pathc; i > 0 && !library; i--)
      library = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
  }
  return library;
}

static bool find(void *library, const char *name, void *out)
{
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol); /* ISO C has no cast from object to function pointer */
  return symbol != NULL;
}

static bool nvrtc_open(Compile *c, Nvrtc *n)
{
  n->library = open_library();
  if (!n->library) {
    diag_error(c, E210, (Span){0}, "NVRTC is not on this machine, so there is no PTX to make");
    diag_help(c, "install the CUDA toolkit (12 or 13), or write CUDA C: ampc job.amp -o job.cu");
    return false;
  }
  return find(n->library, "nvrtcCreateProgram", &n->create) &&
         find(n->library, "nvrtcCompileProgram", &n->compile) &&
         find(n->library, "nvrtcDestroyProgram", &n->destroy) &&
         find(n->library, "nvrtcGetProgramLogSize", &n->log_size) &&
         find(n->library, "nvrtcGetProgramLog", &n->log) &&
         find(n->library, "nvrtcGetPTXSize", &n->ptx_size) &&
         find(n->library, "nvrtcGetPTX", &n->ptx) &&
         find(n->library, "nvrtcGetCUBINSize", &n->cubin_size) &&
         find(n->library, "nvrtcGetCUBIN", &n->cubin) &&
         find(n->library, "nvrtcGetErrorString", &n->error_text);
}

typedef struct Job { /* one call of NVRTC */
  Compile *c;
  const Nvrtc *n;
  NvrtcProgram program;
  const char *arch;
} Job;

static bool take_log(const Job *j, Text *out)
{
  size_t size = 0;
  if (j->n->log_size(j->program, &size) != 0) return false;
  if (size <= 1) return true;
  char *log = arena_alloc(j->c->arena, size, 1);
  if (j->n->log(j->program, log) != 0) return false;
  text_puts(out, log);
  return true;
}

static void report(const Job *j, NvrtcResult r)
{
  Text log;
  text_init(&log, j->c->arena);
  take_log(j, &log);
  diag_error(j->c, E210, (Span){0}, "NVRTC refuses the kernels for %s: %s\n%s", j->arch,
             j->n->error_text(r), log.at);
}

static bool take(const Job *j, NvrtcKind kind, Text *out)
{
  const Nvrtc *n = j->n;
  if (kind == NVRTC_report) return take_log(j, out);
  size_t size = 0;
  bool cubin = kind == NVRTC_cubin;
  NvrtcResult r = cubin ? n->cubin_size(j->program, &size) : n->ptx_size(j->program, &size);
  if (r == 0) {
    char *bytes = arena_alloc(j->c->arena, size + 1, 1);
    r = cubin ? n->cubin(j->program, bytes) : n->ptx(j->program, bytes);
    if (!cubin && size > 0) size--; /* NVRTC counts the final zero */
    if (r == 0) text_add(out, bytes, size);
  }
  if (r != 0) report(j, r);
  return r == 0;
}

/* In one piece: compiled in parts (--split-compile) kernels come out with other registers. */
static bool compile_kernels(Job *j, const Text *kernels, NvrtcKind kind, Text *out)
{
  bool real = kind != NVRTC_ptx; /* PTX is for a virtual architecture */
  const char *options[4] = {
      arena_printf(j->c->arena, "--gpu-architecture=%s%s", real ? "" : "compute_",
                   real ? j->arch : j->arch + 3),
      "--fmad=false", /* the same bits as on the CPU: products are contracted only by fmaf */
      "--std=c++17"};
  int n_options = 3;
  if (kind == NVRTC_report) options[n_options++] = "--ptxas-options=-v";
  NvrtcResult r = j->n->create(&j->program, kernels->at, "kernels.cu", 0, NULL, NULL);
  if (r != 0) {
    diag_error(j->c, E210, (Span){0}, "NVRTC does not start: %s", j->n->error_text(r));
    return false;
  }
  r = j->n->compile(j->program, n_options, options);
  if (r != 0) report(j, r);
  bool ok = r == 0 && take(j, kind, out);
  j->n->destroy(&j->program);
  return ok;
}

bool emit_nvrtc(Compile *c, const Text *kernels, const char *arch, NvrtcKind kind, Text *out)
{
  Nvrtc n;
  Job j = {.c = c, .n = &n, .arch = arch};
  bool ok = nvrtc_open(c, &n) && compile_kernels(&j, kernels, kind, out);
  if (n.library) dlclose(n.library);
  return ok;
}

int nvrtc_version(void)
{
  NvrtcResult (*version)(int *, int *);
  int major = 0, minor = 0;
  void *library = open_library();
  if (!library) return 0;
  if (!find(library, "nvrtcVersion", &version) || version(&major, &minor) != 0) major = 0;
  dlclose(library);
  return 1000 * major + 10 * minor;
}

static bool emit_compiled(Compile *c, NvrtcKind kind, Text *out)
{
  Text kernels;
  text_init(&kernels, c->arena);
  emit_kernels(c, &kernels);
  return emit_nvrtc(c, &kernels, c->options.target, kind, out);
}

bool emit_ptx(Compile *c, Text *out)
{
  return emit_compiled(c, NVRTC_ptx, out);
}

bool emit_cubin(Compile *c, Text *out)
{
  return emit_compiled(c, NVRTC_cubin, out);
}
