/* Compiles the kernels of a plan to images for the driver; see jit_cuda.h.
 *
 * A unit is the text of a few kernels with the helpers that they use. It is small enough that
 * several cores share the work, and large enough that the start of NVRTC costs little. The program
 * alone decides which kernels form a unit, so machines can share a cache. */
#include "jit_cuda.h"
#include "notice.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/cache.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/kernel/kernels.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNIT_KERNELS = 8, MOST_THREADS = 16 };

typedef struct Unit {
  Text text;
  uint32_t first, count; /* the unit has kernels `first` to `first + count - 1` */
  char *bytes;           /* a cubin or PTX; freed when the images are unloaded */
  char *trouble;         /* why `bytes` is NULL; freed with `bytes` */
} Unit;

struct CudaImages {
  Unit *units; /* in the compile's arena, except the malloced fields */
  uint32_t n;
};

typedef struct Build {
  const NvrtcApi *nvrtc;
  Cache cache;
  char architecture[24], identity[160];
  CudaImages *images;
  atomic_uint next; /* next unit to build */
} Build;

/* ---- one unit ---- */

static void build_unit(const Build *b, Unit *u)
{
  char key[33], path[CACHE_PATH];
  size_t size;
  cache_key(u->text.at, u->text.n, b->identity, key);
  cache_path(&b->cache, key, "cubin", path);
  if (!b->cache.temporary && cache_read(path, &u->bytes, &size)) return;
  NvrtcImage image;
  if (!nvrtc_compile(b->nvrtc, u->text.at, b->architecture, &image)) {
    u->trouble = image.trouble ? image.trouble : strdup("out of memory");
    return;
  }
  u->bytes = image.bytes;
  if (!b->cache.temporary && cache_write(&b->cache, path, image.bytes, image.size) != AMPC_OK) {
    notice_end();
    fprintf(stderr, "amp: note: the compiled kernels are not cached: %s\n", ampc_last_error());
  }
}

static void *build_units(void *data)
{
  Build *b = data;
  for (uint32_t i; !interrupt_requested() && (i = atomic_fetch_add(&b->next, 1)) < b->images->n;) {
    build_unit(b, &b->images->units[i]);
    notice_tick(b->images->units[i].count);
  }
  return NULL;
}

static void build_all(Build *b)
{
  pthread_t threads[MOST_THREADS];
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t n = 0;
  while (n + 1 < b->images->n && n + 1 < (uint32_t)(cores < 1 ? 1 : cores) && n < MOST_THREADS &&
         pthread_create(&threads[n], NULL, build_units, b) == 0)
    n++;
  build_units(b);
  for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* ---- all of them ---- */

static CudaImages *cut(Compile *c, TextEdit *edit, void *data)
{
  const ampc_program *p = c->program;
  CudaImages *images = arena_new(c->arena, CudaImages);
  images->units = arena_array(c->arena, Unit, p->n_kernels / UNIT_KERNELS + 1);
  for (uint32_t first = 0; first < p->n_kernels; first += UNIT_KERNELS) {
    Unit *u = &images->units[images->n++];
    u->first = first;
    u->count = p->n_kernels - first < UNIT_KERNELS ? p->n_kernels - first : UNIT_KERNELS;
    text_init(&u->text, c->arena);
    emit_some_kernels(c, u->first, u->count, &u->text);
    if (edit) edit(&u->text, data);
  }
  return images;
}

static ampc_status find_compiler(const char *target, Build *b)
{
  char why[AMPC_WHY_ROOM], made[100];
  if (!nvrtc_load(&b->nvrtc, why)) return ampc_fail(AMPC_NO_COMPILER, "no NVRTC: %s", why);
  int capability = ampc_target_capability(target);
  if (!nvrtc_architecture(b->nvrtc, capability, b->architecture))
    return ampc_fail(AMPC_NO_COMPILER,
                     "NVRTC cannot compile for %s: such an old GPU needs an older CUDA toolkit",
                     target);
  nvrtc_identity(b->nvrtc, made, sizeof made);
  snprintf(b->identity, sizeof b->identity, "%s %s " AMPC_VERSION, made, b->architecture);
  return AMPC_OK;
}

static ampc_status take(Compile *c, const CudaImages *images)
{
  ampc_image *out = arena_array(c->arena, ampc_image, images->n + 1);
  for (uint32_t i = 0; i < images->n; i++) {
    const Unit *u = &images->units[i];
    if (!u->bytes) return ampc_fail_log(AMPC_NO_COMPILER, u->trouble);
    out[i] = (ampc_image){u->bytes, u->first, u->count};
  }
  c->program->images = out;
  c->program->n_images = images->n;
  return AMPC_OK;
}

ampc_status jit_cuda_load(Compile *c, TextEdit *edit, void *data, CudaImages **out)
{
  Build b = {.images = cut(c, edit, data)};
  *out = NULL;
  ampc_status status = find_compiler(c->program->target, &b);
  if (!status) status = cache_open(&b.cache);
  if (status) return status;
  cache_close(&b.cache); /* no unit is kept in a temporary folder */
  build_all(&b);
  status = interrupt_requested() ? ampc_fail(AMPC_INTERRUPTED, "interrupted") : take(c, b.images);
  if (status) {
    jit_cuda_unload(b.images);
  } else {
    *out = b.images;
  }
  return status;
}

void jit_cuda_unload(CudaImages *images)
{
  for (uint32_t i = 0; images && i < images->n; i++) {
    free(images->units[i].bytes);
    free(images->units[i].trouble);
  }
}
