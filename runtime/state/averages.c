/* Averages of weights, which eval and infer blocks read where an optimizer has `ema`: what they
 * begin with, and those of a checkpoint of ours whose weights alone are wanted. Resuming is
 * checkpoint.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "param.h"
#include "runtime/runtime.h"
#include "safetensors.h"

enum { PIECE = 1 << 20 /* bytes that are on their way at once */ };

/* The space has the optimizers' parameters, which come first in MASTER. */
ampc_status averages_begin(ampc_runtime *rt)
{
  int64_t bytes = rt->program->space_bytes[AMPC_EMA];
  if (!bytes) return AMPC_OK;
  return rt->device->ops->copy(rt->device, rt->space[AMPC_EMA], rt->space[AMPC_MASTER], bytes);
}

/* One that the file lacks, as under another name of the optimizer, stays the weight. */
static ampc_status load_one(ampc_runtime *rt, const TensorFile *f, const ampc_param *q, char *piece)
{
  const ampc_program *p = rt->program;
  const char *optimizer = ampc_average_of(p, q)->name;
  TensorType type = {AMPC_F32, p->real64, q->rank, q->dim};
  char *name = NULL;
  if (asprintf(&name, "optimizer.%s.ema/%s", optimizer, q->path) < 0)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for weights");
  int64_t size = ampc_element_size(p, AMPC_F32), begin = tensor_file_find(f, name, &type);
  int64_t each = param_piece(q, PIECE / size);
  free(name);
  ampc_status status = AMPC_OK;
  for (int64_t at = 0; begin >= 0 && at < q->elements && !status; at += each) {
    int64_t n = q->elements - at < each ? q->elements - at : each;
    status = tensor_file_load(f, begin + at * size, piece, n * size);
    if (!status) status = param_write(rt, q, AMPC_EMA, at, n, piece);
  }
  return status;
}

static ampc_status load_all(ampc_runtime *rt, const TensorFile *f)
{
  const ampc_program *p = rt->program;
  int64_t most = PIECE, size = ampc_element_size(p, AMPC_F32);
  for (uint32_t i = 0; i < p->n_params; i++) {
    int64_t bytes = param_piece(&p->params[i], PIECE / size) * size;
    if (bytes > most) most = bytes;
  }
  char *piece = malloc((size_t)most);
  ampc_status status = piece ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for weights");
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    const ampc_param *q = &p->params[i];
    if (ampc_average_of(p, q)) status = load_one(rt, f, q, piece);
  }
  free(piece);
  return status;
}

/* Files of others, and the index of several, have none. */
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
