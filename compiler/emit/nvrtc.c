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

static void report(Compile *c, const Nvrtc *n, NvrtcProgram p, NvrtcResult r)
{
  size_t size = 0;
  char *log = "";
  if (n->log_size(p, &size) == 0 && size > 1) {
    log = arena_alloc(c->arena, size, 1);
    n->log(p, log);
  }
  diag_error(c, E210, (Span){0}, "NVRTC refuses the kernels for %s: %s\n%s", c->options.target,
             n->error_text(r), log);
}

static bool take(Compile *c, const Nvrtc *n, NvrtcProgram p, bool cubin, Text *out)
{
  size_t size = 0;
  NvrtcResult r = cubin ? n->cubin_size(p, &size) : n->ptx_size(p, &size);
  if (r == 0) {
    char *bytes = arena_alloc(c->arena, size + 1, 1);
    r = cubin ? n->cubin(p, bytes) : n->ptx(p, bytes);
    if (!cubin && size > 0) size--; /* NVRTC counts the final zero */
    if (r == 0) text_add(out, bytes, size);
  }
  if (r != 0) report(c, n, p, r);
  return r == 0;
}

static bool compile_kernels(Compile *c, const Nvrtc *n, bool cubin, Text *out)
{
  Text text;
  text_init(&text, c->arena);
  emit_kernels(c, &text);
  const char *options[] = {
      arena_printf(c->arena, "--gpu-architecture=%s", c->options.target),
      "--fmad=false", /* the same bits as on the CPU: products are contracted only by fmaf */
      "--std=c++17"};
  if (!cubin) /* PTX is for a virtual architecture */
    options[0] = arena_printf(c->arena, "--gpu-architecture=compute_%s", c->options.target + 3);
  NvrtcProgram p;
  NvrtcResult r = n->create(&p, text.at, "kernels.cu", 0, NULL, NULL);
  if (r != 0) {
    diag_error(c, E210, (Span){0}, "NVRTC does not start: %s", n->error_text(r));
    return false;
  }
  r = n->compile(p, 3, options);
  if (r != 0) report(c, n, p, r);
  bool ok = r == 0 && take(c, n, p, cubin, out);
  n->destroy(&p);
  return ok;
}

static bool emit_compiled(Compile *c, bool cubin, Text *out)
{
  Nvrtc n;
  bool ok = nvrtc_open(c, &n) && compile_kernels(c, &n, cubin, out);
  if (n.library) dlclose(n.library);
  return ok;
}

bool emit_ptx(Compile *c, Text *out)
{
  return emit_compiled(c, false, out);
}

bool emit_cubin(Compile *c, Text *out)
{
  return emit_compiled(c, true, out);
}
