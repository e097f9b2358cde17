/* Pass plan: writes the placed graph as an ampc_program, which program/ prints and the runtime
 * executes.
 *
 * Needs IR_COMMANDS. Gives IR_PLANNED and c->program. Why last: it only records the decisions of
 * the other passes. plan_commands.c makes the commands. */
#include "ampc_metrics.h"
#include "plan.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"
#include "compiler/passes/passes.h"
#include "runtime/plan/arithmetic.h"
#include "common/number.h"
#include "common/shown.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Returns the name of the job: "mlp" for models/mlp/mlp.amp. Messages, checkpoints and lines of
 * JSON contain the name. A file name may have any bytes, so unprintable bytes are escaped. */
static const char *job_name(Compile *c)
{
  const char *base = file_name(c->options.input);
  const char *dot = strrchr(base, '.');
  size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);
  return arena_shown(c->arena, arena_strndup(c->arena, base, n), "");
}

/* ---- tables ---- */

/* Without f32 masters, steps read the weight itself in this type. */
#define COPY_FIELD(KIND, name, SPACE, copy, ...)                                                   \
  .copy = from->copies >> AMPC_##KIND & 1 || (!from->buffer && from->dtype == AMPC_##KIND),

/* Fills the table of parameters. Pass memory chose the offsets: elements of MASTER for weights,
 * bytes of BUFFER for buffers, elements of GRAD for shares. The host sees weights as f32 in every
 * precision; buffers have their own types. */
static void plan_params(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  ampc_param *out = arena_array(c->arena, ampc_param, g->params.n + 1);
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *from = &g->params.at[i];
    out[i] = (ampc_param){.path = from->path,
                          .buffer = from->buffer,
                          .fixed = from->fixed,
                          .packing = from->packing,
                          .adapts = from->adapts,
                          .given = from->given,
                          .optimizer = from->optimizer,
                          .dtype = from->buffer ? from->dtype : AMPC_F32,
                          .rank = from->rank,
                          .elements = dims_product(from->dim, from->rank),
                          .offset = from->offset,
                          .init = from->init,
                          AMPC_NARROW_FLOATS(COPY_FIELD).channels_last = from->channels_last,
                          .measured = from->measured};
    memcpy(out[i].dim, from->dim, from->rank * sizeof *from->dim);
  }
  p->params = out;
  p->n_params = share_params(g);
  p->shares = out + p->n_params;
  p->n_shares = g->params.n - p->n_params;
  while (p->n_params && g->params.at[p->n_params - 1].decodes) p->n_params--;
  p->loads = g->loads.at;
  p->n_loads = g->loads.n;
  p->aliases = g->aliases.at;
  p->n_aliases = g->aliases.n;
}

/* Fills the table of optimizers. Moments decide which spaces exist and what a checkpoint holds. */
static void plan_optimizers(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  bool codes = g->moment_type == AMPC_U8;
  ampc_optimizer_desc *out = arena_array(c->arena, ampc_optimizer_desc, g->optimizers.n + 1);
  for (uint32_t i = 0; i < g->optimizers.n; i++) {
    const Optimizer *o = &g->optimizers.at[i];
    uint32_t moments = optimizer_moments(o);
    out[i] = (ampc_optimizer_desc){.name = o->name,
                                   .kind = optimizer_of(o)->name,
                                   .first = o->first,
                                   .count = o->count,
                                   .uses_moment1 = moments & 1,
                                   .uses_moment2 = moments >> 1 & 1,
                                   .uses_moment3 = moments >> 2 & 1,
                                   .uses_ema = o->ema,
                                   .unsigned_moments = codes ? optimizer_of(o)->never_negative : 0,
                                   .updates = o->updates > 1 ? o->updates : 0};
  }
  p->optimizers = out;
  p->n_optimizers = g->optimizers.n;
}

/* Lists the slices of groups that members update: their places in MASTER and in the moments. */
static void plan_slices(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  VEC(ampc_slice) slices = {0};
  for (uint32_t i = 0; i < g->optimizers.n && g->members > 1; i++)
    for (uint32_t k = 0; k < g->optimizers.at[i].groups.n; k++) {
      const ParamGroup *group = &g->optimizers.at[i].groups.at[k];
      ampc_slice one = {group->first, group->count, group->slice, group->moment,
                        group->slice < group->count && !plan_reads_masters(c, group)};
      if (group->count) vec_push(c->arena, &slices, one);
    }
  p->slices = slices.at;
  p->n_slices = slices.n;
}

/* Maps a mask of blocks of the graph to a mask of blocks of the program. A mask has 64 bits. */
static uint64_t steps_of(const Graph *g, uint64_t blocks, const uint32_t *block_index)
{
  uint64_t out = 0;
  for (uint32_t i = 0; i < g->blocks.n && i < 64; i++)
    if (blocks >> i & 1) out |= (uint64_t)1 << block_index[i];
  return out;
}

/* Returns the number of steps that the blocks in the mask run, divided by `every`; 1 if the number
 * of samples is not known. */
static double own_length(const Graph *g, uint64_t blocks, int64_t every)
{
  double steps = 0;
  for (uint32_t i = 0; i < g->blocks.n && i < 64; i++) {
    const BlockInfo *b = &g->blocks.at[i];
    double whole = (double)b->epochs * (double)ampc_groups(b->batches, b->accumulate);
    if (blocks >> i & 1) steps += b->max_steps ? (double)b->max_steps : whole;
  }
  steps = floor(steps / (double)every);
  return steps > 0 ? steps : 1;
}

static void plan_settings(Compile *c, ampc_program *p, const uint32_t *block_index)
{
  const Graph *g = c->graph;
  ampc_setting *settings = arena_array(c->arena, ampc_setting, g->settings.n + 1);
  for (uint32_t i = 0; i < g->settings.n; i++) {
    const Setting *from = &g->settings.at[i];
    settings[i] = (ampc_setting){
        .name = from->name,
        .value = from->steps_of ? own_length(g, from->steps_of, from->every) : from->value,
        .domain = from->domain,
        .steps_of = steps_of(g, from->steps_of, block_index),
        .every = from->every > 1 ? from->every : 0};
  }
  ampc_metric_desc *metrics = arena_array(c->arena, ampc_metric_desc, g->metrics.n + 1);
  for (uint32_t i = 0; i < g->metrics.n; i++)
    metrics[i] = (ampc_metric_desc){.name = g->metrics.at[i].name,
                                    .is_loss = g->metrics.at[i].is_loss,
                                    .kind = g->metrics.at[i].kind,
                                    .statistics = g->metrics.at[i].statistics,
                                    .mode = g->metrics.at[i].mode,
                                    .classes = g->metrics.at[i].classes};
  p->settings = settings;
  p->n_settings = g->settings.n;
  p->plateaus = g->plateaus.at;
  p->n_plateaus = g->plateaus.n;
  p->metrics = metrics;
  p->n_metrics = g->metrics.n;
}

/* Fills the table of outputs. block_index: block of the graph -> block of the program. */
static void plan_outputs(Compile *c, ampc_program *p, const uint32_t *block_index)
{
  const Graph *g = c->graph;
  ampc_output_desc *out = arena_array(c->arena, ampc_output_desc, g->outputs.n + 1);
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const Output *from = &g->outputs.at[i];
    const Node *n = ir_node(g, from->value);
    out[i] = (ampc_output_desc){.name = from->name,
                                .block = block_index[from->block],
                                .dtype = n->dtype,
                                .rank = n->rank,
                                .place = n->place};
    memcpy(out[i].dim, n->dim, sizeof out[i].dim);
    const Interval range = integer_range(c, from->value);
    if (n->dtype == AMPC_I64 && range.low == 0 && range.high < INT32_MAX)
      out[i].classes = (int64_t)range.high + 1;
  }
  p->outputs = out;
  p->n_outputs = g->outputs.n;
  p->checks = g->checks.at;
  p->n_checks = g->checks.n;
}

/* ---- blocks ---- */

/* Sets the first metric of a block and their number. They are adjacent in the table. */
static void block_metrics(const Graph *g, uint32_t block, ampc_block *out)
{
  for (uint32_t i = 0; i < g->metrics.n; i++) {
    if (g->metrics.at[i].block != block) continue;
    if (out->n_metrics++ == 0) out->first_metric = i;
  }
}

static ampc_step plan_step(Compile *c, uint32_t block)
{
  const BlockInfo *b = &c->graph->blocks.at[block];
  ampc_step s = {.batch = b->whole, .share = b->batch, .idle = b->idle, .fires = b->fires};
  if (c->graph->members <= 1) s.batch = b->batch, s.share = 0;
  s.commands = plan_commands(c, block, &s.n_commands);
  return s;
}

static void add_variant(Compile *c, uint32_t block, ampc_block *out)
{
  assert(out->n_variants < AMPC_MAX_VARIANTS); /* every_choices() limits it */
  c->graph->blocks.at[block].variant = out->n_variants;
  out->variant[out->n_variants++] = plan_step(c, block);
}

/* Adds the variants with the full batch, then those with the smaller last batch, as lower does. */
static ampc_block plan_block(Compile *c, uint32_t b)
{
  const Graph *g = c->graph;
  const BlockInfo *from = &g->blocks.at[b];
  ampc_block out = {.kind = from->kind,
                    .name = from->name,
                    .line = from->span.end ? diag_place(c, from->span).line : 0,
                    .batch = from->whole ? from->whole : from->batch,
                    .epochs = from->epochs,
                    .max_steps = from->max_steps,
                    .accumulate = from->accumulate,
                    .every = from->every,
                    .log = from->log,
                    .save_every = from->save_every,
                    .early_stop = from->early_stop,
                    .shuffle = from->shuffle,
                    .drop_last = from->drop_last,
                    .balance = from->balanced,
                    .save = from->save,
                    .resume = from->resume,
                    .call = from->call,
                    .n_sizes = from->n_sizes,
                    .context = from->context,
                    .carries = from->carries,
                    .first_source = from->first_source,
                    .n_sources = from->n_sources,
                    .n_periods = from->n_periods};
  memcpy(out.period, from->period, sizeof out.period);
  memcpy(out.size, from->size, sizeof out.size);
  block_metrics(g, b, &out);
  add_variant(c, b, &out);
  for (uint32_t rest = 0; rest < 2; rest++)
    for (uint32_t i = 0; i < g->blocks.n; i++)
      if (g->blocks.at[i].variant_of == (int)b && g->blocks.at[i].remainder == rest)
        add_variant(c, i, &out);
  return out;
}

/* A block of the graph that is a variant of another becomes a variant of its block in the program.
 * Returns the index in the program of each block of the graph. */
static uint32_t *plan_blocks(Compile *c, ampc_program *p)
{
  Graph *g = c->graph;
  ampc_block *out = arena_array(c->arena, ampc_block, g->blocks.n + 1);
  uint32_t *index = arena_array(c->arena, uint32_t, g->blocks.n + 1);
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    if (g->blocks.at[b].variant_of >= 0) continue;
    index[b] = p->n_blocks;
    out[p->n_blocks++] = plan_block(c, b);
  }
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    BlockInfo *info = &g->blocks.at[b];
    info->in_program = index[info->variant_of < 0 ? b : (uint32_t)info->variant_of];
  }
  p->blocks = out;
  return index;
}

/* ---- sizes, identity ---- */

/* True if a step consists of several bodies, and these update running statistics. */
static bool keeps_buffers(const Graph *g)
{
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    const Node *n = &g->nodes.at[i];
    bool once = op_has(n, T_assigns) && attr_int(n, "once");
    if (op_has(n, T_running) && !once && g->blocks.at[n->block].accumulate > 1) return true;
  }
  return false;
}

/* Returns the end of the last optimizer that keeps moment k + 1. */
static int64_t moment_elements(const Graph *g, uint32_t k)
{
  int64_t end = 0;
  for (uint32_t i = 0; i < g->optimizers.n; i++) {
    const Optimizer *o = &g->optimizers.at[i];
    if (!(optimizer_moments(o) >> k & 1)) continue;
    for (uint32_t j = 0; j < o->groups.n; j++)
      end = most(end, o->groups.at[j].moment + o->groups.at[j].slice);
  }
  return end;
}

/* Computes the bytes of the spaces of parameters. Copies have the offsets of MASTER, in elements of
 * their type. Averages end with the last parameter that an optimizer trains; GRAD and the moments
 * end with the last share. */
static void param_spaces(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  int64_t f32 = ir_dtype_size(c, AMPC_F32), elements = 0, trained = 0, owned = 0;
  int64_t align = param_align(g);
  bool ema = false;
  uint32_t copies = 0;
  for (uint32_t i = 0; i < share_params(g); i++) { /* with the state of a decoder */
    const ampc_param *q = &p->params[i];
    int64_t end = q->offset + ampc_round_up(param_room(c, &g->params.at[i]), align);
    int64_t bytes = param_bytes(c, &g->params.at[i]);
    int64_t *space = &p->space_bytes[param_space(&g->params.at[i])];
    if (q->buffer)
      *space = most(*space, q->offset + ampc_round_up(bytes, AMPC_BUFFER_ALIGN));
    else
      elements = most(elements, end);
    if (q->optimizer >= 0) trained = most(trained, end);
    copies |= g->params.at[i].copies;
  }
  for (uint32_t i = 0; i < p->n_optimizers; i++) {
    owned = most(owned, p->optimizers[i].first + p->optimizers[i].count);
    if (g->members > 1) trained = most(trained, owned), elements = most(elements, owned);
    ema |= p->optimizers[i].uses_ema;
  }
  p->space_bytes[AMPC_MASTER] = elements * ir_dtype_size(c, g->weights);
  if (g->rounds == ROUND_kahan) p->space_bytes[AMPC_RESIDUE] = trained * ampc_dtype_size(AMPC_BF16);
  for (DType d = 0; d < AMPC_DTYPE_COUNT; d++)
    if (copies >> d & 1) p->space_bytes[ampc_type_of(d)->copies] = elements * ampc_dtype_size(d);
  p->space_bytes[AMPC_GRAD] = owned * f32;
  for (uint32_t k = 0; k < MAX_MOMENTS; k++) {
    int64_t moments = moment_elements(g, k);
    p->space_bytes[AMPC_MOMENT1 + k] = moments * ir_dtype_size(c, g->moment_type);
    if (g->moment_type == AMPC_U8)
      p->space_bytes[AMPC_SCALE1 + k] = moments / AMPC_CODE_BLOCK * f32;
  }
  p->space_bytes[AMPC_EMA] = ema ? trained * f32 : 0;
  if (keeps_buffers(g)) p->space_bytes[AMPC_KEPT] = p->space_bytes[AMPC_BUFFER];
}

/* Computes the bytes of the other spaces. Blocks run one at a time and share WORK and INPUT: each
 * is as large as the block that needs most. */
static void plan_spaces(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  param_spaces(c, p);
  p->space_bytes[AMPC_STATE] = ampc_state_setting(
      p->n_optimizers, ampc_metric_slots(p->metrics, p->n_metrics), p->n_settings);
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    const BlockInfo *info = &g->blocks.at[b];
    p->space_bytes[AMPC_WORK] = most(p->space_bytes[AMPC_WORK], info->work_bytes);
    for (uint32_t i = 0; i < info->n_sources; i++) {
      const ampc_source *s = &g->sources.at[info->first_source + i];
      int64_t bytes = (info->batch > 0 ? info->batch : 1) * ir_dtype_size(c, s->dtype) *
                      dims_product(s->dim, s->rank);
      p->space_bytes[AMPC_INPUT] = most(p->space_bytes[AMPC_INPUT], s->offset + bytes);
    }
  }
}

static void hash_bytes(uint64_t *h, const void *data, size_t n) /* FNV-1a, 64 bits */
{
  for (size_t i = 0; i < n; i++) *h = (*h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
}

/* Returns a hash of what a checkpoint and the program must have in common: names, shapes and types
 * of parameters, their optimizers, and the shares. */
static uint64_t model_hash(const ampc_program *p)
{
  uint64_t h = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    hash_bytes(&h, q->path, strlen(q->path) + 1);
    hash_bytes(&h, q->dim, q->rank * sizeof *q->dim);
    hash_bytes(&h, &q->dtype, sizeof q->dtype);
    hash_bytes(&h, &q->optimizer, sizeof q->optimizer);
  }
  for (uint32_t i = 0; i < p->n_shares; i++) {
    hash_bytes(&h, p->shares[i].path, strlen(p->shares[i].path) + 1);
    hash_bytes(&h, &p->shares[i].optimizer, sizeof p->shares[i].optimizer);
  }
  for (uint32_t i = 0; i < p->n_optimizers; i++)
    hash_bytes(&h, p->optimizers[i].kind, strlen(p->optimizers[i].kind) + 1);
  return h;
}

/* Adds text from the command line as JSON. Bytes that are not UTF-8 become the text \xNN. */
static void text_add_json(Text *t, const char *s)
{
  text_puts(t, "\"");
  for (size_t n; *s; s += n) {
    char escape[AMPC_ESCAPE_ROOM];
    n = ampc_character(s, strlen(s), escape);
    if ((unsigned char)*s < 0x20)
      text_printf(t, "\\u%04x", (unsigned)*s);
    else if (n == 1 && (unsigned char)*s >= 0x80)
      text_printf(t, "\\%s", escape);
    else
      text_printf(t, "%s%.*s", *s == '"' || *s == '\\' ? "\\" : "", (int)n, s);
  }
  text_puts(t, "\"");
}

static void json_assignments(Text *t, const char *key, const Assignment *a, uint32_t n)
{
  text_printf(t, ",\"%s\":{", key);
  for (uint32_t i = 0; i < n; i++) {
    if (i) text_puts(t, ",");
    text_add_json(t, a[i].key);
    text_puts(t, ":");
    text_add_json(t, a[i].value);
  }
  text_puts(t, "}");
}

/* Returns the JSON about the run that a checkpoint contains. */
static const char *config_text(Compile *c, const ampc_program *p)
{
  Text t = text_new(c->arena);
  text_puts(&t, "{\"job\":");
  text_add_json(&t, p->source);
  text_puts(&t, ",\"precision\":");
  text_add_json(&t, p->precision);
  json_assignments(&t, "const", c->options.consts, c->options.n_consts);
  json_assignments(&t, "set", c->options.settings, c->options.n_settings);
  text_puts(&t, "}");
  return t.at;
}

bool pass_plan(Compile *c)
{
  Graph *g = c->graph;
  ampc_program *p = arena_new(c->arena, ampc_program);
  p->name = job_name(c);
  p->source = arena_shown(c->arena, file_name(c->options.input), "");
  p->target = c->options.target;
  p->precision = g->precision ? g->precision : "f32";
  p->seed = g->seed;
  p->scaler = g->scaler;
  p->real64 = c->options.real64;
  p->own_products = c->options.no_onednn;
  p->weights = g->weights;
  p->adapter = g->adapter;
  p->moments = g->moment_type;
  p->members = g->members > 1 ? g->members : 0;
  p->ranks = c->options.ranks;
  p->sources = g->sources.at;
  p->n_sources = g->sources.n;
  plan_params(c, p);
  plan_optimizers(c, p);
  plan_kernels(c, p);
  const uint32_t *block_index = plan_blocks(c, p);
  plan_settings(c, p, block_index);
  plan_outputs(c, p, block_index);
  plan_spaces(c, p);
  plan_slices(c, p);
  p->model_hash = model_hash(p);
  p->config = config_text(c, p);
  p->classes = c->graph->classes && *c->graph->classes ? c->graph->classes : NULL;
  p->columns = c->graph->columns;
  c->program = p;
  g->facts |= IR_PLANNED;
  return true;
}
