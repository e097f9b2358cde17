/* The inside of a runtime, for the runtime's own files. */
#pragma once
#include "ampc_rt.h"
#include "device.h"

enum { ERROR_TEXT = 512 };

/* The commands of a block's variant with their addresses, resolved once. */
typedef struct Resolved {
  void **pointers; /* of all commands, one after the other */
  uint32_t *first; /* where those of a command begin */
} Resolved;

struct ampc_runtime {
  const ampc_program *program;
  Device *device;
  char *space[AMPC_SPACE_COUNT]; /* NULL where the program uses none */
  Resolved *resolved;            /* two a block, empty where the program has a step function */
  ampc_status failed;            /* of the first call that failed in a step */
  char failure[ERROR_TEXT];
};

/* ---- runtime.c ---- */

/* STATE as it is before the first step, but for the settings. */
ampc_status runtime_reset_state(ampc_runtime *rt, uint64_t seed);
/* STATE as it is after the calls so far, later and without waiting: see Device.look. `to` has room
 * for the whole space. */
ampc_status runtime_look(ampc_runtime *rt, uint32_t slot);
ampc_status runtime_looked(ampc_runtime *rt, uint32_t slot, bool wait, void *to, bool *out_there);

/* ---- commands.c ---- */

/* Finds the addresses of all command lists, then prepares the device for them. */
ampc_status commands_resolve(ampc_runtime *rt);
/* Prepares what the command lists of a program ask the device for; step functions have none. */
ampc_status commands_prepare(Device *d, const ampc_program *p);
void commands_free(ampc_runtime *rt);
void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant);
