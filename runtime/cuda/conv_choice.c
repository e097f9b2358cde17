/* Convolutions: by cuDNN where it is here and has an engine for them, else by the program's own
 * kernels (conv_own.h). Which, is decided once for each kind of convolution and kept; plans also in
 * the cache of kernels.
 *
 * Note [scratch] Both ways need room that no plan of memory knows, so it lies beside WORK: one
 * piece for all, because a device does one thing after the other. cuDNN may have as much as
 * columns, or partial sums, and a product of the same convolution would need. All that a program
 * calls is prepared before, so one is enough, unless cuDNN fails when it is called: a piece that
 * turns out to be too small stays, because steps that are recorded know its address. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/cache.h"
#include "conv_own.h"
#include "cudnn.h"

typedef struct ConvPlan {
  char problem[DNN_PROBLEM_ROOM];
  DnnPlan plan;
  bool ran;
} ConvPlan;

typedef struct Scratch {
  struct Scratch *next;
  void *at;
  int64_t bytes;
} Scratch;

struct ConvPlans {
  DnnLibrary *library; /* NULL: own kernels do it all, `why` */
  char why[AMPC_WHY_ROOM];
  Cache cache;
  ConvPlan **at;
  uint32_t n, room;
  Scratch *scratch; /* the newest, greatest piece first */
  int64_t needed;   /* bytes, by what has been prepared */
};

/* ---- opening and closing ---- */

static ConvPlans *open_plans(CudaDevice *d)
{
  ConvPlans *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->library = dnn_open(d, s->why);
  if (s->library && cache_open(&s->cache) != AMPC_OK) s->cache.temporary = true;
  return d->convolutions = s;
}

void conv_plans_close(CudaDevice *d)
{
  ConvPlans *s = d->convolutions;
  if (!s) return;
  for (uint32_t i = 0; i < s->n; i++) {
    dnn_plan_free(&s->at[i]->plan);
    free(s->at[i]);
  }
  if (s->library) cache_close(&s->cache);
  dnn_close(s->library);
  for (Scratch *p = s->scratch, *next; p; p = next) {
    next = p->next;
    d->device.ops->release(&d->device, p->at);
    free(p);
  }
  free(s->at);
  free(s);
  d->convolutions = NULL;
}

int64_t conv_scratch_bytes(const CudaDevice *d)
{
  int64_t bytes = 0;
  if (!d->convolutions) return 0;
  for (const Scratch *p = d->convolutions->scratch; p; p = p->next) bytes += p->bytes;
  return bytes > d->convolutions->needed ? bytes : d->convolutions->needed;
}

static ampc_status get_scratch(CudaDevice *d, int64_t bytes, void **out)
{
  ConvPlans *s = d->convolutions;
  *out = s->scratch ? s->scratch->at : NULL;
  if (bytes == 0 || (s->scratch && s->scratch->bytes >= bytes)) return AMPC_OK;
  Scratch *p = calloc(1, sizeof *p);
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for scratch");
  p->bytes = bytes > s->needed ? bytes : s->needed;
  ampc_status status = d->device.ops->alloc(&d->device, p->bytes, &p->at);
  if (status) {
    free(p);
    return ampc_fail(status, "scratch of convolutions: %s", ampc_last_error());
  }
  p->next = s->scratch;
  s->scratch = p;
  *out = p->at;
  return AMPC_OK;
}

/* ---- plans ---- */

/* What cuDNN may have. */
static int64_t limit_of(const CudaDevice *d, const ampc_conv *c)
{
  return ampc_conv_workspace_cuda(c, d->program->real64, d->capability);
}

#define OWN_KERNELS "the program's own kernels, not by cuDNN"

/* Once a process: a job has many convolutions, and `amp inspect --cudnn` tells of each. */
static void say_once(atomic_bool *said, const char *what, const char *how, const char *why)
{
  if (!atomic_exchange(said, true)) fprintf(stderr, "note: %s by %s: %s\n", what, how, why);
}

static void say_absent(const char *what, const char *why)
{
  static atomic_bool said;
  say_once(&said, what, OWN_KERNELS, why);
}

static void say_failing(const ConvPlan *p, const char *why)
{
  static atomic_bool said;
  say_once(&said, p->problem, p->plan.plan ? "another engine of cuDNN" : OWN_KERNELS, why);
}

static void file_of(const ConvPlans *s, const ConvPlan *p, char path[CACHE_PATH])
{
  char key[33];
  cache_key(p->problem, strlen(p->problem), s->library->identity, key);
  cache_path(&s->cache, key, "cudnn", path);
}

static void keep(const ConvPlans *s, const char *path, const DnnPlan *p)
{
  static atomic_bool said;
  char *bytes;
  size_t size;
  if (!dnn_plan_save(p, &bytes, &size)) return;
  if (cache_write(&s->cache, path, bytes, size) != AMPC_OK && !atomic_exchange(&said, true))
    fprintf(stderr, "note: plans of convolutions are not kept: %s\n", ampc_last_error());
  free(bytes);
}

/* From the cache, or made and put there. */
static void plan(const ConvPlans *s, const ampc_conv *c, int64_t limit, ConvPlan *p)
{
  const DnnLibrary *l = s->library;
  char path[CACHE_PATH], *bytes;
  size_t size;
  bool kept = !s->cache.temporary;
  file_of(s, p, path);
  if (kept && cache_read(path, &bytes, &size)) {
    bool good = dnn_plan_load(&l->machine, bytes, size, &p->plan);
    free(bytes);
    if (good && p->plan.workspace <= limit) return;
    dnn_plan_free(&p->plan);
  }
  if (dnn_plan_make(&l->machine, c, limit, &p->plan) && kept) keep(s, path, &p->plan);
}

/* As the engine of p fails: by the next one, for later runs as well. */
static void plan_anew(const ConvPlans *s, const ampc_conv *c, int64_t limit, ConvPlan *p)
{
  char path[CACHE_PATH];
  bool kept = !s->cache.temporary;
  file_of(s, p, path);
  if (kept) unlink(path);
  if (dnn_plan_next(&s->library->machine, c, limit, &p->plan) && kept) keep(s, path, &p->plan);
}

static ConvPlan *append(ConvPlans *s)
{
  if (s->n == s->room) {
    uint32_t room = s->room ? 2 * s->room : 16;
    ConvPlan **at = realloc(s->at, room * sizeof *at);
    if (!at) return NULL;
    s->at = at;
    s->room = room;
  }
  ConvPlan *p = calloc(1, sizeof *p);
  if (p) s->at[s->n++] = p;
  return p;
}

/* The plan of c, made if this is the first of its kind. One without p->plan.plan is for the own
 * kernels. */
static ampc_status find(CudaDevice *d, const ampc_conv *c, ConvPlan **out)
{
  ConvPlans *s = d->convolutions ? d->convolutions : open_plans(d);
  char problem[DNN_PROBLEM_ROOM];
  dnn_problem(c, problem);
  for (uint32_t i = 0; s && i < s->n; i++)
    if (strcmp((*out = s->at[i])->problem, problem) == 0) return AMPC_OK;
  ConvPlan *p = s ? append(s) : NULL;
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for convolutions");
  memcpy(p->problem, problem, sizeof problem);
  bool possible = s->library && !d->program->real64;
  if (possible) plan(s, c, limit_of(d, c), p);
  if (!p->plan.plan && possible) say_absent(p->problem, p->plan.why);
  if (!s->library && strcmp(s->why, "--no-cudnn") != 0) say_absent("convolutions run", s->why);
  int64_t bytes = p->plan.plan ? p->plan.workspace : conv_own_scratch(d, c);
  if (bytes > s->needed) s->needed = bytes;
  *out = p;
  return AMPC_OK;
}

static bool is_empty(const ampc_conv *c)
{
  return c->n == 0 || c->k == 0 || c->c == 0;
}

ampc_status cuda_prepare_conv(Device *device, const ampc_conv *c)
{
  CudaDevice *d = cuda_of(device);
  ConvPlan *p;
  if (is_empty(c)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = find(d, c, &p);
  setup_unlock();
  return status;
}

/* ---- a call ---- */

static bool is_aligned(const void *p)
{
  return (uintptr_t)p % DNN_ALIGN == 0;
}

/* A plan that fails when it is first called, before anything is recorded, gives way to the next.
 * Without p->plan.plan afterwards nobody has done it. */
static ampc_status by_library(CudaDevice *d, const ampc_conv *c, ConvPlan *p, void *x, void *w,
                              const void *bias, void *y)
{
  const DnnMachine *m = &d->convolutions->library->machine;
  char why[AMPC_WHY_ROOM] = "";
  void *room;
  while (p->plan.plan) {
    ampc_status status = get_scratch(d, p->plan.workspace, &room);
    if (status) return status;
    DnnStatus s = m->api->cudnnSetStream(m->handle, d->stream);
    if (!s) s = dnn_plan_run(m, &p->plan, c, x, w, bias, y, room);
    if (s && p->ran)
      return ampc_fail(AMPC_RUN_FAILED, "%s: cuDNN: %s: %s", d->device.name, p->problem,
                       m->api->cudnnGetErrorString(s));
    p->ran = !s;
    if (!s) break;
    snprintf(why, sizeof why, "its engine %lld fails: %s", (long long)p->plan.engine,
             m->api->cudnnGetErrorString(s));
    plan_anew(d->convolutions, c, limit_of(d, c), p);
  }
  if (why[0]) say_failing(p, why);
  return AMPC_OK;
}

static ampc_status run(CudaDevice *d, const ampc_conv *c, void *x, void *w, const void *bias,
                       void *y)
{
  ConvPlan *p;
  void *room;
  ampc_status status = find(d, c, &p);
  bool aligned = is_aligned(x) && is_aligned(w) && is_aligned(bias) && is_aligned(y);
  if (!status && p->plan.plan && aligned) status = by_library(d, c, p, x, w, bias, y);
  if (status || (p->plan.plan && aligned)) return status;
  status = get_scratch(d, conv_own_scratch(d, c), &room);
  return status ? status : conv_own(d, c, x, w, bias, y, room);
}

ampc_status cuda_conv(Device *device, const ampc_conv *c, void *x, void *w, const void *bias,
                      void *y, void *workspace)
{
  CudaDevice *d = cuda_of(device);
  (void)workspace; /* Note [scratch] */
  if (is_empty(c)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = run(d, c, x, w, bias, y);
  setup_unlock();
  return status;
}
