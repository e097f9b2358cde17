/* Levels of processors: which instructions a processor has. */
#pragma once
#include "ampc_values.h"

typedef enum LevelMachine { LEVEL_X86, LEVEL_ARM } LevelMachine;

/* A row of levels.def. */
typedef struct Level {
  LevelMachine machine;
  const char *name;
  bool is_march;
  int lanes, bf16;
} Level;

/* The rows of all architectures, because text may be emitted for another machine. Returns NULL
 * after the last row. */
const Level *ampc_level_at(unsigned row);
/* Returns the last row that this processor has. */
const Level *ampc_level(void);
/* Fails if this processor lacks instructions of `level`, a value of AMPC_PROCESSOR or a name in
 * levels.def. */
ampc_status ampc_level_suffices(const char *level);
