/* Checks the arguments of public functions. Other programs call them, so a wrong argument must give
 * a status and not a crash. */
#pragma once
#include "ampc_plan.h"

#define NEEDS(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return ampc_fail(AMPC_BAD_USAGE, "%s: an argument is NULL or out of range; it needs %s",     \
                       __func__, #condition);                                                      \
  } while (0)
