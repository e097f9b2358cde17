/* A call of attention by cuDNN: see attention_call.h. */
#include "attention_call.h"
#include "check.h"
#include "mock.h"
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "runtime/cuda/cuda_device.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
ampc_program call_program = {.name = "test",
                             .source = "test.amp",
                             .target = "sm_90",
                             .precision = "f16",
                             .space_bytes = {[AMPC_STATE] = 4096, [AMPC_WORK] = 4096},
                             .blocks = &block,
                             .n_blocks = 1};

static ampc_dtype type_of(int argument)
{
  return argument == SUMS ? AMPC_F32 : AMPC_F16;
}

static int64_t bytes_of(const Call *c, int argument)
{
  return c->n[argument] * ampc_dtype_size(type_of(argument));
}

static void bring(const Call *c, int argument)
{
  char *bytes = malloc((size_t)bytes_of(c, argument));
  MUST(bytes);
  convert_narrow(type_of(argument), c->at[argument], bytes, c->n[argument]);
  MUST(c->device->ops->copy_in(c->device, c->args[argument], bytes, bytes_of(c, argument)) ==
       AMPC_OK);
  free(bytes);
}

void call_fetch(const Call *c, int argument)
{
  char *bytes = malloc((size_t)bytes_of(c, argument));
  MUST(bytes);
  MUST(c->device->ops->copy_out(c->device, bytes, c->args[argument], bytes_of(c, argument)) ==
       AMPC_OK);
  convert_widen(type_of(argument), bytes, c->at[argument], c->n[argument]);
  free(bytes);
}

static ampc_attention_operand lying(int argument, int64_t first, int64_t rows, int64_t row,
                                    int64_t width)
{
  return (ampc_attention_operand){(uint32_t)argument + 1, first, {rows * row, row, width}};
}

static void bring_state(Call *c)
{
  const int64_t state[] = {SEED, BODY};
  MUST(c->device->ops->alloc(c->device, sizeof state, &c->args[STATE]) == AMPC_OK);
  MUST(c->device->ops->copy_in(c->device, c->args[STATE], state, sizeof state) == AMPC_OK);
  c->args[STREAM] = AMPC_NUMBER(DRAWS);
  c->a.state = STATE + 1;
  c->a.stream = STREAM + 1;
}

Call call_of(int64_t n, int64_t l, int64_t heads, int64_t d, bool causal)
{
  Call c = {.a = {.causal = causal,
                  .n = n,
                  .l = l,
                  .s = l,
                  .heads = heads,
                  .d = d,
                  .e = d,
                  .scale = 0.5,
                  .type = AMPC_F16}};
  int64_t width = heads * d, row = 3 * width;
  c.a.q = lying(QKV, 0, l, row, d);
  c.a.k = lying(QKV, width, l, row, d);
  c.a.v = lying(QKV, 2 * width, l, row, d);
  c.a.y = lying(Y, 0, l, width, d);
  c.a.sums = lying(SUMS, 0, l, heads, 1);
  c.a.dy = lying(DY, 0, l, width, d);
  c.a.dq = lying(DQ, 0, l, width, d);
  c.a.dk = lying(DK, 0, l, width, d);
  c.a.dv = lying(DV, 0, l, width, d);
  MUST(cuda_device_open(&call_program, 1, ANY_GPU, &c.device) == AMPC_OK);
  bring_state(&c);
  for (int i = 0; i < TENSORS; i++) {
    c.n[i] = i == QKV ? n * l * row : i == SUMS ? n * l * heads : n * l * width;
    c.at[i] = calloc((size_t)c.n[i], sizeof(float));
    MUST(c.at[i]);
    for (int64_t k = 0; k < c.n[i]; k++) c.at[i][k] = (float)(k * 7 % 13 - 6 + i) / 8;
    MUST(c.device->ops->alloc(c.device, bytes_of(&c, i), &c.args[i]) == AMPC_OK);
    bring(&c, i);
  }
  return c;
}

void call_mask(Call *c, const bool axes[4])
{
  const int64_t all[] = {c->a.n, c->a.heads, c->a.l, c->a.s};
  int64_t n = 1, row = axes[3] ? c->a.s : 1;
  for (int i = 4; i-- > 0;) {
    c->a.mask.stride[i] = axes[i] ? n : 0;
    if (axes[i]) n *= all[i];
  }
  c->mask = calloc(1, (size_t)n);
  MUST(c->mask);
  for (int64_t i = 0; i + row < n; i++) c->mask[i] = i * 7 % 5 > 1;
  MUST(c->device->ops->alloc(c->device, n, &c->args[MASK]) == AMPC_OK);
  MUST(c->device->ops->copy_in(c->device, c->args[MASK], c->mask, n) == AMPC_OK);
  c->a.mask.argument = MASK + 1;
}

void call_end(Call *c)
{
  for (int i = 0; i < TENSORS; i++) {
    free(c->at[i]);
    c->device->ops->release(c->device, c->args[i]);
  }
  c->device->ops->release(c->device, c->args[STATE]);
  if (c->mask) c->device->ops->release(c->device, c->args[MASK]);
  free(c->mask);
  c->device->ops->close(c->device);
  MUST(mock_count("held") == 0);
}

/* ---- the reference in double ---- */

static double at(const Call *c, const ampc_attention_operand *o, int64_t i, int64_t row, int64_t h,
                 int64_t k)
{
  return c->at[o->argument - 1]
              [o->first + i * o->stride[0] + row * o->stride[1] + h * o->stride[2] + k];
}

/* Returns the inner product of two rows of `width` features. */
static double inner(const Call *c, int64_t width, const ampc_attention_operand *x, int64_t row,
                    const ampc_attention_operand *y, int64_t other, int64_t i, int64_t h)
{
  double sum = 0;
  for (int64_t k = 0; k < width; k++) sum += at(c, x, i, row, h, k) * at(c, y, i, other, h, k);
  return sum;
}

static double score(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  return c->a.scale * inner(c, c->a.d, &c->a.q, query, &c->a.k, key, i, h);
}

static bool sees(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const int64_t *m = c->a.mask.stride;
  if (c->a.causal && key > query) return false;
  return !c->mask || c->mask[i * m[0] + h * m[1] + query * m[2] + key * m[3]];
}

static double weight(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  double sum = 0;
  if (!sees(c, i, h, query, key)) return 0;
  for (int64_t k = 0; k < c->a.s; k++)
    if (sees(c, i, h, query, k)) sum += exp(score(c, i, h, query, k));
  return exp(score(c, i, h, query, key)) / sum;
}

/* Returns dropout's factor for this weight. */
static double share(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const ampc_attention *a = &c->a;
  uint64_t score = (uint64_t)(((i * a->heads + h) * a->l + query) * a->s + key);
  Philox drawn = philox(SEED, score / 4, BODY | (uint64_t)DRAWS << 32);
  return (drawn.word[score % 4] >> 8) * 0x1p-24 >= a->p ? 1 / (1 - a->p) : 0;
}

/* Returns 1 for a wrong number, and prints the first ones. It is below 2; weights, gradients of
 * scores and results are rounded to 11 bits. */
static unsigned is_wrong(const Call *c, const ampc_attention_operand *o, int64_t i, int64_t row,
                         int64_t h, int64_t k, double want)
{
  double got = at(c, o, i, row, h, k), most = 0x1p-9 * (1 + fabs(want));
  enum { PRINTED = 10 };
  static unsigned printed;
  if (fabs(got - want) <= most) return 0;
  if (printed++ < PRINTED)
    fprintf(stderr, "argument %d [%lld, %lld, %lld, %lld]: %g, expected %g\n", (int)o->argument,
            (long long)i, (long long)row, (long long)h, (long long)k, got, want);
  return 1;
}

/* Returns a step that visits all of a few elements, or about MANY of many. */
static int64_t some_of(int64_t n)
{
  enum { MANY = 8 };
  return n <= 2 * MANY ? 1 : n / MANY;
}

unsigned call_forward_wrong(const Call *c, int64_t i, int64_t h)
{
  unsigned wrong = 0;
  const ampc_attention *a = &c->a;
  for (int64_t query = 0; query < a->l; query += some_of(a->l))
    for (int64_t k = 0; k < a->e; k += some_of(a->e)) {
      double y = 0;
      for (int64_t key = 0; key < a->s; key++)
        y += weight(c, i, h, query, key) * share(c, i, h, query, key) * at(c, &a->v, i, key, h, k);
      wrong += is_wrong(c, &a->y, i, query, h, k, y);
    }
  return wrong;
}

static double slope(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const ampc_attention *a = &c->a;
  double off = inner(c, a->e, &a->dy, query, &a->y, query, i, h);
  double own = inner(c, a->e, &a->dy, query, &a->v, key, i, h);
  return a->scale * weight(c, i, h, query, key) * (own * share(c, i, h, query, key) - off);
}

unsigned call_backward_wrong(const Call *c, int64_t i, int64_t h)
{
  unsigned wrong = 0;
  const ampc_attention *a = &c->a;
  for (int64_t k = 0; k < a->d; k += some_of(a->d)) {
    for (int64_t query = 0; query < a->l; query += some_of(a->l)) {
      double dq = 0;
      for (int64_t key = 0; key < a->s; key++)
        dq += slope(c, i, h, query, key) * at(c, &a->k, i, key, h, k);
      wrong += is_wrong(c, &a->dq, i, query, h, k, dq);
    }
    for (int64_t key = 0; key < a->s; key += some_of(a->s)) {
      double dk = 0, dv = 0;
      for (int64_t query = 0; query < a->l; query++) {
        dk += slope(c, i, h, query, key) * at(c, &a->q, i, query, h, k);
        if (k < a->e)
          dv += weight(c, i, h, query, key) * share(c, i, h, query, key) *
                at(c, &a->dy, i, query, h, k);
      }
      wrong += is_wrong(c, &a->dk, i, key, h, k, dk);
      if (k < a->e) wrong += is_wrong(c, &a->dv, i, key, h, k, dv);
    }
  }
  return wrong;
}
