/* Where rooms lie that are in use for some time each: a packing of intervals. */
#pragma once
#include "compiler/base/arena.h"

typedef struct Room { /* an interval of WORK and when it is in use */
  int64_t bytes;
  uint32_t first, last; /* indices of commands, both included */
  uint32_t order;       /* of creation: breaks ties */
  int64_t at, best;     /* offset in this try, in the best one */
  struct Room *next;    /* pack.c: of those that end with the same command */
} Room;

/* Gives each of the n rooms its offset, `best`, so that no two that are in use at the same time
 * overlap; returns the bytes that this takes. */
int64_t pack_rooms(Arena *a, Room *const *rooms, uint32_t n);
