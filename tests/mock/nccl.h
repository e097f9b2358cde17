/* NCCL without GPUs: what nccl.c and nccl_region.c share. */
#pragma once
#include <stdatomic.h>
#include "mock.h"
#include "runtime/cuda/nccl_api.h"

#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/nccl.def"

enum { MOST_RANKS = 16, POSTS = 4 };

typedef enum CallKind { CALL_gather, CALL_swap, CALL_reduce, CALL_scatter } CallKind;

/* What the ranks of a call must agree on. */
typedef struct Post {
  CallKind kind;
  bool captured;                         /* it runs as a part of a graph */
  size_t bytes;                          /* of the result of one rank; not for swap */
  long to[MOST_RANKS], from[MOST_RANKS]; /* swap: bytes for each rank and from it; -1: none */
} Post;

/* A rank in the memory that all ranks share. Calls are numbered from 1. */
typedef struct Place {
  atomic_int joined, left;   /* whether it has taken part, and whether it has gone */
  atomic_long arrived, done; /* the last call whose bytes it has sent; that it has ended */
  int device;
  Post post[POSTS]; /* of call i: post[i % POSTS] */
} Place;
typedef struct Region {
  Place rank[MOST_RANKS];
} Region;

/* Makes the file of a region; `path` ends with XXXXXX. */
bool region_make(char *path);
/* Maps the region and the room of `size` ranks. NULL: it is not there. */
Region *region_open(const char *path, int size);
/* Returns the room for the bytes that a rank sends. A call of more than ROOM bytes ends the
 * program. */
enum { ROOM = 1 << 28 };
char *region_room(Region *r, int rank);

typedef struct Transfer { /* of a swap */
  uint64_t at;
  long bytes; /* -1: none */
} Transfer;

typedef struct Call {
  NcclComm comm;
  CallKind kind;
  CuStream stream;
  uint64_t from, to; /* not for swap */
  size_t bytes;
  Transfer sends[MOST_RANKS], receives[MOST_RANKS]; /* swap, by rank */
  struct Call *before;                              /* of the same group */
} Call;

struct ncclComm {
  NcclComm next; /* of all communicators of the process */
  Region *region;
  int rank, size;
  char path[sizeof(NcclId)];
  Call *late;               /* was made, but is not on its stream yet */
  int asked;                /* how often the program asked whether it still is in progress */
  atomic_long queued, done; /* calls on streams so far; calls that have ended */
  bool sent;                /* the bytes of call done + 1 are in the region */
  double since;             /* when it began to wait for the other ranks; 0: it does not */
  int in_graphs;            /* calls in graphs that exist */
  bool aborted;
  char error[256];
  pthread_t helper;
  atomic_bool stop;
};

/* Tries to run call `number`; CUDA_ERROR_NOT_READY: other ranks are missing. */
CuResult call_try(const Call *c, long number);
