/* Suite: a small model, trained for one body in every precision. With SGD and a learning rate of 1,
 * the change of a weight is its gradient, as the whole pipeline computes it: regions, casts, loss
 * scale, unscaling, 16-bit copies. The gradients in f16, bf16 and tf32 must be near those in
 * f32. */
#include "graph.h"
#include <math.h>
#include <string.h>

enum { BATCH = 5, FEATURES = 33, CLASSES = 7, MAX_WEIGHTS = 4096 };

static const char job[] =
    "data numbers() { return synthetic(64, [33]), synthetic(64, [], dtype=i64, low=0, high=7) }\n"
    "module Net {\n"
    "  fc1 = Linear(33, 17); ln = LayerNorm(17); fc2 = Linear(17, 7)\n"
    "  def forward(x) { return fc2(gelu(ln(fc1(x)))) }\n"
    "}\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=1.0)\n"
    "precision %s\n"
    "train x, y in numbers() with batch=5 {\n"
    "  logits = net(x)\n"
    "  rest = mse_loss(tanh(logits[:, :3]), x[:, :3]) + silu(logits).mean()\n"
    "  minimize cross_entropy(logits, y, label_smoothing=0.1) + rest with opt\n"
    "}\n";

typedef struct Precision {
  const char *clause;
  DType type;     /* type that the table lists */
  double epsilon; /* half an ulp at 1 of the type with the fewest bits */
} Precision;

/* Returns the relative rounding error. A GPU may truncate to tf32: see case_ulps. */
static double epsilon_of(const Precision *p, const TestRun *run)
{
  return p->type == AMPC_F32 && test_on_gpu(run) ? 2 * p->epsilon : p->epsilon;
}
static const Precision precisions[] = {
    {"f16 { scaler(static=1024.0) }", AMPC_F16, 0x1p-11},
    {"f16 { scaler(init=16384.0) }", AMPC_F16, 0x1p-11},
    {"f16 { scaler(off) }", AMPC_F16, 0x1p-11},
    {"bf16", AMPC_BF16, 0x1p-8},
    {"tf32", AMPC_F32, 0x1p-11},
};
enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

/* The number of roundings from the inputs to a gradient: two layers, a norm and the loss, each a
 * few nodes forward and backward. Errors are relative to the largest gradient of a tensor. */
enum { ROUNDINGS = 6 };

typedef struct Weights {
  float at[MAX_WEIGHTS];
  float loss;
} Weights;

/* Writes the inputs where the block reads them: the loader is not under test here. */
static ampc_status write_inputs(Built *b)
{
  float x[BATCH * FEATURES];
  long long y[BATCH];
  uint64_t random = 31;
  for (int i = 0; i < BATCH * FEATURES; i++)
    x[i] = (float)number_round(AMPC_F32, 2 * number_uniform(&random) - 1);
  for (int i = 0; i < BATCH; i++) y[i] = (long long)(number_random(&random) % CLASSES);
  ampc_status status = built_put(b, 0, x, sizeof x);
  return status ? status : built_put(b, 1, y, sizeof y);
}

static ampc_status read_weights(Built *b, Weights *out)
{
  int64_t bytes = b->c->program->space_bytes[AMPC_MASTER];
  if (bytes > (int64_t)sizeof out->at) return ampc_fail(AMPC_RUN_FAILED, "too many weights");
  return ampc_read(b->rt, (ampc_ref){AMPC_MASTER, 0}, out->at, bytes);
}

/* Compiles the job with the given precision clause. */
static ampc_status compile_model(Built *b, Arena *a, const TestRun *run, const char *precision)
{
  const char *name = arena_printf(a, "the model with precision %s", precision);
  return built_job(b, run, 2, &(BuiltJob){.name = name, .text = arena_printf(a, job, precision)});
}

/* Computes the gradients of one body, in the layout of MASTER. */
static ampc_status model_gradients(Built *b, Weights *out)
{
  Weights before, after;
  ampc_metric loss;
  ampc_status status = ampc_init_params(b->rt, 11);
  if (!status) status = read_weights(b, &before);
  if (!status) status = write_inputs(b);
  if (!status) status = built_step(b);
  if (!status) status = read_weights(b, &after);
  if (!status) status = ampc_get_metric(b->rt, 0, &loss);
  if (status) return status;
  int64_t n = b->c->program->space_bytes[AMPC_MASTER] / 4;
  for (int64_t i = 0; i < n; i++) out->at[i] = before.at[i] - after.at[i];
  out->loss = loss.last;
  return AMPC_OK;
}

/* Returns the error relative to the largest gradient: small gradients are sums that cancel. */
static double parameter_error(const ampc_param *p, const Weights *got, const Weights *want,
                              double epsilon)
{
  double largest = 0, worst = 0;
  for (int64_t i = p->offset; i < p->offset + p->elements; i++) {
    largest = fmax(largest, fabs((double)want->at[i]));
    worst = number_worse(worst, fabs((double)got->at[i] - (double)want->at[i]));
  }
  return worst / (ROUNDINGS * epsilon * largest);
}

/* Compares the gradients with those of the same body on the cpu. The cpu sums products in another
 * order, so results may differ where a sum is rounded to the precision's type. */
static ampc_status compare_with_cpu(Arena *a, TestRun *run, const Precision *p, const Weights *got)
{
  Built b;
  Weights want;
  TestRun cpu = test_on_cpu(run);
  ampc_status status = compile_model(&b, a, &cpu, p->clause);
  if (!status) status = model_gradients(&b, &want);
  for (uint32_t i = 0; !status && i < b.c->program->n_params; i++) {
    const ampc_param *param = &b.c->program->params[i];
    test_report(
        run, OP_minimize, PROOF_twin, p->type,
        parameter_error(param, got, &want, epsilon_of(p, run)),
        arena_printf(a, "precision %s: gradient of %s on both devices", p->clause, param->path));
  }
  built_close(&b);
  return status;
}

/* Compares gradients and loss of one precision with those of f32. */
static ampc_status compare_model(Arena *a, TestRun *run, const Precision *p, const Weights *want)
{
  Built b;
  Weights got;
  ampc_status status = compile_model(&b, a, run, p->clause);
  if (!status) status = model_gradients(&b, &got);
  for (uint32_t i = 0; !status && i < b.c->program->n_params; i++) {
    const ampc_param *param = &b.c->program->params[i];
    test_report(run, OP_minimize, PROOF_backward, p->type,
                parameter_error(param, &got, want, epsilon_of(p, run)),
                arena_printf(a, "precision %s: gradient of %s", p->clause, param->path));
  }
  if (!status && test_on_gpu(run)) status = compare_with_cpu(a, run, p, &got);
  double loss = fabs((double)got.loss - (double)want->loss) / (double)want->loss;
  if (!status)
    test_report(run, OP_minimize, PROOF_forward, p->type, loss / (ROUNDINGS * epsilon_of(p, run)),
                arena_printf(a, "precision %s: loss %.9g, in f32 %.9g", p->clause, (double)got.loss,
                             (double)want->loss));
  built_close(&b);
  return status;
}

ampc_status suite_model(Arena *a, TestRun *run)
{
  Built b;
  Weights want = {0};
  if (!test_wanted(run, OP_minimize)) return AMPC_OK;
  ampc_status status = compile_model(&b, a, run, "f32");
  if (!status) status = model_gradients(&b, &want);
  built_close(&b);
  for (int i = 0; !status && i < N_PRECISIONS; i++)
    status = compare_model(a, run, &precisions[i], &want);
  return status;
}
