/* Runs every launch twice: see lockstep.h. */
#include "lockstep.h"
#include "build.h"
#include "columns.h"
#include "compare.h"
#include "compiler/graph/own.h"
#include "compiler/kernel/kernels.h"
#include "compiler/program/program.h"
#include "runtime/base/cache.h"
#include "tests/ptx/image.h"
#include "tests/ptx/warp.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHECKED_LAUNCHES = 64, /* for each kernel; later launches run only the CPU text */
  CHECKED_WIDE = 4, /* in real64: central differences repeat the same launches hundreds of times */
  TWIN_BLOCKS = 3   /* so that races between blocks of the CPU text are found */
};

typedef struct Checked { /* a kernel and its launches */
  const char *name;
  const SimtEntry *entry;
  ampc_cpu_kernel *twin;               /* NULL: only CUDA has the kernel */
  const PtxImage *images[PTX_TARGETS]; /* NULL: an earlier one has the same text */
  KernelArgs args;
  double *scales; /* space for compare_words */
  DType *rounded;
  Geometry at;
  ampc_conv conv;   /* of a kernel that only CUDA has */
  const OwnOp *own; /* the job's own op if the text belongs to one; else NULL */
  size_t scratch;   /* bytes of the scratch argument at the end; 0: the kernel has none */
  unsigned shift, launches;
  bool failed;
  const Jit *jit;
} Checked;

struct Jit {
  SimtLibraries libraries;
  Checked *kernels;
  bool real64;
};

static pthread_mutex_t machine_lock = PTHREAD_MUTEX_INITIALIZER;
static LockstepTotals totals;
static uint32_t n_targets; /* of PTX; 0: the CUDA text is executed */
static bool tells, only_tells, skips_wide;
static WordList twin_words, size_words, cuda_words;

LockstepTotals lockstep_totals(void)
{
  return totals;
}

bool lockstep_use_ptx(const char *targets)
{
  n_targets = ptx_choose(targets);
  return n_targets > 0;
}

void lockstep_skip_wide(void)
{
  skips_wide = true;
}

void lockstep_tell(bool only)
{
  tells = true;
  only_tells = only;
}

/* ---- a launch ---- */

static const char *const order_names[] = {"forward", "reverse", "random"};

static void fail(Checked *k, void *const *args, const char *how, const SimtFault *fault)
{
  Comparison c = {.args = k->args.at, .at = args, .n_args = k->args.n};
  char place[64];
  describe_place(&c, fault->memory, place, sizeof place);
  if (!k->failed) {
    fprintf(stderr, "simt: FAILED %s%s%s, grid %u, block %u, %s: %s%s\n", k->name,
            k->own ? ", op " : "", k->own ? k->own->name : "", k->at.grid, k->at.block, how,
            fault->text, place);
    totals.faults++;
  }
  k->failed = true;
}

typedef struct TwinCall {
  ampc_cpu_kernel *function;
  void *const *args;
} TwinCall;

extern const struct {
  unsigned x, y, z;
} blockIdx, gridDim;

static void twin_thread(void *const *args)
{
  const TwinCall *call = (const void *)args;
  call->function(call->args, blockIdx.x, gridDim.x);
}

/* Runs the CPU text, then restores memory. `no_signs`: its sums add absolute values. */
static bool run_twin(Checked *k, void *const *args, bool no_signs, WordList *words)
{
  MemoryRun memory = {.shift = k->shift,
                      .own = k->jit->libraries.own,
                      .own_size = k->jit->libraries.own_size,
                      .twin = true,
                      .words = words};
  TwinCall call = {k->twin, args};
  SimtLaunch l = {.thread = twin_thread,
                  .args = (void *const *)(const void *)&call,
                  .grid = TWIN_BLOCKS,
                  .block = 1};
  if (!k->twin) { /* without a CPU text; its threads never synchronize: run it as a loop */
    l.thread = k->entry->thread;
    l.args = args;
  }
  SimtFault fault;
  bool waited;
  *k->jit->libraries.no_signs = no_signs;
  memory_begin(&memory);
  bool good = simt_run(&l, &fault, &waited);
  memory_end();
  *k->jit->libraries.no_signs = 0;
  if (!good) fail(k, args, "CPU text", &fault);
  memory_take_back(words);
  return good;
}

static uint32_t scratch_argument(const Checked *k)
{
  uint32_t last = k->args.n - 1;
  return k->args.at[last].role == ARG_scratch ? last : k->args.n;
}

/* Runs and compares the CUDA text, or its PTX. Returns false after a fault. Restores memory then,
 * and unless the run is the last one. */
static bool run_cuda(Checked *k, void *const *args, SimtOrder order, const PtxImage *ptx, bool last)
{
  const SimtLibraries *lib = &k->jit->libraries;
  SimtLaunch l = {.thread = k->entry->thread,
                  .args = args,
                  .grid = ptx ? ptx->grid : k->at.grid,
                  .block = ptx ? ptx->block : k->at.block,
                  .shared = lib->shared,
                  .shared_size = lib->shared_size,
                  .order = order,
                  .seed = (unsigned)(k - k->jit->kernels) * 97 + k->launches};
  if (ptx) ptx_prepare(&l, ptx);
  MemoryRun memory = {
      .shift = k->shift, .shared = l.shared, .shared_size = l.shared_size, .words = &cuda_words};
  Comparison c = {.args = k->args.at,
                  .at = args,
                  .n_args = k->args.n,
                  .rounded = k->rounded,
                  .scale = k->scales,
                  .sizes = &size_words,
                  .real64 = k->jit->real64};
  SimtFault fault;
  if (k->scratch) c.skip = (uintptr_t)args[scratch_argument(k)], c.skip_size = k->scratch;
  memory_begin(&memory);
  bool good = simt_run(&l, &fault, &c.waited);
  memory_end();
  /* the two texts of an own op compute one formula in different ways; f64 has CUDA's functions */
  c.waited |= k->own != NULL || (ptx && k->jit->real64);
  c.terms = (double)memory_reads() / (double)(cuda_words.n + 1);
  if (good) good = compare_words(&c, &twin_words, &cuda_words, &fault);
  if (!good) fail(k, args, order_names[order], &fault);
  if (!good || !last) memory_take_back(&cuda_words);
  totals.blocks += l.grid;
  totals.threads += (unsigned long long)l.grid * l.block;
  return good;
}

static void check_launch(Checked *k, void *const *args)
{
  bool good = run_twin(k, args, true, &size_words) && run_twin(k, args, false, &twin_words);
  SimtOrder first = k->launches == 0 ? SIMT_FORWARD : SIMT_RANDOM;
  uint32_t last = n_targets ? n_targets - 1 : 0;
  while (last > 0 && !k->images[last]) last--;
  for (uint32_t t = 0; t <= last; t++)
    for (SimtOrder order = first; good && order < SIMT_ORDERS; order++)
      if (t == 0 || k->images[t])
        good = run_cuda(k, args, order, k->images[t], t == last && order == SIMT_RANDOM);
  if (!good) memory_put_back(&twin_words);
  totals.checked++;
}

/* The runtime calls this for each block of a CPU launch. The first call checks the launch. */
void simt_enter(Checked *k, void *const *args, unsigned block, unsigned n_blocks);
void simt_enter(Checked *k, void *const *args, unsigned block, unsigned n_blocks)
{
  (void)n_blocks;
  if (block != 0) return;
  pthread_mutex_lock(&machine_lock);
  unsigned most = !k->jit->real64 ? CHECKED_LAUNCHES : skips_wide && k->twin ? 0 : CHECKED_WIDE;
  if (k->launches < most && !k->failed) {
    check_launch(k, args);
  } else {
    k->twin(args, 0, 1);
    totals.unchecked++;
  }
  k->launches++;
  pthread_mutex_unlock(&machine_lock);
}

/* ---- loading ---- */

/* Returns log2 of the bytes of the smallest element. Fields of STATE have at least four bytes. */
static unsigned shift_of(const Compile *c, const KernelArgs *args)
{
  int64_t least = 8;
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    bool is_struct = a->role == ARG_state || a->role == ARG_optimizer || a->role == ARG_metric;
    int64_t size =
        is_struct || a->place.space == AMPC_STATE ? 4 : ampc_element_size(c->program, a->type);
    if (a->role == ARG_stream) continue;
    if (size < least) least = size;
  }
  return (unsigned)__builtin_ctzll((unsigned long long)least);
}

/* Describes the columns of a convolution, which are not a node of the graph. */
static void describe_columns(Compile *c, Checked *k, uint32_t group)
{
  const Command *command = command_of(c->graph, group);
  ampc_conv d = command->conv;
  ColumnsArgs a = columns_args(&d, k->jit->real64);
  KernelArg *args = arena_array(c->arena, KernelArg, CONV_KERNEL_ARGS);
  for (uint32_t i = 0; i < a.n; i++) args[i] = (KernelArg){.role = ARG_in, .type = a.type[i]};
  k->args = (KernelArgs){args, a.n};
  k->at = command->whole.at;
  k->conv = d;
}

/* Returns an argument's rounding. A gradient is f32, but 16-bit values may be added to it. */
static DType rounded_to(const Graph *g, const KernelArg *a)
{
  const Node *n = ir_node(g, a->value);
  bool adds = a->role == ARG_grad && a->value.id && n->op == OP_grad_accumulate;
  return adds ? ir_node(g, n->in[0])->dtype : a->type;
}

static void describe_kernel(Compile *c, Jit *jit, uint32_t i)
{
  const SimtKernel *kernel = &jit->libraries.kernels[i];
  Checked *k = &jit->kernels[i];
  *k = (Checked){.name = kernel->name, .jit = jit};
  const Command *command = command_of(c->graph, kernel->group);
  if (command->columns) {
    describe_columns(c, k, kernel->group);
  } else {
    k->args = command->whole.args;
    k->at = command->whole.at;
  }
  k->scales = arena_array(c->arena, double, k->args.n + 1);
  k->rounded = arena_array(c->arena, DType, k->args.n + 1);
  for (uint32_t a = 0; a < k->args.n; a++) k->rounded[a] = rounded_to(c->graph, &k->args.at[a]);
  k->shift = shift_of(c, &k->args);
}

/* Replaces each kernel of the CPU's program by the check of the CUDA kernel with the same name. */
static ampc_status bind_kernels(Compile *c, Jit *jit)
{
  const SimtLibraries *l = &jit->libraries;
  ampc_program *p = c->program;
  ampc_kernel *kernels = arena_array(c->arena, ampc_kernel, p->n_kernels + 1);
  for (uint32_t i = 0; i < l->n; i++) {
    Checked *k = &jit->kernels[i];
    k->entry = &l->entries[i];
    if (!k->entry->name || strcmp(k->entry->name, k->name) != 0)
      return ampc_fail(AMPC_RUN_FAILED, "the tables of kernels differ at %s", k->name);
    *k->entry->context = k;
  }
  for (uint32_t i = 0, at = 0; i < p->n_kernels; i++, at++) {
    kernels[i] = p->kernels[i];
    while (at < l->n && strcmp(l->kernels[at].name, kernels[i].name) != 0) at++;
    if (at == l->n || !l->twins[i].name || strcmp(l->twins[i].name, kernels[i].name) != 0)
      return ampc_fail(AMPC_RUN_FAILED, "no CUDA kernel is called %s", kernels[i].name);
    jit->kernels[at].twin = l->twins[i].function;
    kernels[i].function = (void (*)(void))l->entries[at].enter;
  }
  p->kernels = kernels;
  totals.kernels += l->n;
  return AMPC_OK;
}

/* Describes an own op. Its CPU text may need scratch memory even if its CUDA text needs none. */
static void describe_own(Compile *c, Jit *jit, uint32_t i)
{
  const Graph *g = c->graph;
  const Group *group = &g->groups.at[jit->libraries.kernels[i].group];
  if (!group->anchor.id || !own_of(ir_node(g, group->anchor))) return;
  jit->kernels[i].own = own_of(ir_node(g, group->anchor));
  jit->kernels[i].scratch = (size_t)own_scratch(c, group);
}

static void describe_kernels(Compile *c, Jit *jit)
{
  uint32_t n = jit->libraries.n;
  jit->kernels = arena_array(c->arena, Checked, n + 1);
  simt_as_cuda(c);
  for (uint32_t i = 0; i < n; i++) describe_kernel(c, jit, i);
  simt_as_cpu(c);
  for (uint32_t i = 0; i < n; i++) describe_own(c, jit, i);
}

static ampc_status load_images(Compile *c, TextEdit *edit, void *data, Jit *jit)
{
  uint32_t n = jit->libraries.n;
  const char **names = arena_array(c->arena, const char *, n + 1);
  const PtxImage **images[PTX_TARGETS];
  for (uint32_t i = 0; i < n; i++) names[i] = jit->kernels[i].name;
  ampc_status status = ptx_load(c, edit, data, names, n, images);
  for (uint32_t i = 0; i < n && !status; i++)
    for (uint32_t t = 0; t < n_targets; t++) jit->kernels[i].images[t] = images[t][i];
  return status;
}

/* Runs the kernels that a convolution has only on CUDA: the CPU's program does not call them. */
static ampc_status check_columns(Jit *jit)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < jit->libraries.n && !status; i++) {
    if (jit->kernels[i].twin) continue;
    const ampc_conv *d = &jit->kernels[i].conv;
    void *memory[CONV_KERNEL_ARGS];
    ColumnsArgs a = columns_args(d, jit->real64);
    status = columns_fill(&a, memory);
    if (status) break;
    ConvColumns t = ampc_conv_columns(d, jit->real64);
    for (int pass = 0; pass < ampc_conv_passes(d, &t); pass++) {
      void *args[CONV_KERNEL_ARGS];
      memcpy(args, memory, sizeof args);
      ampc_conv_pass(d, &t, pass, args);
      check_launch(&jit->kernels[i], args);
    }
    static const SimtFault left = {"elements that it never writes", 0};
    if (!columns_are_written(&a, memory)) fail(&jit->kernels[i], memory, "all passes", &left);
    columns_free(memory);
  }
  return status;
}

static void no_kernel(void *const *args, unsigned block, unsigned n_blocks)
{
  (void)args, (void)block, (void)n_blocks;
}

/* Prints a hash of all that the check takes from the compiler: texts, plan, descriptions. Binds
 * kernels that do nothing. */
static ampc_status tell(Compile *c, Jit *jit)
{
  Text cuda, all, cpu;
  char key[33];
  ampc_status status = simt_texts(c, NULL, NULL, &jit->libraries, &cuda, &cpu);
  if (status) return status;
  describe_kernels(c, jit);
  text_init(&all, c->arena);
  simt_as_cuda(c);
  emit_commands(c, &all);
  simt_as_cpu(c);
  for (uint32_t i = 0; i < jit->libraries.n; i++) {
    const Checked *k = &jit->kernels[i];
    text_printf(&all, "%s %u %zu", k->name, k->shift, k->scratch);
    for (uint32_t a = 0; a < k->args.n; a++) text_printf(&all, " %d", (int)k->rounded[a]);
  }
  for (uint32_t t = 0; t < n_targets; t++) ptx_add_text(c, t, jit->libraries.n, &all);
  emit_program(c, &all, true);
  text_add(&all, cpu.at, cpu.n);
  text_add(&all, cuda.at, cuda.n);
  cache_key(all.at, all.n, "", key);
  printf("%s %s\n", key, c->options.input ? c->options.input : "");
  ampc_kernel *kernels = arena_array(c->arena, ampc_kernel, c->program->n_kernels + 1);
  for (uint32_t i = 0; i < c->program->n_kernels; i++) {
    kernels[i] = c->program->kernels[i];
    kernels[i].function = (void (*)(void))no_kernel;
  }
  c->program->kernels = kernels;
  return AMPC_OK;
}

ampc_status jit_load_edited(Compile *c, TextEdit *edit, void *data, Jit **out)
{
  Jit *jit = calloc(1, sizeof *jit);
  *out = jit;
  if (!jit) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  jit->real64 = c->options.real64;
  ampc_status status = tells ? tell(c, jit) : AMPC_OK;
  if (only_tells) return status;
  *out = NULL;
  status = simt_build(c, n_targets ? NULL : edit, data, &jit->libraries);
  if (status == AMPC_OK) {
    pthread_mutex_lock(&machine_lock); /* suites load concurrently */
    describe_kernels(c, jit);
    status = bind_kernels(c, jit);
    if (!status && n_targets) status = load_images(c, edit, data, jit);
    if (!status) status = check_columns(jit);
    pthread_mutex_unlock(&machine_lock);
  }
  if (status == AMPC_OK)
    *out = jit;
  else
    jit_unload(jit);
  return status;
}

ampc_status jit_load(Compile *c, Jit **out)
{
  return jit_load_edited(c, NULL, NULL, out);
}

bool jit_runs_cuda(const char *target)
{
  (void)target; /* the results of the CUDA text stay in memory */
  return true;
}

void jit_unload(Jit *jit)
{
  if (!jit) return;
  simt_unload(&jit->libraries);
  free(jit);
}
