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

/* ---- predictions ---- */

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
static void set_rates(const Measured *m, CommandRow *row)
{
  Prediction p = predict_command(m->in->c, m->gpu, row->group, NULL);
  Facts *f = &row->facts;
  f->predicted_us = p.cost.us + p.launch_us;
  f->memory_us = memory_us(m, f->read + f->written);
  f->arithmetic_us = p.count.flops < 0 ? 0 : (double)p.count.flops / (1e3 * peak_of(m->gpu, &p));
}

/* ---- blocks and their rows ---- */

/* Returns the block of the graph that a variant was made from. */
static uint16_t graph_block(const Graph *g, uint32_t block, uint32_t variant)
{
  uint16_t i = 0;
  while (g->blocks.at[i].in_program != block || g->blocks.at[i].variant != variant) i++;
  return i;
}

/* Commands without a row of their own: the beginning of a loop, waits for members, and the copy
 * before an exchange, which has the label of the exchange. */
static bool has_row(const ampc_command *k, const ampc_command *next)
{
  bool waits = k->kind == AMPC_EXCHANGE && k->as.exchange.desc.kind == AMPC_JOIN;
  bool copies = next && next->label && k->label && strcmp(k->label, next->label) == 0;
  return k->kind != AMPC_REPEAT && !waits && !copies;
}

/* Finds the rows of a variant's bound commands. These and the rows of its block in the inspection
 * are in the same order. */
static void find_rows(const Inspection *in, const ampc_runtime *rt, uint32_t key, CommandRow **out)
{
  uint16_t block = graph_block(in->c->graph, key / AMPC_MAX_VARIANTS, key % AMPC_MAX_VARIANTS);
  CommandRow *row = in->rows.at;
  const uint32_t end = rt->first_bound[key + 1];
  for (uint32_t i = rt->first_bound[key]; i < end; i++) {
    if (!has_row(rt->bound[i].command, i + 1 < end ? rt->bound[i + 1].command : NULL)) continue;
    while (row->block != block) row++;
    if (strcmp(row->facts.name, rt->bound[i].command->label) != 0)
      ir_bug(in->c, "profile", in->c->graph->groups.at[row->group].nodes[0],
             "commands are in another order than rows");
    out[i] = row++;
  }
}

static CommandRow **rows_of_bound(const Inspection *in, const ampc_runtime *rt)
{
  CommandRow **out = arena_array(in->c->arena, CommandRow *, rt->n_bound + 1);
  const ampc_program *p = rt->program;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) find_rows(in, rt, step_key(b, v), out);
  return out;
}

const char *profile_layer(const CommandRow *row)
{
  return row->facts.layer ? row->facts.layer : "(no layer)";
}

void profile_name_ranges(Profile *p, const Inspection *in, const ampc_runtime *rt)
{
  if (!(p->nvtx = nvtx_open())) return;
  CommandRow **rows = rows_of_bound(in, rt);
  RangeName *names = arena_array(in->c->arena, RangeName, rt->n_bound + 1);
  for (uint32_t i = 0; i < rt->n_bound; i++)
    if (rows[i])
      names[i] = (RangeName){profile_layer(rows[i]),
                             arena_printf(in->c->arena, "%s, line %s", rows[i]->facts.name,
                                          rows[i]->facts.where ? rows[i]->facts.where : "-")};
  p->names = names;
}

static void add_block(Measured *m, const ampc_runtime *rt, CommandRow **rows, uint32_t key,
                      int64_t runs)
{
  ProfileBlock *b = &m->blocks[m->n_blocks++];
  *b = (ProfileBlock){
      .block = graph_block(m->in->c->graph, key / AMPC_MAX_VARIANTS, key % AMPC_MAX_VARIANTS),
      .first = m->n_blocks > 1 ? b[-1].first + b[-1].n : 0,
      .runs = runs};
  for (uint32_t i = rt->first_bound[key]; i < rt->first_bound[key + 1]; i++) {
    if (!rows[i]) continue;
    ProfileRow *r = m->row_of[i] = &m->rows[b->first + b->n++];
    *r = (ProfileRow){.row = rows[i], .least = HUGE_VAL};
    if (m->threads) r->busy = arena_array(m->in->c->arena, double, m->threads);
    if (m->gpu) set_rates(m, rows[i]);
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
  CommandRow **rows = rows_of_bound(m->in, rt);
  for (uint32_t key = 0; key < n_keys; key++)
    if (runs[key]) add_block(m, rt, rows, key, runs[key]);
}

/* Drops the spans of commands without a row. */
static void drop_unnamed(Measured *m)
{
  TimeSpans *all = &m->profile->commands;
  size_t n = 0;
  for (size_t i = 0; i < all->n; i++)
    if (m->row_of[all->at[i].which]) all->at[n++] = all->at[i];
  all->n = n;
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

/* Turns the sums of a command into means of a step. */
static void finish_row(const Measured *m, const ProfileBlock *b, ProfileRow *r)
{
  double steps = (double)b->runs, busy = 0;
  Facts *f = &r->row->facts;
  if (m->threads) r->busy[0] = r->us - r->busy[0];
  for (uint32_t t = 0; t < m->threads; t++) busy += r->busy[t] /= steps;
  f->measured_us = r->us / steps;
  if (r->runs) f->least_us = r->least;
  f->runs = (double)r->runs / steps;
  if (m->threads) f->idle_us = fmax(0, f->measured_us - busy / m->threads);
}

static void finish(Measured *m)
{
  for (ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++)
    for (ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
      finish_row(m, b, r);
      b->us += r->row->facts.measured_us;
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
      Facts *f = &r->row->facts;
      beaten |= fmax(f->memory_us, f->arithmetic_us) > fastest;
      if (lower) f->memory_us = fmin(f->memory_us, fastest);
      if (lower) f->arithmetic_us = fmin(f->arithmetic_us, fastest);
    }
  return beaten;
}

/* The rates of a processor are measured, perhaps while other programs run. If a command was faster
 * than its limit, they are measured again. A limit that is beaten then, too, is lowered: operands
 * may still be in a cache. */
static void check_rates(Measured *m)
{
  enum { TRIES = 3 };
  uint32_t n = m->blocks[m->n_blocks - 1].first + m->blocks[m->n_blocks - 1].n;
  for (int i = 0; i < TRIES && is_beaten(m, false); i++) {
    m->gpu = cpu_measure_again(m->in->c->arena, m->gpu);
    for (ProfileRow *r = m->rows; r < m->rows + n; r++) set_rates(m, r->row);
  }
  is_beaten(m, true);
}

static void set_limits(const Measured *m)
{
  for (const ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++)
    for (ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++) {
      Facts *f = &r->row->facts;
      if (f->memory_us < 0) continue; /* a GPU whose rates are unknown */
      f->limit_us = fmax(f->memory_us, f->arithmetic_us);
      f->limited_by = f->memory_us < f->arithmetic_us ? "FLOPs" : "memory";
    }
}

void profile_sum(Measured *m, const ampc_runtime *rt)
{
  m->threads = m->profile->threads;
  add_blocks(m, rt);
  drop_unnamed(m);
  sum_host(m);
  sum_commands(m);
  finish(m);
  if (m->gpu && m->gpu->cpu && m->n_blocks) check_rates(m);
  set_limits(m);
}
