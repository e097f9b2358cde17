/* Whole steps on the CUDA device with the mock's libraries, against the CPU: same jobs, same
 * batches, same weights. Results without products have the same bits; products are summed in
 * another order. The host never waits during steps, and results do not depend on when the device
 * does its work. */
#include "ampc_rt.h"
#include "check.h"
#include "compiler/base/compile.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "runner/selftest/number.h"
#include "runtime/runtime.h"
#include <dlfcn.h>
#include <math.h>

/* ---- jobs ---- */

static const char elementwise[] =
    "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[70]) }\n"
    "module Curve() {\n"
    "  a = Parameter([70], init=ones_())\n"
    "  norm = LayerNorm(70)\n"
    "  def forward(x) { return gelu(norm(x) * a) + sigmoid(dropout(x, 0.2)) }\n"
    "}\n"
    "model net = Curve()\n"
    "optimizer opt = AdamW(net, lr=cosine_schedule(1e-2, steps=20, warmup=2), clip_norm=0.5)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=33, drop_last=false {\n"
    "  minimize mse_loss(net(x), y) with opt\n"
    "}\n";

/* A smaller batch first occurs between other batches of a step, after gradients that must stay. Two
 * of the steps overflow. */
static const char added_up[] =
    "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[70]) }\n"
    "module Curve() {\n"
    "  a = Parameter([70], init=ones_())\n"
    "  norm = LayerNorm(70)\n"
    "  def forward(x) { return gelu(norm(x) * a) + sigmoid(dropout(x, 0.2)) }\n"
    "}\n"
    "model net = Curve()\n"
    "optimizer opt = AdamW(net, lr=1e-2, clip_value=0.5, ema=0.5, accumulate=4)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=33, drop_last=false {\n"
    "  minimize 300.0 * mse_loss(net(x), y) with opt\n"
    "}\n";

/* Has four variants, eight with a smaller batch. Most are tried out long after the first step. */
#define IN_SOME_STEPS(bodies)                                                                      \
  "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[70]) }\n"            \
  "model norm = LayerNorm(70)\n"                                                                   \
  "model scale = LayerNorm(70)\n"                                                                  \
  "optimizer opt = AdamW(norm, lr=1e-2, clip_norm=0.5, accumulate=" bodies ")\n"                   \
  "optimizer rare = SGD(scale, lr=0.1, momentum=0.9, ema=0.5, accumulate=" bodies ")\n"            \
  "precision PRECISION\n"                                                                          \
  "train x, y in points(640) with batch=33, drop_last=false {\n"                                   \
  "  every 2 { minimize mse_loss(scale(gelu(norm(x))), y) with rare }\n"                           \
  "  every 3 { minimize mse_loss(dropout(norm(x), 0.2), y) with opt }\n"                           \
  "}\n"
static const char in_some_steps[] = IN_SOME_STEPS("1");
static const char in_some_steps_added_up[] = IN_SOME_STEPS("4");

static const char images_added_up[] =
    "data points(n: int) { return synthetic(n, shape=[6, 9, 7]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=5) }\n"
    "model net = Sequential(Conv2d(6, 8, 3, stride=2), BatchNorm2d(8), ReLU(), Flatten(), "
    "Linear(96, 5))\n"
    "optimizer opt = SGD(net, lr=0.02, momentum=0.9, accumulate=4)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=12, drop_last=false {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "}\n";

/* Has layers of one shape, which share the plan of their product; one is used twice. It does not
 * use Adam, which amplifies the noise of a gradient near zero to a whole step. */
static const char products[] =
    "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=5) }\n"
    "module Net() {\n"
    "  first = Linear(70, 64)\n"
    "  a = Linear(64, 64)\n"
    "  b = Linear(64, 64)\n"
    "  c = Linear(64, 64)\n"
    "  norm = LayerNorm(64)\n"
    "  last = Linear(64, 5)\n"
    "  def forward(x) {\n"
    "    x = norm(gelu(first(x)))\n"
    "    x = a(relu(b(relu(c(relu(a(x)))))))\n"
    "    return last(dropout(gelu(x), 0.3))\n"
    "  }\n"
    "}\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=linear_schedule(5e-2, 1e-2, steps=20, warmup=2), "
    "momentum=0.9, clip_norm=0.5)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=33, drop_last=false {\n"
    "  logits = net(x)\n"
    "  minimize cross_entropy(logits, y) with opt\n"
    "  metric acc = accuracy(logits, y)\n"
    "}\n";

/* Its last products compute 528 columns, terms or rows. The last weight has room behind it, so all
 * weights are at the same places as on the CPU. */
static const char head[] =
    "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=5) }\n"
    "model net = Sequential(Linear(70, 64), GELU(), Linear(64, 523, bias=false), Tanh())\n"
    "optimizer opt = SGD(net, lr=5e-2, momentum=0.9, clip_norm=0.5)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=33, drop_last=false {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "}\n";

static const char images[] =
    "data points(n: int) { return synthetic(n, shape=[6, 9, 7]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=5) }\n"
    "model net = Sequential(Conv2d(6, 8, 3, stride=2, padding=1, groups=2, bias=false), "
    "BatchNorm2d(8), ReLU(), Conv2d(8, 12, 3, padding=2, dilation=2, groups=2), ReLU(), "
    "Conv2d(12, 16, 1), MaxPool2d(2), Flatten(), Linear(64, 5))\n"
    "optimizer opt = SGD(net, lr=0.02, momentum=0.9)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=12, drop_last=false {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "}\n";

/* Makes the columns of the second convolution in several parts. */
static const char large[] =
    "data points(n: int) { return synthetic(n, shape=[1, 128, 128]), synthetic(n, shape=[], "
    "dtype=i64, low=0, high=5) }\n"
    "model net = Sequential(Conv2d(1, 16, 3, padding=1), ReLU(), Conv2d(16, 8, 3, padding=1), "
    "ReLU(), AdaptiveAvgPool2d(1), Flatten(), Linear(8, 5))\n"
    "optimizer opt = SGD(net, lr=0.02, momentum=0.9)\n"
    "precision PRECISION\n"
    "train x, y in points(640) with batch=33, drop_last=false {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "}\n";

typedef struct Job {
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
} Job;

static void put_precision(const char *text, const char *precision, char *out, size_t size)
{
  const char *at = strstr(text, "PRECISION");
  MUST(at);
  snprintf(out, size, "%.*s%s%s", (int)(at - text), text, precision, at + strlen("PRECISION"));
}

static Job open_job(const char *text, const char *precision, const char *device)
{
  char target[AMPC_TARGET_ROOM], whole[4096];
  put_precision(text, precision, whole, sizeof whole);
  MUST(ampc_device_target(device, target) == AMPC_OK);
  Options options = {.input = "test.amp", .target = target, .optimize = 2, .error_limit = 20};
  Job j = {.c = compile_create(&options)};
  MUST(compile_text(j.c, "test.amp", whole, strlen(whole)));
  ampc_status status = jit_load(j.c, &j.jit);
  if (!status) status = ampc_create(j.c->program, device, &j.rt);
  if (!status) status = ampc_init_params(j.rt, 7);
  if (status) fprintf(stderr, "%s: %s\n", device, ampc_last_error());
  MUST(status == AMPC_OK);
  return j;
}

static void close_job(Job *j)
{
  ampc_free(j->rt);
  jit_unload(j->jit);
  compile_destroy(j->c);
}

static unsigned next_random(unsigned *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Brings a batch like a loader does, while earlier steps run. */
static ampc_status bring_batch(const Job *j, uint32_t variant, unsigned seed)
{
  const ampc_program *p = j->c->program;
  const ampc_block *b = &p->blocks[0];
  ampc_status status = runtime_turn_input(j->rt);
  for (uint32_t s = 0; s < b->n_sources; s++) {
    const ampc_source *from = &p->sources[b->first_source + s];
    int64_t n = b->variant[variant].batch;
    for (uint32_t i = 0; i < from->rank; i++) n *= from->dim[i];
    char *bytes = calloc((size_t)n, 8);
    for (int64_t i = 0; i < n; i++) {
      float number = (float)next_random(&seed) / (1 << 22) - 2;
      int64_t label = next_random(&seed) % 5;
      if (from->dtype == AMPC_F32)
        memcpy(bytes + 4 * i, &number, 4);
      else
        memcpy(bytes + 8 * i, &label, 8);
    }
    if (!status)
      status = runtime_bring(j->rt, from->offset, bytes, n * ampc_dtype_size(from->dtype));
    free(bytes);
  }
  return status;
}

/* Runs steps. Every third batch is the smaller one at the end of an epoch. */
static void run_steps(const Job *j, int n)
{
  const ampc_block *b = &j->c->program->blocks[0];
  int64_t batch[] = {b->variant[0].batch, b->variant[b->n_variants - 1].batch};
  MUST(batch[1] < batch[0]);
  for (int i = 0; i < n; i++) {
    int bodies = (int)b->accumulate;
    uint32_t variant = ampc_variant_at(b, batch[i % 3 == 2], i / bodies + 1);
    bool first = i % bodies == 0, closes = i % bodies == bodies - 1;
    if (bring_batch(j, variant, (unsigned)i + 1) || ampc_set_group(j->rt, first, closes) ||
        ampc_run_step(j->rt, 0, variant)) {
      fprintf(stderr, "step %d: %s\n", i, ampc_last_error());
      exit(1);
    }
  }
}

/* ---- comparing ---- */

static float *read_space(const Job *j, ampc_space space, int64_t *out_n)
{
  int64_t bytes = j->c->program->space_bytes[space];
  float *out = calloc(1, (size_t)bytes + 4);
  MUST(ampc_read(j->rt, (ampc_ref){space, 0}, out, bytes) == AMPC_OK);
  *out_n = bytes / 4;
  return out;
}

/* Returns the largest difference between the floats of a space, relative above 1. */
static double difference(const Job *a, const Job *b, ampc_space space)
{
  int64_t n, m;
  float *x = read_space(a, space, &n), *y = read_space(b, space, &m);
  double worst = 0;
  for (int64_t i = 0; i < n && i < m; i++) {
    worst = number_worse(worst, fabs((double)x[i] - y[i]) / (1 + fabs((double)x[i])));
  }
  free(x);
  free(y);
  return worst;
}

static bool same_bits(const Job *a, const Job *b, ampc_space space)
{
  int64_t n, m;
  float *x = read_space(a, space, &n), *y = read_space(b, space, &m);
  bool same = memcmp(x, y, (size_t)(n < m ? n : m) * 4) == 0;
  free(x);
  free(y);
  return same;
}

static double loss_of(const Job *j)
{
  ampc_metric m;
  MUST(ampc_get_metric(j->rt, 0, &m) == AMPC_OK);
  return m.sum / m.count;
}

/* ---- tests ---- */

enum { STEPS = 6 };

static void test_elementwise(const char *text, const char *precision, int steps)
{
  Job cpu = open_job(text, precision, "cpu"), cuda = open_job(text, precision, "cuda");
  run_steps(&cpu, steps);
  run_steps(&cuda, steps);
  static const ampc_space spaces[] = {AMPC_STATE, AMPC_GRAD,    AMPC_MASTER,
                                      AMPC_EMA,   AMPC_MOMENT1, AMPC_MOMENT2};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    CHECK_MSG(same_bits(&cpu, &cuda, spaces[i]), "%s: space %d differs", precision, spaces[i]);
  CHECK(isfinite(loss_of(&cuda)));
  close_job(&cpu);
  close_job(&cuda);
}

/* Compares. In f32 only the order of sums differs; a 16-bit result sometimes differs by one ulp. */
static void test_close(const char *text, const char *precision, int steps, double bound,
                       const char *what)
{
  Job cpu = open_job(text, precision, "cpu"), cuda = open_job(text, precision, "cuda");
  CHECK(difference(&cpu, &cuda, AMPC_MASTER) == 0);
  run_steps(&cpu, steps);
  run_steps(&cuda, steps);
  double weights = difference(&cpu, &cuda, AMPC_MASTER), x = loss_of(&cpu), y = loss_of(&cuda);
  double running = difference(&cpu, &cuda, AMPC_BUFFER);
  CHECK_MSG(running <= bound, "%s %s: buffers differ by %g", what, precision, running);
  CHECK_MSG(weights <= bound, "%s %s: weights differ by %g", what, precision, weights);
  CHECK_MSG(fabs(x - y) <= bound * fabs(x), "%s %s: loss %.9g on cpu, %.9g on cuda", what,
            precision, x, y);
  printf("%s %s: weights differ by %.2g, loss by %.2g\n", what, precision, weights, fabs(x - y));
  close_job(&cpu);
  close_job(&cuda);
}

/* Tests three schedules: all work is late, no work is late, only steps are. There are enough steps
 * to reuse pinned memory many times. */
static void test_schedules(const char *text, int steps)
{
  Job late = open_job(text, "f16", "cuda");
  run_steps(&late, steps);
  static const char *const others[] = {"1", "2"};
  for (int i = 0; i < 2; i++) {
    setenv("MOCK_CUDA_EAGER", others[i], 1);
    Job other = open_job(text, "f16", "cuda");
    run_steps(&other, steps);
    for (ampc_space s = AMPC_STATE; s < AMPC_INPUT; s++)
      if (late.c->program->space_bytes[s])
        CHECK_MSG(same_bits(&late, &other, s), "space %d depends on when work is done: %s", s,
                  others[i]);
    unsetenv("MOCK_CUDA_EAGER");
    close_job(&other);
  }
  close_job(&late);
}

static long count(const char *name)
{
  long (*mock_count)(const char *);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *found = driver ? dlsym(driver, "mock_count") : NULL;
  MUST(found);
  memcpy(&mock_count, &found, sizeof found);
  long n = mock_count(name);
  dlclose(driver);
  return n;
}

static long waits(void)
{
  return count("stream_syncs") + count("event_syncs") + count("event_queries");
}

/* Checks that steps do not wait. A step is a copy of the batch and one graph. Each batch size has
 * two graphs. When a size is tried out, the host checks once for each kind of product with relu
 * whether it keeps NaN. After that it never waits. */
static void test_no_waits(void)
{
  enum { FIRST = 20, MORE = 10, SIZES = 2, KINDS = 2, WAITS = 2 };
  long graphs = count("graph_launches"), captures = count("captures"), before = waits();
  Job j = open_job(products, "f16", "cuda");
  long opening = waits() - before;
  run_steps(&j, FIRST);
  CHECK(waits() - before - opening == SIZES * KINDS * WAITS);
  long run = count("kernels_run");
  before = waits();
  run_steps(&j, MORE);
  CHECK(waits() == before);
  CHECK(count("graph_launches") - graphs == FIRST + MORE && count("captures") - captures == 4);
  CHECK(count("kernels_run") == run); /* all work is still queued */
  MUST(ampc_wait(j.rt) == AMPC_OK);
  CHECK(count("kernels_run") > run && count("pageable_copies") == 0);
  ampc_state s;
  MUST(ampc_get_state(j.rt, &s) == AMPC_OK);
  CHECK(s.body == FIRST + MORE); /* the first step counts once, although it was tried out first */
  close_job(&j);
  CHECK(count("held") == 0);
}

/* Makes the same calls as an emitted step, from the commands of the only block. */
static const ampc_command *called;
static uint32_t n_called;

static char *place(ampc_runtime *rt, ampc_operand o)
{
  return o.at.space == AMPC_NONE ? AMPC_NUMBER(o.at.offset)
                                 : ampc_spaces(rt)[o.at.space] + o.at.offset;
}

static void call_all(ampc_runtime *rt)
{
  for (const ampc_command *k = called; k < called + n_called; k++) {
    const ampc_launch *l = &k->as.launch;
    void *args[32];
    switch (k->kind) {
    case AMPC_LAUNCH_KERNEL:
      MUST(l->n_args <= 32);
      for (uint32_t i = 0; i < l->n_args; i++) args[i] = place(rt, l->args[i]);
      ampc_do_launch(rt, l->kernel, l->grid, l->block, args, l->n_args);
      break;
    case AMPC_GEMM:
      ampc_do_gemm(rt, &k->as.gemm.desc, place(rt, k->as.gemm.a), place(rt, k->as.gemm.b),
                   place(rt, k->as.gemm.bias), place(rt, k->as.gemm.c),
                   place(rt, k->as.gemm.workspace));
      break;
    case AMPC_CONV:
      ampc_do_conv(rt, &k->as.conv.desc, place(rt, k->as.conv.x), place(rt, k->as.conv.w),
                   place(rt, k->as.conv.bias), place(rt, k->as.conv.y), NULL);
      break;
    default:
      MUST(!"a command of this kind");
    }
  }
}

/* Checks scratch memory. A step that is a function takes as much memory outside of the spaces as
 * its command list, in as many allocations, and reports it at the start. Convolutions share one. */
static void test_scratch(void)
{
  ampc_use_cudnn(false);
  Job list = open_job(images, "f16", "cuda");
  long before = count("allocations");
  MUST(bring_batch(&list, 0, 1) == AMPC_OK && ampc_run_step(list.rt, 0, 0) == AMPC_OK);
  long pieces = count("allocations") - before;
  ampc_program *p = (ampc_program *)(uintptr_t)list.c->program;
  ampc_block block = p->blocks[0];
  called = block.variant[0].commands;
  n_called = block.variant[0].n_commands;
  block.variant[0].commands = NULL;
  block.variant[0].n_commands = 0;
  block.variant[0].run = call_all;
  block.n_variants = 1;
  p->blocks = &block;
  Job function = {.c = list.c};
  p->target = "sm_90"; /* open_job's string is freed */
  CHECK_MSG(ampc_create(p, "cuda", &function.rt) == AMPC_OK, "%s", ampc_last_error());
  MUST(function.rt);
  int64_t from_start = ampc_memory_of(function.rt).library;
  CHECK(ampc_init_params(function.rt, 7) == AMPC_OK);
  before = count("allocations");
  CHECK(bring_batch(&function, 0, 1) == AMPC_OK);
  CHECK_MSG(ampc_run_step(function.rt, 0, 0) == AMPC_OK, "%s", ampc_last_error());
  CHECK(count("allocations") - before == pieces && pieces == 1);
  CHECK(ampc_memory_of(function.rt).library == from_start);
  CHECK(from_start == ampc_memory_of(list.rt).library);
  CHECK(same_bits(&list, &function, AMPC_MASTER));
  ampc_free(function.rt);
  close_job(&list);
  ampc_use_cudnn(true);
}

int main(void)
{
  test_scratch();
  test_elementwise(elementwise, "f32", STEPS);
  test_elementwise(added_up, "f32", 14);
  test_elementwise(elementwise, "f16", STEPS);
  test_elementwise(added_up, "f16", 14);
  test_elementwise(in_some_steps, "f16", 14);
  test_elementwise(in_some_steps_added_up, "f16", 30);
  test_elementwise(elementwise, "bf16", STEPS);
  test_elementwise(added_up, "bf16", 14);
  test_close(products, "f32", STEPS, 1e-6, "products");
  test_close(products, "tf32", STEPS, 1e-6, "products");
  test_close(products, "f16", STEPS, 1e-4, "products");
  test_close(products, "bf16", STEPS, 1e-3, "products");
  test_close(head, "tf32", STEPS, 1e-6, "head");
  test_close(head, "f16", STEPS, 1e-4, "head");
  test_close(head, "bf16", STEPS, 1e-3, "head");
  test_close(images, "f32", STEPS, 1e-6, "images");
  test_close(images, "f16", STEPS, 1e-4, "images");
  test_close(images, "bf16", STEPS, 1e-3, "images");
  test_close(images_added_up, "f16", 10, 1e-4, "images");
  test_close(large, "f32", 3, 1e-6, "large images");
  test_schedules(products, 300);
  test_schedules(images, 20);
  test_no_waits();
  return check_done();
}
