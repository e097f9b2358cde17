/* Writes the conclusions as sentences: whether the precision pays, and what prevents that. */
#include <math.h>
#include <string.h>
#include "explain.h"
#include "compiler/graph/shares.h"

/* ---- words ---- */

const char *explain_name(const Compile *c, Value v)
{
  const Node *n = ir_node(c->graph, v);
  const Parameter *p = ir_parameter(c->graph, n);
  if (p) return p->path;
  return n->name ? n->name : op_of(n)->name;
}

/* Returns ", line 14"; "" if the node has no line in the job. */
static const char *line_text(const Explanation *e, Value v)
{
  uint32_t line = node_line(e->c, v);
  return line ? arena_printf(e->c->arena, ", line %u", line) : "";
}

static double percent(double part, double all)
{
  return all > 0 ? 100 * part / all : 0;
}

static void say(Explanation *e, const char *text)
{
  vec_push(e->c->arena, &e->answer, text);
}

/* ---- casts ---- */

/* Returns how to avoid the casts of a value, by its type where it is created; or why it has its
 * type. */
static const char *cure_of(const Explanation *e, const ExplainSource *s)
{
  Compile *c = e->c;
  const Node *n = ir_node(c->graph, s->value);
  const char *low = c->graph->precision ? c->graph->precision : "f16", *name = NULL;
  const Parameter *p = ir_parameter(c->graph, n);
  if (p || n->name) name = explain_name(c, s->value);
  if (n->why == WHY_region && c->graph->regions.at[n->region].label)
    return arena_printf(
        c->arena,
        "%s makes it f32: move the ops that read it into that region, or compute it outside",
        c->graph->regions.at[n->region].label);
  if (n->why == WHY_f32 || n->why == WHY_promote)
    return arena_printf(c->arena, "%s", ir_why_text(c, n));
  if (p && p->init.kind == AMPC_INIT_COPY) return NULL; /* as its original */
  if (p && param_is_state(p)) return arena_printf(c->arena, "write `Buffer(.., dtype=%s)`", low);
  if (name && dtype_is_float(n->dtype))
    return arena_printf(c->arena, "write `%s.to(%s)` where it is computed", name,
                        n->dtype == AMPC_F32 ? low : "f32");
  return NULL;
}

static const char *source_text(const Explanation *e, const ExplainSource *s)
{
  const char *cure = cure_of(e, s);
  return arena_printf(e->c->arena, "casts of `%s`%s%s%s", explain_name(e->c, s->value),
                      line_text(e, s->value), cure ? "; " : "", cure ? cure : "");
}

static void say_casts(Explanation *e, const ExplainBlock *b, bool first_said)
{
  enum { MOST = 3 };
  for (uint32_t i = first_said; i < b->sources.n && i < MOST; i++) {
    const ExplainSource *s = &b->sources.at[i];
    say(e, arena_printf(e->c->arena, "%.0f %% of the time (%s, %s) is spent on %s",
                        percent(s->us, b->us), time_text(e->c->arena, s->us),
                        bytes_text(e->c->arena, (double)s->bytes), source_text(e, s)));
  }
  for (uint32_t i = 0; i < b->nodes.n && b->weight_casts; i++)
    if (b->nodes.at[i].weight_cast) {
      say(e,
          arena_printf(e->c->arena, "%u cast%s of weights in each step; the first one casts `%s`%s",
                       b->weight_casts, b->weight_casts == 1 ? "" : "s",
                       explain_name(e->c, ir_node(e->c->graph, b->nodes.at[i].value)->in[0]),
                       line_text(e, b->nodes.at[i].value)));
      return;
    }
}

/* ---- does it pay? ---- */

/* Returns the CostPart with the most time. Casts within other kernels count as casts. */
static CostPart largest_part(const ExplainBlock *b, double *us)
{
  CostPart most = PART_products;
  for (int i = 0; i < PART_COUNT; i++)
    if (b->parts[i] > b->parts[most]) most = (CostPart)i;
  *us = b->parts[most];
  if (b->cast_us >= *us && b->sources.n) {
    *us = b->cast_us;
    most = PART_casts;
  }
  return most;
}

/* Returns why tensor cores do not compute the products: the reason for the longest product. */
static const char *why_no_tensor(const ExplainBlock *b)
{
  const Prediction *most = NULL;
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const Prediction *p = b->nodes.at[i].made;
    if (p && (!most || p->cost.us > most->cost.us)) most = p;
  }
  return most ? most->against : NULL;
}

static const char *obstacle_text(const Explanation *e, const ExplainBlock *b, CostPart part)
{
  Arena *arena = e->c->arena;
  const char *why = why_no_tensor(b);
  switch (part) {
  case PART_casts:
    return source_text(e, &b->sources.at[0]);
  case PART_launches:
    return arena_printf(
        arena,
        "the time between its %u kernels, which no type makes shorter; a larger batch would help",
        b->commands);
  case PART_state:
    return arena_printf(
        arena, "the optimizer%s; a larger batch or `accumulate` would help",
        e->c->graph->moment_type == AMPC_F32 ? ", whose state is f32 in every precision" : "");
  case PART_products:
  case PART_tiles:
    return arena_printf(arena, "%s%s%s", cost_part_names[part], why ? ": " : "", why ? why : "");
  default:
    return "elementwise ops and reductions; those in f32 move the same bytes in every precision";
  }
}

/* Returns the parts that differ by at least 1/50 of a step: "products 1.1 ms instead of 8.2 ms,
 * ..". */
static const char *differences(Arena *arena, const double *now, const double *before, double step)
{
  Text t = text_new(arena);
  for (int i = 0; i < PART_COUNT; i++) {
    if (fabs(now[i] - before[i]) < step / 50) continue;
    text_printf(&t, "%s%s %s instead of %s", t.n ? ", " : "", cost_part_names[i],
                time_text(arena, now[i]), time_text(arena, before[i]));
  }
  return t.n ? t.at : "no part of the time changes much";
}

/* Adds a sentence. Returns true if it names the most expensive cast. */
static bool say_whether_it_pays(Explanation *e, const ExplainBlock *b)
{
  const double pays = 1.1;
  Compile *c = e->c;
  const char *own = c->graph->precision ? c->graph->precision : "f32";
  bool plain = strcmp(own, "f32") == 0;
  double times = e->against_us / b->us, us;
  const char *step = c->graph->blocks.at[b->block].kind == AMPC_TRAIN ? "step" : "block";
  if (plain) times = 1 / times;
  CostPart most = largest_part(b, &us);
  const char *fast = plain ? e->against : own;
  if (times < pays) {
    say(e, arena_printf(c->arena,
                        "%s %s no speed here (%.2g times as fast as f32, predicted on %s): %.0f %% "
                        "of the predicted time is %s",
                        fast, plain ? "would gain" : "gains", times, e->gpu->name,
                        percent(us, b->us), obstacle_text(e, b, most)));
    return most == PART_casts;
  }
  if (plain)
    say(e, arena_printf(c->arena, "%s would make this %s %.2g times as fast (predicted on %s): %s",
                        fast, step, times, e->gpu->name,
                        differences(c->arena, e->parts, b->parts, b->us)));
  else
    say(e,
        arena_printf(c->arena, "%s makes this %s %.2g times as fast as f32 (predicted on %s): %s",
                     fast, step, times, e->gpu->name,
                     differences(c->arena, b->parts, e->parts, e->against_us)));
  return false;
}

/* ---- the rest ---- */

static void say_sizes(Explanation *e, const ExplainBlock *b)
{
  enum { MOST = 3 };
  for (uint32_t i = 0; i < b->sizes.n && i < MOST; i++) {
    const ExplainSize *s = &b->sizes.at[i];
    say(e, arena_printf(e->c->arena,
                        "%lld elements of %s are no multiple of 16 bytes (`%s`%s): with %lld the "
                        "step would be %s shorter (%.0f %%)",
                        (long long)s->size, ir_dtype_name(s->type), explain_name(e->c, s->value),
                        line_text(e, s->value), (long long)s->padded,
                        time_text(e->c->arena, s->saves), percent(s->saves, b->us)));
  }
}

static void say_widened(Explanation *e)
{
  const Graph *g = e->c->graph;
  for (uint32_t i = 0; i < g->widened.n; i++) {
    const Widened *w = &g->widened.at[i];
    Place at = diag_place(e->c, diag_user_span(e->c, w->span));
    say(e, arena_printf(e->c->arena, "f32 `%s` makes %u operation%s f32, line %u (W406)",
                        g->params.at[w->param].path, w->count, w->count == 1 ? "" : "s", at.line));
  }
}

/* Says which types the optimizers keep, if they are not f32, and the bytes of their state. */
static void say_state(Explanation *e)
{
  static const char *const rounds[] = {[ROUND_stochastic] = "stochastically",
                                       [ROUND_nearest] = "to nearest",
                                       [ROUND_kahan] =
                                           "to nearest and keep the rounding errors in bf16"};
  const Graph *g = e->c->graph;
  const ampc_program *p = e->c->program;
  Text t = text_new(e->c->arena);
  int64_t bytes = 0;
  if (g->weights != AMPC_F32)
    text_printf(&t, "weights are %s and have no f32 masters: updates round %s; ",
                ir_dtype_name(g->weights), rounds[g->rounds]);
  if (g->moment_type != AMPC_F32)
    text_printf(&t, "moments are %s, rounded %s; ",
                g->moment_type == AMPC_U8 ? "8-bit codes with a scale for each 256"
                                          : ir_dtype_name(g->moment_type),
                rounds[g->moment_type == AMPC_U8 ? ROUND_nearest : g->moment_rounds]);
  if (!t.n) return;
  for (ampc_space s = AMPC_MASTER; s < AMPC_BUFFER; s++)
    if (s != AMPC_GRAD) bytes += ampc_process_bytes(p, s);
  text_printf(&t, "weights and optimizer state take %s, gradients (f32) %s",
              bytes_text(e->c->arena, (double)bytes),
              bytes_text(e->c->arena, (double)ampc_process_bytes(p, AMPC_GRAD)));
  say(e, t.at);
}

/* Says how frozen weights are stored that are in 16 bits or fewer: "16 bits (3) and nf4 (1)". */
static const char *frozen_types(Arena *a, const uint32_t n[AMPC_NF4 + 1])
{
  Text t = text_new(a);
  uint32_t all = n[AMPC_UNPACKED] + n[AMPC_INT8] + n[AMPC_NF4];
  for (ampc_packing i = AMPC_UNPACKED; i <= AMPC_NF4; i++) {
    if (!n[i]) continue;
    text_printf(&t, "%s%s%s", t.n ? " and " : "", i ? "quantized to " : "stored in 16 bits",
                ampc_packing_name(i));
    if (n[i] < all) text_printf(&t, " (%u)", n[i]);
  }
  return t.at;
}

/* Says what such weights cost, if there are any. */
static void say_frozen(Explanation *e)
{
  const Graph *g = e->c->graph;
  uint32_t n[AMPC_NF4 + 1] = {0}, all = 0, trained = 0;
  int64_t bytes = 0, numbers = 0;
  for (uint32_t i = 0; i < share_params(g); i++) {
    const Parameter *p = &g->params.at[i];
    n[p->packing] += p->fixed;
    all += p->fixed;
    bytes += p->fixed ? param_bytes(e->c, p) : 0;
    trained += p->optimizer >= 0;
    numbers += p->optimizer >= 0 ? dims_product(p->dim, p->rank) : 0;
  }
  if (!all) return;
  say(e, arena_printf(e->c->arena,
                      "%u frozen parameters are %s, %s, without masters, gradients and moments; %u "
                      "parameters train, %lld numbers",
                      all, frozen_types(e->c->arena, n), bytes_text(e->c->arena, (double)bytes),
                      trained, (long long)numbers));
}

void explain_answer(Explanation *e)
{
  const ExplainBlock *b = &e->blocks.at[0];
  bool named = e->against && b->us > 0 && say_whether_it_pays(e, b);
  say_casts(e, b, named);
  say_sizes(e, b);
  say_widened(e);
  say_state(e);
  say_frozen(e);
}
