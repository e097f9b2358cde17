/* Attention by cuDNN as the runtime calls it, against sums in double: operands at any place in
 * memory, unused sums, images and heads in parts, and cases in which cuDNN must not be used. */
#include "ampc_rt.h"
#include "cases.h"
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cudnn_attention.h"
#include "runtime/device.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
static ampc_program program = {.name = "test",
                               .source = "test.amp",
                               .target = "sm_90",
                               .precision = "f16",
                               .space_bytes = {[AMPC_STATE] = 4096, [AMPC_WORK] = 4096},
                               .blocks = &block,
                               .n_blocks = 1};

/* The operands of a call, on the host and on the device. Rows of q, k and v are in one tensor. */
enum { QKV, Y, SUMS, DY, DQ, DK, DV, TENSORS };
enum { STATE = TENSORS, STREAM, ARGUMENTS, SEED = 5, BODY = 3, DRAWS = 9 };
typedef struct Call {
  Device *device;
  ampc_attention a;
  int64_t n[TENSORS];
  float *at[TENSORS];
  void *args[ARGUMENTS];
} Call;

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

static void fetch(const Call *c, int argument)
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

/* Returns a call with as many keys as queries. Heads are contiguous in rows of 3 * heads * d. */
static Call call_of(int64_t n, int64_t l, int64_t heads, int64_t d, bool causal)
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
  MUST(cuda_device_open(&program, 1, ANY_GPU, &c.device) == AMPC_OK);
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

static void end(Call *c)
{
  for (int i = 0; i < TENSORS; i++) {
    free(c->at[i]);
    c->device->ops->release(c->device, c->args[i]);
  }
  c->device->ops->release(c->device, c->args[STATE]);
  c->device->ops->close(c->device);
  CHECK(mock_count("held") == 0);
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

static double weight(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const ampc_attention *a = &c->a;
  double sum = 0;
  int64_t seen = a->causal ? query + 1 : a->s;
  for (int64_t k = 0; k < seen; k++) sum += exp(score(c, i, h, query, k));
  return key < seen ? exp(score(c, i, h, query, key)) / sum : 0;
}

/* Returns dropout's factor for this weight. */
static double share(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const ampc_attention *a = &c->a;
  uint64_t score = (uint64_t)(((i * a->heads + h) * a->l + query) * a->s + key);
  Philox drawn = philox(SEED, score / 4, BODY | (uint64_t)DRAWS << 32);
  return (drawn.word[score % 4] >> 8) * 0x1p-24 >= a->p ? 1 / (1 - a->p) : 0;
}

/* Checks a number below 2. Weights, gradients of scores and results are rounded to 11 bits. */
static void check(const Call *c, const ampc_attention_operand *o, int64_t i, int64_t row, int64_t h,
                  int64_t k, double want)
{
  double got = at(c, o, i, row, h, k), most = 0x1p-9 * (1 + fabs(want));
  CHECK_MSG(fabs(got - want) <= most, "argument %d [%lld, %lld, %lld, %lld]: %g, expected %g",
            (int)o->argument, (long long)i, (long long)row, (long long)h, (long long)k, got, want);
}

/* Returns a step that visits all of a few elements, or about MANY of many. */
static int64_t some_of(int64_t n)
{
  enum { MANY = 8 };
  return n <= 2 * MANY ? 1 : n / MANY;
}

static void check_forward(const Call *c, int64_t i, int64_t h)
{
  const ampc_attention *a = &c->a;
  for (int64_t query = 0; query < a->l; query += some_of(a->l))
    for (int64_t k = 0; k < a->e; k += some_of(a->e)) {
      double y = 0;
      for (int64_t key = 0; key < a->s; key++)
        y += weight(c, i, h, query, key) * share(c, i, h, query, key) * at(c, &a->v, i, key, h, k);
      check(c, &a->y, i, query, h, k, y);
    }
}

static double slope(const Call *c, int64_t i, int64_t h, int64_t query, int64_t key)
{
  const ampc_attention *a = &c->a;
  double off = inner(c, a->e, &a->dy, query, &a->y, query, i, h);
  double own = inner(c, a->e, &a->dy, query, &a->v, key, i, h);
  return a->scale * weight(c, i, h, query, key) * (own - off);
}

static void check_backward(const Call *c, int64_t i, int64_t h)
{
  const ampc_attention *a = &c->a;
  for (int64_t k = 0; k < a->d; k += some_of(a->d)) {
    for (int64_t query = 0; query < a->l; query += some_of(a->l)) {
      double dq = 0;
      for (int64_t key = 0; key < a->s; key++)
        dq += slope(c, i, h, query, key) * at(c, &a->k, i, key, h, k);
      check(c, &a->dq, i, query, h, k, dq);
    }
    for (int64_t key = 0; key < a->s; key += some_of(a->s)) {
      double dk = 0, dv = 0;
      for (int64_t query = 0; query < a->l; query++) {
        dk += slope(c, i, h, query, key) * at(c, &a->q, i, query, h, k);
        if (k < a->e) dv += weight(c, i, h, query, key) * at(c, &a->dy, i, query, h, k);
      }
      check(c, &a->dk, i, key, h, k, dk);
      if (k < a->e) check(c, &a->dv, i, key, h, k, dv);
    }
  }
}

/* ---- cases ---- */

/* Run forward, or both ways. Check the first and last image and the first and last head. */
static void one_way(Call *c)
{
  bool done = false;
  const int64_t images[] = {0, c->a.n - 1}, heads[] = {0, c->a.heads - 1};
  CHECK(cuda_prepare_launch(c->device, &c->a) == AMPC_OK);
  CHECK(cuda_launch_by_library(c->device, &c->a, c->args, &done) == AMPC_OK && done);
  fetch(c, Y);
  fetch(c, SUMS);
  for (int i = 0; i < 4; i++) check_forward(c, images[i / 2], heads[i % 2]);
}

static void both_ways(Call *c)
{
  bool done = false;
  const int64_t images[] = {0, c->a.n - 1}, heads[] = {0, c->a.heads - 1};
  one_way(c);
  c->a.backward = true;
  CHECK(cuda_launch_by_library(c->device, &c->a, c->args, &done) == AMPC_OK && done);
  for (int i = DQ; i <= DV; i++) fetch(c, i);
  for (int i = 0; i < 4; i++) check_backward(c, images[i / 2], heads[i % 2]);
}

static int small(void)
{
  Call c = call_of(2, 5, 3, 8, true);
  both_ways(&c);
  CHECK(mock_count("graphs_run") == 2);
  end(&c);
  return check_failures;
}

static int with_dropout(void)
{
  bool done = true;
  Call c = call_of(2, 128, 3, 8, true);
  c.a.p = 0.25;
  one_way(&c);
  c.a.backward = true;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && !done);
  CHECK(mock_count("graphs_run") == 1);
  c.a.backward = false;
  c.a.p = 1;
  done = true;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && !done);
  end(&c);
  return check_failures;
}

static int without_sums(void)
{
  bool done = false;
  Call c = call_of(2, 3, 1, 16, false);
  c.a.sums.argument = 0;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && done);
  fetch(&c, Y);
  check_forward(&c, 1, 0);
  end(&c);
  return check_failures;
}

static int odd_place(void)
{
  bool done = true;
  Call c = call_of(2, 3, 1, 16, false);
  c.a.q.first = 1;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && !done);
  CHECK(mock_count("graphs_run") == 0);
  end(&c);
  return check_failures;
}

/* Runs with room for the masks (with dropout, only forward) or the scores of so many heads. */
static int parts(double p, int64_t heads, long graphs)
{
  enum { SQUARE = 128 * 128 };
  int64_t usual = dnn_scores_limit;
  long before = mock_count("graphs_run");
  Call c = call_of(2, 128, 3, 8, true);
  c.a.p = p;
  dnn_scores_limit = heads * SQUARE * (int64_t)sizeof(uint16_t);
  if (p > 0)
    one_way(&c);
  else
    both_ways(&c);
  long run = mock_count("graphs_run") - before;
  CHECK_MSG(run == graphs, "%ld graphs", run);
  CHECK(cuda_launch_scratch(&c.a, 90) < dnn_scores_limit + (2 << 20));
  dnn_scores_limit = usual;
  end(&c);
  return check_failures;
}

static int in_parts(void)
{
  parts(0.5, 3, 2);
  parts(0.5, 2, 6);   /* a part divides the heads: there is none of two */
  parts(0, 3, 1 + 2); /* forward writes no scores: all in one part */
  return parts(0, 1, 1 + 6);
}

/* Checks the fallback. If cuDNN is off or has no engine, the program's kernel must do the work: the
 * call succeeds, writes nothing and needs no scratch memory. */
static int is_left(void)
{
  Call c = call_of(1, 4, 1, 8, true);
  bool done = true;
  int64_t beside = cuda_bytes_beside(&program, 1);
  ampc_use_cudnn(false);
  CHECK(cuda_prepare_launch(c.device, &c.a) == AMPC_OK);
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && !done);
  ampc_use_cudnn(true);
  ampc_attention a = c.a;
  a.type = AMPC_F32;
  CHECK(cuda_prepare_launch(c.device, &a) == AMPC_OK && cuda_launch_scratch(&a, 90) == 0);
  CHECK(cuda_launch_by_library(c.device, &a, c.args, &done) == AMPC_OK && !done);
  CHECK(c.device->ops->library_bytes(c.device) == beside);
  CHECK(mock_count("graphs_run") == 0);
  end(&c);
  return check_failures;
}

/* ---- faults of cuDNN ---- */

/* A problem, a version of cuDNN on a GPU, and the directions for which cuDNN must be used. The mock
 * makes each fault of that version visible. `says`: the note if cuDNN is not used, or NULL. */
typedef struct Known {
  const char *what, *version, *target;
  int64_t l, s, d, e;
  bool causal;
  double p;
  bool forward, backward;
  const char *says;
} Known;

static const Known knowns[] = {
    {"9.9.0 and a part of a tile", "90900", "sm_90", 5, 5, 8, 8, true, 0, true, false,
     "cuDNN 9.9.0 reads outside of its buffers in repeated steps if the number of keys is no "
     "multiple of 128: install cuDNN 9.10.2 or newer"},
    {"9.10.2 and a part of a tile", "91002", "sm_90", 5, 5, 8, 8, true, 0, true, true, NULL},
    {"9.15.0 and a part of a tile", "91500", "sm_90", 5, 197, 8, 8, false, 0, true, true, NULL},
    {"dropout", "92600", "sm_90", 5, 128, 8, 8, false, 0.25, true, false,
     NULL}, /* known before the run: no note */
    {"9.0.0 and a part of a tile", "90000", "sm_80", 5, 197, 8, 8, false, 0, true, false,
     "cuDNN 9.0.0 reads outside"},
    {"9.15.0 and whole tiles", "91500", "sm_90", 5, 128, 8, 8, false, 0, true, true, NULL},
    {"9.15.1 and a part of a tile", "91501", "sm_90", 5, 5, 8, 8, true, 0, true, true, NULL},
    {"9.9.0", "90900", "sm_90", 5, 128, 8, 8, true, 0, true, true, NULL},
    {"9.10.0", "91000", "sm_90", 5, 128, 8, 8, false, 0, false, false,
     "cuDNN 9.10.0 computes attention wrongly: install cuDNN 9.10.2 or newer"},
    {"9.10.1", "91001", "sm_90", 5, 128, 8, 8, false, 0, false, false, "cuDNN 9.10.1 computes"},
    {"9.10.2", "91002", "sm_90", 5, 128, 8, 8, false, 0, true, true, NULL},
    {"one query", "92600", "sm_80", 1, 128, 8, 8, false, 0, true, false, NULL},
    {"one query and one key", "91901", "sm_90", 1, 1, 8, 8, false, 0, true, false, NULL},
    {"9.17.1 on sm_100", "91701", "sm_100", 5, 5, 8, 8, false, 0, true, false,
     "cuDNN 9.17.1 computes gradients that differ from run to run: install cuDNN 9.18.0 or newer"},
    {"9.18.0 on sm_100", "91800", "sm_100", 5, 5, 8, 8, false, 0, true, true, NULL},
    {"half a tile of keys on sm_90", "92501", "sm_90", 5, 64, 8, 8, false, 0, true, false,
     "cuDNN 9.25.1 returns NaN for queries with low scores if the number of keys is 64 more "
     "than a multiple of 128: install cuDNN 9.26.0 or newer"},
    {"and causal", "92501", "sm_90", 64, 64, 8, 8, true, 0, true, true, NULL},
    {"and queries behind the keys", "92501", "sm_90", 65, 64, 8, 8, true, 0, true, false,
     "cuDNN 9.25.1 returns NaN"},
    {"and mended", "92600", "sm_90", 5, 64, 8, 8, false, 0, true, true, NULL},
    {"and on sm_80", "92501", "sm_80", 5, 64, 8, 8, false, 0, true, true, NULL},
    {"wide heads of two widths", "91901", "sm_90", 2, 128, 256, 128, false, 0, true, false,
     "cuDNN 9.19.1 computes wrong gradients for wide heads whose values have another width"},
    {"of DeepSeek's widths", "91901", "sm_90", 2, 128, 192, 128, false, 0, true, true, NULL},
    {"before 9.11", "91002", "sm_90", 2, 128, 256, 128, false, 0, true, true, NULL},
    {"on sm_75", "91901", "sm_75", 5, 5, 8, 8, true, 0, false, false,
     "cuDNN's attention is for GPUs from sm_80 on"},
};
static const Known *known;

static ampc_status ask_both_ways(void *context)
{
  Call *c = context;
  bool done;
  c->a.backward = false;
  ampc_status status = cuda_launch_by_library(c->device, &c->a, c->args, &done);
  CHECK_MSG(done == known->forward, "forward by %s", done ? "cuDNN" : "nobody");
  if (status || !done) return status;
  c->a.backward = true;
  status = cuda_launch_by_library(c->device, &c->a, c->args, &done);
  CHECK_MSG(done == known->backward, "backward by %s", done ? "cuDNN" : "nobody");
  return status;
}

/* Runs a step: tries it out, records it, replays it. Returns a sum of all bits of the results. */
static double run_known(Call *c, void *state)
{
  double sum = 0;
  MUST(c->device->ops->step(c->device, 0, state, ask_both_ways, c) == AMPC_OK);
  for (int i = Y; i < TENSORS; i++) {
    fetch(c, i);
    for (int64_t k = 0; k < c->n[i]; k++) sum += c->at[i][k] * (double)(k % 17 + 1);
  }
  return sum;
}

static int fault_of_cudnn(void)
{
  void *state;
  setenv("MOCK_DNN_VERSION", known->version, 1);
  setenv("MOCK_CUDA_ARCH", known->target + 3, 1);
  program.target = known->target;
  Call c = call_of(1, known->l > known->s ? known->l : known->s, 2, known->d, known->causal);
  c.a.l = known->l, c.a.s = known->s, c.a.e = known->e;
  c.a.p = known->p;
  c.a.scale = 4.0 / (double)known->d;
  MUST(c.device->ops->alloc(c.device, program.space_bytes[AMPC_STATE], &state) == AMPC_OK);
  double first = run_known(&c, state);
  for (int i = 0; i < 3; i++) CHECK(run_known(&c, state) == first);
  for (int64_t h = 0; h < c.a.heads; h++) {
    if (known->forward) check_forward(&c, 0, h);
    if (known->backward) check_backward(&c, 0, h);
  }
  c.device->ops->release(c.device, state);
  end(&c);
  return check_failures;
}

/* Checks the text of each reason. An unknown version or GPU is not a reason. */
static int reasons(void)
{
  char why[AMPC_WHY_ROOM];
  const ampc_cudnn unknown = {0, 0}, hopper = {91901, 90};
  Call c = call_of(1, 4, 1, 8, true);
  ampc_attention a = c.a;
  a.backward = true;
  CHECK(!ampc_attention_against(&a, unknown, why) && !ampc_attention_against(&a, hopper, why));
  CHECK(!ampc_attention_against(&a, (ampc_cudnn){0, 100}, why));
  CHECK(ampc_attention_against(&a, (ampc_cudnn){90900, 0}, why));
  a.type = AMPC_F32;
  CHECK(strstr(ampc_attention_against(&a, unknown, why), "16 bits"));
  a.type = AMPC_F16;
  a.d = 20;
  CHECK(strstr(ampc_attention_against(&a, unknown, why), "multiple of 8"));
  a.d = 264;
  CHECK(strstr(ampc_attention_against(&a, unknown, why), "wider than 256"));
  a.d = 8;
  a.q.stride[1] = 12;
  CHECK(strstr(ampc_attention_against(&a, unknown, why), "no multiple of 16 bytes"));
  a = c.a;
  a.backward = true;
  a.l = 1;
  CHECK(strcmp(ampc_attention_against(&a, hopper, why),
               "cuDNN crashes or returns NaN for gradients of a single query") == 0);
  end(&c);
  return check_failures;
}

/* ---- all ---- */

static const Case cases[] = {
    {"forward and backward", small, 0, NULL},
    {"with dropout", with_dropout, 0, NULL},
    {"without sums", without_sums, 0, NULL},
    {"from any two bytes on", odd_place, 0, NULL},
    {"in parts", in_parts, 0, NULL},
    {"by nobody but the program", is_left, 0, NULL},
    {"reasons", reasons, 0, NULL},
};

static void nothing(void)
{
}

int main(void)
{
  setenv("XDG_CACHE_HOME", "/dev/null", 1); /* plans are not saved */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], nothing);
  for (size_t i = 0; i < sizeof knowns / sizeof *knowns; i++) {
    known = &knowns[i];
    run_case(&(Case){known->what, fault_of_cudnn, 0, known->says}, nothing);
  }
  return check_done();
}
