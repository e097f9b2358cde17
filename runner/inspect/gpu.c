/* `amp inspect --gpu`: predicts the cost of every command of a job. predict_with() predicts
 * libraries; the kernels of ampc's own are walked here (runner/cost). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/cost/predict.h"
#include "compiler/kernel/kernels.h"
#include "inspect.h"
#include "runner/cost/kernel.h"
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
  const Gpu *gpu;
  PtxText ptx;
  VEC(Walked) walked;
  const CommandRow *row; /* the command that is being predicted */
  WalkCounts counts;     /* of a launch of it; walked 0: no own kernel runs */
  const char *why;       /* why a kernel cannot be counted */
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
  if (row->is == COMMAND_conv) {
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
  const Gpu *g = m->gpu;
  Arena *arena = m->in->c->arena;
  const char *why = "NVRTC's PTX does not contain it";
  const PtxKernel *k = ptx_find(&m->ptx, row->facts.kernel);
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
  m->why = arena_printf(arena, "%s: %s", row->facts.kernel, why);
  return false;
}

static bool weigh_kernel(Maker *m, int pass, double bytes, WalkCounts *counts, Cost *out)
{
  const Usage *u = &m->row->usage[0];
  if (!walk_row(m, m->row, pass, counts)) return false;
  KernelLoad load = {.grid = m->row->at.grid,
                     .block = m->row->at.block,
                     .registers = u->known ? u->registers : 0,
                     .shared = u->known ? u->shared : 0,
                     .bytes = bytes,
                     .counts = counts};
  *out = gpu_kernel_cost(m->gpu, &load);
  return true;
}

static bool model_kernel(void *context, Prediction *p)
{
  Maker *m = context;
  return weigh_kernel(m, 0, p->bytes, &m->counts, &p->cost);
}

/* ---- convolutions ---- */

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
static bool weigh_columns(Maker *m, const ampc_conv *asked, Prediction *out)
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
  Cost product = gpu_product_cost(m->gpu, &p), kernel = {0};
  out->against = tensor_against(m->gpu, &p);
  out->launches = parts * (calls + (columns.direct ? 0 : 1));
  out->bytes = parts * calls * p.bytes;
  if (!columns.direct) {
    double bytes = columns_bytes(m->in, &part, &columns);
    if (!weigh_kernel(m, 0, bytes, &m->counts, &kernel)) return false;
    scale_counts(&m->counts, parts);
    out->bytes += parts * bytes;
  }
  out->cost = (Cost){.bound = product.us * calls > kernel.us ? product.bound : kernel.bound,
                     .in_flight = product.in_flight};
  add_cost(&out->cost, &product, parts * calls);
  add_cost(&out->cost, &kernel, parts);
  return true;
}

/* Predicts a convolution by a kernel with several passes, which stores partial sums between
 * them. */
static bool weigh_whole(Maker *m, const ampc_conv *d, Prediction *out)
{
  ConvColumns t = ampc_conv_columns(d, m->in->c->program->real64);
  double first = out->bytes, joined = 0;
  double written = (double)out->count.written / (double)out->count.times;
  double slowest = 0, part = t.sums ? (double)t.bytes / (double)(t.sums + t.joined) : 0;
  int passes = ampc_conv_passes(d, &t);
  if (t.sums) first += part * (double)t.sums, joined = part * (double)t.joined;
  out->launches = passes;
  out->bytes = 0;
  out->cost = (Cost){0};
  for (int pass = 0; pass < passes; pass++) {
    WalkCounts counts = {0};
    Cost cost;
    bool last = pass + 1 == passes;
    double bytes = pass == 0 ? first
                   : !last   ? part * (double)t.sums + joined
                             : (t.joined ? joined : part * (double)t.sums) + written;
    if (!weigh_kernel(m, pass, bytes, &counts, &cost)) return false;
    m->counts.instructions += counts.instructions;
    m->counts.slots += counts.slots;
    if (pass == 0) m->counts.longest = counts.longest, m->counts.walked = counts.walked;
    if (pass == 0) out->cost.in_flight = cost.in_flight;
    if (cost.us > slowest) slowest = cost.us, out->cost.bound = cost.bound;
    add_cost(&out->cost, &cost, 1);
    out->bytes += bytes;
  }
  out->against = out->own;
  return true;
}

static bool model_conv(void *context, const ampc_conv *d, Prediction *p)
{
  Maker *m = context;
  bool whole = ampc_conv_columns(d, m->in->c->program->real64).whole;
  return whole ? weigh_whole(m, d, p) : weigh_columns(m, d, p);
}

/* ---- a command ---- */

static void set_walked(const Maker *m, const Prediction *p, Facts *f)
{
  double times = (double)p->count.times;
  f->instructions = m->counts.instructions * times;
  f->slots = m->counts.slots * times;
  f->longest = m->counts.longest;
  f->walked = m->counts.walked;
  if (f->elements > 0) f->instructions_per_element = m->counts.instructions / f->elements;
}

/* Predicts a command and sets its facts. `roof`: as a part of the whole time. */
static bool weigh(Maker *m, const KernelModel *model, CommandRow *row)
{
  Prediction p = {.count = command_count(m->in->c, row->group, NULL)};
  Facts *f = &row->facts;
  bool vendor = row->is == COMMAND_gemm || row->is == COMMAND_conv;
  m->row = row;
  m->counts = (WalkCounts){0};
  if (!predict_with(m->in->c, m->gpu, row->group, model, &p)) return false;
  f->launches = p.launches;
  f->bytes = p.bytes;
  f->predicted_us = p.cost.us + p.launch_us;
  f->bound = bound_names[p.cost.bound];
  f->roof = f->predicted_us > 0 ? p.cost.roof_us / f->predicted_us : 0;
  f->l2_bytes = p.cost.l2_bytes;
  f->threads = p.cost.in_flight;
  f->dram_us = p.cost.dram_us;
  f->l2_us = p.cost.l2_us;
  f->issue_us = p.cost.issue_us;
  f->latency_us = p.cost.latency_us;
  f->tensor_us = p.cost.tensor_us;
  f->own = p.own;
  if (vendor) f->why_not = p.against, f->tensor = !p.against;
  f->why = p.own ? p.own : f->why_not;
  if (m->counts.walked > 0) set_walked(m, &p, f);
  return true;
}

/* ---- a job ---- */

/* Reads the usage and the PTX of all kernels. Returns an exit status. */
static int read_kernels(Maker *m)
{
  Text ptx;
  int status = inspect_usage(m->in, m->gpu->arch, &ptx);
  if (status || ptx_read(m->in->c->arena, ptx.at, &m->ptx, &m->why)) return status;
  fprintf(stderr, "amp: error: PTX of %s is not understood: %s\n", m->gpu->arch, m->why);
  return AMPC_NO_COMPILER;
}

static bool take_measured(Inspection *in, const char *name, double us)
{
  bool found = false;
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (strcmp(in->rows.at[i].facts.name, name) == 0)
      in->rows.at[i].facts.measured_us = us, found = true;
  return found;
}

/* Reads measured times; each line is "features_1_max_pool2d<tab>5.5". A name that the job lacks is
 * an error: the file belongs to another job or precision, and its times would mislead. */
static int read_measured(Inspection *in, const char *path)
{
  char name[256];
  double us;
  bool known = true, any = false;
  FILE *f = fopen(path, "r");
  while (f && known && fscanf(f, "%255[^\t\n]\t%lf\n", name, &us) == 2)
    known = take_measured(in, name, us), any = true;
  bool whole = f && feof(f);
  const char *why = f ? "expected a name, a tab and microseconds in each line" : strerror(errno);
  if (f) fclose(f);
  if (!known) why = arena_printf(in->c->arena, "no command `%s` in this job", name);
  if (known && whole && any) return 0;
  fprintf(stderr, "amp inspect: error: %s: %s\n", path, why);
  return AMPC_BAD_FILE;
}

int inspect_gpu(Inspection *in, const GpuRequest *request)
{
  Maker m = {.in = in, .gpu = gpu_find(request->name)};
  const KernelModel model = {request->no_cudnn, &m, model_kernel, model_conv};
  int status = read_kernels(&m);
  if (status) return status;
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (!weigh(&m, &model, &in->rows.at[i])) {
      fprintf(stderr, "amp: error: a kernel cannot be counted: %s\n", m.why);
      return AMPC_NO_COMPILER;
    }
  return request->measured ? read_measured(in, request->measured) : 0;
}
