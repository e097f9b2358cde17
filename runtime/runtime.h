/* The internals of a runtime, for the runtime's own files. */
#pragma once
#include "ampc_rt.h"
#include "device.h"
#include "profile.h"
#include "ranks/exchange.h"
#include "common/clock.h"

enum { ERROR_TEXT = 512, PART_ROOM = 80 };

/* A command with the addresses of its operands, computed once: a step only makes calls. */
typedef struct BoundCommand {
  const ampc_command *command;
  void **at;     /* addresses in the first iteration of its list */
  uint32_t body; /* AMPC_REPEAT: number of bound commands of its body, which follow this command */
} BoundCommand;

/* The state of an early stop; a checkpoint has it if `any` is true. */
typedef struct Patience {
  bool any; /* there was an evaluation since the block began */
  double best;
  int64_t stale; /* evaluations since the best one */
  int64_t step;  /* step of the last counted evaluation */
} Patience;

/* The state of a plateau; a checkpoint has it if `any` is true. */
typedef struct PlateauState {
  bool any;   /* there was an evaluation; `start` is the setting before the first one */
  bool found; /* an evaluation was finite, so `best` is set */
  double start, best;
  int64_t bad, cooling; /* evaluations: bad: in a row, none better; cooling: left of the cooldown */
  int64_t step;         /* step of the last counted evaluation */
} PlateauState;

typedef struct ampc_deferred { /* arguments of ampc_do_launch; n_args 0: none */
  uint32_t kernel, grid, block, n_args;
  void *args[AMPC_MOST_DEFERRED];
} ampc_deferred;

struct ampc_runtime {
  const ampc_program *program;
  Device *device;
  Members members;
  char *base[AMPC_SPACE_COUNT];    /* NULL: the program does not use this space */
  int64_t apart[AMPC_SPACE_COUNT]; /* bytes from one member's space to the next; 0: shared */
  char *space[AMPC_SPACE_COUNT];   /* spaces of the member at work, and its half of INPUT */
  uint32_t member, part; /* the member at work, counted from 0 in this process; the part of its step
                            between two exchanges */
  bool *unset;           /* ampc_infer_open: parameters without initial values so far; else NULL */
  bool cache_taken;      /* by the first sequence */
  bool moved_spaces;     /* any of `instead` is set */
  char *instead[AMPC_SPACE_COUNT]; /* of CACHE, INPUT, WORK: addresses that steps use instead of
                                      `base`, such as the CACHE of the sequence at work, or NULL */
  struct Rows *rows;               /* infer/rows.h; NULL: not used so far */
  int half;                        /* half of INPUT */
  int64_t input_step;              /* bytes from one half to the next */
  double waited;                   /* seconds that train blocks have waited for data */
  uint32_t *variants;              /* for each member: the variant of its next step */
  bool collects;                   /* all ranks read together, for a checkpoint */
  uint32_t *next;                  /* for each member: the next command of its step, in its list */
  int64_t *firsts;                 /* for each member: ampc_state.first_sample as last written */
  int64_t sent;                    /* bytes that steps have sent to other ranks */
  int64_t step_sent;               /* by the step whose calls are being made */
  int64_t *sent_by; /* by key: by that step. A device may repeat a step without these calls */
  int64_t *places;  /* for each member: offset of the range that it exchanges now */
  char *stage;      /* scratch of exchanges: the stage, then what exchange_run() needs */
  int64_t stage_bytes, scratch_bytes;
  BoundCommand *bound;   /* commands of all steps, one step after the other */
  uint32_t *first_bound; /* index in `bound`, by step_key(); one more entry for the end */
  void **addresses;      /* addresses of all operands, in the order of `bound` */
  void **moved;          /* space for the addresses of one command in a later iteration */
  uint32_t n_bound, n_addresses, most_operands;
  const char *called;         /* product or convolution that runs: "fc1_linear", "&fc1_linear" */
  bool *given;                /* for each setting: ampc_set has set it */
  bool *rehearsed;            /* for each block: see rehearse() */
  uint64_t given_hash;        /* of the weights of ampc_param.given, as loaded; 0: none */
  char other_part[PART_ROOM]; /* the part that the loaded checkpoint was trained on; "": the
                                 program's */
  bool *measured;             /* for each block: see statistics_fill() */
  int64_t *bodies;  /* for each block: batches that ampc_loop_run has run. An evaluation begins
                       again when its metrics are read */
  uint32_t trained; /* the train block that ampc_loop_run ran last */
  Patience patience;
  PlateauState *plateau;  /* for each plateau of the program */
  bool first, closes;     /* values last written to ampc_state */
  unsigned call, calls;   /* call: as last written to ampc_state; calls: of ampc_infer so far */
  ampc_deferred deferred; /* the launch that the next attention may need */
  bool preparing;         /* steps are called to prepare their library operations; nothing runs */
  uint32_t last_variant;  /* variant of the last step */
  ampc_status failed;     /* status of the first call that failed in a step */
  char failure[ERROR_TEXT];
};

/* Runs a step of members with different shares; `variants` has one variant for each member. */
ampc_status runtime_run_step(ampc_runtime *rt, uint32_t block, const uint32_t *variants);
/* ampc_create for a process that is one of several ranks; `ranks` may be NULL. */
ampc_status runtime_create(const ampc_program *program, const char *device, Ranks *ranks,
                           ampc_runtime **out);

/* Returns the number of a variant among all variants of all blocks. With members, a body that is
 * not the last one of its step has fewer exchanges. So it counts as another variant, whose number
 * is larger by step_key(n_blocks, 0). */
static inline uint32_t step_key(uint32_t block, uint32_t variant)
{
  return AMPC_MAX_VARIANTS * block + variant;
}

/* ---- runtime.c ---- */

/* Returns the place of setting i in STATE. */
ampc_ref runtime_setting_place(const ampc_program *p, uint32_t i);
/* Sets STATE, except for the settings, to what it is before the first step. */
ampc_status runtime_reset_state(ampc_runtime *rt, uint64_t seed);
/* Reads or writes a setting in STATE. The write does not mark it as given; ampc_set does. */
ampc_status runtime_read_setting(ampc_runtime *rt, uint32_t i, float *out);
ampc_status runtime_write_setting(ampc_runtime *rt, uint32_t i, double value);
/* Reads STATE, as all calls so far leave it, without waiting: see DeviceOps.look. `to` must hold
 * the whole space. */
ampc_status runtime_look(ampc_runtime *rt, uint32_t slot);
ampc_status runtime_looked(ampc_runtime *rt, uint32_t slot, bool wait, void *to, bool *out_there);

/* Sets the number of the next step: batch `call` of an evaluation, or call `call` of an infer
 * block. Random numbers depend on it. Asynchronous; writes only changes. */
ampc_status runtime_set_call(ampc_runtime *rt, int64_t call);

/* Points space[AMPC_INPUT] to the half that the next batch is copied to. */
ampc_status runtime_turn_input(ampc_runtime *rt);
ampc_status runtime_bring(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes);
/* The same for memory of the device: DeviceOps.bring_on. */
ampc_status runtime_bring_on(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes,
                             void *stream);

/* Notes for the profile that a command begins: DeviceOps.mark. */
void runtime_mark(ampc_runtime *rt, int64_t command);
/* A span of the host: profile_since(rt, kind, which, profile_begin(rt)). Without a profile the
 * clock is not read. */
static inline double profile_begin(const ampc_runtime *rt)
{
  return rt->device->profile ? seconds_now() : 0;
}
static inline void profile_since(ampc_runtime *rt, TimeKind kind, uint32_t which, double begin)
{
  Profile *p = rt->device->profile;
  if (p) time_add(&p->host, (TimeSpan){begin, seconds_now(), kind, which});
}

/* ---- train/loop.c ---- */

/* Sets the length of schedules without `steps` for a program's own loop: ampc_set_lengths. */
ampc_status loop_set_lengths(ampc_runtime *rt);

/* ---- state/init.c ---- */

/* Sets the parameters of copies to those of their originals. keep: by parameter, copies that stay
 * as they are; NULL: none. */
ampc_status copies_begin(ampc_runtime *rt, const bool *keep);
/* ampc_init_params() in two parts: parameters that are loaded between the calls are not
 * initialized. */
ampc_status init_begin_deferred(ampc_runtime *rt, uint64_t seed);
ampc_status init_end_deferred(ampc_runtime *rt, uint64_t seed);

/* ---- state/averages.c ---- */

/* Sets the averages of the weights to the weights. Does nothing if the program has no averages. */
ampc_status averages_begin(ampc_runtime *rt);
/* Loads only the averages from a checkpoint of ampc at `path`. */
ampc_status averages_load(ampc_runtime *rt, const char *path);

/* ---- commands.c ---- */

/* Checks the program's command lists, binds them to addresses and prepares the device for them.
 * Steps that are functions have no list; they are called once to prepare the device. */
ampc_status commands_create(ampc_runtime *rt);
void commands_free(ampc_runtime *rt);
/* Prepares the device for the command lists of a program. */
ampc_status commands_prepare(Device *d, const ampc_program *p);
/* Runs the commands of the member at work from number *at on, up to the end of the exchanges that
 * follow; sets *at to the next command. Returns false if none is left. */
bool commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant, uint32_t *at);
