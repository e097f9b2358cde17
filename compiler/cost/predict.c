/* Predicted times of commands.
 *
 * Note [predicted]
 * Note [products] gives the time of library products. One of ampc's own kernels takes the longest
 * of three times: the time to load its operands from DRAM, each once; the time of its instructions,
 * counted in the code of its nodes; and the latency of one or two loads that no other work hides.
 * In contrast, `amp inspect --gpu` reads and walks the text of every kernel, which takes seconds.
 * This prediction takes milliseconds, and is less exact if a kernel reads its operands several
 * times. The numbers of instructions below are averages of what `amp inspect` counts: for loading,
 * storing and indexing an element, for an operator, for a function such as exp or tanh, and for a
 * random number, which uses the fewer integer lanes. ampc's attention kernel draws each number
 * by a Philox call of its own; other kernels get four numbers from a call. ampc's own kernels
 * multiply in f32, at about half the rate of its lanes. For the processor of this machine see Note
 * [on a processor] in predict_cpu.c. */
#include "predict.h"
#include <math.h>
#include "memory_report.h"
#include "predict_cpu.h"

enum { AN_ELEMENT = 8, AN_OPERATOR = 3, A_FUNCTION = 45, A_DRAW = 25, A_LONE_DRAW = 110 };

const char *const cost_part_names[] = {
    [PART_products] = "products", [PART_tiles] = "attention", [PART_casts] = "casts",
    [PART_state] = "optimizer",   [PART_kernels] = "kernels", [PART_launches] = "launches"};

/* ---- ampc's own kernels ---- */

static double results_a_us(const Gpu *g, int lanes)
{
  return (double)lanes * g->multiprocessors * g->mhz;
}

/* Counts the elements that a node computes; for a reduction, those of its input. */
static double elements_of(const Graph *g, const Node *n)
{
  int64_t most = ir_elements(n);
  if (op_of(n)->tmpl == TMPL_row && n->n_in && n->in[0].id) {
    int64_t in = ir_elements(ir_node(g, n->in[0]));
    if (in > most) most = in;
  }
  return (double)most;
}

static double issue_us(const Graph *g, const Gpu *gpu, const Group *group, double flops)
{
  enum { LANES = 128 }; /* four schedulers issue a warp each */
  double walked = 0, functions = 0, draws = 0;
  for (uint32_t i = 0; i < group->n; i++) {
    const Node *n = ir_node(g, group->nodes[i]);
    double elements = elements_of(g, n);
    walked = fmax(walked, elements);
    if (op_of(n)->code.dear) functions += elements;
    if (op_draws(n)) draws += elements;
    draws += (double)update_words(g, n) * (double)node_range(g, n);
  }
  double slots = AN_ELEMENT * walked + AN_OPERATOR * fmax(flops, 0) + A_FUNCTION * functions;
  return slots / results_a_us(gpu, LANES) + draws * A_DRAW / results_a_us(gpu, gpu->lanes_int);
}

static double kernel_us(const Graph *g, const Gpu *gpu, const Group *group, double bytes,
                        double flops)
{
  double latency = 2.0 * gpu->latency_dram / gpu->mhz;
  double issue = issue_us(g, gpu, group, flops);
  return fmax(latency, fmax(issue, bytes / (gpu->dram * 1e3)));
}

/* True if the command only casts. */
static bool casts_only(const Graph *g, const Group *group)
{
  for (uint32_t i = 0; i < group->n; i++)
    if (!op_has(ir_node(g, group->nodes[i]), T_casts)) return false;
  return true;
}

static CostPart part_of_kernel(const Graph *g, const Group *group)
{
  if (casts_only(g, group)) return PART_casts;
  bool state = group->anchor.id && op_of(ir_node(g, group->anchor))->precision == PREC_state;
  for (uint32_t i = 0; i < group->n_parts && !state; i++)
    state = part_of_kernel(g, &group->parts[i]) == PART_state;
  return state ? PART_state : PART_kernels;
}

CostPart predict_part(Compile *c, uint32_t group)
{
  TileLoad tiles;
  CommandKind kind = command_of(c->graph, group)->kind;
  if (kind == COMMAND_gemm || kind == COMMAND_conv) return PART_products;
  if (tile_load(c, group, 0, &tiles)) return PART_tiles;
  return part_of_kernel(c->graph, &c->graph->groups.at[group]);
}

/* ---- products ---- */

static void take_product(Prediction *p, const Gpu *gpu)
{
  ProductLoad aligned = p->load;
  aligned.aligned = true;
  p->product = true;
  p->cost = gpu_product_cost(gpu, &p->load);
  p->aligned_us = gpu_product_cost(gpu, &aligned).us;
  p->against = tensor_against(gpu, &p->load);
  p->busy = p->cost.in_flight / 128 / gpu->multiprocessors;
}

/* Sets the prediction of attention, for a GPU or for a processor. */
static void take_tiles(Prediction *p, const TileLoad *t, Cost cost, const char *against)
{
  p->product = true;
  p->load = t->load;
  p->busy = 1;
  p->cost = cost;
  p->aligned_us = cost.us;
  p->against = against;
  p->count.flops = (int64_t)load_flops(&t->load) * p->count.times;
}

/* ---- the quick model of ampc's own kernels ---- */

/* Returns the time of FMAs on f32 lanes, which most of ampc's own kernels use. */
static double own_product_us(const Gpu *gpu, double flops)
{
  const double reached = 0.5;
  return flops / (2 * reached * results_a_us(gpu, gpu->lanes_f32));
}

/* Returns the time of ampc's attention on tensor cores. The instructions that a lane issues for a
 * pair of query and key were counted in code for sm_90 with heads of 32, 64 and 128 features, with
 * and without dropout. */
static double tensor_tiles_us(const Gpu *gpu, const TileLoad *t)
{
  const double reached = 0.75, of_draw = 19;
  bool back = t->again > 1;
  double pairs = t->load.m * t->load.n * t->load.batch, width = t->load.k / (back ? 5 : 2);
  double issued = pairs * (back ? 10 + 0.41 * width : 9 + 0.14 * width);
  issued += t->draws * of_draw * (back ? 2 : 1);
  return issued / (reached * results_a_us(gpu, gpu->lanes_f32));
}

static double own_tiles_us(const Gpu *gpu, const TileLoad *t)
{
  if (t->tensor) return tensor_tiles_us(gpu, t);
  return own_product_us(gpu, load_flops(&t->load) * t->again) +
         t->draws * A_LONE_DRAW / results_a_us(gpu, gpu->lanes_int);
}

static void quick_kernel(Prediction *p, Compile *c, const Gpu *gpu, uint32_t group)
{
  const Graph *g = c->graph;
  TileLoad tiles;
  if (tile_load(c, group, p->bytes, &tiles)) {
    const char *own =
        gpu_has_tensor(gpu, &tiles.load) ? tiles.by : tensor_against(gpu, &tiles.load);
    take_tiles(p, &tiles, (Cost){.us = own_tiles_us(gpu, &tiles)}, tiles.tensor ? NULL : own);
    return;
  }
  double flops = (double)p->count.flops / (double)p->count.times;
  p->cost.us = kernel_us(g, gpu, &g->groups.at[group], p->bytes, flops);
}

static void quick_conv(Prediction *p, const Gpu *gpu)
{
  p->against = p->own;
  p->cost.us = fmax(own_product_us(gpu, load_flops(&p->load)), p->bytes / (gpu->dram * 1e3));
  p->aligned_us = p->cost.us;
}

static bool take_conv(Prediction *p, Compile *c, const Gpu *gpu, uint32_t group,
                      const KernelModel *model)
{
  const ampc_conv *d = &command_of(c->graph, group)->conv;
  p->load = conv_load(c, d, p->bytes);
  take_product(p, gpu);
  double roof = p->cost.roof_us;
  p->own = model && model->no_library ? "own kernels: no cuDNN" : conv_against(c, d);
  bool good = true;
  if (p->own && model)
    good = model->conv(model->context, d, p);
  else if (p->own)
    quick_conv(p, gpu);
  p->cost.roof_us = roof;
  return good;
}

/* ---- on the processor of this machine ---- */

static void predict_on_cpu(Prediction *p, Compile *c, const Cpu *measured, uint32_t group)
{
  Cpu rates = *measured;
  const Cpu *cpu = &rates;
  /* loops of ampc: a multiply-add is two instructions, so that every processor rounds alike */
  if (c->options.no_onednn) rates.peak /= 2, rates.bf16 = 1;
  CpuBytes moved = {p->bytes, (double)memory_of_spaces(c->program)};
  const Command *k = command_of(c->graph, group);
  TileLoad tiles;
  if (k->kind == COMMAND_gemm) {
    p->load = gemm_load(c, &k->gemm, p->bytes);
    p->cost.us = cpu_gemm_us(cpu, &k->gemm, moved);
  } else if (k->kind == COMMAND_conv) {
    p->load = conv_load(c, &k->conv, p->bytes);
    p->cost.us = cpu_conv_us(cpu, &k->conv, moved);
  } else if (tile_load(c, group, p->bytes, &tiles)) {
    bool wide = tiles.load.type == AMPC_F32;
    take_tiles(p, &tiles, (Cost){.us = cpu_tiles_us(cpu, &tiles)},
               wide ? NULL : "our kernel multiplies in f32");
    return;
  } else {
    p->cost.us = cpu_kernel_us(c, cpu, group, moved);
    return;
  }
  p->product = true;
  p->busy = 1;
  p->aligned_us = p->cost.us;
  p->against = cpu_against(cpu, p->load.type);
}

/* ---- commands ---- */

static bool predict_on_gpu(Prediction *p, Compile *c, const Gpu *gpu, uint32_t group,
                           const KernelModel *model)
{
  const Command *k = command_of(c->graph, group);
  bool own = model && model->no_library;
  TileLoad tiles;
  if (k->kind == COMMAND_conv) return take_conv(p, c, gpu, group, model);
  if (k->kind == COMMAND_gemm) {
    p->load = gemm_load(c, &k->gemm, p->bytes);
    take_product(p, gpu);
  } else if (k->kind == COMMAND_exchange) {
    p->launches = 0;
    p->own = "an exchange between members: its time is not predicted";
  } else if (!own && tile_load(c, group, p->bytes, &tiles) && tiles.library) {
    take_tiles(p, &tiles, tile_cost(gpu, &tiles), NULL);
    p->launches = tiles.nodes;
    p->bytes = tiles.load.bytes;
    p->own = tiles.by;
  } else if (!own && load_is_spared(c, group)) {
    p->launches = p->bytes = 0;
    p->own = "not launched: cuDNN computes it with the gradients of attention";
  } else if (model) {
    return model->kernel(model->context, p);
  } else {
    quick_kernel(p, c, gpu, group);
  }
  return true;
}

/* Turns the prediction of one launch into that of all. */
static void repeat(Prediction *p, const Gpu *gpu)
{
  double times = (double)p->count.times;
  double *const all[] = {&p->launches,       &p->bytes,        &p->aligned_us,
                         &p->cost.us,        &p->cost.dram_us, &p->cost.l2_us,
                         &p->cost.issue_us,  &p->cost.roof_us, &p->cost.latency_us,
                         &p->cost.tensor_us, &p->cost.l2_bytes};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] *= times;
  p->launch_us = p->launches * gpu->node;
}

bool predict_with(Compile *c, const Gpu *gpu, uint32_t group, const KernelModel *model,
                  Prediction *p)
{
  p->part = predict_part(c, group);
  p->launches = 1;
  p->bytes = (double)(p->count.read + p->count.written) / (double)p->count.times;
  bool good = true;
  if (gpu->cpu)
    predict_on_cpu(p, c, gpu->cpu, group);
  else
    good = predict_on_gpu(p, c, gpu, group, model);
  repeat(p, gpu);
  return good;
}

Prediction predict_command(Compile *c, const Gpu *gpu, uint32_t group, NodeCount *nodes)
{
  Prediction p = {.count = command_count(c, group, nodes)};
  predict_with(c, gpu, group, NULL, &p);
  if (nodes && p.part == PART_tiles)
    nodes[c->graph->groups.at[group].anchor.id].flops += p.count.flops;
  return p;
}

void predict_block(Compile *c, const Gpu *gpu, uint16_t block, double parts[PART_COUNT])
{
  const Graph *g = c->graph;
  for (int i = 0; i < PART_COUNT; i++) parts[i] = 0;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Group *group = &g->groups.at[i];
    if (ir_node(g, group->nodes[group->n - 1])->block != block || !command_of(g, i)->kind) continue;
    Prediction p = predict_command(c, gpu, i, NULL);
    parts[p.part] += p.cost.us;
    parts[PART_launches] += p.launch_us;
  }
}
