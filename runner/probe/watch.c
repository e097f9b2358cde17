/* Reads the counts of probes, and sums the counts of one value over steps and variants of a
 * block. */
#include "compiler/graph/ir.h"
#include "probe.h"
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

bool seen_is_backward(const Seen *s)
{
  return s->probe->kind != PROBE_value || s->probe->of.origin.id != 0;
}

double seen_scale(const Watch *w, const Seen *s)
{
  uint32_t probe = s->probe->kind == PROBE_gradient ? s->probe->scale : 0;
  return probe ? w->at[w->seen[probe - 1]].range.greatest : 1;
}

static const char *data_name(const Compile *c, const Node *n)
{
  const char *path = c->program->sources[attr_int(n, "index")].path;
  if (n->name) return arena_printf(c->arena, "data `%s`", n->name);
  return path ? arena_printf(c->arena, "data of %s", path) : "data of the batch";
}

static const char *name_of(Compile *c, const Probe *p)
{
  const Graph *g = c->graph;
  if (p->kind == PROBE_scale) return "of an optimizer";
  if (p->kind != PROBE_value) return g->params.at[p->param].path;
  const Node *n = &p->of;
  const char *back = n->origin.id ? "gradient in " : "";
  if (n->op == OP_source) return data_name(c, n);
  const char *of = n->layer ? n->layer : g->blocks.at[n->block].name;
  const char *name = n->name ? arena_printf(c->arena, " `%s`", n->name) : "";
  return arena_printf(c->arena, "%s%s %s%s", back, of, op_of(n)->name, name);
}

/* ---- the same value in several variants of a block ---- */

static bool same_value(const Compile *c, const Probe *a, const Probe *b)
{
  const BlockInfo *blocks = c->graph->blocks.at;
  return a->kind == b->kind && a->param == b->param && a->of.op == b->of.op &&
         a->of.span.start == b->of.span.start && a->of.layer == b->of.layer &&
         !a->of.origin.id == !b->of.origin.id &&
         blocks[a->of.block].in_program == blocks[b->of.block].in_program;
}

/* Returns the first entry for this value that has no probe of this variant yet; w->n if none has.
 * Both lists are in the order of the step, so several equal values match in order. */
static uint32_t entry_of(const Watch *w, const Probe *p, const uint16_t *last_block)
{
  for (uint32_t i = 0; i < w->n; i++)
    if (last_block[i] != p->of.block && same_value(w->c, w->at[i].probe, p)) return i;
  return w->n;
}

void watch_init(Watch *w, Compile *c)
{
  const Graph *g = c->graph;
  *w = (Watch){.c = c,
               .seen = arena_array(c->arena, uint32_t, g->probes.n + 1),
               .at = arena_array(c->arena, Seen, g->probes.n + 1)};
  uint16_t *last_block = arena_array(c->arena, uint16_t, g->probes.n + 1);
  for (uint32_t i = 0; i < g->probes.n; i++) {
    const Probe *p = &g->probes.at[i];
    bool variant = g->blocks.at[p->of.block].variant_of >= 0;
    uint32_t at = variant ? entry_of(w, p, last_block) : w->n;
    if (at == w->n) {
      Span span = diag_user_span(c, p->of.span);
      bool param = p->kind != PROBE_value && p->kind != PROBE_scale;
      if (param) span = g->params.at[p->param].span;
      w->at[w->n++] = (Seen){.probe = p, .name = name_of(c, p)};
      if (span.end) w->at[at].place = diag_place(c, span);
    }
    w->seen[i] = at;
    last_block[at] = p->of.block;
  }
}

void watch_clear(Watch *w)
{
  w->steps = 0;
  for (uint32_t i = 0; i < w->n; i++) w->at[i].range = (Range){0};
}

/* ---- reading ---- */

static ampc_status read_one(Watch *w, ampc_runtime *rt, uint32_t i, int32_t **room, size_t *size)
{
  const Graph *g = w->c->graph;
  const Node *ranges = ir_node(g, value_root(g, g->probes.at[i].kept));
  const Node *of = ir_node(g, ranges->in[0]);
  size_t need = (size_t)ir_elements(ranges) * sizeof(int32_t);
  if (need > *size) {
    free(*room);
    *room = malloc(*size = need);
    if (!*room) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  }
  ampc_status status = ampc_read(rt, ranges->place, *room, (int64_t)need);
  if (!status) range_add(&w->at[w->seen[i]].range, *room, ranges->dim[0], ir_elements(of));
  return status;
}

ampc_status watch_read(Watch *w, ampc_runtime *rt, uint32_t block, bool *found)
{
  const Graph *g = w->c->graph;
  int32_t *room = NULL;
  size_t size = 0;
  ampc_state state;
  ampc_status status = AMPC_OK;
  *found = false;
  for (uint32_t i = 0; i < g->probes.n && !status; i++) {
    const BlockInfo *b = &g->blocks.at[g->probes.at[i].of.block];
    if (b->in_program != block || b->variant != rt->last_variant) continue;
    *found = true;
    status = read_one(w, rt, i, &room, &size);
  }
  free(room);
  if (status || !*found) return status;
  status = ampc_get_state(rt, &state);
  w->steps++;
  w->scale = (double)state.scale;
  return status;
}

/* ---- the first value that is not finite ---- */

const Seen *watch_input(const Watch *w, const Seen *s, uint32_t input)
{
  uint32_t probe = s->probe->in ? s->probe->in[input] : 0;
  return probe ? &w->at[w->seen[probe - 1]] : NULL;
}

/* Marks values whose only fault are infinities that the job itself puts in, such as -inf of a mask.
 * Ops that keep the number of elements pass them on; a NaN or a sum is no longer meant. */
static void mark_meant(Watch *w)
{
  for (uint32_t i = 0; i < w->n; i++) {
    Seen *s = &w->at[i];
    s->meant = s->range.infinite && s->probe->masked;
    for (uint32_t k = 0; k < s->probe->of.n_in && s->range.infinite; k++) {
      const Seen *in = watch_input(w, s, k);
      s->meant = s->meant || (in && in->meant && in->range.n == s->range.n);
    }
    s->meant = s->meant && !s->range.nans;
  }
}

static bool is_sound(const Seen *s)
{
  return s->meant || range_is_finite(&s->range);
}

const Seen *watch_first_lost(Watch *w, bool backward)
{
  mark_meant(w);
  for (uint32_t i = 0; i < w->n; i++) {
    const Seen *s = &w->at[i];
    bool first = s->range.n > 0 && !is_sound(s) && seen_is_backward(s) == backward;
    if (s->probe->kind == PROBE_weight && !backward && !is_sound(s)) return s;
    for (uint32_t k = 0; first && k < s->probe->of.n_in; k++) {
      const Seen *in = watch_input(w, s, k);
      first = !in || is_sound(in);
    }
    if (first) return s;
  }
  return NULL;
}
