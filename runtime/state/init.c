/* Sets parameters to their initial values, and fills the spaces that depend on them. */
#include <stdlib.h>
#include "runtime/base/convert.h"
#include "init_values.h"
#include "param.h"
#include "runtime/members.h"
#include "common/needs.h"
#include "runtime/plan/types.h"

enum { PIECE = 1 << 15 /* values converted at once: no copy of all weights is made */ };

static ampc_status zero_space(ampc_runtime *rt, ampc_space space)
{
  return members_fill(rt, space);
}

/* Initializes a parameter. Values are computed as doubles and stored in its own type. */
static ampc_status init_param(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              uint64_t seed)
{
  const ampc_program *p = rt->program;
  int64_t size = ampc_element_size(p, q->dtype);
  int64_t piece = init_is_whole(q) ? q->elements : param_piece(q, PIECE);
  double *values = malloc((size_t)piece * sizeof *values);
  char *bytes = malloc((size_t)(piece * size));
  ampc_status status = AMPC_OK;
  bool fits = values && bytes;
  for (int64_t i = 0; i < q->elements && fits && !status; i += piece) {
    int64_t n = q->elements - i < piece ? q->elements - i : piece;
    fits = init_values(q, seed, i, n, values);
    if (!fits) break;
    for (int64_t k = 0; k < n; k++) number_store(q->dtype, p->real64, bytes, k, values[k]);
    status = param_write(rt, q, space, i, n, bytes);
  }
  if (!fits) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for initial values");
  free(values);
  free(bytes);
  return status;
}

/* Originals come first, so a copy of a copy gets the right values. */
ampc_status copies_begin(ampc_runtime *rt, const bool *keep)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    const ampc_param *q = &p->params[i];
    if (q->init.kind != AMPC_INIT_COPY || (keep && keep[i])) continue;
    const ampc_param *from = &p->params[(uint32_t)q->init.a];
    void *values = malloc((size_t)(q->elements * ampc_element_size(p, q->dtype)));
    if (!values) return ampc_fail(AMPC_RUN_FAILED, "out of memory for the copy %s", q->path);
    status = ampc_read_param(rt, from, from->buffer ? AMPC_BUFFER : AMPC_MASTER, values);
    if (!status) status = ampc_write_param(rt, q, AMPC_BUFFER, values);
    free(values);
  }
  return status;
}

/* Writes all parameters of one space, and zeros into the gaps between them. */
static ampc_status init_space(ampc_runtime *rt, ampc_space space, uint64_t seed)
{
  const ampc_program *p = rt->program;
  ampc_status status = zero_space(rt, space);
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    if (p->params[i].buffer != (space == AMPC_BUFFER)) continue;
    if (rt->unset)
      rt->unset[i] = true;
    else if (p->params[i].init.kind != AMPC_INIT_COPY)
      status = init_param(rt, &p->params[i], space, seed);
  }
  return status;
}

ampc_status init_begin_deferred(ampc_runtime *rt, uint64_t seed)
{
  rt->unset = calloc(rt->program->n_params + 1, sizeof *rt->unset);
  if (!rt->unset) return ampc_fail(AMPC_RUN_FAILED, "out of memory for initial values");
  return ampc_init_params(rt, seed);
}

ampc_status init_end_deferred(ampc_runtime *rt, uint64_t seed)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  bool any = false;
  for (uint32_t i = 0; i < p->n_params && rt->unset && !status; i++) {
    const ampc_param *q = &p->params[i];
    if (!rt->unset[i]) continue;
    any = true;
    if (q->init.kind != AMPC_INIT_COPY)
      status = init_param(rt, q, q->buffer ? AMPC_BUFFER : AMPC_MASTER, seed);
  }
  for (uint32_t i = 0; i < p->n_params && rt->unset; i++) rt->unset[i] = !rt->unset[i];
  if (any && !status) status = copies_begin(rt, rt->unset); /* keeps what files have set */
  free(rt->unset);
  rt->unset = NULL;
  return any && !status ? ampc_refresh_copies(rt) : status;
}

/* Also clears gradients, because a body adds to them. */
ampc_status ampc_init_params(ampc_runtime *rt, uint64_t seed)
{
  NEEDS(rt);
  ampc_status status = runtime_reset_state(rt, seed);
  if (!status) status = zero_space(rt, AMPC_RESIDUE);
  if (!status) status = init_space(rt, AMPC_MASTER, seed);
  if (!status) status = init_space(rt, AMPC_BUFFER, seed);
  if (!status && !rt->unset) status = copies_begin(rt, NULL);
  if (!status) status = zero_space(rt, AMPC_GRAD);
  for (ampc_space s = AMPC_MOMENT1; s <= AMPC_SCALE3 && !status; s++) status = zero_space(rt, s);
  if (!status) status = averages_begin(rt);
  return status || rt->unset ? status : ampc_refresh_copies(rt);
}

/* Writes elements [first, first + n) of the copies of a type, up to the end of its space. */
static ampc_status refresh(ampc_runtime *rt, ampc_dtype type, const float *master, int64_t first,
                           int64_t n)
{
  ampc_space space = ampc_type_of(type)->copies;
  int64_t size = ampc_dtype_size(type), room = rt->program->space_bytes[space] / size - first;
  if (n > room) n = room;
  float copy[PIECE]; /* large enough for any type */
  if (n <= 0) return AMPC_OK;
  convert_narrow(type, master, copy, n);
  return ampc_write(rt, (ampc_ref){space, size * first}, copy, size * n);
}

/* Converts on the host, between steps. Within a step, the optimizer's kernel writes the copies. */
ampc_status ampc_refresh_copies(ampc_runtime *rt)
{
  NEEDS(rt);
  const ampc_program *p = rt->program;
  int64_t size = sizeof(float), all = p->space_bytes[AMPC_MASTER] / size;
  int64_t copies = 0;
  for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT; d++)
    copies += p->space_bytes[ampc_type_of(d)->copies];
  if (p->real64 || !copies) return AMPC_OK; /* no narrow types with real64 */
  float *master = malloc((size_t)(PIECE * size));
  if (!master) return ampc_fail(AMPC_RUN_FAILED, "out of memory for weight copies");
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < all && !status; i += PIECE) {
    int64_t n = all - i < PIECE ? all - i : PIECE;
    status = ampc_read(rt, (ampc_ref){AMPC_MASTER, i * size}, master, n * size);
    for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT && !status; d++)
      status = refresh(rt, d, master, i, n);
  }
  free(master);
  return status;
}
