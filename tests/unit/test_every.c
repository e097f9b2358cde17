/* The variants that `every` makes of a block: exactly those that some step runs, each once. A full
 * batch and the smaller last batch have the same variants. */
#include "check.h"
#include "compiler/base/compile.h"
#include "compiler/driver.h"
#include "ampc_rt.h"

enum { SAMPLES = 10, BATCH = 4, REST = 2, STEPS = 5000 };

/* Returns a bit mask of the numbers that divide the step. */
static uint32_t fires_in(const int64_t *numbers, uint32_t n, int64_t step)
{
  uint32_t out = 0;
  for (uint32_t i = 0; i < n; i++) out |= (uint32_t)(step % numbers[i] == 0) << i;
  return out;
}

static uint32_t count_bits(uint32_t v)
{
  uint32_t n = 0;
  for (; v; v &= v - 1) n++;
  return n;
}

static void check_block(const ampc_block *b, const int64_t *numbers, uint32_t n, bool kept)
{
  bool seen[AMPC_MAX_VARIANTS] = {false};
  for (int64_t step = 1; step <= STEPS; step++) {
    uint32_t whole = ampc_variant_at(b, BATCH, step), rest = ampc_variant_at(b, REST, step);
    MUST(whole < b->n_variants && (rest < b->n_variants) == kept);
    CHECK(b->variant[whole].batch == BATCH);
    CHECK(b->variant[whole].fires == fires_in(b->period, b->n_periods, step));
    CHECK(count_bits(b->variant[whole].fires) == count_bits(fires_in(numbers, n, step)));
    seen[whole] = true;
    if (!kept) continue;
    CHECK(rest == whole + b->n_variants / 2 && b->variant[rest].batch == REST);
    CHECK(b->variant[rest].fires == b->variant[whole].fires);
    seen[rest] = true;
  }
  for (uint32_t v = 0; v < b->n_variants; v++) CHECK_MSG(seen[v], "variant %u never runs", v);
  CHECK(ampc_variant_at(b, BATCH, 0) == 0); /* outside of steps all statements run */
  CHECK(ampc_variant_at(b, BATCH - 1, 1) == b->n_variants);
}

/* Checks the variants. `numbers` may be in any order. None is 1, and none occurs twice. */
static void check_numbers(const int64_t *numbers, uint32_t n, bool kept)
{
  char text[1024];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "model net = Linear(3, 1)\noptimizer opt = SGD(net, lr=0.1)\n"
                               "train x in synthetic(%d, [3]) with batch=%d, drop_last=%s {\n"
                               "  every 1 { minimize mean(net(x)) with opt }\n",
                               SAMPLES, BATCH, kept ? "false" : "true");
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "  every %lld { metric m%u = mean(x) }\n",
                           (long long)numbers[i], i);
  snprintf(text + at, sizeof text - at, "}\n");
  Options options = {.input = "a.amp", .target = "cpu", .optimize = 2, .error_limit = 20};
  Compile *c = compile_create(&options);
  MUST(compile_text(c, "a.amp", text, strlen(text)));
  const ampc_block *b = &c->program->blocks[0];
  CHECK(b->n_periods == n && b->n_metrics == n + 1);
  for (uint32_t i = 1; i < b->n_periods; i++) CHECK(b->period[i - 1] < b->period[i]);
  check_block(b, numbers, n, kept);
  compile_destroy(c);
}

int main(void)
{
  static const struct {
    uint32_t n;
    int64_t at[AMPC_MAX_PERIODS];
  } cases[] = {{0, {0}},       {1, {5}},         {2, {3, 2}},    {2, {4, 2}},
               {2, {4, 6}},    {3, {15, 6, 10}}, /* a multiple of 6 and 10 is one of 15 too */
               {3, {2, 3, 6}}, {3, {12, 4, 6}},  {3, {2, 3, 5}}, {7, {2, 4, 8, 16, 32, 64, 128}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int kept = 0; kept < 2; kept++) check_numbers(cases[i].at, cases[i].n, kept);
  return check_done();
}
