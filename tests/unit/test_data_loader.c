/* The loader: it returns each sample once per epoch, in an order that seed and epoch determine, and
 * it can seek to any position. */
#include <time.h>
#include "check.h"
#include "runtime/data/order.h"
#include "small_program.h"

/* Two sources, both with the sample's own number, to check that pairs stay together. */
typedef struct Job {
  ampc_program program;
  ampc_source sources[2];
  ampc_block block;
} Job;

static void job(Job *j, int64_t samples, int64_t batch, bool shuffle, bool drop_last)
{
  *j = (Job){0};
  ampc_source s = {.kind = AMPC_SOURCE_SYNTHETIC,
                   .dtype = AMPC_I32,
                   .samples = samples,
                   .part_end = 1,
                   .low = 0,
                   .high = 1 << 30,
                   .stream = 1};
  j->sources[0] = j->sources[1] = s;
  j->sources[0].offset = 256;
  j->sources[1].offset = 1024;
  j->block = (ampc_block){.name = "train",
                          .batch = batch,
                          .shuffle = shuffle,
                          .drop_last = drop_last,
                          .n_sources = 2,
                          .n_variants = 2};
  j->block.variant[0].batch = batch;
  j->block.variant[1].batch = samples % batch;
  j->program = (ampc_program){
      .name = "job", .sources = j->sources, .blocks = &j->block, .n_sources = 2, .n_blocks = 1};
}

static ampc_batches *open_job(const Job *j, uint64_t seed)
{
  ampc_batches *b;
  if (ampc_data.open(&j->program, 0, ".", seed, &b)) {
    fprintf(stderr, "%s\n", ampc_last_error());
    exit(1);
  }
  return b;
}

/* Reads a batch into to[] and returns its size. Both sources must have the same numbers. */
static int64_t next(ampc_batches *b, int32_t *to, ampc_data_position *at)
{
  const void *base;
  int64_t n;
  MUST(ampc_data.next(b, &base, &n, at) == AMPC_OK);
  CHECK((uintptr_t)base % 64 == 0);
  CHECK(memcmp(base, (const char *)base + 768, (size_t)n * 4) == 0);
  memcpy(to, base, (size_t)n * 4);
  return n;
}

static int by_value(const void *a, const void *b)
{
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

static void check_epochs(int64_t samples, int64_t batch, bool shuffle, bool drop_last)
{
  Job j;
  job(&j, samples, batch, shuffle, drop_last);
  ampc_batches *b = open_job(&j, 7);
  int64_t per = ampc_data.per_epoch(b);
  CHECK(per == samples / batch + (!drop_last && samples % batch));
  static int32_t epoch[3][200];
  for (int e = 0; e < 3; e++) {
    int64_t n = 0;
    for (int64_t i = 0; i < per; i++) {
      ampc_data_position at;
      n += next(b, epoch[e] + n, &at);
      CHECK(at.epoch == e && at.batch == i && at.block == 0);
    }
    CHECK(n == (drop_last ? per * batch : samples));
    CHECK(e == 0 || !memcmp(epoch[e], epoch[0], (size_t)n * 4) == !shuffle);
  }
  for (int e = 0; e < 3; e++) qsort(epoch[e], (size_t)samples, 4, by_value);
  CHECK(drop_last || (!memcmp(epoch[0], epoch[1], (size_t)samples * 4) &&
                      !memcmp(epoch[0], epoch[2], (size_t)samples * 4)));
  ampc_data.close(b);
}

/* Checks a seek: the next batch is the one that a run from the start has at that position. */
static void check_seek(void)
{
  Job j;
  job(&j, 50, 8, true, false);
  ampc_batches *b = open_job(&j, 3), *other = open_job(&j, 3), *third = open_job(&j, 4);
  int32_t all[3 * 7][8], some[8];
  int64_t sizes[3 * 7], differ = 0;
  ampc_data_position at;
  for (int i = 0; i < 21; i++) sizes[i] = next(b, all[i], &at);
  for (int i = 0; i < 400; i++) {
    int to = i * 37 % 21;
    if (i % 3 == 0) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    CHECK(ampc_data.seek(other, (ampc_data_position){to / 7, to % 7, 0}) == AMPC_OK);
    for (int k = to; k < 21 && k < to + i % 5; k++) {
      CHECK(next(other, some, &at) == sizes[k] && at.epoch == k / 7 && at.batch == k % 7);
      CHECK(memcmp(some, all[k], (size_t)sizes[k] * 4) == 0);
    }
  }
  CHECK(ampc_data.seek(other, (ampc_data_position){1, 7, 0}) == AMPC_OK); /* the end of an epoch */
  CHECK(next(other, some, &at) == 8 && at.epoch == 2 && at.batch == 0);
  CHECK(ampc_data.seek(other, (ampc_data_position){1, 8, 0}) == AMPC_BAD_FILE);
  CHECK(ampc_data.seek(other, (ampc_data_position){-1, 0, 0}) == AMPC_BAD_FILE);
  for (int i = 0; i < 7; i++) {
    int64_t n = next(third, some, &at);
    differ += memcmp(some, all[i], (size_t)n * 4) != 0;
  }
  CHECK(differ == 7);
  ampc_data.close(b);
  ampc_data.close(other);
  ampc_data.close(third);
}

static void expect_refused(const Job *j, const char *word)
{
  ampc_batches *b;
  CHECK(ampc_data.open(&j->program, 0, NULL, 1, &b) != AMPC_OK && b == NULL);
  CHECK_MSG(strstr(ampc_last_error(), word), "no `%s` in: %s", word, ampc_last_error());
}

static void check_refusals(void)
{
  Job j;
  job(&j, 50, 8, true, false);
  j.block.variant[1].batch = 3;
  expect_refused(&j, "the last batch has 2");
  job(&j, 50, 8, true, false);
  j.block.n_variants = 1;
  expect_refused(&j, "the last batch has 2");
  job(&j, 50, 64, true, true);
  expect_refused(&j, "too few for one batch of 64");
  job(&j, 50, 8, true, true);
  j.sources[1].samples = 40;
  expect_refused(&j, "50 samples, but a synthetic source has 40");
  job(&j, 50, 8, true, true);
  j.block.n_sources = 0;
  expect_refused(&j, "no data");
  job(&j, 50, 8, true, true);
  j.sources[0].kind = AMPC_SOURCE_ARGUMENT;
  expect_refused(&j, "infer");
  ampc_data.close(NULL);
}

/* Checks that over all permutations of 5, each number is equally frequent in each position. */
static void check_order(void)
{
  int seen[5][5] = {{0}};
  int64_t order[5];
  for (int e = 0; e < 10000; e++) {
    order_shuffle(order, 5, 11, 0, e);
    for (int i = 0; i < 5; i++) seen[i][order[i]]++;
  }
  for (int i = 0; i < 25; i++) CHECK(abs(seen[i / 5][i % 5] - 2000) < 200);
  int64_t other[5];
  int same = 0;
  for (int e = 0; e < 100; e++) {
    order_shuffle(order, 5, 11, 0, e);
    order_shuffle(other, 5, 11, 1, e); /* another block has a different order */
    same += memcmp(order, other, sizeof order) == 0;
  }
  CHECK(same < 10);
}

int main(void)
{
  check_epochs(50, 8, true, true);
  check_epochs(50, 8, true, false);
  check_epochs(50, 8, false, false);
  check_epochs(48, 8, true, false);
  check_epochs(5, 8, false, false);
  check_seek();
  check_refusals();
  check_order();
  return check_done();
}
