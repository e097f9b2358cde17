/* `--explain` for people. Programs read the JSON form. */
#include "compiler/cost/cpu.h"
#include "compiler/cost/memory_report.h"
#include "explain.h"
#include "runtime/plan/types.h"
#include <math.h>

/* ---- lines ---- */

/* Prints casts: "; cast f32>bf16 before it, 25.2 MB", or without bytes if a cast moves none. */
static void put_casts(Text *t, const ExplainCasts *casts, const char *where)
{
  for (uint32_t i = 0; i < casts->n; i++) {
    const ExplainCast *k = &casts->at[i];
    bool again = false;
    for (uint32_t j = 0; j < i; j++)
      again |= casts->at[j].from == k->from && casts->at[j].to == k->to;
    if (again) continue;
    text_printf(t, "; cast %s>%s %s it", ir_dtype_name(k->from), ir_dtype_name(k->to), where);
    if (k->bytes) text_printf(t, ", %s", bytes_text(t->arena, (double)k->bytes));
  }
}

static const char *casts_text(Arena *arena, const ExplainNode *n)
{
  Text t = text_new(arena);
  if (n->cast_bytes) text_printf(&t, "; moves %s", bytes_text(arena, (double)n->cast_bytes));
  if (n->weight_cast) text_puts(&t, "; casts a weight in each step");
  put_casts(&t, &n->before, "before");
  put_casts(&t, &n->after, "after");
  return t.n ? t.at : "";
}

/* Returns whether tensor cores compute the node, or why they do not. */
static const char *tensor_text(const Explanation *e, const ExplainBlock *b, const ExplainNode *n)
{
  const double few = 0.25;
  Arena *arena = e->c->arena;
  if (!n->made || e->gpu->cpu) return "";
  for (uint32_t i = 0; i < b->sizes.n; i++)
    if (b->sizes.at[i].value.id == n->value.id)
      return arena_printf(arena,
                          "; tensor cores are slow: rows of %lld elements are no multiple of 16 "
                          "bytes, rows of %lld are",
                          (long long)b->sizes.at[i].size, (long long)b->sizes.at[i].padded);
  if (n->made->against) return arena_printf(arena, "; no tensor cores: %s", n->made->against);
  if (n->made->busy < few)
    return arena_printf(arena, "; tensor cores, but only %.0f %% of them are busy",
                        100 * n->made->busy);
  return "; tensor cores";
}

/* Returns what is known about the overflow of a value in a type of small range, f16. */
static const char *overflow_text(Arena *arena, const Node *n, const ValueBound *b)
{
  bool small = dtype_is_float(n->dtype) &&
               ampc_type_of(n->dtype)->exponent < ampc_type_of(AMPC_F32)->exponent;
  Interval r = bound_stored(b);
  double most = fmax(fabs(r.low), fabs(r.high));
  if (!small || b->verdict != VERDICT_safe) return "";
  if (most >= ampc_type_of(n->dtype)->greatest) return "; no overflow";
  return arena_printf(arena, "; no overflow (at most %.3g)", most);
}

bool explain_is_shown(const Compile *c, const ExplainNode *n)
{
  OpTemplate tmpl = op_of(ir_node(c->graph, n->value))->tmpl;
  return tmpl != TMPL_leaf && tmpl != TMPL_alias && tmpl != TMPL_loop;
}

static void add_row(const Explanation *e, const ExplainBlock *b, const ExplainNode *n, FactTable *t)
{
  Compile *c = e->c;
  const Node *node = ir_node(c->graph, n->value);
  Facts row = n->facts;
  row.reason = arena_printf(c->arena, "%s%s%s%s%s", row.reason, ir_types_text(c, node),
                            casts_text(c->arena, n), tensor_text(e, b, n),
                            overflow_text(c->arena, node, &n->bound));
  if (row.flops <= 0) row.flops = -1; /* "-" instead of 0 */
  if (row.bytes <= 0) row.bytes = -1;
  if (row.predicted_us <= 0) row.predicted_us = -1;
  facts_row(t, n->facts.predicted_us, &row, NULL);
}

/* Prints the nodes of a line of the job; line 0: all nodes. Returns false if there are no nodes. */
static bool put_rows(const Explanation *e, const ExplainBlock *b, uint32_t line, FactTable *t)
{
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    if (explain_is_shown(e->c, n) && (!line || n->place.line == line)) add_row(e, b, n, t);
  }
  if (!t->of.rows.n) return false;
  if (line) table_say(&t->of, 0, "%s", ir_block_text(e->c, b->block));
  table_put(&t->of);
  return true;
}

/* ---- sums ---- */

enum { LABEL = 15 }; /* characters before the sums of a line */

/* Returns amounts by type: "f32 110 M, f16 11.3 G". */
static const char *types_text(Arena *arena, const double of[AMPC_DTYPE_COUNT], double least,
                              const char *text(Arena *, double))
{
  Text t = text_new(arena);
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (of[i] >= least)
      text_printf(&t, "%s%s %s", t.n ? ", " : "", ir_dtype_name((DType)i), text(arena, of[i]));
  return t.at;
}

static void put_sums(const ExplainBlock *b, Table *t)
{
  Arena *a = t->arena;
  double flops[AMPC_DTYPE_COUNT];
  Text parts = text_new(a);
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++) flops[i] = (double)b->flops_by_type[i];
  for (int i = 0; i < PART_COUNT; i++)
    if (b->parts[i] > 0)
      text_printf(&parts, ", %s %.0f %%", cost_part_names[i], 100 * b->parts[i] / b->us);
  table_say(t, LABEL, "  time         %s in %u commands%s", time_text(a, b->us), b->commands,
            parts.at);
  table_say(t, LABEL, "  by type      %s", types_text(a, b->us_by_type, b->us / 1000, time_text));
  table_say(t, LABEL, "  FLOPs        %s: %s", count_text(a, (double)b->flops),
            types_text(a, flops, 1, count_text));
  table_say(t, LABEL, "  memory       %s read, %s written; casts move %s (%u casts of weights)",
            bytes_text(a, (double)b->read), bytes_text(a, (double)b->written),
            bytes_text(a, (double)b->cast_bytes), b->weight_casts);
}

/* ---- the whole ---- */

static void put_block(const Explanation *e, const ExplainBlock *b, FactTable *t)
{
  Table *of = &t->of;
  table_say(of, 2, "\n%s: predicted %s on %s", ir_block_text(e->c, b->block),
            time_text(of->arena, b->us), e->gpu->model);
  for (uint32_t i = 0; i < e->answer.n && b == e->blocks.at; i++)
    table_say(of, 4, "  - %s", e->answer.at[i]);
  put_sums(b, of);
  text_puts(of->out, "\n");
  put_rows(e, b, 0, t);
}

/* Prints the rates on which the predicted times are based, and who computes products. */
static void put_rates(const Cpu *cpu, bool own, Table *t)
{
  table_say(t, 2,
            "measured: %u thread%s, vectors of %d f32, %.1f GHz; %.0f GFLOP/s; %.0f GB/s in "
            "caches, %.0f GB/s in memory",
            cpu->threads, cpu->threads == 1 ? "" : "s", cpu->lanes, cpu->mhz / 1e3, cpu->peak,
            cpu->moves[0], cpu->moves[CPU_SIZES - 1]);
  table_say(t, 2, "products and convolutions by %s",
            own ? "loops of ampc (--no-onednn)" : "oneDNN; with --no-onednn by loops of ampc");
}

static void open_table(const Explanation *e, Text *out, FactTable *t)
{
  facts_open(t, e->c->arena, out, &e->c->options.view,
             "where!1 layer<12 op<10 dtype shape!4 flops!3 bytes!2 predicted_us reason<28", NULL,
             0);
}

void explain_text(const Explanation *e, Text *out)
{
  const ampc_program *p = e->c->program;
  FactTable t;
  open_table(e, out, &t);
  table_say(&t.of, 2, "%s: %s for %s, %s of memory", p->source, p->precision, e->c->options.target,
            bytes_text(t.of.arena, (double)memory_of_spaces(p)));
  if (e->gpu->cpu) put_rates(e->gpu->cpu, e->c->options.no_onednn, &t.of);
  for (uint32_t i = 0; i < e->blocks.n; i++) put_block(e, &e->blocks.at[i], &t);
  table_close(&t.of);
}

bool explain_line(const Explanation *e, uint32_t line, Text *out)
{
  bool any = false;
  FactTable t;
  open_table(e, out, &t);
  for (uint32_t i = 0; i < e->blocks.n; i++) any |= put_rows(e, &e->blocks.at[i], line, &t);
  table_close(&t.of);
  return any;
}
