/* Waiting for other ranks, and what happens if they do not come.
 *
 * Note [patience]
 * A rank may be stopped or cut off, and MPI does not notice it. So no call of MPI here waits: each
 * wait asks again and again, up to a deadline. The deadline is the longer of 60 s (ranks_patience)
 * and 20 median steps; before the first step, and after ranks_busy, it is at least 10 minutes. Time
 * in which this process itself was stopped does not count.
 * At the deadline the rank calls the roll: it sends a message to every other rank. A rank that
 * hears it while it waits joins at once. Those that send nothing within ROLL seconds are missing.
 * Then the run ends, also if a missing rank comes late. The lowest rank that is present prints the
 * message, or that to which MPI has told an error.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/clock.h"
#include "team.h"

enum { SPINS = 1000, MEDIANS = 20, ROLL = 3, MOST_NAMED = 4 };
static const double wait_at_least = 60, wait_busy = 600;        /* seconds */
static const double yield_until = 0.002, nap_short_until = 0.5; /* seconds of a wait */
static const double listen_from = 0.5;

static double patience; /* 0: not set */
static bool silent;

void ranks_patience(double seconds)
{
  patience = seconds;
}

double team_patience(double otherwise)
{
  return patience > 0 ? patience : otherwise;
}

bool ranks_silent(void)
{
  return silent;
}

void team_silence(bool is_silent)
{
  silent = is_silent;
}

/* ---- the deadline ---- */

void ranks_step(Ranks *r, double seconds)
{
  Team *t = team_of(r);
  t->time[t->steps++ % TIMES] = seconds;
  t->busy = false;
}

void ranks_busy(Ranks *r)
{
  team_of(r)->busy = true;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the median time of the last steps; 0 before the first one. */
static double median(const Team *t)
{
  double sorted[TIMES];
  size_t n = t->steps < TIMES ? (size_t)t->steps : TIMES;
  memcpy(sorted, t->time, sizeof sorted);
  qsort(sorted, n, sizeof *sorted, compare);
  return n ? sorted[n / 2] : 0;
}

/* Whether this rank has waited to its deadline. */
static bool too_long(const Team *t)
{
  double waited = t->call.waited;
  return waited > team_patience(wait_at_least) && waited > MEDIANS * median(t) &&
         !(t->busy && waited < wait_busy);
}

/* ---- the roll call ---- */

typedef struct Roll { /* of one other rank */
  Call call;
  EngineRequest sent, heard, over;
  bool here;
} Roll;

static void nap(long ns)
{
  nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Asks all ranks; returns after ROLL seconds, or when all have answered. Errors of the engine are
 * left out: a rank that cannot be asked is missing. */
static void call_roll(Team *t, Roll *roll)
{
  int size = t->ranks.size, missing = size - 1, bytes = (int)sizeof t->call;
  roll[t->ranks.rank] = (Roll){.call = t->call, .here = true};
  for (int i = 0; i < size; i++) {
    if (roll[i].here) continue;
    t->engine->receive(i, TAG_ROLL, &roll[i].call, bytes, &roll[i].heard);
    t->engine->send(i, TAG_ROLL, &t->call, bytes, &roll[i].sent);
  }
  for (double end = seconds_now() + ROLL; missing && seconds_now() < end; nap(1000000))
    for (int i = 0; i < size; i++) {
      bool done = false;
      if (roll[i].here || t->engine->test(&roll[i].heard, &done) || !done) continue;
      roll[i].here = true;
      missing--;
    }
  for (int i = 0; i < size; i++) { /* the last answers leave this process */
    bool done;
    if (i != t->ranks.rank) t->engine->test(&roll[i].sent, &done);
    if (!roll[i].here) t->engine->send(i, TAG_OVER, &t->call, bytes, &roll[i].over);
  }
}

/* Writes "rank 2 on node7 and rank 3 on node7". */
static void list_missing(const Team *t, const Roll *roll, int missing, char out[MESSAGE_ROOM])
{
  size_t used = 0;
  int named = 0;
  for (int i = 0; i < t->ranks.size && named < MOST_NAMED; i++) {
    if (roll[i].here) continue;
    const char *between = named == 0 ? "" : named + 1 == missing ? " and " : ", ";
    used += (size_t)snprintf(out + used, MESSAGE_ROOM - used, "%s%s", between, t->name[i]);
    named++;
  }
  if (named < missing) snprintf(out + used, MESSAGE_ROOM - used, " and %d more", missing - named);
}

/* Writes "rank 2 on node7 in a swap of 400 bytes". */
static void tell_call(const Team *t, const Roll *roll, int rank, char out[MESSAGE_ROOM])
{
  static const char *const kinds[CALLS] = {"gather", "swap", "send", "receive", "device's call"};
  const Call *c = &roll[rank].call;
  snprintf(out, MESSAGE_ROOM, "%s in a %s of %lld bytes", t->name[rank], kinds[c->kind % CALLS],
           (long long)c->bytes);
}

/* All answer: the network is too slow, or ranks wait for each other in different calls. */
static ampc_status tell_calls(const Team *t, const Roll *roll, double waited)
{
  char first[MESSAGE_ROOM], other[MESSAGE_ROOM] = "";
  tell_call(t, roll, 0, first);
  for (int i = t->ranks.size - 1; i > 0; i--)
    if (roll[i].call.kind != roll[0].call.kind || roll[i].call.bytes != roll[0].call.bytes)
      tell_call(t, roll, i, other);
  return ampc_fail(
      AMPC_RUN_FAILED,
      "all ranks answer, but data has not arrived for %.0f s, after %lld steps: %s%s%s; "
      "the run ends. A longer --rank-timeout waits longer",
      waited, (long long)t->steps, first, *other ? ", " : "", other);
}

/* Fails with a message that says who is missing. `why`: see end_of_patience. */
static ampc_status tell(const Team *t, const Roll *roll, const char *why)
{
  char names[MESSAGE_ROOM] = "";
  int missing = 0, speaker = t->ranks.rank;
  double waited = 0;
  for (int i = t->ranks.size - 1; i >= 0; i--) {
    const Call *c = &roll[i].call;
    if (!roll[i].here) missing++;
    if (roll[i].here && c->broken >= roll[speaker].call.broken) speaker = i;
    if (roll[i].here && c->waited > waited) waited = c->waited;
  }
  team_silence(speaker != t->ranks.rank);
  list_missing(t, roll, missing, names);
  if (why)
    return ampc_fail(AMPC_RUN_FAILED, "%s: %s: %s%s%s", t->name[t->ranks.rank], t->library, why,
                     missing ? "; missing: " : "", names);
  if (!missing) return tell_calls(t, roll, waited);
  return ampc_fail(AMPC_RUN_FAILED,
                   "%s %s not answered for %.0f s, after %lld steps; the run ends. A longer "
                   "--rank-timeout waits longer",
                   names, missing == 1 ? "has" : "have", waited, (long long)t->steps);
}

/* Calls the roll and fails. `why`: what MPI says; NULL: the deadline is over, or another rank calls
 * the roll. */
static ampc_status end_of_patience(Team *t, const char *why)
{
  static Roll *roll; /* never freed, because MPI may write to it */
  char text[MESSAGE_ROOM];
  bool late = false;
  t->failed = true;
  roll = calloc((size_t)t->ranks.size, sizeof *roll);
  if (!roll) return ampc_fail(AMPC_RUN_FAILED, "out of memory while other ranks do not answer");
  t->call.broken = why != NULL;
  snprintf(text, sizeof text, "%s", why ? why : "");
  call_roll(t, roll);
  t->engine->heard(TAG_OVER, &late);
  if (!late) return tell(t, roll, why ? text : NULL);
  team_silence(true);
  return ampc_fail(AMPC_RUN_FAILED, "%s has answered too late", t->name[t->ranks.rank]);
}

ampc_status team_broken(Team *t, const char *why)
{
  return end_of_patience(t, why);
}

/* ---- waiting ---- */

/* Lets others compute. Large messages move only while a rank asks, so naps are short at first. */
static void rest(double waited)
{
  if (waited < yield_until)
    sched_yield();
  else
    nap(waited < nap_short_until ? 50000 : 1000000);
}

/* Fails if the present call has waited to its deadline. */
static ampc_status look(Team *t)
{
  bool called = false;
  const char *why = t->call.waited > listen_from ? t->engine->heard(TAG_ROLL, &called) : NULL;
  return why || called || too_long(t) ? end_of_patience(t, why) : AMPC_OK;
}

ampc_status team_await(Team *t, EngineRequest request)
{
  double begin = seconds_now(), last = begin;
  bool done = false;
  ampc_status status = AMPC_OK;
  for (int asked = 0; !status; asked++) {
    const char *why = t->engine->test(&request, &done);
    if (why) return end_of_patience(t, why);
    if (done) break;
    if (asked < SPINS) continue;
    double now = seconds_now();
    t->call.waited += now - last < 1 ? now - last : 1; /* Note [patience]: it was stopped */
    last = now;
    status = look(t);
    if (!status) rest(t->call.waited);
  }
  t->ranks.waited += seconds_now() - begin;
  return status;
}

ampc_status ranks_wait_on(Ranks *r, double waited)
{
  Team *t = team_of(r);
  if (t->failed) return ampc_fail(AMPC_RUN_FAILED, "the ranks are no longer connected");
  t->call = (Call){.kind = CALL_DEVICE, .waited = waited};
  return look(t);
}
