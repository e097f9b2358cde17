/* The internals of a runtime, for the runtime's own files. */
#pragma once
#include "ampc_rt.h"
#include "device.h"

enum { ERROR_TEXT = 512 };

/* A command with the addresses of its operands, computed once: a step only makes calls. */
typedef struct BoundCommand {
  const ampc_command *command;
  void **at;     /* in the first iteration of its list */
  uint32_t body; /* AMPC_REPEAT: bound commands of its body, which follow this one */
} BoundCommand;

/* The state of an early stop; part of a checkpoint if `any`. */
typedef struct Patience {
  bool any; /* there was an evaluation since the block began */
  double best;
  int64_t stale; /* evaluations since the best one */
  int64_t step;  /* of the last one that was counted */
} Patience;

/* The state of one of the program's plateaus; part of a checkpoint if `any`. */
typedef struct PlateauState {
  bool any;   /* there was an evaluation; `start`: the setting before the first one */
  bool found; /* one of them was finite: `best` is set */
  double start, best;
  int64_t bad, cooling; /* evaluations: no better ones in a row; left of the cooldown */
  int64_t step;         /* of the last one that was counted */
} PlateauState;

struct ampc_runtime {
  const ampc_program *program;
  Device *device;
  char *space[AMPC_SPACE_COUNT]; /* NULL: the program does not use this space */
  char *input;           /* the memory of INPUT, all halves; space[AMPC_INPUT] is the current one */
  int64_t input_step;    /* bytes from one half to the next */
  BoundCommand *bound;   /* of all steps, one after the other */
  uint32_t *first_bound; /* by step_key(block, variant); one more for the end */
  void **addresses;      /* of all operands, in the order of `bound` */
  void **moved;          /* space for the addresses of one command in a later iteration */
  uint32_t n_bound, n_addresses, most_operands;
  const char *called; /* the product or convolution that runs: "fc1_linear", "&fc1_linear" */
  bool *given;        /* for each setting: ampc_set has set it */
  bool *rehearsed;    /* for each block: see rehearse() */
  Patience patience;
  PlateauState *plateau; /* for each plateau of the program */
  bool first, closes;    /* as last written to ampc_state */
  unsigned call, calls;  /* as last written to ampc_state; calls of ampc_infer so far */
  bool preparing;        /* steps are called to prepare their library operations; nothing runs */
  uint32_t last_variant; /* of the block of the last step */
  ampc_status failed;    /* status of the first call that failed in a step */
  char failure[ERROR_TEXT];
};

/* Numbers all variants of all blocks. */
static inline uint32_t step_key(uint32_t block, uint32_t variant)
{
  return AMPC_MAX_VARIANTS * block + variant;
}

/* ---- runtime.c ---- */

/* Sets STATE, except for the settings, to what it is before the first step. */
/* The place of setting i in STATE. */
ampc_ref runtime_setting_place(const ampc_program *p, uint32_t i);
ampc_status runtime_reset_state(ampc_runtime *rt, uint64_t seed);
/* A setting as kernels read it. Writing it this way does not mark it as given, as ampc_set does. */
ampc_status runtime_read_setting(ampc_runtime *rt, uint32_t i, float *out);
ampc_status runtime_write_setting(ampc_runtime *rt, uint32_t i, double value);
/* Reads STATE as it is after the calls so far, later and without waiting: see DeviceOps.look. `to`
 * must hold the whole space. */
ampc_status runtime_look(ampc_runtime *rt, uint32_t slot);
ampc_status runtime_looked(ampc_runtime *rt, uint32_t slot, bool wait, void *to, bool *out_there);

/* Says that the next step runs batch `call` of an evaluation, or call `call` of an infer block, so
 * that it draws its own random numbers. Asynchronous; writes only changes. */
ampc_status runtime_set_call(ampc_runtime *rt, int64_t call);

/* Turns space[AMPC_INPUT] to the half that the next batch is copied to. */
ampc_status runtime_turn_input(ampc_runtime *rt);
ampc_status runtime_bring(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes);

/* ---- state/averages.c ---- */

/* Sets the averages of the weights to the weights. Does nothing if the program has no averages. */
ampc_status averages_begin(ampc_runtime *rt);
/* Loads the averages of a checkpoint of ampc at `path`, whatever else it contains. */
ampc_status averages_load(ampc_runtime *rt, const char *path);

/* ---- commands.c ---- */

/* Checks the program's command lists, binds them to addresses and prepares the device for them.
 * Steps that are functions have no list; they are called once to prepare the device. */
ampc_status commands_create(ampc_runtime *rt);
void commands_free(ampc_runtime *rt);
/* Prepares the device for the command lists of a program. */
ampc_status commands_prepare(Device *d, const ampc_program *p);
void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant);
