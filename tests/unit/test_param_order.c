/* Convolution weights are stored channels last. That is invisible from outside: initial values,
 * files and reads equal those of the same program with weights in the order of their shape. */
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "temp.h"

/* Weights over 2, 1 and 3 axes, one of them with filters larger than a chunk of a checkpoint, and a
 * bias. */
enum { N = 5, BIG = 3 * 400 * 9 * 9 * 9 };
static ampc_param plain[N] = {
    {.path = "w",
     .rank = 4,
     .dim = {4, 5, 3, 1},
     .elements = 60,
     .offset = 0,
     .init = {.kind = AMPC_INIT_NORMAL, .b = 1}},
    {.path = "p",
     .rank = 3,
     .dim = {3, 7, 1},
     .elements = 21,
     .offset = 64,
     .init = {.kind = AMPC_INIT_UNIFORM, .b = 1}},
    {.path = "b",
     .rank = 1,
     .dim = {6},
     .elements = 6,
     .offset = 128,
     .init = {.kind = AMPC_INIT_CONSTANT, .a = 2}},
    {.path = "o",
     .rank = 4,
     .dim = {4, 2, 2, 3},
     .elements = 48,
     .offset = 192,
     .init = {.kind = AMPC_INIT_ORTHOGONAL, .a = 1}},
    {.path = "v",
     .optimizer = -1,
     .rank = 5,
     .dim = {3, 400, 9, 9, 9},
     .elements = BIG,
     .offset = 256,
     .init = {.kind = AMPC_INIT_NORMAL, .b = 1}},
};
static const ampc_optimizer_desc optimizer = {"opt", "AdamW", 0,     256, true,
                                              true,  false,   false, 1,   0};

static const ampc_block block = {.name = "train", .n_variants = 1};

static ampc_program program(const ampc_param *params)
{
  ampc_program p = {.name = "order",
                    .source = "order.amp",
                    .target = "cpu",
                    .precision = "f16",
                    .params = params,
                    .optimizers = &optimizer,
                    .blocks = &block,
                    .scaler = {.init = 1},
                    .n_params = N,
                    .n_blocks = 1,
                    .n_optimizers = 1};
  p.space_bytes[AMPC_STATE] = ampc_state_setting(1, 0, 0);
  p.space_bytes[AMPC_MASTER] = (256 + BIG) * 4;
  p.space_bytes[AMPC_COPY16] = (256 + BIG) * 2;
  p.space_bytes[AMPC_GRAD] = p.space_bytes[AMPC_MOMENT1] = p.space_bytes[AMPC_MOMENT2] = 256 * 4;
  return p;
}

static ampc_runtime *start(const ampc_program *p, uint64_t seed)
{
  ampc_runtime *rt;
  MUST(ampc_create(p, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, seed) == AMPC_OK);
  return rt;
}

static const float *space(ampc_runtime *rt, ampc_space s)
{
  return (const float *)(void *)ampc_spaces(rt)[s];
}

static bool same_files(const char *a, const char *b)
{
  size_t n, m;
  char *x = temp_read(a, &n), *y = temp_read(b, &m);
  bool same = n == m && memcmp(x, y, n) == 0;
  free(x);
  free(y);
  return same;
}

/* Checks that element [k, c, t] of a shape [k, c, kernel..] lies at [k, t, c]. */
static void check_place(const ampc_param *q, const float *row_major, const float *laid)
{
  int64_t c = q->dim[1], taps = q->elements / q->dim[0] / c, wrong = 0;
  for (int64_t i = 0; i < q->elements; i++) {
    int64_t k = i / taps / c, channel = i / taps % c, tap = i % taps;
    wrong += laid[(k * taps + tap) * c + channel] != row_major[i];
  }
  CHECK_MSG(wrong == 0, "%s: %d elements lie elsewhere", q->path, (int)wrong);
}

static void check_order(void)
{
  static ampc_param last[N];
  memcpy(last, plain, sizeof plain);
  for (int i = 0; i < N; i++) last[i].channels_last = last[i].rank > 2;
  ampc_program p = program(plain), q = program(last);
  ampc_runtime *a = start(&p, 7), *b = start(&q, 7), *c = start(&q, 8), *d = start(&p, 9);
  ampc_data_position at = {0, 0, 0};
  for (int i = 0; i < N; i++) {
    const float *from = space(a, AMPC_MASTER) + plain[i].offset;
    const float *to = space(b, AMPC_MASTER) + plain[i].offset;
    if (last[i].channels_last) check_place(&plain[i], from, to);
    if (!last[i].channels_last) CHECK(memcmp(from, to, (size_t)plain[i].elements * 4) == 0);
  }
  float moments[60], back[60];
  for (int i = 0; i < 60; i++) moments[i] = (float)i + 0.5f;
  for (int i = AMPC_MOMENT1; i <= AMPC_MOMENT2; i++) {
    CHECK(ampc_write_param(a, &plain[0], (ampc_space)i, moments) == AMPC_OK);
    CHECK(ampc_write_param(b, &last[0], (ampc_space)i, moments) == AMPC_OK);
    CHECK(ampc_read_param(b, &last[0], (ampc_space)i, back) == AMPC_OK);
    CHECK(memcmp(moments, back, sizeof back) == 0);
    check_place(&plain[0], space(a, (ampc_space)i), space(b, (ampc_space)i));
  }
  /* both programs write the same file, and each loads that of the other */
  MUST(ampc_checkpoint_save(a, temp_path("a"), at) == AMPC_OK);
  MUST(ampc_checkpoint_save(b, temp_path("b"), at) == AMPC_OK);
  CHECK(same_files(temp_path("a"), temp_path("b")));
  CHECK(ampc_checkpoint_load(c, temp_path("a"), &at) == AMPC_OK);
  CHECK(ampc_checkpoint_load(d, temp_path("b"), &at) == AMPC_OK);
  for (int i = AMPC_MASTER; i <= AMPC_MOMENT2; i++) {
    size_t bytes = (size_t)p.space_bytes[i];
    if (!bytes) continue;
    CHECK(memcmp(space(b, (ampc_space)i), space(c, (ampc_space)i), bytes) == 0);
    CHECK(memcmp(space(a, (ampc_space)i), space(d, (ampc_space)i), bytes) == 0);
  }
  ampc_free(a);
  ampc_free(b);
  ampc_free(c);
  ampc_free(d);
}

int main(void)
{
  temp_open();
  check_order();
  temp_close();
  return check_done();
}
