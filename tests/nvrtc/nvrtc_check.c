/* Compiles every emitted kernel of some jobs with NVRTC for one architecture:
 *   nvrtc_check BUDGET sm_90 job.amp...             each kernel must compile and stay within the
 *                                                   budget, which allows few to spill registers
 *   nvrtc_check --rewrite BUDGET sm_90 job.amp...   prints the lines that the budget should have
 *   nvrtc_check --share 2/4 BUDGET sm_90 job.amp...   each fourth job, or case of an op, beginning
 *                                                     with the second
 *   nvrtc_check --some BUDGET sm_90 job.amp...      only the kernels of these jobs
 * Without --some, the jobs together must use every template. If they use no kernel of a row op or
 * an optimizer, the check makes a job for it, from PyTorch's cases (tests/torch/cases.def) or from
 * the table of optimizers. The exit status is 77 without NVRTC, or if it does not know the
 * architecture; 5 after a failure. */
#include "cubin.h"
#include "compiler/command/command.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/driver.h"
#include "compiler/kernel/kernels.h"
#include "compiler/graph/optimizers.h"
#include "runtime/base/cache.h"
#include "runtime/plan/conv_columns.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, WRONG = 5, REGISTER_UNIT = 8 /* a GPU allocates them in this unit */ };

/* The kinds of kernels that the budget distinguishes: each row op and each file in templates/; all
 * elementwise chains; all moves; all launches of several parts; convolution kernels by file;
 * updates of optimizers that also sum norms; updates of moments in 8 bits. */
enum {
  KIND_map = OP_COUNT,
  KIND_move,
  KIND_parts,
  KIND_im2col,
  KIND_turned,
  KIND_whole,
  KIND_whole_weight,
  KIND_norms,
  KIND_codes,
  KIND_COUNT
};

typedef struct Budget {
  KernelNeeds most;
  bool given;
} Budget;

static KernelNeeds used[KIND_COUNT];
static bool seen[KIND_COUNT];
static bool met[KIND_COUNT]; /* true if a kernel, maybe named after another op, contains the op */
static Budget budget[KIND_COUNT];
static Budget usual; /* the budget in the line `*`, for kinds without a line */
static const char *architecture;
static unsigned wrong, kernels;
static unsigned share, shares = 1, texts; /* of all texts, one of `shares` is compiled */

static const char *kind_name(int kind)
{
  static const char *const names[] = {"map",   "move",         "parts", "im2col", "turned",
                                      "whole", "whole_weight", "norms", "codes"};
  return kind < OP_COUNT ? op_row((OpKind)kind)->name : names[kind - OP_COUNT];
}

static int kind_of_convolution(Compile *c, uint32_t group)
{
  ampc_conv d = command_of(c->graph, group)->conv;
  if (!ampc_conv_columns(&d, false).whole)
    return d.kind == AMPC_CONV_DATA ? KIND_turned : KIND_im2col;
  return d.kind == AMPC_CONV_WEIGHT ? KIND_whole_weight : KIND_whole;
}

static int kind_of(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  Value anchor = g->groups.at[group].anchor;
  uint32_t at;
  if (command_of(g, group)->columns) return kind_of_convolution(c, group);
  if (g->groups.at[group].n_parts) return KIND_parts;
  OpKind op = anchor.id ? ir_node(g, anchor)->op : OP_COUNT;
  if (!anchor.id || op_row(op)->tmpl == TMPL_map) return KIND_map;
  if (g->moment_type == AMPC_U8 && op_takes(op_row(op), FILE_ranges)) return KIND_codes;
  if (c->options.norms && attr_find(op_row(op), "sums", &at)) return KIND_norms;
  return op_row(op)->tmpl == TMPL_move ? KIND_move : (int)op;
}

/* ---- the budget ---- */

static int kind_named(const char *name)
{
  for (int i = 0; i < KIND_COUNT; i++)
    if (strcmp(kind_name(i), name) == 0) return i;
  return KIND_COUNT;
}

/* Own lines of an architecture with a line `=` follow the lines that it takes over. */
static bool read_budget(const char *path)
{
  char line[256], name[64], arch[16], like[16] = "";
  FILE *f = fopen(path, "r");
  if (!f) return false;
  while (fgets(line, sizeof line, f)) {
    KernelNeeds n = {0};
    int found = sscanf(line, "%63s %15s %u %u %u", name, arch, &n.registers, &n.shared, &n.local);
    if (strcmp(name, "=") == 0 && strcmp(arch, architecture) == 0) sscanf(line, "= %*s %15s", like);
    if (found < 4 || (strcmp(arch, architecture) != 0 && strcmp(arch, like) != 0)) continue;
    int kind = kind_named(name);
    if (strcmp(name, "*") == 0) usual = (Budget){n, true};
    if (kind < KIND_COUNT) budget[kind] = (Budget){n, true};
  }
  fclose(f);
  return true;
}

static const char *spilled(unsigned bytes)
{
  static char text[16];
  snprintf(text, sizeof text, bytes ? "\t%u" : "", bytes);
  return text;
}

static void print_budget(void)
{
  for (int i = 0; i < KIND_COUNT; i++) {
    unsigned units = (used[i].registers + REGISTER_UNIT - 1) / REGISTER_UNIT;
    if (seen[i])
      printf("%s\t%s\t%u\t%u%s\n", kind_name(i), architecture, units * REGISTER_UNIT,
             used[i].shared, spilled(used[i].local));
  }
}

/* ---- kernels ---- */

static void complain(const char *job, const char *kernel, const char *what, unsigned has,
                     unsigned most)
{
  fprintf(stderr, "FAILED: %s: %s for %s %s %u, of %u\n", job, kernel, architecture, what, has,
          most);
  wrong++;
}

static void judge(const char *job, const char *name, int kind, const KernelNeeds *n)
{
  const Budget *b = budget[kind].given ? &budget[kind] : &usual;
  if (n->local > b->most.local)
    complain(job, name, "spills: bytes of local memory", n->local, b->most.local);
  if (!b->given) {
    fprintf(stderr, "FAILED: the budget has no line for %s and %s (%s of %s)\n", kind_name(kind),
            architecture, name, job);
    wrong++;
    return;
  }
  if (n->registers > b->most.registers)
    complain(job, name, "takes registers", n->registers, b->most.registers);
  if (n->shared > b->most.shared)
    complain(job, name, "takes bytes of shared memory", n->shared, b->most.shared);
}

/* cubin: NULL if another share compiles the kernel. */
static void take_kernel(Compile *c, uint32_t group, const Text *cubin, bool rewrite)
{
  const char *name = command_of(c->graph, group)->kernel_name;
  KernelNeeds n = {0};
  if (cubin && !cubin_needs(cubin->at, cubin->n, name, &n)) {
    fprintf(stderr, "FAILED: %s: the cubin says nothing about %s\n", c->options.input, name);
    wrong++;
    return;
  }
  int kind = kind_of(c, group);
  if (cubin && !rewrite) judge(c->options.input, name, kind, &n);
  if (n.registers > used[kind].registers) used[kind].registers = n.registers;
  if (n.shared > used[kind].shared) used[kind].shared = n.shared;
  if (n.local > used[kind].local) used[kind].local = n.local;
  seen[kind] = met[kind] = true;
  for (uint32_t i = 0; i < c->graph->groups.at[group].n; i++) {
    const Node *node = ir_node(c->graph, c->graph->groups.at[group].nodes[i]);
    if (!op_is_step(node)) met[node->op] = true; /* steps (Note [steps]) have no entry */
  }
  if (cubin) kernels++;
}

/* Compiles the kernels with NVRTC, or finds their cubin in the cache of kernels. */
static bool make_cubin(Compile *c, Text *out)
{
  Cache cache;
  Text text = text_new(c->arena);
  const NvrtcApi *nvrtc;
  char key[33], identity[160], why[AMPC_WHY_ROOM], path[CACHE_PATH], *bytes;
  size_t size;
  emit_kernels(c, &text);
  if (!nvrtc_load(&nvrtc, why) || cache_open(&cache) != AMPC_OK) return false;
  nvrtc_identity(nvrtc, identity, sizeof identity);
  cache_key(text.at, text.n, identity, key);
  cache_key(key, strlen(key), architecture, key);
  cache_path(&cache, key, "cubin", path);
  bool good = cache_read(path, &bytes, &size);
  if (good) {
    text_add(out, bytes, size);
    free(bytes);
  } else {
    good = emit_nvrtc(c, &text, architecture, NVRTC_cubin, out);
    if (good && !cache.temporary) cache_write(&cache, path, out->at, out->n);
  }
  cache_close(&cache);
  return good;
}

static void take_kernels(Compile *c, bool compiled, bool rewrite)
{
  Text cubin = text_new(c->arena);
  bool ours = texts++ % shares == share;
  if (compiled && (!ours || make_cubin(c, &cubin))) {
    for (uint32_t i = 1; i < c->graph->groups.n; i++)
      if (command_owns_kernel(c->graph, i)) take_kernel(c, i, ours ? &cubin : NULL, rewrite);
  } else {
    fprintf(stderr, "FAILED: %s does not compile for %s\n", c->options.input, architecture);
    wrong++;
  }
}

static void check_job(const char *path, bool rewrite)
{
  Options options = {.input = path, .target = architecture, .optimize = 2, .error_limit = 20};
  Compile *c = compile_create(&options);
  take_kernels(c, compile_job(c), rewrite);
  compile_destroy(c);
}

/* ---- ops that no job uses ---- */

/* True if the kind has a kernel text of its own. */
static bool needs_kernel(int kind)
{
  if (kind >= OP_COUNT) return true;
  OpTemplate t = op_row((OpKind)kind)->tmpl;
  return t == TMPL_row || t == TMPL_file;
}

static bool has_news(const Graph *g)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (!op_is_step(n) && needs_kernel((int)n->op) && !met[n->op]) return true;
  }
  return false;
}

/* Checks a text, with settings of `extra`. Skips a case that does not compile without targets.
 * check_coverage reports gaps. */
static void check_text_with(const char *name, const char *text, Options extra, bool rewrite)
{
  Options options = extra;
  options.input = name;
  options.target = architecture;
  options.optimize = 2;
  options.silent = true;
  options.error_limit = 1;
  Compile *c = compile_create(&options);
  if (compile_text(c, name, text, strlen(text)) && has_news(c->graph))
    take_kernels(c, true, rewrite);
  compile_destroy(c);
}

static void check_text(const char *name, const char *text, bool rewrite)
{
  check_text_with(name, text, (Options){0}, rewrite);
}

static const char data_text[] =
    "data d(split: str) { return synthetic(8, [1]) }\nprecision f16\n"
    "train b in d(\"train\") with batch=4 { minimize net() with opt }\n";

static void check_cases(bool rewrite)
{
  static const struct {
    const char *name, *members, *output;
  } cases[] = {
#define CASE(name, members, output, ...) {#name, members, output},
#include "tests/torch/cases.def"
#undef CASE
  };
  Arena *arena = arena_create();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_text(cases[i].name,
               arena_printf(arena,
                            "module M {\n  %s\n  def forward() { return sum(%s) }\n}\n"
                            "model net = M()\noptimizer opt = SGD(net, lr=0.1)\n%s",
                            cases[i].members, cases[i].output, data_text),
               rewrite);
  arena_destroy(arena);
}

static void check_optimizers(bool rewrite)
{
  Arena *arena = arena_create();
  for (int i = 0; i < OPT_COUNT; i++) {
    const char *name = optimizer_row((OptimizerKind)i)->name;
    check_text(name,
               arena_printf(arena,
                            "module M {\n  w = Parameter([33])\n  def forward() { return "
                            "sum(w * w) }\n}\nmodel net = M()\noptimizer opt = %s(net, lr=0.1)\n%s",
                            name, data_text),
               rewrite);
  }
  arena_destroy(arena);
}

/* Checks nodes that a job contains only on request: the probes and norms of a step, a decoder. */
static void check_requested(bool rewrite)
{
  static const char text[] =
      "data d() { return synthetic(64, [512]) }\n"
      "module Net { a = Linear(512, 512); b = Linear(512, 512)\n"
      "  def forward(x) { return b(a(x)) }\n}\nmodel net = Net()\n"
      "optimizer opt = AdamW(net.a, lr=0.1)\noptimizer other = LAMB(net.b, lr=0.1)\n"
      "precision f16\n"
      "train x in d() with batch=32 { minimize net(x).sum() with opt, other }\n";
  check_text_with("probes", text, (Options){.probe_every = 1}, rewrite);
  check_text_with("norms", text, (Options){.norms = true}, rewrite);
  static const char decoder[] = "dim S(max=128)\nmodel net = Embedding(64, 64)\n"
                                "def heads(x) { return x.unflatten(2, [4, 16]).transpose(1, 2) }\n"
                                "infer next(ids: i64[1, S]) {\n  x = heads(net(ids))\n"
                                "  return scaled_dot_product_attention(x, x, x, "
                                "is_causal=true).transpose(1, 2).flatten(2)\n}\n";
  check_text_with("decoder", decoder,
                  (Options){.infer_block = "next", .decode = true, .text_to = 128}, rewrite);
}

static void check_coverage(void)
{
  for (int i = 0; i < KIND_COUNT; i++) {
    if (!needs_kernel(i) || met[i]) continue;
    fprintf(stderr, "FAILED: no job has a kernel of %s\n", kind_name(i));
    wrong++;
  }
}

/* ---- NVRTC ---- */

/* Returns 0 if NVRTC can compile for the architecture. */
static int find_nvrtc(void)
{
  const NvrtcApi *nvrtc;
  char why[AMPC_WHY_ROOM], best[24];
  if (!nvrtc_load(&nvrtc, why)) {
    glob_t found;
    bool there = glob("/usr/local/cuda*/lib64/libnvrtc.so.*", 0, NULL, &found) == 0;
    globfree(&found);
    fprintf(stderr, "%s: %s\n", there ? "FAILED: NVRTC is installed" : "skipped", why);
    return there ? WRONG : SKIPPED;
  }
  if (nvrtc_architecture(nvrtc, atoi(architecture + strlen("sm_")), best) &&
      strcmp(best, architecture) == 0)
    return 0;
  fprintf(stderr, "skipped: this NVRTC does not know %s\n", architecture);
  return SKIPPED;
}

int main(int argc, char **argv)
{
  bool rewrite = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
  bool some = argc > 1 && strcmp(argv[1], "--some") == 0;
  int first = 1 + (rewrite || some);
  if (argc > 2 && strcmp(argv[1], "--share") == 0) {
    if (sscanf(argv[2], "%u/%u", &share, &shares) != 2 || share-- < 1 || share >= shares) return 2;
    first = 3;
  }
  if (argc < first + 3) {
    fprintf(stderr,
            "usage: nvrtc_check [--rewrite | --some | --share K/N] BUDGET sm_NN job.amp...\n");
    return 2;
  }
  architecture = argv[first + 1];
  int missing = find_nvrtc();
  if (missing) return missing;
  if (!rewrite && !read_budget(argv[first])) {
    fprintf(stderr, "FAILED: cannot read %s\n", argv[first]);
    return WRONG;
  }
  for (int i = first + 2; i < argc; i++) check_job(argv[i], rewrite);
  if (!some) check_cases(rewrite);
  if (!some) check_optimizers(rewrite);
  if (!some) check_requested(rewrite);
  if (!some) check_coverage();
  if (rewrite) print_budget();
  fprintf(stderr, "%u kernels for %s, %u faults\n", kernels, architecture, wrong);
  return wrong ? WRONG : 0;
}
