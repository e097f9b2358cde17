/* A runtime through its public functions: creation, steps by plan or by function, settings,
 * errors. */
#include "check.h"
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "small_program.h"

static const float x[SMALL_BATCH * SMALL_IN] = {1, 2, 3, -1, 0, 1, 0, 0, 0, 4, -5, 6};
static const float w[SMALL_IN * SMALL_OUT] = {1, 2, 3, 4, 5, 6};
static const float b[SMALL_OUT] = {-10, 0.5f};

static void forward_by_function(ampc_runtime *rt)
{
  char *const *space = ampc_spaces(rt);
  static const ampc_gemm g = {.m = SMALL_BATCH,
                              .n = SMALL_OUT,
                              .k = SMALL_IN,
                              .batch = 1,
                              .lda = SMALL_IN,
                              .ldb = SMALL_OUT,
                              .ldc = SMALL_OUT,
                              .has_bias = true};
  AMPC_GEMM(rt, product, g, space[AMPC_INPUT], space[AMPC_MASTER], space[AMPC_MASTER] + 64,
            space[AMPC_WORK] + 64, NULL);
  AMPC_LAUNCH(rt, 3, 2, 1, space[AMPC_WORK] + 64);
}

static void check_forward(SmallProgram *s)
{
  ampc_runtime *rt;
  MUST(ampc_create(&s->program, "cpu", &rt) == AMPC_OK);
  CHECK(strcmp(ampc_device_name(rt), "cpu") == 0);
  CHECK(ampc_program_of(rt) == &s->program);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_INPUT, 0}, x, sizeof x) == AMPC_OK);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w) == AMPC_OK);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_MASTER, 64}, b, sizeof b) == AMPC_OK);
  CHECK(ampc_run_step(rt, 2, 0) == AMPC_OK);
  CHECK(ampc_wait(rt) == AMPC_OK);
  float y[SMALL_BATCH * SMALL_OUT];
  CHECK(ampc_read(rt, s->output.place, y, sizeof y) == AMPC_OK);
  for (int i = 0; i < SMALL_BATCH; i++)
    for (int j = 0; j < SMALL_OUT; j++) {
      float sum = b[j];
      for (int k = 0; k < SMALL_IN; k++) sum += x[i * SMALL_IN + k] * w[k * SMALL_OUT + j];
      CHECK(y[i * SMALL_OUT + j] == fmaxf(sum, 0));
    }
  ampc_free(rt);
}

static void check_spaces(void)
{
  SmallProgram s;
  small_program(&s);
  s.program.space_bytes[AMPC_COPYBF] = 0;
  ampc_runtime *rt;
  MUST(ampc_create(&s.program, "auto", &rt) == AMPC_OK);
  for (int i = AMPC_STATE; i < AMPC_SPACE_COUNT; i++) {
    char *at = ampc_spaces(rt)[i];
    CHECK((at == NULL) == (s.program.space_bytes[i] == 0));
    CHECK((uintptr_t)at % 64 == 0);
    for (int64_t j = 0; i != AMPC_STATE && j < s.program.space_bytes[i]; j++) CHECK(at[j] == 0);
  }
  char byte = 0;
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, 128}, &byte, 1) == AMPC_BAD_USAGE);
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, -1}, &byte, 1) == AMPC_BAD_USAGE);
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, INT64_MAX}, &byte, INT64_MAX) == AMPC_BAD_USAGE);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_NONE, 0}, &byte, 1) == AMPC_BAD_USAGE);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_WORK, 127}, &byte, 1) == AMPC_OK);
  ampc_free(rt);
}

/* The product y = x w as a convolution: the batch is four images of one row, [4, 1, 3, 1], and the
 * filter has three taps. It replaces the last layer's product, by a command list and by a
 * function. */
static ampc_conv convolution;

static void convolve_by_function(ampc_runtime *rt)
{
  char *const *space = ampc_spaces(rt);
  AMPC_CONV(rt, convolution, convolution, space[AMPC_INPUT], space[AMPC_MASTER], NULL,
            space[AMPC_WORK] + 64, space[AMPC_WORK] + 128);
}

static void check_convolution(bool by_function)
{
  SmallProgram s;
  small_program(&s);
  convolution = (ampc_conv){.n = SMALL_BATCH,
                            .c = 1,
                            .k = 1,
                            .groups = 1,
                            .spatial = 2,
                            .in = {1, SMALL_IN},
                            .kernel = {1, SMALL_IN},
                            .out = {1, 1},
                            .stride = {1, 1},
                            .dilation = {1, 1}};
  convolution.workspace = ampc_conv_workspace_cpu(&convolution, false);
  s.program.space_bytes[AMPC_WORK] = 128 + convolution.workspace;
  ampc_command command = {.kind = AMPC_CONV, .label = "c00_conv"};
  command.as.conv.desc = convolution;
  command.as.conv.x.at = (ampc_ref){AMPC_INPUT, 0};
  command.as.conv.w.at = (ampc_ref){AMPC_MASTER, 0};
  command.as.conv.y.at = (ampc_ref){AMPC_WORK, 64};
  command.as.conv.workspace.at = (ampc_ref){AMPC_WORK, 128};
  s.blocks[2].variant[0] = (ampc_step){.batch = SMALL_BATCH, .commands = &command, .n_commands = 1};
  if (by_function) s.blocks[2].variant[0] = (ampc_step){.run = convolve_by_function};
  ampc_runtime *rt;
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK);
  ampc_memory before = ampc_memory_of(rt);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_INPUT, 0}, x, sizeof x) == AMPC_OK);
  CHECK(ampc_write(rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w) == AMPC_OK);
  CHECK(ampc_run_step(rt, 2, 0) == AMPC_OK);
  float y[SMALL_BATCH];
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, 64}, y, sizeof y) == AMPC_OK);
  for (int i = 0; i < SMALL_BATCH; i++) {
    float sum = 0;
    for (int k = 0; k < SMALL_IN; k++) sum += x[i * SMALL_IN + k] * w[k];
    CHECK(y[i] == sum);
  }
  ampc_memory m = ampc_memory_of(rt);
  CHECK(m.library == before.library); /* it was allocated before the first step */
  int64_t total = m.library;
  for (int i = 0; i < AMPC_SPACE_COUNT; i++) {
    CHECK(m.space[i] == s.program.space_bytes[i]);
    total += m.space[i];
  }
  CHECK(m.total == total && total > 0);
  ampc_free(rt);
  s.blocks[2].variant[0] = (ampc_step){.batch = SMALL_BATCH, .commands = &command, .n_commands = 1};
  command.as.conv.desc.out[0] = 2;
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED);
}

static void check_state(void)
{
  SmallProgram s;
  small_program(&s);
  s.program.seed = 77;
  ampc_runtime *rt;
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK);
  ampc_state state;
  CHECK(ampc_get_state(rt, &state) == AMPC_OK);
  CHECK(state.seed == 77 && state.scale == 65536 && state.inv_scale == 1 / 65536.0f);
  CHECK(state.growth_factor == 2 && state.backoff_factor == 0.5f && state.min_scale == 1);
  CHECK(state.max_scale == 16777216 && state.growth_interval == 2000 && state.dynamic == 1);
  float lr;
  ampc_ref at = {AMPC_STATE, ampc_state_setting(s.program.n_optimizers, s.program.n_metrics, 0)};
  CHECK(ampc_read(rt, at, &lr, sizeof lr) == AMPC_OK && lr == 0.25f);
  CHECK(ampc_set(rt, "opt.lr", 0.125) == AMPC_OK);
  CHECK(ampc_init_params(rt, 5) == AMPC_OK); /* keeps the settings */
  CHECK(ampc_read(rt, at, &lr, sizeof lr) == AMPC_OK && lr == 0.125f);
  CHECK(ampc_get_state(rt, &state) == AMPC_OK && state.seed == 5 && state.body == 0);
  CHECK(ampc_set(rt, "opt.lrr", 1) == AMPC_BAD_USAGE && strstr(ampc_last_error(), "opt.momentum"));
  CHECK(ampc_set(rt, "opt.lr", INFINITY) == AMPC_BAD_USAGE);
  CHECK(ampc_set(rt, "opt.lr", NAN) == AMPC_BAD_USAGE);
  CHECK(ampc_set(rt, "opt.lr", 1e39) == AMPC_BAD_USAGE);
  CHECK(ampc_set(rt, "opt.lr", -1) == AMPC_BAD_USAGE && strstr(ampc_last_error(), "0 or more"));
  CHECK(ampc_read(rt, at, &lr, sizeof lr) == AMPC_OK && lr == 0.125f);
  ampc_metric metric = {.sum = 3, .count = 2};
  at.offset = ampc_state_metric(s.program.n_optimizers, 1);
  CHECK(ampc_write(rt, at, &metric, sizeof metric) == AMPC_OK);
  CHECK(ampc_clear_metrics(rt, 0) == AMPC_OK); /* metric 1 belongs to block 1 */
  CHECK(ampc_get_metric(rt, 1, &metric) == AMPC_OK && metric.sum == 3 && metric.count == 2);
  CHECK(ampc_clear_metrics(rt, 1) == AMPC_OK);
  CHECK(ampc_get_metric(rt, 1, &metric) == AMPC_OK && metric.sum == 0 && metric.count == 0);
  CHECK(ampc_get_metric(rt, 2, &metric) == AMPC_BAD_USAGE);
  ampc_free(rt);
}

static void check_params(void)
{
  SmallProgram s;
  small_program(&s);
  ampc_runtime *rt, *other;
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK);
  MUST(ampc_create(&s.program, "cpu", &other) == AMPC_OK);
  CHECK(ampc_init_params(rt, 1) == AMPC_OK && ampc_init_params(other, 1) == AMPC_OK);
  const float *m = (const float *)(void *)ampc_spaces(rt)[AMPC_MASTER];
  const uint16_t *copy = (const uint16_t *)(void *)ampc_spaces(rt)[AMPC_COPY16];
  CHECK(memcmp(m, ampc_spaces(other)[AMPC_MASTER], SMALL_MASTER * 4) == 0);
  for (int i = 0; i < SMALL_MASTER; i++) {
    bool weight = i < 6, bias = i == 16 || i == 17;
    CHECK(!weight || (m[i] >= -1 && m[i] < 1 && m[i] != 0));
    CHECK(!bias || (fabsf(m[i] - 5) < 4 && m[i] != 5));
    CHECK(i != 32 || m[i] == 0.1f);
    CHECK(weight || bias || i == 32 || m[i] == 0);
    CHECK(fabs(number_load(AMPC_F16, false, copy, i) - (double)m[i]) <=
          fabs((double)m[i]) * 0x1p-11);
  }
  CHECK(m[0] != m[1] && m[16] != m[17]);
  CHECK(*(const int64_t *)(void *)ampc_spaces(rt)[AMPC_BUFFER] == 7);
  CHECK(ampc_init_params(other, 2) == AMPC_OK);
  CHECK(memcmp(m, ampc_spaces(other)[AMPC_MASTER], 24) != 0);
  ampc_free(rt);
  ampc_free(other);
}

/* Checks the mean and variance of many initial values. */
static void check_distributions(void)
{
  enum { N = 200000 };
  SmallProgram s;
  small_program(&s);
  s.params[0] = (ampc_param){.path = "u",
                             .optimizer = -1,
                             .rank = 1,
                             .dim = {N},
                             .elements = N,
                             .init = {.kind = AMPC_INIT_UNIFORM, .a = 2, .b = 6}};
  s.params[1] = (ampc_param){.path = "n",
                             .optimizer = -1,
                             .rank = 1,
                             .dim = {N},
                             .elements = N,
                             .offset = N,
                             .init = {.kind = AMPC_INIT_NORMAL, .a = 3, .b = 2}};
  s.program.n_params = 2;
  for (int space = AMPC_MASTER; space <= AMPC_MOMENT2; space++)
    s.program.space_bytes[space] = 2 * N * 4;
  ampc_runtime *rt;
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK && ampc_init_params(rt, 9) == AMPC_OK);
  const float *m = (const float *)(void *)ampc_spaces(rt)[AMPC_MASTER];
  double mean[2] = {0}, square[2] = {0}, far = 0;
  for (int i = 0; i < 2 * N; i++) {
    mean[i / N] += (double)m[i] / N;
    square[i / N] += (double)m[i] * (double)m[i] / N;
    far += i >= N && fabs((double)m[i] - 3) > 4;
  }
  CHECK(fabs(mean[0] - 4) < 0.02 && fabs(square[0] - mean[0] * mean[0] - 16.0 / 12) < 0.02);
  CHECK(fabs(mean[1] - 3) < 0.02 && fabs(square[1] - mean[1] * mean[1] - 4) < 0.05);
  CHECK(fabs(far / N - 0.0455) < 0.002); /* more than two standard deviations away */
  ampc_free(rt);
}

/* Checks known answers of the published algorithm. */
static void check_philox(void)
{
  Philox p = philox(0, 0, 0);
  CHECK(p.word[0] == 0x6627e8d5 && p.word[1] == 0xe169c58d && p.word[2] == 0xbc57ac4c &&
        p.word[3] == 0x9b00dbd8);
  p = philox(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu);
  CHECK(p.word[0] == 0xd16cfe09 && p.word[1] == 0x94fdcceb && p.word[2] == 0x5001e420 &&
        p.word[3] == 0x24126ea1);
}

static void check_refusals(void)
{
  SmallProgram s;
  small_program(&s);
  ampc_runtime *rt;
  CHECK(ampc_create(&s.program, "cuda", &rt) == AMPC_RUN_FAILED && rt == NULL);
  CHECK(strstr(ampc_last_error(), "compiled for cpu"));
  CHECK(ampc_create(&s.program, "tpu", &rt) == AMPC_BAD_USAGE && strstr(ampc_last_error(), "tpu"));
  setenv("AMPC_ATTENTION", "r3", 1);
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_BAD_USAGE && rt == NULL);
  CHECK(strstr(ampc_last_error(), "AMPC_ATTENTION is r3; it may be own, r1r2 or r2b"));
  unsetenv("AMPC_ATTENTION");
  s.program.target = "sm_80";
  CHECK(ampc_create(&s.program, "auto", &rt) == AMPC_RUN_FAILED);
  CHECK(strstr(ampc_last_error(), "sm_80"));
  small_program(&s);
  s.program.space_bytes[AMPC_WORK] = (int64_t)1 << 50;
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED &&
        strstr(ampc_last_error(), "1.13 PB"));
  small_program(&s);
  s.relu_args[0].at.offset = 1 << 20;
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED);
  CHECK(strstr(ampc_last_error(), "k03_relu"));
  small_program(&s);
  s.kernels[2].function = NULL;
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED);
  ampc_free(NULL);
}

static void multiply_in_vain(ampc_runtime *rt)
{
  ampc_gemm bad = {.m = 1, .n = 1, .k = 1, .a_type = AMPC_U8};
  char *work = ampc_spaces(rt)[AMPC_WORK];
  AMPC_GEMM(rt, bad, bad, work, work, NULL, work, NULL);
}

static void fail_then_fill(ampc_runtime *rt)
{
  char *work = ampc_spaces(rt)[AMPC_WORK];
  ampc_do_launch(rt, 99, 1, 1, NULL, 0);
  ampc_do_fill(rt, work, 0, 128);
}

/* Checks that the first failure is kept, and later calls of the step do nothing. A call that no
 * device supports is refused before the first step, whether a command list or a function makes
 * it. */
static void check_sticky(void)
{
  SmallProgram s;
  small_program(&s);
  s.forward[0].as.gemm.desc.a_type = AMPC_U8;
  ampc_runtime *rt;
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED && strstr(ampc_last_error(), "u8"));
  s.blocks[2].variant[0] = (ampc_step){.batch = SMALL_BATCH, .run = multiply_in_vain};
  CHECK(ampc_create(&s.program, "cpu", &rt) == AMPC_RUN_FAILED && strstr(ampc_last_error(), "u8"));
  s.blocks[2].variant[0] = (ampc_step){.batch = SMALL_BATCH, .run = fail_then_fill};
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK);
  float minus = -1, y;
  CHECK(ampc_write(rt, (ampc_ref){AMPC_WORK, 64}, &minus, sizeof minus) == AMPC_OK);
  CHECK(ampc_run_step(rt, 2, 0) == AMPC_RUN_FAILED && strstr(ampc_last_error(), "kernel 99"));
  CHECK(ampc_read(rt, (ampc_ref){AMPC_WORK, 64}, &y, sizeof y) == AMPC_OK && y == -1);
  ampc_fail(AMPC_BAD_FILE, "another error");
  CHECK(ampc_wait(rt) == AMPC_RUN_FAILED && strstr(ampc_last_error(), "kernel 99"));
  CHECK(ampc_run_step(rt, 0, 0) == AMPC_RUN_FAILED);
  ampc_free(rt);
  small_program(&s);
  s.train[0].as.launch.n_args = 3;
  MUST(ampc_create(&s.program, "cpu", &rt) == AMPC_OK);
  CHECK(ampc_run_step(rt, 0, 1) == AMPC_BAD_USAGE && ampc_run_step(rt, 9, 0) == AMPC_BAD_USAGE);
  CHECK(ampc_run_step(rt, 0, 0) == AMPC_RUN_FAILED);
  ampc_free(rt);
}

int main(void)
{
  SmallProgram s;
  small_program(&s);
  check_forward(&s);
  s.blocks[2].variant[0] = (ampc_step){.batch = SMALL_BATCH, .run = forward_by_function};
  check_forward(&s);
  check_spaces();
  check_convolution(false);
  check_convolution(true);
  check_state();
  check_params();
  check_distributions();
  check_philox();
  check_refusals();
  check_sticky();
  return check_done();
}
