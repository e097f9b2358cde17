/* The CUDA text of whole jobs, run thread by thread (simt.h), against the CPU text of the same
 * jobs: same batches, same weights, some steps. Elementwise results are the same; sums differ in
 * their order. The runtime runs both: a block of a launch is one call either way. */
#include "check.h"
#include "ampc_rt.h"
#include "driver.h"
#include "jit.h"
#include <math.h>

static const char train[] =
    "data points(n: int) { return synthetic(n, shape=[70]), synthetic(n, shape=[], dtype=i64, "
    "low=0, high=5) }\n"
    "model net = Sequential(Linear(70, 48), LayerNorm(48), GELU(), Dropout(0.3), Linear(48, 5))\n"
    "optimizer opt = AdamW(net, lr=linear_schedule(1e-2, 1e-3, steps=20, warmup=2), "
    "clip_norm=0.5)\n"
    "train x, y in points(64) with batch=33 {\n"
    "  logits = net(x)\n"
    "  minimize cross_entropy(logits, y, label_smoothing=0.1) with opt\n"
    "  metric acc = accuracy(logits, y)\n"
    "}\n";
static const char momentum[] =
    "data points(n: int) { return synthetic(n, shape=[3, 7]), synthetic(n, shape=[4]) }\n"
    "model net = Sequential(Flatten(), Linear(21, 300), SiLU(), Linear(300, 4))\n"
    "optimizer opt = SGD(net, lr=0.05, momentum=0.9, nesterov=true, weight_decay=1e-3)\n"
    "train x, y in points(64) with batch=16 { minimize mse_loss(net(x), y) with opt }\n";
static const char images[] =
    "data points(n: int) { return synthetic(n, shape=[2, 9, 7]), synthetic(n, shape=[2]) }\n"
    "module Net {\n"
    "  fc = Linear(126, 2)\n"
    "  def forward(x) {\n"
    "    x = random_hflip(random_shift(x, [2, 1]))\n"
    "    x = dropout2d(x / x.std([1, 2, 3], keepdim=true), 0.3) + randn_like(x)\n"
    "    return fc(x.flatten(1))\n"
    "  }\n"
    "}\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.05, momentum=0.9) { group(\"**.bias\", lr=0.01, momentum=0.0) "
    "}\n"
    "train x, y in points(64) with batch=16 { minimize mse_loss(net(x), y) with opt }\n";
static const char rows[] = "infer f(x: f32[3, 41, 130]) {\n"
                           "  h = x.to(f16)\n"
                           "  return softmax(h, 2), softmax(x, 1), x.mean(0), h.argmax(1), "
                           "x.argmax(2), x.sum(), x.amax(2),\n"
                           "         logsumexp(h, 1), log_softmax(x, 2).transpose(0, 2), cat([h, h "
                           "* 2], dim=1)[:, 1:60:3]\n"
                           "}\n";

/* ---- the CUDA text as C -------------------------------------------------------------------------
 */

static char *read_shim(size_t *size)
{
  FILE *f = fopen("tests/unit/simt.h", "rb");
  MUST(f);
  char *text = malloc(1 << 16);
  *size = fread(text, 1, 1 << 16, f);
  MUST(*size > 0 && *size < 1 << 16);
  fclose(f);
  return text;
}

/* Threads of a block of kernel k, as the plan launches it. */
static unsigned block_of(const ampc_program *p, uint32_t k)
{
  for (uint32_t b = 0; b < p->n_blocks; b++) {
    const ampc_step *s = &p->blocks[b].variant[0];
    for (uint32_t i = 0; i < s->n_commands; i++) {
      const ampc_command *c = &s->commands[i];
      if (c->kind == AMPC_LAUNCH_KERNEL && c->as.launch.kernel == k) return c->as.launch.block;
    }
  }
  return 32;
}

static void put_thunk(Text *out, const ampc_program *p, uint32_t k)
{
  const ampc_kernel *kernel = &p->kernels[k];
  text_printf(out, "static void %s_thread(void *const *a) { %s(", kernel->name, kernel->name);
  for (uint32_t i = 0; i < kernel->n_args; i++) text_printf(out, "%sa[%u]", i ? ", " : "", i);
  text_printf(out,
              "); }\nstatic void %s_block(void *const *a, unsigned block, unsigned blocks)\n"
              "{ simt_block(%s_thread, a, block, blocks, %u); }\n",
              kernel->name, kernel->name, block_of(p, k));
}

static void wrap(Text *text, void *data)
{
  const ampc_program *p = data;
  Text out;
  text_init(&out, text->arena);
  size_t size;
  char *shim = read_shim(&size);
  text_add(&out, shim, size);
  free(shim);
  text_add(&out, text->at, text->n);
  for (uint32_t k = 0; k < p->n_kernels; k++) put_thunk(&out, p, k);
  text_puts(&out, "const struct { const char *name; void (*run)(void *const *, unsigned, unsigned);"
                  " } ampc_jit_kernels[] = {\n");
  for (uint32_t k = 0; k < p->n_kernels; k++)
    text_printf(&out, "{\"%s\", %s_block},\n", p->kernels[k].name, p->kernels[k].name);
  text_puts(&out, "{0, 0}};\n");
  *text = out;
}

/* ---- jobs
 * ------------------------------------------------------------------------------------------ */

typedef struct Job {
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
} Job;

static Job open_job(const char *text, const char *target, int optimize)
{
  Options options = {
      .input = "test.amp", .target = target, .optimize = optimize, .error_limit = 20};
  Job j = {.c = compile_create(&options)};
  MUST(compile_text(j.c, "test.amp", text, strlen(text)));
  bool cuda = strcmp(target, "cpu") != 0;
  MUST(jit_load_edited(j.c, cuda ? wrap : NULL, j.c->program, &j.jit) == AMPC_OK);
  j.c->program->target = "cpu"; /* what runs it */
  MUST(ampc_create(j.c->program, "cpu", &j.rt) == AMPC_OK);
  MUST(ampc_init_params(j.rt, 7) == AMPC_OK);
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

static void write_inputs(const Job *j, unsigned seed)
{
  const ampc_program *p = j->c->program;
  const ampc_block *b = &p->blocks[0];
  for (uint32_t s = 0; s < b->n_sources; s++) {
    const ampc_source *from = &p->sources[b->first_source + s];
    int64_t n = b->batch > 0 ? b->batch : 1;
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
    ampc_ref to = {AMPC_INPUT, from->offset};
    MUST(ampc_write(j->rt, to, bytes, n * ampc_dtype_size(from->dtype)) == AMPC_OK);
    free(bytes);
  }
}

static void run_steps(const Job *j, int n)
{
  for (int i = 0; i < n; i++) {
    write_inputs(j, (unsigned)i + 1);
    MUST(ampc_run_step(j->rt, 0, 0) == AMPC_OK && ampc_wait(j->rt) == AMPC_OK);
  }
}

/* ---- comparing
 * --------------------------------------------------------------------------------------- */

static double half_value(unsigned bits)
{
  union {
    unsigned short bits;
    _Float16 number;
  } u = {(unsigned short)bits};
  return (double)u.number;
}

static double element(const char *bytes, ampc_dtype type, int64_t i)
{
  union {
    float f32;
    int64_t i64;
    unsigned short bits;
  } u = {0};
  memcpy(&u, bytes + i * ampc_dtype_size(type), (size_t)ampc_dtype_size(type));
  if (type == AMPC_F16) return half_value(u.bits);
  return type == AMPC_F32 ? (double)u.f32 : (double)u.i64;
}

static void compare(const Job *a, ampc_ref from_a, const Job *b, ampc_ref from_b, ampc_dtype type,
                    int64_t n, double bound, const char *what)
{
  int64_t size = n * ampc_dtype_size(type);
  char *x = malloc((size_t)size), *y = malloc((size_t)size);
  MUST(ampc_read(a->rt, from_a, x, size) == AMPC_OK);
  MUST(ampc_read(b->rt, from_b, y, size) == AMPC_OK);
  double worst = 0;
  for (int64_t i = 0; i < n; i++) {
    double got = element(y, type, i), want = element(x, type, i);
    double error = fabs(got - want) / (1 + fabs(want));
    if (!(error <= worst)) worst = error;
  }
  free(x);
  free(y);
  CHECK_MSG(worst <= bound, "%s: cuda text differs by %g", what, worst);
}

static void test_training(const char *text, int optimize, const char *what)
{
  Job cpu = open_job(text, "cpu", 2), cuda = open_job(text, "sm_80", optimize);
  run_steps(&cpu, 5);
  run_steps(&cuda, 5);
  const ampc_program *p = cpu.c->program;
  int64_t n = p->space_bytes[AMPC_MASTER] / 4;
  ampc_ref master = {AMPC_MASTER, 0}, moment = {AMPC_MOMENT1, 0};
  compare(&cpu, master, &cuda, master, AMPC_F32, n, 2e-5, what);
  compare(&cpu, moment, &cuda, moment, AMPC_F32, n, 2e-5, what);
  for (uint32_t m = 0; m < p->n_metrics; m++) {
    ampc_metric x, y;
    MUST(ampc_get_metric(cpu.rt, m, &x) == AMPC_OK && ampc_get_metric(cuda.rt, m, &y) == AMPC_OK);
    CHECK(x.count == y.count && fabs(x.sum - y.sum) <= 1e-4 * fabs(x.sum));
  }
  ampc_state s;
  MUST(ampc_get_state(cuda.rt, &s) == AMPC_OK);
  CHECK(s.body == 5);
  close_job(&cpu);
  close_job(&cuda);
}

static void test_rows(int optimize)
{
  Job cpu = open_job(rows, "cpu", optimize), cuda = open_job(rows, "sm_80", optimize);
  run_steps(&cpu, 1);
  run_steps(&cuda, 1);
  const ampc_program *p = cpu.c->program, *q = cuda.c->program;
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const ampc_output_desc *o = &p->outputs[i];
    int64_t n = 1;
    for (uint32_t k = 0; k < o->rank; k++) n *= o->dim[k];
    double bound = o->dtype == AMPC_F16 ? 1e-3 : o->dtype == AMPC_F32 ? 2e-6 : 0;
    compare(&cpu, o->place, &cuda, q->outputs[i].place, o->dtype, n, bound, o->name);
  }
  close_job(&cpu);
  close_job(&cuda);
}

int main(void)
{
  test_training(train, 2, "AdamW");
  test_training(momentum, 0, "SGD");
  test_training(momentum, 2, "SGD");
  test_training(images, 2, "images");
  test_rows(0);
  test_rows(2);
  return check_done();
}
