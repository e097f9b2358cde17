/* What `amp inspect --gpu` prints: a table for people, an object for programs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "columns.h"
#include "gpu.h"
#include "runtime/base/terminal.h"

/* ---- sums ---- */

static double instructions_an_element(const GpuRow *r)
{
  double elements = (double)r->row->elements * (double)r->row->times;
  return elements > 0 ? r->counts.instructions / elements : 0;
}

/* Share of the time that the bytes and products alone would take. */
static double roof_share(const GpuRow *r)
{
  return r->us > 0 ? r->cost.roof_us / r->us : 0;
}

/* ---- the table ---- */

enum { COLUMNS = 12, MEASURED = 9 };

typedef struct Table {
  Column at[COLUMNS];
  int columns; /* of the terminal */
} Table;

static Table make_table(void)
{
  static const Column all[COLUMNS] = {
      {"name", 4, true, 0},      {"line", 4, false, 6},    {"types", 5, true, 7},
      {"shape", 5, true, 5},     {"threads", 7, false, 4}, {"instr/el", 8, false, 2},
      {"bytes", 9, false, 0},    {"L2", 9, false, 3},      {"us", 6, false, 0},
      {"measured", 8, false, 0}, {"bound", 7, true, 0},    {"roof", 5, false, 1}};
  Table t = {.columns = terminal_columns(STDOUT_FILENO)};
  memcpy(t.at, all, sizeof all);
  return t;
}

static const char *line_text(Arena *arena, const CommandRow *row)
{
  return row->place.source ? arena_printf(arena, "%u", row->place.line) : "-";
}

static void row_texts(const Inspection *in, const GpuRow *r, const char *out[COLUMNS])
{
  Arena *a = in->c->arena;
  const char *const texts[COLUMNS] = {
      r->row->name,
      line_text(a, r->row),
      r->row->types,
      r->row->shape,
      arena_printf(a, "%.0f", r->cost.in_flight),
      r->counted ? arena_printf(a, "%.1f", instructions_an_element(r)) : "-",
      arena_strdup(a, inspect_bytes((int64_t)r->bytes)),
      arena_strdup(a, inspect_bytes((int64_t)r->cost.l2_bytes)),
      arena_printf(a, "%.1f", r->us),
      r->measured > 0 ? arena_printf(a, "%.1f", r->measured) : "-",
      bound_names[r->cost.bound],
      arena_printf(a, "%.0f %%", 100 * roof_share(r))};
  memcpy(out, texts, sizeof texts);
}

/* What stands behind the columns: why a product is slow, what a kernel consists of. */
static const char *rest_text(const GpuRow *r)
{
  return r->own ? r->own : r->tensor ? r->tensor : r->row->nodes;
}

static void put_block(const Inspection *in, const GpuReport *r, uint16_t block, const Table *t)
{
  const char *texts[COLUMNS];
  GpuBlock b = gpu_block(in, r, block);
  if (!b.commands) return;
  printf("\n%s\n", inspect_block_text(in, block));
  columns_put(t->at, COLUMNS, NULL, "nodes", t->columns);
  for (uint32_t i = 0; i < in->rows.n; i++) {
    if (in->rows.at[i].block != block) continue;
    row_texts(in, &r->rows[i], texts);
    columns_put(t->at, COLUMNS, texts, rest_text(&r->rows[i]), t->columns);
  }
  printf("  %u commands, %d nodes of a graph: %s moved (unavoidable %s)\n", b.commands, b.nodes,
         inspect_bytes((int64_t)b.bytes), inspect_bytes((int64_t)b.unavoidable));
  printf("  %s instructions of our kernels, predicted %.0f us",
         inspect_flops((int64_t)b.instructions), b.us);
  if (b.measured > 0) printf(", measured %.0f us", b.measured);
  putchar('\n');
}

static void put_assumptions(const GpuReport *r)
{
  const Gpu *g = r->gpu;
  printf("\nus are predicted: the slowest of memory, L2, issue and the\n"
         "longest warp's latency, and %.1f us for each node. %s:\n"
         "%d multiprocessors at %d MHz, %.0f of %.0f GB/s from\n"
         "DRAM, %.0f GB/s from L2, %.0f TFLOP/s in 16 bits, %.0f in\n"
         "tf32, of which a product reaches 0.8. %s\n",
         g->node, g->model, g->multiprocessors, g->mhz, g->dram, g->dram_peak, g->l2, g->tensor16,
         g->tensor_tf32, r->no_cudnn ? "No cuDNN: own kernels." : "With cuDNN.");
}

int gpu_print_table(const Inspection *in, const GpuReport *r)
{
  const char *texts[COLUMNS];
  Table t = make_table();
  for (uint32_t i = 0; i < in->rows.n; i++) {
    row_texts(in, &r->rows[i], texts);
    columns_see(t.at, COLUMNS, texts);
  }
  if (!r->measured) t.at[MEASURED].width = 0;
  columns_fit(t.at, COLUMNS, t.columns);
  printf("%s: %s, predicted for %s (%s)\n", in->c->program->source, in->c->program->precision,
         r->gpu->model, r->gpu->arch);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, r, (uint16_t)i, &t);
  put_assumptions(r);
  return 0;
}

/* ---- JSON ---- */

static json_t *times_json(const Cost *c)
{
  return json_pack("{s:f, s:f, s:f, s:f, s:f}", "memory", c->dram_us, "l2", c->l2_us, "issue",
                   c->issue_us, "latency", c->latency_us, "tensor", c->tensor_us);
}

static json_t *cost_json(const GpuRow *r)
{
  const Cost *c = &r->cost;
  json_t *out =
      json_pack("{s:i, s:f, s:f, s:s, s:f, s:o, s:f, s:f}", "nodes", r->nodes, "bytes", r->bytes,
                "us", r->us, "bound", bound_names[c->bound], "roof", roof_share(r), "times",
                times_json(c), "l2_bytes", c->l2_bytes, "threads", c->in_flight);
  if (r->measured > 0) json_object_set_new(out, "measured_us", json_real(r->measured));
  if (r->row->kind != COMMAND_kernel) {
    json_object_set_new(out, "tensor", json_boolean(!r->tensor));
    json_object_set_new(out, "why_not", r->tensor ? json_string(r->tensor) : json_null());
  }
  if (r->own) json_object_set_new(out, "own", json_string(r->own));
  if (!r->counted) return out;
  json_object_set_new(out, "instructions", json_real(r->counts.instructions));
  json_object_set_new(out, "instructions_per_element", json_real(instructions_an_element(r)));
  json_object_set_new(out, "slots", json_real(r->counts.slots));
  json_object_set_new(out, "longest", json_real(r->counts.longest));
  json_object_set_new(out, "walked", json_real(r->counts.walked));
  return out;
}

static json_t *command_json(const Inspection *in, const GpuRow *r)
{
  json_t *out = inspect_row_json(in, r->row);
  json_object_set_new(out, "elements", json_integer(r->row->elements));
  json_object_set_new(out, "cost", cost_json(r));
  return out;
}

static json_t *block_json(const Inspection *in, const GpuReport *r, uint16_t block)
{
  const BlockInfo *info = &in->c->graph->blocks.at[block];
  GpuBlock b = gpu_block(in, r, block);
  json_t *commands = json_array();
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (in->rows.at[i].block == block)
      json_array_append_new(commands, command_json(in, &r->rows[i]));
  return json_pack("{s:s, s:I, s:b, s:o, s:i, s:f, s:f, s:f, s:f, s:o}", "name", info->name,
                   "batch", (json_int_t)info->batch, "remainder", info->remainder, "every",
                   inspect_fires_json(info), "nodes", b.nodes, "bytes", b.bytes, "unavoidable",
                   b.unavoidable, "instructions", b.instructions, "us", b.us, "commands", commands);
}

static json_t *gpu_json(const Gpu *g)
{
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "name", g->name,
                   "model", g->model, "architecture", g->arch, "multiprocessors",
                   g->multiprocessors, "mhz", g->mhz, "dram_peak_gbs", g->dram_peak, "dram_gbs",
                   g->dram, "l2_gbs", g->l2, "tensor16_tflops", g->tensor16, "tf32_tflops",
                   g->tensor_tf32, "node_us", g->node);
}

int gpu_print_json(const Inspection *in, const GpuReport *r)
{
  json_t *blocks = json_array();
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++)
    json_array_append_new(blocks, block_json(in, r, (uint16_t)i));
  return inspect_print_json(json_pack("{s:s, s:s, s:o, s:b, s:o}", "job", in->c->program->source,
                                      "precision", in->c->program->precision, "gpu",
                                      gpu_json(r->gpu), "cudnn", !r->no_cudnn, "blocks", blocks));
}
