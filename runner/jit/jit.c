/* Builds and loads the kernels of a plan; see jit.h. */
#include "jit.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/cache.h"
#include "compiler/kernel/kernels.h"
#include "jit_cuda.h"
#include "notice.h"
#include "toolchain.h"
#include "common/level.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct Jit {
  void *library; /* the library; CPU only */
  CudaImages *cuda;
};

typedef struct JitKernel { /* a row of the table that emit_kernels writes */
  const char *name;
  ampc_cpu_kernel *function;
} JitKernel;

typedef struct Wanted { /* the text and the kernels that its library must have */
  const Text *text;
  const char *const *names;
  uint32_t n;
} Wanted;

/* Whether the file contains its whole section table, which comes last. Using a truncated library
 * would crash later. */
static bool is_whole(const char *path)
{
  ElfW(Ehdr) head;
  struct stat at;
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  bool good = fd >= 0 && fstat(fd, &at) == 0 && S_ISREG(at.st_mode) &&
              pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
              memcmp(head.e_ident, ELFMAG, SELFMAG) == 0;
  if (fd >= 0) close(fd);
  return good && (uint64_t)at.st_size >= head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
}

/* Loads a library. NULL: it is truncated, cannot be loaded or lacks a kernel: ampc_last_error. */
static void *load(const char *path, const Wanted *wanted)
{
  void *library = is_whole(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    ampc_fail(AMPC_RUN_FAILED, "%s", is_whole(path) ? dlerror() : "the file is truncated");
    return NULL;
  }
  for (uint32_t i = 0; i < wanted->n; i++)
    if (!jit_find(library, wanted->names[i])) {
      dlclose(library);
      return NULL;
    }
  return library;
}

/* Builds into a temporary file, which is renamed to its name in the cache after it has been loaded.
 * If the cache cannot keep the file, a note is printed and the library is used anyway.
 * AMPC_BAD_FILE: the folder cannot be written, for example because the disk is full. */
static ampc_status build(const Cache *cache, const Toolchain *t, const Wanted *wanted,
                         const char *path, void **out)
{
  char temporary[CACHE_PATH];
  if (cache_begin(cache, temporary) != AMPC_OK) return AMPC_BAD_FILE;
  const char *scratch = cache->temporary ? cache->folder : NULL;
  ampc_status status = toolchain_build(t, wanted->text->at, wanted->text->n, temporary, scratch);
  if (!status && !(*out = load(temporary, wanted)))
    status = ampc_fail(AMPC_NO_COMPILER, "the kernels that %s compiled cannot be loaded: %s",
                       t->compiler, ampc_last_error());
  if (status || cache->temporary)
    unlink(temporary);
  else if (cache_keep(temporary, path) != AMPC_OK) {
    notice_end();
    fprintf(stderr, "amp: note: the compiled kernels are not cached: %s\n", ampc_last_error());
  }
  return status;
}

/* Loads the library from the cache, or builds it there, or in another folder if the cache cannot be
 * written. */
static ampc_status find_or_build(Cache *cache, const Toolchain *t, const Wanted *wanted, void **out)
{
  char key[33], path[CACHE_PATH], why[1024];
  cache_key(wanted->text->at, wanted->text->n, t->identity, key);
  cache_key(key, strlen(key), t->march, key);
  cache_path(cache, key, "so", path);
  if (!cache->temporary && cache_has(path) && (*out = load(path, wanted))) return AMPC_OK;
  ampc_status status;
  while ((status = build(cache, t, wanted, path, out)) == AMPC_BAD_FILE) {
    snprintf(why, sizeof why, "%s", ampc_last_error());
    if (!cache_elsewhere(cache, why))
      return ampc_fail(AMPC_RUN_FAILED, "%s: %s", ampc_last_error(), why);
  }
  return status;
}

/* Opens a library under a key of the text and the compiler's identity. Closing the cache may remove
 * a temporary folder; a loaded library stays usable. */
ampc_status jit_open(const Text *text, const char *march, const char *const *names, uint32_t n,
                     void **out_library)
{
  const Toolchain *found;
  Cache cache;
  interrupt_hold(); /* temporary files must be removed first */
  ampc_status status = strcmp(march, "native") == 0 ? AMPC_OK : ampc_level_suffices(march);
  if (!status) status = toolchain_find(&found);
  if (!status && !(status = cache_open(&cache))) {
    Toolchain t = *found;
    t.march = march;
    status = find_or_build(&cache, &t, &(Wanted){text, names, n}, out_library);
    cache_close(&cache);
  }
  interrupt_release();
  return status;
}

ampc_cpu_kernel *jit_find(void *library, const char *name)
{
  const JitKernel *found = dlsym(library, "ampc_jit_kernels");
  for (; found && found->name; found++)
    if (strcmp(found->name, name) == 0) return found->function;
  ampc_fail(AMPC_RUN_FAILED, "the compiled kernels have no function %s", name);
  return NULL;
}

/* Stores the functions of the library in the program's kernels. */
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

void jit_print(Compile *c, Text *out)
{
  text_printf(out, "amp " AMPC_VERSION " for %s, -O%d, --march=%s\n", c->program->target,
              c->options.optimize, target_march(&c->options));
  emit_kernels(c, out);
}

/* Loads kernels. The library stays open as long as the Jit, because the program points into it. */
ampc_status jit_load_edited(Compile *c, TextEdit *edit, void *data, Jit **out)
{
  *out = NULL;
  if (!is_cpu_target(c)) return load_cuda(c, edit, data, out);
  Text text = text_new(c->arena);
  emit_kernels(c, &text);
  if (edit) edit(&text, data);
  void *library;
  const ampc_program *p = c->program;
  const char **names = arena_array(c->arena, const char *, p->n_kernels + 1);
  for (uint32_t i = 0; i < p->n_kernels; i++) names[i] = p->kernels[i].name;
  ampc_status status = jit_open(&text, target_march(&c->options), names, p->n_kernels, &library);
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

ampc_status jit_tell(Compile *c, ampc_status status)
{
  if (status != AMPC_NO_COMPILER || !emit_own_mistakes(c, ampc_last_error())) return status;
  return ampc_fail(status, "%s", "");
}

ampc_status jit_load(Compile *c, Jit **out)
{
  if (!c->options.silent && !c->options.quiet) notice_begin(c->program->n_kernels);
  ampc_status status = jit_load_edited(c, NULL, NULL, out);
  notice_end();
  return jit_tell(c, status);
}

bool jit_runs_cuda(const char *target)
{
  return target_of(target)->kind == TARGET_cuda;
}

void jit_unload(Jit *jit)
{
  if (!jit) return;
  if (jit->library) dlclose(jit->library);
  jit_cuda_unload(jit->cuda);
  free(jit);
}
