/* The fewest pins of an assignment: random trees and assignments, compared with every set of pins.
 */
#include "check.h"
#include "runner/tune/tune.h"

enum { UNITS = 6, KINDS = 3 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % n;
}

/* Whether these pins give the assignment; pins[i] = KINDS: module i has none, pins[0]: the job's.
 */
static bool gives(const Units *u, const uint8_t *kinds, const uint8_t *pins)
{
  uint8_t is[UNITS] = {pins[0]};
  for (uint32_t i = 0; i < u->n; i++) {
    if (i) is[i] = pins[i] < KINDS ? pins[i] : is[u->at[i].parent];
    if (u->at[i].own && is[i] != kinds[i]) return false;
  }
  return true;
}

/* Returns the least number of pins, by trying all sets. */
static uint32_t least(const Units *u, const uint8_t *kinds)
{
  uint32_t sets = KINDS, best = UNITS;
  for (uint32_t i = 1; i < u->n; i++) sets *= KINDS + 1;
  for (uint32_t set = 0; set < sets; set++) {
    uint8_t pins[UNITS];
    uint32_t left = set / KINDS, n = 0;
    pins[0] = (uint8_t)(set % KINDS);
    for (uint32_t i = 1; i < u->n; i++, left /= KINDS + 1) {
      pins[i] = (uint8_t)(left % (KINDS + 1));
      n += pins[i] < KINDS;
    }
    if (n < best && gives(u, kinds, pins)) best = n;
  }
  return best;
}

static void check_one(Arena *arena, uint64_t *state)
{
  Units u = {0};
  uint8_t kinds[UNITS], pins[UNITS];
  uint32_t n = 1 + random_below(state, UNITS);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t parent = i ? random_below(state, i) : 0;
    vec_push(arena, &u, ((Unit){.parent = parent, .own = random_below(state, 4) > 0}));
    kinds[i] = (uint8_t)random_below(state, KINDS);
    pins[i] = KINDS;
  }
  Cover c = cover_find(arena, &u, KINDS, kinds);
  pins[0] = c.base;
  for (uint32_t i = 0; i < c.pins.n; i++) pins[c.pins.at[i].unit] = c.pins.at[i].kind;
  CHECK(gives(&u, kinds, pins));
  CHECK(c.pins.n == least(&u, kinds));
}

int main(void)
{
  uint64_t state = 1;
  Arena *arena = arena_create();
  for (int i = 0; i < 2000; i++) check_one(arena, &state);
  arena_destroy(arena);
  return check_done();
}
