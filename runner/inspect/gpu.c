/* `amp inspect --gpu`: predicts the cost of every command of a job (runner/cost). */
#include "gpu.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/cost/load.h"
#include "compiler/kernel/kernels.h"
#include "runtime/base/convert.h"
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"
#include "runtime/plan/conv_tiling.h"

enum { BLOCKS_WALKED = 9, MOST_STEPS = 200000, ENDLESS = 50000000 };

typedef struct Walked { /* a launch and its counts */
  const PtxKernel *kernel;
  WalkLaunch launch;
  WalkCounts counts;
} Walked;

typedef struct Maker {
  Inspection *in;
  GpuReport *report;
  PtxText ptx;
  VEC(Walked) walked;
  const char *why; /* why a kernel cannot be counted */
} Maker;

/* ---- kernels ---- */

/* Returns what a walked kernel reads from an argument: 1.0 for floats, 0 for integers and STATE. */
static uint64_t pattern_of(const KernelArg *a)
{
  if (a->role == ARG_state || a->role == ARG_optimizer || a->role == ARG_metric) return 0;
  if (a->role == ARG_stream) return 0;
  if (a->place.space == AMPC_STATE) return 0;
  uint64_t bits = 0;
  if (dtype_is_float(a->type)) convert_narrow(a->type, &(float){1}, &bits, 1);
  for (int64_t at = 8 * ampc_dtype_size(a->type); at < 64; at *= 2) bits |= bits << at;
  return bits;
}

/* Returns the address of an argument modulo 256. Streams are numbers, which change no count: two
 * launches that differ only in them are walked once. */
static uint32_t skew_of(const KernelArg *a)
{
  return a->role == ARG_stream ? 0 : (uint32_t)(a->place.offset % 256);
}

/* Fills in the arguments of a convolution's kernel in one of its passes; see conv_columns.h. */
static uint32_t conv_arguments(Compile *c, const CommandRow *row, int pass, WalkArgument *out)
{
  const ampc_conv *d = &command_of(c->graph, row->group)->conv;
  ConvColumns t = ampc_conv_columns(d, c->options.real64);
  void *args[CONV_KERNEL_ARGS] = {out, out, out, out};
  ampc_conv_pass(d, &t, pass, args);
  for (int i = 0; i < CONV_KERNEL_ARGS; i++)
    out[i] = (WalkArgument){.pattern = 0x3C003C003C003C00u, .absent = !args[i]};
  return ampc_conv_kernel_args(d);
}

static uint32_t arguments_of(const Maker *m, const CommandRow *row, int pass, WalkArgument **out)
{
  Compile *c = m->in->c;
  if (row->kind == COMMAND_conv) {
    *out = arena_array(c->arena, WalkArgument, CONV_KERNEL_ARGS);
    return conv_arguments(c, row, pass, *out);
  }
  const KernelArgs *args = &command_of(c->graph, row->group)->whole.args;
  *out = arena_array(c->arena, WalkArgument, args->n + 1);
  for (uint32_t i = 0; i < args->n; i++)
    (*out)[i] = (WalkArgument){.pattern = pattern_of(&args->at[i]),
                               .rows = (uint64_t)index_rows(c, row->group, &args->at[i]),
                               .id_bytes = (uint64_t)ampc_dtype_size(args->at[i].type),
                               .skew = skew_of(&args->at[i])};
  return args->n;
}

/* True if a walk of both gives the same counts. All walks are for the same GPU. */
static bool same_launch(const WalkLaunch *a, const WalkLaunch *b)
{
  bool same = a->grid == b->grid && a->block == b->block && a->n_arguments == b->n_arguments;
  for (uint32_t i = 0; i < a->n_arguments && same; i++) {
    const WalkArgument *x = &a->arguments[i], *y = &b->arguments[i];
    same = x->pattern == y->pattern && x->rows == y->rows && x->id_bytes == y->id_bytes &&
           x->skew == y->skew && x->absent == y->absent;
  }
  return same;
}

/* Walks a kernel, or copies the counts of an equal launch: equal layers share a kernel. */
static bool walk_once(Maker *m, const PtxKernel *k, const WalkLaunch *launch, WalkCounts *out,
                      const char **why)
{
  Arena *arena = m->in->c->arena;
  for (uint32_t i = 0; i < m->walked.n; i++) {
    const Walked *w = &m->walked.at[i];
    if (w->kernel != k || !same_launch(&w->launch, launch)) continue;
    *out = w->counts;
    return true;
  }
  if (!walk_kernel(arena, k, launch, out, why)) return false;
  vec_push(arena, &m->walked, (Walked){k, *launch, *out});
  return true;
}

static bool walk_row(Maker *m, const CommandRow *row, int pass, WalkCounts *out)
{
  const Gpu *g = m->report->gpu;
  Arena *arena = m->in->c->arena;
  const char *why = "NVRTC's PTX does not contain it";
  const PtxKernel *k = ptx_find(&m->ptx, row->kernel);
  WalkArgument *arguments;
  uint32_t n = arguments_of(m, row, pass, &arguments);
  WalkLaunch launch = {.grid = row->at.grid,
                       .block = row->at.block,
                       .blocks = BLOCKS_WALKED,
                       .most = MOST_STEPS,
                       .endless = ENDLESS,
                       .arguments = arguments,
                       .n_arguments = n,
                       .latency_shared = (uint32_t)g->latency_shared,
                       .latency_l1 = (uint32_t)g->latency_l1,
                       .latency_l2 = (uint32_t)g->latency_l2,
                       .latency_dram = (uint32_t)g->latency_dram};
  if (k && walk_once(m, k, &launch, out, &why)) return true;
  m->why = arena_printf(arena, "%s: %s", row->kernel, why);
  return false;
}

static bool weigh_kernel(Maker *m, const CommandRow *row, int pass, double bytes,
                         WalkCounts *counts, Cost *out)
{
  const Usage *u = &row->usage[0];
  if (!walk_row(m, row, pass, counts)) return false;
  KernelLoad load = {.grid = row->at.grid,
                     .block = row->at.block,
                     .registers = u->known ? u->registers : 0,
                     .shared = u->known ? u->shared : 0,
                     .bytes = bytes,
                     .counts = counts};
  *out = gpu_kernel_cost(m->report->gpu, &load);
  return true;
}

/* ---- products ---- */

static void weigh_product(const Maker *m, GpuRow *out, const ProductLoad *p)
{
  out->nodes = 1;
  out->bytes = p->bytes;
  out->cost = gpu_product_cost(m->report->gpu, p);
  out->tensor = tensor_against(m->report->gpu, p);
}

static void add_cost(Cost *to, const Cost *more, double times)
{
  to->us += more->us * times;
  to->dram_us += more->dram_us * times;
  to->l2_us += more->l2_us * times;
  to->issue_us += more->issue_us * times;
  to->latency_us += more->latency_us * times;
  to->tensor_us += more->tensor_us * times;
  to->l2_bytes += more->l2_bytes * times;
}

static void scale_counts(WalkCounts *c, double by)
{
  c->instructions *= by;
  c->slots *= by;
}

/* Returns the bytes of operands and result, each counted once. */
static double product_bytes(const Inspection *in, const ampc_gemm *d)
{
  int64_t bytes = d->m * d->k * ir_dtype_size(in->c, d->a_type) +
                  d->k * d->n * ir_dtype_size(in->c, d->b_type) +
                  d->m * d->n * ir_dtype_size(in->c, d->c_type) * (d->accumulate ? 2 : 1);
  if (d->has_bias) bytes += d->n * ir_dtype_size(in->c, d->bias_type);
  return (double)(d->batch * bytes);
}

/* Returns the bytes of images and columns. The gradient of images also reads the weights and writes
 * them transposed. */
static double columns_bytes(const Inspection *in, const ampc_conv *d, const ConvColumns *t)
{
  int64_t images = t->images * conv_in_elements(d) * ir_dtype_size(in->c, d->x_type);
  int64_t weights = t->turned ? 2 * conv_weights(d) * ir_dtype_size(in->c, d->w_type) : 0;
  return (double)(t->bytes + images + weights);
}

/* Predicts a convolution by columns, Note [columns on CUDA]: for each part of the images, a kernel
 * writes the columns and a matrix product reads them. */
static bool weigh_columns(Maker *m, const CommandRow *row, const ampc_conv *asked, GpuRow *out)
{
  bool real64 = m->in->c->program->real64;
  ConvColumns columns = ampc_conv_columns(asked, real64);
  ampc_conv part = ampc_conv_of_columns(asked);
  part.n = columns.images;
  ampc_gemm g = ampc_conv_product(&part, real64);
  double parts = (double)columns.parts;
  double calls = part.groups > 1 && part.has_bias ? (double)part.groups : 1;
  if (calls == 1) g.batch = part.groups;
  ProductLoad p = gemm_load(m->in->c, &g, product_bytes(m->in, &g));
  weigh_product(m, out, &p);
  Cost product = out->cost, kernel = {0};
  out->nodes = (int)(parts * (calls + (columns.direct ? 0 : 1)));
  out->bytes = parts * calls * p.bytes;
  if (!columns.direct) {
    double bytes = columns_bytes(m->in, &part, &columns);
    if (!weigh_kernel(m, row, 0, bytes, &out->counts, &kernel)) return false;
    scale_counts(&out->counts, parts);
    out->counted = true;
    out->bytes += parts * bytes;
  }
  out->cost = (Cost){.bound = product.us * calls > kernel.us ? product.bound : kernel.bound,
                     .in_flight = product.in_flight};
  add_cost(&out->cost, &product, parts * calls);
  add_cost(&out->cost, &kernel, parts);
  return true;
}

/* ---- a command ---- */

/* Returns the bytes of one launch. */
static double launch_bytes(const CommandRow *row)
{
  return (double)(row->read + row->written) / (double)row->times;
}

/* Predicts a convolution by a kernel with several passes, which stores partial sums between
 * them. */
static bool weigh_whole(Maker *m, const CommandRow *row, const ampc_conv *d, GpuRow *out)
{
  ConvColumns t = ampc_conv_columns(d, m->in->c->program->real64);
  double first = launch_bytes(row), joined = 0;
  double slowest = 0, part = t.sums ? (double)t.bytes / (double)(t.sums + t.joined) : 0;
  if (t.sums) first += part * (double)t.sums, joined = part * (double)t.joined;
  out->nodes = ampc_conv_passes(d, &t);
  for (int pass = 0; pass < out->nodes; pass++) {
    WalkCounts counts = {0};
    Cost cost;
    bool last = pass + 1 == out->nodes;
    double bytes =
        pass == 0 ? first
        : !last   ? part * (double)t.sums + joined
                : (t.joined ? joined : part * (double)t.sums) + (double)(row->written / row->times);
    if (!weigh_kernel(m, row, pass, bytes, &counts, &cost)) return false;
    out->counts.instructions += counts.instructions;
    out->counts.slots += counts.slots;
    if (pass == 0) out->counts.longest = counts.longest, out->counts.walked = counts.walked;
    if (pass == 0) out->cost.in_flight = cost.in_flight;
    if (cost.us > slowest) slowest = cost.us, out->cost.bound = cost.bound;
    add_cost(&out->cost, &cost, 1);
    out->bytes = pass ? out->bytes + bytes : bytes;
  }
  out->counted = true;
  out->tensor = out->own;
  return true;
}

static bool weigh_conv(Maker *m, const CommandRow *row, GpuRow *out)
{
  const ampc_conv *d = &command_of(m->in->c->graph, row->group)->conv;
  ProductLoad p = conv_load(m->in->c, d, launch_bytes(row));
  double roof = gpu_product_cost(m->report->gpu, &p).roof_us;
  bool good = true;
  out->own = m->report->no_cudnn ? "own kernels: no cuDNN" : conv_against(m->in->c, d);
  if (!out->own)
    weigh_product(m, out, &p);
  else if (ampc_conv_columns(d, m->in->c->program->real64).whole)
    good = weigh_whole(m, row, d, out);
  else
    good = weigh_columns(m, row, d, out);
  out->cost.roof_us = roof;
  return good;
}

static void weigh_tiles(const Maker *m, const TileLoad *t, GpuRow *out)
{
  weigh_product(m, out, &t->load);
  out->cost = tile_cost(m->report->gpu, t);
  out->nodes = t->nodes;
  out->own = t->by;
}

/* Multiplies the cost of a command in a loop by its iterations. */
static void repeat(GpuRow *r, int64_t times)
{
  Cost once = r->cost;
  r->nodes *= (int)times;
  r->bytes *= (double)times;
  scale_counts(&r->counts, (double)times);
  add_cost(&r->cost, &once, (double)(times - 1));
  r->cost.roof_us *= (double)times;
}

static bool weigh(Maker *m, const CommandRow *row, GpuRow *out)
{
  double bytes = launch_bytes(row);
  *out = (GpuRow){.row = row, .nodes = 1, .bytes = bytes};
  bool good = true;
  TileLoad tiles;
  if (row->kind == COMMAND_exchange) {
    out->nodes = 0;
    out->own = "an exchange between members: its time is not predicted";
  } else if (row->kind == COMMAND_kernel && !m->report->no_cudnn &&
             tile_load(m->in->c, row->group, bytes, &tiles) && tiles.library) {
    weigh_tiles(m, &tiles, out);
  } else if (row->kind == COMMAND_kernel && !m->report->no_cudnn &&
             load_is_spared(m->in->c, row->group)) {
    out->nodes = 0;
    out->bytes = 0;
    out->own = "not launched: cuDNN computes it with the gradients of attention";
  } else if (row->kind == COMMAND_kernel) {
    good = weigh_kernel(m, row, 0, bytes, &out->counts, &out->cost);
    out->counted = true;
  } else if (row->kind == COMMAND_conv) {
    good = weigh_conv(m, row, out);
  } else {
    ProductLoad p = gemm_load(m->in->c, &command_of(m->in->c->graph, row->group)->gemm, bytes);
    weigh_product(m, out, &p);
  }
  repeat(out, row->times);
  out->us = out->cost.us + out->nodes * m->report->gpu->node;
  return good;
}

GpuBlock gpu_block(const Inspection *in, const GpuReport *r, uint16_t block)
{
  GpuBlock b = {0};
  bool all = true;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    if (in->rows.at[i].block != block) continue;
    b.commands++;
    b.nodes += r->rows[i].nodes;
    b.bytes += r->rows[i].bytes;
    b.instructions += r->rows[i].counts.instructions;
    b.us += r->rows[i].us;
    b.measured += r->rows[i].measured;
    all &= r->rows[i].measured > 0;
  }
  if (!all) b.measured = 0;
  b.unavoidable = gpu_unavoidable(in, block, b.bytes);
  return b;
}

/* ---- a job ---- */

/* Reads the usage and the PTX of all kernels. Returns an exit status. */
static int read_kernels(Maker *m)
{
  Text ptx;
  int status = inspect_usage(m->in, m->report->gpu->arch, &ptx);
  if (status || ptx_read(m->in->c->arena, ptx.at, &m->ptx, &m->why)) return status;
  fprintf(stderr, "amp: error: PTX of %s is not understood: %s\n", m->report->gpu->arch, m->why);
  return AMPC_NO_COMPILER;
}

static bool take_measured(const Inspection *in, const GpuReport *r, const char *name, double us)
{
  bool found = false;
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (strcmp(in->rows.at[i].name, name) == 0) r->rows[i].measured = us, found = true;
  return found;
}

/* Reads measured times; each line is "features_1_max_pool2d<tab>5.5". A name that the job lacks is
 * an error: the file belongs to another job or precision, and its times would mislead. */
static int read_measured(const Inspection *in, const GpuReport *r, const char *path)
{
  char name[256];
  double us;
  bool known = true, any = false;
  FILE *f = fopen(path, "r");
  while (f && known && fscanf(f, "%255[^\t\n]\t%lf\n", name, &us) == 2)
    known = take_measured(in, r, name, us), any = true;
  bool whole = f && feof(f);
  const char *why = f ? "expected a name, a tab and microseconds in each line" : strerror(errno);
  if (f) fclose(f);
  if (!known) why = arena_printf(in->c->arena, "no command `%s` in this job", name);
  if (known && whole && any) return 0;
  fprintf(stderr, "amp inspect: error: %s: %s\n", path, why);
  return AMPC_BAD_FILE;
}

int inspect_gpu(Inspection *in, const GpuRequest *request, bool json)
{
  GpuReport report = {.gpu = gpu_find(request->name), .no_cudnn = request->no_cudnn};
  Maker m = {.in = in, .report = &report};
  int status = read_kernels(&m);
  if (status) return status;
  report.rows = arena_array(in->c->arena, GpuRow, in->rows.n + 1);
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (!weigh(&m, &in->rows.at[i], &report.rows[i])) {
      fprintf(stderr, "amp: error: a kernel cannot be counted: %s\n", m.why);
      return AMPC_NO_COMPILER;
    }
  report.measured = request->measured != NULL;
  if (request->measured) status = read_measured(in, &report, request->measured);
  if (status) return status;
  return json ? gpu_print_json(in, &report) : gpu_print_table(in, &report);
}
