/* What functions that other programs call ask of their arguments: those are no code of ours, so a
 * mistake is a status and no crash. */
#pragma once
#include "ampc_plan.h"

#define NEEDS(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return ampc_fail(AMPC_BAD_USAGE, "%s: an argument is NULL or out of range; it needs %s",     \
                       __func__, #condition);                                                      \
  } while (0)
