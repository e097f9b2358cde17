/* Exchanges between the members of a program: ampc_exchange of plan/ampc_commands.h.
 *
 * Note [members]
 * A program is compiled for a number of members. Each trains on its share of every batch. R ranks
 * run n = members / R members each: rank r runs [r n, (r + 1) n) one after the other, up to the
 * next exchange, where they meet. The values of members are added in a tree that depends only on
 * the number of members. So with AMPC_SUM_TREE the number of ranks changes no bit. For that, n must
 * be a power of 2, or all members run on one rank. */
#pragma once
#include "ranks.h"
#include "runtime/device.h"

typedef struct Members {
  Ranks *ranks;      /* NULL: this process runs all members */
  uint32_t first, n; /* this process runs members [first, first + n) */
  uint32_t all;      /* 1: the program has no exchanges */
} Members;

/* Returns the scratch bytes on the device that the exchange between so many ranks needs. */
int64_t exchange_scratch(int64_t ranks, const ampc_exchange *x);
/* Returns the bytes that this process sends to other ranks. */
int64_t exchange_sent(const Members *m, const ampc_exchange *x);
/* Exchanges. All but SLICE join first: see DeviceOps.aside. The range of member first + i begins at
 * `at` + i * apart; apart 0: all members of this process share the range (GATHER). `scratch` has
 * exchange_scratch() bytes. */
ampc_status exchange_run(Device *d, const Members *m, const ampc_exchange *x, void *at,
                         int64_t apart, void *scratch);
