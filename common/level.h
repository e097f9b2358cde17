/* Levels of processors: which instructions a processor has. */
#pragma once
#include "ampc_values.h"

/* Fails if this processor lacks instructions of `level`, a value of AMPC_PROCESSOR. */
ampc_status ampc_level_suffices(const char *level);
