/* Rooms (here: intervals of WORK that are in use from one command to another). Rooms in use at the
 * same time must not overlap, and nested ones must waste nothing. Few rooms are tried in several
 * orders. */
#include "check.h"
#include "compiler/passes/memory/pack.h"

enum { COMMANDS = 4000 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % n;
}

static bool overlap(const Room *a, const Room *b)
{
  bool together = a->first <= b->last && b->first <= a->last;
  return together && a->best < b->best + b->bytes && b->best < a->best + a->bytes;
}

static void check_rooms(Room *const *rooms, uint32_t n, int64_t bytes)
{
  uint32_t clashes = 0, outside = 0;
  for (uint32_t i = 0; i < n; i++) {
    outside += rooms[i]->best < 0 || rooms[i]->best + rooms[i]->bytes > bytes;
    for (uint32_t k = 0; k < i; k++) clashes += overlap(rooms[i], rooms[k]);
  }
  CHECK(clashes == 0);
  CHECK(outside == 0);
}

/* Returns the most bytes in use at once: a lower bound. */
static int64_t needed(Room *const *rooms, uint32_t n)
{
  static int64_t change[COMMANDS + 1];
  int64_t now = 0, most = 0;
  memset(change, 0, sizeof change);
  for (uint32_t i = 0; i < n; i++) {
    change[rooms[i]->first] += rooms[i]->bytes;
    change[rooms[i]->last + 1] -= rooms[i]->bytes;
  }
  for (uint32_t i = 0; i < COMMANDS; i++) {
    now += change[i];
    if (now > most) most = now;
  }
  return most;
}

static Room **rooms_of(Arena *a, uint32_t n)
{
  Room **rooms = arena_array(a, Room *, n);
  for (uint32_t i = 0; i < n; i++) {
    rooms[i] = arena_new(a, Room);
    rooms[i]->order = i;
  }
  return rooms;
}

static void test_random(uint32_t n, double waste)
{
  Arena *a = arena_create();
  Room **rooms = rooms_of(a, n);
  uint64_t state = n;
  for (uint32_t i = 0; i < n; i++) {
    rooms[i]->bytes = 256 * (1 + (int64_t)random_below(&state, 64));
    rooms[i]->first = random_below(&state, COMMANDS - 1);
    rooms[i]->last = rooms[i]->first + random_below(&state, COMMANDS - 1 - rooms[i]->first);
  }
  int64_t bytes = pack_rooms(a, rooms, n);
  check_rooms(rooms, n, bytes);
  CHECK((double)bytes <= waste * (double)needed(rooms, n));
  arena_destroy(a);
}

/* Checks values that forward keeps and that backward reads in reverse order. */
static void test_nested(uint32_t n)
{
  Arena *a = arena_create();
  Room **rooms = rooms_of(a, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t)((uint64_t)i * (COMMANDS / 2 - 1) / n);
    *rooms[i] =
        (Room){.bytes = 256 * (1 + i % 7), .first = at, .last = COMMANDS - 1 - at, .order = i};
  }
  int64_t bytes = pack_rooms(a, rooms, n);
  check_rooms(rooms, n, bytes);
  CHECK(bytes == needed(rooms, n));
  arena_destroy(a);
}

int main(void)
{
  test_random(1, 1.0);
  test_random(200, 1.1);
  test_random(7000, 1.5);
  test_nested(200);
  test_nested(7000);
  return check_done();
}
