/* Sums the spans of a profile by command, and the commands by kind, layer and line.
 *
 * Note [busy threads]
 * All threads of the pool read the same clock. A worker's share of a command lies within the span
 * of the command, because the training loop's thread begins a command before it wakes the workers,
 * and ends it after they have finished. So a worker's span belongs to the command whose span
 * contains it. A worker computes only in its spans. The training loop's thread computes except when
 * it waits for the workers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cost/cpu.h"
#include "compiler/cost/memory_report.h"
#include "profile.h"

/* ---- what a command is ---- */

static const char *layer_of(const Graph *g, uint32_t group)
{
  const Node *n = group_main_node(g, group);
  const char *optimizer = n->layer ? NULL : optimizer_name_of(g, n);
  return n->layer ? layer_path(g, n->layer) : optimizer ? optimizer : "(no layer)";
}

static bool draws(const Graph *g, const Group *group)
{
  for (uint32_t i = 0; i < group->n; i++)
    if (op_draws(ir_node(g, group->nodes[i]))) return true;
  return false;
}

static const char *work_of(const Measured *m, const CommandRow *row, const Prediction *p)
{
  Arena *arena = m->in->c->arena;
  const Graph *g = m->in->c->graph;
  const char *frame = row->main_frame, *dot = strchr(frame, '.');
  if (row->kind == COMMAND_gemm) return "product";
  if (row->kind == COMMAND_conv) return "convolution";
  if (p->part == PART_tiles) return "attention";
  if (p->part == PART_casts) return "cast";
  if (p->part == PART_state && !group_main_node(g, row->group)->layer) return "optimizer";
  if (draws(g, &g->groups.at[row->group])) return "random";
  if (strcmp(frame, "map") == 0) return "elementwise";
  if (strcmp(frame, "own") == 0) return "own op";
  return dot ? arena_strndup(arena, frame, (size_t)(dot - frame)) : frame;
}

/* Returns GFLOP/s at the peak of the lanes or tensor cores that the command can use. */
static double peak_of(const Gpu *g, const Prediction *p)
{
  if (g->cpu) return g->cpu->peak * (p->load.type == AMPC_BF16 && p->product ? g->cpu->bf16 : 1);
  return 1e3 * gpu_peak(g, p->product ? &p->load : NULL);
}

static double memory_us(const Measured *m, double bytes)
{
  const Cpu *cpu = m->gpu->cpu;
  double spaces = (double)memory_of_spaces(m->in->c->program);
  return bytes / (1e3 * (cpu ? cpu_moves(cpu, fmax(bytes, spaces)) : m->gpu->dram));
}

/* Sets the times that follow from the rates of the machine. */
static void set_rates(const Measured *m, const Prediction *p, ProfileRow *out)
{
  out->predicted = p->us + p->launch_us;
  out->memory = memory_us(m, (double)(p->count.read + p->count.written));
  out->arithmetic = p->count.flops < 0 ? 0 : (double)p->count.flops / (1e3 * peak_of(m->gpu, p));
}

static void describe(const Measured *m, const CommandRow *row, ProfileRow *out)
{
  Compile *c = m->in->c;
  const Gpu *gpu = m->gpu ? m->gpu : gpu_find("h200"); /* the kind of a command needs any GPU */
  Prediction p = predict_command(c, gpu, row->group, NULL);
  *out = (ProfileRow){.row = row,
                      .layer = layer_of(c->graph, row->group),
                      .work = work_of(m, row, &p),
                      .least = HUGE_VAL,
                      .predicted = -1,
                      .memory = -1,
                      .arithmetic = -1};
  if (m->threads) out->busy = arena_array(c->arena, double, m->threads);
  if (m->gpu) set_rates(m, &p, out);
}

/* ---- blocks and their rows ---- */

/* Returns the block of the graph that a variant was made from. */
static uint16_t graph_block(const Graph *g, uint32_t block, uint32_t variant)
{
  uint16_t i = 0;
  while (g->blocks.at[i].in_program != block || g->blocks.at[i].variant != variant) i++;
  return i;
}

/* Finds the rows of a variant's bound commands. Without loops, these and the rows of its block in
 * the inspection are in the same order. */
static void find_rows(const Inspection *in, const ampc_runtime *rt, uint32_t key,
                      const CommandRow **out)
{
  uint16_t block = graph_block(in->c->graph, key / AMPC_MAX_VARIANTS, key % AMPC_MAX_VARIANTS);
  const CommandRow *row = in->rows.at;
  for (uint32_t i = rt->first_bound[key]; i < rt->first_bound[key + 1]; i++) {
    if (rt->bound[i].command->kind == AMPC_REPEAT) continue;
    while (row->block != block) row++;
    if (strcmp(row->name, rt->bound[i].command->label) != 0)
      ir_bug(in->c, "profile", in->c->graph->groups.at[row->group].nodes[0],
             "commands are in another order than rows");
    out[i] = row++;
  }
}

static const CommandRow **rows_of_bound(const Inspection *in, const ampc_runtime *rt)
{
  const CommandRow **out = arena_array(in->c->arena, const CommandRow *, rt->n_bound + 1);
  const ampc_program *p = rt->program;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) find_rows(in, rt, step_key(b, v), out);
  return out;
}

void profile_name_ranges(Profile *p, const Inspection *in, const ampc_runtime *rt)
{
  if (!(p->nvtx = nvtx_open())) return;
  const CommandRow **rows = rows_of_bound(in, rt);
  RangeName *names = arena_array(in->c->arena, RangeName, rt->n_bound + 1);
  for (uint32_t i = 0; i < rt->n_bound; i++)
    if (rows[i])
      names[i] = (RangeName){layer_of(in->c->graph, rows[i]->group),
                             arena_printf(in->c->arena, "%s, line %s", rows[i]->name,
                                          inspect_line_number(in, rows[i]))};
  p->names = names;
}

static void add_block(Measured *m, const ampc_runtime *rt, const CommandRow **rows, uint32_t key,
                      int64_t runs)
{
  ProfileBlock *b = &m->blocks[m->n_blocks++];
  *b = (ProfileBlock){
      .block = graph_block(m->in->c->graph, key / AMPC_MAX_VARIANTS, key % AMPC_MAX_VARIANTS),
      .first = m->n_blocks > 1 ? b[-1].first + b[-1].n : 0,
      .runs = runs};
  for (uint32_t i = rt->first_bound[key]; i < rt->first_bound[key + 1]; i++) {
    if (!rows[i]) continue;
    m->row_of[i] = &m->rows[b->first + b->n++];
    describe(m, rows[i], m->row_of[i]);
  }
}

static void add_blocks(Measured *m, const ampc_runtime *rt)
{
  Arena *arena = m->in->c->arena;
  uint32_t n_keys = step_key(rt->program->n_blocks, 0);
  int64_t *runs = arena_array(arena, int64_t, n_keys + 1);
  const TimeSpans *host = &m->profile->host;
  for (size_t i = 0; i < host->n; i++)
    if (host->at[i].kind == TIME_step) runs[host->at[i].which]++;
  m->blocks = arena_array(arena, ProfileBlock, n_keys + 1);
  m->rows = arena_array(arena, ProfileRow, rt->n_bound + 1);
  m->row_of = arena_array(arena, ProfileRow *, rt->n_bound + 1);
  const CommandRow **rows = rows_of_bound(m->in, rt);
  for (uint32_t key = 0; key < n_keys; key++)
    if (runs[key]) add_block(m, rt, rows, key, runs[key]);
}

/* ---- times ---- */

static double us_of(const TimeSpan *s)
{
  return 1e6 * (s->end - s->begin);
}

static ProfileBlock *block_of(const Measured *m, uint32_t key)
{
  uint16_t block = graph_block(m->in->c->graph, key / AMPC_MAX_VARIANTS, key % AMPC_MAX_VARIANTS);
  ProfileBlock *b = m->blocks;
  while (b->block != block) b++;
  return b;
}

/* Adds up the host's spans. Loads, uploads and waits end before the step of their batch does. */
static void sum_host(Measured *m)
{
  const TimeSpans *host = &m->profile->host;
  double load = 0, upload = 0, wait = 0;
  for (size_t i = 0; i < host->n; i++) {
    const TimeSpan *s = &host->at[i];
    if (s->kind == TIME_load) load += us_of(s);
    if (s->kind == TIME_upload) upload += us_of(s);
    if (s->kind == TIME_wait) wait += us_of(s);
    if (s->kind != TIME_step) continue;
    ProfileBlock *b = block_of(m, s->which);
    b->step_us += us_of(s);
    b->load_us += load;
    b->upload_us += upload;
    b->wait_us += wait;
    load = upload = wait = 0;
  }
  for (uint32_t i = 0; i < m->n_blocks; i++) {
    ProfileBlock *b = &m->blocks[i];
    b->step_us /= (double)b->runs;
    b->load_us /= (double)b->runs;
    b->upload_us /= (double)b->runs;
    b->wait_us /= (double)b->runs;
  }
}

/* Adds the spans of a thread to the commands in which they are: Note [busy threads]. */
static void sum_thread(Measured *m, uint32_t thread)
{
  const TimeSpans *all = &m->profile->commands, *own = &m->profile->thread[thread];
  for (size_t i = 0, k = 0; i < own->n; i++) {
    while (k < all->n && all->at[k].end < own->at[i].end) k++;
    if (k < all->n) m->row_of[all->at[k].which]->busy[thread] += us_of(&own->at[i]);
  }
}

static void sum_commands(Measured *m)
{
  const TimeSpans *all = &m->profile->commands;
  for (size_t i = 0; i < all->n; i++) {
    ProfileRow *r = m->row_of[all->at[i].which];
    double us = us_of(&all->at[i]);
    r->runs++;
    r->us += us;
    if (us < r->least) r->least = us;
  }
  for (uint32_t i = 0; i < m->threads; i++) sum_thread(m, i);
}

/* Turns sums into means of a run. */
static void finish(Measured *m)
{
  for (uint32_t i = 0; i < m->n_blocks; i++) {
    ProfileBlock *b = &m->blocks[i];
    for (ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
      if (m->threads) r->busy[0] = r->us - r->busy[0];
      for (uint32_t t = 0; t < m->threads; t++) r->busy[t] /= (double)b->runs;
      r->us /= (double)b->runs;
      b->us += r->us;
    }
  }
}

/* ---- rates of a processor that commands beat ---- */

/* Returns whether a command was faster than its limit. `lower`: lowers such limits. */
static bool is_beaten(Measured *m, bool lower)
{
  bool beaten = false;
  for (const ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++)
    for (ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
      double fastest = r->least * (double)(r->runs / b->runs); /* the runs of one step */
      beaten |= profile_limit(r) > fastest;
      if (lower) r->memory = fmin(r->memory, fastest), r->arithmetic = fmin(r->arithmetic, fastest);
    }
  return beaten;
}

/* The rates of a processor are measured, perhaps while other programs run. If a command was faster
 * than its limit, they are measured again. A limit that is beaten then, too, is lowered: operands
 * may still be in a cache. */
static void check_rates(Measured *m)
{
  enum { TRIES = 3 };
  for (int i = 0; i < TRIES && is_beaten(m, false); i++) {
    m->gpu = cpu_measure_again(m->in->c->arena, m->gpu);
    for (const ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++)
      for (ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
        Prediction p = predict_command(m->in->c, m->gpu, r->row->group, NULL);
        set_rates(m, &p, r);
      }
  }
  is_beaten(m, true);
}

void profile_sum(Measured *m, const ampc_runtime *rt)
{
  m->threads = m->profile->threads;
  add_blocks(m, rt);
  sum_host(m);
  sum_commands(m);
  finish(m);
  if (m->gpu && m->gpu->cpu) check_rates(m);
}

/* ---- sums over commands ---- */

const char *const sum_names[] = {[BY_WORK] = "work", [BY_LAYER] = "layer", [BY_LINE] = "line"};

double profile_idle(const Measured *m, const ProfileRow *r)
{
  double busy = 0;
  for (uint32_t t = 0; t < m->threads; t++) busy += r->busy[t];
  return m->threads ? r->us - busy / m->threads : -1;
}

double profile_limit(const ProfileRow *r)
{
  return fmax(r->memory, r->arithmetic);
}

static const char *name_by(const Measured *m, const ProfileRow *r, SumBy by)
{
  return by == BY_WORK ? r->work : by == BY_LAYER ? r->layer : inspect_line_number(m->in, r->row);
}

static int by_time(const void *a, const void *b)
{
  double x = ((const ProfileSum *)a)->us, y = ((const ProfileSum *)b)->us;
  return (x < y) - (x > y);
}

ProfileSums profile_sums(const Measured *m, const ProfileBlock *b, SumBy by)
{
  ProfileSums sums = {0};
  for (const ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
    const char *name = name_by(m, r, by);
    uint32_t i = 0;
    while (i < sums.n && strcmp(sums.at[i].name, name) != 0) i++;
    if (i == sums.n)
      vec_push(m->in->c->arena, &sums, ((ProfileSum){.name = name, .first = r->row}));
    ProfileSum *s = &sums.at[i];
    s->commands++;
    s->us += r->us;
    s->predicted += r->predicted;
    s->memory += r->memory;
    s->arithmetic += r->arithmetic;
    s->limit += profile_limit(r);
    s->idle += profile_idle(m, r);
  }
  if (sums.n) qsort(sums.at, sums.n, sizeof *sums.at, by_time);
  return sums;
}
