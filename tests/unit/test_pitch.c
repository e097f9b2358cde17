/* Rows of products begin at multiples of 16 bytes. No reader may ignore the gaps between them. */
#include "check.h"
#include "compiler/command/command.h"
#include "compiler/driver.h"

static const char job[] =
    "precision bf16\n"
    "data points(n: int) { return synthetic(n, shape=[37]), synthetic(n, shape=[], dtype=i64, "
    "low=0, "
    "high=1001) }\n"
    "model net = Sequential(Linear(37, 101), Tanh(), Linear(101, 1001, bias=false))\n"
    "optimizer opt = Adam(net, lr=1e-3)\n"
    "train x, y in points(64) with batch=16 { minimize cross_entropy(net(x), y) with opt }\n"
    "infer f(x: f32[4, 37]) { return net(x) }\n";

static Compile *compile(const char *target, int optimize)
{
  Options options = {.input = "a.amp", .target = target, .optimize = optimize, .error_limit = 20};
  Compile *c = compile_create(&options);
  MUST(compile_text(c, "a.amp", job, strlen(job)));
  return c;
}

static bool is_result(const Graph *g, uint32_t id)
{
  for (uint32_t i = 1; i < g->nodes.n; i++)
    if (op_has(&g->nodes.at[i], T_kept) && value_root(g, g->nodes.at[i].in[0]).id == id)
      return true;
  return false;
}

/* Checks that all matrices of 16-bit elements in WORK have gaps if `gaps`, except results of the
 * block. Returns how many have gaps. */
static uint32_t check_values(const Compile *c, bool gaps)
{
  const Graph *g = c->graph;
  uint32_t n_gaps = 0;
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    const Node *n = &g->nodes.at[i];
    int64_t columns = n->rank ? n->dim[n->rank - 1] : 0;
    if (n->rank < 2 || n->place.space != AMPC_WORK || !ampc_is_narrow(n->dtype)) continue;
    bool result = is_result(g, value_root(g, (Value){i}).id);
    int64_t want = gaps && columns % 8 && !result ? ampc_round_up(columns, 8) : 0;
    CHECK_MSG(n->pitch == want, "%%%u %s: pitch %lld, expected %lld", i, op_of(n)->name,
              (long long)n->pitch, (long long)want);
    CHECK(ir_room(n) == n->dim[0] * (want ? want : columns));
    n_gaps += want > 0;
  }
  return n_gaps;
}

/* A product has the distances of rows of its operands, whatever their shapes. */
static void check_products(Compile *c, uint32_t *n_aligned)
{
  const Graph *g = c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!group_by_library(g, i)) continue;
    const ampc_gemm *d = &command_of(g, i)->gemm;
    const Value *of = command_of(g, i)->operands;
    CHECK(d->lda == ir_row(ir_node(g, of[0])) && d->ldb == ir_row(ir_node(g, of[1])));
    CHECK(d->ldc == ir_row(ir_node(g, of[3])));
    *n_aligned += d->lda % 8 == 0 && d->lda != (d->trans_a ? d->m : d->k);
  }
}

/* Products with a weight of 1001 rows compute 1008 rows, columns or terms, and the weight has room
 * for them: no parameter begins before its end. */
static void check_room(const Compile *c, bool gaps)
{
  const Graph *g = c->graph;
  uint32_t more[3] = {0};
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!group_by_library(g, i)) continue;
    ampc_gemm d = command_of(g, i)->gemm;
    const int64_t size[3] = {d.m, d.n, d.k}, extra[3] = {d.more_m, d.more_n, d.more_k};
    for (int k = 0; k < 3; k++) CHECK(!extra[k] || (size[k] == 1001 && extra[k] == 7));
    CHECK(!d.has_bias || !d.more_n);
    for (int k = 0; k < 3; k++) more[k] += extra[k] > 0;
  }
  CHECK_MSG((more[0] && more[1] && more[2]) == gaps, "%u, %u, %u", more[0], more[1], more[2]);
  for (uint32_t i = 0; i < g->params.n; i++)
    for (uint32_t k = 0; k < g->params.n; k++) {
      const Parameter *p = &g->params.at[i], *next = &g->params.at[k];
      CHECK(next->offset <= p->offset || p->offset + param_room(c, p) <= next->offset);
      CHECK(param_room(c, p) >= (gaps && p->dim[0] == 1001 && p->rank == 2 ? 1008 * 101 : 1));
    }
}

static void check_job(const char *target, int optimize, bool gaps)
{
  Compile *c = compile(target, optimize);
  uint32_t aligned = 0, values = check_values(c, gaps);
  check_products(c, &aligned);
  check_room(c, gaps);
  CHECK_MSG(gaps ? values > 5 && aligned > 3 : !values && !aligned,
            "%s -O%d: %u values, %u products", target, optimize, values, aligned);
  compile_destroy(c);
}

/* The order of a row's sum follows from its length, not from its place in memory. */
static void test_odd_rows(void)
{
  const struct {
    int64_t length;
    uint32_t vector;
  } rows[] = {{511, 1}, {523, 8}, {50257, 8}, {50260, 4}, {50264, 8}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    RowShape r = {.outer = 64, .length = rows[i].length, .inner = 1, .widest = 8};
    RowWalk w = row_walk(&r);
    CHECK_MSG(w.vector == rows[i].vector, "%lld: %u", (long long)r.length, w.vector);
    CHECK(w.threads > rows[i].length % w.vector); /* a thread for each of the last elements */
  }
}

int main(void)
{
  check_job("cpu", 0, false);
  check_job("cpu", 2, false);
  check_job("sm_80", 0, true);
  check_job("sm_80", 2, true);
  test_odd_rows();
  return check_done();
}
