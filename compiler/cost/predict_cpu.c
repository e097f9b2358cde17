/* Predicted times of commands on the processor of this machine.
 *
 * Note [on a processor]
 * The rates of the processor are measured (cpu.c). The numbers below are the costs of a kernel, a
 * product or a convolution. They were fitted to 3,300 commands of nine jobs in three precisions.
 * Each command was timed alone on two cores of a Zen 4 (bench_steps --commands). The model is one
 * vector instruction in each cycle. Here a slot is one lane of an instruction, and the numbers are
 * slots for each element. A processor that executes two instructions may be faster than predicted.
 *
 * A kernel takes the time of its instructions or of its operands, whichever is longer. Operands
 * come from the cache that holds the memory of the whole job, because a step walks through all of
 * it. A product takes little more than its multiply-adds at peak rate. If the processor can
 * multiply only f32, 16-bit operands are widened first. No kernel uses more threads than it has
 * blocks. */
#include "predict_cpu.h"
#include <math.h>
#include "count.h"
#include "runtime/plan/conv_sizes.h"

/* Slots for each element of a kernel. rounding: what a 16-bit result adds. lone_draw: for a random
 * number that is drawn without its neighbours, as in tiles of attention. */
static const double loading = 0.7, store = 3.5, operation = 0.6, function = 41, draw = 25,
                    lone_draw = 91, choice = 2.4, row_element = 2, window = 10,
                    template_element = 4;
enum { round_f16 = 8, round_bf16 = 6 };
#define ROUNDING(KIND, name, ...) [AMPC_##KIND] = round_##name,
static const double rounding[AMPC_DTYPE_COUNT] = {AMPC_NARROW_FLOATS(ROUNDING)};
/* Slots of a product. widen: for each element that is widened; narrow: for each element of the
 * result that is rounded; cell: for each element of the result that is stored. */
static const double widen = 5, narrow = 2.3, cell = 8;
/* Slots of a convolution. narrow_image: for each element of an image that is rounded; weight: for
 * each number of a weight that is reordered for the library. */
static const double narrow_image = 13.6, weight = 7.4;
/* Factors by which products, grouped convolutions and tiles are slower than at peak rate. */
static const double product_factor = 1.12, grouped_factor = 1.8, tile_factor = 3.6;

static double threads_of(const Cpu *cpu, double shares)
{
  return fmax(1, fmin(cpu->threads, shares));
}

static double slots_us(const Cpu *cpu, double slots, double threads)
{
  return slots / (cpu->mhz * cpu->lanes * threads);
}

static double flops_us(const Cpu *cpu, double flops, double threads)
{
  return flops / (cpu->peak * 1e3 * threads / cpu->threads);
}

static double bytes_us(const Cpu *cpu, CpuBytes moved)
{
  return moved.bytes / (cpu_moves(cpu, fmax(moved.bytes, moved.memory)) * 1e3);
}

/* ---- ampc's own kernels ---- */

/* Counts the elements that a node walks. A reduction walks its input, an update its range. */
static double elements_of(const Graph *g, const Node *n)
{
  OpTemplate tmpl = op_of(n)->tmpl;
  double most = (double)ir_elements(n);
  for (uint32_t i = 0; i < n->n_in && (tmpl == TMPL_row || tmpl == TMPL_file); i++)
    if (n->in[i].id) most = fmax(most, (double)ir_elements(ir_node(g, n->in[i])));
  return fmax(most, (double)node_range(g, n));
}

static double node_slots(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  const OpInfo *op = op_of(n);
  bool computes = op->tmpl == TMPL_map || op->tmpl == TMPL_row || op->tmpl == TMPL_file;
  double elements = elements_of(g, n), results = (double)ir_elements(n);
  double slots = operation * (double)node_flops(g, v);
  if (op_draws(n))
    slots += draw * elements;
  else if (op->code.dear)
    slots += function * elements;
  slots += draw * elements * update_words(g, n);
  if (computes) slots += rounding[n->dtype] * results;
  if (op->tmpl == TMPL_map && op->code.chooses) slots += choice * results;
  if (op->tmpl == TMPL_row) slots += row_element * elements;
  if (op->tmpl == TMPL_file) slots += elements * (op_has(n, T_windows) ? window : template_element);
  return slots;
}

static double part_slots(const Graph *g, const KernelPart *part)
{
  double slots = 0;
  for (uint32_t i = 0; i < part->group->n; i++) slots += node_slots(g, part->group->nodes[i]);
  for (uint32_t i = 0; i < part->args.n; i++) {
    const KernelArg *a = &part->args.at[i];
    if (a->role != ARG_in && a->role != ARG_out) continue;
    double elements = (double)ir_elements(ir_node(g, a->value));
    if (elements > 1) slots += elements * (a->role == ARG_out ? store : loading);
  }
  return slots;
}

double cpu_kernel_us(Compile *c, const Cpu *cpu, uint32_t group, CpuBytes moved)
{
  const Command *k = command_of(c->graph, group);
  double slots = 0;
  for (uint32_t i = 0; i < k->n_parts; i++) slots += part_slots(c->graph, &k->parts[i]);
  double threads = threads_of(cpu, k->whole.at.grid);
  return fmax(slots_us(cpu, slots, threads), bytes_us(cpu, moved));
}

double cpu_tiles_us(const Cpu *cpu, const TileLoad *t)
{
  return tile_factor * t->again * flops_us(cpu, load_flops(&t->load), cpu->threads) +
         slots_us(cpu, t->draws * lone_draw, cpu->threads);
}

/* ---- products ---- */

/* Returns the speed of products of this type, relative to f32. */
static double speed_of(const Cpu *cpu, ampc_dtype type)
{
  return type == AMPC_BF16 ? cpu->bf16 : 1;
}

static bool is_widened(const Cpu *cpu, ampc_dtype type)
{
  return ampc_is_narrow(type) && speed_of(cpu, type) <= 1;
}

const char *cpu_against(const Cpu *cpu, ampc_dtype type)
{
  if (!is_widened(cpu, type)) return NULL;
#define AGAINST(KIND, name, ...) [AMPC_##KIND] = "this processor multiplies " #name " as f32",
  static const char *const against[] = {AMPC_NARROW_FLOATS(AGAINST)};
  return against[type];
}

/* Returns the number of threads that compute a product. Each takes squares of 256 x 256. A product
 * of less than a million multiply-adds has one thread. */
static double product_threads(const Cpu *cpu, const ampc_gemm *d)
{
  const double edge = 256, small = 1 << 20;
  double m = (double)d->m, n = (double)d->n, batch = (double)d->batch, each = m * n * (double)d->k;
  if (each * batch < small) return 1;
  return threads_of(cpu, each < small ? batch : ceil(m / edge) * ceil(n / edge) * batch);
}

double cpu_gemm_us(const Cpu *cpu, const ampc_gemm *d, CpuBytes moved)
{
  double m = (double)d->m, n = (double)d->n, k = (double)d->k, batch = (double)d->batch;
  double threads = product_threads(cpu, d), speed = 1;
  double slots = cell * m * n;
  if (d->a_type == d->b_type) speed = speed_of(cpu, d->a_type);
  if (is_widened(cpu, d->a_type)) slots += widen * m * k;
  if (is_widened(cpu, d->b_type)) slots += widen * k * n;
  if (d->c_type != AMPC_F32) slots += narrow * m * n;
  return product_factor * flops_us(cpu, 2 * m * n * k * batch, threads) / speed +
         slots_us(cpu, slots * batch, threads) + bytes_us(cpu, moved) / 2;
}

/* ---- convolutions ---- */

/* Returns the ratio of computed to real channels: the library computes whole vectors of them. */
static double padding_of(const Cpu *cpu, const ampc_conv *d)
{
  if (d->groups > 1 || d->kind == AMPC_CONV_WEIGHT) return 1;
  double channels = (double)(d->kind == AMPC_CONV_DATA ? d->c : d->k);
  return ceil(channels / cpu->lanes) * cpu->lanes / channels;
}

static double image_slots(const Cpu *cpu, ampc_dtype type, double elements, bool result)
{
  if (!is_widened(cpu, type)) return 0;
  return elements * (result ? narrow_image : widen);
}

/* Returns the speed relative to f32. bf16 products use pairs of input channels, so one channel has
 * no gain. */
static double conv_speed(const Cpu *cpu, const ampc_conv *d)
{
  int64_t channels = (d->kind == AMPC_CONV_DATA ? d->k : d->c) / d->groups;
  return channels > 1 || d->kind == AMPC_CONV_WEIGHT ? speed_of(cpu, d->y_type) : 1;
}

double cpu_conv_us(const Cpu *cpu, const ampc_conv *d, CpuBytes moved)
{
  const double weight_of_bf16 = 1.6, setting_up = 8; /* us */
  double pixels = (double)(d->n * conv_out_pixels(d)), weights = (double)conv_weights(d);
  double threads = threads_of(cpu, (double)d->n), speed = conv_speed(cpu, d);
  double factor = d->groups > 1 ? grouped_factor : product_factor;
  if (d->kind == AMPC_CONV_WEIGHT && speed > 1) factor *= weight_of_bf16 / product_factor;
  double seen = (double)(d->n * conv_in_elements(d)), slots = 0;
  slots += image_slots(cpu, d->x_type, seen, d->kind == AMPC_CONV_DATA);
  slots += image_slots(cpu, d->y_type, pixels * (double)d->k, d->kind == AMPC_CONV_FORWARD);
  return setting_up + slots_us(cpu, weight * weights, 1) +
         factor * padding_of(cpu, d) * flops_us(cpu, 2 * pixels * weights, threads) / speed +
         slots_us(cpu, slots, threads) + bytes_us(cpu, moved) / 2;
}
