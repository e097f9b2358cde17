/* Builds two instrumented libraries from a compiled job: see build.h. */
#include "build.h"
#include "ptx.h"
#include "compiler/kernel/kernels.h"
#include "compiler/kernel/key.h"
#include "runner/jit/toolchain.h"
#include "runtime/base/cache.h"
#include <dlfcn.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The compiler's flags: the arithmetic of toolchain.c without optimization. Accesses stay in the
 * order of the text, calls stay calls (so that two calls of a barrier are two places), and no code
 * is duplicated. The CPU text keeps its block index in _Thread_local variables. Its inline assembly
 * for vectors of f16 is left out: its accesses would not be seen. */
#define FLAGS                                                                                      \
  "-O0 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -std=gnu11 -w -fPIC "    \
  "-U__AVX512F__ -U__F16C__ "                                                                      \
  "-fsanitize=thread '-D_Thread_local=__attribute__((section(\"simt_own\")))'"

extern char **environ;

/* Makes the commands for the target. Commands that share a kernel on the CPU share it on CUDA. */
void simt_use_target(Compile *c, const char *target)
{
  Graph *g = c->graph;
  const Command *before = g->commands;
  c->options.target = target;
  g->commands = commands_make(c);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (before[i].kernel == i || !g->commands[i].kernel_name) continue;
    g->commands[i].kernel = before[i].kernel;
    g->commands[i].kernel_name = g->commands[before[i].kernel].kernel_name;
  }
}

void simt_as_cuda(Compile *c)
{
  simt_use_target(c, "sm_80");
}

void simt_as_cpu(Compile *c)
{
  simt_use_target(c, "cpu");
}

/* ---- texts ---- */

static ampc_status add_prelude(Text *out)
{
  FILE *f = fopen(SIMT_PRELUDE, "rb");
  if (!f) return ampc_fail(AMPC_RUN_FAILED, "cannot open " SIMT_PRELUDE);
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) text_add(out, part, n);
  fclose(f);
  return AMPC_OK;
}

static void add_bounds(Text *out, const char *section)
{
  text_printf(out,
              "extern char __start_%s[], __stop_%s[];\n"
              "static __attribute__((section(\"%s\"), used)) long long %s_first;\n"
              "char *const %s_bounds[] = {__start_%s, __stop_%s};\n",
              section, section, section, section, section, section, section);
}

/* Writes an entry. Several threads call it at the same time, so it must not call the hooks. */
static void add_entry(Text *out, const SimtKernel *k)
{
  text_puts(out, "__attribute__((no_sanitize(\"thread\")))\n");
  text_printf(out, "static void %s_thread(void *const *a) { %s(", k->name, k->name);
  for (uint32_t i = 0; i < k->n_args; i++)
    text_printf(out, "%s%sa[%u]", i ? ", " : "", k->number[i] ? "(unsigned)(unsigned long)" : "",
                i);
  text_printf(out,
              "); }\nstatic void *%s_context;\n__attribute__((no_sanitize(\"thread\")))\n"
              "static void %s_enter(void *const *a, unsigned block, unsigned n_blocks)\n"
              "{ simt_enter(%s_context, a, block, n_blocks); }\n",
              k->name, k->name, k->name);
}

static void add_table(Text *out, const SimtLibraries *l)
{
  text_puts(out, "\nvoid simt_enter(void *, void *const *, unsigned, unsigned);\n");
  add_bounds(out, "simt_shared");
  for (uint32_t k = 0; k < l->n; k++) add_entry(out, &l->kernels[k]);
  text_puts(out, "const struct {\n  const char *name;\n  void (*thread)(void *const *);\n"
                 "  void (*enter)(void *const *, unsigned, unsigned);\n  void **context;\n"
                 "} simt_kernels[] = {\n");
  for (uint32_t k = 0; k < l->n; k++) {
    const char *name = l->kernels[k].name;
    text_printf(out, "{\"%s\", %s_thread, %s_enter, &%s_context},\n", name, name, name, name);
  }
  text_puts(out, "{0, 0, 0, 0}};\n");
}

/* Lists the CPU's kernels and those that exist only on CUDA. */
static void list_kernels(Compile *c, SimtLibraries *out)
{
  SimtKernel *kernels = arena_array(c->arena, SimtKernel, c->graph->groups.n);
  for (uint32_t i = 1; i < c->graph->groups.n; i++) {
    const Command *own = command_of(c->graph, i);
    const KernelArgs *args = &own->whole.args;
    if (!command_owns_kernel(c->graph, i)) continue;
    bool *number = arena_array(c->arena, bool, own->n_args + 1);
    for (uint32_t k = 0; k < args->n; k++) number[k] = args->at[k].role == ARG_stream;
    kernels[out->n++] = (SimtKernel){own->kernel_name, i, own->n_args, number};
  }
  out->kernels = kernels;
}

/* Checks that commands that share a kernel have kernels with equal texts. On CUDA, this also shows
 * that checking one of them is enough. */
static ampc_status check_shared(Compile *c)
{
  const Graph *g = c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Command *k = command_of(g, i), *first = command_of(g, k->kernel);
    if (first != k && !XXH128_isEqual(kernel_text_key(c, i), kernel_text_key(c, k->kernel)))
      return ampc_fail(AMPC_RUN_FAILED, "%s and %s share a kernel and have different ones on %s",
                       first->name, k->name, c->options.target);
  }
  return AMPC_OK;
}

/* True if both groups have the same ops, whose operands have the same types. A kernel of bools may
 * have the text of one of bytes. */
static bool same_ops(Compile *c, const Group *a, const Group *b)
{
  const Graph *g = c->graph;
  bool same = a->n == b->n;
  for (uint32_t i = 0; i < a->n && same; i++) {
    const Node *x = ir_node(g, a->nodes[i]), *y = ir_node(g, b->nodes[i]);
    same = x->op == y->op && x->n_in == y->n_in;
    for (uint32_t k = 0; k < x->n_in && same; k++)
      same = ir_in(c, x, k)->dtype == ir_in(c, y, k)->dtype;
  }
  return same;
}

/* Checks that kernels with equal texts are shared, if their ops are the same. */
static ampc_status check_separate(Compile *c)
{
  const Graph *g = c->graph;
  XXH128_hash_t *keys = arena_array(c->arena, XXH128_hash_t, g->groups.n);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!command_owns_kernel(g, i)) continue;
    keys[i] = kernel_text_key(c, i);
    for (uint32_t k = 1; k < i; k++)
      if (command_owns_kernel(g, k) && XXH128_isEqual(keys[k], keys[i]) &&
          same_ops(c, &g->groups.at[k], &g->groups.at[i]))
        return ampc_fail(AMPC_RUN_FAILED, "the kernels %s and %s are equal", command_of(g, k)->name,
                         command_of(g, i)->name);
  }
  return AMPC_OK;
}

/* Writes a macro for each type that an op's text converts to: `y_t(x)` is C++ only. The macro
 * leaves the type as it is unless a parenthesis follows. */
static void types_as_calls(const Text *cuda, Text *out)
{
  for (const char *line = cuda->at, *next; *line; line = next) {
    const char *end = strchrnul(line, '\n'), *name = end;
    next = *end ? end + 1 : end;
    text_add(out, line, (size_t)(next - line));
    if (strncmp(line, "  typedef ", 10) != 0 || strncmp(end - 3, "_t;", 3) != 0) continue;
    while (name[-1] != ' ') name--;
    int n = (int)(end - 1 - name);
    text_printf(out, "#define %.*s(x) ((%.*s)(x))\n", n, name, n, name);
  }
}

static ampc_status cuda_text(Compile *c, TextEdit *edit, void *data, SimtLibraries *l, Text *out)
{
  ampc_status status = add_prelude(out);
  Text kernels, calls;
  text_init(&kernels, c->arena);
  text_init(&calls, c->arena);
  if (!status) status = check_shared(c);
  if (!status) status = check_separate(c);
  simt_as_cuda(c);
  list_kernels(c, l);
  emit_some_kernels(c, 0, l->n, &kernels);
  if (!status) status = check_shared(c);
  simt_as_cpu(c);
  if (edit) edit(&kernels, data);
  ptx_as_calls(&kernels, &calls);
  types_as_calls(&calls, out);
  add_table(out, l);
  return status;
}

/* Finds the term E of a sum, "s[j] += E;" or "ROW_PUT(s_part) += E;", in the line [line, end). */
static const char *term_in(const char *line, const char *end)
{
  static const char add[] = " += ";
  const char *at = memmem(line, (size_t)(end - line), add, sizeof add - 1);
  if (!at || at == line || end[-1] != ';' || (at[-1] != ']' && at[-1] != ')')) return NULL;
  return at + sizeof add - 1;
}

/* A CUDA thread loads a whole vector. On the CPU a vector is a pointer, and elements in branches
 * that are not taken are not read. This macro reads all of its elements. */
static const char load_head[] = "#define VECTOR_LOAD(";
static const char eager_load[] =
    "#define VECTOR_LOAD(n, T, name, from) T *const name = (T *)(from); "
    "for (int at = 0; at < vector_width; at++) (void)*(volatile const T *)(name + at)\n";

/* Makes the CPU text; with simt_no_signs, sums add absolute values: Note [bounds] in compare.c. */
static void cpu_text(Compile *c, Text *out)
{
  Text plain;
  text_init(&plain, c->arena);
  emit_kernels(c, &plain);
  text_puts(out, "__attribute__((section(\"simt_own\"))) int simt_no_signs;\n"
                 "#define TERM(x) (simt_no_signs && (x) < 0 ? -(x) : (x))\n");
  for (const char *line = plain.at, *next; *line; line = next) {
    const char *end = strchrnul(line, '\n'), *term = term_in(line, end);
    next = *end ? end + 1 : end;
    if (strncmp(line, load_head, strlen(load_head)) == 0)
      text_puts(out, eager_load);
    else if (term)
      text_printf(out, "%.*sTERM(%.*s);\n", (int)(term - line), line, (int)(end - 1 - term), term);
    else
      text_add(out, line, (size_t)(next - line));
  }
  add_bounds(out, "simt_own");
}

/* ---- building ---- */

typedef struct Build {
  char folder[64];
  pid_t child; /* 0: none */
  Cache cache;
  char path[CACHE_PATH];  /* the library in the cache */
  char fresh[CACHE_PATH]; /* the library while it is built */
} Build;

/* Starts the compiler. The library gets its hooks from this program, not from the sanitizer. */
static ampc_status start_compiler(Build *b, const Toolchain *t, const Text *text)
{
  char path[96], command[2 * CACHE_PATH];
  snprintf(b->folder, sizeof b->folder, "/tmp/simt-XXXXXX");
  if (!mkdtemp(b->folder)) return ampc_fail(AMPC_RUN_FAILED, "cannot make a folder in /tmp");
  snprintf(path, sizeof path, "%s/kernels.c", b->folder);
  FILE *f = fopen(path, "wb");
  bool written = f && fwrite(text->at, 1, text->n, f) == text->n;
  if (f) written &= fclose(f) == 0;
  if (!written) return ampc_fail(AMPC_RUN_FAILED, "cannot write %s", path);
  snprintf(command, sizeof command,
           "cd %s && %s " FLAGS " -c kernels.c && %s -shared kernels.o -o '%s' -lm", b->folder,
           t->compiler, t->compiler, b->fresh);
  char *argv[] = {"sh", "-c", command, NULL};
  if (posix_spawn(&b->child, "/bin/sh", NULL, NULL, argv, environ) != 0)
    return ampc_fail(AMPC_RUN_FAILED, "cannot run /bin/sh");
  return AMPC_OK;
}

/* Looks into the cache of kernels, and starts the compiler if it has no library of this text. */
static ampc_status start_build(Build *b, const Toolchain *t, const Text *text)
{
  char key[33];
  ampc_status status = cache_open(&b->cache);
  if (status) return status;
  cache_key(text->at, text->n, t->identity, key);
  cache_key(key, strlen(key), FLAGS, key);
  cache_path(&b->cache, key, "so", b->path);
  if (!b->cache.temporary && !getenv("SIMT_KEEP") && cache_has(b->path)) return AMPC_OK;
  status = cache_begin(&b->cache, b->fresh);
  return status ? status : start_compiler(b, t, text);
}

static void remove_texts(const Build *b)
{
  static const char *const files[] = {"kernels.c", "kernels.o"};
  char path[96];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", b->folder, files[i]);
    if (!getenv("SIMT_KEEP")) unlink(path);
  }
  rmdir(b->folder);
}

static ampc_status finish_build(Build *b, void **library)
{
  int status = 0;
  if (b->child) waitpid(b->child, &status, 0);
  if (status == 0) *library = dlopen(b->child ? b->fresh : b->path, RTLD_NOW | RTLD_LOCAL);
  ampc_status result = AMPC_OK;
  if (status) result = ampc_fail(AMPC_NO_COMPILER, "cc refuses the kernels");
  if (!status && !*library)
    result = ampc_fail(AMPC_NO_COMPILER, "the kernels cannot be loaded: %s", dlerror());
  if (b->child && (result || b->cache.temporary || cache_keep(b->fresh, b->path) != AMPC_OK))
    unlink(b->fresh);
  if (b->child) remove_texts(b);
  cache_close(&b->cache);
  return result;
}

static ampc_status build_both(const Text *cuda, const Text *cpu, SimtLibraries *out)
{
  const Toolchain *t;
  Build a = {.child = 0}, b = {.child = 0};
  ampc_status status = toolchain_find(&t);
  if (status) return status;
  ampc_status first = start_build(&a, t, cuda), second = start_build(&b, t, cpu);
  if (!first) first = finish_build(&a, &out->cuda);
  if (!second) second = finish_build(&b, &out->cpu);
  return first ? first : second;
}

static void find_bounds(void *library, const char *name, char **out, size_t *out_size)
{
  char *const *bounds = dlsym(library, name);
  if (!bounds) abort();
  *out = bounds[0];
  *out_size = (size_t)(bounds[1] - bounds[0]);
}

ampc_status simt_texts(Compile *c, TextEdit *edit, void *data, SimtLibraries *out, Text *cuda,
                       Text *cpu)
{
  *out = (SimtLibraries){0};
  text_init(cuda, c->arena);
  text_init(cpu, c->arena);
  ampc_status status = cuda_text(c, edit, data, out, cuda);
  if (!status) cpu_text(c, cpu);
  return status;
}

ampc_status simt_build(Compile *c, TextEdit *edit, void *data, SimtLibraries *out)
{
  Text cuda, cpu;
  ampc_status status = simt_texts(c, edit, data, out, &cuda, &cpu);
  if (!status) status = build_both(&cuda, &cpu, out);
  if (status) return status;
  out->entries = dlsym(out->cuda, "simt_kernels");
  out->twins = dlsym(out->cpu, "ampc_jit_kernels");
  out->no_signs = dlsym(out->cpu, "simt_no_signs");
  if (!out->entries || !out->twins || !out->no_signs)
    return ampc_fail(AMPC_RUN_FAILED, "no table of kernels");
  find_bounds(out->cuda, "simt_shared_bounds", &out->shared, &out->shared_size);
  find_bounds(out->cpu, "simt_own_bounds", &out->own, &out->own_size);
  return AMPC_OK;
}

void simt_unload(SimtLibraries *l)
{
  if (l->cuda) dlclose(l->cuda);
  if (l->cpu) dlclose(l->cpu);
}
