/* Which of cuDNN's engines computes which convolution and which attention on a GPU that is absent:
 * plan_check sm_90 job.amp... Checks all convolutions and attentions of the jobs, and unusual ones.
 * Each gets a plan that ampc accepts, within the memory that ampc's own kernels would need;
 * otherwise the reason is printed. Convolutions of jobs must get a plan unless cuDNN has none
 * (must_have_one), and so must the marked cases. Each plan is saved and read back. The exit status
 * is 77 without cuDNN, 5 after a failure. */
#include "compiler/driver.h"
#include "compiler/cli/options.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_attention.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SKIPPED = 77, WRONG = 5, MOST_SEEN = 512 };

static char seen[MOST_SEEN][DNN_PROBLEM_ROOM];
static unsigned n_seen, wrong, planned;
static DnnMachine machine;
static int capability;

static double seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *problem, const char *what)
{
  printf("FAILED: %s: %s\n", problem, what);
  wrong++;
}

static void check_kept(const char *problem, const DnnPlan *p)
{
  char *bytes;
  size_t size;
  DnnPlan again;
  if (!dnn_plan_save(p, &bytes, &size)) {
    fail(problem, "the plan cannot be kept");
    return;
  }
  bool good = dnn_plan_load(&machine, bytes, size, &again);
  if (!good || again.workspace != p->workspace || again.form != p->form)
    fail(problem, "the plan comes back as another one");
  if (good) dnn_plan_free(&again);
  free(bytes);
}

static bool is_new(const char *problem)
{
  for (unsigned i = 0; i < n_seen; i++)
    if (strcmp(seen[i], problem) == 0) return false;
  if (n_seen == MOST_SEEN) abort();
  memcpy(seen[n_seen++], problem, DNN_PROBLEM_ROOM);
  return true;
}

static void check_problem(const DnnProblem *t, int64_t limit, bool must)
{
  const char *problem = t->words;
  DnnPlan p;
  if (!is_new(problem)) return;
  double start = seconds();
  bool good = dnn_plan_make(&machine, t, limit, &p);
  printf("%s\n", problem);
  if (good) {
    printf("  engine %lld, %s, workspace %lld, %.1f s\n", (long long)p.engine,
           p.form == DNN_DIRECT ? "direct" : "joined", (long long)p.workspace, seconds() - start);
    if (p.workspace > limit) fail(problem, "more workspace than it may have");
    check_kept(problem, &p);
  } else {
    printf("  own kernels: %s\n", p.why);
    if (must) fail(problem, "there should be an engine");
    if (!p.why[0]) fail(problem, "no reason is given");
  }
  planned += good;
  dnn_plan_free(&p);
}

static void check(const ampc_conv *c, bool must)
{
  DnnProblem problem = dnn_conv_problem(c);
  check_problem(&problem, ampc_conv_workspace_cuda(c, false, capability), must);
}

static ampc_cudnn machine_now(void)
{
  return (ampc_cudnn){(int)machine.api->cudnnGetVersion(), capability};
}

/* Checks that every attention which ampc_attention_against allows has an engine. Limits the scores
 * that backward writes to `limit`, plus some memory for the rest. */
static void check_attention(const ampc_attention *a, const char *what, int64_t limit)
{
  enum { BESIDE = 1 << 16 };
  char why[AMPC_WHY_ROOM];
  ampc_attention part = dnn_attention_part(a, limit);
  DnnProblem problem = dnn_attention_problem(&part);
  if (a->n % part.n || a->heads % part.heads) fail(what, "parts of different sizes");
  if (ampc_attention_scores(&part) > limit) fail(what, "a part that is too large");
  check_problem(&problem, ampc_attention_scores(&part) + BESIDE,
                !ampc_attention_against(a, machine_now(), why));
}

/* ---- convolutions of jobs ---- */

enum { FEW_SCORES = 1 << 22 };

/* True if a plan must exist. cuDNN 9 names no engine that sums a weight gradient in f32 from 16-bit
 * operands if x or y has an odd number of channels. If both are even, it names one from sm_80 on
 * (`even channels` below). */
static bool must_have_one(const ampc_conv *c)
{
  bool halves = c->kind == AMPC_CONV_WEIGHT && c->x_type != AMPC_F32 && c->w_type == AMPC_F32;
  return !halves || (c->c % 2 == 0 && c->k % 2 == 0);
}

static void check_commands(const ampc_command *commands, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const ampc_command *k = &commands[i];
    if (k->kind == AMPC_LAUNCH_KERNEL && k->as.launch.library)
      check_attention(k->as.launch.library, k->label, dnn_scores_limit);
    if (k->kind == AMPC_CONV) check(&k->as.conv.desc, must_have_one(&k->as.conv.desc));
    if (k->kind == AMPC_REPEAT) check_commands(k->as.repeat.commands, k->as.repeat.n_commands);
  }
}

static void check_job(const char *path, const char *target)
{
  Options options = options_default();
  options.input = path;
  options.target = target;
  Compile *c = compile_create(&options);
  if (compile_job(c)) {
    for (uint32_t i = 0; i < c->program->n_blocks; i++) {
      const ampc_block *b = &c->program->blocks[i];
      for (uint32_t v = 0; v < b->n_variants; v++)
        check_commands(b->variant[v].commands, b->variant[v].n_commands);
    }
  } else {
    fail(path, "does not compile");
  }
  compile_destroy(c);
}

/* ---- unusual convolutions ---- */

typedef struct Case {
  const char *what;
  int64_t n, c, k, groups, in, kernel, stride, pad, dilation;
  uint32_t spatial;
  bool bias, tf32;
  ampc_dtype type;
  const char *must; /* letters of "fdw": forward, data or weight must get an engine */
} Case;

static const Case cases[] = {
    {"f16", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, false, false, AMPC_F16, "fdw"},
    {"bf16", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, false, false, AMPC_BF16, "fdw"},
    {"f32", 32, 64, 64, 1, 28, 3, 1, 1, 1, 2, false, false, AMPC_F32, "fdw"},
    {"tf32", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, false, true, AMPC_F32, "fdw"},
    {"bias f16", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, true, false, AMPC_F16, "f"},
    {"bias bf16", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, true, false, AMPC_BF16, "f"},
    {"bias tf32", 128, 64, 64, 1, 28, 3, 1, 1, 1, 2, true, true, AMPC_F32, "f"},
    {"1x1", 128, 64, 256, 1, 14, 1, 1, 0, 1, 2, false, false, AMPC_F16, "fdw"},
    {"stride", 128, 64, 128, 1, 28, 3, 2, 1, 1, 2, false, false, AMPC_F16, "fdw"},
    {"dilation", 32, 64, 64, 1, 28, 3, 1, 2, 2, 2, false, false, AMPC_F16, "fdw"},
    {"1d", 128, 64, 64, 1, 256, 3, 1, 1, 1, 1, false, false, AMPC_F16, "fdw"},
    {"3d", 16, 32, 32, 1, 14, 3, 1, 1, 1, 3, false, false, AMPC_F16, "fdw"},
    {"groups", 128, 64, 64, 4, 28, 3, 1, 1, 1, 2, false, false, AMPC_F16, "fd"},
    {"depthwise", 128, 64, 64, 64, 28, 3, 1, 1, 1, 2, false, false, AMPC_F16, "fd"},
    {"stem", 128, 3, 32, 1, 32, 3, 2, 1, 1, 2, false, false, AMPC_F16, "f"},
    {"even channels", 128, 2, 6, 1, 28, 3, 1, 1, 1, 2, false, false, AMPC_BF16, "w"},
    {"few odd channels", 7, 5, 9, 1, 28, 3, 2, 1, 1, 2, false, false, AMPC_F16, ""},
};

static void check_case(const Case *t)
{
  static const char kinds[] = "fdw";
  for (ampc_conv_kind kind = AMPC_CONV_FORWARD; kind <= AMPC_CONV_WEIGHT; kind++) {
    ampc_conv c = {.kind = kind,
                   .n = t->n,
                   .c = t->c,
                   .k = t->k,
                   .groups = t->groups,
                   .spatial = t->spatial,
                   .tf32 = t->tf32};
    for (uint32_t i = 0; i < t->spatial; i++) {
      c.in[i] = t->in, c.kernel[i] = t->kernel, c.stride[i] = t->stride;
      c.pad[i] = t->pad, c.dilation[i] = t->dilation;
      c.out[i] = (t->in + 2 * t->pad - t->dilation * (t->kernel - 1) - 1) / t->stride + 1;
    }
    c.x_type = c.w_type = c.y_type = c.bias_type = t->type;
    c.has_bias = t->bias && kind == AMPC_CONV_FORWARD;
    c.accumulate = kind == AMPC_CONV_WEIGHT;
    if (c.accumulate) c.w_type = AMPC_F32;
    check(&c, strchr(t->must, kinds[kind]) != NULL);
  }
}

/* ---- attention ---- */

typedef struct Heads {
  const char *what;
  int64_t n, l, s, heads, d;
  bool causal, together; /* together: q, k and v are in the same rows, as one product writes them */
  ampc_dtype type;
} Heads;

static const Heads attentions[] = {
    {"GPT-2", 16, 1024, 1024, 12, 64, true, true, AMPC_BF16},
    {"image", 8, 197, 197, 3, 64, false, true, AMPC_F16},
    {"across", 2, 100, 50, 4, 128, false, false, AMPC_BF16},
    {"causal across", 2, 40, 50, 4, 8, true, false, AMPC_F16},
};

static void set_strides(int64_t *stride, int64_t rows, int64_t row, int64_t head)
{
  stride[0] = rows * row, stride[1] = row, stride[2] = head;
}

static ampc_attention attention_of(const Heads *t)
{
  int64_t width = t->heads * t->d, row = t->together ? 3 * width : width;
  ampc_attention a = {.n = t->n, .l = t->l, .s = t->s, .heads = t->heads, .d = t->d, .e = t->d};
  a.causal = t->causal;
  a.type = t->type;
  set_strides(a.q.stride, t->l, row, t->d);
  set_strides(a.k.stride, t->s, row, t->d);
  set_strides(a.v.stride, t->s, row, t->d);
  set_strides(a.y.stride, t->l, width, t->d);
  set_strides(a.dy.stride, t->l, width, t->d);
  set_strides(a.sums.stride, t->l, t->heads, 1);
  set_strides(a.dq.stride, t->l, width, t->d);
  set_strides(a.dk.stride, t->s, width, t->d);
  set_strides(a.dv.stride, t->s, width, t->d);
  return a;
}

static void both_ways(ampc_attention *a, const char *what)
{
  check_attention(a, what, dnn_scores_limit);
  a->backward = true;
  check_attention(a, what, dnn_scores_limit);
  a->backward = false;
}

/* Checks that engines exist for dropout and masks, if AMPC_ATTENTION lets cuDNN compute them: with
 * 197 keys and dropout, with 512 keys and either of both. Masks have one row for all queries, or
 * full rows. */
static void check_chosen(const char *choice)
{
  static const bool masks[][4] = {
      {0}, {true, 0, 0, true}, {true, 0, true, true}, {0, true, true, true}, {true, true, 0, true}};
  static const Heads heads[] = {{"197 keys", 4, 197, 197, 2, 64, false, true, AMPC_F16},
                                {"512 keys", 4, 512, 512, 2, 64, false, true, AMPC_BF16}};
  enum { MASKS = sizeof masks / sizeof *masks };
  setenv("AMPC_ATTENTION", choice, 1);
  for (int i = 0; i < 2 * MASKS; i++) {
    const Heads *t = &heads[i / MASKS];
    const bool *mask = masks[i % MASKS];
    const int64_t strides[] = {t->heads * t->l * t->s, t->l * t->s, t->s, 1};
    ampc_attention a = attention_of(t);
    a.p = i > MASKS ? 0 : 0.1;
    a.mask.argument = mask[3];
    for (int k = 0; k < 4; k++) a.mask.stride[k] = mask[k] ? strides[k] : 0;
    both_ways(&a, t->what);
  }
  unsetenv("AMPC_ATTENTION");
}

static void check_attentions(void)
{
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++) {
    ampc_attention a = attention_of(&attentions[i]);
    both_ways(&a, attentions[i].what);
  }
  check_chosen("r1r2");
  check_chosen("r2b");
  char why[AMPC_WHY_ROOM];
  ampc_attention a = attention_of(&attentions[0]);
  a.backward = true;
  check_attention(&a, "GPT-2", FEW_SCORES); /* one image and two heads fit */
  a = dnn_attention_part(&a, FEW_SCORES);
  if (a.n != 1 || a.heads != 2) fail("GPT-2", "not the part that fits");
  a.p = 0.5;
  a = dnn_attention_part(&a, FEW_SCORES);
  if (a.n != 1 || a.heads != 1) fail("GPT-2", "the mask does not fit");
  a.d = 20;
  if (!ampc_attention_against(&a, machine_now(), why))
    fail("GPT-2", "cuDNN takes heads of 20 features");
  a.d = 64;
  a.type = AMPC_F32;
  if (!ampc_attention_against(&a, machine_now(), why)) fail("GPT-2", "cuDNN takes heads of f32");
}

int main(int argc, char **argv)
{
  char why[AMPC_WHY_ROOM];
  if (argc < 2 || strncmp(argv[1], "sm_", 3) != 0) return WRONG;
  capability = atoi(argv[1] + 3);
  if (!dnn_machine_of(capability, &machine, why)) {
    printf("skipped: %s\n", why);
    return SKIPPED;
  }
  printf("cuDNN %zu\n", machine.api->cudnnGetVersion());
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (cases[i].type != AMPC_BF16 || capability >= 80)
      check_case(&cases[i]); /* no bf16 before sm_80 */
  check_attentions();
  for (int i = 2; i < argc; i++) check_job(argv[i], argv[1]);
  dnn_machine_free(&machine);
  printf("cuDNN computes %u of %u kinds of problem\n", planned, n_seen);
  return wrong ? WRONG : 0;
}
