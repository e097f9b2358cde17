/* Suite: ops whose results a formula cannot predict. Dropout keeps the expected fraction, draws the
 * same numbers in backward as in forward, and other numbers for another stream, seed or body.
 * Uniform and normal numbers are those of the generator. detach passes no gradient. */
#include "graph.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { DROP_N = 100000 }; /* vectors of 8 */
static const double drop_p = 0.3;

typedef struct Drops { /* outputs. y, dx: stream 1; other: y of stream 2; all: y if p is 1; none: y
                        * if p is 0 */
  Built b;
  uint32_t y, dx, other, all, none;
  Tensor x;
} Drops;

/* Appends a dropout and sets its stream, which in a job lowering does. */
static Value append_drop(Built *b, Value x, double p, uint32_t stream)
{
  Cursor at = built_cursor(false);
  Value y = ir_append(b->c, &at, OP_drop, &x, 1, ATTRS({"p", {.f = p}}));
  ir_node(b->c->graph, y)->stream = stream;
  if (b->c->graph->n_streams <= stream) b->c->graph->n_streams = stream + 1;
  return y;
}

static ampc_status open_drops(Drops *d, Arena *a, const TestRun *run, DType type, int optimize)
{
  uint64_t random = 5;
  built_open(&d->b, run, false, optimize);
  d->x = tensor_like(a, type, 1, (int64_t[]){DROP_N});
  tensor_fill(&d->x, 'v', &random);
  Cursor at = built_cursor(false);
  Value x = built_source(&d->b, &d->x), dy = built_source(&d->b, &d->x);
  Value y = append_drop(&d->b, x, drop_p, 1);
  Value dx = *gradient_of(d->b.c, &at, y, dy, &x, 1);
  d->y = built_output(&d->b, y);
  d->dx = built_output(&d->b, dx);
  d->other = built_output(&d->b, append_drop(&d->b, x, drop_p, 2));
  d->none = built_output(&d->b, append_drop(&d->b, x, 0, 3));
  d->all = built_output(&d->b, append_drop(&d->b, x, 1, 4));
  ampc_status status = built_load(&d->b);
  if (!status) status = built_write(&d->b, 0, &d->x);
  return status ? status : built_write(&d->b, 1, &d->x);
}

/* Writes seed and body into the state of the runtime, as a resumed training does. */
static ampc_status run_drops(Drops *d, Arena *a, int64_t seed, int64_t body, uint32_t output,
                             Tensor *out)
{
  ampc_ref seed_place = {AMPC_STATE, offsetof(ampc_state, seed)};
  ampc_ref body_place = {AMPC_STATE, offsetof(ampc_state, body)};
  ampc_status status = ampc_write(d->b.rt, seed_place, &seed, sizeof seed);
  if (!status) status = ampc_write(d->b.rt, body_place, &body, sizeof body);
  if (!status) status = built_step(&d->b);
  return status ? status : built_read(&d->b, a, output, out);
}

/* Returns one word of Philox4x32-10, from the paper (Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3"): counter (element / 4, body, stream), key (seed). */
static uint32_t philox(uint64_t element, uint64_t body, uint32_t stream, uint64_t seed)
{
  uint64_t counter = element / 4;
  uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)body, stream};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ (uint32_t)(body >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t left = (uint64_t)x[0] * 0xD2511F53u, right = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t next[4] = {(uint32_t)(right >> 32) ^ x[1] ^ key[0], (uint32_t)right,
                        (uint32_t)(left >> 32) ^ x[3] ^ key[1], (uint32_t)left};
    memcpy(x, next, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x[element % 4];
}

static double uniform_number(int64_t element, uint64_t body, uint32_t stream, uint64_t seed)
{
  return (double)(philox((uint64_t)element, body, stream, seed) >> 8) * 0x1p-24;
}

/* True if the kept elements are those that the paper's numbers keep. x has no zeros. */
static bool drawn_by_philox(const Tensor *y, uint64_t seed, uint64_t body, uint32_t stream)
{
  for (int64_t i = 0; i < y->n; i++) {
    double uniform = uniform_number(i, body, stream, seed);
    if ((y->at[i] != 0) != (uniform >= number_round(AMPC_F32, drop_p))) return false;
  }
  return true;
}

/* True if kept elements are x / (1 - p), to an ulp: the kernel rounds the factor 1 / (1 - p). */
static bool kept_scaled(const Tensor *x, const Tensor *y, double p)
{
  for (int64_t i = 0; i < x->n; i++) {
    double want = x->at[i] / (1 - p);
    bool good = y->at[i] == 0 || element_error(x->dtype, false, 2, y->at[i], want, want) <= 1;
    if (!good) return false;
  }
  return true;
}

static double share_kept(const Tensor *y)
{
  double n = 0;
  for (int64_t i = 0; i < y->n; i++) n += y->at[i] != 0;
  return n / (double)y->n;
}

/* Returns the fraction that both masks keep; `shift` compares neighbours of one mask. */
static double share_both(const Tensor *x, const Tensor *y, int64_t shift)
{
  double n = 0;
  for (int64_t i = 0; i + shift < x->n; i++) n += x->at[i] != 0 && y->at[i + shift] != 0;
  return n / (double)(x->n - shift);
}

/* True if the fraction is within five standard deviations of independent draws'. */
static bool near_share(double share, double expected)
{
  return fabs(share - expected) < 5 * sqrt(expected * (1 - expected) / DROP_N);
}

static void check_drop(TestRun *run, DType type, bool good, const char *what)
{
  test_check(run, OP_drop, type, good, what);
}

/* True if two masks keep the same element as often as two independent masks do. */
static bool independent(const Tensor *x, const Tensor *y)
{
  return near_share(share_both(x, y, 0), (1 - drop_p) * (1 - drop_p));
}

/* Checks that each component of the key changes the numbers: stream, body, seed, element. */
static ampc_status check_keys(Drops *d, Arena *a, TestRun *run, DType type, const Tensor *y)
{
  Tensor again, other, body, seed;
  ampc_status status = run_drops(d, a, 1, 7, d->y, &again);
  if (!status) status = run_drops(d, a, 1, 7, d->other, &other);
  if (!status) status = run_drops(d, a, 1, 8, d->y, &body);
  if (!status) status = run_drops(d, a, 2, 7, d->y, &seed);
  if (status) return status;
  check_drop(run, type, drawn_by_philox(y, 1, 7, 1), "numbers of Philox4x32-10");
  check_drop(run, type, tensor_same_bits(y, &again), "the same numbers in a second run");
  check_drop(run, type, independent(y, &other), "another stream draws other numbers");
  check_drop(run, type, independent(y, &body), "another body draws other numbers");
  check_drop(run, type, independent(y, &seed), "another seed draws other numbers");
  check_drop(run, type, near_share(share_both(y, y, 1), (1 - drop_p) * (1 - drop_p)),
             "neighbours are independent");
  return AMPC_OK;
}

/* Checks values, gradients and the limits p = 0 and p = 1 in one type. */
static ampc_status check_type(Drops *d, Arena *a, TestRun *run, DType type)
{
  Tensor y, dx, all, none;
  ampc_status status = run_drops(d, a, 1, 7, d->y, &y);
  if (!status) status = built_read(&d->b, a, d->dx, &dx);
  if (!status) status = built_read(&d->b, a, d->all, &all);
  if (!status) status = built_read(&d->b, a, d->none, &none);
  if (status) return status;
  check_drop(run, type, kept_scaled(&d->x, &y, drop_p), "kept elements are x / (1 - p)");
  check_drop(run, type, near_share(share_kept(&y), 1 - drop_p), "the fraction kept is 1 - p");
  check_drop(run, type, share_kept(&all) == 0, "p = 1 keeps nothing");
  check_drop(run, type, tensor_same_bits(&none, &d->x), "p = 0 changes nothing");
  test_report(run, OP_drop, PROOF_backward, type, tensor_same_bits(&y, &dx) ? 0 : INFINITY,
              "the gradient passes where the value passed");
  return check_keys(d, a, run, type, &y);
}

/* Checks everything with fusion, then that -O0 draws the same numbers. */
static ampc_status check_drops(Arena *a, TestRun *run)
{
  static const DType types[] = {AMPC_FLOATS(AMPC_CONSTANT)};
  ampc_status status = AMPC_OK;
  for (size_t i = 0; !status && i < sizeof types / sizeof *types; i++) {
    Drops fused, plain;
    Tensor y[2];
    status = open_drops(&fused, a, run, types[i], 2);
    if (!status) status = check_type(&fused, a, run, types[i]);
    if (!status) status = run_drops(&fused, a, 3, 9, fused.y, &y[0]);
    built_close(&fused.b);
    if (status) break;
    status = open_drops(&plain, a, run, types[i], 0);
    if (!status) status = run_drops(&plain, a, 3, 9, plain.y, &y[1]);
    built_close(&plain.b);
    if (!status)
      check_drop(run, types[i], tensor_same_bits(&y[0], &y[1]), "-O0 draws the same numbers");
  }
  return status;
}

/* Checks that the gradient of detach(x) * x is dy * detach(x), not twice that. */
static ampc_status check_detach(Arena *a, TestRun *run)
{
  Built b;
  uint64_t random = 6;
  built_open(&b, run, false, 2);
  Tensor x = tensor_like(a, AMPC_F32, 1, (int64_t[]){33}), dx;
  tensor_fill(&x, 'v', &random);
  Cursor at = built_cursor(false);
  Value in = built_source(&b, &x), dy = built_source(&b, &x);
  Value y = ir_binary(b.c, &at, OP_mul, ir_unary(b.c, &at, OP_detach, in), in);
  uint32_t output = built_output(&b, *gradient_of(b.c, &at, y, dy, &in, 1));
  ampc_status status = built_load(&b);
  if (!status) status = built_write(&b, 0, &x);
  if (!status) status = built_write(&b, 1, &x);
  if (!status) status = built_step(&b);
  if (!status) status = built_read(&b, a, output, &dx);
  bool good = !status;
  for (int64_t i = 0; good && i < x.n; i++) {
    good = dx.at[i] == number_round(AMPC_F32, x.at[i] * x.at[i]);
  }
  if (!status) test_check(run, OP_detach, AMPC_F32, good, "no gradient passes");
  built_close(&b);
  return status;
}

/* ---- uniform and normal numbers ---- */

static Value append_numbers(Built *b, OpKind op, int64_t columns, uint32_t stream)
{
  Cursor at = built_cursor(false);
  const int64_t dim[] = {7, columns};
  Value v = ir_append(b->c, &at, op, NULL, 0, ir_shape_attrs(b->c, dim, 2));
  ir_node(b->c->graph, v)->stream = stream;
  b->c->graph->n_streams = stream + 1;
  return v;
}

/* Draws uniform and normal numbers in one graph, each from a stream of their own. */
static ampc_status draw_numbers(Arena *a, TestRun *run, int64_t columns, int optimize,
                                Tensor *uniform, Tensor *normal)
{
  Built b;
  int64_t seed = 5, body = 11;
  built_open(&b, run, false, optimize);
  uint32_t outputs[] = {built_output(&b, append_numbers(&b, OP_uniform, columns, 1)),
                        built_output(&b, append_numbers(&b, OP_normal, columns, 2))};
  ampc_status status = built_load(&b);
  if (!status)
    status = ampc_write(b.rt, (ampc_ref){AMPC_STATE, offsetof(ampc_state, seed)}, &seed, 8);
  if (!status)
    status = ampc_write(b.rt, (ampc_ref){AMPC_STATE, offsetof(ampc_state, body)}, &body, 8);
  if (!status) status = built_step(&b);
  if (!status) status = built_read(&b, a, outputs[0], uniform);
  if (!status) status = built_read(&b, a, outputs[1], normal);
  built_close(&b);
  return status;
}

/* Checks the numbers. A normal number is the product of a root and a cosine, each within a few
 * ulps. The argument of the cosine is rounded, which moves it by up to 3e-7. */
static ampc_status check_numbers(Arena *a, TestRun *run, int64_t columns)
{
  Tensor uniform, normal, again[2];
  ampc_status status = draw_numbers(a, run, columns, 2, &uniform, &normal);
  if (!status) status = draw_numbers(a, run, columns, 0, &again[0], &again[1]);
  if (status) return status;
  bool same = true, near = true;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < uniform.n; i++) {
    double u = 1 - uniform_number(2 * i, 11, 2, 5), v = uniform_number(2 * i + 1, 11, 2, 5);
    double length = sqrt(-2 * log(u));
    same = same && uniform.at[i] == uniform_number(i, 11, 1, 5);
    near = near && fabs(normal.at[i] - length * cos(2 * M_PI * v)) <= 1e-6 * (length + 1e-3);
    sum += normal.at[i];
    squares += normal.at[i] * normal.at[i];
  }
  double n = (double)normal.n;
  test_check(run, OP_uniform, AMPC_F32, same, "numbers of Philox4x32-10");
  test_check(run, OP_uniform, AMPC_F32, tensor_same_bits(&uniform, &again[0]), "the same at -O0");
  test_check(run, OP_normal, AMPC_F32, near, "Box-Muller transform of Philox4x32-10 numbers");
  test_check(run, OP_normal, AMPC_F32, tensor_same_bits(&normal, &again[1]), "the same at -O0");
  test_check(run, OP_normal, AMPC_F32, fabs(sum / n) < 5 / sqrt(n), "the mean is 0");
  test_check(run, OP_normal, AMPC_F32, fabs(squares / n - 1) < 5 * sqrt(2 / n),
             "the variance is 1");
  return AMPC_OK;
}

ampc_status suite_random(Arena *a, TestRun *run)
{
  ampc_status status = AMPC_OK;
  if (test_wanted(run, OP_drop)) status = check_drops(a, run);
  bool numbers = test_wanted(run, OP_uniform) || test_wanted(run, OP_normal);
  /* odd rows are drawn number by number, the others in vectors */
  if (!status && numbers) status = check_numbers(a, run, 14285);
  if (!status && numbers) status = check_numbers(a, run, 14288);
  if (!status && test_wanted(run, OP_detach)) status = check_detach(a, run);
  return status;
}
