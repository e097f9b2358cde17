/* Packs rooms into one range of memory. Each room is in use for some time. */
#pragma once
#include "compiler/base/arena.h"

typedef struct Room { /* an interval of WORK and when it is in use */
  int64_t bytes;
  uint32_t first, last; /* indices of commands, both included */
  uint32_t order;       /* order of creation, which breaks ties */
  int64_t at, best;     /* offsets; at: in the current try; best: in the best try so far */
  struct Room *next;    /* pack.c: the next room that ends with the same command */
} Room;

/* Sets the offset `best` of each of the n rooms, so that two rooms overlap only if they are in use
 * at different times. Returns the bytes that all rooms take together. */
int64_t pack_rooms(Arena *a, Room *const *rooms, uint32_t n);
