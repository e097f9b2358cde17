/* What each rank of a test does: mpirun -n N check CASE [NUMBER]. run.sh starts it. */
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include "check.h"
#include "common/clock.h"
#include "common/processors.h"
#include "runtime/ranks/exchange.h"

static Ranks *ranks;
static int number; /* the argument of the case */

/* ---- calls ---- */

/* The byte at `i` of what rank `from` sends to rank `to`. */
static unsigned char byte_of(int from, int to, int64_t i)
{
  return (unsigned char)(i * 7 + i / 251 + from * 31 + to * 101);
}

static void fill(unsigned char *at, int from, int to, int64_t bytes)
{
  for (int64_t i = 0; i < bytes; i++) at[i] = byte_of(from, to, i);
}

static void compare(const unsigned char *at, int from, int to, int64_t bytes)
{
  for (int64_t i = 0; i < bytes; i++)
    if (at[i] != byte_of(from, to, i)) {
      CHECK_MSG(false, "byte %lld of %lld from rank %d to %d", (long long)i, (long long)bytes, from,
                to);
      return;
    }
}

static ampc_status check_gather(int64_t bytes)
{
  unsigned char *all = calloc((size_t)ranks->size, (size_t)bytes + 1);
  MUST(all);
  fill(all + ranks->rank * bytes, ranks->rank, 0, bytes);
  ampc_status status = ranks_gather(ranks, all, bytes);
  for (int i = 0; i < ranks->size && !status; i++) compare(all + i * bytes, i, 0, bytes);
  free(all);
  return status;
}

static ampc_status check_swap(int64_t bytes)
{
  unsigned char *out = calloc((size_t)ranks->size, (size_t)bytes + 1);
  unsigned char *in = calloc((size_t)ranks->size, (size_t)bytes + 1);
  MUST(out && in);
  for (int i = 0; i < ranks->size; i++) fill(out + i * bytes, ranks->rank, i, bytes);
  ampc_status status = ranks_swap(ranks, out, in, bytes);
  for (int i = 0; i < ranks->size && !status; i++) compare(in + i * bytes, i, ranks->rank, bytes);
  free(out);
  free(in);
  return status;
}

/* Rank 0 sends to the last rank, which sends back. */
static ampc_status check_send(int64_t bytes)
{
  int last = ranks->size - 1, own = ranks->rank;
  if (own != 0 && own != last) return AMPC_OK;
  unsigned char *at = calloc(1, (size_t)bytes + 1);
  MUST(at);
  if (own == 0) fill(at, 0, last, bytes);
  ampc_status status =
      own == 0 ? ranks_send(ranks, last, at, bytes) : ranks_receive(ranks, 0, at, bytes);
  if (own == last && !status) compare(at, 0, last, bytes);
  if (own == last && !status) status = ranks_send(ranks, 0, at, bytes);
  if (own == 0) memset(at, 0, (size_t)bytes);
  if (own == 0 && !status) status = ranks_receive(ranks, last, at, bytes);
  if (own == 0 && !status) compare(at, 0, last, bytes);
  free(at);
  return status;
}

static ampc_status calls(void)
{
  static const int64_t sizes[] = {0, 1, 7, 999, 1000, 1001, 100003, 300000};
  int64_t others = ranks->size - 1, sent = ranks->sent;
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !status; i++) {
    status = check_gather(sizes[i]);
    if (!status) status = check_swap(sizes[i]);
    sent += 2 * others * sizes[i];
    CHECK(ranks->sent == sent);
    if (!status) status = check_send(sizes[i]);
    sent = ranks->sent;
  }
  CHECK(ranks->waited > 0);
  return status;
}

/* More bytes than an int counts. */
static ampc_status large(void)
{
  int64_t bytes = (1LL << 31) + 12345;
  return check_send(bytes);
}

/* ---- exchanges on the CPU ---- */

enum { APART = 1 << 20 }; /* bytes from the range of one member to the next */

/* Fills the range of member v. Its sum depends on the order in which members are added. */
static void fill_range(float *at, uint32_t v, int64_t count)
{
  uint32_t x = v * 2654435761u + 12345;
  for (int64_t i = 0; i < count; i++) {
    x = x * 1664525u + 1013904223u;
    at[i] = (float)(int32_t)x * (x & 64 ? 1e-3f : 1e3f);
  }
}

/* Runs the exchange for the members of `m`, whose ranges are in `at`. */
static void run_exchange(Device *d, const Members *m, const ampc_exchange *x, char *at)
{
  int64_t bytes = exchange_scratch(m->ranks ? m->ranks->size : 1, x);
  void *scratch = bytes ? malloc((size_t)bytes) : NULL;
  MUST(scratch || !bytes);
  for (uint32_t i = 0; i < m->n; i++)
    fill_range((float *)(void *)(at + i * APART), m->first + i, x->count);
  ampc_status status = exchange_run(d, m, x, at, APART, scratch);
  CHECK_MSG(!status, "%s", ampc_last_error());
  free(scratch);
}

/* Compares with an exchange in which one process runs all members. */
static void check_exchange(Device *d, uint32_t all, const ampc_exchange *x)
{
  uint32_t n = all / (uint32_t)ranks->size;
  const Members own = {ranks, n * (uint32_t)ranks->rank, n, all}, alone = {NULL, 0, all, all};
  char *at = calloc(n, APART), *expected = calloc(all, APART);
  MUST(at && expected);
  d->ranks = ranks;
  run_exchange(d, &own, x, at);
  d->ranks = NULL;
  run_exchange(d, &alone, x, expected);
  for (uint32_t i = 0; i < n; i++)
    CHECK_MSG(memcmp(at + i * APART, expected + (own.first + i) * APART, APART) == 0,
              "exchange %d of %lld for member %u of %u", x->kind, (long long)x->count,
              own.first + i, all);
  free(at);
  free(expected);
}

/* A gather in which the members of a process share one range. */
static void check_shared(Device *d, uint32_t all, int64_t each)
{
  uint32_t n = all / (uint32_t)ranks->size, first = n * (uint32_t)ranks->rank;
  const Members own = {ranks, first, n, all};
  const ampc_exchange x = {AMPC_GATHER, AMPC_F32, each * all, false, AMPC_SUM_TREE};
  float *at = calloc(all, (size_t)each * sizeof *at),
        *expected = calloc(all, (size_t)each * sizeof *at);
  MUST(at && expected);
  for (uint32_t v = 0; v < all; v++) fill_range(expected + v * each, v, each);
  memcpy(at + first * each, expected + first * each, (size_t)(n * each) * sizeof *at);
  d->ranks = ranks;
  ampc_status status = exchange_run(d, &own, &x, at, 0, NULL);
  CHECK_MSG(!status, "%s", ampc_last_error());
  CHECK(memcmp(at, expected, (size_t)(all * each) * sizeof *at) == 0);
  free(at);
  free(expected);
}

static ampc_status exchange(void)
{
  static const ampc_exchange sums[] = {{AMPC_SUM, AMPC_F32, 1, false, AMPC_SUM_TREE},
                                       {AMPC_SUM, AMPC_F32, 1001, false, AMPC_SUM_TREE},
                                       {AMPC_SUM, AMPC_F32, 16384, false, AMPC_SUM_TREE},
                                       {AMPC_SUM, AMPC_F32, 16385, false, AMPC_SUM_TREE},
                                       {AMPC_SUM, AMPC_F32, 100003, false, AMPC_SUM_TREE}};
  const ampc_program program = {.target = "cpu"};
  Device *d;
  MUST(cpu_device_open(&program, &d) == AMPC_OK);
  for (uint32_t all = (uint32_t)ranks->size; all <= 8; all *= 2) {
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) check_exchange(d, all, &sums[i]);
    for (int64_t each = 1; each < 30000; each = each * 31 + 2) {
      check_exchange(d, all,
                     &(ampc_exchange){AMPC_SLICE, AMPC_F32, each * all, false, AMPC_SUM_TREE});
      check_exchange(d, all,
                     &(ampc_exchange){AMPC_GATHER, AMPC_F32, each * all, false, AMPC_SUM_TREE});
      check_shared(d, all, each);
    }
  }
  d->ops->close(d);
  return AMPC_OK;
}

/* ---- agreement ---- */

static ampc_status same(void)
{
  static const char job[] = "a = 1\nb = 2\n";
  char own[sizeof job];
  snprintf(own, sizeof own, "%s", job);
  ampc_status status = ranks_same(ranks, "the job", own);
  CHECK(!status);
  if (ranks->rank == number) own[10] = '3';
  return status ? status : ranks_same(ranks, "the job", own);
}

static ampc_status agree(void)
{
  ampc_status status = ranks_agree(ranks, AMPC_OK);
  CHECK(!status);
  if (ranks->rank >= number) status = ampc_fail(AMPC_BAD_FILE, "no file %d", ranks->rank);
  return ranks_agree(ranks, status);
}

/* ---- faults ---- */

static ampc_status gathers(int n)
{
  ampc_status status = AMPC_OK;
  for (int i = 0; i < n && !status; i++) status = check_gather(4);
  return status;
}

/* Takes part in 3 exchanges; then rank `number` gets the signal. */
static ampc_status lose(int signal)
{
  ampc_status status = gathers(3);
  ranks_step(ranks, 0.001);
  if (ranks->rank == number) raise(signal);
  return status ? status : gathers(2);
}

static ampc_status stop(void)
{
  return lose(SIGSTOP);
}

static ampc_status die(void)
{
  return lose(SIGKILL);
}

/* A rank fails while others wait for it. */
static ampc_status fails(void)
{
  ampc_status status = gathers(3);
  if (ranks->rank != number) return status ? status : gathers(1);
  return ampc_fail(AMPC_BAD_FILE, "%s: no such file", ranks_name(ranks, number));
}

/* The first and the last rank wait for each other. */
static ampc_status crossed(void)
{
  char byte;
  ranks_step(ranks, 0.001);
  if (ranks->rank == 0) return ranks_receive(ranks, 1, &byte, 1);
  ampc_status status = gathers(1);
  return status;
}

/* MPI itself complains on rank `number`: there is no rank 99. */
static ampc_status broken(void)
{
  char byte = 0;
  return ranks->rank == number ? ranks_send(ranks, 99, &byte, 1) : gathers(1);
}

/* Rank `number` is stopped, while the others wait for their devices. */
static ampc_status device(void)
{
  ampc_status status = AMPC_OK;
  ranks_step(ranks, 0.001);
  if (ranks->rank == number) raise(SIGSTOP);
  for (double begin = seconds_now(); !status && seconds_now() < begin + 60; usleep(1000))
    status = ranks_wait_on(ranks, seconds_now() - begin);
  return status;
}

/* A rank that is late, but not too late. */
static ampc_status late(void)
{
  ranks_step(ranks, 10); /* 20 of these are longer than the patience */
  if (ranks->rank == number) sleep(1);
  return gathers(1);
}

/* A rank may be busy for longer than the patience. */
static ampc_status busy(void)
{
  ranks_step(ranks, 0.001);
  ranks_busy(ranks);
  if (ranks->rank == number) sleep(1);
  return gathers(1);
}

/* ---- signals and processors ---- */

static volatile sig_atomic_t asked;

static void ask(int signal)
{
  asked = signal;
}

static void tell_pid(void)
{
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
}

static void await_signal(void)
{
  for (double end = seconds_now() + 60; !asked && seconds_now() < end;) usleep(1000);
}

/* All ranks are stopped for a time: run.sh does it. Then rank `number` gets SIGUSR1. */
static ampc_status paused(void)
{
  ranks_step(ranks, 0.001);
  tell_pid();
  if (ranks->rank == number) await_signal();
  return gathers(1);
}

static ampc_status signals(void)
{
  static const int all[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
  struct sigaction now;
  for (int i = 0; i < 4; i++) {
    sigaction(all[i], NULL, &now);
    CHECK_MSG(now.sa_handler == ask, "another handler for signal %d", all[i]);
  }
  tell_pid();
  await_signal();
  printf("rank %d got signal %d\n", ranks->rank, (int)asked);
  return AMPC_OK;
}

/* How many ranks use processor k. */
static int users(const unsigned char (*mask)[AMPC_PROCESSORS / 8], int k)
{
  int n = 0;
  for (int i = 0; i < ranks->size; i++) n += mask[i][k / 8] >> k % 8 & 1;
  return n;
}

/* The processors are shared out evenly. */
static ampc_status cores(void)
{
  unsigned char mask[64][AMPC_PROCESSORS / 8];
  int total = 0, most = 0;
  MUST(ranks->size <= 64);
  CHECK(ranks->local == ranks->rank && ranks->locals == ranks->size); /* of one host */
  ampc_processors_get(mask[ranks->rank]);
  ampc_status status = ranks_gather(ranks, mask, sizeof *mask);
  for (int k = 0; k < AMPC_PROCESSORS && !status; k++) {
    int n = users(mask, k);
    total += n > 0;
    if (n > most) most = n;
  }
  CHECK_MSG(most <= (ranks->size + total - 1) / total, "%d ranks on a processor", most);
  return status;
}

static const struct {
  const char *name;
  ampc_status (*run)(void);
} cases[] = {
    {"calls", calls},     {"large", large},   {"exchange", exchange}, {"same", same},
    {"agree", agree},     {"stop", stop},     {"die", die},           {"fails", fails},
    {"crossed", crossed}, {"late", late},     {"busy", busy},         {"signals", signals},
    {"cores", cores},     {"paused", paused}, {"broken", broken},     {"device", device},
};

/* Runs the case that the first argument names. */
static ampc_status run(const char *name)
{
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, name) == 0) return cases[i].run();
  return ampc_fail(AMPC_BAD_USAGE, "no case %s", name);
}

int main(int argc, char **argv)
{
  MUST(argc >= 2);
  number = argc > 2 ? atoi(argv[2]) : 0;
  if (argc > 3) ranks_patience(atof(argv[3]));
  signal(SIGUSR1, ask);
  signal(SIGTERM, ask);
  signal(SIGINT, ask);
  signal(SIGHUP, ask);
  ampc_status status = ranks_open(&ranks);
  if (!status && !ranks) status = ampc_fail(AMPC_BAD_USAGE, "not started as a rank");
  if (!status) status = run(argv[1]);
  if (status && !ranks_silent()) fprintf(stderr, "check: error: %s\n", ampc_last_error());
  ranks_close(ranks, status);
  return status ? (int)status : check_done();
}
