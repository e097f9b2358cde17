/* Convolutions: by cuDNN where it is here and has an engine for them, else by the program's own
 * kernels (conv_own.h). */
#include "conv_own.h"
#include "cudnn_choice.h"

static DnnRoom room_of(const CudaDevice *d, const ampc_conv *c)
{
  return (DnnRoom){.limit = ampc_conv_workspace_cuda(c, d->program->real64, d->capability),
                   .own = conv_own_scratch(d, c),
                   .what = "convolutions run"};
}

static bool is_empty(const ampc_conv *c)
{
  return c->n == 0 || c->k == 0 || c->c == 0;
}

ampc_status cuda_prepare_conv(Device *device, const ampc_conv *c)
{
  CudaDevice *d = cuda_of(device);
  DnnChoice *p;
  if (is_empty(c)) return AMPC_OK;
  DnnProblem t = dnn_conv_problem(c);
  DnnRoom room = room_of(d, c);
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = dnn_choose(d, &t, &room, &p);
  setup_unlock();
  return status;
}

/* ---- a call ---- */

typedef struct Operands {
  const ampc_conv *c;
  void *x, *w;
  const void *bias;
  void *y;
} Operands;

static DnnOperands operands(void *context, DnnForm form, void *room)
{
  const Operands *at = context;
  (void)room;
  return dnn_conv_operands(at->c, form, at->x, at->w, at->bias, at->y);
}

static ampc_status run(CudaDevice *d, Operands *at)
{
  DnnProblem t = dnn_conv_problem(at->c);
  DnnRoom sizes = room_of(d, at->c);
  DnnCall call = {operands, at};
  DnnChoice *p;
  void *room;
  ampc_status status = dnn_choose(d, &t, &sizes, &p);
  bool aligned = dnn_is_aligned(at->x) && dnn_is_aligned(at->w) && dnn_is_aligned(at->bias) &&
                 dnn_is_aligned(at->y);
  if (!status && p->plan.plan && aligned) status = dnn_run(d, &t, &sizes, &call, p);
  if (status || (p->plan.plan && aligned)) return status;
  status = dnn_scratch(d, sizes.own, &room);
  return status ? status : conv_own(d, at->c, at->x, at->w, at->bias, at->y, room);
}

ampc_status cuda_conv(Device *device, const ampc_conv *c, void *x, void *w, const void *bias,
                      void *y, void *workspace)
{
  CudaDevice *d = cuda_of(device);
  Operands at = {c, x, w, bias, y};
  (void)workspace; /* Note [scratch] in cudnn_choice.c */
  if (is_empty(c)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = run(d, &at);
  setup_unlock();
  return status;
}
