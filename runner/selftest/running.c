/* Suite: running statistics of batch norm, and Buffers that a method assigns, in a small job that
 * trains. Each batch updates them, unless the update of its step is skipped. The expected values
 * are computed in double from the values before the step. */
#include "graph.h"
#include <math.h>
#include <string.h>

/* ROWS: elements of one channel in a batch; EXTRA: elements of the weight that overflows */
enum { IMAGES = 4, CHANNELS = 3, PIXELS = 30, ROWS = IMAGES * PIXELS, EXTRA = 7 };

static const char job[] =
    "data numbers() { return synthetic(64, [3, 5, 6]), synthetic(64, [7]) }\n"
    "module Net {\n"
    "  bn = BatchNorm2d(3, momentum=0.25); w = Parameter([7], init=normal_())\n"
    "  moved = Buffer([7], init=zeros_()); peak = Buffer([7], init=constant_(-inf))\n"
    "  calls = Buffer([], dtype=i64); high = Buffer([7], dtype=i32); met = Buffer([7], "
    "dtype=bool)\n"
    "  half = Buffer([7], dtype=f16)\n"
    "  def track(z) {\n"
    "    if training {\n"
    "      calls += 16777217; high = high + (z > 1.0).sum(0); met = met | (z > 3.5).any(0)\n"
    "      half = half + 0.25\n    }\n"
    "    if training { moved = 0.75 * moved + 0.25 * z.mean(0); peak = maximum(peak, z.amax(0)) }\n"
    "    return z - moved\n"
    "  }\n"
    "  def forward(x, z) { return sum(bn(x) * x) + sum(w * (track(z) + track(z + 1.0))) }\n"
    "}\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=1e-6)\n"
    "precision f16 { scaler(init=1024.0) }\n"
    "train x, z in numbers() with batch=4 { minimize net(x, z) with opt }\n";

typedef struct Running {
  float mean[CHANNELS], var[CHANNELS];
  int64_t count;
  float moved[EXTRA], peak[EXTRA];
  int64_t calls;
  int32_t high[EXTRA];
  bool met[EXTRA];
  uint16_t half[EXTRA];
} Running;

typedef struct Images {
  float x[IMAGES * CHANNELS * PIXELS], z[IMAGES * EXTRA];
} Images;

/* Reads all buffers of the model, by their paths. */
static ampc_status read_running(Built *b, Running *r)
{
  const struct {
    const char *path;
    void *to;
    size_t size;
  } places[] = {{"bn.running_mean", r->mean, sizeof r->mean},
                {"bn.running_var", r->var, sizeof r->var},
                {"bn.num_batches_tracked", &r->count, sizeof r->count},
                {"moved", r->moved, sizeof r->moved},
                {"peak", r->peak, sizeof r->peak},
                {"calls", &r->calls, sizeof r->calls},
                {"high", r->high, sizeof r->high},
                {"met", r->met, sizeof r->met},
                {"half", r->half, sizeof r->half}};
  const ampc_program *p = b->c->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; !status && i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    for (size_t k = 0; q->buffer && !status && k < sizeof places / sizeof *places; k++)
      if (strcmp(q->path, places[k].path) == 0)
        status = ampc_read(b->rt, (ampc_ref){AMPC_BUFFER, q->offset}, places[k].to,
                           (int64_t)places[k].size);
  }
  return status;
}

/* Fills a batch. `overflow`: a 2e37 in `z` overflows the scaled gradient of w, and only that. */
static void fill(Images *batch, bool overflow, uint64_t *random)
{
  for (int i = 0; i < IMAGES * CHANNELS * PIXELS; i++)
    batch->x[i] = (float)(number_uniform(random) * 6 - 2);
  for (int i = 0; i < IMAGES * EXTRA; i++) batch->z[i] = (float)number_uniform(random);
  if (overflow) batch->z[5] = 2e37f;
}

static ampc_status run_body(Built *b, const Images *batch)
{
  ampc_status status = built_put(b, 0, batch->x, sizeof batch->x);
  if (!status) status = built_put(b, 1, batch->z, sizeof batch->z);
  return status ? status : built_step(b);
}

typedef struct Body { /* the batch that ran, and the buffers before and after it */
  Images batch;
  Running before, after;
  bool skipped;
  const char *how;
} Body;

/* Returns the error in units of 16 ulps: a mean of 120 values, and two roundings of the update. */
static double relative(double got, double want)
{
  return fabs(got - want) / (16 * number_ulp(AMPC_F32, fmax(fabs(want), 1)));
}

/* Checks PyTorch's rule: new = (1 - momentum) old + momentum batch, with the unbiased variance. */
static void check(Arena *a, TestRun *run, const Body *b)
{
  const Running *before = &b->before, *after = &b->after;
  double worst = 0;
  for (int c = 0; c < CHANNELS; c++) {
    double mean = 0, square = 0;
    for (int i = 0; i < ROWS; i++)
      mean += (double)b->batch.x[(i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS] / ROWS;
    for (int i = 0; i < ROWS; i++) {
      double v = (double)b->batch.x[(i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS] - mean;
      square += v * v;
    }
    double part = b->skipped ? 0 : 0.25;
    double want_mean = (1 - part) * (double)before->mean[c] + part * mean;
    double want_var = (1 - part) * (double)before->var[c] + part * square / (ROWS - 1);
    worst = number_worse(worst, relative((double)after->mean[c], want_mean));
    worst = number_worse(worst, relative((double)after->var[c], want_var));
  }
  test_report(run, OP_running_update, PROOF_forward, AMPC_F32, worst,
              arena_printf(a, "running mean and variance %s", b->how));
  test_check(run, OP_running_count, AMPC_I64, after->count == before->count + !b->skipped,
             arena_printf(a, "batches counted %s: %lld after %lld", b->how, (long long)after->count,
                          (long long)before->count));
}

/* Checks the buffers that a method assigns. The job calls the method with z, then with z + 1; the
 * second call reads the values that the first one assigned. */
static void check_assigned(Arena *a, TestRun *run, const Body *b)
{
  const Running *before = &b->before, *after = &b->after;
  double worst = 0;
  for (int k = 0; k < EXTRA; k++) {
    double mean = 0, most = -INFINITY;
    for (int i = 0; i < IMAGES; i++) {
      mean += (double)b->batch.z[i * EXTRA + k] / IMAGES;
      most = fmax(most, (double)b->batch.z[i * EXTRA + k]);
    }
    double once = 0.75 * (double)before->moved[k] + 0.25 * mean;
    double moved = 0.75 * once + 0.25 * (mean + 1), peak = fmax((double)before->peak[k], most + 1);
    if (b->skipped) moved = (double)before->moved[k];
    bool same = after->peak[k] == (b->skipped ? before->peak[k] : (float)peak);
    worst = number_worse(worst, same ? relative((double)after->moved[k], moved) : INFINITY);
  }
  test_report(run, OP_buffer_update, PROOF_forward, AMPC_F32, worst,
              arena_printf(a, "a mean that moves and a maximum %s", b->how));
}

/* Decodes f16 bits of 0 or a positive normal number. */
static double small_f16(uint16_t bits)
{
  return bits ? ldexp(1024 + (bits & 1023), (bits >> 10) - 25) : 0;
}

/* Checks the buffers of counts, bools and 16-bit numbers. Integers are exact, also beyond the 24
 * bits of an f32, and so are quarters in f16. */
static void check_counted(Arena *a, TestRun *run, const Body *b)
{
  const Running *before = &b->before, *after = &b->after;
  bool good = after->calls == before->calls + (b->skipped ? 0 : 2 * 16777217);
  for (int k = 0; k < EXTRA; k++) {
    int32_t high = before->high[k];
    bool met = before->met[k];
    for (int i = 0; i < 2 * IMAGES && !b->skipped; i++) {
      float z = b->batch.z[i % IMAGES * EXTRA + k] + (i < IMAGES ? 0.0f : 1.0f);
      high += z > 1.0f;
      met = met || z > 3.5f;
    }
    double half = small_f16(before->half[k]) + (b->skipped ? 0 : 0.5);
    good =
        good && after->high[k] == high && after->met[k] == met && small_f16(after->half[k]) == half;
  }
  test_check(run, OP_buffer_update, AMPC_I64, good,
             arena_printf(a, "counts, bools and 16 bits %s", b->how));
}

/* Runs the bodies of a plan. A batch `i` overflows: its step changes no statistics, and the next
 * step changes them again. */
static ampc_status run_bodies(Arena *a, TestRun *run, Built *b)
{
  Body body = {.before = {.count = -1}};
  uint64_t random = 11;
  ampc_status status = read_running(b, &body.before);
  test_check(run, OP_running_count, AMPC_I64, body.before.count == 0 && body.before.var[2] == 1.0f,
             "running statistics start at mean 0, variance 1");
  for (const char *plan = "nninn"; !status && *plan; plan++) {
    body.skipped = *plan == 'i';
    body.how = body.skipped ? "of a skipped step" : "of a step";
    fill(&body.batch, body.skipped, &random);
    status = run_body(b, &body.batch);
    if (!status) status = read_running(b, &body.after);
    if (status) return status;
    check(a, run, &body);
    check_assigned(a, run, &body);
    check_counted(a, run, &body);
    body.before = body.after;
  }
  return status;
}

ampc_status suite_running(Arena *a, TestRun *run)
{
  static const OpKind ops[] = {OP_running_update, OP_running_count, OP_buffer_update};
  if (!test_wants_any(run, ops, 3)) return AMPC_OK;
  return built_job_twice(
      a, run,
      &(BuiltJob){.name = "the job of running statistics", .text = job, .test = run_bodies});
}
