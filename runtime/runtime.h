/* The inside of a runtime, for the runtime's own files. */
#pragma once
#include "ampc_rt.h"
#include "device.h"

enum { ERROR_TEXT = 512 };

/* A command with the addresses of its operands, found once: a step only calls. */
typedef struct BoundCommand {
  const ampc_command *command;
  void **at;     /* in the first iteration of its list */
  uint32_t body; /* AMPC_REPEAT: bound commands of its body, which follow this one */
} BoundCommand;

/* What an early stop goes by; part of a checkpoint where `any`. */
typedef struct Patience {
  bool any; /* there was an evaluation since the block began */
  double best;
  int64_t stale; /* evaluations since the best one */
  int64_t step;  /* of the last one that was counted */
} Patience;

/* What one of the program's plateaus goes by; part of a checkpoint where `any`. */
typedef struct PlateauState {
  bool any;   /* there was an evaluation; `start`: the setting before the first one */
  bool found; /* with a number that is finite: `best` */
  double start, best;
  int64_t bad, cooling; /* evaluations in a row that were no better; left of the cooldown */
  int64_t step;         /* of the last one that was counted */
} PlateauState;

struct ampc_runtime {
  const ampc_program *program;
  Device *device;
  char *space[AMPC_SPACE_COUNT]; /* NULL where the program uses none */
  char *input;           /* the memory of INPUT, all halves; space[AMPC_INPUT] is the current one */
  int64_t input_step;    /* bytes from one half to the next */
  BoundCommand *bound;   /* of all steps, one after the other */
  uint32_t *first_bound; /* of step_key(block, variant); one more for the end */
  void **addresses;      /* of all operands, in the order of `bound` */
  void **moved;          /* room for those of one command in a later iteration */
  uint32_t n_bound, n_addresses, most_operands;
  const char *called; /* the product or convolution that runs: "fc1_linear", "&fc1_linear" */
  bool *given;        /* one a setting: by ampc_set */
  bool *rehearsed;    /* one a block: see rehearse() */
  Patience patience;
  PlateauState *plateau; /* one a plateau of the program */
  bool first, closes;    /* what ampc_state has of them */
  unsigned call, calls;  /* what ampc_state has of it; of ampc_infer so far */
  bool preparing;        /* products and convolutions that steps call are prepared; nothing runs */
  uint32_t last_variant; /* of the block of the last step */
  ampc_status failed;    /* of the first call that failed in a step */
  char failure[ERROR_TEXT];
};

/* Numbers all variants of all blocks. */
static inline uint32_t step_key(uint32_t block, uint32_t variant)
{
  return AMPC_MAX_VARIANTS * block + variant;
}

/* ---- runtime.c ---- */

/* STATE as it is before the first step, but for the settings. */
/* Where setting i lies in STATE. */
ampc_ref runtime_setting_place(const ampc_program *p, uint32_t i);
ampc_status runtime_reset_state(ampc_runtime *rt, uint64_t seed);
/* A setting as kernels read it; writing one is no ampc_set: it is not given by anybody. */
ampc_status runtime_read_setting(ampc_runtime *rt, uint32_t i, float *out);
ampc_status runtime_write_setting(ampc_runtime *rt, uint32_t i, double value);
/* STATE as it is after the calls so far, later and without waiting: see Device.look. `to` has room
 * for the whole space. */
ampc_status runtime_look(ampc_runtime *rt, uint32_t slot);
ampc_status runtime_looked(ampc_runtime *rt, uint32_t slot, bool wait, void *to, bool *out_there);

/* What follows is batch `call` of an evaluation, or that call of an infer block, and draws its own
 * random numbers. Asynchronous; writes only what changes. */
ampc_status runtime_set_call(ampc_runtime *rt, int64_t call);

/* What follows brings a batch: space[AMPC_INPUT] is the half for it. */
ampc_status runtime_turn_input(ampc_runtime *rt);
ampc_status runtime_bring(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes);

/* ---- state/averages.c ---- */

/* Averages of weights are the weights; nothing where the program has none. */
ampc_status averages_begin(ampc_runtime *rt);
/* Those that a checkpoint of ours has at `path`, whatever else stands in it. */
ampc_status averages_load(ampc_runtime *rt, const char *path);

/* ---- commands.c ---- */

/* Checks and binds the command lists of the program, which steps that are functions lack, and
 * prepares; such functions are called for that. */
ampc_status commands_create(ampc_runtime *rt);
void commands_free(ampc_runtime *rt);
/* Prepares what the command lists of a program ask the device for. */
ampc_status commands_prepare(Device *d, const ampc_program *p);
void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant);
