/* Levels of processors: which instructions a processor has. */
#pragma once
#include "ampc_values.h"

/* A row of levels.def. */
typedef struct Level {
  bool is_arm;
  const char *name;
  bool is_march;
  int lanes, bf16;
} Level;

/* Returns the last row that this processor has. */
const Level *ampc_level(void);
/* Returns the row with this name, also of another kind of processor, or NULL. */
const Level *ampc_level_named(const char *name);
/* Fails if this processor lacks instructions of `level`, a value of AMPC_PROCESSOR or a name in
 * levels.def. */
ampc_status ampc_level_suffices(const char *level);
