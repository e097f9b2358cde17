/* Averages of weights, which eval and infer blocks read if an optimizer has `ema`: their initial
 * values, and loading them together with the weights of a checkpoint. checkpoint.c resumes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "param.h"
#include "runtime/runtime.h"
#include "safetensors.h"

/* EMA has only averages of parameters that an optimizer updates, which are first in MASTER. */
ampc_status averages_begin(ampc_runtime *rt)
{
  int64_t bytes = rt->program->space_bytes[AMPC_EMA];
  if (!bytes) return AMPC_OK;
  return rt->device->ops->copy(rt->device, rt->space[AMPC_EMA], rt->space[AMPC_MASTER], bytes);
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
