/* Measured times of a run, for `amp profile`. While Device.profile points to a Profile, the runtime
 * appends a span for each command of a step, and for each other thing that takes the time of the
 * training loop. The caller owns the profile and may read or clear it between two steps. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ampc_rt.h"
#include "nvtx.h"

typedef enum TimeKind {
  TIME_command, /* which: index in ampc_runtime.bound */
  TIME_step,    /* one run of a command list; which: step_key() */
  TIME_load,    /* the host waits for the loader */
  TIME_upload,  /* the host copies a batch to INPUT */
  TIME_wait,    /* the host waits for the device; of a thread: for the other threads */
  TIME_share    /* a thread of the CPU computes its share of a command */
} TimeKind;

typedef struct TimeSpan {
  double begin, end; /* seconds_now() */
  TimeKind kind;
  uint32_t which;
} TimeSpan;

enum { PROFILE_LINE = 64, PROFILE_THREADS = 256 };

typedef struct TimeSpans {
  _Alignas(PROFILE_LINE) TimeSpan *at; /* in the order of time; each list has a single writer */
  size_t n, room;
  bool lost; /* memory ran out: spans are missing */
} TimeSpans;

typedef struct RangeName { /* "h.0.attn"; "h_0_attn_attention, gpt2.amp:26" */
  const char *layer, *command;
} RangeName;

typedef struct Profile {
  TimeSpans host;     /* steps, and inside or between them loads, uploads and waits; no commands */
  TimeSpans commands; /* each command ends where the next one begins. On a GPU: Note [GPU times] */
  /* CPU only. thread[0]: spans in which the training loop's thread waits for the pool, TIME_wait;
   * thread[i]: spans in which pool thread i computes, TIME_share */
  TimeSpans thread[PROFILE_THREADS];
  unsigned threads; /* CPU: number of threads; GPU: 0 */
  const Nvtx *nvtx; /* the tool to which ranges are reported; NULL: none */
  /* names: of layers and commands, by index in ampc_runtime.bound; range: that of the running
   * command, or NULL */
  const RangeName *names, *range;
} Profile;

Profile *profile_create(void); /* NULL: out of memory */
void profile_free(Profile *p); /* NULL is allowed */
void profile_clear(Profile *p);
bool profile_lost(const Profile *p);

/* Appends spans to *p from the next step on; p NULL: stops. Waits for the device first. */
ampc_status runtime_profile(ampc_runtime *rt, Profile *p);

void time_add(TimeSpans *s, TimeSpan span);
/* Notes that `command` begins now, and that the command before it ends. MARK_END: none begins. */
enum { MARK_END = -1 };
void profile_mark(Profile *p, int64_t command, double now);
/* Does the same for the ranges of a tool. */
void profile_ranges(Profile *p, int64_t command);
