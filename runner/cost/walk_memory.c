/* Sectors, lines and banks: see walk_memory.h. */
#include "walk_memory.h"
#include "ptx_parts.h"
#include <assert.h>
#include <string.h>

enum { SECTOR = 32, LINE = 128, BANKS = 32, WORD = 4, ARGUMENT_SHIFT = 44, FIRST_CAP = 1024 };

/* ---- addresses ---- */

/* Returns the address of an argument. It begins in the middle of its address range, so that a
 * negative index does not reach the argument before it. */
uint64_t walk_argument_at(const WalkLaunch *launch, uint32_t n)
{
  assert(n < launch->n_arguments);
  if (launch->arguments[n].absent) return 0;
  return ((uint64_t)(n + 1) << ARGUMENT_SHIFT) + (1ull << (ARGUMENT_SHIFT - 1)) +
         launch->arguments[n].skew;
}

/* Returns the element of an index that contains address `at`, moved so that this byte is the
 * lowest. A hash of its position spreads the ids. */
static uint64_t spread_id(const WalkArgument *a, uint64_t from_start)
{
  uint64_t hash = (from_start / a->id_bytes + 1) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
  return (hash >> 32) % a->rows >> from_start % a->id_bytes * 8;
}

uint64_t walk_memory_value(const WalkMemory *m, const WalkLaunch *launch, const PtxInstruction *i,
                           uint64_t at)
{
  uint64_t n = at >> ARGUMENT_SHIFT, value = 0;
  uint32_t bytes = ptx_type_bytes(i->type);
  if (i->space == SPACE_shared) {
    if (at + bytes <= m->shared_size) memcpy(&value, m->shared + at, bytes);
    return value;
  }
  if (i->space == SPACE_const) {
    const PtxKernel *k = m->kernel;
    uint64_t from = at - PTX_CONST_BASE;
    if (at >= PTX_CONST_BASE && from + bytes <= k->n_constants)
      memcpy(&value, k->constants + from, bytes);
    return value;
  }
  if (n == 0 || n > launch->n_arguments) return 0;
  const WalkArgument *a = &launch->arguments[n - 1];
  uint64_t word = a->rows ? spread_id(a, at - walk_argument_at(launch, (uint32_t)n - 1))
                          : a->pattern >> (at - a->skew) % 8 * 8;
  return bytes >= 8 ? word : word & ((1ull << 8 * bytes) - 1);
}

void walk_memory_store(WalkMemory *m, const PtxInstruction *i, uint64_t at, uint64_t value)
{
  uint32_t bytes = ptx_type_bytes(i->type);
  if (i->space == SPACE_shared && at + bytes <= m->shared_size)
    memcpy(m->shared + at, &value, bytes);
}

/* ---- a set of sectors ---- */

void walk_memory_open(WalkMemory *m, Arena *arena, const PtxKernel *k)
{
  *m = (WalkMemory){.arena = arena, .cap = FIRST_CAP, .shared_size = k->shared, .kernel = k};
  m->shared = arena_array(arena, unsigned char, k->shared + 1);
  m->slot = arena_array(arena, uint64_t, m->cap);
}

void walk_memory_clear(WalkMemory *m)
{
  memset(m->slot, 0, m->cap * sizeof *m->slot);
  memset(m->shared, 0, m->shared_size);
  m->n = 0;
}

static uint64_t *slot_of(const WalkMemory *m, uint64_t sector)
{
  uint64_t i = sector * 0x9E3779B97F4A7C15u >> 20;
  while (m->slot[i & (m->cap - 1)] && m->slot[i & (m->cap - 1)] != sector) i++;
  return &m->slot[i & (m->cap - 1)];
}

static void grow(WalkMemory *m)
{
  WalkMemory old = *m;
  m->cap *= 2;
  m->slot = arena_array(m->arena, uint64_t, m->cap);
  for (uint32_t i = 0; i < old.cap; i++)
    if (old.slot[i]) *slot_of(m, old.slot[i]) = old.slot[i];
}

/* Adds a sector. False: the set already contains it. */
static bool add(WalkMemory *m, uint64_t sector)
{
  uint64_t *slot = slot_of(m, sector);
  if (*slot) return false;
  *slot = sector;
  if (++m->n * 2 > m->cap) grow(m);
  return true;
}

/* ---- accesses ---- */

/* Lists the units of `unit` bytes that the lanes access, each once. A lane accesses at most two. */
static uint32_t units(const WalkAccess *a, uint32_t unit, uint64_t out[64])
{
  uint32_t n = 0;
  for (uint32_t lane = 0; lane < a->n; lane++)
    for (uint64_t u = a->at[lane] / unit; u <= (a->at[lane] + a->bytes - 1) / unit; u++) {
      uint32_t k = n;
      while (k > 0 && out[k - 1] != u) k--;
      if (k == 0 && n < 64) out[n++] = u;
    }
  return n;
}

/* Returns the passes: lanes that access different words of a bank are served one after the
 * other. */
static uint32_t bank_passes(const WalkAccess *a)
{
  uint64_t word[64];
  uint32_t of_bank[BANKS] = {0}, most = 1;
  WalkAccess one = *a;
  one.bytes = WORD;
  for (uint32_t k = 0; k < a->bytes; k += WORD) {
    uint32_t n = units(&one, WORD, word);
    for (uint32_t i = 0; i < n; i++)
      if (++of_bank[word[i] % BANKS] > most) most = of_bank[word[i] % BANKS];
    for (uint32_t lane = 0; lane < a->n; lane++) one.at[lane] += WORD;
  }
  return most;
}

uint32_t walk_memory(WalkMemory *m, const WalkLaunch *launch, const WalkAccess *a,
                     WalkCounts *counts)
{
  uint64_t unit[64];
  const PtxInstruction *i = a->instruction;
  if (i->space == SPACE_shared || i->space == SPACE_const) {
    counts->pipe[PIPE_lsu] += bank_passes(a);
    return launch->latency_shared;
  }
  counts->pipe[PIPE_lsu] += a->n ? units(a, LINE, unit) : 1;
  uint32_t n = units(a, SECTOR, unit), fresh = 0;
  if (i->op != PTX_OP_ld) {
    counts->sectors_written += n;
    return launch->latency_l2;
  }
  for (uint32_t k = 0; k < n; k++) fresh += add(m, unit[k] + 1);
  counts->sectors_read += n;
  counts->sectors_once += fresh;
  return fresh ? launch->latency_dram : launch->latency_l1;
}
