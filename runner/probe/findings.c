/* Says in words what is wrong with a value. Each value has at most one finding, the worst. */
#include <stdlib.h>
#include "probe.h"
#include "runtime/plan/types.h"

/* Badness of a finding. Each group is a hundred times worse than the next group. In a group, the
 * fraction of affected elements decides. */
enum { LOST = 100000000, OVER = 1000000, UNDER = 10000, DULL = 100 };
/* Smallest fractions of the elements that are reported. */
static const double MANY = 0.001, MOST = 0.1;

typedef struct Judge {
  const Watch *w;
  const Seen *s;
  const Range *r;
  ampc_dtype type;
  Finding *out;
} Judge;

static bool found(const Judge *j, double badness, const char *text, const char *cure)
{
  *j->out = (Finding){j->s, badness, text, cure};
  return true;
}

static const char *type_name(const Judge *j)
{
  return ir_dtype_name(j->type);
}

#define TEXT(j, ...) arena_printf((j)->w->c->arena, __VA_ARGS__)

static double share(const Judge *j, int64_t n)
{
  return (double)n / (double)j->r->n;
}

static const char *where_cure(const Judge *j)
{
  return seen_is_backward(j->s)
             ? "lower the loss scale, or put autocast(f32) around its line"
             : "put autocast(f32) around its line, use bf16, or make its inputs smaller";
}

/* ---- the checks, the worst first ---- */

/* The first value that is not finite is worse than the values that are computed from it. */
static double lost_badness(const Judge *j)
{
  for (uint32_t i = 0; i < j->s->probe->of.n_in; i++) {
    const Seen *in = watch_input(j->w, j->s, i);
    if (in && !range_is_finite(&in->range)) return LOST / 2;
  }
  return j->s->probe->kind == PROBE_value || j->s->probe->kind == PROBE_weight ? LOST : LOST / 2;
}

static bool is_lost(const Judge *j)
{
  const Range *r = j->r;
  if (r->nans)
    return found(j, lost_badness(j),
                 TEXT(j, "%lld of %lld are NaN", (long long)r->nans, (long long)r->n), "");
  if (!r->infinite) return false;
  const char *end = j->type == AMPC_F32 ? ""
                                        : TEXT(j, "; the largest %s is %.6g", type_name(j),
                                               ampc_type_of(j->type)->greatest);
  return found(j, lost_badness(j),
               TEXT(j, "%lld of %lld are infinite%s", (long long)r->infinite, (long long)r->n, end),
               j->type == AMPC_F32 ? "" : where_cure(j));
}

/* Whether elements leave the range of f16. A weight itself is f32; its f16 copy may overflow. */
static bool is_over(const Judge *j)
{
  const Range *r = j->r;
  const Graph *g = j->w->c->graph;
  if (j->s->probe->kind == PROBE_weight && r->over_f16 &&
      g->params.at[j->s->probe->param].copies >> AMPC_F16 & 1)
    return found(j, OVER * (2 + share(j, r->over_f16)),
                 TEXT(j, "%lld of %lld are infinite in its f16 copy (largest: %.3g)",
                      (long long)r->over_f16, (long long)r->n, r->greatest),
                 "put autocast(f32) around its layer, or use weight decay");
  if (j->s->probe->kind != PROBE_value || j->type != AMPC_F16 || r->greatest < 32768) return false;
  return found(j, OVER, TEXT(j, "the largest is %.3g; the largest f16 is 65504", r->greatest),
               where_cure(j));
}

/* Whether rounding to 16 bits has turned numbers into 0 or into subnormal numbers. */
static bool is_under(const Judge *j)
{
  const Seen *from = watch_input(j->w, j->s, 0);
  if (j->s->probe->kind != PROBE_value) return false;
  if (op_has(&j->s->probe->of, T_casts) && from && from->range.n == j->r->n) {
    int64_t lost = j->r->zeros - from->range.zeros;
    if (share(j, lost) >= MANY)
      return found(
          j, UNDER * (1 + share(j, lost)),
          TEXT(j, "%.1f %% of the elements became 0 in %s", 100 * share(j, lost), type_name(j)),
          seen_is_backward(j->s) ? "use a larger loss scale, or bf16"
                                 : "use bf16, or make its inputs larger");
  }
  int64_t few = range_subnormal(j->r, j->type);
  if (j->type != AMPC_F16 || share(j, few) < MOST) return false;
  return found(j, UNDER * share(j, few),
               TEXT(j, "%.0f %% of the elements are below 6.1e-5, where f16 has fewer digits",
                    100 * share(j, few)),
               seen_is_backward(j->s) ? "use a larger loss scale, or bf16" : "");
}

static bool is_dull(const Judge *j)
{
  if (j->r->zeros < j->r->n) return false;
  if (j->s->probe->kind == PROBE_update)
    return found(j, 3 * DULL, "the step changes no element", "");
  if (j->s->probe->kind == PROBE_gradient) return found(j, 2 * DULL, "all are 0", "");
  return j->s->probe->kind == PROBE_value && j->r->n > 1 && found(j, DULL, "all are 0", "");
}

static bool judge(const Watch *w, const Seen *s, Finding *out)
{
  Judge j = {w, s, &s->range, s->probe->of.dtype, out};
  if (!s->range.n) return false;
  return is_lost(&j) || is_over(&j) || is_under(&j) || is_dull(&j);
}

/* ---- all of them ---- */

static int compare(const void *a, const void *b)
{
  const Finding *x = a, *y = b;
  if (x->badness != y->badness) return x->badness < y->badness ? 1 : -1;
  return x->seen < y->seen ? -1 : x->seen > y->seen; /* in the order of the step */
}

const Finding *watch_findings(const Watch *w, uint32_t *out_n)
{
  Finding *out = arena_array(w->c->arena, Finding, w->n + 1);
  *out_n = 0;
  for (uint32_t i = 0; i < w->n; i++) *out_n += judge(w, &w->at[i], &out[*out_n]);
  qsort(out, *out_n, sizeof *out, compare);
  return out;
}
