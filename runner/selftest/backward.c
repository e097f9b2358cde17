/* Suite: every gradient rule and every tangent. The gradients in doubles are compared with central
 * differences of the forward graph. The gradients in each type are compared with the gradients in
 * doubles at the same inputs.
 *
 * Note [bounds of gradients]
 * Central differences of fourth order with steps of 2^-10 have an error of about 1e-10 times the
 * size of the function and its derivatives at the points used. The bound is 1e-7 of the largest
 * gradient.
 * In a type, a few nodes compute a gradient: forward nodes that backward reads, backward nodes,
 * sums over broadcast axes. A chain of ops needs twice as many. Attention by cuDNN rounds two more
 * values before it multiplies them: the weights, and the gradients of the scores. Each node has an
 * error of some ulps of f32. It then rounds its result to the type, by half an ulp. Intermediate
 * values are assumed to be at most GROWTH times the largest gradient of that input.
 *
 * Note [tangents of cases]
 * Each f32 case has a twin that tests tangents (compiler/rules/tangent.c). In the twin all inputs
 * move along cos(1), cos(2), ... In doubles, <dy, tangent> must equal the sum of <gradient,
 * direction>. Then the graph of the tangent is itself differentiated, and its gradients are
 * compared with its central differences. This tests the gradient rules of the ops that other
 * gradient rules emit. */
#include "graph.h"
#include "ops/table.h"
#include <math.h>
#include <string.h>

enum { NODES = 4, TILE_NODES = 2, CHAIN_NODES = 8, GROWTH = 2, F32_ULPS = 24 };
static const double step = 0x1p-10, differences_bound = 1e-7, tangent_bound = 1e-12;

typedef struct GradientCase {
  Case base;
  const char *graph; /* expression of a chain; NULL: the op alone */
  bool tangent;      /* this is the twin of the case before it */
  bool left_out;     /* a twin with an op that has no tangent */
  Tensor dy;
  uint32_t dy_source, dx_output[TEST_MAX_IN];
  /* Gradients of an input. dx: in the case's type; wide: in doubles; difference: by differences. */
  Tensor dx[TEST_MAX_IN], wide[TEST_MAX_IN], difference[TEST_MAX_IN];
  Tensor y; /* value of the graph, in doubles */
} GradientCase;
typedef VEC(GradientCase) GradientList;

/* ---- making the cases ---- */

static bool wanted(const Case *t, uint32_t i)
{
  return t->in[i].present && dtype_is_float(t->in[i].dtype);
}

/* Appends a case with random numbers in dy, in the shape of the result. A chain's row sets dy. */
static void make_gradient(Arena *a, const Case *base, const char *graph, GradientList *out)
{
  GradientCase g = {.base = *base, .graph = graph};
  uint64_t random = 77;
  if (graph) {
    g.dy = base->in[--g.base.n_in]; /* the row's last input */
  } else {
    case_expect(a, &g.base); /* computes the shape and type of the result, which dy shares */
    g.dy = tensor_like(a, g.base.want.dtype, g.base.want.rank, g.base.want.dim);
    tensor_fill(&g.dy, 'd', &random);
  }
  for (uint32_t i = 0; i < g.base.n_in; i++) {
    const Tensor *x = &base->in[i];
    if (wanted(base, i)) g.difference[i] = tensor_like(a, x->dtype, x->rank, x->dim);
  }
  vec_push(a, out, g);
}

static void make_row(Arena *a, const OpTest *test, const char *row, const char *graph,
                     GradientList *out)
{
  CaseList bases = {0};
  case_row_make(a, test, row, &bases);
  for (uint32_t i = 0; i < bases.n; i++) make_gradient(a, &bases.at[i], graph, out);
}

static void make_all(Arena *a, const TestRun *run, GradientList *out)
{
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    const OpTest *test = op_test_find((OpKind)op);
    if (!test_wanted(run, (OpKind)op)) continue;
    for (const char *const *row = test->gradients; row && *row; row++)
      make_row(a, test, *row, NULL, out);
    for (const ChainRow *chain = test->chains; chain && chain->graph; chain++)
      make_row(a, test, chain->row, chain->graph, out);
  }
}

static Tensor widened(Arena *a, const Tensor *x)
{
  if (!x->present) return *x;
  Tensor t = tensor_like(a, dtype_is_float(x->dtype) ? AMPC_F32 : x->dtype, x->rank, x->dim);
  memcpy(t.at, x->at, (size_t)x->n * sizeof *t.at);
  return t;
}

/* Returns a copy of the case with f32 in place of the 16-bit types, for a graph in doubles. The
 * copy has its own inputs, because the differences move them. */
static GradientCase gradient_widened(Arena *a, const GradientCase *g)
{
  GradientCase w = *g;
  for (uint32_t i = 0; i < g->base.n_in; i++) w.base.in[i] = widened(a, &g->base.in[i]);
  w.dy = widened(a, &g->dy);
  uint32_t dtype;
  if (attr_find(op_row(g->base.test->op), "dtype", &dtype)) w.base.attr[dtype].i = AMPC_F32;
  return w;
}

/* ---- running them ---- */

/* Appends the op alone, or the chain if the case has one. Returns its result. */
static Value append_forward(Built *b, const GradientCase *g, const Cursor *at, const Value *in)
{
  const Case *t = &g->base;
  if (g->graph) return built_expression(b->c, at, g->graph, in, t->n_in);
  return ir_append_values(b->c, at, t->test->op, in, t->n_in, t->attr);
}

/* Returns element k of the direction along which input i moves. */
static double direction(uint32_t i, int64_t k)
{
  return cos((double)(1 + k + 10 * i));
}

static Value append_direction(Built *b, const Cursor *at, const Tensor *x, uint32_t i)
{
  Value k = ir_append(b->c, at, OP_indices, NULL, 0, ir_shape_attrs(b->c, x->dim, x->rank));
  Value angle = ir_cast(b->c, at, k, AMPC_F32);
  angle = ir_binary(b->c, at, OP_add, angle, ir_number(b->c, at, 1 + 10 * i));
  return ir_unary(b->c, at, OP_cos, angle);
}

static bool has_tangents(const Graph *g, uint32_t first)
{
  for (uint32_t id = first; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (op_of(n)->gradient != grad_none && !op_has_tangent(n->op)) return false;
  }
  return true;
}

/* Returns dx; zeros in the shape of x if the value does not depend on x. */
static Value or_zeros(Built *b, const Cursor *at, Value dx, Value x)
{
  return dx.id ? dx : ir_binary(b->c, at, OP_full_like, x, ir_number(b->c, at, 0));
}

/* Appends the forward graph and its tangent. Returns the tangent of the case's result; if the twin
 * is left out, the result itself. */
static Value append_tangent(Built *b, GradientCase *g, const Cursor *at, const Value *in)
{
  Value x[TEST_MAX_IN], along[TEST_MAX_IN];
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->base.n_in; i++) {
    if (!wanted(&g->base, i)) continue;
    along[n] = append_direction(b, at, &g->base.in[i], i);
    x[n++] = in[i];
  }
  Tangents t = {.c = b->c, .first = b->c->graph->nodes.n, .region = at->region};
  Value y = append_forward(b, g, at, in);
  g->left_out = !has_tangents(b->c->graph, t.first) || !tangents_find(&t, x, along, n);
  return g->left_out ? y : or_zeros(b, at, t.of[y.id], y);
}

/* Appends the forward graph and its gradients, as outputs. The pass itself makes the gradients. */
static void append_gradient(Built *b, GradientCase *g)
{
  Case *t = &g->base;
  Value in[TEST_MAX_IN] = {{0}}, xs[TEST_MAX_IN];
  uint32_t n = 0;
  Cursor at = built_cursor(t->tf32);
  t->first_source = b->c->graph->sources.n;
  for (uint32_t i = 0; i < t->n_in; i++) {
    if (t->in[i].present) in[i] = built_source(b, &t->in[i]);
    if (wanted(t, i)) xs[n++] = in[i];
  }
  g->dy_source = b->c->graph->sources.n;
  Value dy = built_source(b, &g->dy);
  Value y = g->tangent ? append_tangent(b, g, &at, in) : append_forward(b, g, &at, in);
  const Value *dx = gradient_of(b->c, &at, y, dy, xs, n);
  t->output = built_output(b, y);
  n = 0;
  for (uint32_t i = 0; i < t->n_in; i++) {
    if (!wanted(t, i)) continue;
    g->dx_output[i] = built_output(b, or_zeros(b, &at, dx[n++], in[i]));
  }
}

static ampc_status load_all(Built *b, GradientList *list)
{
  for (uint32_t i = 0; i < list->n; i++) append_gradient(b, &list->at[i]);
  ampc_status status = built_load(b);
  for (uint32_t i = 0; !status && i < list->n; i++) {
    GradientCase *g = &list->at[i];
    uint32_t source = g->base.first_source;
    for (uint32_t k = 0; !status && k < g->base.n_in; k++) {
      if (g->base.in[k].present) status = built_write(b, source++, &g->base.in[k]);
    }
    if (!status) status = built_write(b, g->dy_source, &g->dy);
  }
  return status ? status : built_step(b);
}

static ampc_status read_all(Built *b, Arena *a, GradientList *list)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; !status && i < list->n; i++) {
    GradientCase *g = &list->at[i];
    for (uint32_t k = 0; !status && k < g->base.n_in; k++) {
      Tensor *to = b->real64 ? &g->wide[k] : &g->dx[k];
      if (wanted(&g->base, k)) status = built_read(b, a, g->dx_output[k], to);
    }
    if (!status && b->real64) status = built_read(b, a, g->base.output, &g->y);
  }
  return status;
}

/* ---- central differences ---- */

/* Returns the address of element k of all differentiable inputs, concatenated; NULL after the last
 * element. Sets the number of its input and its index there. */
static double *input_element(const GradientCase *g, int64_t k, uint32_t *input, int64_t *index)
{
  for (uint32_t i = 0; i < g->base.n_in; i++) {
    const Tensor *x = &g->base.in[i];
    if (!wanted(&g->base, i)) continue;
    if (k < x->n) {
      *input = i;
      *index = k;
      return &x->at[k];
    }
    k -= x->n;
  }
  return NULL;
}

static uint32_t source_of(const GradientCase *g, uint32_t input)
{
  uint32_t source = g->base.first_source;
  for (uint32_t i = 0; i < input; i++) source += g->base.in[i].present;
  return source;
}

/* Moves element k of every case at once, so that one run yields a difference for each case. */
static ampc_status move_elements(Built *b, GradientList *list, int64_t k, double by,
                                 uint32_t *moved)
{
  ampc_status status = AMPC_OK;
  *moved = 0;
  for (uint32_t i = 0; !status && i < list->n; i++) {
    uint32_t input;
    int64_t index;
    double *x = input_element(&list->at[i], k, &input, &index);
    if (!x || list->at[i].base.type != AMPC_F32) continue;
    *x += by;
    ++*moved;
    status = built_write(b, source_of(&list->at[i], input), &list->at[i].base.in[input]);
  }
  return status;
}

/* Adds weight * <dy, y> to the difference of element k of every case. This element was moved. */
static ampc_status collect(Built *b, Arena *a, GradientList *list, int64_t k, double weight)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; !status && i < list->n; i++) {
    GradientCase *g = &list->at[i];
    uint32_t input;
    int64_t index;
    if (!input_element(g, k, &input, &index) || g->base.type != AMPC_F32) continue;
    Tensor y;
    status = built_read(b, a, g->base.output, &y);
    for (int64_t j = 0; !status && j < y.n; j++) {
      g->difference[input].at[index] += weight * g->dy.at[j] * y.at[j];
    }
  }
  return status;
}

/* Sets the difference of each element to (f(-2h) - 8 f(-h) + 8 f(h) - f(2h)) / 12 h. */
static ampc_status central_differences(Built *b, Arena *a, GradientList *list)
{
  static const double place[] = {-2, -1, 1, 2}, factor[] = {1, -8, 8, -1};
  ampc_status status = AMPC_OK;
  uint32_t moved = 1;
  for (int64_t k = 0; !status && moved; k++) {
    for (int p = 0; !status && p < 4; p++) {
      status = move_elements(b, list, k, place[p] * step, &moved);
      if (!moved) break;
      if (!status) status = built_step(b);
      if (!status) status = collect(b, a, list, k, factor[p] / (12 * step));
      if (!status) status = move_elements(b, list, k, -place[p] * step, &moved);
    }
  }
  return status;
}

/* ---- comparing ---- */

static double largest(const Tensor *t)
{
  double m = 0;
  for (int64_t i = 0; i < t->n; i++) m = fmax(m, fabs(t->at[i]));
  return m;
}

/* Returns the largest difference in units of `bound`; infinity for a NaN. Sets the index of that
 * element. Returns -1 if the shapes differ. */
static double worst_error(const Tensor *got, const Tensor *want, double bound, int64_t *at)
{
  double worst = 0;
  *at = 0;
  if (got->n != want->n || got->rank != want->rank) return -1;
  for (int64_t i = 0; i < got->n; i++) {
    double error = fabs(got->at[i] - want->at[i]) / bound;
    if (got->at[i] == want->at[i]) error = 0;
    if (error <= worst) continue;
    worst = isnan(error) ? INFINITY : error;
    *at = i;
  }
  return worst;
}

/* Returns the bound of a gradient in the case's type: Note [bounds of gradients]. */
static double type_bound(const TestRun *run, const GradientCase *g, uint32_t input)
{
  const Tensor *want = &g->wide[input];
  DType d = g->dx[input].dtype;
  double size = fmax(largest(want), 0x1p-10) * GROWTH;
  double terms = fmax((double)g->dy.n, (double)g->base.in[input].n);
  double f32 = (F32_ULPS + terms) * number_ulp(AMPC_F32, size);
  bool narrow = jit_runs_cuda(run->target) && op_row(g->base.test->op)->traits & T_tiles;
  int nodes = g->graph ? CHAIN_NODES : NODES + (narrow ? TILE_NODES : 0);
  return f32 + (d == AMPC_F32 ? 0 : nodes * 0.5 * number_ulp(d, size));
}

static void report(Arena *a, TestRun *run, const GradientCase *g, uint32_t input, bool differences)
{
  const Tensor *got = differences ? &g->wide[input] : &g->dx[input];
  const Tensor *want = differences ? &g->difference[input] : &g->wide[input];
  double bound =
      differences ? differences_bound * fmax(largest(want), 0x1p-7) : type_bound(run, g, input);
  int64_t at;
  double error = worst_error(got, want, bound, &at);
  if (!differences && got->dtype != g->base.in[input].dtype)
    error = -1; /* a gradient has the type of its value */
  const char *text =
      arena_printf(a, "%s %s: gradient of input %u%s%s: element %lld is %.9g, expected %.9g",
                   ampc_dtype_name(g->base.type), g->base.words, input,
                   g->tangent ? " of the tangent" : "", differences ? " (real64, differences)" : "",
                   (long long)at, error < 0 ? NAN : got->at[at], want->at[at]);
  test_report(run, g->base.test->op, PROOF_backward, g->base.type, error, text);
}

static double inner(const Tensor *x, const Tensor *y)
{
  double sum = 0;
  for (int64_t i = 0; i < x->n; i++) sum += x->at[i] * y->at[i];
  return sum;
}

/* Compares <dy, tangent> with the sum of <gradient, direction>: Note [tangents of cases]. */
static void report_tangent(Arena *a, TestRun *run, const GradientCase *twin, const GradientCase *g)
{
  double got = inner(&twin->dy, &twin->y), want = 0, size = 0x1p-7;
  for (uint32_t i = 0; i < g->base.n_in; i++) {
    for (int64_t k = 0; wanted(&g->base, i) && k < g->wide[i].n; k++) {
      want += g->wide[i].at[k] * direction(i, k);
      size += fabs(g->wide[i].at[k]);
    }
  }
  double error = fabs(got - want) / (size * tangent_bound);
  const char *text = arena_printf(a, "%s: <dy, tangent> is %.9g, <gradient, direction> is %.9g",
                                  g->base.words, got, want);
  test_report(run, g->base.test->op, PROOF_backward, AMPC_F32, isnan(error) ? INFINITY : error,
              text);
}

static void report_all(Arena *a, TestRun *run, const GradientList *list)
{
  for (uint32_t i = 0; i < list->n; i++) {
    const GradientCase *g = &list->at[i];
    for (uint32_t k = 0; k < g->base.n_in; k++) {
      if (!wanted(&g->base, k)) continue;
      report(a, run, g, k, false);
      if (g->base.type == AMPC_F32 && !run->brief) report(a, run, g, k, true);
    }
  }
}

/* ---- the suite ---- */

/* Computes the gradients of all cases in their types, at the optimization level `optimize`. */
static ampc_status run_typed(Arena *a, TestRun *run, int optimize, GradientList *list)
{
  Built b;
  built_open(&b, run, false, optimize);
  ampc_status status = load_all(&b, list);
  if (!status) status = read_all(&b, a, list);
  built_close(&b);
  return status;
}

/* Returns a copy of the case as its twin: Note [tangents of cases]. */
static GradientCase twin_of(Arena *a, const GradientCase *g)
{
  GradientCase twin = gradient_widened(a, g);
  twin.tangent = true;
  for (uint32_t i = 0; i < g->base.n_in; i++) {
    const Tensor *x = &g->difference[i];
    if (wanted(&g->base, i)) twin.difference[i] = tensor_like(a, x->dtype, x->rank, x->dim);
  }
  return twin;
}

/* Reports the tangent of each twin. In the list, a twin follows its case. */
static void report_twins(Arena *a, TestRun *run, const GradientList *wide)
{
  for (uint32_t i = 0; i < wide->n; i++) {
    const GradientCase *g = &wide->at[i];
    if (!g->tangent || g->left_out) continue;
    report_tangent(a, run, g, g - 1);
    for (uint32_t k = 0; k < g->base.n_in; k++)
      if (wanted(&g->base, k)) report(a, run, g, k, true);
  }
}

static ampc_status run_doubles(Arena *a, TestRun *run, GradientList *list)
{
  Built b;
  GradientList wide = {0};
  for (uint32_t i = 0; i < list->n; i++) {
    GradientCase g = gradient_widened(a, &list->at[i]);
    vec_push(a, &wide, g);
    if (g.base.type == AMPC_F32 && !run->brief) vec_push(a, &wide, twin_of(a, &list->at[i]));
  }
  built_open(&b, run, true, 2);
  ampc_status status = load_all(&b, &wide);
  if (!status) status = read_all(&b, a, &wide);
  for (uint32_t i = 0, k = 0; !status && i < wide.n; i++) {
    if (wide.at[i].tangent) continue;
    memcpy(list->at[k++].wide, wide.at[i].wide, sizeof wide.at[i].wide);
  }
  if (!status && !run->brief) status = central_differences(&b, a, &wide);
  if (!status) report_twins(a, run, &wide);
  built_close(&b);
  return status;
}

static ampc_status compare_unfused(Arena *a, TestRun *run, const GradientList *list)
{
  GradientList again = {0};
  for (uint32_t i = 0; i < list->n; i++) vec_push(a, &again, list->at[i]);
  ampc_status status = run_typed(a, run, 0, &again);
  for (uint32_t i = 0; !status && i < list->n; i++) {
    const GradientCase *g = &list->at[i];
    bool same = true;
    for (uint32_t k = 0; k < g->base.n_in; k++) {
      if (wanted(&g->base, k)) same = same && tensor_same_bits(&g->dx[k], &again.at[i].dx[k]);
    }
    const char *text = arena_printf(a, "%s: gradients of -O0 and -O2 differ", g->base.words);
    if (!same) test_check(run, g->base.test->op, g->base.type, false, text);
  }
  return status;
}

ampc_status suite_backward(Arena *a, TestRun *run)
{
  GradientList list = {0};
  make_all(a, run, &list);
  if (list.n == 0) return AMPC_OK;
  ampc_status status = run_typed(a, run, 2, &list);
  if (!status) status = run_doubles(a, run, &list);
  if (!status) report_all(a, run, &list);
  if (!status && !run->edit && !run->brief) status = compare_unfused(a, run, &list);
  return status;
}
