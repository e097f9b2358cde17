/* The next token of a text: probabilities against PyTorch and transformers, equal logits, many
 * tokens, draws, logits without a valid token. */
#include "check.h"
#include "runner/infer/sample.h"
#include "runtime/base/philox.h"
#include <math.h>

enum { N = 8 };
static const double logits[N] = {0.5, -1.25, 2.0, 2.0, 0.0, -3.5, 1.75, 2.5};

/* y = x / temperature; y = where(y < topk(y, k)[0][-1], -inf, y); softmax(y, 0), in float64 */
static const struct {
  double temperature;
  uint32_t top_k;
  double probability[N];
} cases[] = {
    {1.0,
     0,
     {0.04620773694550488, 0.00802970066694121, 0.20708870963372564, 0.20708870963372564,
      0.028026409173384902, 0.0008463242237594883, 0.1612808492279923, 0.341431560494966}},
    {0.8,
     0,
     {0.03159651338414688, 0.003545030552985703, 0.20603514861111127, 0.20603514861111127,
      0.01691239489021785, 0.00021289563253827626, 0.15073853483623298, 0.3849243334816558}},
    {0.8,
     2,
     {0.0, 0.0, 0.25851510245326004, 0.25851510245326004, 0.0, 0.0, 0.0, 0.48296979509347987}},
    {2.5,
     4,
     {0.0, 0.0, 0.24235137977883617, 0.24235137977883617, 0.0, 0.0, 0.21928859673653436,
      0.2960086437057933}},
    {1.0, 1, {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}},
    {0.05,
     5,
     {4.247967240999803e-18, 0.0, 4.539579394409299e-05, 4.539579394409299e-05, 0.0, 0.0,
      3.058744535767036e-07, 0.9999089025376582}},
};

/* Logits and probabilities of transformers, by make_sampled.py. */
enum { TOKENS = 24 };
static const double sampled_logits[TOKENS] = {
#define LOGITS(...) __VA_ARGS__
#define TEXT(...)
#define CASE(...)
#include "sampled.def"
#undef LOGITS
#undef TEXT
};
static const int64_t sampled_text[] = {
#define LOGITS(...)
#define TEXT(...) __VA_ARGS__
#include "sampled.def"
#undef TEXT
#undef CASE
};
static const struct {
  Sampling how;
  double probability[TOKENS];
} sampled[] = {
#define TEXT(...)
#define CASE(temperature, k, p, m, penalty, ...) {{temperature, k, p, m, penalty}, {__VA_ARGS__}},
#include "sampled.def"
};

static int weights(double *x, double temperature, uint32_t top_k)
{
  double order[N];
  return sample_weights(&(Sampling){temperature, top_k, 1, 0, 1}, x, N, NULL, 0, order);
}

static void check_torch(void)
{
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    double x[N];
    memcpy(x, logits, sizeof x);
    CHECK(weights(x, cases[c].temperature, cases[c].top_k) == 0);
    for (int i = 0; i < N; i++) {
      double want = cases[c].probability[i];
      CHECK_MSG(fabs(x[i] - want) <= 1e-14 * want + 1e-300,
                "case %zu, token %d: %.17g, PyTorch has %.17g", c, i, x[i], want);
    }
  }
}

static void check_transformers(void)
{
  const int64_t length = sizeof sampled_text / sizeof *sampled_text;
  for (size_t c = 0; c < sizeof sampled / sizeof *sampled; c++) {
    double x[TOKENS], scratch[TOKENS];
    memcpy(x, sampled_logits, sizeof x);
    CHECK(sample_weights(&sampled[c].how, x, TOKENS, sampled_text, length, scratch) == 0);
    for (int i = 0; i < TOKENS; i++) {
      double want = sampled[c].probability[i];
      CHECK_MSG(fabs(x[i] - want) <= 1e-14 * want,
                "case %zu, token %d: %.17g, transformers has %.17g", c, i, x[i], want);
    }
  }
}

/* Checks that a penalty also changes the likeliest token, and that tokens that the model does not
 * have change nothing. */
static void check_penalty(void)
{
  double x[4] = {1, 3, 2, -1}, scratch[4];
  const Sampling how = {0, 0, 1, 0, 2};
  CHECK(sample_token(&how, x, 4, (int64_t[]){1, 1, 3}, 3, 0.5, scratch) == 2);
  double y[4] = {1, 3, 2, -1};
  CHECK(sample_token(&how, y, 4, (int64_t[]){4, -1, INT64_MAX}, 3, 0.5, scratch) == 1);
}

/* Of equal tokens, top-p keeps the first ones; min-p keeps all or none. */
static void check_equal(void)
{
  double x[8] = {0}, y[8] = {0, 1, 1, 0, 0, 0, 0, 0}, scratch[8];
  const Sampling half = {1, 0, 0.5, 0, 1}, least = {1, 0, 1, 0.9, 1};
  CHECK(sample_weights(&half, x, 8, NULL, 0, scratch) == 0);
  for (int i = 0; i < 8; i++) CHECK(i < 4 ? x[i] == 0.25 : x[i] == 0);
  CHECK(sample_weights(&least, y, 8, NULL, 0, scratch) == 0);
  for (int i = 0; i < 8; i++) CHECK(i == 1 || i == 2 ? y[i] == 0.5 : y[i] == 0);
}

static double x_many[5000], kept[5000], all[5000], scratch_many[5000];

/* Checks the definitions of top-k and top-p for n random logits, of which `values` differ. */
static void check_many(int64_t n, double values, uint32_t k, double p)
{
  const Sampling plain = SAMPLING_DEFAULT;
  Sampling how = plain;
  how.top_k = k;
  how.top_p = p;
  for (int64_t i = 0; i < n; i++)
    x_many[i] = floor(philox_uniform(9, 1, (uint64_t)i) * values) * 12 / values;
  memcpy(all, x_many, sizeof all);
  memcpy(kept, x_many, sizeof kept);
  CHECK(sample_weights(&plain, all, n, NULL, 0, scratch_many) == 0);
  CHECK(sample_weights(&how, kept, n, NULL, 0, scratch_many) == 0);
  double sum = 0, least = INFINITY, most = 0;
  int64_t count = 0, above = 0, equal = 0;
  for (int64_t i = 0; i < n; i++) {
    if (kept[i] > 0) {
      sum += all[i];
      count++;
      least = all[i] < least ? all[i] : least;
    } else {
      most = all[i] > most ? all[i] : most;
    }
  }
  for (int64_t i = 0; i < n; i++) {
    above += all[i] > least;
    equal += all[i] == least;
  }
  CHECK_MSG(most <= least, "%lld tokens, top-k %u, top-p %g: order", (long long)n, k, p);
  if (k)
    CHECK_MSG(count == above + equal && above < k && (count >= k || count == n),
              "%lld tokens: top-k %u keeps %lld", (long long)n, k, (long long)count);
  else
    CHECK_MSG(sum >= p * (1 - 1e-12) && sum - least < p, "%lld tokens: top-p %g keeps %g",
              (long long)n, p, sum);
}

/* Checks that the first of equal logits wins. A top_k of the vocabulary or more excludes none. */
static void check_greedy(void)
{
  double x[N] = {1, 3, 2, 3, -INFINITY, 0, 0, 0}, y[N] = {0}, z[N];
  CHECK(weights(x, 0, 0) == 0 && x[1] == 1 && x[3] == 0 && sample_pick(x, N, 0.999) == 1);
  CHECK(weights(y, 0, 5) == 0 && sample_pick(y, N, 0) == 0);
  memcpy(x, logits, sizeof x);
  memcpy(z, logits, sizeof z);
  CHECK(weights(x, 1, 0) == 0 && weights(z, 1, 100) == 0 && memcmp(x, z, sizeof x) == 0);
}

static void check_impossible(void)
{
  double nan[N] = {0, NAN}, inf[N] = {0, INFINITY}, none[N];
  for (int i = 0; i < N; i++) none[i] = -INFINITY;
  CHECK(weights(nan, 1, 0) == -1);
  CHECK(weights(inf, 1, 2) == -1);
  CHECK(weights(none, 0, 0) == -1);
}

/* Checks that frequencies match the probabilities within five standard deviations, at both ends. */
static void check_draws(void)
{
  enum { DRAWS = 100000 };
  double x[N], room[N];
  int count[N] = {0};
  memcpy(x, logits, sizeof x);
  CHECK(sample_weights(&(Sampling){0.8, 5, 1, 0, 1}, x, N, NULL, 0, room) == 0);
  for (uint64_t i = 0; i < DRAWS; i++) count[sample_pick(x, N, philox_uniform(7, 1, i))]++;
  for (int i = 0; i < N; i++) {
    double mean = DRAWS * x[i], bound = 5 * sqrt(mean * (1 - x[i]));
    CHECK_MSG(fabs(count[i] - mean) <= bound, "token %d: %d times, expected %g", i, count[i], mean);
  }
  double ends[4] = {0, 0.25, 0.75, 0};
  CHECK(sample_pick(ends, 4, 0) == 1 && sample_pick(ends, 4, 0.25) == 2);
  CHECK(sample_pick(ends, 4, 1 - 0x1p-53) == 2);
  double less[2] = {0.5, 0.4999999999999999}; /* the sum is below u: the last token */
  CHECK(sample_pick(less, 2, 1 - 0x1p-53) == 1);
}

int main(void)
{
  check_torch();
  check_transformers();
  check_penalty();
  check_equal();
  for (int64_t n = 1; n <= 5000; n = n * 3 + 1) {
    for (uint32_t k = 1; k <= n; k = 2 * k + 1)
      for (double values = 2; values < 1e6; values *= 50) check_many(n, values, k, 1);
    for (double p = 0.0625; p < 1; p += 0.0625)
      for (double values = 2; values < 1e6; values *= 50) check_many(n, values, 0, p);
  }
  check_greedy();
  check_impossible();
  check_draws();
  return check_done();
}
