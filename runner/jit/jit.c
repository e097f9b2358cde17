/* From the kernels of a plan to functions in this process; see jit.h. */
#include "jit.h"
#include "cache.h"
#include "compiler/emit/emit.h"
#include "jit_cuda.h"
#include "toolchain.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Jit {
  void *library; /* on the CPU */
  CudaImages *cuda;
};

typedef struct JitKernel { /* as emit_kernels writes them */
  const char *name;
  ampc_cpu_kernel *function;
} JitKernel;

/* Into a file without a name yet, which takes its place in the cache when it is whole. */
static ampc_status build(const Cache *cache, const Toolchain *t, const Text *text, const char *path)
{
  char temporary[CACHE_PATH];
  ampc_status status = cache_begin(cache, temporary);
  if (status) return status;
  status = toolchain_build(t, text->at, text->n, temporary);
  if (status) {
    unlink(temporary);
    return status;
  }
  return cache_keep(temporary, path);
}

/* Built once, then found in the cache by its text and the compiler's identity. Closing the
 * cache may remove a temporary folder; what has been loaded stays. */
ampc_status jit_open(const Text *text, void **out_library)
{
  const Toolchain *t;
  ampc_status status = toolchain_find(&t);
  if (status) return status;
  Cache cache;
  status = cache_open(&cache);
  if (status) return status;
  char key[33], path[CACHE_PATH];
  cache_key(text->at, text->n, t->identity, key);
  cache_path(&cache, key, "so", path);
  if (!cache_has(path)) status = build(&cache, t, text, path);
  if (status == AMPC_OK) {
    *out_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*out_library)
      status = ampc_fail(AMPC_RUN_FAILED, "cannot load the kernels: %s", dlerror());
  }
  cache_close(&cache, path);
  return status;
}

ampc_cpu_kernel *jit_find(void *library, const char *name)
{
  const JitKernel *found = dlsym(library, "ampc_jit_kernels");
  for (; found && found->name; found++)
    if (strcmp(found->name, name) == 0) return found->function;
  ampc_fail(AMPC_RUN_FAILED, "the built kernels have no %s", name);
  return NULL;
}

/* Puts the functions of the library at the program's kernels. */
static ampc_status bind_kernels(Compile *c, void *library)
{
  ampc_program *p = c->program;
  ampc_kernel *kernels = arena_array(c->arena, ampc_kernel, p->n_kernels + 1);
  for (uint32_t i = 0; i < p->n_kernels; i++) {
    kernels[i] = p->kernels[i];
    kernels[i].function = (void (*)(void))jit_find(library, kernels[i].name);
    if (!kernels[i].function) return AMPC_RUN_FAILED;
  }
  p->kernels = kernels;
  return AMPC_OK;
}

static ampc_status load_cuda(Compile *c, TextEdit *edit, void *data, Jit **out)
{
  Jit *jit = calloc(1, sizeof *jit);
  if (!jit) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = jit_cuda_load(c, edit, data, &jit->cuda);
  *out = jit;
  if (status == AMPC_OK) return AMPC_OK;
  free(jit);
  *out = NULL;
  return status;
}

/* The library stays open as long as the Jit, for the program points into it. */
ampc_status jit_load_edited(Compile *c, TextEdit *edit, void *data, Jit **out)
{
  *out = NULL;
  if (strcmp(c->program->target, "cpu") != 0) return load_cuda(c, edit, data, out);
  Text text;
  text_init(&text, c->arena);
  emit_kernels(c, &text);
  if (edit) edit(&text, data);
  void *library;
  ampc_status status = jit_open(&text, &library);
  if (status) return status;
  status = bind_kernels(c, library);
  if (status == AMPC_OK) {
    *out = malloc(sizeof **out);
    if (*out)
      **out = (Jit){.library = library};
    else
      status = ampc_fail(AMPC_RUN_FAILED, "out of memory");
  }
  if (status) dlclose(library);
  return status;
}

ampc_status jit_load(Compile *c, Jit **out)
{
  return jit_load_edited(c, NULL, NULL, out);
}

void jit_unload(Jit *jit)
{
  if (!jit) return;
  if (jit->library) dlclose(jit->library);
  jit_cuda_unload(jit->cuda);
  free(jit);
}
