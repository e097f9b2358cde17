/* Executes warps: see warp.h. */
#include "warp.h"
#include "memory.h"
#include "runner/cost/ptx_parts.h"
#include "runner/cost/ptx_value.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 100000000 /* of a warp until it waits or ends */ };
static const uint64_t poison = 0xa5a5a5a5a5a5a5a5u; /* registers that were not written */

typedef struct Warp {
  uint32_t pc[PTX_LANES];
  uint32_t live; /* lanes that can execute */
  uint32_t held; /* of them, those that wait for other lanes of the warp */
} Warp;

static struct {
  const PtxImage *kernel;
  PtxRow *rows; /* of all warps */
  size_t room;
  char *shared;
  size_t shared_room;
  Warp warps[SIMT_MAX_BLOCK / PTX_LANES];
  unsigned long long executed;
} grid;

typedef struct Now { /* the running warp */
  const SimtLaunch *launch;
  Warp *w;
  PtxRow *rows;
  unsigned first; /* thread */
} Now;

unsigned long long ptx_executed(void)
{
  return grid.executed;
}

/* ---- operands ---- */

static const uint64_t *row_at(const Now *now, uint32_t row)
{
  return row & SHARED_ROW ? grid.kernel->shared_rows[row & ~SHARED_ROW] : now->rows[row];
}

static void put_row(PtxRow to, const uint64_t *from, uint32_t mask)
{
  if (mask == UINT32_MAX)
    memcpy(to, from, sizeof(PtxRow));
  else
    for (uint32_t m = mask; m; m &= m - 1) to[__builtin_ctz(m)] = from[__builtin_ctz(m)];
}

static uint32_t guarded(const Now *now, const PtxCode *i, uint32_t mask)
{
  if (!i->guarded) return mask;
  const uint64_t *p = row_at(now, i->guard);
  uint32_t yes = 0;
  for (unsigned lane = 0; lane < PTX_LANES; lane++) yes |= (uint32_t)(p[lane] & 1) << lane;
  return mask & (i->negated ? ~yes : yes);
}

/* ---- values ---- */

/* Splits or joins registers: `mov.b32 {low, high}, r` and `mov.b32 r, {low, high}`. */
static void move_parts(const Now *now, const PtxCode *i, uint32_t mask)
{
  uint32_t n = i->n_to > 1 ? i->n_to : i->n_in, bits = 8 * ptx_type_bytes((PtxType)i->type) / n;
  PtxRow part[PTX_PARTS] = {{0}};
  for (uint32_t k = 0; k < n; k++) {
    const uint64_t *in = row_at(now, i->in[i->n_in > 1 ? k : 0]);
    for (int lane = 0; lane < PTX_LANES; lane++)
      if (i->n_in > 1)
        part[0][lane] |= masked(in[lane], bits / 8) << bits * k;
      else
        part[k][lane] = masked(in[lane] >> bits * k, bits / 8);
  }
  for (uint32_t k = 0; k < i->n_to; k++) put_row(now->rows[i->to[k]], part[k], mask);
}

static void compute(const Now *now, const PtxCode *i, uint32_t mask)
{
  PtxRow out;
  const uint64_t *in[PTX_PARTS];
  if (i->op == PTX_OP_mov && i->n_to + i->n_in > 2) {
    move_parts(now, i, mask);
    return;
  }
  for (uint32_t k = 0; k < PTX_PARTS; k++) in[k] = row_at(now, i->in[k < i->n_in ? k : 0]);
  ptx_compute(i, in, out);
  put_row(now->rows[i->to[0]], out, mask);
}

/* ---- memory ---- */

static void fault_of_lane(const Now *now, uint32_t lane, const char *what)
{
  simt_fault(0, "block %u thread %u %s", simt_now.block, now->first + lane, what);
}

/* Returns where an access of `bytes` bytes finds its memory. NULL: it must not be made. */
static char *place_of(const Now *now, const PtxCode *i, uint32_t lane, uint32_t bytes)
{
  const PtxImage *k = grid.kernel;
  uint64_t at = row_at(now, i->in[0])[lane] + (uint64_t)i->offset;
  char *place = (char *)(uintptr_t)at;
  if (i->space == SPACE_const) {
    bool inside = at >= PTX_CONST_BASE && at - PTX_CONST_BASE + bytes <= k->n_constants;
    if (inside && at % bytes == 0) return (char *)(uintptr_t)(k->constants + (at - PTX_CONST_BASE));
    fault_of_lane(now, lane, "reads outside of constant memory, or between elements");
    return NULL;
  }
  if (i->space == SPACE_shared) {
    if (at + bytes > k->shared || at > k->shared)
      return fault_of_lane(now, lane, "accesses what is outside of shared memory"), NULL;
    place = now->launch->shared + at;
  }
  simt_become(now->first + lane);
  if (i->op == PTX_OP_atom) return place;
  memory_touch_parts(place, bytes, i->op == PTX_OP_st, i->n_to, i->dead);
  if (i->constant && !simt_failed() && memory_was_written(at))
    fault_of_lane(now, lane, "reads with .nc what this launch has written");
  return simt_failed() ? NULL : place;
}

static void access_memory(const Now *now, const PtxCode *i, uint32_t mask)
{
  uint32_t bytes = ptx_type_bytes((PtxType)i->type);
  uint32_t parts = i->op == PTX_OP_ld ? i->n_to : i->op == PTX_OP_st ? i->n_in - 1u : 1;
  for (; mask; mask &= mask - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    char *at = place_of(now, i, lane, bytes * parts);
    if (!at) return;
    if (i->op == PTX_OP_atom)
      now->rows[i->to[0]][lane] =
          simt_count((unsigned *)(void *)at, (unsigned)row_at(now, i->in[1])[lane]);
    else
      for (uint32_t k = 0; k < parts; k++)
        if (i->op == PTX_OP_ld) {
          uint64_t value = 0;
          memcpy(&value, at + k * bytes, bytes);
          now->rows[i->to[k]][lane] = (uint64_t)whole((PtxType)i->type, value);
        } else {
          memcpy(at + k * bytes, &row_at(now, i->in[1 + k])[lane], bytes);
        }
  }
}

static void fence(const Now *now, uint32_t mask)
{
  for (; mask; mask &= mask - 1) {
    simt_become(now->first + (uint32_t)__builtin_ctz(mask));
    simt_fence();
  }
}

/* ---- shuffles ---- */

/* Exchanges values of the lanes of `mask`. False: they wait for others that their masks name. */
static bool shuffle(const Now *now, const PtxCode *i, uint32_t mask)
{
  PtxRow out, has_source;
  const uint64_t *value = row_at(now, i->in[0]), *step = row_at(now, i->in[1]);
  const uint64_t *control = row_at(now, i->in[2]), *members = row_at(now, i->in[3]);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), named = (uint32_t)members[lane];
    uint32_t limit = (lane & (uint32_t)(control[lane] >> 8)) |
                     ((uint32_t)control[lane] & ~(uint32_t)(control[lane] >> 8) & 31);
    uint32_t from = lane ^ ((uint32_t)step[lane] & 31);
    if (!(named >> lane & 1))
      return fault_of_lane(now, lane, "shuffles and does not name itself"), true;
    if (named & ~mask) return false;
    has_source[lane] = from <= limit;
    if (from > limit) from = lane;
    if (step[lane] > 31 || !(named >> from & 1))
      return fault_of_lane(now, lane, "shuffles with a lane that it does not name"), true;
    out[lane] = value[from];
  }
  put_row(now->rows[i->to[0]], out, mask);
  if (i->n_to > 1) put_row(now->rows[i->to[1]], has_source, mask);
  simt_shuffled();
  return true;
}

/* ---- tensor cores ---- */

/* Executes an instruction of the whole warp. False: `mask` lacks lanes, for which the others wait.
 */
static bool execute_matrix(const Now *now, const PtxCode *i, uint32_t mask)
{
  uint32_t words[PTX_LANES][PTX_VECTOR], *lanes[PTX_LANES];
  if (mask != UINT32_MAX) return false;
  for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
    lanes[lane] = words[lane];
    for (uint32_t k = 0; k < i->n_in; k++) words[lane][k] = (uint32_t)row_at(now, i->in[k])[lane];
    words[lane][0] += (uint32_t)i->offset;
  }
  i->matrix(now->first, lanes);
  for (uint32_t lane = 0; lane < PTX_LANES; lane++)
    for (uint32_t k = 0; k < i->n_to; k++) now->rows[i->to[k]][lane] = words[lane][k];
  simt_shuffled();
  return true;
}

/* ---- a warp ---- */

static void put_pc(Warp *w, uint32_t mask, uint32_t pc)
{
  for (; mask; mask &= mask - 1) w->pc[__builtin_ctz(mask)] = pc;
}

static uint32_t lanes_at(const Warp *w, uint32_t pc)
{
  uint32_t mask = 0;
  for (uint32_t m = w->live; m; m &= m - 1)
    if (w->pc[__builtin_ctz(m)] == pc) mask |= m & -m;
  return mask;
}

/* Chooses the group that executes next, and the lowest place of the others. 0: none can execute. */
static uint32_t choose(const Warp *w, bool any, uint32_t *pc, uint32_t *next)
{
  uint32_t ready = w->live & ~w->held;
  *pc = *next = UINT32_MAX;
  if (any && ready) {
    for (unsigned skip = simt_random((unsigned)__builtin_popcount(ready)); skip; skip--)
      ready &= ready - 1;
    ready &= -ready;
  }
  for (uint32_t m = ready; m; m &= m - 1)
    if (w->pc[__builtin_ctz(m)] < *pc) *pc = w->pc[__builtin_ctz(m)];
  if (*pc == UINT32_MAX) return 0;
  for (uint32_t m = w->live; m; m &= m - 1) {
    uint32_t at = w->pc[__builtin_ctz(m)];
    if (at > *pc && at < *next) *next = at;
  }
  return lanes_at(w, *pc);
}

static void wait_or_end(const Now *now, const PtxCode *i, uint32_t mask)
{
  now->w->live &= ~mask;
  for (; mask; mask &= mask - 1) {
    unsigned thread = now->first + (unsigned)__builtin_ctz(mask);
    if (i->op == PTX_OP_bar)
      simt_wait(thread, (unsigned)(i - grid.kernel->at));
    else
      simt_end(thread);
  }
}

/* Executes a shuffle once all lanes are here that it names, or an instruction of tensor cores once
 * all lanes are here. True if the group stays together. */
static bool join_lanes(const Now *now, const PtxCode *i, uint32_t mask, uint32_t *pc)
{
  Warp *w = now->w;
  put_pc(w, mask, *pc);
  uint32_t here = lanes_at(w, *pc), takes = guarded(now, i, here);
  bool done = !takes || (i->matrix ? execute_matrix : shuffle)(now, i, takes);
  w->held = done ? w->held & ~takes : w->held | takes;
  put_pc(w, done ? here : here & ~takes, *pc + 1);
  ++*pc;
  return done && here == mask;
}

/* Executes an instruction that the lanes `takes` of a group take. Returns true if the group stays
 * together. */
static bool execute_control(const Now *now, const PtxCode *i, uint32_t mask, uint32_t takes,
                            uint32_t *pc)
{
  Warp *w = now->w;
  if (i->op == PTX_OP_shfl || i->matrix) return join_lanes(now, i, mask, pc);
  if (i->op == PTX_OP_bra && takes == mask) {
    *pc = i->target;
    return true;
  }
  put_pc(w, mask, *pc + 1);
  if (i->op == PTX_OP_bra) put_pc(w, takes, i->target);
  if (i->op != PTX_OP_bra && takes) wait_or_end(now, i, takes);
  ++*pc;
  return !takes;
}

/* Executes a group until it diverges, waits, or reaches `next`, where other lanes are. */
static void run_group(const Now *now, uint32_t mask, uint32_t pc, uint32_t next, unsigned *steps)
{
  const PtxImage *k = grid.kernel;
  do {
    const PtxCode *i = &k->at[pc];
    uint32_t takes = guarded(now, i, mask);
    grid.executed += (unsigned)__builtin_popcount(takes);
    if (++*steps > MOST_STEPS) simt_fault(0, "a warp does not end");
    switch (i->op) {
    case PTX_OP_bra:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_bar:
    case PTX_OP_shfl:
    case PTX_OP_ldmatrix:
    case PTX_OP_mma:
      if (!execute_control(now, i, mask, takes, &pc)) return;
      continue;
    case PTX_OP_ld:
    case PTX_OP_st:
    case PTX_OP_atom:
      access_memory(now, i, takes);
      break;
    case PTX_OP_membar:
      fence(now, takes);
      break;
    default:
      if (takes) compute(now, i, takes);
    }
    pc++;
  } while (pc < next && !simt_failed());
  put_pc(now->w, mask, pc);
}

static void begin_warp(Now *now, unsigned lanes)
{
  for (unsigned lane = 0; lane < lanes; lane++) {
    if (!simt_has_begun(now->first + lane)) now->w->pc[lane] = 0;
    simt_become(now->first + lane);
  }
  for (unsigned lane = 0; lane < PTX_LANES; lane++) {
    now->rows[ROW_tid][lane] = now->first + lane;
    now->rows[ROW_lane][lane] = lane;
    now->rows[ROW_warp][lane] = now->first / PTX_LANES;
    grid.kernel->shared_rows[SHARED_ctaid][lane] = simt_now.block;
  }
  now->w->live = lanes == PTX_LANES ? UINT32_MAX : (1u << lanes) - 1;
  now->w->held = 0;
}

static void run_warp(const SimtLaunch *l, unsigned first, unsigned lanes)
{
  unsigned number = first / PTX_LANES, steps = 0;
  Now now = {l, &grid.warps[number], grid.rows + (size_t)number * grid.kernel->n_rows, first};
  uint32_t pc, next, mask;
  begin_warp(&now, lanes);
  while (!simt_failed() && now.w->live) {
    mask = choose(now.w, l->order == SIMT_RANDOM, &pc, &next);
    if (mask)
      run_group(&now, mask, pc, next, &steps);
    else
      fault_of_lane(&now, (uint32_t)__builtin_ctz(now.w->held),
                    "waits for a lane that does not come");
  }
}

/* ---- a launch ---- */

static void *resized(void *old, size_t *room, size_t size)
{
  if (size <= *room) return old;
  free(old);
  *room = size;
  old = aligned_alloc(64, (size + 63) / 64 * 64);
  if (!old) abort();
  return old;
}

void ptx_prepare(SimtLaunch *l, const PtxImage *k)
{
  size_t warps = (l->block + PTX_LANES - 1) / PTX_LANES, n = warps * k->n_rows;
  grid.kernel = k;
  grid.rows = resized(grid.rows, &grid.room, n * sizeof(PtxRow));
  grid.shared = resized(grid.shared, &grid.shared_room, k->shared + 1);
  for (size_t r = 0; r < n; r++)
    for (int lane = 0; lane < PTX_LANES; lane++) grid.rows[r][lane] = poison;
  for (uint32_t p = 0; p < SHARED_params + k->n_params; p++) {
    uint64_t value = p == SHARED_ntid     ? l->block
                     : p == SHARED_nctaid ? l->grid
                     : p >= SHARED_params ? (uintptr_t)l->args[p - SHARED_params]
                                          : 0;
    for (int lane = 0; lane < PTX_LANES; lane++) k->shared_rows[p][lane] = value;
  }
  l->warp = run_warp;
  l->shared = grid.shared;
  l->shared_size = k->shared;
}
