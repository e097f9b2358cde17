/* Start values of parameters, and what follows from them. */
#include <stdlib.h>
#include "runtime/base/convert.h"
#include "init_values.h"
#include "runtime/runtime.h"

static bool fill_param(const ampc_program *p, const ampc_param *param, uint64_t seed, char *to)
{
  double *v = calloc((size_t)param->elements + 1, sizeof *v);
  if (!v) return false;
  init_values(param, seed, v);
  for (int64_t i = 0; i < param->elements; i++) number_store(param->dtype, p->real64, to, i, v[i]);
  free(v);
  return true;
}

/* Writes one space: all parameters of it, zeros between them. */
static ampc_status init_space(ampc_runtime *rt, ampc_space space, uint64_t seed)
{
  const ampc_program *p = rt->program;
  int64_t bytes = p->space_bytes[space];
  if (bytes == 0) return AMPC_OK;
  char *image = calloc(1, (size_t)bytes);
  bool good = image != NULL;
  for (uint32_t i = 0; i < p->n_params && good; i++) {
    const ampc_param *q = &p->params[i];
    if (q->buffer != (space == AMPC_BUFFER)) continue;
    int64_t unit = q->buffer ? 1 : ampc_element_size(p, AMPC_F32);
    good = fill_param(p, q, seed, image + q->offset * unit);
  }
  ampc_status status = good ? ampc_write(rt, (ampc_ref){space, 0}, image, bytes)
                            : ampc_fail(AMPC_RUN_FAILED, "out of memory for start values");
  free(image);
  return status;
}

static ampc_status zero_space(ampc_runtime *rt, ampc_space space)
{
  int64_t bytes = rt->program->space_bytes[space];
  return bytes ? rt->device->ops->fill(rt->device, rt->space[space], 0, bytes) : AMPC_OK;
}

/* Gradients too: a body adds to what lies there. */
ampc_status ampc_init_params(ampc_runtime *rt, uint64_t seed)
{
  ampc_status status = runtime_reset_state(rt, seed);
  if (!status) status = init_space(rt, AMPC_MASTER, seed);
  if (!status) status = init_space(rt, AMPC_BUFFER, seed);
  if (!status) status = zero_space(rt, AMPC_GRAD);
  if (!status) status = zero_space(rt, AMPC_MOMENT1);
  if (!status) status = zero_space(rt, AMPC_MOMENT2);
  return status ? status : ampc_refresh_copies(rt);
}

/* The 16-bit copies of one space; it has an element for each of MASTER, or for the first ones. */
static ampc_status refresh(ampc_runtime *rt, ampc_space space, ampc_dtype type, const float *master,
                           int64_t elements)
{
  int64_t bytes = rt->program->space_bytes[space];
  if (bytes == 0) return AMPC_OK;
  if (elements > bytes / 2) elements = bytes / 2;
  void *copy = calloc(1, (size_t)bytes);
  if (!copy) return ampc_fail(AMPC_RUN_FAILED, "out of memory for weight copies");
  convert_narrow(type, master, copy, elements);
  ampc_status status = ampc_write(rt, (ampc_ref){space, 0}, copy, bytes);
  free(copy);
  return status;
}

/* On the host, where no step is under way; in a step the optimizer's kernel writes them. */
ampc_status ampc_refresh_copies(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  int64_t bytes = p->space_bytes[AMPC_MASTER];
  if (p->real64 || bytes == 0) return AMPC_OK; /* no 16-bit types with real64 */
  float *master = malloc((size_t)bytes);
  if (!master) return ampc_fail(AMPC_RUN_FAILED, "out of memory for weight copies");
  int64_t n = bytes / (int64_t)sizeof *master;
  ampc_status status = ampc_read(rt, (ampc_ref){AMPC_MASTER, 0}, master, bytes);
  if (!status) status = refresh(rt, AMPC_COPY16, AMPC_F16, master, n);
  if (!status) status = refresh(rt, AMPC_COPYBF, AMPC_BF16, master, n);
  free(master);
  return status;
}
