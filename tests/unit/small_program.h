/* A program made by hand, which the tests of the runtime share: y = x w + b, then a "train" kernel
 * that changes all state in a way that is easy to compute. */
#pragma once
#include <math.h>
#include <string.h>
#include "ampc_metrics.h"
#include "ampc_rt.h"

enum { SMALL_IN = 3, SMALL_OUT = 2, SMALL_BATCH = 4, SMALL_MASTER = 48, SMALL_SOURCES = 2 };

/* Parameters in MASTER, in elements: w [3, 2] at 0, b [2] at 16, a frozen scalar at 32. */
static const ampc_param small_params[] = {
    {.path = "fc.weight",
     .optimizer = 0,
     .rank = 2,
     .dim = {3, 2},
     .elements = 6,
     .init = {.kind = AMPC_INIT_UNIFORM, .a = -1, .b = 1}},
    {.path = "fc.bias",
     .optimizer = 0,
     .rank = 1,
     .dim = {2},
     .elements = 2,
     .offset = 16,
     .init = {.kind = AMPC_INIT_NORMAL, .a = 5, .b = 0.5}},
    {.path = "temperature",
     .optimizer = -1,
     .elements = 1,
     .offset = 32,
     .init = {.kind = AMPC_INIT_CONSTANT, .a = 0.1, .b = 0}},
    {.path = "seen",
     .buffer = true,
     .optimizer = -1,
     .dtype = AMPC_I64,
     .elements = 1,
     .init = {.kind = AMPC_INIT_CONSTANT, .a = 7, .b = 0}},
};

static const ampc_optimizer_desc small_optimizers[] = {
    {.name = "opt", .kind = "Adam", .count = 32, .uses_moment1 = true, .uses_moment2 = true}};
static const ampc_setting small_settings[] = {{"opt.lr", 0.25, AMPC_NOT_NEGATIVE, 0, 0},
                                              {"opt.momentum", 0.5, AMPC_NOT_NEGATIVE, 0, 0}};
static const ampc_metric_desc small_metrics[] = {{.name = "loss", .is_loss = true},
                                                 {.name = "acc"}};

static const ampc_source small_sources[] = {
    {.kind = AMPC_SOURCE_SYNTHETIC,
     .dtype = AMPC_F32,
     .rank = 1,
     .dim = {SMALL_IN},
     .samples = 10,
     .part_end = 1,
     .low = -1,
     .high = 1,
     .stream = 5},
    {.kind = AMPC_SOURCE_SYNTHETIC,
     .dtype = AMPC_U8,
     .samples = 10,
     .part_end = 1,
     .limit = 9,
     .limit_why = "classes of cross_entropy, small.amp:3",
     .offset = 64,
     .low = 0,
     .high = 9,
     .stream = 6},
    {.kind = AMPC_SOURCE_SYNTHETIC,
     .dtype = AMPC_F32,
     .rank = 1,
     .dim = {SMALL_IN},
     .samples = 6,
     .part_end = 1,
     .low = -1,
     .high = 1,
     .stream = 7},
};

/* Changes all state by numbers that depend on the batch, the setting and the counters. */
static inline void small_train_kernel(void *const *args, unsigned block, unsigned n_blocks)
{
  ampc_state *state = args[0];
  float *master = args[1], *m1 = args[2], *m2 = args[3];
  const float *x = args[4], *lr = args[6];
  const uint8_t *label = args[5];
  uint16_t *copy = args[7];
  ampc_optimizer *opt = args[8];
  ampc_metric *loss = args[9];
  int64_t *seen = args[10];
  (void)block, (void)n_blocks;
  for (int i = 0; i < 32; i++) {
    if (i >= 6 && (i < 16 || i >= 18)) continue; /* padding stays zero */
    float g = x[i % (SMALL_IN * SMALL_BATCH)] + (float)label[i % SMALL_BATCH] +
              (float)(state->body % 7) + (float)(state->seed % 5);
    m1[i] = 0.5f * m1[i] + g;
    m2[i] = 0.9f * m2[i] + g * g;
    master[i] -= *lr * 0.001f * m1[i] / (1 + m2[i]);
    copy[i] = (uint16_t)i;
  }
  state->body++;
  state->step++;
  state->skipped = state->body / 3;
  state->scale = 65536.0f * (float)(1 + state->body % 2);
  state->inv_scale = 1 / state->scale;
  state->growth = state->body % 5;
  opt->taken = state->body - state->skipped;
  opt->lr = *lr;
  loss->sum += (double)(master[0] * SMALL_BATCH);
  loss->count += SMALL_BATCH;
  *seen += SMALL_BATCH;
}

/* Computes accuracy: the fraction of samples whose first input is positive. */
static inline void small_eval_kernel(void *const *args, unsigned block, unsigned n_blocks,
                                     int samples)
{
  const float *x = args[0];
  ampc_metric *acc = args[1];
  (void)block, (void)n_blocks;
  for (int i = 0; i < samples; i++) acc->sum += x[i * SMALL_IN] > 0;
  acc->count += samples;
}

static inline void small_eval_four(void *const *args, unsigned block, unsigned n_blocks)
{
  small_eval_kernel(args, block, n_blocks, 4);
}

static inline void small_eval_two(void *const *args, unsigned block, unsigned n_blocks)
{
  small_eval_kernel(args, block, n_blocks, 2);
}

/* Computes y = relu(y), in four blocks. */
static inline void small_relu_kernel(void *const *args, unsigned block, unsigned n_blocks)
{
  float *y = args[0];
  for (unsigned i = block; i < SMALL_BATCH * SMALL_OUT; i += n_blocks) y[i] = fmaxf(y[i], 0);
}

typedef struct SmallProgram { /* all tables of a program that a test may want to change */
  ampc_program program;
  ampc_source sources[3];
  ampc_param params[4];
  ampc_kernel kernels[4];
  ampc_block blocks[3];
  ampc_command forward[2], train[1], eval[2];
  ampc_operand relu_args[1], train_args[11], eval_args[2];
  ampc_output_desc output;
} SmallProgram;

static inline void small_commands(SmallProgram *s)
{
  const ampc_program *p = &s->program;
  int64_t opt = ampc_state_optimizer(0), loss = ampc_state_metric(p->n_optimizers, 0);
  ampc_ref train[] = {{AMPC_STATE, 0},
                      {AMPC_MASTER, 0},
                      {AMPC_MOMENT1, 0},
                      {AMPC_MOMENT2, 0},
                      {AMPC_INPUT, 0},
                      {AMPC_INPUT, 64},
                      {AMPC_STATE, ampc_state_setting(p->n_optimizers, p->n_metrics, 0)},
                      {AMPC_COPY16, 0},
                      {AMPC_STATE, opt},
                      {AMPC_STATE, loss},
                      {AMPC_BUFFER, 0}};
  for (int i = 0; i < 11; i++) s->train_args[i] = (ampc_operand){train[i], 0};
  s->eval_args[0] = (ampc_operand){{AMPC_INPUT, 128}, 0};
  s->eval_args[1] = (ampc_operand){{AMPC_STATE, ampc_state_metric(p->n_optimizers, 1)}, 0};
  s->relu_args[0] = (ampc_operand){{AMPC_WORK, 64}, 0};
  s->train[0] = (ampc_command){.label = "k00_train", .as.launch = {0, 1, 1, 11, s->train_args, 0}};
  s->eval[0] = (ampc_command){.label = "k01_eval", .as.launch = {1, 1, 1, 2, s->eval_args, 0}};
  s->eval[1] = (ampc_command){.label = "k02_eval", .as.launch = {2, 1, 1, 2, s->eval_args, 0}};
  s->forward[0] = (ampc_command){.kind = AMPC_GEMM, .label = "g00_linear"};
  s->forward[0].as.gemm.desc = (ampc_gemm){.m = SMALL_BATCH,
                                           .n = SMALL_OUT,
                                           .k = SMALL_IN,
                                           .batch = 1,
                                           .lda = SMALL_IN,
                                           .ldb = SMALL_OUT,
                                           .ldc = SMALL_OUT,
                                           .has_bias = true};
  s->forward[0].as.gemm.a = (ampc_operand){{AMPC_INPUT, 0}, 0};
  s->forward[0].as.gemm.b = (ampc_operand){{AMPC_MASTER, 0}, 0};
  s->forward[0].as.gemm.bias = (ampc_operand){{AMPC_MASTER, 64}, 0};
  s->forward[0].as.gemm.c = (ampc_operand){{AMPC_WORK, 64}, 0};
  s->forward[1] = (ampc_command){.label = "k03_relu", .as.launch = {3, 4, 1, 1, s->relu_args, 0}};
}

static inline void small_blocks(SmallProgram *s)
{
  s->blocks[0] = (ampc_block){.kind = AMPC_TRAIN,
                              .name = "train",
                              .line = 9,
                              .batch = SMALL_BATCH,
                              .epochs = 5,
                              .accumulate = 1,
                              .log = 1,
                              .shuffle = true,
                              .drop_last = true,
                              .n_sources = 2,
                              .n_metrics = 1,
                              .n_variants = 1};
  s->blocks[0].variant[0] =
      (ampc_step){.batch = SMALL_BATCH, .commands = s->train, .n_commands = 1};
  s->blocks[1] = (ampc_block){.kind = AMPC_EVAL,
                              .name = "eval",
                              .line = 12,
                              .batch = 4,
                              .first_source = 2,
                              .n_sources = 1,
                              .first_metric = 1,
                              .n_metrics = 1,
                              .n_variants = 2};
  s->blocks[1].variant[0] = (ampc_step){.batch = 4, .commands = &s->eval[0], .n_commands = 1};
  s->blocks[1].variant[1] = (ampc_step){.batch = 2, .commands = &s->eval[1], .n_commands = 1};
  s->blocks[2] =
      (ampc_block){.kind = AMPC_INFER, .name = "forward", .batch = SMALL_BATCH, .n_variants = 1};
  s->blocks[2].variant[0] =
      (ampc_step){.batch = SMALL_BATCH, .commands = s->forward, .n_commands = 2};
}

static inline void small_program(SmallProgram *s)
{
  *s = (SmallProgram){0};
  memcpy(s->sources, small_sources, sizeof small_sources);
  memcpy(s->params, small_params, sizeof small_params);
  s->kernels[0] = (ampc_kernel){"k00_train", 11, (void (*)(void))small_train_kernel};
  s->kernels[1] = (ampc_kernel){"k01_eval", 2, (void (*)(void))small_eval_four};
  s->kernels[2] = (ampc_kernel){"k02_eval", 2, (void (*)(void))small_eval_two};
  s->kernels[3] = (ampc_kernel){"k03_relu", 1, (void (*)(void))small_relu_kernel};
  s->sources[2].offset = 128;
  s->output = (ampc_output_desc){.name = "y",
                                 .block = 2,
                                 .rank = 2,
                                 .dim = {SMALL_BATCH, SMALL_OUT},
                                 .place = {AMPC_WORK, 64}};
  s->program = (ampc_program){.name = "small",
                              .source = "small.amp",
                              .target = "cpu",
                              .precision = "f16",
                              .config = "{\"opt.lr\":0.25}",
                              .model_hash = 0x1234,
                              .scaler = {.on = true,
                                         .dynamic = true,
                                         .init = 65536,
                                         .growth = 2,
                                         .backoff = 0.5,
                                         .min = 1,
                                         .max = 16777216,
                                         .interval = 2000,
                                         .hysteresis = 1},
                              .params = s->params,
                              .optimizers = small_optimizers,
                              .settings = small_settings,
                              .sources = s->sources,
                              .metrics = small_metrics,
                              .outputs = &s->output,
                              .blocks = s->blocks,
                              .kernels = s->kernels,
                              .n_params = 4,
                              .n_optimizers = 1,
                              .n_settings = 2,
                              .n_sources = 3,
                              .n_metrics = 2,
                              .n_outputs = 1,
                              .n_blocks = 3,
                              .n_kernels = 4};
  int64_t *bytes = s->program.space_bytes;
  bytes[AMPC_STATE] = ampc_state_setting(s->program.n_optimizers, s->program.n_metrics, 2);
  bytes[AMPC_MASTER] = bytes[AMPC_GRAD] = SMALL_MASTER * 4;
  bytes[AMPC_MOMENT1] = bytes[AMPC_MOMENT2] = SMALL_MASTER * 4;
  bytes[AMPC_COPY16] = SMALL_MASTER * 2;
  bytes[AMPC_BUFFER] = 64;
  bytes[AMPC_INPUT] = 128 + 64;
  bytes[AMPC_WORK] = 128;
  small_commands(s);
  small_blocks(s);
}
