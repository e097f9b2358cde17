/* The processes that train together: ranks. MPI starts them and connects them; mpi.c is the only
 * file that calls MPI, and a library of its own, which is loaded only in a process that was started
 * as a rank.
 *
 * All ranks make the same calls in the same order, from one thread at a time. A call returns when
 * its part is done. It fails if another rank has not taken part in time (Note [patience] in
 * wait.c); the message names the ranks that are missing and their hosts. After a failure all calls
 * fail, and ranks_close ends all ranks. */
#pragma once
#include "runtime/plan/ampc_values.h"

typedef struct Ranks {
  int rank, size;    /* number of this process, from 0; number of processes, at least 2 */
  int local, locals; /* the same, among the ranks of this host */
  int64_t sent;  /* bytes that this rank has sent to other ranks, as the calls below define it */
  double waited; /* seconds in the calls below */
} Ranks;

/* Whether the process was started as one of several ranks. */
bool ranks_started(void);
/* Joins the other ranks, and takes a part of the processors that the ranks of this host share: call
 * it before threads are started. *out is NULL if the process was not started as one of several
 * ranks. After a failure *out may be set; it then needs ranks_close, too. */
ampc_status ranks_open(Ranks **out);
/* Leaves. If `status` is not AMPC_OK, ends all ranks with that exit status: print the message
 * first, unless ranks_silent(). NULL does nothing. */
void ranks_close(Ranks *r, ampc_status status);
/* Whether another rank prints the message of ampc_last_error: all ranks have failed for the same
 * reason. May be called after ranks_open has failed. */
bool ranks_silent(void);
/* Returns "rank 2 on node7"; valid as long as r. */
const char *ranks_name(const Ranks *r, int rank);
/* Returns "MPICH 4.0.2"; valid as long as r. */
const char *ranks_library(const Ranks *r);

/* `all` has `size` rows of `bytes` bytes. The row of each rank goes to all others. */
ampc_status ranks_gather(Ranks *r, void *all, int64_t bytes);
/* `out` and `in` have `size` pieces of `bytes` bytes. Piece p of `out` goes to rank p, and piece p
 * of `in` comes from there. */
ampc_status ranks_swap(Ranks *r, const void *out, void *in, int64_t bytes);
/* Only two ranks take part: one sends, the other one receives. */
ampc_status ranks_send(Ranks *r, int to, const void *from, int64_t bytes);
ampc_status ranks_receive(Ranks *r, int from, void *to, int64_t bytes);

/* For waits outside of these calls, such as that for a GPU's exchange: call it again and again. It
 * fails if other ranks are missing; `waited` seconds have passed. */
ampc_status ranks_wait_on(Ranks *r, double waited);

/* Refuses ranks whose texts differ. `what` names the text: "the job". The message, which is the
 * same on all ranks, names two ranks and the first line of each text that differs. */
ampc_status ranks_same(Ranks *r, const char *what, const char *text);
/* Lets all ranks fail if one has. Each gives the status of its own work, with its message in
 * ampc_last_error. All ranks get the status and the message of the first rank that failed. If r is
 * NULL, returns `status`. */
ampc_status ranks_agree(Ranks *r, ampc_status status);

/* Sets how long ranks wait for each other (--rank-timeout), in seconds; may be called before
 * ranks_open. */
void ranks_patience(double seconds);
/* Tells how long the last step took, in seconds. */
void ranks_step(Ranks *r, double seconds);
/* Says that ranks may be busy for long, each on its own: until the next ranks_step, the others wait
 * at least 10 minutes. It is so from the start. */
void ranks_busy(Ranks *r);
