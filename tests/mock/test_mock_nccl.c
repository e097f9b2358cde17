/* Exchanges between CUDA devices of several processes, on the mocks of the driver and NCCL: results
 * against those of the CPU, bit by bit; what the mock detects; what happens if a rank is missing.
 * Ranks are children of this process, and the functions of ranks.h that the device calls are here.
 */
#include "cases.h"
#include "runtime/cuda/cuda_device.h"
#include "common/clock.h"
#include "runtime/ranks/exchange.h"
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

enum { STATE = 4096, MOST_RANKS = 4, MOST_MEMBERS = 8, MANY = 16385 + 4, ROW_ROOM = 256 };
static double patience = 60; /* seconds */

/* ---- ranks ---- */

typedef struct Meeting { /* memory that all ranks share */
  pthread_barrier_t barrier;
  char rows[MOST_RANKS * ROW_ROOM];
} Meeting;
static Meeting *meeting;
static Ranks me;

ampc_status ranks_gather(Ranks *r, void *all, int64_t bytes)
{
  char *own = (char *)all + r->rank * bytes;
  MUST(bytes <= ROW_ROOM);
  memcpy(meeting->rows + r->rank * bytes, own, (size_t)bytes);
  pthread_barrier_wait(&meeting->barrier);
  memcpy(all, meeting->rows, (size_t)(r->size * bytes));
  pthread_barrier_wait(&meeting->barrier);
  return AMPC_OK;
}

ampc_status ranks_swap(Ranks *r, const void *out, void *in, int64_t bytes)
{
  (void)r, (void)out, (void)in, (void)bytes;
  return ampc_fail(AMPC_RUN_FAILED, "the CPU has no ranks here");
}

ampc_status ranks_wait_on(Ranks *r, double waited)
{
  (void)r;
  return waited < patience ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "a rank is missing");
}

/* A case of several ranks. Each must end with `status`; for ABORTS, one of them, and the others are
 * ended. */
typedef struct RankCase {
  const char *name;
  int (*run)(void);
  int ranks, status;
  const char *says; /* text in stderr; NULL: any */
} RankCase;

static pid_t start_rank(const RankCase *c, int rank, int errors)
{
  pid_t child = fork();
  MUST(child >= 0);
  if (child) return child;
  dup2(errors, STDERR_FILENO);
  alarm(60); /* a rank that hangs ends by SIGALRM, which no case expects */
  check_failures = 0;
  me = (Ranks){.rank = rank, .size = c->ranks, .local = rank, .locals = c->ranks};
  _exit(c->run());
}

static void run_ranks(const RankCase *c)
{
  pthread_barrierattr_t shared;
  pid_t child[MOST_RANKS];
  int errors[2], aborted = 0;
  char said[8192];
  MUST(pipe(errors) == 0);
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&meeting->barrier, &shared, (unsigned)c->ranks);
  for (int i = 0; i < c->ranks; i++) child[i] = start_rank(c, i, errors[1]);
  close(errors[1]);
  for (int left = c->ranks; left > 0; left--) {
    int how = 0;
    pid_t ended = wait(&how);
    int status = WIFSIGNALED(how) ? -WTERMSIG(how) : WEXITSTATUS(how);
    bool first = status == ABORTS && !aborted++;
    if (c->status != ABORTS)
      CHECK_MSG(status == c->status, "%s: a rank ends with %d, not %d", c->name, status, c->status);
    for (int i = 0; i < c->ranks; i++) {
      if (child[i] == ended) child[i] = 0;
      if (first && child[i]) kill(child[i], SIGKILL);
    }
  }
  CHECK_MSG((aborted > 0) == (c->status == ABORTS), "%s: %d ranks abort", c->name, aborted);
  ssize_t n = read(errors[0], said, sizeof said - 1);
  said[n > 0 ? n : 0] = 0;
  close(errors[0]);
  CHECK_MSG(c->says ? strstr(said, c->says) != NULL : !*said, "%s: says \"%s\", expected \"%s\"",
            c->name, said, c->says ? c->says : "");
}

/* ---- devices ---- */

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
static ampc_program program = {
    .name = "test",
    .source = "test.amp",
    .target = "sm_90",
    .precision = "f32",
    .space_bytes = {[AMPC_STATE] = STATE, [AMPC_INPUT] = 1000, [AMPC_WORK] = 1000},
    .blocks = &block,
    .n_blocks = 1};
static Device *gpu, *cpu;
static void *state;

static void must(ampc_status status)
{
  if (status) fprintf(stderr, "%s\n", ampc_last_error());
  MUST(!status);
}

static void *new_memory(Device *d, int64_t bytes)
{
  void *memory;
  must(d->ops->alloc(d, bytes, &memory));
  return memory;
}

/* Opens the GPU of this rank, and joins the others. */
static ampc_status open_gpu(void)
{
  cuda_set_rank(&me);
  ampc_status status = cuda_device_open(&program, 1, ANY_GPU, &gpu);
  return status ? status : cuda_use_ranks(gpu, &me);
}

static void open_all(void)
{
  must(open_gpu());
  must(cpu_device_open(&program, &cpu));
  state = new_memory(gpu, STATE);
}

static void close_all(void)
{
  gpu->ops->release(gpu, state);
  gpu->ops->close(gpu);
  cpu->ops->close(cpu);
  CHECK(mock_count("held") == 0);
}

/* ---- an exchange ---- */

typedef struct Exchange {
  Members own;
  ampc_exchange x;
  int64_t apart, bytes;             /* of the ranges of this process */
  char *source, *at, *scratch, *to; /* on the GPU: before, the ranges, their copy at the end */
  bool joins;
} Exchange;

static ampc_exchange_mode mode; /* of new exchanges */
static bool whole;              /* ranges have small whole numbers: all sums are exact */

/* Fills the range of member v, with numbers whose sum depends on the order. */
static void fill_range(float *out, int64_t count, uint32_t v)
{
  uint32_t seed = v + 1;
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    out[i] = whole ? (float)(seed >> 25) - 64
                   : ((float)(seed >> 8) - 0x1p23f) / (float)(1u << (seed >> 4 & 15));
  }
}

static int64_t apart_of(int64_t count)
{
  return (count * 4 + 255) / 256 * 256 + 256;
}

static void open_exchange(Exchange *e)
{
  e->apart = apart_of(e->x.count);
  e->bytes = e->apart * e->own.n;
  float *values = calloc(1, (size_t)e->bytes);
  MUST(values);
  for (uint32_t i = 0; i < e->own.n; i++)
    fill_range(values + i * e->apart / 4, e->x.count, e->own.first + i);
  e->source = new_memory(gpu, e->bytes);
  e->at = new_memory(gpu, e->bytes);
  e->to = new_memory(gpu, e->bytes);
  e->scratch =
      new_memory(gpu, exchange_scratch(e->own.ranks ? e->own.ranks->size : 1, &e->x) + 256);
  must(gpu->ops->copy_in(gpu, e->source, values, e->bytes));
  free(values);
}

static void close_exchange(Exchange *e)
{
  char *const memory[] = {e->source, e->at, e->to, e->scratch};
  for (int i = 0; i < 4; i++) gpu->ops->release(gpu, memory[i]);
}

/* The body of a step. */
static ampc_status exchange(void *context)
{
  const Exchange *e = context;
  const ampc_exchange join = {.kind = AMPC_JOIN};
  const ampc_exchange next = {.kind = AMPC_GATHER, .type = AMPC_F32, .count = e->own.all};
  bool row = e->x.kind == AMPC_GATHER_WITH_NEXT;
  ampc_status status = gpu->ops->copy(gpu, e->at, e->source, e->bytes);
  if (!status)
    status = exchange_run(gpu, &e->own, &e->x, e->at, e->own.n > 1 ? e->apart : 0, e->scratch);
  if (!status && row) status = exchange_run(gpu, &e->own, &next, e->scratch, 0, NULL);
  if (!status && e->joins) status = exchange_run(gpu, &e->own, &join, NULL, 0, NULL);
  return status ? status : gpu->ops->copy(gpu, e->to, e->at, e->bytes);
}

/* Returns whether the ranges are what one CPU with all members has. */
static bool is_right(const Exchange *e)
{
  const Members all = {NULL, 0, e->own.all, e->own.all};
  char *want = calloc(e->own.all, (size_t)e->apart), *got = calloc(1, (size_t)e->bytes);
  MUST(want && got);
  for (uint32_t v = 0; v < e->own.all; v++)
    fill_range((float *)(void *)(want + v * e->apart), e->x.count, v);
  must(exchange_run(cpu, &all, &e->x, want, e->apart, NULL));
  must(gpu->ops->copy_out(gpu, got, e->to, e->bytes));
  bool right = true;
  for (uint32_t i = 0; i < e->own.n; i++)
    right = right && memcmp(got + i * e->apart, want + (e->own.first + i) * e->apart,
                            (size_t)(e->x.count * ampc_dtype_size(e->x.type))) == 0;
  free(want);
  free(got);
  return right;
}

static Exchange new_exchange(ampc_exchange_kind kind, int64_t count, uint32_t each)
{
  Members own = {.ranks = me.size > 1 ? &me : NULL,
                 .first = (uint32_t)me.rank * each,
                 .n = each,
                 .all = (uint32_t)me.size * each};
  Exchange e = {.own = own,
                .x = {.kind = kind, .type = AMPC_F32, .count = count, .mode = mode},
                .joins = true};
  open_exchange(&e);
  return e;
}

/* Exchanges by calls, then in a step that is tried out, recorded and repeated. */
static void check_exchange(ampc_exchange_kind kind, int64_t count, uint32_t each)
{
  static uint32_t key;
  Exchange e = new_exchange(kind, count, each);
  must(exchange(&e));
  CHECK_MSG(is_right(&e), "kind %d of %lld numbers, %u members each", kind, (long long)count, each);
  for (int i = 0; i < 3; i++) {
    must(gpu->ops->fill(gpu, e.to, 0, e.bytes));
    must(gpu->ops->step(gpu, key, state, exchange, &e));
    CHECK_MSG(is_right(&e), "kind %d of %lld numbers in a graph", kind, (long long)count);
  }
  key = (key + 1) % AMPC_MAX_VARIANTS;
  gpu->ops->wait(gpu);
  close_exchange(&e);
}

static int all_kinds(void)
{
  static const int64_t counts[] = {1, 1000, 16384, MANY};
  open_all();
  for (uint32_t each = 1; each <= 2; each++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
      check_exchange(AMPC_SUM, counts[i], each);
    check_exchange(AMPC_SLICE, 8 * 1000, each);
    check_exchange(AMPC_SLICE, 8 * 13, each);
    check_exchange(AMPC_GATHER, 8 * 500, each);
    check_exchange(AMPC_GATHER_WITH_NEXT, 8 * 500, each);
  }
  close_all();
  return check_failures;
}

static int all_kinds_eagerly(void)
{
  setenv("MOCK_CUDA_EAGER", "1", 1);
  return all_kinds();
}

static int other_modes(void)
{
  whole = true;
  open_all();
  for (mode = AMPC_SUM_FAST; mode <= AMPC_SUM_BF16; mode++)
    for (uint32_t each = 1; each <= 2; each++) {
      check_exchange(AMPC_SUM, 1000, each);
      check_exchange(AMPC_SUM, MANY, each);
      check_exchange(AMPC_SLICE, 8 * 1001, each);
    }
  close_all();
  return check_failures;
}

/* What ranks send is rounded once, and the sums are f32. */
static int rounds(void)
{
  enum { COUNT = 8 * 1001 };
  static float range[COUNT], want[COUNT], got[COUNT];
  static uint16_t rounded[MOST_RANKS][COUNT];
  mode = AMPC_SUM_BF16;
  open_all();
  Exchange e = new_exchange(AMPC_SLICE, COUNT, 1);
  must(exchange(&e));
  for (int i = 0; i < me.size; i++) {
    fill_range(range, COUNT, (uint32_t)i);
    must(cpu->ops->round(cpu, rounded[i], range, COUNT));
  }
  must(cpu->ops->add(cpu, AMPC_BF16, want, rounded, sizeof *rounded, (uint32_t)me.size, COUNT));
  must(gpu->ops->copy_out(gpu, got, e.to, sizeof got));
  int piece = COUNT / me.size, first = me.rank * piece;
  CHECK(memcmp(got + first, want + first, (size_t)piece * sizeof *got) == 0);
  close_exchange(&e);
  close_all();
  return check_failures;
}

/* Two exchanges beside work of the main stream, then one on it, as at the end of backward. */
static ampc_status backward(void *context)
{
  Exchange *e = context;
  ampc_status status = AMPC_OK;
  for (int i = 0; i < 2 && !status; i++) {
    status = gpu->ops->copy(gpu, e[i].at, e[i].source, e[i].bytes);
    if (!status) status = exchange_run(gpu, &e[i].own, &e[i].x, e[i].at, e[i].apart, e[i].scratch);
  }
  if (!status) status = exchange(&e[2]);
  for (int i = 0; i < 2 && !status; i++) status = gpu->ops->copy(gpu, e[i].to, e[i].at, e[i].bytes);
  return status;
}

static int beside_backward(void)
{
  open_all();
  Exchange e[] = {new_exchange(AMPC_SLICE, 24 * 233, 2), new_exchange(AMPC_SLICE, 24 * 1000, 2),
                  new_exchange(AMPC_SUM, 600, 2)};
  for (int i = 0; i < 4; i++) must(gpu->ops->step(gpu, 0, state, backward, e));
  for (int i = 0; i < 3; i++) CHECK(is_right(&e[i]));
  for (int i = 0; i < 3; i++) close_exchange(&e[i]);
  close_all();
  return check_failures;
}

/* ---- mistakes ---- */

static int counts_differ(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SUM, me.rank ? 1000 : 1004, 1);
  exchange(&e);
  gpu->ops->wait(gpu);
  return 0;
}

static int kinds_differ(void)
{
  open_all();
  Exchange e = new_exchange(me.rank ? AMPC_GATHER : AMPC_SUM, MANY + 1, 1);
  exchange(&e);
  gpu->ops->wait(gpu);
  return 0;
}

static int modes_differ(void)
{
  mode = me.rank ? AMPC_SUM_FAST : AMPC_SUM_TREE;
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 1000, 1);
  exchange(&e);
  gpu->ops->wait(gpu);
  return 0;
}

static int one_rank_records(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  if (me.rank) must(gpu->ops->step(gpu, 0, state, exchange, &e));
  for (int i = 0; i < 2 && !me.rank; i++) must(exchange(&e));
  gpu->ops->wait(gpu);
  return 0;
}

static int one_rank_leaves(void)
{
  open_all();
  if (me.rank) close_all();
  if (me.rank) return 0;
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  must(exchange(&e));
  gpu->ops->wait(gpu);
  return 0;
}

static int graphs_live_longer(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  must(gpu->ops->step(gpu, 0, state, exchange, &e));
  must(gpu->ops->wait(gpu));
  nccl_close(cuda_of(gpu));
  return 0;
}

static int read_before_join(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SLICE, 800, 1);
  e.joins = false;
  must(exchange(&e));
  CHECK(!is_right(&e));
  CHECK(gpu->ops->step(gpu, 0, state, exchange, &e) == AMPC_RUN_FAILED);
  CHECK(strstr(ampc_last_error(), "cuStreamEndCapture"));
  return check_failures;
}

static int two_streams_at_once(void)
{
  open_all();
  char *memory = new_memory(gpu, 1000);
  must(gpu->ops->aside(gpu, true));
  must(gpu->ops->gather(gpu, memory, 100, false));
  must(gpu->ops->aside(gpu, false));
  must(gpu->ops->gather(gpu, memory + 500, 100, false));
  gpu->ops->wait(gpu);
  return 0;
}

/* ---- ranks that are missing ---- */

/* Rank 1 takes no part. Rank 0 ends in time, and its device closes. */
static int nobody_comes(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  double begin = seconds_now();
  patience = 0.2;
  if (me.rank == 0) {
    must(gpu->ops->step(gpu, 0, state, exchange, &e));
    CHECK(gpu->ops->wait(gpu) == AMPC_RUN_FAILED && strstr(ampc_last_error(), "is missing"));
    CHECK(seconds_now() - begin >= patience);
    close_exchange(&e);
    gpu->ops->close(gpu);
  }
  ranks_gather(&me, (char[MOST_RANKS]){0}, 1);
  return check_failures;
}

/* The other waits of the host. */
static int nobody_comes_either(void)
{
  char bytes[100];
  bool there;
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  patience = 0.2;
  if (me.rank == 0) {
    must(exchange(&e));
    must(gpu->ops->look(gpu, 0, state, sizeof bytes));
    CHECK(gpu->ops->looked(gpu, 0, false, bytes, sizeof bytes, &there) == AMPC_OK && !there);
    CHECK(gpu->ops->looked(gpu, 0, true, bytes, sizeof bytes, &there) == AMPC_RUN_FAILED);
    CHECK(gpu->ops->copy_out(gpu, bytes, e.at, sizeof bytes) == AMPC_RUN_FAILED);
  }
  ranks_gather(&me, (char[MOST_RANKS]){0}, 1);
  return check_failures;
}

static int another_fails(void)
{
  open_all();
  Exchange e = new_exchange(AMPC_SUM, 100, 1);
  setenv("MOCK_NCCL_ERROR_AT", "1", 1);
  CHECK(exchange(&e) == AMPC_RUN_FAILED);
  CHECK(strstr(ampc_last_error(), "ncclAllGather failed: remote process exited"));
  close_exchange(&e);
  gpu->ops->close(gpu);
  return check_failures;
}

static int nobody_joins(void)
{
  char rows[MOST_RANKS * ROW_ROOM];
  if (me.rank) return (int)ranks_gather(&me, rows, sizeof(NcclId) + sizeof(NcclResult));
  patience = 0.2;
  CHECK(open_gpu() == AMPC_RUN_FAILED && strstr(ampc_last_error(), "is missing"));
  gpu->ops->close(gpu);
  return check_failures;
}

/* ---- the GPU of a rank; NCCL that does not start ---- */

static void check_refusal(const char *says)
{
  ampc_status status = open_gpu();
  CHECK_MSG(status && strstr(ampc_last_error(), says), "says \"%s\", expected \"%s\"",
            ampc_last_error(), says);
  if (gpu) gpu->ops->close(gpu);
}

static int joining_fails(void)
{
  setenv("MOCK_NCCL_INIT", "2", 1);
  check_refusal("ncclCommInitRankConfig failed: unhandled system error; NCCL_DEBUG=WARN");
  return check_failures;
}

static int old_library(void)
{
  setenv("MOCK_NCCL_VERSION", "21605", 1);
  check_refusal("libnccl.so.2 is NCCL 2.16.5: install NCCL 2.18 or newer");
  return check_failures;
}

static int one_gpu(void)
{
  setenv("MOCK_CUDA_DEVICES", "1", 1);
  check_refusal("Duplicate GPU detected");
  return check_failures;
}

static int too_few_gpus(void)
{
  setenv("MOCK_CUDA_DEVICES", "2", 1);
  me.local += 2;
  me.locals += 2;
  check_refusal("on this host, which has 2 GPUs");
  return check_failures;
}

static int own_gpus(void)
{
  open_all();
  char name[16];
  snprintf(name, sizeof name, "cuda:%d ", me.rank);
  CHECK(strncmp(gpu->name, name, strlen(name)) == 0);
  close_all();
  CHECK(cuda_device_open(&program, 1, 1, &gpu) == AMPC_BAD_USAGE);
  CHECK(strstr(ampc_last_error(), "--device cuda:1: 2 ranks on this host would take the same GPU"));
  setenv("CUDA_VISIBLE_DEVICES", me.rank ? "1" : "0", 1);
  must(cuda_device_open(&program, 1, 0, &gpu)); /* each rank sees one */
  gpu->ops->close(gpu);
  return check_failures;
}

static const RankCase cases[] = {
    {"one rank", all_kinds, 1, 0, NULL},
    {"two ranks", all_kinds, 2, 0, NULL},
    {"three ranks", beside_backward, 3, 0, NULL},
    {"four ranks", all_kinds, 4, 0, NULL},
    {"four ranks, eagerly", all_kinds_eagerly, 4, 0, NULL},
    {"beside backward", beside_backward, 4, 0, NULL},
    {"other modes", other_modes, 2, 0, NULL},
    {"other modes, four ranks", other_modes, 4, 0, NULL},
    {"bf16 rounds", rounds, 4, 0, NULL},
    {"counts differ", counts_differ, 2, ABORTS, "call 1 of NCCL differs: rank"},
    {"kinds differ", kinds_differ, 2, ABORTS, "call 1 of NCCL differs: rank"},
    {"modes differ", modes_differ, 2, ABORTS, "an all-reduce of 4000 bytes"},
    {"one rank records", one_rank_records, 2, ABORTS, "an all-gather of 400 bytes, in a graph"},
    {"one rank leaves", one_rank_leaves, 2, ABORTS, "has made 0 calls and has left"},
    {"graphs live longer", graphs_live_longer, 2, ABORTS, "graphs that exist have 1 calls"},
    {"read before the join", read_before_join, 2, 0, "a stream of the capture was not joined"},
    {"two streams at once", two_streams_at_once, 2, ABORTS, "call 2 of NCCL runs before call 1"},
    {"nobody comes", nobody_comes, 2, 0, NULL},
    {"nobody comes, other waits", nobody_comes_either, 2, 0, NULL},
    {"another fails", another_fails, 2, 0, NULL},
    {"nobody joins", nobody_joins, 2, 0, NULL},
    {"joining fails", joining_fails, 2, 0, NULL},
    {"an old library", old_library, 2, 0, NULL},
    {"one GPU for two ranks", one_gpu, 2, 0, NULL},
    {"too few GPUs", too_few_gpus, 2, 0, NULL},
    {"a GPU for each rank", own_gpus, 2, 0, NULL},
};

int main(void)
{
  setenv("MOCK_CUDA_DEVICES", "4", 1);
  meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(meeting != MAP_FAILED);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_ranks(&cases[i]);
  return check_done();
}
