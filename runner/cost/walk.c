/* Executes blocks of a kernel: see walk.h. */
#include "walk.h"
#include <math.h>
#include <string.h>
#include "walk_memory.h"

enum { LANES = 32, DONE = UINT32_MAX };

/* Note [cycles of a warp]
 * A GPU issues machine instructions in order, and ptxas orders each basic block so that loads begin
 * early. The model is therefore: within a basic block, an instruction issues as soon as its
 * operands are ready; a load also waits for stores that it may alias. A basic block ends when its
 * last instruction has issued. It takes at least one cycle per slot. */
typedef struct Clock {
  int64_t start, end; /* cycles when the basic block starts, and ends */
  int64_t slots;      /* slots of the basic block so far */
  int64_t stored[2];  /* cycle of the basic block's last store to global, shared */
  int64_t *ready;     /* for each register: the cycle when its value is ready */
} Clock;

typedef struct Warp {
  uint64_t (*reg)[LANES];
  uint32_t pc[LANES]; /* DONE: the lane has finished */
  Clock clock;
  uint64_t steps; /* instructions so far */
  bool waits;     /* it has executed a barrier, and now the other warps run */
} Warp;

typedef struct Walk {
  const PtxKernel *k;
  const WalkLaunch *launch;
  WalkCounts *counts, *all, once; /* once: counts of the code that only the last block runs */
  WalkMemory memory;
  Arena *arena;
  Warp *warps, *now; /* of the block; the one that runs */
  uint32_t block, warp;
  uint64_t steps; /* instructions of all warps so far */
  double longest; /* cycles of the block's longest warp */
  const char *why;
} Walk;

/* ---- values ---- */

static uint64_t special(const Walk *w, uint32_t which, uint32_t lane)
{
  switch ((PtxSpecial)which) {
  case SPECIAL_tid:
    return w->warp * LANES + lane;
  case SPECIAL_ntid:
    return w->launch->block;
  case SPECIAL_ctaid:
    return w->block;
  case SPECIAL_nctaid:
    return w->launch->grid;
  case SPECIAL_lane:
    return lane;
  case SPECIAL_warp:
    return w->warp;
  case SPECIAL_zero:
    return 0;
  case SPECIAL_one:
    return 1;
  }
  return 0;
}

static uint64_t operand(const Walk *w, const PtxOperand *o, uint32_t lane)
{
  uint64_t v = o->kind == OPERAND_register  ? w->now->reg[o->at][lane]
               : o->kind == OPERAND_special ? special(w, o->at, lane)
                                            : o->bits;
  return o->negated ? !v : v;
}

/* Returns the operand's value in each lane: the register itself, or `room` with the values. */
static const uint64_t *lanes_of(const Walk *w, const PtxOperand *o, uint64_t room[LANES])
{
  if (o->kind == OPERAND_register && !o->negated) return w->now->reg[o->at];
  bool varies = o->kind == OPERAND_register || o->kind == OPERAND_special;
  uint64_t first = operand(w, o, 0);
  for (uint32_t lane = 0; lane < LANES; lane++) room[lane] = varies ? operand(w, o, lane) : first;
  return room;
}

/* Returns the lanes of `mask` for which the guard holds. */
static uint32_t guarded(const Walk *w, const PtxInstruction *i, uint32_t mask)
{
  uint32_t out = 0;
  if (i->guard.kind == OPERAND_none) return mask;
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1 && operand(w, &i->guard, lane) & 1) out |= 1u << lane;
  return out;
}

/* ---- time ---- */

static void begin_block(Clock *c)
{
  c->start = c->end;
  c->slots = 0;
  c->stored[0] = c->stored[1] = c->start;
}

static void wait_for(const Clock *c, const PtxOperand *o, int64_t *at)
{
  if (o->kind == OPERAND_register && c->ready[o->at] > *at) *at = c->ready[o->at];
}

static void tick(Clock *c, const PtxInstruction *i, uint32_t latency)
{
  int64_t at = c->start;
  bool shared = i->space == SPACE_shared;
  wait_for(c, &i->guard, &at);
  for (uint32_t k = 0; k < i->n_in; k++) wait_for(c, &i->in[k], &at);
  bool loads = (i->op == PTX_OP_ld && !i->constant) || i->op == PTX_OP_ldmatrix;
  if (loads && c->stored[shared] > at) at = c->stored[shared];
  if (i->op == PTX_OP_st) c->stored[shared] = at;
  for (uint32_t k = 0; k < i->n_to; k++) c->ready[i->to[k].at] = at + latency;
  c->slots += i->slots;
  if (c->end < c->start + c->slots) c->end = c->start + c->slots;
  if (c->end < at + i->slots) c->end = at + i->slots;
  if (ptx_form(i->op) == FORM_barrier) c->end += latency;
}

/* ---- instructions ---- */

/* Splits or joins a register: `mov.b32 {low, high}, r` and `mov.b32 r, {low, high}`. */
static void move_lane(Walk *w, const PtxInstruction *i, uint32_t lane)
{
  uint32_t n = i->n_to > 1 ? i->n_to : i->n_in, bits = 8 * ptx_type_bytes(i->type) / n;
  uint64_t mask = (1ull << bits) - 1, all = i->n_to > 1 ? operand(w, &i->in[0], lane) : 0;
  for (uint32_t k = 0; k < n; k++) {
    if (i->n_to > 1)
      w->now->reg[i->to[k].at][lane] = all >> bits * k & mask;
    else
      all |= (operand(w, &i->in[k], lane) & mask) << bits * k;
  }
  if (i->n_to == 1) w->now->reg[i->to[0].at][lane] = all;
}

static void move_parts(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) move_lane(w, i, lane);
}

/* Exchanges values: shfl.sync.bfly gives each lane that of lane ^ in[1]. A lane that does not take
 * part has none to give. */
static void shuffle(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  uint64_t from[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) from[lane] = operand(w, &i->in[0], lane);
  for (uint32_t lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    uint32_t other = (lane ^ (uint32_t)operand(w, &i->in[1], lane)) % LANES;
    w->now->reg[i->to[0].at][lane] = from[mask >> other & 1 ? other : lane];
    if (i->n_to > 1) w->now->reg[i->to[1].at][lane] = mask >> other & 1;
  }
}

/* Computes the value of each lane. Neighbours often have equal operands: then the result is copied,
 * which takes a fraction of the time. */
static bool compute(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  uint64_t room[PTX_VECTOR][LANES], in[PTX_VECTOR] = {0}, value = 0;
  const uint64_t *lanes[PTX_VECTOR];
  bool any = false;
  for (uint32_t k = 0; k < i->n_in; k++) lanes[k] = lanes_of(w, &i->in[k], room[k]);
  for (uint32_t lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    bool same = any;
    for (uint32_t k = 0; k < i->n_in; k++) {
      uint64_t before = in[k];
      in[k] = lanes[k][lane];
      same &= in[k] == before;
    }
    if (!same && !walk_value(i, in, &value)) {
      w->why = arena_printf(w->arena, "not known how to compute: %s", i->name);
      return false;
    }
    any = true;
    w->now->reg[i->to[0].at][lane] = value;
    if (i->n_to > 1) w->now->reg[i->to[1].at][lane] = !value;
  }
  return true;
}

/* Votes over the active lanes. */
static void vote(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  uint32_t yes = 0;
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1 && i->op == PTX_OP_vote && operand(w, &i->in[0], lane) & 1)
      yes |= 1u << lane;
  uint64_t r = i->op == PTX_OP_activemask ? mask
               : i->mode == 'b'           ? yes
               : i->mode == 'a'           ? yes == mask
                                          : yes != 0;
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) w->now->reg[i->to[0].at][lane] = r;
}

static void load_parameter(Walk *w, const PtxInstruction *i)
{
  uint64_t n = i->in[0].bits;
  uint64_t at = walk_argument_at(w->launch, (uint32_t)n);
  for (uint32_t lane = 0; lane < LANES; lane++) w->now->reg[i->to[0].at][lane] = at;
}

static uint64_t loaded(const Walk *w, const PtxInstruction *i, uint64_t at, uint32_t k)
{
  if (i->op == PTX_OP_atom) return w->block;
  return walk_memory_value(&w->memory, w->launch, i, at + k * ptx_type_bytes(i->type));
}

/* Executes a memory access. Returns the cycles until a load has its value. */
static uint32_t touch(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  WalkAccess a = {.instruction = i, .bytes = ptx_type_bytes(i->type)};
  uint32_t parts = i->op == PTX_OP_ld ? i->n_to : i->op == PTX_OP_st ? i->n_in - 1u : 1;
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) a.at[a.n++] = operand(w, &i->in[0], lane) + (uint64_t)i->offset;
  a.bytes *= parts;
  uint32_t latency = walk_memory(&w->memory, w->launch, &a, w->counts);
  bool stored_now = w->counts == &w->once; /* this launch has stored it: in L2 */
  if (stored_now && latency > w->launch->latency_l2) latency = w->launch->latency_l2;
  for (uint32_t lane = 0, n = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    for (uint32_t k = 0; k < i->n_to; k++)
      w->now->reg[i->to[k].at][lane] = loaded(w, i, a.at[n], k);
    for (uint32_t k = 1; i->op == PTX_OP_st && k < i->n_in; k++)
      walk_memory_store(&w->memory, i, a.at[n] + (k - 1) * ptx_type_bytes(i->type),
                        operand(w, &i->in[k], lane));
    n++;
  }
  return latency;
}

/* Executes an instruction of tensor cores. ldmatrix accesses eight rows of 16 bytes at a time. It
 * loads zeros, and a product of zeros is added: no index depends on these values. */
static uint32_t matrix(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  WalkAccess a = {.instruction = i, .bytes = 16};
  uint32_t latency = i->latency;
  bool loads = i->op == PTX_OP_ldmatrix;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    if (!(mask >> lane & 1)) continue;
    if (loads) a.at[a.n++] = operand(w, &i->in[0], lane) + (uint64_t)i->offset;
    if (a.n == 8) latency = walk_memory(&w->memory, w->launch, &a, w->counts), a.n = 0;
    for (uint32_t k = 0; k < i->n_to; k++)
      w->now->reg[i->to[k].at][lane] = loads ? 0 : operand(w, &i->in[6 + k], lane);
  }
  return latency;
}

/* Executes an instruction that is not a branch. */
static bool execute(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  uint32_t latency = i->latency;
  switch (ptx_form(i->op)) {
  case FORM_memory:
    if (i->space == SPACE_param)
      load_parameter(w, i);
    else
      latency = touch(w, i, mask);
    break;
  case FORM_vote:
    vote(w, i, mask);
    break;
  case FORM_shuffle:
    shuffle(w, i, mask);
    break;
  case FORM_matrix:
    latency = matrix(w, i, mask);
    break;
  case FORM_barrier:
    w->now->waits = true;
    break;
  case FORM_value:
    if (i->op == PTX_OP_mov && i->n_to + i->n_in > 2)
      move_parts(w, i, mask);
    else if (!compute(w, i, mask))
      return false;
    break;
  default:
    break;
  }
  tick(&w->now->clock, i, latency);
  return true;
}

static void count(Walk *w, const PtxInstruction *i, uint32_t mask)
{
  bool alone = w->block + 1 == w->launch->grid && i > w->k->at + w->k->counts;
  WalkCounts *c = w->counts = alone ? &w->once : w->all;
  if (!i->slots) return;
  c->instructions += __builtin_popcount(mask);
  c->slots += i->slots;
  if (i->pipe != PIPE_lsu || i->op == PTX_OP_shfl) c->pipe[i->pipe] += i->slots;
}

/* ---- a warp ---- */

/* Returns the lanes with the lowest pc. *next: the second lowest pc. */
static uint32_t lowest(const Walk *w, uint32_t *pc, uint32_t *next)
{
  uint32_t mask = 0;
  *pc = *next = DONE;
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (w->now->pc[lane] < *pc) *pc = w->now->pc[lane];
  for (uint32_t lane = 0; lane < LANES && *pc != DONE; lane++) {
    if (w->now->pc[lane] == *pc)
      mask |= 1u << lane;
    else if (w->now->pc[lane] < *next)
      *next = w->now->pc[lane];
  }
  return mask;
}

static void put_lanes(Walk *w, uint32_t mask, uint32_t pc)
{
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (mask >> lane & 1) w->now->pc[lane] = pc;
}

/* Executes a branch that `takes` lanes take. False: lanes diverge, or the warp runs too long. */
static bool jump(Walk *w, const PtxInstruction *i, uint32_t mask, uint32_t takes, uint32_t *pc)
{
  uint32_t to = i->op == PTX_OP_bra ? i->target : DONE;
  tick(&w->now->clock, i, 0);
  put_lanes(w, takes, to);
  put_lanes(w, mask & ~takes, *pc + 1);
  *pc = takes ? to : *pc + 1;
  bool parted = takes && takes != mask;
  return !parted && !(i->op == PTX_OP_bra && w->steps > w->launch->endless);
}

/* Executes lanes with the same pc until they diverge, reach the pc of other lanes or a barrier. */
static bool run_together(Walk *w, uint32_t mask, uint32_t pc, uint32_t next)
{
  begin_block(&w->now->clock);
  while (pc < next && pc < w->k->n && !w->now->waits) {
    const PtxInstruction *i = &w->k->at[pc];
    uint32_t takes = guarded(w, i, mask);
    if (i->leads) begin_block(&w->now->clock);
    count(w, i, mask);
    w->steps++;
    if (ptx_form(i->op) == FORM_jump) {
      if (!jump(w, i, mask, takes, &pc)) return true;
      continue;
    }
    if (!execute(w, i, takes)) return false;
    pc++;
  }
  put_lanes(w, mask, pc < w->k->n ? pc : DONE);
  return true;
}

static void start_warp(Walk *w)
{
  Warp *now = w->now;
  memset(now->clock.ready, 0, w->k->n_registers * sizeof *now->clock.ready);
  now->clock.start = now->clock.end = 0;
  now->steps = 0;
  for (uint32_t lane = 0; lane < LANES; lane++)
    now->pc[lane] = w->warp * LANES + lane < w->launch->block ? 0 : (uint32_t)DONE;
}

/* Runs the warp to its next barrier or to its end. *ends: no lane is left. */
static bool run_warp(Walk *w, bool *ends)
{
  uint32_t pc, next, mask;
  Warp *now = w->now;
  uint64_t before = w->steps - now->steps;
  now->waits = false;
  while ((mask = lowest(w, &pc, &next)) && !now->waits) {
    if (!run_together(w, mask, pc, next)) return false;
    if (w->steps - before > w->launch->endless) {
      w->why = arena_printf(w->arena, "a warp does not end in %llu instructions",
                            (unsigned long long)w->launch->endless);
      return false;
    }
  }
  now->steps = w->steps - before;
  *ends = !mask;
  w->longest = fmax(w->longest, (double)now->clock.end);
  return true;
}

/* ---- a launch ---- */

static uint32_t warps_of(const WalkLaunch *launch)
{
  return (launch->block + LANES - 1) / LANES;
}

static void open_warps(Walk *w)
{
  uint32_t n = w->k->n_registers + 1;
  w->warps = arena_array(w->arena, Warp, warps_of(w->launch));
  for (uint32_t i = 0; i < warps_of(w->launch); i++) {
    w->warps[i].reg = arena_alloc(w->arena, n * sizeof *w->warps->reg, _Alignof(uint64_t));
    w->warps[i].clock.ready = arena_array(w->arena, int64_t, n);
  }
}

/* Runs all warps from barrier to barrier. */
static bool run_block(Walk *w, uint32_t block)
{
  w->block = block;
  w->longest = 0;
  walk_memory_clear(&w->memory);
  for (bool first = true, all_end = false; !all_end; first = false) {
    all_end = true;
    for (w->warp = 0; w->warp < warps_of(w->launch); w->warp++) {
      bool ends;
      w->now = &w->warps[w->warp];
      if (first) start_warp(w);
      if (!run_warp(w, &ends)) return false;
      all_end &= ends;
    }
  }
  w->all->longest = fmax(w->all->longest, w->longest);
  w->all->mean += w->longest;
  return true;
}

/* Scales the counts of the walked blocks to the whole grid, and adds the counts that only the last
 * block has. */
static void add_up(WalkCounts *c, double by, const WalkCounts *once)
{
  c->instructions = by * c->instructions + once->instructions;
  c->slots = by * c->slots + once->slots;
  c->sectors_read = by * c->sectors_read + once->sectors_read;
  c->sectors_written = by * c->sectors_written + once->sectors_written;
  c->sectors_once = by * c->sectors_once + once->sectors_once;
  for (int i = 0; i < PIPE_COUNT; i++) c->pipe[i] = by * c->pipe[i] + once->pipe[i];
}

/* Returns how many blocks to walk if the first took `steps` instructions: at least FEW, because
 * blocks of causal attention differ in length. */
static uint32_t blocks_of(const WalkLaunch *launch, uint64_t steps)
{
  enum { FEW = 8 };
  uint64_t n = launch->most / (steps ? steps : 1);
  if (n > launch->blocks) n = launch->blocks;
  if (n < FEW) n = FEW;
  return n < launch->grid ? (uint32_t)n : launch->grid;
}

/* Returns the i-th of n blocks: the first, the last, and one in each n-th of the grid. Their
 * distances have no period, as the lengths of blocks may have. */
static uint32_t block_at(const WalkLaunch *launch, uint32_t i, uint32_t n)
{
  const double golden = 0.6180339887498949;
  if (n == launch->grid) return i;
  if (i + 1 == n) return launch->grid - 1;
  return (uint32_t)((i + i * golden - floor(i * golden)) / n * launch->grid);
}

bool walk_kernel(Arena *arena, const PtxKernel *k, const WalkLaunch *launch, WalkCounts *out,
                 const char **why)
{
  Walk w = {.k = k, .launch = launch, .counts = out, .all = out, .arena = arena};
  *out = (WalkCounts){0};
  ArenaMark mark = arena_mark(arena);
  open_warps(&w);
  walk_memory_open(&w.memory, arena, k);
  if (k->n_params != launch->n_arguments) {
    *why = arena_printf(arena, "takes %u arguments, not %u", k->n_params, launch->n_arguments);
    return false;
  }
  bool good = run_block(&w, 0);
  uint32_t n = blocks_of(launch, w.steps);
  for (uint32_t i = 1; i < n && good; i++) good = run_block(&w, block_at(launch, i, n));
  *why = w.why;
  add_up(out, (double)launch->grid / n, &w.once);
  out->mean /= n;
  out->walked = (double)n / launch->grid;
  if (good) arena_release(arena, mark);
  return good;
}
