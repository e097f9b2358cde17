/* Computes by cuDNN if it is here and has an engine, otherwise by the program's own kernels. The
 * choice is made once for each kind of problem and kept; plans are also kept in the cache of
 * kernels.
 *
 * Note [scratch]
 * Both ways need scratch that no memory plan includes, so it is allocated in addition to WORK. All
 * problems share one block, because a device does one thing after the other. For a convolution,
 * cuDNN may use as much as our own way would: columns or partial sums, and a product. A program's
 * problems are all prepared before, so one block is enough. The exception is an engine of cuDNN
 * that fails in its first call. If the block is then too small, a larger one is added; the old one
 * stays, because recorded steps contain its address. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cudnn_choice.h"
#include "runtime/base/cache.h"

typedef struct Scratch {
  struct Scratch *next;
  void *at;
  int64_t bytes;
} Scratch;

struct DnnChoices {
  DnnLibrary *library; /* NULL: own kernels compute everything; `why` has the reason */
  char why[AMPC_WHY_ROOM];
  Cache cache;
  DnnChoice **at;
  uint32_t n, room;
  Scratch *scratch; /* the newest, largest block first */
  int64_t needed;   /* bytes that the prepared problems need */
};

/* ---- opening and closing ---- */

static DnnChoices *open_choices(CudaDevice *d)
{
  DnnChoices *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->library = dnn_open(d, s->why);
  if (s->library && cache_open(&s->cache) != AMPC_OK) s->cache.temporary = true;
  return d->choices = s;
}

void dnn_choices_close(CudaDevice *d)
{
  DnnChoices *s = d->choices;
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
  d->choices = NULL;
}

int64_t dnn_scratch_bytes(const CudaDevice *d)
{
  int64_t bytes = 0;
  if (!d->choices) return 0;
  for (const Scratch *p = d->choices->scratch; p; p = p->next) bytes += p->bytes;
  return bytes > d->choices->needed ? bytes : d->choices->needed;
}

ampc_status dnn_scratch(CudaDevice *d, int64_t bytes, void **out)
{
  DnnChoices *s = d->choices;
  *out = s->scratch ? s->scratch->at : NULL;
  if (bytes == 0 || (s->scratch && s->scratch->bytes >= bytes)) return AMPC_OK;
  Scratch *p = calloc(1, sizeof *p);
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for scratch");
  p->bytes = bytes > s->needed ? bytes : s->needed;
  ampc_status status = d->device.ops->alloc(&d->device, p->bytes, &p->at);
  if (status) {
    free(p);
    return ampc_fail(status, "scratch of cuDNN and own kernels: %s", ampc_last_error());
  }
  p->next = s->scratch;
  s->scratch = p;
  *out = p->at;
  return AMPC_OK;
}

/* ---- plans ---- */

#define OWN_KERNELS "the program's own kernels, not by cuDNN"

/* Prints a note once per process: a job has many problems; `amp inspect --cudnn` lists them all. */
static void say_once(atomic_bool *said, const char *what, const char *how, const char *why)
{
  if (!atomic_exchange(said, true)) fprintf(stderr, "note: %s by %s: %s\n", what, how, why);
}

static void say_absent(const char *what, const char *why)
{
  static atomic_bool said;
  say_once(&said, what, OWN_KERNELS, why);
}

static void say_failing(const DnnChoice *p, const char *why)
{
  static atomic_bool said;
  say_once(&said, p->problem, p->plan.plan ? "another engine of cuDNN" : OWN_KERNELS, why);
}

static void file_of(const DnnChoices *s, const DnnChoice *p, char path[CACHE_PATH])
{
  char key[33];
  cache_key(p->problem, strlen(p->problem), s->library->identity, key);
  cache_path(&s->cache, key, "cudnn", path);
}

static void keep(const DnnChoices *s, const char *path, const DnnPlan *p)
{
  static atomic_bool said;
  char *bytes;
  size_t size;
  if (!dnn_plan_save(p, &bytes, &size)) return;
  if (cache_write(&s->cache, path, bytes, size) != AMPC_OK && !atomic_exchange(&said, true))
    fprintf(stderr, "note: plans of cuDNN are not cached: %s\n", ampc_last_error());
  free(bytes);
}

/* Loads the plan from the cache, or makes it and writes it there. */
static void plan(const DnnChoices *s, const DnnProblem *t, int64_t limit, DnnChoice *p)
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
  if (dnn_plan_make(&l->machine, t, limit, &p->plan) && kept) keep(s, path, &p->plan);
}

/* Replaces the plan of a failing engine by a plan of the next engine, for later runs as well. */
static void plan_anew(const DnnChoices *s, const DnnProblem *t, int64_t limit, DnnChoice *p)
{
  char path[CACHE_PATH];
  bool kept = !s->cache.temporary;
  file_of(s, p, path);
  if (kept) unlink(path);
  if (dnn_plan_next(&s->library->machine, t, limit, &p->plan) && kept) keep(s, path, &p->plan);
}

static DnnChoice *append(DnnChoices *s)
{
  if (s->n == s->room) {
    uint32_t room = s->room ? 2 * s->room : 16;
    DnnChoice **at = realloc(s->at, room * sizeof *at);
    if (!at) return NULL;
    s->at = at;
    s->room = room;
  }
  DnnChoice *p = calloc(1, sizeof *p);
  if (p) s->at[s->n++] = p;
  return p;
}

/* Decides between a plan and own kernels, and prints the reason for own kernels. */
static void decide(const CudaDevice *d, const DnnProblem *t, const DnnRoom *room, DnnChoice *p)
{
  const DnnChoices *s = d->choices;
  if (s->library && !d->program->real64) {
    plan(s, t, room->limit, p);
    if (!p->plan.plan) say_absent(p->problem, p->plan.why);
  }
  if (!s->library && strcmp(s->why, "--no-cudnn") != 0) say_absent(room->what, s->why);
}

ampc_status dnn_choose(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, DnnChoice **out)
{
  DnnChoices *s = d->choices ? d->choices : open_choices(d);
  for (uint32_t i = 0; s && i < s->n; i++)
    if (strcmp((*out = s->at[i])->problem, t->words) == 0) return AMPC_OK;
  DnnChoice *p = s ? append(s) : NULL;
  if (!p) return ampc_fail(AMPC_RUN_FAILED, "out of memory for plans of cuDNN");
  memcpy(p->problem, t->words, sizeof p->problem);
  decide(d, t, room, p);
  int64_t bytes = p->plan.plan ? room->beside + p->plan.workspace : room->own;
  if (bytes > s->needed) s->needed = bytes;
  *out = p;
  return AMPC_OK;
}

/* ---- a call ---- */

const DnnApi *dnn_api_of(const CudaDevice *d)
{
  return d->choices->library->machine.api;
}

bool dnn_is_aligned(const void *p)
{
  return (uintptr_t)p % DNN_ALIGN == 0;
}

/* Runs the plan. If it fails in its first call, before any recording, the next engine is used. */
ampc_status dnn_run(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, const DnnCall *call,
                    DnnChoice *p)
{
  const DnnMachine *m = &d->choices->library->machine;
  char why[AMPC_WHY_ROOM] = "";
  void *at;
  while (p->plan.plan) {
    ampc_status status = dnn_scratch(d, room->beside + p->plan.workspace, &at);
    if (status) return status;
    DnnOperands operands = call->operands(call->context, p->plan.form, at);
    void *workspace = at ? (char *)at + room->beside : NULL;
    DnnStatus s = m->api->cudnnSetStream(m->handle, d->stream);
    if (!s) s = dnn_plan_run(m, &p->plan, &operands, workspace);
    if (s && p->ran)
      return ampc_fail(AMPC_RUN_FAILED, "%s: cuDNN: %s: %s", d->device.name, p->problem,
                       m->api->cudnnGetErrorString(s));
    p->ran = !s;
    if (!s) break;
    snprintf(why, sizeof why, "its engine %lld fails: %s", (long long)p->plan.engine,
             m->api->cudnnGetErrorString(s));
    plan_anew(d->choices, t, room->limit, p);
  }
  if (why[0]) say_failing(p, why);
  return AMPC_OK;
}
