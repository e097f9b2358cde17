/* Parts that a seed draws: they are disjoint, cover all samples and have the same shares of each
 * class; and means and deviations of a part. */
#include <math.h>
#include "runtime/data/order.h"
#include "runtime/data/source.h"
#include "temp.h"

static const ampc_program program = {.name = "test"};

/* ---- orders ---- */

static void check_permutation(const int64_t *order, int64_t n)
{
  char *seen = calloc((size_t)n + 1, 1);
  for (int64_t i = 0; i < n; i++) {
    MUST(order[i] >= 0 && order[i] < n);
    CHECK(!seen[order[i]]++);
  }
  free(seen);
}

/* Checks every range from 0 on: of each class it has its share, with an error below 1. */
static void check_shares(const int64_t *order, const int64_t *label, int64_t n, int64_t classes)
{
  int64_t *all = calloc((size_t)classes, sizeof *all),
          *so_far = calloc((size_t)classes, sizeof *so_far);
  for (int64_t i = 0; i < n; i++) all[label[i]]++;
  for (int64_t m = 1; m <= n; m++) {
    so_far[label[order[m - 1]]]++;
    for (int64_t c = 0; c < classes; c++) {
      double share = (double)m * (double)all[c] / (double)n;
      CHECK_MSG(fabs((double)so_far[c] - share) < 1, "%lld of %lld have %lld of class %lld, not %g",
                (long long)m, (long long)n, (long long)so_far[c], (long long)c, share);
    }
  }
  free(all);
  free(so_far);
}

/* Checks an epoch with balanced classes: each round has each class once; a class repeats a sample
 * only after all of its samples. */
static void check_round(const int64_t *order, const int64_t *label, int64_t n, int64_t classes)
{
  int64_t *last = calloc((size_t)classes, sizeof *last),
          *all = calloc((size_t)classes, sizeof *all);
  int64_t *taken = calloc((size_t)n, sizeof *taken);
  for (int64_t i = 0; i < n; i++) all[label[i]]++;
  for (int64_t i = 0; i < n; i++) {
    int64_t round = i / classes, c = label[order[i]];
    CHECK(last[c]++ == round);
    CHECK(taken[order[i]]++ == round / all[c]);
  }
  free(last);
  free(all);
  free(taken);
}

static void check_balance(void)
{
  enum { N = 70 };
  static const int64_t size[] = {50, 1, 7, 12};
  int64_t label[N], first[N], again[N], other[N], drawn = 0;
  char ever[N] = {0};
  for (int64_t c = 0, i = 0; c < 4; c++)
    for (int64_t k = 0; k < size[c]; k++) label[i++ * 37 % N] = c;
  Balance b;
  MUST(balance_open(&b, label, N, NULL));
  order_balance(&b, first, N, 5, 1, 0);
  for (int64_t epoch = 0; epoch < 40; epoch++) {
    order_balance(&b, other, N, 5, 1, epoch);
    check_round(other, label, N, 4);
    CHECK((memcmp(first, other, sizeof first) == 0) == (epoch == 0));
    for (int64_t i = 0; i < N; i++) ever[other[i]] = 1;
  }
  order_balance(&b, again, N, 5, 1, 0);
  CHECK(memcmp(first, again, sizeof first) == 0); /* whatever epoch came before */
  order_balance(&b, other, N, 5, 2, 0);
  CHECK(memcmp(first, other, sizeof first) != 0);
  for (int64_t i = 0; i < N; i++) drawn += ever[i];
  CHECK(drawn == N);
  balance_close(&b);
  MUST(balance_open(&b, label, N, &(int64_t){2}));
  order_balance(&b, other, N, 5, 1, 0);
  for (int64_t i = 0; i < N; i++) CHECK(label[other[i]] != 2);
  balance_close(&b);
}

/* `size`: the samples of each class, which are sorted by class. */
static void check_order(const int64_t *size, int64_t classes)
{
  int64_t n = 0, label[1000], order[1000], again[1000], plain[1000];
  for (int64_t c = 0; c < classes; c++)
    for (int64_t i = 0; i < size[c]; i++) label[n++] = c;
  int different = 0;
  for (uint64_t seed = 0; seed < 5; seed++) {
    MUST(order_part(order, n, seed, label) && order_part(again, n, seed, label));
    CHECK(memcmp(order, again, (size_t)n * sizeof *order) == 0);
    check_permutation(order, n);
    check_shares(order, label, n, classes);
    MUST(order_part(again, n, seed + 1, label) && order_part(plain, n, seed, NULL));
    check_permutation(plain, n);
    different += memcmp(order, again, (size_t)n * sizeof *order) != 0;
    different += memcmp(order, plain, (size_t)n * sizeof *order) != 0;
  }
  CHECK_MSG(n < 10 || different == 10, "%d of 10 orders differ", different);
}

static void check_orders(void)
{
  check_order((const int64_t[]){1}, 1);
  check_order((const int64_t[]){50, 50, 50}, 3);
  check_order((const int64_t[]){59, 71, 48}, 3);
  check_order((const int64_t[]){500, 1, 1, 1, 7, 100}, 6);
  check_order((const int64_t[]){3, 0, 2, 997 - 5}, 4);
  int64_t ones[200];
  for (int i = 0; i < 200; i++) ones[i] = i ? 1 : 200;
  check_order(ones, 200);
}

/* ---- sources ---- */

enum { SAMPLES = 90, CLASSES = 3 };

/* Writes x.csv: the number of the sample, and its class; samples are sorted by class. And x.raw,
 * with the numbers only. */
static void write_files(void)
{
  char text[4096] = "n,c\n", bytes[SAMPLES];
  for (int i = 0; i < SAMPLES; i++) {
    snprintf(text + strlen(text), 32, "%d,%d\n", i, i * CLASSES / SAMPLES);
    bytes[i] = (char)i;
  }
  temp_write(temp_path("x.csv"), text, strlen(text));
  temp_write(temp_path("x.raw"), bytes, sizeof bytes);
}

#define CSV(name) "column=" name "\nnumber=0\nscalar=1\ndtype=i64\nheader=1\nsep=,\n"

/* Opens numbers as csv, classes as csv and numbers as raw, of a part. */
static DataSource *open_part(double begin, double end, uint64_t seed, bool stratify)
{
  static ampc_source s[3];
  DataSource *out;
  s[0] = s[1] = (ampc_source){.kind = AMPC_SOURCE_CSV,
                              .path = "x.csv",
                              .args = CSV("n"),
                              .dtype = AMPC_I64,
                              .part_begin = begin,
                              .part_end = end,
                              .drawn = true,
                              .part_seed = seed};
  s[2] = s[0];
  s[1].args = CSV("c");
  s[1].stratify = stratify;
  s[2].kind = AMPC_SOURCE_RAW;
  s[2].path = "x.raw";
  s[2].args = "dtype=u8\n";
  s[2].dtype = AMPC_U8;
  ampc_status status = sources_open(&program, s, 3, temp_folder, 1, &out);
  CHECK_MSG(!status, "%s", ampc_last_error());
  MUST(!status);
  return out;
}

/* Counts the part's samples in seen[]. Checks that its sources have the same samples in the order
 * of the file. Returns the number of samples, and of each class in out[]. */
static int64_t count_part(DataSource *s, int *seen, int64_t *out)
{
  int64_t n = s->count, last = -1;
  memset(out, 0, CLASSES * sizeof *out);
  for (int64_t i = 0; i < n; i++) {
    int64_t number, class;
    uint8_t byte;
    MUST(source_copy(&s[0], i, 1, 0, &number) == AMPC_OK && number > last && number < SAMPLES);
    MUST(source_copy(&s[1], i, 1, 0, &class) == AMPC_OK &&
         source_copy(&s[2], i, 1, 0, &byte) == AMPC_OK);
    CHECK(byte == number && class == number * CLASSES / SAMPLES);
    seen[number]++;
    out[class]++;
    last = number;
  }
  sources_close(s, 3);
  return n;
}

static void check_parts(void)
{
  static const double bounds[] = {0, 0.7, 0.85, 1};
  int first[SAMPLES] = {0}, other[SAMPLES] = {0};
  for (int stratify = 0; stratify < 2; stratify++) {
    int seen[SAMPLES] = {0};
    for (int i = 0; i < 3; i++) {
      int64_t of_class[CLASSES],
          n = count_part(open_part(bounds[i], bounds[i + 1], 3, stratify), seen, of_class);
      for (int c = 0; c < CLASSES && stratify; c++)
        CHECK_MSG(llabs(CLASSES * of_class[c] - n) < CLASSES * (i == 1 ? 2 : 1), "%lld of %lld",
                  (long long)of_class[c], (long long)n);
    }
    for (int i = 0; i < SAMPLES; i++) CHECK(seen[i] == 1);
  }
  int64_t of_class[CLASSES];
  count_part(open_part(0, 0.5, 3, true), first, of_class);
  count_part(open_part(0, 0.5, 4, true), other, of_class);
  CHECK(memcmp(first, other, sizeof first) != 0);
}

static void check_lengths(void)
{
  DataSource *s = open_part(0, 1, 3, true), *out;
  ampc_source desc[2] = {*s[0].desc, *s[2].desc};
  sources_close(s, 3);
  char bytes[SAMPLES + 1] = {0};
  temp_write(temp_path("x.raw"), bytes, sizeof bytes);
  CHECK(sources_open(&program, desc, 2, temp_folder, 1, &out) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "x.csv has 90 samples, but ") &&
        strstr(ampc_last_error(), "x.raw has 91"));
  sources_close(out, 2);
}

/* ---- statistics ---- */

static void check_statistics(void)
{
  /* column b: 1e8 + {0, 1, 2, 3}: squares of the values would lose the deviation. c: constant */
  static const char text[] =
      "a,b,c\n1,100000000,0.1\n3,100000008,0.1\n5,100000016,0.1\n7,100000024,0.1\n";
  static const double mean[] = {4, 100000012, 0.1f},
                      deviation[] = {2.23606797749979, 8.94427190999916, 0};
  temp_write(temp_path("s.csv"), text, strlen(text));
  ampc_source desc = {
      .kind = AMPC_SOURCE_CSV,
      .path = "s.csv",
      .args = "column=a\ncolumn=b\ncolumn=c\nnumber=0\nscalar=0\ndtype=f32\nheader=1\nsep=,\n",
      .dtype = AMPC_F32,
      .rank = 1,
      .dim = {3},
      .part_end = 1};
  DataSource *s;
  double has[2][3];
  MUST(sources_open(&program, &desc, 1, temp_folder, 1, &s) == AMPC_OK);
  MUST(source_measure(s, has[0], has[1]) == AMPC_OK);
  for (int c = 0; c < 3; c++) {
    CHECK_MSG(fabs(has[0][c] - mean[c]) <= 1e-15 * mean[c], "mean %d: %.17g", c, has[0][c]);
    CHECK_MSG(fabs(has[1][c] - deviation[c]) <= 1e-15 * deviation[c], "deviation %d: %.17g", c,
              has[1][c]);
  }
  sources_close(s, 1);
  static const char lost[] = "a,b,c\n1,2,3\n1,inf,3\n";
  temp_write(temp_path("s.csv"), lost, strlen(lost));
  MUST(sources_open(&program, &desc, 1, temp_folder, 1, &s) == AMPC_OK);
  CHECK(source_measure(s, has[0], has[1]) == AMPC_BAD_FILE &&
        strstr(ampc_last_error(), "column b of"));
  sources_close(s, 1);
}

/* Channels of pictures: [2, 2] of u8, two samples. */
static void check_channels(void)
{
  static const uint8_t bytes[] = {0, 2, 10, 30, 4, 6, 20, 40};
  ampc_source desc = {.kind = AMPC_SOURCE_RAW,
                      .path = "p.raw",
                      .args = "shape=2\nshape=2\ndtype=u8\n",
                      .dtype = AMPC_U8,
                      .rank = 2,
                      .dim = {2, 2},
                      .part_end = 1};
  DataSource *s;
  double mean[2], deviation[2];
  temp_write(temp_path("p.raw"), (const char *)bytes, sizeof bytes);
  MUST(sources_open(&program, &desc, 1, temp_folder, 1, &s) == AMPC_OK);
  MUST(source_measure(s, mean, deviation) == AMPC_OK);
  CHECK(mean[0] == 3 && mean[1] == 25 && deviation[0] == sqrt(5) && deviation[1] == sqrt(125));
  sources_close(s, 1);
}

int main(void)
{
  temp_open();
  write_files();
  check_orders();
  check_balance();
  check_parts();
  check_lengths();
  check_statistics();
  check_channels();
  temp_close();
  return check_done();
}
