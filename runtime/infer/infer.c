/* Infer blocks, for whoever calls them: weights, then arguments in and results out. */
#include "runtime/runtime.h"

static void tell_nobody(void *to, bool warning, const char *line)
{
  (void)to, (void)warning, (void)line;
}

/* Start values first: random numbers begin where the seed says, and `missing` names what keeps its.
 */
static ampc_status take_weights(ampc_runtime *rt, const char *weights, const char *data_dir,
                                ampc_tell *tell, void *to)
{
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = ampc_init_params(rt, p->seed);
  if (status || !p->n_params) return status;
  if (weights) return ampc_load_weights(rt, weights, tell, to);
  if (p->n_loads) return ampc_load_params(rt, data_dir, tell, to);
  return ampc_fail(AMPC_BAD_USAGE, "the weights are missing: give a file, or `load` one in %s",
                   p->source);
}

ampc_status ampc_infer_open(const ampc_program *program, const char *device, const char *weights,
                            const char *data_dir, ampc_tell *tell, void *to, ampc_runtime **out)
{
  ampc_status status = ampc_create(program, device, out);
  if (status) return status;
  status = take_weights(*out, weights, data_dir, tell ? tell : tell_nobody, to);
  if (status) {
    ampc_free(*out);
    *out = NULL;
  }
  return status;
}

int64_t ampc_output_elements(const ampc_output_desc *o)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < o->rank; i++) n *= o->dim[i];
  return n;
}

static ampc_status write_arguments(ampc_runtime *rt, const ampc_block *b, const void *const *in)
{
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *s = &p->sources[b->first_source + i];
    int64_t bytes = ampc_element_size(p, s->dtype);
    for (uint32_t k = 0; k < s->rank; k++) bytes *= s->dim[k];
    status = ampc_write(rt, (ampc_ref){AMPC_INPUT, s->offset}, in[i], bytes);
  }
  return status;
}

ampc_status ampc_infer(ampc_runtime *rt, uint32_t block, const void *const *in, void *const *out)
{
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = write_arguments(rt, &p->blocks[block], in);
  if (!status) status = ampc_run_step(rt, block, 0);
  if (!status) status = ampc_wait(rt);
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_outputs && !status; i++) {
    const ampc_output_desc *o = &p->outputs[i];
    if (o->block != block) continue;
    int64_t bytes = ampc_output_elements(o) * ampc_element_size(p, o->dtype);
    status = ampc_read(rt, o->place, out[n++], bytes);
  }
  return status;
}
