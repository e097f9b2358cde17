/* The memory that the mock's ranks share, and a call there. Each rank copies the bytes that it
 * sends to its room and posts what it does. When all have, each compares the posts and takes its
 * bytes. A difference, which would let NCCL hang or mix up bytes, ends the program with a message.
 *   MOCK_NCCL_PATIENCE=n   seconds after which a rank that waits says that it would for ever, 60 */
#include "nccl.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NONSENSE = 0xeb, TEXT = 200 };

bool region_make(char *path)
{
  int file = mkstemp(path);
  bool good = file >= 0 && ftruncate(file, sizeof(Region)) == 0;
  if (file >= 0) close(file);
  return good;
}

static size_t head(void)
{
  return (sizeof(Region) + 4095) / 4096 * 4096;
}

Region *region_open(const char *path, int size)
{
  size_t bytes = head() + (size_t)size * ROOM;
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return NULL;
  void *r = ftruncate(file, (off_t)bytes)
                ? MAP_FAILED
                : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  return r == MAP_FAILED ? NULL : r;
}

char *region_room(Region *r, int rank)
{
  return (char *)r + head() + (size_t)rank * ROOM;
}

/* ---- what is wrong ---- */

static void describe(const Post *p, const struct ncclComm *c, char out[TEXT])
{
  size_t n = 0;
  static const char *const kinds[] = {"an all-gather", "", "an all-reduce", "a reduce-scatter"};
  if (p->kind != CALL_swap)
    n += (size_t)snprintf(out, TEXT, "%s of %zu bytes", kinds[p->kind], p->bytes);
  if (p->kind == CALL_swap) n += (size_t)snprintf(out, TEXT, "a group of sends and receives");
  for (int i = 0; i < c->size && p->kind == CALL_swap && n < TEXT - 60; i++)
    if (p->to[i] >= 0 || p->from[i] >= 0)
      n += (size_t)snprintf(out + n, TEXT - n, ", %ld bytes to and %ld from rank %d", p->to[i],
                            p->from[i], i);
  snprintf(out + n, TEXT - n, ", %s", p->captured ? "in a graph" : "outside of graphs");
}

static bool agree(const Post *a, const Post *b, int rank_a, int rank_b)
{
  if (a->kind != b->kind || a->captured != b->captured) return false;
  if (a->kind != CALL_swap) return a->bytes == b->bytes;
  return a->to[rank_b] == b->from[rank_a] && a->from[rank_b] == b->to[rank_a];
}

static void compare(const struct ncclComm *c, long number)
{
  const Post *own = &c->region->rank[c->rank].post[number % POSTS];
  for (int i = 0; i < c->size; i++) {
    const Post *p = &c->region->rank[i].post[number % POSTS];
    char text[2][TEXT];
    if (agree(own, p, c->rank, i)) continue;
    describe(own, c, text[0]);
    describe(p, c, text[1]);
    mock_misuse("call %ld of NCCL differs: rank %d has %s; rank %d has %s", number, c->rank,
                text[0], i, text[1]);
  }
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Complains if the ranks that are missing will never come. */
static CuResult wait_more(struct ncclComm *c, const Post *post, long number)
{
  char text[TEXT];
  if (c->since == 0) c->since = now();
  bool late = now() - c->since > (double)mock_setting("MOCK_NCCL_PATIENCE", 60);
  for (int i = 0; i < c->size; i++) {
    const Place *p = &c->region->rank[i];
    bool gone = atomic_load(&p->left);
    if (atomic_load(&p->arrived) >= number || !(gone || late)) continue;
    describe(post, c, text);
    mock_misuse("rank %d waits for ever in call %ld of NCCL, %s: rank %d has made %ld calls%s",
                c->rank, number, text, i, atomic_load(&p->arrived), gone ? " and has left" : "");
  }
  return CUDA_ERROR_NOT_READY;
}

/* ---- a call ---- */

static Post post_of(const Call *c)
{
  Post p = {.kind = c->kind, .captured = mock_repeating, .bytes = c->bytes};
  for (int i = 0; i < MOST_RANKS; i++) {
    p.to[i] = c->sends[i].bytes;
    p.from[i] = c->receives[i].bytes;
  }
  return p;
}

/* Returns the bytes that the device has there; the mock ends the program if it has none. */
static char *bytes_at(uint64_t address, long bytes)
{
  char *at = mock_device_bytes(address, (size_t)bytes, "NCCL");
  if (!at) mock_misuse("NCCL gets memory that is not the device's");
  return at;
}

static long room_before(const long *bytes, int rank)
{
  long sum = 0;
  for (int i = 0; i < rank; i++) sum += bytes[i] > 0 ? bytes[i] : 0;
  return sum;
}

/* Return how many times `bytes` the rank sends, and how many it receives. */
static size_t sent_of(const Call *c)
{
  return c->kind == CALL_scatter ? (size_t)c->comm->size : 1;
}
static size_t received_of(const Call *c)
{
  return c->kind == CALL_gather ? (size_t)c->comm->size : 1;
}

/* Copies the bytes to the region. Until the call ends, its results are nonsense. */
static void send(const Call *c, const Post *p)
{
  char *room = region_room(c->comm->region, c->comm->rank);
  size_t sent = c->bytes * sent_of(c), received = c->bytes * received_of(c);
  if (sent > ROOM || room_before(p->to, MOST_RANKS) > ROOM)
    mock_misuse("a call of NCCL with more bytes than the mock expects");
  if (c->kind != CALL_swap) {
    memcpy(room, bytes_at(c->from, (long)sent), sent);
    memset(bytes_at(c->to, (long)received), NONSENSE, received);
    return;
  }
  for (int i = 0; i < c->comm->size; i++)
    if (p->to[i] > 0)
      memcpy(room + room_before(p->to, i), bytes_at(c->sends[i].at, p->to[i]), (size_t)p->to[i]);
  for (int i = 0; i < c->comm->size; i++)
    if (p->from[i] > 0)
      memset(bytes_at(c->receives[i].at, p->from[i]), NONSENSE, (size_t)p->from[i]);
}

/* Adds the numbers of all ranks, one rank after the other. */
static void add(const Call *c)
{
  float *to = (float *)(void *)bytes_at(c->to, (long)c->bytes);
  size_t n = c->bytes / sizeof *to, first = c->kind == CALL_scatter ? (size_t)c->comm->rank * n : 0;
  for (size_t k = 0; k < n; k++) to[k] = 0;
  for (int i = 0; i < c->comm->size; i++) {
    const float *from = (const float *)(const void *)region_room(c->comm->region, i) + first;
    for (size_t k = 0; k < n; k++) to[k] += from[k];
  }
}

static void receive(const Call *c, long number)
{
  Region *r = c->comm->region;
  if (c->kind == CALL_reduce || c->kind == CALL_scatter) add(c);
  for (int i = 0; i < c->comm->size; i++) {
    const Post *p = &r->rank[i].post[number % POSTS];
    if (c->kind == CALL_gather)
      memcpy(bytes_at(c->to + (uint64_t)i * c->bytes, (long)c->bytes), region_room(r, i), c->bytes);
    else if (c->kind == CALL_swap && c->receives[i].bytes > 0)
      memcpy(bytes_at(c->receives[i].at, c->receives[i].bytes),
             region_room(r, i) + room_before(p->to, c->comm->rank), (size_t)c->receives[i].bytes);
  }
}

/* Whether all ranks have ended call `number`, or at least sent its bytes. */
static bool all_have(const struct ncclComm *c, long number, bool ended)
{
  for (int i = 0; i < c->size; i++) {
    const Place *p = &c->region->rank[i];
    if ((ended ? atomic_load(&p->done) : atomic_load(&p->arrived)) < number) return false;
  }
  return true;
}

CuResult call_try(const Call *c, long number)
{
  struct ncclComm *comm = c->comm;
  Place *own = &comm->region->rank[comm->rank];
  if (comm->aborted) return CUDA_SUCCESS;
  if (number != comm->done + 1)
    mock_misuse("rank %d: call %ld of NCCL runs before call %ld: nothing orders their streams",
                comm->rank, number, comm->done + 1);
  const Post post = post_of(c);
  if (!comm->sent) {
    if (!all_have(comm, number - 1, true)) return wait_more(comm, &post, number - 1);
    send(c, &post);
    own->post[number % POSTS] = post;
    comm->sent = true;
    atomic_store(&own->arrived, number);
  }
  if (!all_have(comm, number, false)) return wait_more(comm, &post, number);
  compare(comm, number);
  receive(c, number);
  comm->sent = false;
  comm->since = 0;
  comm->done = number;
  atomic_store(&own->done, number);
  return CUDA_SUCCESS;
}
