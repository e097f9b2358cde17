/* Attention by cuDNN where it is here and has an engine for it. Where not, nothing is done: the
 * program has a kernel of its own, and its caller launches it. */
#include "cudnn_attention.h"
#include "cudnn_choice.h"

/* What backward may write of the scores: a layer of GPT-2 at a batch of 16 needs 384 MiB. */
enum { SCORES_LIMIT = 512 * 1024 * 1024, ENGINE_ROOM = 1024 * 1024 };

/* Before the plan's room that of the numbers which each query has one of: `off`, or sums that
 * nobody wants. */
static DnnRoom room_of(const ampc_attention *part)
{
  int64_t numbers = part->n * part->heads * part->l * (int64_t)sizeof(float);
  return (DnnRoom){.limit = (part->backward ? SCORES_LIMIT : 0) + ENGINE_ROOM,
                   .beside = ampc_round_up(numbers, AMPC_CUDA_ALIGN),
                   .what = "attention runs"};
}

/* NULL: for the program's kernel. */
static ampc_status choose(CudaDevice *d, const ampc_attention *part, DnnProblem *t, DnnChoice **out)
{
  DnnRoom room = room_of(part);
  *t = dnn_attention_problem(part);
  ampc_status status = dnn_choose(d, t, &room, out);
  if (!status && !(*out)->plan.plan) *out = NULL;
  return status;
}

static bool is_ours(const ampc_attention *a)
{
  bool empty = a->n == 0 || a->heads == 0 || a->l == 0 || a->s == 0 || a->d == 0 || a->e == 0;
  return empty || dnn_against_attention(a) != NULL;
}

ampc_status cuda_prepare_attention(Device *device, const ampc_attention *a)
{
  CudaDevice *d = cuda_of(device);
  ampc_attention part = dnn_attention_part(a, SCORES_LIMIT);
  DnnProblem t;
  DnnChoice *p;
  if (is_ours(a)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = choose(d, &part, &t, &p);
  setup_unlock();
  return status;
}

/* ---- a call ---- */

typedef struct Call {
  const DnnApi *api;
  const ampc_attention *part;
  ampc_attention_places at;
  DnnAttentionNumbers numbers;
} Call;

static DnnOperands operands(void *context, DnnForm form, void *room)
{
  Call *c = context;
  ampc_attention_places at = c->at;
  (void)form;
  if (!at.sums) at.sums = room;
  return dnn_attention_operands(c->api, c->part, &at, room, &c->numbers);
}

/* From `at` so many images and heads further. */
static void *further(const void *at, int64_t element, const int64_t *stride, int64_t image,
                     int64_t head)
{
  return at ? (char *)(uintptr_t)at + element * (image * stride[0] + head * stride[2]) : NULL;
}

static ampc_attention_places places_of(const ampc_attention *a, const ampc_attention_places *at,
                                       int64_t i, int64_t h)
{
  int64_t e = ampc_dtype_size(a->type), f32 = (int64_t)sizeof(float);
  return (ampc_attention_places){.q = further(at->q, e, a->q_stride, i, h),
                                 .k = further(at->k, e, a->k_stride, i, h),
                                 .v = further(at->v, e, a->v_stride, i, h),
                                 .y = further(at->y, e, a->y_stride, i, h),
                                 .sums = further(at->sums, f32, a->sums_stride, i, h),
                                 .dy = further(at->dy, e, a->dy_stride, i, h),
                                 .dq = further(at->dq, e, a->dq_stride, i, h),
                                 .dk = further(at->dk, e, a->dk_stride, i, h),
                                 .dv = further(at->dv, e, a->dv_stride, i, h)};
}

static bool are_aligned(const ampc_attention_places *at)
{
  return dnn_is_aligned(at->q) && dnn_is_aligned(at->k) && dnn_is_aligned(at->v) &&
         dnn_is_aligned(at->y) && dnn_is_aligned(at->dy) && dnn_is_aligned(at->dq) &&
         dnn_is_aligned(at->dk) && dnn_is_aligned(at->dv);
}

/* Part after part. A plan that turns out to fail does so at the first one. */
static ampc_status run(CudaDevice *d, const ampc_attention *a, const ampc_attention_places *at,
                       bool *out_done)
{
  ampc_attention part = dnn_attention_part(a, SCORES_LIMIT);
  DnnRoom room = room_of(&part);
  DnnProblem t;
  DnnChoice *p = NULL;
  ampc_status status = choose(d, &part, &t, &p);
  *out_done = !status && p;
  for (int64_t i = 0; i < a->n && !status && *out_done; i += part.n)
    for (int64_t h = 0; h < a->heads && !status && *out_done; h += part.heads) {
      Call c = {.api = dnn_api_of(d), .part = &part};
      c.at = places_of(a, at, i, h);
      status = dnn_run(d, &t, &room, &(DnnCall){operands, &c}, p);
      *out_done = p->plan.plan != NULL;
    }
  return status;
}

ampc_status cuda_attention(Device *device, const ampc_attention *a, const ampc_attention_places *at,
                           bool *out_done)
{
  CudaDevice *d = cuda_of(device);
  *out_done = false;
  if (is_ours(a) || !are_aligned(at)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = run(d, a, at, out_done);
  setup_unlock();
  return status;
}
