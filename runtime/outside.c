/* See outside.h. */
#include "outside.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/convert.h"
#include "runtime.h"

/* Writes where element `at` of a tensor of that shape is: "element [2, 1]", or "" for a scalar. */
static void place_of(uint32_t rank, const int64_t *dim, int64_t at, char *text, size_t room)
{
  int64_t below = 1;
  size_t n = 0;
  *text = 0;
  for (uint32_t i = 1; i < rank; i++) below *= dim[i];
  for (uint32_t i = 0; i < rank && n < room; i++) {
    n += (size_t)snprintf(text + n, room - n, "%s%" PRId64 "%s", i ? ", " : "element [",
                          at / below % dim[i], i + 1 < rank ? "" : "]");
    if (i + 1 < rank) below /= dim[i + 1];
  }
}

ampc_status outside_argument(const ampc_program *p, const ampc_source *s, const void *in,
                             uint32_t rank, const int64_t *dim)
{
  char place[160];
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; i++) elements *= dim[i];
  for (int64_t i = 0; i < elements && s->limit; i++) {
    double v = number_load(s->dtype, p->real64, in, i);
    if ((v >= 0 && v < (double)s->limit) || (s->ignored && v == (double)s->ignored)) continue;
    place_of(rank, dim, i, place, sizeof place);
    return ampc_fail(AMPC_BAD_USAGE, "argument %s%s%s is %.17g, expected 0 to %lld (%s)", s->path,
                     *place ? ": " : "", place, v, (long long)(s->limit - 1),
                     s->limit_why ? s->limit_why : "limit");
  }
  return AMPC_OK;
}

ampc_status outside_check(const ampc_program *p, const ampc_outside *o, const char *when)
{
  char place[300];
  if (!o->check) return AMPC_OK;
  const ampc_check *k = &p->checks[o->check - 1];
  place_of(k->rank, k->dim, o->at, place, sizeof place);
  bool label = strncmp(k->why, AMPC_LABELS_OF, strlen(AMPC_LABELS_OF)) == 0;
  return ampc_fail(AMPC_RUN_FAILED, "%s%s%s%s is %lld, expected 0 to %" PRId64 " (%s)", when, place,
                   *place ? " of " : "",
                   !label   ? "an index"
                   : *place ? "the labels"
                            : "a label",
                   o->value, k->rows - 1, k->why);
}

ampc_status outside_take(ampc_runtime *rt)
{
  const ampc_ref place = {AMPC_STATE, offsetof(ampc_state, outside)};
  ampc_outside found, none = {0};
  if (!rt->program->n_checks) return AMPC_OK;
  ampc_status status = ampc_read(rt, place, &found, sizeof found);
  if (status || !found.check) return status;
  status = ampc_write(rt, place, &none, sizeof none);
  return status ? status : outside_check(rt->program, &found, "");
}
