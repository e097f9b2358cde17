/* The inside of a runtime, for the runtime's own files. */
#pragma once
#include "ampc_rt.h"
#include "device.h"

enum { ERROR_TEXT = 512 };

struct ampc_runtime {
  const ampc_program *program;
  Device *device;
  char *space[AMPC_SPACE_COUNT]; /* NULL where the program uses none */
  void **addresses;              /* room for those of one command's operands */
  uint32_t n_addresses;
  ampc_status failed; /* of the first call that failed in a step */
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

/* Checks the command lists of the program, which steps that are functions lack, and prepares. */
ampc_status commands_create(ampc_runtime *rt);
/* Prepares what the command lists of a program ask the device for. */
ampc_status commands_prepare(Device *d, const ampc_program *p);
void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant);
