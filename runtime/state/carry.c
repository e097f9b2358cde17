/* Carries the state of a run from the runtime of one program to that of another. */
#include <stdlib.h>
#include <string.h>
#include "saved.h"

/* ---- tensors ---- */

/* Copies the values of `a` to `b`, which has the same type and shape. They pass through host memory
 * in the order of their shape, because the programs may store them in different ways. */
static ampc_status copy(ampc_runtime *from, const Entry *a, ampc_runtime *to, const Entry *b)
{
  int64_t size = ampc_element_size(to->program, b->param->dtype);
  void *room = malloc((size_t)(b->param->elements * size) + 1);
  if (!room) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read_param(from, a->param, a->space, room);
  if (!status) status = ampc_write_param(to, b->param, b->space, room);
  free(room);
  return status;
}

static bool same_shape(const ampc_param *a, const ampc_param *b)
{
  return a->buffer == b->buffer && a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dim, b->dim, b->rank * sizeof *b->dim) == 0;
}

/* Finds what `like` takes over; NULL: its initial value stays. Another kind of optimizer gives
 * moments another meaning. */
static const Entry *find_entry(const Entries *from, const Entry *like)
{
  for (uint32_t i = 0; i < from->n; i++) {
    const Entry *a = &from->at[i];
    if (a->space == like->space && strcmp(a->name, like->name) == 0 &&
        same_shape(a->param, like->param) &&
        (!like->of || strcmp(a->of->kind, like->of->kind) == 0))
      return a;
  }
  return NULL;
}

/* Finds the value of the same parameter in another space: averages of one program and weights of
 * the other. */
static const Entry *find_value(const Entries *from, const Entry *like, ampc_space space)
{
  for (uint32_t i = 0; i < from->n; i++) {
    const Entry *a = &from->at[i];
    if (a->space == space && strcmp(a->param->path, like->param->path) == 0 &&
        same_shape(a->param, like->param))
      return a;
  }
  return NULL;
}

/* `averages`: copies those alone, to the weights. */
static ampc_status carry_tensors(ampc_runtime *from, ampc_runtime *to, bool averages,
                                 uint32_t *out_kept)
{
  Entries a, b = {0};
  ampc_status status = entries_of(from->program, ENTRIES_run, &a);
  if (!status) status = entries_of(to->program, ENTRIES_run, &b);
  for (uint32_t i = 0; i < b.n && !status; i++) {
    const Entry *like = &b.at[i];
    const Entry *old = averages ? find_value(&a, like, AMPC_EMA) : find_entry(&a, like);
    /* an average that begins now begins with the weight */
    if (!old && like->space == AMPC_EMA) old = find_value(&a, like, AMPC_MASTER);
    if (old) status = copy(from, old, to, like);
    *out_kept += old && !like->of;
  }
  entries_free(&a);
  entries_free(&b);
  return status ? status : ampc_refresh_copies(to);
}

ampc_status state_carry_averages(ampc_runtime *from, ampc_runtime *to)
{
  uint32_t kept = 0;
  return carry_tensors(from, to, true, &kept);
}

/* ---- numbers ---- */

/* Takes the numbers of optimizers with the same name and kind, and of plateaus of settings with the
 * same name. */
static void match(const ampc_program *p, const Saved *from, const ampc_program *q, Saved *to)
{
  to->state = from->state;
  to->dynamic = from->dynamic;
  to->patience = from->patience;
  for (uint32_t i = 0; i < q->n_optimizers; i++)
    for (uint32_t k = 0; k < p->n_optimizers; k++) {
      const ampc_optimizer_desc *a = &p->optimizers[k], *b = &q->optimizers[i];
      if (strcmp(a->name, b->name) != 0 || strcmp(a->kind, b->kind) != 0) continue;
      to->optimizer[i] = from->optimizer[k];
      to->has[i] = true;
    }
  for (uint32_t i = 0; i < q->n_plateaus; i++)
    for (uint32_t k = 0; k < p->n_plateaus; k++)
      if (strcmp(p->settings[p->plateaus[k].setting].name,
                 q->settings[q->plateaus[i].setting].name) == 0)
        to->plateau[i] = from->plateau[k];
}

static ampc_status carry_numbers(ampc_runtime *from, ampc_runtime *to)
{
  Saved a, b = {0};
  ampc_status status = saved_open(from->program, &a);
  if (!status) status = saved_open(to->program, &b);
  if (!status) status = saved_read(from, &a);
  if (!status) match(from->program, &a, to->program, &b);
  if (!status) status = saved_apply(to, &b);
  saved_free(&a);
  saved_free(&b);
  return status;
}

ampc_status state_carry(ampc_runtime *from, ampc_runtime *to, uint32_t *out_kept)
{
  *out_kept = 0;
  if (from->given_hash) to->given_hash = from->given_hash;
  ampc_status status = ampc_wait(from);
  if (!status) status = carry_numbers(from, to);
  return status ? status : carry_tensors(from, to, false, out_kept);
}
