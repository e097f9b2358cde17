/* Attention by cuDNN as the runtime calls it, against sums in double: operands at any place in
 * memory, unused sums, images and heads in parts, and cases in which cuDNN must not be used. */
#include "attention_call.h"
#include "cases.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cudnn_attention.h"
#include <stdlib.h>
#include <string.h>

/* ---- cases ---- */

/* Run forward, or both ways. Check the first and last image and the first and last head. */
static void one_way(Call *c)
{
  bool done = false;
  const int64_t images[] = {0, c->a.n - 1}, heads[] = {0, c->a.heads - 1};
  CHECK(cuda_prepare_launch(c->device, &c->a) == AMPC_OK);
  CHECK(cuda_launch_by_library(c->device, &c->a, c->args, &done) == AMPC_OK && done);
  call_fetch(c, Y);
  call_fetch(c, SUMS);
  for (int i = 0; i < 4; i++) CHECK(call_forward_wrong(c, images[i / 2], heads[i % 2]) == 0);
}

static void backward(Call *c)
{
  bool done = false;
  c->a.backward = true;
  CHECK(cuda_launch_by_library(c->device, &c->a, c->args, &done) == AMPC_OK && done);
  for (int i = DQ; i <= DV; i++) call_fetch(c, i);
}

static void both_ways(Call *c)
{
  const int64_t images[] = {0, c->a.n - 1}, heads[] = {0, c->a.heads - 1};
  one_way(c);
  backward(c);
  for (int i = 0; i < 4; i++) CHECK(call_backward_wrong(c, images[i / 2], heads[i % 2]) == 0);
}

static int small(void)
{
  Call c = call_of(2, 5, 3, 8, true);
  both_ways(&c);
  CHECK(mock_count("graphs_run") == 2);
  call_end(&c);
  return check_failures;
}

/* Attention with dropout or a mask, which AMPC_ATTENTION gives to cuDNN. `mask`: the axes on which
 * the mask depends; none: no mask, but causal. */
typedef struct Chosen {
  const char *choice;
  bool mask[4];
  double p;
  int64_t l, s;
} Chosen;
static Chosen chosen;

static Call chosen_call(void)
{
  bool masked = chosen.mask[3];
  setenv("AMPC_ATTENTION", chosen.choice, 1);
  Call c = call_of(2, chosen.s, 2, 8, !masked);
  c.a.l = chosen.l;
  c.a.p = chosen.p;
  if (masked) call_mask(&c, chosen.mask);
  return c;
}

static int by_choice(void)
{
  Call c = chosen_call();
  both_ways(&c);
  CHECK(mock_count("graphs_run") == 2);
  call_end(&c);
  return check_failures;
}

static int factor_comes_late(void)
{
  setenv("MOCK_DNN_LATE", "1", 1);
  Call c = chosen_call();
  one_way(&c);
  backward(&c);
  CHECK(call_backward_wrong(&c, 0, 0) > 0);
  call_end(&c);
  return check_failures;
}

/* Checks that own kernels compute a problem, although cuDNN computes similar ones. */
static void is_own(const Call *c)
{
  bool done = true;
  CHECK(cuda_launch_by_library(c->device, &c->a, c->args, &done) == AMPC_OK && !done);
}

static int by_nobody(void)
{
  static const bool one_key[] = {true, true, true, false};
  Call c = chosen_call();
  c.a.p = 1;
  is_own(&c);
  c.a.p = 0;
  call_mask(&c, one_key);
  one_way(&c);
  c.a.backward = true;
  is_own(&c);
  CHECK(mock_count("graphs_run") == 1);
  call_end(&c);
  return check_failures;
}

static int without_sums(void)
{
  bool done = false;
  Call c = call_of(2, 3, 1, 16, false);
  c.a.sums.argument = 0;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && done);
  call_fetch(&c, Y);
  CHECK(call_forward_wrong(&c, 1, 0) == 0);
  call_end(&c);
  return check_failures;
}

static int odd_place(void)
{
  bool done = true;
  Call c = call_of(2, 3, 1, 16, false);
  c.a.q.first = 1;
  CHECK(cuda_launch_by_library(c.device, &c.a, c.args, &done) == AMPC_OK && !done);
  CHECK(mock_count("graphs_run") == 0);
  call_end(&c);
  return check_failures;
}

/* Runs with room for so many squares of 16 bits: scores in backward, and the factors of dropout,
 * which are two squares in f32. */
static int parts(const char *choice, double p, int64_t squares, long graphs)
{
  enum { SQUARE = 128 * 128 };
  int64_t usual = dnn_scores_limit;
  long before = mock_count("graphs_run");
  Call c = call_of(2, 128, 3, 8, true);
  setenv("AMPC_ATTENTION", choice, 1);
  c.a.p = p;
  dnn_scores_limit = squares * SQUARE * (int64_t)sizeof(uint16_t);
  both_ways(&c);
  long run = mock_count("graphs_run") - before;
  CHECK_MSG(run == graphs, "%ld graphs", run);
  CHECK(cuda_launch_scratch(&c.a, 90) < dnn_scores_limit + (2 << 20));
  dnn_scores_limit = usual;
  call_end(&c);
  return check_failures;
}

static int in_parts(void)
{
  parts("r1r2", 0.5, 6, 1 + 2);
  parts("r1r2", 0.5, 2, 6 + 6); /* a part divides the heads: there is none of two */
  parts("r2b", 0.5, 9, 1 + 2);
  parts("r2b", 0.5, 3, 2 + 6);
  parts("", 0, 3, 1 + 2); /* forward writes no scores: all in one part */
  return parts("", 0, 1, 1 + 6);
}

/* Checks the fallback. If cuDNN is off or has no engine, the program's kernel must do the work: the
 * call succeeds, writes nothing and needs no scratch memory. */
static int is_left(void)
{
  Call c = call_of(1, 4, 1, 8, true);
  bool done = true;
  int64_t beside = cuda_bytes_beside(&call_program, 1);
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
  call_end(&c);
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
    {"dropout", "92600", "sm_90", 5, 128, 8, 8, false, 0.25, false, false,
     NULL}, /* known before the run: no note */
    {"dropout of wide heads", "92600", "sm_90", 5, 128, 136, 8, false, 0.25, true, false, NULL},
    {"9.0.0 and wide heads", "90000", "sm_90", 5, 128, 8, 136, false, 0, false, false,
     "cuDNN 9.0.0 computes no heads wider than 128: install cuDNN 9.1.0 or newer"},
    {"9.4.0 and wide heads", "90400", "sm_90", 5, 128, 136, 8, false, 0, true, false,
     "cuDNN 9.4.0 computes no gradients of heads wider than 128: install cuDNN 9.5.0 or newer"},
    {"9.5.0 and wide heads", "90500", "sm_90", 5, 128, 136, 8, false, 0, true, true, NULL},
    {"9.9.0 and wide heads on sm_80", "90900", "sm_80", 5, 128, 136, 8, false, 0, false, false,
     "cuDNN 9.9.0 computes no heads wider than 128 on this GPU: install cuDNN 9.10.2 or newer"},
    {"9.10.2 and wide heads on sm_89", "91002", "sm_89", 5, 128, 136, 8, false, 0, true, false,
     "cuDNN computes no gradients of heads wider than 128 on this GPU"},
    {"9.8.0 and wide heads on sm_100", "90800", "sm_100", 5, 128, 8, 136, false, 0, false, false,
     "cuDNN 9.8.0 computes no heads wider than 128 on this GPU: install cuDNN 9.9.0 or newer"},
    {"9.26.0 and wide heads on sm_120", "92600", "sm_120", 5, 128, 136, 8, false, 0, true, false,
     "cuDNN computes no gradients of heads wider than 128 on this GPU"},
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
    {"9.17.1 on sm_110", "91701", "sm_110", 5, 5, 8, 8, false, 0, true, false, "run to run"},
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

/* The same with AMPC_ATTENTION. */
static const struct {
  const char *choice;
  Known known;
} chosen_knowns[] = {
    {"own",
     {"dropout of wide heads", "92600", "sm_90", 5, 128, 136, 8, false, 0.25, false, false, NULL}},
    {"r1r2",
     {"dropout and lengths", "91500", "sm_90", 5, 197, 8, 8, false, 0.25, true, false,
      "cuDNN 9.15.0 cannot compute gradients with dropout or a mask if the number of keys is no "
      "multiple of 128: install cuDNN 9.15.1 or newer"}},
    {"r2b",
     {"dropout on sm_100", "92600", "sm_100", 5, 128, 8, 8, false, 0.25, false, false,
      "cuDNN's attention with dropout or a mask is not tested on this GPU"}},
    {"r1r2",
     {"dropout on sm_120", "92600", "sm_120", 5, 128, 8, 8, false, 0.25, false, false,
      "cuDNN's attention with dropout or a mask is not tested on this GPU"}},
};

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
    call_fetch(c, i);
    for (int64_t k = 0; k < c->n[i]; k++) sum += c->at[i][k] * (double)(k % 17 + 1);
  }
  return sum;
}

static int fault_of_cudnn(void)
{
  void *state;
  setenv("MOCK_DNN_VERSION", known->version, 1);
  setenv("MOCK_CUDA_ARCH", known->target + 3, 1);
  call_program.target = known->target;
  Call c = call_of(1, known->l > known->s ? known->l : known->s, 2, known->d, known->causal);
  c.a.l = known->l, c.a.s = known->s, c.a.e = known->e;
  c.a.p = known->p;
  c.a.scale = 4.0 / (double)known->d;
  MUST(c.device->ops->alloc(c.device, call_program.space_bytes[AMPC_STATE], &state) == AMPC_OK);
  double first = run_known(&c, state);
  for (int i = 0; i < 3; i++) CHECK(run_known(&c, state) == first);
  for (int64_t h = 0; h < c.a.heads; h++) {
    CHECK(!known->forward || call_forward_wrong(&c, 0, h) == 0);
    CHECK(!known->backward || call_backward_wrong(&c, 0, h) == 0);
  }
  c.device->ops->release(c.device, state);
  call_end(&c);
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
  call_end(&c);
  return check_failures;
}

/* ---- all ---- */

static const Case cases[] = {
    {"forward and backward", small, 0, NULL},        {"without sums", without_sums, 0, NULL},
    {"from any two bytes on", odd_place, 0, NULL},   {"in parts", in_parts, 0, NULL},
    {"by nobody but the program", is_left, 0, NULL}, {"reasons", reasons, 0, NULL},
};

static void nothing(void)
{
}

int main(void)
{
  setenv("XDG_CACHE_HOME", "/dev/null", 1); /* plans are not saved */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], nothing);
  static const bool masks[][4] = {
      {0}, {true, 0, 0, true}, {true, 0, true, true}, {0, true, true, true}, {true, true, 0, true}};
  for (int i = 0; i < 2 * 2 * 5; i++) { /* l: with a causal mask, rows of all lengths */
    bool masked = i >= 4;
    chosen =
        (Chosen){i % 2 ? "r2b" : "r1r2", {0}, i & 2 ? 0.25 : 0, masked ? 5 : 40, masked ? 37 : 40};
    memcpy(chosen.mask, masks[i / 4], sizeof chosen.mask);
    if (chosen.p > 0 || masked) run_case(&(Case){"by choice", by_choice, 0, NULL}, nothing);
  }
  chosen = (Chosen){"r1r2", {0}, 0.25, 5, 128};
  run_case(&(Case){"the factor after the subtraction", factor_comes_late, 0, NULL}, nothing);
  run_case(&(Case){"by nobody", by_nobody, 0, NULL}, nothing);
  for (size_t i = 0; i < sizeof chosen_knowns / sizeof *chosen_knowns; i++) {
    setenv("AMPC_ATTENTION", chosen_knowns[i].choice, 1);
    known = &chosen_knowns[i].known;
    run_case(&(Case){known->what, fault_of_cudnn, 0, known->says}, nothing);
  }
  unsetenv("AMPC_ATTENTION");
  for (size_t i = 0; i < sizeof knowns / sizeof *knowns; i++) {
    known = &knowns[i];
    run_case(&(Case){known->what, fault_of_cudnn, 0, known->says}, nothing);
  }
  return check_done();
}
