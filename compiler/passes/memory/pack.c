/* Packs rooms (intervals) into WORK: see pack.h. Placing the largest room first mostly comes close
 * to the bound, the largest sum of bytes alive at once. If it does not, other orders are tried:
 * Note [orders]. If there are so many rooms that one try takes too long, rooms are placed in order
 * of time: Note [turns of rooms]. */
#include "pack.h"
#include <stdlib.h>

/* Note [orders] The smallest WORK is a packing problem. This search finds a good answer at a
 * bounded cost. The first order is "largest room first". The other orders put rooms with a long
 * life in front, sorted by life, by first or by last command (KEYS), and then the other rooms,
 * largest first. A life is long if it reaches a limit, which takes LENGTHS values from 0 to 10 / 32
 * of the commands of the block. Each order is repaired up to MOVES times: the room that reaches
 * highest is placed first in the next try. A try within 1 / CLOSE of the bound is good enough, and
 * after about WORK comparisons the search ends. */
enum { KEY_LIFE, KEY_FIRST, KEY_LAST, KEYS };
enum { LENGTHS = 11, MOVES = 24, CLOSE = 256, WORK = 1 << 25 };

typedef struct Order {
  uint32_t key, length; /* the shortest long life, in commands; UINT32_MAX: none is long */
} Order;

/* The state of the search. order: rooms in the order of this try; placed: placed rooms by offset.
 * Then come the bound that no placement can beat, and the best size and the comparisons so far. */
typedef struct Packing {
  Room **order, **placed;
  uint32_t n;
  int64_t bound, best;
  int64_t work;
} Packing;

static int64_t rank(const Room *r, const Order *o)
{
  const int64_t keys[KEYS] = {[KEY_LIFE] = -(int64_t)(r->last - r->first),
                              [KEY_FIRST] = r->first,
                              [KEY_LAST] = -(int64_t)r->last};
  return keys[o->key];
}

/* Compares two rooms by a key, at last by creation, so the result is independent of the sort. */
static int placed_first(const void *x, const void *y, void *order)
{
  const Room *a = *(Room *const *)x, *b = *(Room *const *)y;
  const Order *o = order;
  bool long_a = a->last - a->first >= o->length, long_b = b->last - b->first >= o->length;
  if (long_a != long_b) return long_b - long_a;
  int64_t by = long_a ? rank(a, o) - rank(b, o) : 0;
  if (by == 0) by = b->bytes - a->bytes;
  if (by == 0) by = (int64_t)a->order - b->order;
  return (by > 0) - (by < 0);
}

static void sort_rooms(Packing *k, Order by)
{
  if (k->n) qsort_r(k->order, k->n, sizeof *k->order, placed_first, &by);
}

/* Keeps `placed` sorted by offset, for lowest_offset(). */
static void insert_placed(Room **placed, uint32_t n, Room *r)
{
  uint32_t at = n;
  for (; at > 0 && placed[at - 1]->at > r->at; at--) placed[at] = placed[at - 1];
  placed[at] = r;
}

/* Returns the lowest offset at which r overlaps no placed room that lives at the same time. */
static int64_t lowest_offset(const Room *r, Room **placed, uint32_t n)
{
  int64_t at = 0;
  for (uint32_t i = 0; i < n; i++) { /* sorted by offset */
    const Room *p = placed[i];
    if (p->last < r->first || r->last < p->first) continue;
    if (p->at >= at + r->bytes) break;
    if (p->at + p->bytes > at) at = p->at + p->bytes;
  }
  return at;
}

/* Places the rooms in the current order, and keeps the best offsets so far. Returns the index in
 * the order of the room that reaches highest: the next try places it earlier. */
static uint32_t try_order(Packing *k)
{
  uint32_t highest = 0;
  int64_t top = 0;
  for (uint32_t i = 0; i < k->n; i++) {
    Room *r = k->order[i];
    r->at = lowest_offset(r, k->placed, i);
    if (r->at + r->bytes > top) top = r->at + r->bytes, highest = i;
    insert_placed(k->placed, i, r);
  }
  k->work += (int64_t)k->n * k->n;
  if (top >= k->best) return highest;
  k->best = top;
  for (uint32_t i = 0; i < k->n; i++) k->order[i]->best = k->order[i]->at;
  return highest;
}

static bool is_done(const Packing *k)
{
  return k->best - k->bound <= k->bound / CLOSE || k->work > WORK;
}

/* Tries one initial order, then up to MOVES repairs of it. */
static void try_from(Packing *k, Order by)
{
  sort_rooms(k, by);
  uint32_t highest = try_order(k);
  for (int i = 0; i < MOVES && highest > 0 && !is_done(k); i++) {
    Room *r = k->order[highest];
    for (uint32_t at = highest; at > 0; at--) k->order[at] = k->order[at - 1];
    k->order[0] = r;
    highest = try_order(k);
  }
}

/* Returns the largest sum of bytes alive at once: no placement needs less. */
static int64_t bytes_at_once(Arena *a, Room *const *rooms, uint32_t n, uint32_t n_commands)
{
  int64_t *change = arena_array(a, int64_t, n_commands + 2), now = 0, most = 0;
  for (uint32_t i = 0; i < n; i++) {
    change[rooms[i]->first] += rooms[i]->bytes;
    change[rooms[i]->last + 1] -= rooms[i]->bytes;
  }
  for (uint32_t i = 0; i <= n_commands; i++) {
    now += change[i];
    if (now > most) most = now;
  }
  return most;
}

/* ---- many rooms ---- */

/* Note [turns of rooms]
 * Each room is placed when its first command comes, in the lowest gap that is large enough, and
 * becomes a gap after its last command. Values that forward keeps are adjacent and end in the
 * opposite order. So there are few gaps, and the time grows with the number of rooms and not with
 * its square. */
typedef struct Gap {
  int64_t from, to;
} Gap;
typedef VEC(Gap) Gaps; /* sorted; the last one has no end */

static void take_gap(Gaps *gaps, Room *r)
{
  uint32_t i = 0;
  while (gaps->at[i].to - gaps->at[i].from < r->bytes) i++;
  r->at = gaps->at[i].from;
  gaps->at[i].from += r->bytes;
  if (gaps->at[i].from < gaps->at[i].to) return;
  for (gaps->n--; i < gaps->n; i++) gaps->at[i] = gaps->at[i + 1];
}

/* Makes the bytes of r a gap and merges it with adjacent gaps. */
static void give_gap(Arena *a, Gaps *gaps, const Room *r)
{
  int64_t end = r->at + r->bytes;
  uint32_t low = 0, high = gaps->n - 1; /* the first gap after r is in [low, high] */
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    *(gaps->at[mid].from >= end ? &high : &low) = gaps->at[mid].from >= end ? mid : mid + 1;
  }
  bool before = low > 0 && gaps->at[low - 1].to == r->at, behind = gaps->at[low].from == end;
  if (before && behind) {
    gaps->at[low].from = gaps->at[low - 1].from;
    for (gaps->n--, low--; low < gaps->n; low++) gaps->at[low] = gaps->at[low + 1];
  } else if (before) {
    gaps->at[low - 1].to = end;
  } else if (behind) {
    gaps->at[low].from = r->at;
  } else {
    vec_push(a, gaps, (Gap){0});
    for (uint32_t i = gaps->n - 1; i > low; i--) gaps->at[i] = gaps->at[i - 1];
    gaps->at[low] = (Gap){r->at, end};
  }
}

/* Places each room when its first command comes. `commands`: the largest `last` of a room. */
static void place_in_turn(Arena *a, Packing *k, uint32_t commands)
{
  Gaps gaps = {0};
  Room **ends = arena_array(a, Room *, commands + 1); /* command -> rooms that end with it */
  uint32_t done = 0;                                  /* commands whose rooms are gaps again */
  sort_rooms(k, (Order){.key = KEY_FIRST});
  vec_push(a, &gaps, (Gap){0, INT64_MAX});
  k->best = 0;
  for (uint32_t i = 0; i < k->n; i++) {
    Room *r = k->order[i];
    for (; done < r->first; done++)
      for (Room *end = ends[done]; end; end = end->next) give_gap(a, &gaps, end);
    take_gap(&gaps, r);
    r->next = ends[r->last];
    ends[r->last] = r;
    r->best = r->at;
    if (r->at + r->bytes > k->best) k->best = r->at + r->bytes;
  }
}

int64_t pack_rooms(Arena *a, Room *const *rooms, uint32_t n)
{
  uint32_t commands = 0;
  if (n == 0) return 0;
  Packing k = {.order = arena_array(a, Room *, n),
               .placed = arena_array(a, Room *, n),
               .n = n,
               .best = INT64_MAX};
  for (uint32_t i = 0; i < n; i++) {
    k.order[i] = rooms[i];
    if (rooms[i]->last > commands) commands = rooms[i]->last;
  }
  if ((int64_t)n * n > WORK) {
    place_in_turn(a, &k, commands);
    return k.best;
  }
  k.bound = bytes_at_once(a, rooms, n, commands);
  try_from(&k, (Order){.length = UINT32_MAX});
  for (uint32_t i = 0; i < LENGTHS * KEYS && !is_done(&k); i++)
    try_from(&k, (Order){i % KEYS, commands * (i / KEYS) / 32});
  return k.best;
}
