/* What the files of this room share. */
#pragma once
#include "engine.h"
#include "ranks.h"

enum {
  NAME_ROOM = 96,      /* "rank 2 on node7" */
  TIMES = 32,          /* steps whose median counts */
  MESSAGE_ROOM = 1024, /* bytes of a message that all ranks get */
  TAG = 1,             /* of ranks_send */
  TAG_ROLL = 2,        /* of the roll call */
  TAG_OVER = 3         /* tells a missing rank that the roll call is over */
};

/* What a rank does and has waited for. */
typedef enum CallKind {
  CALL_GATHER,
  CALL_SWAP,
  CALL_SEND,
  CALL_RECEIVE,
  CALL_DEVICE,
  CALLS
} CallKind;
typedef struct Call {
  uint64_t kind;
  int64_t bytes;
  double waited;  /* seconds */
  int64_t broken; /* 1: MPI has told an error */
} Call;

typedef struct Team {
  Ranks ranks; /* the first member: a Ranks * points to it */
  const Engine *engine;
  char library[NAME_ROOM];
  char (*name)[NAME_ROOM];
  double time[TIMES]; /* of the last steps, in seconds */
  int64_t steps;
  bool busy;          /* ranks_busy */
  Call call;          /* the present call of this rank */
  bool failed, alike; /* alike: all ranks have failed for the same reason, and none waits */
} Team;

static inline Team *team_of(Ranks *r)
{
  return (Team *)(void *)r;
}

/* Waits until a request of the present call is done. */
ampc_status team_await(Team *t, EngineRequest request);
/* Fails: the engine says `why`. */
ampc_status team_broken(Team *t, const char *why);
/* Sets whether another rank prints the message. */
void team_silence(bool silent);
/* Returns the time that ranks_patience has set, or `otherwise`. */
double team_patience(double otherwise);
