/* Keeps the built kernels of a session by content. The key of a kernel (compiler/kernel/key.h)
 * does not change if a change elsewhere only moves numbers and lines in the kernel's text. Unknown
 * kernels are built together in one or two runs of the C compiler. The KEPT_LIBRARIES most recently
 * used libraries stay loaded. */
#include "repl.h"
#include "compiler/kernel/kernels.h"
#include "compiler/kernel/key.h"
#include "runner/jit/jit.h"
#include "runner/jit/notice.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_LIBRARIES = 32, SPLIT_FROM = 8 /* that many kernels are worth a second C compiler */ };

typedef struct Library {
  void *handle;  /* NULL: closed, the entry is free */
  uint64_t used; /* number of the last load that used the library */
} Library;

typedef struct Known {
  XXH128_hash_t key;
  ampc_cpu_kernel *function;
  uint32_t library;
} Known;

typedef struct Edit { /* `text` replaces the kernel of this name while its key is `from` */
  XXH128_hash_t from;
  char *name, *text;
  size_t size;
} Edit;

struct Kernels {
  Library *libraries;
  Known *known;
  Edit *edits;
  uint32_t n_libraries, n_known, n_edits;
  uint64_t loads; /* number of loads so far: the clock of Library.used */
};

/* Returns the memory `old` with space for one more than n elements. */
static void *grown(void *old, uint32_t n, size_t size)
{
  void *at = realloc(old, (n + 1) * size);
  if (!at) arena_out_of_memory();
  return at;
}

Kernels *kernels_create(void)
{
  Kernels *k = calloc(1, sizeof *k);
  if (!k) arena_out_of_memory();
  return k;
}

static void free_edit(Edit *e)
{
  free(e->name);
  free(e->text);
}

void kernels_free(Kernels *k)
{
  if (!k) return;
  for (uint32_t i = 0; i < k->n_libraries; i++)
    if (k->libraries[i].handle) dlclose(k->libraries[i].handle);
  for (uint32_t i = 0; i < k->n_edits; i++) free_edit(&k->edits[i]);
  free(k->libraries);
  free(k->known);
  free(k->edits);
  free(k);
}

/* ---- building ---- */

typedef struct Unit { /* some kernels of a program, built together */
  Text text;
  const char *march;
  const char *const *names;
  uint32_t n;
  void *library;
  ampc_status status;
  char error[4096];
} Unit;

/* Builds a unit; the second unit is built in another thread. */
static void *build_unit(void *arg)
{
  Unit *u = arg;
  u->status = jit_open(&u->text, u->march, u->names, u->n, &u->library);
  if (u->status) snprintf(u->error, sizeof u->error, "%s", ampc_last_error());
  return NULL;
}

/* Builds units. ampc_last_error is per thread, so the other thread's error is set again here. */
static ampc_status build_units(Unit *units, uint32_t n)
{
  pthread_t thread;
  bool two = n == 2 && pthread_create(&thread, NULL, build_unit, &units[1]) == 0;
  build_unit(&units[0]);
  if (two)
    pthread_join(thread, NULL);
  else if (n == 2)
    build_unit(&units[1]);
  for (uint32_t i = 0; i < n; i++)
    if (units[i].status) {
      for (uint32_t k = 0; k < n; k++)
        if (units[k].library) dlclose(units[k].library);
      return ampc_fail_log(units[i].status, units[i].error);
    }
  return AMPC_OK;
}

/* Adds the library of `handle` to k->libraries and returns its index. Entries of closed libraries
 * are reused. */
static uint32_t keep_library(Kernels *k, void *handle)
{
  uint32_t i = 0;
  while (i < k->n_libraries && k->libraries[i].handle) i++;
  if (i == k->n_libraries) {
    k->libraries = grown(k->libraries, k->n_libraries, sizeof *k->libraries);
    k->n_libraries++;
  }
  k->libraries[i] = (Library){handle, k->loads};
  return i;
}

/* Returns the kernel with this key; NULL: it was not built in this session, or was unloaded. The
 * pointer is valid until the next call of remember. */
static const Known *find_known(const Kernels *k, XXH128_hash_t key)
{
  for (uint32_t i = 0; i < k->n_known; i++)
    if (XXH128_isEqual(k->known[i].key, key)) return &k->known[i];
  return NULL;
}

/* Adds the kernels of the unit to k. k owns the unit's library from now on, also after a failure.
 */
static ampc_status remember(Kernels *k, const Unit *u, const XXH128_hash_t *keys)
{
  uint32_t library = keep_library(k, u->library);
  for (uint32_t i = 0; i < u->n; i++) {
    ampc_cpu_kernel *function = jit_find(u->library, u->names[i]);
    if (!function) return AMPC_RUN_FAILED;
    if (find_known(k, keys[i])) continue;
    k->known = grown(k->known, k->n_known, sizeof *k->known);
    k->known[k->n_known++] = (Known){keys[i], function, library};
  }
  return AMPC_OK;
}

/* Marks the libraries of the running program as just used, because they must stay loaded. */
static void mark_running(Kernels *k, const ampc_program *running)
{
  for (uint32_t i = 0; running && i < running->n_kernels; i++)
    for (uint32_t n = 0; n < k->n_known; n++)
      if ((void (*)(void))k->known[n].function == running->kernels[i].function)
        k->libraries[k->known[n].library].used = k->loads;
}

/* Unloads the least recently used libraries, until KEPT_LIBRARIES are left. */
static void forget_old(Kernels *k)
{
  for (;;) {
    uint32_t loaded = 0, oldest = UINT32_MAX;
    for (uint32_t i = 0; i < k->n_libraries; i++) {
      const Library *l = &k->libraries[i];
      loaded += l->handle != NULL;
      bool old = l->handle && l->used < k->loads;
      if (old && (oldest == UINT32_MAX || l->used < k->libraries[oldest].used)) oldest = i;
    }
    if (loaded <= KEPT_LIBRARIES || oldest == UINT32_MAX) return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_known; i++)
      if (k->known[i].library != oldest) k->known[n++] = k->known[i];
    k->n_known = n;
    dlclose(k->libraries[oldest].handle);
    k->libraries[oldest].handle = NULL;
  }
}

/* ---- a program ---- */

/* The kernels of a program that must be built, as parallel arrays. */
typedef struct Missing {
  Text *texts;
  const char **names;
  XXH128_hash_t *keys;
  uint32_t n;
} Missing;

/* Finds the edit of a kernel. It applies as long as the compiler emits the text that was edited. */
static Edit *find_edit(const Kernels *k, const char *name, XXH128_hash_t from)
{
  for (uint32_t i = 0; i < k->n_edits; i++) {
    Edit *e = &k->edits[i];
    if (strcmp(e->name, name) == 0 && XXH128_isEqual(e->from, from)) return e;
  }
  return NULL;
}

/* Returns the edit of kernel i, or NULL. *key: of the kernel as the compiler emits it. */
static Edit *edit_of(const Kernels *k, Compile *c, uint32_t i, XXH128_hash_t *key)
{
  *key = kernel_key(c, kernel_owner(c->graph, i));
  return find_edit(k, c->program->kernels[i].name, *key);
}

/* Builds kernels, many by two C compilers in parallel. If all kernels of a program are missing,
 * they are one text, so that `amp train` of the same job finds them in the cache. */
static ampc_status build_missing(Kernels *k, Compile *c, const Missing *m)
{
  uint32_t n_units = m->n >= SPLIT_FROM ? 2 : 1, half = n_units == 2 ? m->n / 2 : m->n;
  bool whole = m->n == c->program->n_kernels; /* as for `amp train` */
  if (whole) n_units = 1, half = m->n;
  Unit units[2];
  for (uint32_t i = 0; i < n_units; i++) {
    uint32_t from = i * half, n = i + 1 == n_units ? m->n - from : half;
    units[i] = (Unit){.march = target_march(&c->options), .names = m->names + from, .n = n};
    text_init(&units[i].text, c->arena);
    emit_unit(c, m->texts + from, m->names + from, n, &units[i].text);
  }
  notice_begin(m->n);
  ampc_status status = build_units(units, n_units);
  notice_end();
  status = jit_tell(c, status);
  for (uint32_t i = 0; i < n_units && !status; i++)
    status = remember(k, &units[i], m->keys + i * half);
  return status;
}

/* Builds missing kernels before it changes the program, so a failure leaves the program unchanged.
 */
ampc_status kernels_load(Kernels *k, Compile *c, const ampc_program *running)
{
  ampc_program *p = c->program;
  ampc_kernel *kernels = arena_array(c->arena, ampc_kernel, p->n_kernels + 1);
  XXH128_hash_t *keys = arena_array(c->arena, XXH128_hash_t, p->n_kernels + 1);
  Missing m = {arena_array(c->arena, Text, p->n_kernels + 1),
               arena_array(c->arena, const char *, p->n_kernels + 1),
               arena_array(c->arena, XXH128_hash_t, p->n_kernels + 1), 0};
  k->loads++;
  for (uint32_t i = 0; i < p->n_kernels; i++) {
    const Edit *e = edit_of(k, c, i, &keys[i]);
    if (e) keys[i] = XXH3_128bits(e->text, e->size);
    if (find_known(k, keys[i])) continue;
    m.texts[m.n] = text_new(c->arena);
    if (e)
      text_add(&m.texts[m.n], e->text, e->size);
    else
      emit_kernel(c, i, &m.texts[m.n]);
    m.names[m.n] = p->kernels[i].name;
    m.keys[m.n++] = keys[i];
  }
  ampc_status status = m.n ? build_missing(k, c, &m) : AMPC_OK;
  for (uint32_t i = 0; i < p->n_kernels && !status; i++) {
    const Known *found = find_known(k, keys[i]);
    kernels[i] = p->kernels[i];
    kernels[i].function = (void (*)(void))found->function;
    k->libraries[found->library].used = k->loads;
  }
  if (!status) p->kernels = kernels;
  mark_running(k, running);
  forget_old(k);
  return status;
}

/* ---- edits ---- */

bool kernels_is_edited(const Kernels *k, Compile *c, uint32_t kernel)
{
  XXH128_hash_t key;
  return edit_of(k, c, kernel, &key) != NULL;
}

void kernels_check_edits(Kernels *k, Compile *c)
{
  for (uint32_t i = 0; i < k->n_edits;) {
    bool holds = false;
    for (uint32_t n = 0; n < c->program->n_kernels && !holds; n++)
      holds =
          strcmp(c->program->kernels[n].name, k->edits[i].name) == 0 && kernels_is_edited(k, c, n);
    if (holds) {
      i++;
      continue;
    }
    printf("the edited text of %s no longer runs: the emitted text has changed\n",
           k->edits[i].name);
    free_edit(&k->edits[i]);
    k->edits[i] = k->edits[--k->n_edits];
  }
}

static void drop_edit(Kernels *k, const char *name, XXH128_hash_t from)
{
  Edit *e = find_edit(k, name, from);
  if (!e) return;
  free_edit(e);
  *e = k->edits[--k->n_edits];
}

/* Returns the text with #line directives, so that the C compiler's messages refer to the edited
 * file. `path` contains no character that a C string must escape. */
static Text with_lines(Compile *c, const Text *text, const char *name, const char *path)
{
  Text out = text_new(c->arena);
  text_printf(&out, "#line 1 \"%s\"\n", path);
  text_add(&out, text->at, text->n);
  text_printf(&out, "\n#line 1 \"the call of %s\"\n", name);
  return out;
}

/* Replaces a text. First compiles the edited one alone, so that one with errors changes nothing. */
bool kernels_edit(Kernels *k, Compile *c, uint32_t kernel, const char *path, const char *text,
                  size_t size)
{
  const char *name = c->program->kernels[kernel].name;
  Text original = text_new(c->arena);
  emit_kernel(c, kernel, &original);
  XXH128_hash_t from = kernel_key(c, kernel_owner(c->graph, kernel));
  Unit unit = {.march = target_march(&c->options), .names = &name, .n = 1};
  Text edited = text_new(c->arena);
  text_add(&edited, text, size);
  Text lines = with_lines(c, &edited, name, path);
  text_init(&unit.text, c->arena);
  emit_unit(c, &lines, &name, 1, &unit.text);
  XXH128_hash_t key = XXH3_128bits(text, size);
  k->loads++;
  if (build_units(&unit, 1) || remember(k, &unit, &key)) return false;
  drop_edit(k, name, from);
  if (size == original.n && memcmp(text, original.at, size) == 0) return true; /* not changed */
  k->edits = grown(k->edits, k->n_edits, sizeof *k->edits);
  k->edits[k->n_edits] = (Edit){from, strdup(name), strndup(text, size), size};
  if (!k->edits[k->n_edits].name || !k->edits[k->n_edits].text) arena_out_of_memory();
  k->n_edits++;
  return true;
}
