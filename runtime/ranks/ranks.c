/* Ranks: joining and leaving, and the calls, as far as they do not wait (wait.c). */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "load.h"
#include "runtime/base/signals.h"
#include "common/clock.h"
#include "common/processors.h"
#include "team.h"

enum {
  START = 300, /* seconds in which all ranks must have started; ranks_patience may be longer */
  LEAVE = 60,  /* seconds in which all ranks must have left, once all want to */
  ABORT = 10,  /* seconds in which the launcher must have ended the ranks */
  SPEAK = 5    /* seconds that a silent rank gives the one that prints the message */
};
static const double pass_on = 0.3; /* seconds that the launcher gets to pass on the message */

/* ---- calls of MPI that cannot be asked, but only wait ---- */

/* Ends the process if a call lasts too long. */
typedef struct Guard {
  pthread_t thread;
  sem_t over;
  double seconds;
  ampc_status status; /* of the process */
  const char *text;   /* NULL: says nothing */
  bool runs;
} Guard;

static void *guard(void *context)
{
  Guard *g = context;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (time_t)g->seconds;
  end.tv_nsec = 0;
  int failed;
  while ((failed = sem_timedwait(&g->over, &end)) != 0 && errno == EINTR) {}
  if (failed && g->text) fprintf(stderr, "error: %s %.0f s\n", g->text, g->seconds);
  if (failed) _exit((int)g->status);
  return NULL;
}

static void guard_begin(Guard *g, double seconds, ampc_status status, const char *text)
{
  *g = (Guard){.seconds = seconds, .status = status, .text = text};
  sem_init(&g->over, 0, 0);
  g->runs = signals_thread(&g->thread, guard, g) == 0;
}

static void guard_end(Guard *g)
{
  sem_post(&g->over);
  if (g->runs) pthread_join(g->thread, NULL);
  sem_destroy(&g->over);
}

/* ---- joining ---- */

static const char *begin(Team *t)
{
  Guard g;
  guard_begin(&g, team_patience(0) > START ? team_patience(0) : START, AMPC_RUN_FAILED,
              "the run ends, because not all ranks have started within");
  const char *why = t->engine->begin(&t->ranks.rank, &t->ranks.size);
  guard_end(&g);
  return why;
}

/* Where a rank runs. */
typedef struct Seat {
  char host[NAME_ROOM], kernel[40]; /* kernel: differs between machines that have one name */
  unsigned char mask[AMPC_PROCESSORS / 8];
} Seat;

static void own_seat(Seat *out)
{
  memset(out, 0, sizeof *out);
  gethostname(out->host, sizeof out->host - 1);
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (f && !fgets(out->kernel, sizeof out->kernel, f)) out->kernel[0] = 0;
  if (f) fclose(f);
  ampc_processors_get(out->mask);
}

/* Counts the ranks of this host, and shares out its processors to those that have the same. */
static void sit_down(Team *t, const Seat *seats)
{
  const Seat *own = &seats[t->ranks.rank];
  unsigned same = 0, index = 0;
  for (int i = 0; i < t->ranks.size; i++) {
    const Seat *s = &seats[i];
    snprintf(t->name[i], NAME_ROOM, "rank %d on %.64s", i, s->host);
    if (memcmp(s->host, own->host, sizeof s->host) ||
        memcmp(s->kernel, own->kernel, sizeof s->kernel))
      continue;
    if (i < t->ranks.rank) t->ranks.local++;
    t->ranks.locals++;
    if (memcmp(s->mask, own->mask, sizeof s->mask)) continue;
    if (i < t->ranks.rank) index++;
    same++;
  }
  if (same > 1) ampc_processors_take(index, same);
}

static ampc_status join(Team *t)
{
  size_t size = (size_t)t->ranks.size;
  Seat *seats = calloc(size, sizeof *seats);
  t->name = calloc(size, sizeof *t->name);
  ampc_status status = AMPC_OK;
  if (!seats || !t->name) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %zu ranks", size);
  for (size_t i = 0; i < size && !status; i++) snprintf(t->name[i], NAME_ROOM, "rank %zu", i);
  if (!status) own_seat(&seats[t->ranks.rank]);
  if (!status) status = ranks_gather(&t->ranks, seats, sizeof *seats);
  if (!status) sit_down(t, seats);
  free(seats);
  t->ranks.sent = 0;
  t->ranks.waited = 0;
  return status;
}

/* Refuses a launcher that belongs to another MPI: each process would be alone. */
static ampc_status check_size(const Team *t, const Started *s)
{
  if (t->ranks.rank == s->rank && t->ranks.size > 1 && (!s->size || s->size == t->ranks.size))
    return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "the launcher started rank %d (%s), but %s sees rank %d of %d: use the mpirun of "
      "this MPI, or build ampc with the MPI of that launcher",
      s->rank, s->variable, t->library, t->ranks.rank, t->ranks.size);
}

static void leave(Team *t)
{
  free(t->name);
  free(t);
}

/* Connects this process with the other ranks. What signals do must not change: MPICH takes SIGUSR1
 * when it starts, and its library UCX takes SIGHUP already when it is loaded. */
static ampc_status connect_all(Team *t, const Started *s)
{
  enum { SIGNALS = 32 };
  struct sigaction before[SIGNALS];
  const char *why = NULL;
  for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &before[i]);
  ampc_status status = load_engine(s, &t->engine);
  if (!status) {
    t->engine->name(t->library, sizeof t->library);
    why = begin(t);
  }
  for (int i = 1; i < SIGNALS; i++) sigaction(i, &before[i], NULL);
  if (status) return status;
  return why ? ampc_fail(AMPC_RUN_FAILED, "%s: %s", t->library, why) : check_size(t, s);
}

bool ranks_started(void)
{
  return load_started().variable != NULL;
}

ampc_status ranks_open(Ranks **out)
{
  const Started s = load_started();
  *out = NULL;
  if (!s.variable) return AMPC_OK;
  Team *t = calloc(1, sizeof *t);
  if (!t) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  t->busy = true;
  ampc_status status = connect_all(t, &s);
  if (!status) {
    *out = &t->ranks;
    return join(t);
  }
  team_silence(!s.first); /* all processes of this host fail alike */
  if (!s.first) sleep(1); /* the launcher may end all when the first one ends */
  leave(t);
  return status;
}

/* ---- leaving ---- */

/* Ends all ranks; MPI ends this process, too. The launcher loses text that it has not passed on by
 * then, so the rank that prints the message waits a little; the others let it end the run. */
static _Noreturn void end_all(Team *t, ampc_status status)
{
  Guard g;
  fflush(NULL);
  for (double end = seconds_now() + (ranks_silent() ? SPEAK : pass_on); seconds_now() < end;)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  guard_begin(&g, ABORT, status, NULL);
  t->engine->abort((int)status);
  _exit((int)status);
}

void ranks_close(Ranks *r, ampc_status status)
{
  if (!r) return;
  Team *t = team_of(r);
  Guard g;
  if (t->alike)
    t->failed = false;
  else if (status)
    end_all(t, status);
  char *all = calloc((size_t)r->size, 1);
  ranks_busy(r);
  if (!all || ranks_gather(r, all, 1)) { /* nobody leaves before all want to */
    if (!ranks_silent()) fprintf(stderr, "error: %s\n", ampc_last_error());
    end_all(t, AMPC_RUN_FAILED);
  }
  free(all);
  guard_begin(&g, LEAVE, AMPC_RUN_FAILED, "not all ranks have left within");
  t->engine->end();
  guard_end(&g);
  leave(t);
}

const char *ranks_name(const Ranks *r, int rank)
{
  return ((const Team *)(const void *)r)->name[rank];
}

const char *ranks_library(const Ranks *r)
{
  return ((const Team *)(const void *)r)->library;
}

/* ---- calls ---- */

/* Begins a call in which this rank sends `sent` bytes. */
static ampc_status begin_call(Team *t, CallKind kind, int64_t bytes, int64_t sent)
{
  if (t->failed) return ampc_fail(AMPC_RUN_FAILED, "the ranks are no longer connected");
  t->call = (Call){.kind = kind, .bytes = bytes};
  t->ranks.sent += sent;
  return AMPC_OK;
}

/* Waits, unless the request could not be made. */
static ampc_status finish(Team *t, const char *why, EngineRequest request)
{
  return why ? team_broken(t, why) : team_await(t, request);
}

/* Returns how many of the bytes after `done` go into one message. */
static int portion(const Team *t, int64_t bytes, int64_t done)
{
  return bytes - done < t->engine->most ? (int)(bytes - done) : t->engine->most;
}

ampc_status ranks_gather(Ranks *r, void *all, int64_t bytes)
{
  Team *t = team_of(r);
  EngineRequest request;
  ampc_status status = begin_call(t, CALL_GATHER, bytes, bytes * (r->size - 1));
  for (int64_t at = 0; at < bytes && !status; at += t->engine->most) {
    const char *why = t->engine->gather((char *)all + at, bytes, portion(t, bytes, at), &request);
    status = finish(t, why, request);
  }
  return status;
}

ampc_status ranks_swap(Ranks *r, const void *out, void *in, int64_t bytes)
{
  Team *t = team_of(r);
  EngineRequest request;
  ampc_status status = begin_call(t, CALL_SWAP, bytes, bytes * (r->size - 1));
  for (int64_t at = 0; at < bytes && !status; at += t->engine->most) {
    const char *why = t->engine->swap((const char *)out + at, (char *)in + at, bytes,
                                      portion(t, bytes, at), &request);
    status = finish(t, why, request);
  }
  return status;
}

ampc_status ranks_send(Ranks *r, int to, const void *from, int64_t bytes)
{
  Team *t = team_of(r);
  EngineRequest request;
  ampc_status status = begin_call(t, CALL_SEND, bytes, bytes);
  for (int64_t at = 0; at < bytes && !status; at += t->engine->most) {
    const char *why =
        t->engine->send(to, TAG, (const char *)from + at, portion(t, bytes, at), &request);
    status = finish(t, why, request);
  }
  return status;
}

ampc_status ranks_receive(Ranks *r, int from, void *to, int64_t bytes)
{
  Team *t = team_of(r);
  EngineRequest request;
  ampc_status status = begin_call(t, CALL_RECEIVE, bytes, 0);
  for (int64_t at = 0; at < bytes && !status; at += t->engine->most) {
    const char *why =
        t->engine->receive(from, TAG, (char *)to + at, portion(t, bytes, at), &request);
    status = finish(t, why, request);
  }
  return status;
}
