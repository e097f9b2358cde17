/* Infer blocks for their callers: loading weights, passing arguments and returning results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/outside.h"
#include "runtime/runtime.h"
#include "common/needs.h"

/* Loads the weights. The parameters that no file has get their initial values at the end, so that
 * those of the others need not be computed. */
static ampc_status take_weights(ampc_runtime *rt, const char *weights, const char *data_dir,
                                ampc_tell *tell, void *to)
{
  const ampc_program *p = ampc_program_of(rt);
  if (p->n_params && !weights && !p->n_loads)
    return ampc_fail(AMPC_BAD_USAGE, "the weights are missing: give a file, or `load` one in %s",
                     p->source);
  ampc_status status = init_begin_deferred(rt, p->seed);
  if (!status && weights) status = ampc_load_given(rt, data_dir, tell, to);
  if (!status && weights) status = ampc_load_weights(rt, weights, tell, to);
  if (!status && !weights && p->n_loads) status = ampc_load_params(rt, data_dir, tell, to);
  if (!status) status = init_end_deferred(rt, p->seed);
  free(rt->unset); /* there after a failure */
  rt->unset = NULL;
  return status;
}

ampc_status ampc_infer_open(const ampc_program *program, const char *device, const char *weights,
                            const char *data_dir, ampc_tell *tell, void *to, ampc_runtime **out)
{
  NEEDS(program && out);
  ampc_status status = ampc_create(program, device, out);
  if (status) return status;
  status = take_weights(*out, weights, data_dir, tell, to);
  if (!status) status = loop_set_lengths(*out);
  if (status) {
    ampc_free(*out);
    *out = NULL;
  }
  return status;
}

/* ---- sizes ---- */

static bool has_sizes(const ampc_block *b, const int64_t *sizes)
{
  if (!sizes) return !b->n_sizes;
  for (uint32_t i = 0; i < b->n_sizes; i++)
    if (b->size[i].size != sizes[i]) return false;
  return true;
}

/* Appends "N = 1, S = 64" to `text`, and cuts off what does not fit. */
static void add_sizes(char *text, size_t room, const ampc_block *b, const int64_t *sizes)
{
  for (uint32_t i = 0; i < b->n_sizes; i++) {
    size_t n = strlen(text);
    snprintf(text + n, room - n, "%s%s = %lld", i ? ", " : "", b->size[i].name,
             (long long)(sizes ? sizes[i] : b->size[i].size));
  }
}

ampc_status ampc_infer_block(const ampc_program *program, const char *call, const int64_t *sizes,
                             uint32_t *out)
{
  NEEDS(program && call && out);
  char asked[400] = "", known[1200] = "";
  for (uint32_t i = 0; i < program->n_blocks; i++) {
    const ampc_block *b = &program->blocks[i];
    if (!b->call || strcmp(b->call, call) != 0) continue;
    *out = i;
    if (has_sizes(b, sizes)) return AMPC_OK;
    if (!*asked) add_sizes(asked, sizeof asked, b, sizes);
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s", n ? "; " : "");
    add_sizes(known, sizeof known, b, NULL);
  }
  if (!*known) return ampc_fail(AMPC_BAD_USAGE, "%s has no infer block %s", program->name, call);
  return ampc_fail(AMPC_BAD_USAGE, "infer %s is not compiled for %s; it is for %s", call, asked,
                   known);
}

/* ---- a call ---- */

int64_t ampc_output_elements(const ampc_output_desc *o)
{
  if (!o) return 0;
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
    int64_t elements = 1, bytes;
    if (!in || !in[i])
      return ampc_fail(AMPC_BAD_USAGE, "argument %s is NULL, expected its elements", s->path);
    for (uint32_t k = 0; k < s->rank; k++) elements *= s->dim[k];
    bytes = elements * ampc_element_size(p, s->dtype);
    status = outside_argument(p, s, in[i], s->rank, s->dim);
    if (status) return status;
    status = ampc_write(rt, (ampc_ref){AMPC_INPUT, s->offset}, in[i], bytes);
  }
  return status;
}

/* Checks before anything runs that no result's buffer is NULL. */
static ampc_status check_results(const ampc_program *p, uint32_t block, void *const *out)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_outputs; i++)
    if (p->outputs[i].block == block && (!out || !out[n++]))
      return ampc_fail(AMPC_BAD_USAGE, "the buffer for result %s is NULL", p->outputs[i].name);
  return AMPC_OK;
}

ampc_status ampc_infer(ampc_runtime *rt, uint32_t block, const void *const *in, void *const *out)
{
  NEEDS(rt && block < rt->program->n_blocks && rt->program->blocks[block].kind == AMPC_INFER);
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = check_results(p, block, out);
  if (!status) status = write_arguments(rt, &p->blocks[block], in);
  if (!status) status = runtime_set_call(rt, rt->calls++);
  if (!status) status = ampc_run_step(rt, block, 0);
  if (!status) status = ampc_wait(rt);
  if (!status) status = outside_take(rt);
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_outputs && !status; i++) {
    const ampc_output_desc *o = &p->outputs[i];
    if (o->block != block) continue;
    int64_t bytes = ampc_output_elements(o) * ampc_element_size(p, o->dtype);
    status = ampc_read(rt, o->place, out[n++], bytes);
  }
  return status;
}
