/* Checks the arguments of functions that other programs call. Their code is not ours, so a mistake
 * gives a status and no crash. */
#pragma once
#include "ampc_plan.h"

#define NEEDS(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return ampc_fail(AMPC_BAD_USAGE, "%s: an argument is NULL or out of range; it needs %s",     \
                       __func__, #condition);                                                      \
  } while (0)
