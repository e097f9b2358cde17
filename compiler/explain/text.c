/* `--explain`: for people. Equal nodes of equal layers (h.0, h.1, ..) are one line. */
#include "compiler/cost/cpu.h"
#include "compiler/cost/memory_report.h"
#include "explain.h"
#include "runtime/plan/bytes.h"

/* ---- lines ---- */

/* "f32>bf16 before 25.2 MB"; casts of no bytes are told by their types. */
static void put_casts(Text *t, const ExplainCasts *casts, const char *where)
{
  char room[AMPC_BYTES_ROOM];
  for (uint32_t i = 0; i < casts->n; i++) {
    const ExplainCast *k = &casts->at[i];
    bool again = false;
    for (uint32_t j = 0; j < i; j++)
      again |= casts->at[j].from == k->from && casts->at[j].to == k->to;
    if (again) continue;
    text_printf(t, "; cast %s>%s %s it", ir_dtype_name(k->from), ir_dtype_name(k->to), where);
    if (k->bytes) text_printf(t, ", %s", ampc_bytes_text(k->bytes, room));
  }
}

static const char *casts_text(Arena *arena, const ExplainNode *n)
{
  char room[AMPC_BYTES_ROOM];
  Text t;
  text_init(&t, arena);
  if (n->cast_bytes) text_printf(&t, "; moves %s", ampc_bytes_text(n->cast_bytes, room));
  if (n->weight_cast) text_puts(&t, "; a weight, in each step");
  put_casts(&t, &n->before, "before");
  put_casts(&t, &n->after, "after");
  return t.n ? t.at : "";
}

/* Whether tensor cores compute it, and why not. */
static const char *tensor_text(const Explanation *e, const ExplainBlock *b, const ExplainNode *n)
{
  const double few = 0.25;
  Arena *arena = e->c->arena;
  if (!n->made || e->gpu->cpu) return "";
  for (uint32_t i = 0; i < b->sizes.n; i++)
    if (b->sizes.at[i].value.id == n->value.id)
      return arena_printf(arena,
                          "; tensor cores are slow: rows of %lld are no multiple of 16 "
                          "bytes, of %lld they would be",
                          (long long)b->sizes.at[i].size, (long long)b->sizes.at[i].padded);
  if (n->made->against) return arena_printf(arena, "; no tensor cores: %s", n->made->against);
  if (n->made->busy < few)
    return arena_printf(arena, "; tensor cores, but %.0f %% of them have work",
                        100 * n->made->busy);
  return "; tensor cores";
}

static void put_line(const Explanation *e, const ExplainBlock *b, const ExplainLine *l, Text *out)
{
  Compile *c = e->c;
  Arena *arena = c->arena;
  const Node *n = ir_node(c->graph, l->first->value);
  const char *times = l->times > 1 ? arena_printf(arena, " x %u", l->times) : "";
  const char *path = l->times > 1 ? l->path : l->first->path;
  const char *line = l->first->place.line ? arena_printf(arena, "%u", l->first->place.line) : "-";
  text_printf(out, "%5s  %-22s  %-28s  %-24s  %8s  %8s  %8s  %s%s%s%s\n", line, *path ? path : "-",
              arena_printf(arena, "%s%s", op_of(n)->name, times), l->type,
              l->flops ? explain_count(arena, (double)l->flops, "") : "-",
              l->bytes ? explain_count(arena, (double)l->bytes, "B") : "-",
              l->us > 0 ? explain_us(arena, l->us) : "-", l->first->reason, ir_types_text(c, n),
              casts_text(arena, l->first), tensor_text(e, b, l->first));
}

/* False: there are none. */
static bool put_lines(const Explanation *e, const ExplainBlock *b, uint32_t line, Text *out)
{
  ExplainLines lines;
  explain_fold(e, b, line, &lines, NULL);
  if (!lines.n) return false;
  if (line) text_printf(out, "%s\n", ir_block_text(e->c, b->block));
  text_printf(out, "%5s  %-22s  %-28s  %-24s  %8s  %8s  %8s  %s\n", "line", "layer", "op", "type",
              "FLOPs", "bytes", "time", e->gpu->cpu ? "why; casts" : "why; casts; tensor cores");
  for (uint32_t i = 0; i < lines.n; i++) put_line(e, b, &lines.at[i], out);
  return true;
}

/* ---- sums ---- */

static void put_flops(const Explanation *e, const ExplainBlock *b, Text *out)
{
  Arena *arena = e->c->arena;
  text_printf(out, "  arithmetic   %s", explain_count(arena, (double)b->flops, "FLOP"));
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (b->flops_by_type[i])
      text_printf(out, ", %s %s", ir_dtype_name((DType)i),
                  explain_count(arena, (double)b->flops_by_type[i], ""));
  text_puts(out, "\n");
}

static void put_times(const Explanation *e, const ExplainBlock *b, Text *out)
{
  Arena *arena = e->c->arena;
  text_printf(out, "  time         %s in %u commands", explain_us(arena, b->us), b->commands);
  for (int i = 0; i < PART_COUNT; i++)
    if (b->parts[i] > 0)
      text_printf(out, ", %s %.0f %%", cost_part_names[i], 100 * b->parts[i] / b->us);
  text_puts(out, "\n  by type     ");
  const char *comma = " ";
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (b->us_by_type[i] >= b->us / 1000) {
      text_printf(out, "%s%s %s", comma, ir_dtype_name((DType)i),
                  explain_us(arena, b->us_by_type[i]));
      comma = ", ";
    }
  text_puts(out, "\n");
}

static void put_sums(const Explanation *e, const ExplainBlock *b, Text *out)
{
  Arena *arena = e->c->arena;
  put_times(e, b, out);
  put_flops(e, b, out);
  text_printf(out, "  memory       %s read, %s written; casts move %s, %u of weights\n",
              explain_count(arena, (double)b->read, "B"),
              explain_count(arena, (double)b->written, "B"),
              explain_count(arena, (double)b->cast_bytes, "B"), b->weight_casts);
}

/* ---- the whole ---- */

static void put_block(const Explanation *e, const ExplainBlock *b, Text *out)
{
  text_printf(out, "\n%s: predicted %s on %s\n", ir_block_text(e->c, b->block),
              explain_us(e->c->arena, b->us), e->gpu->model);
  for (uint32_t i = 0; i < e->answer.n && b == e->blocks.at; i++)
    text_printf(out, "  - %s\n", e->answer.at[i]);
  put_sums(e, b, out);
  text_puts(out, "\n");
  put_lines(e, b, 0, out);
}

/* What the times are predicted from. */
static void put_rates(const Cpu *cpu, Text *out)
{
  text_printf(
      out,
      "measured: %u thread%s, vectors of %d f32, %.1f GHz; %.0f GFLOP/s; %.0f GB/s in caches, "
      "%.0f GB/s in memory\n",
      cpu->threads, cpu->threads == 1 ? "" : "s", cpu->lanes, cpu->mhz / 1e3, cpu->peak,
      cpu->moves[0], cpu->moves[CPU_SIZES - 1]);
}

void explain_text(const Explanation *e, Text *out)
{
  const ampc_program *p = e->c->program;
  char room[AMPC_BYTES_ROOM];
  text_printf(out, "%s: %s for %s, %s of memory\n", p->source, p->precision, e->c->options.target,
              ampc_bytes_text(memory_of_spaces(p), room));
  if (e->gpu->cpu) put_rates(e->gpu->cpu, out);
  for (uint32_t i = 0; i < e->blocks.n; i++) put_block(e, &e->blocks.at[i], out);
}

bool explain_line(const Explanation *e, uint32_t line, Text *out)
{
  bool any = false;
  for (uint32_t i = 0; i < e->blocks.n; i++) any |= put_lines(e, &e->blocks.at[i], line, out);
  return any;
}
