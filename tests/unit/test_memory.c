/* The verifier of pass memory accepts good plans and reports each overlap that the test makes. */
#include "check.h"
#include "compiler/driver.h"
#include "compiler/graph/ir.h"
#include "compiler/passes/memory/use.h"

static const char job[] =
    "precision f16\n"
    "data points(n: int) { return synthetic(n, shape=[3, 9, 9]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=3) }\n"
    "model net = Sequential(Conv2d(3, 8, 3, padding=1), BatchNorm2d(8), ReLU(), Flatten(), "
    "Linear(648, 16), LayerNorm(16), GELU(), Linear(16, 3))\n"
    "optimizer opt = Adam(net, lr=1e-3)\n"
    "train x, y in points(64) with batch=16 {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "}\n"
    "infer f(x: f32[4, 3, 9, 9]) { a = net(x); return a, softmax(a, 1) }\n";

static Compile *compile(const char *target, int optimize, bool poison)
{
  Options options = {.input = "a.amp",
                     .target = target,
                     .optimize = optimize,
                     .error_limit = 20,
                     .poison = poison};
  Compile *c = compile_create(&options);
  MUST(compile_text(c, "a.amp", job, strlen(job)));
  return c;
}

static bool says(const char *fault, const char *what)
{
  return fault && strstr(fault, what);
}

/* Moves each value to the place of each other one. The verifier must report values with overlapping
 * lifetimes. The first value of a step overlaps with most, because backward reads it. */
static void test_overlaps(const char *target, int optimize)
{
  Compile *c = compile(target, optimize, false);
  Graph *g = c->graph;
  CHECK_MSG(!memory_fault(c), "%s", memory_fault(c));
  uint32_t values = 0, pairs = 0, overwritten = 0;
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    if (g->nodes.at[i].place.space != AMPC_WORK || op_of(&g->nodes.at[i])->tmpl == TMPL_alias)
      continue;
    values++;
    for (uint32_t k = 1; k < i; k++) {
      Node *a = &g->nodes.at[i];
      const Node *b = &g->nodes.at[k];
      if (b->place.space != AMPC_WORK || b->block != a->block) continue;
      int64_t at = a->place.offset;
      a->place.offset = b->place.offset;
      const char *fault = memory_fault(c);
      pairs += fault != NULL;
      overwritten += says(fault, "overwritten");
      a->place.offset = at;
    }
  }
  CHECK(!memory_fault(c));
  CHECK_MSG(pairs > values && overwritten > values, "%u values, %u overlaps found, %u overwritten",
            values, pairs, overwritten);
  compile_destroy(c);
}

static void test_other_faults(void)
{
  Compile *c = compile("cpu", 2, false);
  Graph *g = c->graph;
  int64_t whole = g->blocks.at[0].work_bytes;
  g->blocks.at[0].work_bytes = whole / 2;
  CHECK(says(memory_fault(c), "outside"));
  g->blocks.at[0].work_bytes = whole;
  uint32_t scratch = 0;
  for (uint32_t i = 1; i < g->groups.n; i++) { /* a workspace over an operand of its command */
    Group *p = &g->groups.at[i];
    if (p->workspace.space != AMPC_WORK || !work_has_command(g, i, 0)) continue;
    const Node *result = ir_node(g, p->anchor);
    if (result->place.space != AMPC_WORK) continue;
    ampc_ref kept = p->workspace;
    p->workspace = result->place;
    CHECK(says(memory_fault(c), "operands"));
    p->workspace = kept;
    scratch++;
  }
  CHECK(scratch > 0 && !memory_fault(c));
  compile_destroy(c);
}

/* Returns whether the whole value is filled after the command that wrote it. */
static bool is_filled(Compile *c, const ampc_step *step, const Node *n)
{
  const char *writer = command_of(c->graph, n->group)->name;
  bool written = false, filled = false;
  for (uint32_t i = 1; i < step->n_commands; i++) {
    const ampc_command *k = &step->commands[i];
    bool here = k->kind == AMPC_FILL && k->as.fill.to.at.offset == n->place.offset &&
                k->as.fill.bytes == ir_room_bytes(c, n);
    filled |= written && here;
    written |= strcmp(k->label, writer) == 0;
  }
  CHECK(written);
  return filled;
}

static bool is_result(const Graph *g, uint32_t id)
{
  for (uint32_t i = 1; i < g->nodes.n; i++)
    if (g->nodes.at[i].op == OP_output && value_root(g, g->nodes.at[i].in[0]).id == id) return true;
  return false;
}

/* `--poison` fills all of WORK at the start, and each value after its last read, except results. */
static void test_poison(void)
{
  Compile *plain = compile("cpu", 2, false), *c = compile("cpu", 2, true);
  const ampc_step *a = &plain->program->blocks[1].variant[0],
                  *b = &c->program->blocks[1].variant[0];
  const Graph *g = c->graph;
  MUST(b->n_commands > a->n_commands && b->commands[0].kind == AMPC_FILL);
  CHECK(b->commands[0].as.fill.bytes == g->blocks.at[1].work_bytes);
  uint32_t same = 0, results = 0, others = 0;
  for (uint32_t i = 0; i < b->n_commands; i++) {
    const ampc_command *k = &b->commands[i];
    if (k->kind == AMPC_FILL) continue;
    CHECK(k->kind == a->commands[same].kind && strcmp(k->label, a->commands[same].label) == 0);
    same++;
  }
  CHECK(same == a->n_commands);
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    const Node *n = &g->nodes.at[i];
    if (n->block != 1 || n->place.space != AMPC_WORK || op_of(n)->tmpl == TMPL_alias) continue;
    bool result = is_result(g, i);
    CHECK(is_filled(c, b, n) == !result);
    *(result ? &results : &others) += 1;
  }
  CHECK(results == 2 && others > 2);
  compile_destroy(plain);
  compile_destroy(c);
}

int main(void)
{
  for (int optimize = 0; optimize <= 2; optimize += 2) {
    test_overlaps("cpu", optimize);
    test_overlaps("sm_80", optimize);
  }
  test_other_faults();
  test_poison();
  return check_done();
}
