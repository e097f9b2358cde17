/* Packs rooms, each of which is in use for some time, into one range of memory. */
#pragma once
#include "compiler/base/arena.h"

typedef struct Room { /* an interval of WORK and when it is in use */
  int64_t bytes;
  uint32_t first, last; /* indices of commands, both included */
  uint32_t order;       /* order of creation, which breaks ties */
  int64_t at, best;     /* offset in this try; in the best one */
  struct Room *next;    /* pack.c: the next room that ends with the same command */
} Room;

/* Sets the offset `best` of each of the n rooms, so that no two that are in use at the same time
 * overlap. Returns the bytes that this takes. */
int64_t pack_rooms(Arena *a, Room *const *rooms, uint32_t n);
