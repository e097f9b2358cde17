/* Properties that hold for every emitted text, and cases that the golden files do not cover. */
#include "check.h"
#include "compiler/base/embedded.h"
#include "compiler/base/reserved_names.h"
#include "compiler/driver.h"
#include "compiler/kernel/kernels.h"
#include "compiler/program/program.h"
#include "compiler/graph/ir.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char job[] =
    "precision f16\n"
    "data points(n: int) { return synthetic(n, shape=[12]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=3) }\n"
    "model net = Sequential(Linear(12, 16), LayerNorm(16), GELU(), Linear(16, 3))\n"
    "optimizer opt = Adam(net, lr=1e-3)\n"
    "train x, y in points(64) with batch=16 {\n"
    "  minimize cross_entropy(net(x), y) with opt\n"
    "  metric size = abs(net[0].weight).sum()\n"
    "}\n";

static Compile *compile(const char *text, const char *target, int optimize)
{
  Options options = {.input = "a.amp", .target = target, .optimize = optimize, .error_limit = 20};
  Compile *c = compile_create(&options);
  MUST(compile_text(c, "a.amp", text, strlen(text)));
  return c;
}

static Text program_text(Compile *c)
{
  Text out;
  text_init(&out, c->arena);
  emit_program(c, &out, true);
  return out;
}

static void test_blame_and_bytes(const char *target)
{
  Compile *c = compile(job, target, 2), *d = compile(job, target, 2);
  Text a = program_text(c), b = program_text(d);
  CHECK(a.n == b.n && memcmp(a.at, b.at, a.n) == 0);
  uint32_t line = 1;
  for (const char *s = a.at; *s; s++) {
    if (*s != '\n') continue;
    const char *from = emit_blame(c, line);
    bool known = from && (strncmp(from, "compiler/kernel/", 16) == 0 ||
                          strncmp(from, "compiler/program/", 17) == 0 ||
                          strncmp(from, "templates/", 10) == 0);
    CHECK_MSG(known, "line %u is blamed on %s", line, from ? from : "nobody");
    line++;
  }
  CHECK(emit_blame(c, line + 1) == NULL && emit_blame(c, 0) == NULL);
  CHECK(!strstr(a.at, "/work") && !strstr(a.at, "/home") && !strstr(a.at, "/tmp"));
  compile_destroy(c);
  compile_destroy(d);
}

static bool contains(const char *text, const char *target, int optimize, const char *what)
{
  Compile *c = compile(text, target, optimize);
  Text out = program_text(c);
  bool found = strstr(out.at, what) != NULL;
  compile_destroy(c);
  return found;
}

static void test_wide_indices(void)
{
  static const char big[] = "infer f(x: f16[40000, 40000]) { return relu(x), x.sum(1) }\n";
  static const char small[] = "infer f(x: f16[400, 400]) { return relu(x), x.sum(1) }\n";
  CHECK(contains(big, "sm_80", 2, "EACH_VECTOR(8, long long, i, 1600000000)"));
  CHECK(contains(big, "sm_80", 2, "ROW_LOOP(256, long long, row, 40000)"));
  CHECK(contains(small, "sm_80", 2, "EACH_VECTOR(8, int, i, 160000)"));
}

static void test_names(void)
{
  static const char odd[] =
      "infer f(state: f32[3], t14: f32[3], row_sum: f32[3], linux: f32[3], x: f32[3]) {\n"
      "  register = state + t14 * row_sum  # the end \\\n"
      "  return relu(register) + linux + x, x\n"
      "}\n";
  CHECK(contains(odd, "cpu", 2, "__restrict__ state_"));
  CHECK(contains(odd, "cpu", 2, "__restrict__ t14_"));
  CHECK(contains(odd, "cpu", 2, "__restrict__ row_sum_"));
  CHECK(contains(odd, "cpu", 2, "__restrict__ linux_"));
  CHECK(contains(odd, "cpu", 2, "__restrict__ x,"));
  CHECK(!contains(odd, "cpu", 2, "\\\n// "));
}

/* Checks that helpers' names are reserved: a value with such a name would hide the helper. */
static void test_helpers_are_reserved(const char *file)
{
  static const char marker[] = "\n// --- ";
  const EmbeddedFile *f = embedded_find(file);
  MUST(f);
  uint32_t n = 0;
  for (const char *s = f->text; (s = strstr(s, marker)); n++) {
    s += sizeof marker - 1;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(s, "\n"), s);
    CHECK_MSG(reserved_name(name), "%s of %s", name, file);
  }
  CHECK(n > 0);
}

/* Checks which helpers the text of an op requires: words in comments and strings require none, and
 * "//" in a string begins no comment. */
static void test_words(void)
{
  static const char op[] = "op put(x: float[N]) -> (y: float[N]) {\n  host = %s\n}\n"
                           "infer f(x: f32[4]) { return put(x) }\n";
  static const struct {
    const char *host;
    bool required;
  } cases[] = {
      {"\"const char *s = \\\"//\\\"; int64_t k = *s; y[0] = x[k];\"", true},
      {"\"const char *s = \\\"int64_t\\\"; y[0] = x[*s]; // int64_t\"", false},
      {"\"y[0] = x[0]; /* int64_t */\"", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, op, cases[i].host);
    CHECK_MSG(contains(text, "cpu", 2, "<stdint.h>") == cases[i].required, "%s", cases[i].host);
  }
}

/* Checks products whose label equals the name of a place: of a parameter's, of a value's or of
 * STATE's. Two products share a description. */
static void test_product_names(void)
{
  static const char places[] =
      "module Inner() {\n  def forward(x) { linear = x @ x; return tanh(linear) }\n}\n"
      "module M() {\n  p = Linear(8, 8)\n  at = Linear(8, 8)\n  s = Linear(8, 8)\n"
      "  linear = Parameter([8])\n  inner = Inner()\n"
      "  def forward(x) { return inner(at(tanh(p(x + linear))) @ s(x)) }\n}\n"
      "model net = M()\ninfer f(x: f32[8, 8]) { return net(x) }\n";
  CHECK(contains(places, "cpu", 2, " p_linear = ") && contains(places, "cpu", 2, " at_linear = "));
  CHECK(!contains(places, "cpu", 2, "ampc_gemm p_linear"));
  CHECK(!contains(places, "cpu", 2, "ampc_gemm at_linear"));
  CHECK(contains(places, "cpu", 2, "AMPC_GEMM(rt, k_s_linear, k_p_linear, "));
}

static uint32_t commands(const char *text, int optimize)
{
  Compile *c = compile(text, "cpu", optimize);
  uint32_t n = c->program->blocks[0].variant[0].n_commands;
  compile_destroy(c);
  return n;
}

static void test_fusion(void)
{
  static const char chain[] = "infer f(x: f16[8, 5], y: f16[8, 1], z: f16[5, 8]) {\n"
                              "  return softmax((x * y).to(f32), 1).to(f16) + z.transpose(0, 1)"
                              ".reshape(8, 5)\n}\n";
  CHECK(commands(chain, 0) == 9);
  CHECK(commands(chain, 2) == 3); /* cast and transpose of z; softmax and the rest */
  CHECK(contains(chain, "cpu", 2, "mul_softmax_cast_add"));
  static const char shared[] = "infer f(x: f32[8]) { y = exp(x); return y.sum(), y + 1, y }\n";
  CHECK(commands(shared, 2) == 1);
  /* a + b depends on the sum, which depends on a: a single kernel would wait for itself */
  static const char cycle[] = "infer f(x: f32[8]) { a = exp(x); return a + (a * 2).sum() }\n";
  CHECK(commands(cycle, 2) == 2);
  /* softmax computes its input three times: a product is cheap enough for that, exp is not */
  static const char cheap[] = "infer f(x: f32[8, 9]) { return softmax(x * 3.0, 1) }\n";
  static const char dear[] = "infer f(x: f32[8, 9]) { return softmax(exp(x), 1) }\n";
  CHECK(commands(cheap, 2) == 1 && commands(dear, 2) == 2);
  /* a relu is fused into its product, unless the product has other readers */
  static const char ends[] = "infer f(x: f32[8, 9], w: f32[9, 4]) { return relu(x @ w) }\n";
  static const char both[] =
      "infer f(x: f32[8, 9], w: f32[9, 4]) { y = x @ w; return relu(y), y }\n";
  CHECK(commands(ends, 2) == 1 && commands(both, 2) == 2);
  /* row ops over the same rows share a kernel and their common reductions */
  static const char rows[] = "infer f(x: f32[8, 9]) { return softmax(x, 1), log_softmax(x, 1) }\n";
  CHECK(commands(rows, 2) == 1);
  CHECK(!contains(rows, "cpu", 2, "row_m_2"));
}

/* Returns the index of the first command of the step whose label contains `what`. */
static uint32_t command_at(const Compile *c, const char *what)
{
  const ampc_step *s = &c->program->blocks[0].variant[0];
  uint32_t i = 0;
  while (i < s->n_commands && !strstr(s->commands[i].label, what)) i++;
  CHECK_MSG(i < s->n_commands, "no command %s", what);
  return i;
}

static void test_fences(void)
{
  Compile *c = compile(job, "cpu", 2);
  CHECK(command_at(c, "grad_norm") > command_at(c, "cross_entropy_backward"));
  CHECK(command_at(c, "adam_update") == command_at(c, "grad_norm") + 1);
  CHECK(command_at(c, "_abs") > command_at(c, "adam_update")); /* reads the updated weights */
  CHECK(command_at(c, "scaler_update") + 1 == c->program->blocks[0].variant[0].n_commands);
  compile_destroy(c);
}

static uint32_t times(const char *text, const char *what)
{
  uint32_t n = 0;
  for (const char *s = text; (s = strstr(s, what)); s++) n++;
  return n;
}

static uint32_t kernels_of(const char *text, const char *target)
{
  Compile *c = compile(text, target, 2);
  Text out = program_text(c);
  uint32_t n = c->program->n_kernels;
  CHECK(times(out.at, "\n__global__ void ") == n);
  compile_destroy(c);
  return n;
}

/* Returns the columns of the longest line of code in the kernels, without a trailing comment. */
static size_t widest_statement(const char *text)
{
  size_t most = 0;
  const char *end = strstr(text, "/* ---- tables");
  for (const char *s = strstr(text, "/* ---- kernels"); s && s < end; s += strcspn(s, "\n") + 1) {
    const char *stop = s + strcspn(s, "\n");
    const char *comment = memmem(s, (size_t)(stop - s), "//", 2);
    size_t n = (size_t)((comment ? comment : stop) - s);
    if (n > most && strncmp(s, "__global__", 10) != 0 && strncmp(s, "    ", 4) == 0) most = n;
  }
  return most;
}

/* Checks lines. Long expressions are broken before an operator. Arithmetic that changes nothing is
 * left out. Terms with the user's numbers that only look so (x + 0.0, k + 10) stay. */
static void test_lines(const char *target)
{
  static const char wide[] =
      "infer f(a_long_name: f32[4, 9], another_long_name: f32[9], a_third_long_name: f32[9]) {\n"
      "  return gelu(a_long_name * another_long_name - a_third_long_name) * (a_long_name + 0.5) / "
      "(another_long_name * another_long_name + a_third_long_name * a_long_name + 0.25)\n}\n";
  Compile *c = compile(wide, target, 2);
  Text out = program_text(c);
  size_t n = widest_statement(out.at);
  CHECK_MSG(n > 60 && n <= 104, "%zu", n);
  compile_destroy(c);
  static const char idle[] =
      "model bn = BatchNorm2d(4)\noptimizer opt = SGD(bn, lr=0.1)\n"
      "data images(n: int) { return synthetic(n, [4, 8, 8]) }\n"
      "train x in images(64) with batch=16 { minimize bn(x).mean() with opt }\n";
  CHECK(!contains(idle, target, 2, " + 0 * ") && !contains(idle, target, 2, "R(1.0) * stat"));
  static const char line[] = "model net = Conv1d(8, 8, 3)\nprecision f16\n"
                             "infer f(x: f32[2, 8, 32]) { return net(x) }\n";
  CHECK(!contains(line, "sm_80", 2, "(1 * 30)") && contains(line, "sm_80", 2, "at % 30"));
  static const char zero[] = "infer f(x: f32[8], k: i64[8]) { return x + 0.0, x * 1.0, k + 10 }\n";
  CHECK(contains(zero, target, 2, " + R(0.0)") && contains(zero, target, 2, " + 10"));
}

/* Checks that kernels with one key are printed once. Names of layers, values and numbers don't
 * matter; a different size, type or order of operands does. */
static void test_shared_kernels(const char *target)
{
  static const char same[] = "model a = LayerNorm(48)\nmodel bb = LayerNorm(48)\n"
                             "infer f(x: f32[8, 48], w: f32[48, 48]) {\n"
                             "  h = silu(a(x @ w)) @ w; return silu(bb(h)) @ w\n}\n";
  static const char sizes[] =
      "model a = LayerNorm(48)\nmodel bb = LayerNorm(64)\n"
      "infer f(x: f32[8, 48], w: f32[48, 64], v: f32[48, 48]) {\n"
      "  h = silu(a(x @ v)) @ w; return silu(bb(h)) @ w.transpose(0, 1)\n}\n";
  static const char types[] = "infer f(x: f32[8, 9], y: f16[8, 9], w: f32[9, 9], v: f16[9, 9]) {\n"
                              "  return silu(x @ w) @ w, silu(y @ v) @ v\n}\n";
  static const char order[] = "infer f(x: f32[9, 9], w: f32[9, 9]) {\n"
                              "  a = x @ w; h = x - a * a; b = h @ w; return (b * b - h) @ w\n}\n";
  CHECK(kernels_of(same, target) == 1 && kernels_of(sizes, target) == 2);
  CHECK(kernels_of(types, target) == 2);
  CHECK(kernels_of(order, target) == 2);
  Compile *c = compile(same, target, 2);
  const ampc_step *s = &c->program->blocks[0].variant[0];
  CHECK(s->n_commands == 5 && strcmp(s->commands[1].label, s->commands[3].label) != 0);
  CHECK(s->commands[1].as.launch.kernel == s->commands[3].as.launch.kernel);
  compile_destroy(c);
  CHECK(contains(same, target, 2, "//   also for   bb\n"));
}

/* Checks that little work after a reduction over many blocks is done by the last block to
 * finish. */
static void test_last_block(const char *target)
{
  static const char little[] = "infer f(x: f32[40, 512]) { return logsumexp(sum(x, 1), 0) }\n";
  static const char much[] = "infer f(x: f32[40009, 512]) { return logsumexp(sum(x, 1), 0) }\n";
  /* the product depends on the sum, and the rest on the product */
  static const char behind[] = "infer f(x: f32[40, 512], w: f32[512, 40]) {\n"
                               "  s = sum(x, 1); return logsumexp(s + (x @ w).sum(0), 0) }\n";
  CHECK(contains(little, target, 2, "  LAST_BLOCK(state);\n  ALONE {"));
  CHECK(contains(little, target, 2, "1 part, then 1 by the last block"));
  CHECK(!contains(little, target, 0, "LAST_BLOCK("));
  CHECK(!contains(much, target, 2, "  LAST_BLOCK("));
  CHECK(commands(little, 2) == 1 && commands(much, 2) == 2);
  Compile *c = compile(behind, target, 2);
  CHECK(command_at(c, "sum_add") > command_at(c, "gemm"));
  compile_destroy(c);
}

static void test_random_kernels(const char *target)
{
  static const char drops[] =
      "model net = Sequential(Dropout(0.5), Linear(8, 8), Dropout(0.5), "
      "Linear(8, 8))\n"
      "data points(n: int) { return synthetic(n, shape=[8]) }\n"
      "optimizer opt = SGD(net, lr=0.1)\n"
      "train x in points(64) with batch=16 { minimize net(x).mean() with opt }\n";
  CHECK(contains(drops, target, 2, "state->body, stream,"));
  CHECK(contains(drops, target, 2, "state, AMPC_NUMBER(0));"));
  CHECK(contains(drops, target, 2, "state, AMPC_NUMBER(1));"));
  static const char alike[] =
      "model net = Sequential(Linear(8, 8), Dropout(0.5), Linear(8, 8), Dropout(0.5), "
      "Linear(8, 8))\n"
      "data points(n: int) { return synthetic(n, shape=[8]) }\n"
      "optimizer opt = SGD(net, lr=0.1)\n"
      "train x in points(64) with batch=16 { minimize net(x).mean() with opt }\n";
  CHECK(contains(alike, target, 2, "//   also for   3\n"));
}

/* Checks that like parts of a launch call one function; their differences are its arguments. */
static void test_alike_parts(const char *target)
{
  static const char stats[] =
      "model net = Sequential(BatchNorm2d(4), Conv2d(4, 4, 3), BatchNorm2d(4), BatchNorm2d(5))\n"
      "data images(n: int) { return synthetic(n, [4, 8, 8]) }\n"
      "optimizer opt = SGD(net, lr=0.1)\n"
      "train x in images(64) with batch=16 {\n"
      "  minimize net[2](net[1](net[0](x))).mean() with opt\n}\n";
  Compile *c = compile(stats, target, 2);
  Text out = program_text(c);
  CHECK(times(out.at, "DEVICE void opt_sgd_update_part(") == 1);
  CHECK(times(out.at, "opt_sgd_update_part(channel_mean, ") == 1);
  CHECK(times(out.at, "opt_sgd_update_part(channel_mean_2, ") == 1);
  CHECK(times(out.at, "opt_sgd_update_part(") == 3);
  compile_destroy(c);
}

/* Checks that the commands of one block of a net form a paragraph. */
static void test_paragraphs(void)
{
  static const char blocks[] =
      "module B() {\n  l1 = Linear(8, 8)\n  l2 = Linear(8, 8)\n"
      "  def forward(x) { return l2(tanh(l1(x))) }\n}\n"
      "model net = Sequential(B(), B())\ninfer f(x: f32[8, 8]) { return net(x) }\n";
  CHECK(contains(blocks, "cpu", 2, ");\n  // 0.l2 Linear"));
  CHECK(contains(blocks, "cpu", 2, ");\n\n  // 1.l1 Linear"));
}

static void test_constant_outputs(void)
{
  Compile *c = compile("infer f(x: f32[3]) { return 1.5, 2, x }\n", "cpu", 2);
  const ampc_program *p = c->program;
  MUST(p->n_outputs == 3);
  for (uint32_t i = 0; i < 3; i++) CHECK(p->outputs[i].place.space != AMPC_NONE);
  CHECK(p->outputs[1].dtype == AMPC_I64);
  compile_destroy(c);
}

/* Checks that no kernel of the step casts a weight: the optimizer writes the 16-bit copies. */
static void test_no_weight_casts(void)
{
  Compile *c = compile(job, "cpu", 0);
  const ampc_step *s = &c->program->blocks[0].variant[0];
  for (uint32_t i = 0; i < s->n_commands; i++) {
    const ampc_command *k = &s->commands[i];
    if (k->kind != AMPC_LAUNCH_KERNEL || !strstr(k->label, "cast")) continue;
    for (uint32_t a = 0; a < k->as.launch.n_args; a++)
      CHECK(k->as.launch.args[a].at.space != AMPC_MASTER);
  }
  compile_destroy(c);
}

/* ---- damaged graphs ---- */

static uint32_t node_named(const Compile *c, const char *name)
{
  uint32_t id = 1;
  while (!c->graph->nodes.at[id].name || strcmp(c->graph->nodes.at[id].name, name) != 0) id++;
  return id;
}

/* Makes a result that has no memory. */
static void lose_place(Compile *c)
{
  c->graph->nodes.at[node_named(c, "lost")].place.space = AMPC_NONE;
}

/* Moves `less` into the kernel of `most`, whose loop then reads `most` before it is complete. */
static void join_too_early(Compile *c)
{
  uint32_t most = node_named(c, "most"), less = node_named(c, "less");
  Node *n = &c->graph->nodes.at[less];
  Group *p = &c->graph->groups.at[c->graph->nodes.at[most].group];
  n->group = c->graph->nodes.at[most].group;
  p->nodes = arena_array(c->arena, Value, 2);
  p->nodes[0].id = most;
  p->nodes[1].id = less;
  p->n = 2;
}

/* Redirects the last output, so that no node reads `last`. */
static void leave_unread(Compile *c)
{
  c->graph->nodes.at[c->graph->nodes.n - 1].in[0].id = node_named(c, "lost");
}

/* Damages the graph in a child process, checks it and prints its kernels. It must abort with
 * `message`. */
static void test_bug(void (*damage)(Compile *), const char *message)
{
  static const char text[] = "infer f(x: f32[3, 2]) {\n"
                             "  lost = x.transpose(0, 1)\n"
                             "  most = x.amax(1)\n"
                             "  less = x - most.view(3, 1)\n"
                             "  last = sin(less)\n"
                             "  return lost, most, last\n"
                             "}\n";
  int ends[2], status;
  char said[4096] = "";
  size_t n = 0;
  MUST(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    Compile *c = compile(text, "cpu", 0);
    damage(c);
    ir_check(c, "test");
    c->graph->commands = commands_make(c);
    program_text(c);
    _exit(0);
  }
  close(ends[1]);
  for (ssize_t more; (more = read(ends[0], said + n, sizeof said - 1 - n)) > 0;) n += (size_t)more;
  close(ends[0]);
  MUST(waitpid(child, &status, 0) == child);
  CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, message),
            "instead of `%s`: %s", message, said);
}

static void test_bugs(void)
{
  test_bug(lose_place,
           "bug in pass kernels: a.amp:2: %2 (transpose): its kernel has no pointer to it");
  test_bug(join_too_early, "bug in pass kernels: a.amp:4: %4 (reshape): it is read before it is");
  test_bug(leave_unread, "bug in pass test: a.amp:5: %6 (sin): nobody reads it");
}

int main(void)
{
  test_blame_and_bytes("cpu");
  test_blame_and_bytes("sm_90");
  test_wide_indices();
  test_names();
  test_product_names();
  static const char *const helpers[] = {
      "cuda.cuh",    "cpu.h",       "columns_cuda.cuh", "columns_cpu.h", "maths.cuh",
      "maths64.cuh", "maths16.cuh", "device.cuh",       "rows.cuh",      "update.cuh"};
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    test_helpers_are_reserved(helpers[i]);
  test_words();
  test_fusion();
  test_fences();
  test_shared_kernels("cpu");
  test_shared_kernels("sm_90");
  test_random_kernels("cpu");
  test_random_kernels("sm_90");
  test_alike_parts("cpu");
  test_alike_parts("sm_90");
  test_paragraphs();
  test_last_block("cpu");
  test_last_block("sm_90");
  test_lines("cpu");
  test_lines("sm_90");
  test_constant_outputs();
  test_no_weight_casts();
  test_bugs();
  return check_done();
}
