/* Prints all probed values as JSON, in the order of the step. */
#include "probe.h"
#include <math.h>

static const char *const kinds[] = {[PROBE_value] = "value",
                                    [PROBE_weight] = "weight",
                                    [PROBE_gradient] = "gradient",
                                    [PROBE_update] = "update",
                                    [PROBE_scale] = "scale"};

/* Returns a list of [exponent of 2, number of elements], without empty exponents. Entry -127 counts
 * all elements below 2^-126 except zeros. */
static json_t *exponents_json(const Range *r)
{
  json_t *out = json_array();
  for (int e = 0; e < RANGE_EXPONENTS - 1; e++) {
    int64_t n = r->exponent[e] - (e ? 0 : r->zeros);
    if (n) json_array_append_new(out, json_pack("[i, I]", e ? e - 127 : -127, (json_int_t)n));
  }
  return out;
}

/* Returns how many elements would become infinite, 0 or subnormal in type d. */
static json_t *limits_json(const Range *r, ampc_dtype d)
{
  return json_pack("{s:I, s:I, s:I}", "over", (json_int_t)range_over(r, d), "under",
                   (json_int_t)range_under(r, d, 1), "subnormal",
                   (json_int_t)range_subnormal(r, d));
}

/* Adds the bound of a value, over all variants of its block, and whether it is known to be safe. */
static void add_bound(const Watch *w, const ValueBound *of, uint32_t value, json_t *out)
{
  const Graph *g = w->c->graph;
  Interval all = {INFINITY, -INFINITY};
  bool safe = true;
  for (uint32_t i = 0; i < g->probes.n; i++) {
    if (w->seen[i] != value) continue;
    const Node *ranges = ir_in(w->c, ir_node(g, g->probes.at[i].kept), 0);
    const ValueBound *b = &of[ranges->in[0].id];
    Interval r = bound_stored(b);
    all = (Interval){fmin(all.low, r.low), fmax(all.high, r.high)};
    safe &= b->verdict == VERDICT_safe || b->verdict == VERDICT_zero;
  }
  bool finite = isfinite(all.low) && isfinite(all.high);
  json_object_set_new(out, "bound", finite ? json_pack("[f, f]", all.low, all.high) : json_null());
  json_object_set_new(out, "overflow", json_string(safe ? "no" : "open"));
}

static json_t *value_json(const Watch *w, const Seen *s)
{
  const Range *r = &s->range;
  const Node *n = &s->probe->of;
  bool gradient = s->probe->kind == PROBE_gradient;
  json_t *out =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s?, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o*}",
                "kind", kinds[s->probe->kind], "name", s->name, "path",
                s->probe->kind != PROBE_value ? s->name
                : n->layer                    ? n->layer
                                              : "",
                "op", op_of(n)->name, "type", ir_dtype_name(n->dtype), "backward",
                seen_is_backward(s), "file", s->place.source ? s->place.source->shown : NULL,
                "line", (json_int_t)(s->place.source ? s->place.line : 0), "elements",
                (json_int_t)r->n, "zeros", (json_int_t)r->zeros, "nan", (json_int_t)r->nans,
                "infinite", (json_int_t)r->infinite, "greatest", r->greatest, "least", r->least,
                "scale", gradient ? json_real(seen_scale(w, s)) : NULL);
  for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT; d++)
    if (ampc_is_narrow(d)) json_object_set_new(out, ampc_dtype_name(d), limits_json(r, d));
  json_object_set_new(out, "exponents", exponents_json(r));
  return out;
}

static json_t *findings_json(const Watch *w)
{
  uint32_t n;
  json_t *out = json_array();
  const Finding *at = watch_findings(w, &n);
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(out,
                          json_pack("{s:I, s:s, s:s}", "value", (json_int_t)(at[i].seen - w->at),
                                    "text", finding_text(w, &at[i]), "help", at[i].cure));
  return out;
}

json_t *watch_json(const Watch *w)
{
  json_t *values = json_array();
  const ValueBound *bounds = bounds_find(w->c);
  for (uint32_t i = 0; i < w->n; i++) {
    json_t *value = value_json(w, &w->at[i]);
    add_bound(w, bounds, i, value);
    json_array_append_new(values, value);
  }
  return json_pack("{s:s, s:s, s:I, s:f, s:o, s:o}", "job", w->c->program->source, "precision",
                   w->c->program->precision, "steps", (json_int_t)w->steps, "scale", w->scale,
                   "findings", findings_json(w), "values", values);
}
