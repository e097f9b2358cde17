/* Finds out whether the process was started as a rank, and loads the library that calls MPI. */
#pragma once
#include "engine.h"
#include "runtime/plan/ampc_values.h"

/* What the launcher says about this process by variables of its environment. */
typedef struct Started {
  const char *variable; /* "PMI_RANK"; NULL: the process was not started as one of several ranks */
  int rank;
  int size;   /* 0: unknown */
  bool first; /* no other rank of this host has a lower number, as far as the launcher says */
} Started;

Started load_started(void);
/* Loads the library. *out is valid until the process ends. */
ampc_status load_engine(const Started *s, const Engine **out);
