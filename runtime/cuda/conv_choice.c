/* Convolutions: by cuDNN if it is here and has an engine for them, otherwise by the program's own
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

typedef struct Call {
  const ampc_conv *c;
  ConvOperands at; /* the workspace is scratch: Note [scratch] in cudnn_choice.c */
} Call;

static DnnOperands operands(void *context, DnnForm form, void *room)
{
  const Call *call = context;
  (void)room;
  return dnn_conv_operands(call->c, form, &call->at);
}

static ampc_status run(CudaDevice *d, Call *own)
{
  DnnProblem t = dnn_conv_problem(own->c);
  DnnRoom sizes = room_of(d, own->c);
  DnnCall call = {operands, own};
  DnnChoice *p;
  ConvOperands *at = &own->at;
  ampc_status status = dnn_choose(d, &t, &sizes, &p);
  bool aligned = dnn_is_aligned(at->x) && dnn_is_aligned(at->w) && dnn_is_aligned(at->bias) &&
                 dnn_is_aligned(at->y);
  if (!status && p->plan.plan && aligned) status = dnn_run(d, &t, &sizes, &call, p);
  if (status || (p->plan.plan && aligned)) return status;
  status = dnn_scratch(d, sizes.own, &at->workspace);
  return status ? status : conv_own(d, own->c, at);
}

ampc_status cuda_conv(Device *device, const ampc_conv *c, const ConvOperands *at)
{
  CudaDevice *d = cuda_of(device);
  Call call = {c, *at};
  if (is_empty(c)) return AMPC_OK;
  ampc_status status = gpu_enter(d);
  setup_lock();
  if (!status) status = run(d, &call);
  setup_unlock();
  return status;
}
