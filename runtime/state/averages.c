/* Averages of weights, which eval and infer blocks read if an optimizer has `ema`: their initial
 * values, and loading them together with the weights of a checkpoint. checkpoint.c resumes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "param.h"
#include "runtime/members.h"
#include "runtime/runtime.h"
#include "safetensors.h"

/* Widens bf16 weights to the averages. */
static ampc_status widen_weight(ampc_runtime *rt, const ampc_param *q)
{
  float *values = malloc((size_t)q->elements * sizeof *values + 1);
  if (!values) return ampc_fail(AMPC_RUN_FAILED, "out of memory for averages of weights");
  ampc_status status = ampc_read_param(rt, q, AMPC_MASTER, values);
  if (!status) status = ampc_write_param(rt, q, AMPC_EMA, values);
  free(values);
  return status;
}

/* EMA has only averages of parameters that an optimizer updates, which are first in MASTER. */
ampc_status averages_begin(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  int64_t bytes = p->space_bytes[AMPC_EMA];
  if (!bytes) return AMPC_OK;
  if (p->weights == AMPC_F32)
    return rt->device->ops->copy(rt->device, rt->space[AMPC_EMA], rt->space[AMPC_MASTER], bytes);
  ampc_status status = members_fill(rt, AMPC_EMA);
  for (uint32_t i = 0; i < p->n_params && !status; i++)
    if (ampc_average_of(p, &p->params[i])) status = widen_weight(rt, &p->params[i]);
  return status;
}

/* Loads one average. If the file lacks it (a renamed optimizer), it keeps the weight's value. */
static ampc_status load_one(ampc_runtime *rt, const TensorFile *f, const ampc_param *q)
{
  const ampc_program *p = rt->program;
  TensorType type = {AMPC_F32, p->real64, q->rank, q->dim};
  char *name = NULL;
  if (asprintf(&name, "optimizer.%s.ema/%s", ampc_average_of(p, q)->name, q->path) < 0)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for weights");
  TensorPlace from = {f, tensor_file_find(f, name, &type)};
  free(name);
  if (from.begin < 0) return AMPC_OK;
  return param_move(rt, q, AMPC_EMA, true, tensor_place_load, &from);
}

static ampc_status load_all(ampc_runtime *rt, const TensorFile *f)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_params && !status; i++)
    if (ampc_average_of(p, &p->params[i])) status = load_one(rt, f, &p->params[i]);
  return status;
}

/* Does nothing for files of other programs and for an index of files, which contain no averages. */
ampc_status averages_load(ampc_runtime *rt, const char *path)
{
  TensorFile f = {.fd = -1};
  size_t n = strlen(path);
  bool index = n > 5 && strcmp(path + n - 5, ".json") == 0;
  if (!rt->program->space_bytes[AMPC_EMA] || index) return AMPC_OK;
  ampc_status status = tensor_file_read_any(path, &f);
  if (!status && tensor_file_get(&f, "ampc.version")) status = load_all(rt, &f);
  tensor_file_free(&f);
  return status;
}
