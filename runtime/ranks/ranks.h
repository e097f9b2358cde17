/* The processes that train together: ranks. MPI starts them and connects them; mpi.c is the only
 * file that calls MPI, and a library of its own, which is loaded only in a process that was started
 * as a rank.
 *
 * All ranks make the same calls in the same order, from one thread at a time. A call returns when
 * its part is done. It fails if another rank has ended, or does not take part within the time that
 * ranks_patience sets; the message names the ranks that are missing and their hosts. */
#pragma once
#include "runtime/plan/ampc_values.h"

typedef struct Ranks {
  int rank, size;    /* number of this process, from 0; number of processes */
  int local, locals; /* the same, among the ranks of this host */
} Ranks;

/* Joins the other ranks. *out is NULL if the process was not started as a rank. */
ampc_status ranks_open(Ranks **out);
/* Leaves. If `status` is not AMPC_OK, ends all ranks with that exit status. NULL does nothing. */
void ranks_close(Ranks *r, ampc_status status);
/* Returns "rank 2 on node7"; valid as long as r. */
const char *ranks_name(const Ranks *r, int rank);
/* `all` has `size` rows of `bytes` bytes. The row of each rank goes to all others. */
ampc_status ranks_gather(Ranks *r, void *all, int64_t bytes);
/* `out` and `in` have `size` pieces of `bytes` bytes. Piece p of `out` goes to rank p, and piece p
 * of `in` comes from there. */
ampc_status ranks_swap(Ranks *r, const void *out, void *in, int64_t bytes);
/* Only two ranks take part: one sends, the other one receives. */
ampc_status ranks_send(Ranks *r, int to, const void *from, int64_t bytes);
ampc_status ranks_receive(Ranks *r, int from, void *to, int64_t bytes);
/* Refuses ranks whose texts differ. `what` names the text: "the job". The message, which is the
 * same on all ranks, names two ranks and the first line of each text that differs. */
ampc_status ranks_same(Ranks *r, const char *what, const char *text);
/* Tells how long the last step took, in seconds. A rank that does not take part within the longer
 * of 60 s (or --rank-timeout) and 20 median steps is missing. */
void ranks_step(Ranks *r, double seconds);
/* Call it again and again while this process waits for its device, which may wait for other ranks.
 * `waited`: seconds so far. It fails, with a message that names the ranks, if another rank has
 * ended, or after the time of ranks_step. Until then it is cheap. */
ampc_status ranks_late(Ranks *r, double waited);
