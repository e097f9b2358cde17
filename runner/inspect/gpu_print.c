/* Output of `amp inspect --gpu`: a table or JSON. */
#include "gpu.h"

/* ---- sums ---- */

static double instructions_an_element(const GpuRow *r)
{
  double elements = (double)r->row->elements * (double)r->row->times;
  return elements > 0 ? r->counts.instructions / elements : 0;
}

/* Returns the time that bytes and products alone would take, as a fraction of the whole time. */
static double roof_share(const GpuRow *r)
{
  return r->us > 0 ? r->cost.roof_us / r->us : 0;
}

/* ---- the table ---- */

static void open_table(const Inspection *in, Table *t)
{
  table_open(t, in->c->arena, NULL, &in->c->options.view,
             "name:key<24|line:number!4|types:!7<11|shape:!8|threads:number!5|instr/"
             "el:number!3|bytes:bytes|L2:bytes!6|time:time|measured:time|bound|roof:number!2|nodes:"
             "!9<16|why:!1<18");
}

/* Adds a row. Column `nodes` lists the graph nodes that the kernel computes; `why` says why a
 * product is slow. */
static void add_row(const Inspection *in, const GpuRow *r, Table *t)
{
  Arena *a = t->arena;
  const char *why = r->own ? r->own : r->tensor ? r->tensor : "";
  TABLE_ROW(t, r->us, {r->row->name}, {inspect_line_number(in, r->row)}, {r->row->types},
            {r->row->shape}, {count_text(a, r->cost.in_flight)},
            {r->counted ? arena_printf(a, "%.1f", instructions_an_element(r)) : "-"},
            {.amount = r->bytes}, {.amount = r->cost.l2_bytes}, {.amount = r->us},
            {.amount = r->measured > 0 ? r->measured : -1}, {bound_names[r->cost.bound]},
            {arena_printf(a, "%.0f %%", 100 * roof_share(r))}, {inspect_nodes_text(in, r->row)},
            {why});
}

static void put_block(const Inspection *in, const GpuReport *r, uint16_t block, Table *t)
{
  Arena *a = t->arena;
  GpuBlock b = gpu_block(in, r, block);
  if (!b.commands) return;
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (in->rows.at[i].block == block) add_row(in, &r->rows[i], t);
  table_say(t, 2, "\n%s", inspect_block_text(in, block));
  table_put(t);
  table_say(t, 2, "  %u commands, %d nodes of a CUDA graph: %s moved (%s unavoidable)", b.commands,
            b.nodes, bytes_text(a, b.bytes), bytes_text(a, b.unavoidable));
  table_say(t, 2, "  %s instructions in our kernels; predicted time %s%s%s",
            count_text(a, b.instructions), time_text(a, b.us), b.measured > 0 ? ", measured " : "",
            b.measured > 0 ? time_text(a, b.measured) : "");
}

static void put_assumptions(const GpuReport *r, Table *t)
{
  const Gpu *g = r->gpu;
  table_say(
      t, 0,
      "\ntime is predicted: the largest of the times for memory, L2, issue, tensor cores and "
      "the latency of the longest warp, plus %.1f us for each node. %s: %d multiprocessors "
      "at %d MHz, %.0f of %.0f GB/s from DRAM, %.0f GB/s from L2, %.0f TFLOP/s in 16 bits, %.0f in "
      "tf32; products with a large k reach 0.83 of these, convolutions 0.67. %s",
      g->node, g->model, g->multiprocessors, g->mhz, g->dram, g->dram_peak, g->l2, g->tensor16,
      g->tensor_tf32, r->no_cudnn ? "No cuDNN: own kernels." : "With cuDNN.");
}

int gpu_print_table(const Inspection *in, const GpuReport *r)
{
  Table t;
  open_table(in, &t);
  table_say(&t, 2, "%s: %s, predicted for %s (%s)", in->c->program->source,
            in->c->program->precision, r->gpu->model, r->gpu->arch);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, r, (uint16_t)i, &t);
  put_assumptions(r, &t);
  table_close(&t);
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
  bool vendor = r->row->kind == COMMAND_gemm || r->row->kind == COMMAND_conv;
  json_t *why = !vendor ? NULL : r->tensor ? json_string(r->tensor) : json_null();
  json_t *out =
      json_pack("{s:i, s:f, s:f, s:s, s:f, s:o, s:f, s:f, s:o*, s:o*, s:o*, s:s*}", "nodes",
                r->nodes, "bytes", r->bytes, "us", r->us, "bound", bound_names[c->bound], "roof",
                roof_share(r), "times", times_json(c), "l2_bytes", c->l2_bytes, "threads",
                c->in_flight, "measured_us", r->measured > 0 ? json_real(r->measured) : NULL,
                "tensor", vendor ? json_boolean(!r->tensor) : NULL, "why_not", why, "own", r->own);
  if (!r->counted) return out;
  json_t *counts =
      json_pack("{s:f, s:f, s:f, s:f, s:f}", "instructions", r->counts.instructions,
                "instructions_per_element", instructions_an_element(r), "slots", r->counts.slots,
                "longest", r->counts.longest, "walked", r->counts.walked);
  json_object_update_new(out, counts);
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
