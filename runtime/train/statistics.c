/* Fills the buffers of layers Standardize: means and deviations of the samples that a train block
 * reads. A buffer that was loaded keeps its values. */
#include "statistics.h"
#include <stdlib.h>
#include "runtime/base/convert.h"

/* Whether all values are 0, as initial values are. */
static bool is_empty(const ampc_program *p, const ampc_param *q, const char *bytes)
{
  for (int64_t i = 0; i < q->elements; i++)
    if (number_load(q->dtype, p->real64, bytes, i) != 0) return false;
  return true;
}

/* Fills one buffer [2, channels] from a source of the block. */
static ampc_status fill(ampc_runtime *rt, const ampc_param *q, const ampc_data_interface *data,
                        const ampc_batches *from, uint32_t source)
{
  const ampc_program *p = rt->program;
  double *values = calloc((size_t)q->elements + 1, sizeof *values);
  char *bytes = malloc((size_t)(q->elements * ampc_element_size(p, q->dtype)) + 1);
  ampc_status status = values && bytes ? ampc_read_param(rt, q, AMPC_BUFFER, bytes)
                                       : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  bool empty = !status && is_empty(p, q, bytes);
  if (empty && !data->measure)
    status = ampc_fail(AMPC_BAD_USAGE, "%s needs ampc_data_interface.measure", q->path);
  if (empty && !status) {
    status = data->measure(from, source, values, values + q->elements / 2);
    for (int64_t i = 0; i < q->elements; i++)
      number_store(q->dtype, p->real64, bytes, i, values[i]);
    if (!status) status = ampc_write_param(rt, q, AMPC_BUFFER, bytes);
  }
  free(values);
  free(bytes);
  return status;
}

ampc_status statistics_fill(ampc_runtime *rt, const ampc_data_interface *data,
                            const ampc_batches *from, uint32_t block)
{
  const ampc_program *p = rt->program;
  const ampc_block *b = &p->blocks[block];
  ampc_status status = AMPC_OK;
  if (b->kind != AMPC_TRAIN || rt->measured[block]) return AMPC_OK;
  rt->measured[block] = true;
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    const ampc_param *q = &p->params[i];
    uint32_t source = q->measured - 1 - b->first_source; /* huge if another block has it */
    if (q->measured && source < b->n_sources) status = fill(rt, q, data, from, source);
  }
  return status;
}
