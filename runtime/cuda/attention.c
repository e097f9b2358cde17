/* Attention by cuDNN, if cuDNN is here and has an engine for it. Otherwise nothing is computed, and
 * the caller launches the program's own kernel. */
#include "cudnn_attention.h"
#include "cudnn_choice.h"

/* Returns the bytes of one number per query: for `off`, or for sums that the job does not need. */
static int64_t number_bytes(const ampc_attention *part)
{
  return ampc_round_up(part->n * part->heads * part->l * (int64_t)sizeof(float), AMPC_CUDA_ALIGN);
}

/* Returns the sizes of a call's scratch: one number per query, then the tensors of mask and
 * dropout, then the lengths of queries and keys, then the plan's workspace. */
static DnnRoom room_of(const ampc_attention *part)
{
  return (DnnRoom){.limit = ampc_attention_scores(part) + DNN_ENGINE_ROOM,
                   .beside = number_bytes(part) + ampc_attention_kept(part) +
                             ampc_attention_bias(part) + 2 * ampc_attention_lengths(part),
                   .what = "attention runs"};
}

/* Chooses the plan of a part; *out is NULL if the program's kernel computes it. */
static ampc_status choose(CudaDevice *d, const ampc_attention *part, DnnProblem *t, DnnChoice **out)
{
  DnnRoom room = room_of(part);
  *t = dnn_attention_problem(part);
  ampc_status status = dnn_choose(d, t, &room, out);
  if (!status && !(*out)->plan.plan) *out = NULL;
  return status;
}

/* Whether our own kernel computes this attention, because no version of cuDNN can on such a GPU.
 * dnn_plan_make checks the installed version. */
static bool is_ours(const ampc_attention *a, int capability)
{
  char why[AMPC_WHY_ROOM];
  bool empty = a->n == 0 || a->heads == 0 || a->l == 0 || a->s == 0 || a->d == 0 || a->e == 0;
  return empty || ampc_attention_against(a, (ampc_cudnn){0, capability}, why);
}

int64_t cuda_launch_scratch(const ampc_attention *a, int capability)
{
  ampc_attention part = dnn_attention_part(a, dnn_scores_limit);
  DnnRoom room = room_of(&part);
  return is_ours(a, capability) ? 0 : room.beside + room.limit;
}

ampc_status cuda_prepare_launch(Device *device, const ampc_attention *a)
{
  CudaDevice *d = cuda_of(device);
  ampc_attention part = dnn_attention_part(a, dnn_scores_limit);
  DnnProblem t;
  DnnChoice *p;
  if (is_ours(a, 0)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = choose(d, &part, &t, &p);
  setup_unlock();
  return status;
}

/* ---- a call ---- */

typedef struct Call {
  CudaDevice *d;
  const ampc_attention *part;
  DnnAttentionPlaces at;
  DnnAttentionNumbers numbers;
  KeptWalk kept, bias;
  KeptDraws draws;
  ampc_status status;
} Call;

/* Writes the number of queries and the number of keys, once for each sequence. */
static ampc_status put_lengths(const Call *c, char *queries, char *keys)
{
  size_t n = (size_t)c->part->n;
  CuStream stream = c->d->stream;
  ampc_status status =
      CUDA(c->d, cuMemsetD32Async(cuda_address(queries), (uint32_t)c->part->l, n, stream));
  if (status) return status;
  return CUDA(c->d, cuMemsetD32Async(cuda_address(keys), (uint32_t)c->part->s, n, stream));
}

static DnnOperands operands(void *context, DnnForm form, void *room)
{
  Call *c = context;
  DnnAttentionPlaces at = c->at;
  char *kept = (char *)room + number_bytes(c->part), *bias = kept + ampc_attention_kept(c->part);
  char *queries = bias + ampc_attention_bias(c->part);
  char *keys = queries + ampc_attention_lengths(c->part);
  int version = (int)dnn_api_of(c->d)->cudnnGetVersion();
  (void)form;
  if (!at.sums) at.sums = room;
  at.kept = kept;
  at.bias = bias;
  at.queries = queries;
  at.keys = keys;
  if (bias > kept) c->status = cuda_kept(c->d, &c->kept, &c->draws, kept);
  if (!c->status && c->bias.mask) c->status = cuda_bias(c->d, &c->bias, bias);
  if (!c->status && ampc_attention_has_lengths(c->part, version))
    c->status = put_lengths(c, queries, keys);
  return dnn_attention_operands(dnn_api_of(c->d), c->part, &at, room, &c->numbers);
}

/* Returns the operand's address for the part that begins with this sequence and head. */
static void *place(const ampc_attention_operand *o, void *const *args, int64_t element,
                   int64_t sequence, int64_t head)
{
  if (!o->argument) return NULL;
  int64_t first = o->first + sequence * o->stride[0] + head * o->stride[2];
  return (char *)args[o->argument - 1] + element * first;
}

static DnnAttentionPlaces places_of(const ampc_attention *a, void *const *args, int64_t i,
                                    int64_t h)
{
  int64_t e = ampc_dtype_size(a->type), f32 = (int64_t)sizeof(float);
  return (DnnAttentionPlaces){.q = place(&a->q, args, e, i, h),
                              .k = place(&a->k, args, e, i, h),
                              .v = place(&a->v, args, e, i, h),
                              .y = place(&a->y, args, e, i, h),
                              .sums = place(&a->sums, args, f32, i, h),
                              .dy = place(&a->dy, args, e, i, h),
                              .dq = place(&a->dq, args, e, i, h),
                              .dk = place(&a->dk, args, e, i, h),
                              .dv = place(&a->dv, args, e, i, h)};
}

/* Returns the mask from this sequence and head on. `dim`: the sizes of the tensor that is written.
 */
static KeptWalk walk_of(const ampc_attention *a, const int64_t dim[4], void *const *args, int64_t i,
                        int64_t h)
{
  const ampc_attention_mask *m = &a->mask;
  KeptWalk w = {.dim = {dim[0], dim[1], dim[2], dim[3]}};
  if (!m->argument) return w;
  w.mask = (const char *)args[m->argument - 1] + m->first + i * m->stride[0] + h * m->stride[1];
  for (int k = 0; k < 4; k++) w.stride[k] = m->stride[k];
  return w;
}

/* Returns the draws of a part: consecutive, since a part is heads of one sequence, or whole
 * sequences. */
static KeptDraws draws_of(const ampc_attention *a, void *const *args, int64_t i, int64_t h)
{
  KeptDraws draws = {.type = ampc_attention_kept_type(a), .p = a->p};
  if (a->p == 0) return draws;
  draws.causal = a->causal;
  draws.state = args[a->state - 1];
  draws.stream = (uint64_t)(uintptr_t)args[a->stream - 1];
  draws.first = (uint64_t)((i * a->heads + h) * a->l * a->s);
  draws.each = (uint64_t)a->each;
  return draws;
}

static void set_masks(Call *c, const ampc_attention *a, void *const *args, int64_t i, int64_t h)
{
  int64_t all[] = {c->part->n, c->part->heads, c->part->l, c->part->s}, dim[4];
  ampc_attention_mask_dims(c->part, dim);
  c->bias = walk_of(a, dim, args, i, h);
  c->kept = walk_of(a, a->p > 0 ? all : dim, args, i, h);
  c->draws = draws_of(a, args, i, h);
}

static bool are_aligned(const DnnAttentionPlaces *at)
{
  return dnn_is_aligned(at->q) && dnn_is_aligned(at->k) && dnn_is_aligned(at->v) &&
         dnn_is_aligned(at->y) && dnn_is_aligned(at->dy) && dnn_is_aligned(at->dq) &&
         dnn_is_aligned(at->dk) && dnn_is_aligned(at->dv);
}

/* Computes all parts, one after the other. A plan that does not work fails at the first part. */
static ampc_status run(CudaDevice *d, const ampc_attention *a, void *const *args, bool *out_done)
{
  ampc_attention part = dnn_attention_part(a, dnn_scores_limit);
  DnnRoom room = room_of(&part);
  DnnProblem t;
  DnnChoice *p = NULL;
  ampc_status status = choose(d, &part, &t, &p);
  *out_done = !status && p;
  for (int64_t i = 0; i < a->n && !status && *out_done; i += part.n)
    for (int64_t h = 0; h < a->heads && !status && *out_done; h += part.heads) {
      Call c = {.d = d, .part = &part};
      c.at = places_of(a, args, i, h);
      set_masks(&c, a, args, i, h);
      status = dnn_run(d, &t, &room, &(DnnCall){operands, &c}, p);
      if (!status) status = c.status;
      *out_done = p->plan.plan != NULL;
    }
  return status;
}

ampc_status cuda_launch_by_library(Device *device, const ampc_attention *a, void *const *args,
                                   bool *out_done)
{
  CudaDevice *d = cuda_of(device);
  DnnAttentionPlaces at = places_of(a, args, 0, 0);
  *out_done = false;
  if (is_ours(a, 0) || !are_aligned(&at)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = run(d, a, args, out_done);
  setup_unlock();
  return status;
}
