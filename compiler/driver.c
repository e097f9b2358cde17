/* One compile: reads the job, parses it, runs the passes. What a pass does is in its own file. */
#include "driver.h"
#include "compiler/base/limits.h"
#include "compiler/emit/emit.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "runtime/plan/file.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The list is checked: what a pass needs must have been given by one before it. */
typedef struct Pass {
  const char *name;
  bool (*run)(Compile *c);
  uint32_t needs, gives; /* facts about the graph, IR_SHAPED ... */
  const char *why;       /* it stands at this place */
} Pass;

/* Read this array to know what ampc does. */
static const Pass passes[] = {
    {"lower", pass_lower, 0, IR_SHAPED,
     "elaborates the program; appending a node runs its shape rule"},
    {"precision", pass_precision, IR_SHAPED, IR_TYPED,
     "casts become nodes before anything is differentiated"},
    {"gradient", pass_gradient, IR_TYPED, IR_DIFFED,
     "so the derivative of a cast is a cast, and backward runs in the types of forward"},
    {"simplify", pass_simplify, IR_DIFFED, 0,
     "equal nodes shared, dead ones dropped, in forward and backward alike"},
    {"layout", pass_layout, IR_DIFFED, IR_LAID,
     "NCHW or NHWC; looks at all users of a value, backward ones too"},
    {"recompute", pass_recompute, IR_LAID, 0,
     "clones typed nodes; simplify, if it came later, would share them again"},
    {"probe", pass_probe, IR_LAID, 0,
     "looks at the values of the language; split and fuse then take them apart"},
    {"split", pass_split, IR_LAID, 0,
     "cuts long sums and rows into parts; layout says what lies side by side, and a part is a "
     "kernel's work"},
    {"fuse", pass_fuse, IR_LAID, IR_FUSED, "groups the final nodes, one command each"},
    {"memory", pass_memory, IR_FUSED, IR_PLACED, "a value inside a group needs no memory"},
    {"kernels", pass_kernels, IR_PLACED, 0,
     "the text of a kernel knows which operands lie together; the plan lists equal ones once"},
    {"plan", pass_plan, IR_PLACED, IR_PLANNED,
     "the command list that emit/ prints and the runtime walks"},
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

Compile *compile_create(const Options *options)
{
  Arena *arena = arena_create();
  Compile *c = arena_new(arena, Compile);
  c->arena = arena;
  c->options = *options;
  return c;
}

void compile_destroy(Compile *c)
{
  if (c) arena_destroy(c->arena);
}

#ifdef NDEBUG
static const bool checks_each = false; /* a tenth of the time that a large job takes */
#else
static const bool checks_each = true;
#endif

/* Stops after the first pass that leaves errors. After mistakes of syntax that is lower, which
 * elaborates what could be read and so tells what else is wrong (diag_aftermath.c). */
static bool run_passes(Compile *c, const Pass *first)
{
  for (const Pass *p = first; p < passes + PASS_COUNT; p++) {
    assert(!p->needs || (c->graph->facts & p->needs) == p->needs);
    if (!p->run(c) || diag_error_count(c)) return false; /* the pass has said why */
    c->graph->facts |= p->gives;
    bool last = p + 1 == passes + PASS_COUNT;
    if (checks_each || p == first || last)
      ir_check(c, p->name); /* aborts: a broken graph is our bug, never the user's */
    if (c->options.dump_after && strcmp(p->name, c->options.dump_after) == 0) break;
  }
  return true;
}

/* The first pass is lower, which a graph made by hand has no need of. */
bool compile_graph(Compile *c)
{
  bool good = run_passes(c, passes + 1);
  diag_finish(c);
  return good;
}

/* ---- reading ---- */

/* Into the arena, for messages quote it. A file above MAX_SOURCE is refused before it fills the
 * memory. */
const char *compile_read_file(Arena *arena, FileRole role, const char *path, uint32_t *size,
                              const char **why)
{
  char *bytes;
  int64_t n;
  *why = file_read_any(path, MAX_SOURCE, &bytes, &n);
  if (!*why && file_note_input(role, path)) {
    *why = "out of memory";
    free(bytes);
  }
  if (*why) return NULL;
  Text text;
  text_init(&text, arena);
  text_add(&text, bytes, (size_t)n);
  free(bytes);
  *size = (uint32_t)n;
  return text.at;
}

/* Spans are offsets into all sources one after the other: diag_add_source says where this one
 * begins. False also where an earlier text had mistakes: the passes then only look for more. */
static bool parse(Compile *c, const char *name, const char *text, uint32_t size, Ast *out)
{
  return ast_parse(c, diag_add_source(c, name, text, size, false), out) && !diag_error_count(c);
}

static bool parse_file(Compile *c, const char *path, const char *text, uint32_t size, Ast *out)
{
  uint32_t base = diag_add_source(c, path, text, size, false);
  c->sources.at[c->sources.n - 1].file = true;
  return ast_parse(c, base, out) && !diag_error_count(c);
}

/* An unreadable job has exit status 3, not 1: cannot_read. */
static bool parse_job(Compile *c)
{
  uint32_t size;
  const char *why, *text = compile_read_file(c->arena, FILE_JOB, c->options.input, &size, &why);
  if (text) return parse_file(c, c->options.input, text, size, &c->ast);
  diag_error(c, E211, (Span){0, 0}, "cannot read %s: %s", c->options.input, why);
  c->cannot_read = true;
  return false;
}

bool compile_parse_job(Compile *c)
{
  bool good = parse_job(c);
  diag_finish(c);
  return good;
}

/* Passes run even after mistakes of syntax, see run_passes. */
bool compile_job(Compile *c)
{
  bool good = parse_job(c);
  if (!c->cannot_read) good = run_passes(c, passes) && good;
  diag_finish(c);
  return good;
}

/* For text that is in no file: tests, and jobs that programs make. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size)
{
  assert(size <= MAX_SOURCE);
  bool good = parse(c, name, text, (uint32_t)size, &c->ast);
  good = run_passes(c, passes) && good;
  diag_finish(c);
  return good;
}

/* ---- a job that grows ---- */

bool compile_add_file(Compile *c, const char *name, const char *text, size_t size)
{
  Ast one = {0};
  bool good = parse(c, name, text, (uint32_t)size, &one);
  ast_merge(c, &c->ast, &one);
  return good;
}

/* A line at the prompt: statements may stand at the top. */
bool compile_add_input(Compile *c, const char *name, const char *text, size_t size, Ast *out)
{
  Ast one = {0};
  uint32_t base = diag_add_source(c, name, text, (uint32_t)size, false);
  bool good = ast_parse_input(c, base, &one);
  ast_merge(c, &c->ast, &one);
  if (out) *out = one;
  return good;
}

bool compile_parsed(Compile *c)
{
  bool good = run_passes(c, passes) && !diag_error_count(c);
  diag_finish(c);
  return good;
}

/* ---- imports ---- */

/* The file itself, whatever its paths are ("../b/x.amp" from two folders, a link): one that two
 * others import is one, its names are declared once, and imports in a circle end. */
static Import *find_import(Compile *c, const char *path, const struct stat *file)
{
  for (uint32_t i = 0; i < c->imports.n; i++) {
    Import *known = c->imports.at[i];
    bool same = known->device == file->st_dev && known->inode == file->st_ino;
    if (same || strcmp(known->path, path) == 0) return known;
  }
  return NULL;
}

/* The import at this very path, parsed now if it was not before. NULL with why: not there. */
static Import *open_import(Compile *c, const char *path, const char **why)
{
  struct stat file = {.st_ino = 0};
  bool there = stat(path, &file) == 0;
  Import *known = there ? find_import(c, path, &file) : NULL;
  if (known) return known;
  uint32_t size;
  const char *text = compile_read_file(c->arena, FILE_IMPORT, path, &size, why);
  if (!text) return NULL;
  Import *import = arena_new(c->arena, Import);
  import->path = path;
  import->device = file.st_dev;
  import->inode = file.st_ino;
  vec_push(c->arena, &c->imports, import);
  /* mistakes are counted; what could be read is used */
  parse_file(c, path, text, size, &import->ast);
  return import;
}

/* `path` as the file that holds `at` means it: beside that file. */
static const char *path_beside(Compile *c, const char *path, Span at)
{
  const Source *from = diag_place(c, at).source;
  const char *slash = from && path[0] != '/' ? strrchr(from->path, '/') : NULL;
  if (!slash) return path;
  return arena_printf(c->arena, "%.*s%s", (int)(slash - from->path) + 1, from->path, path);
}

const char *compile_text_file(Compile *c, const char *path, Span at, uint32_t *base, uint32_t *size)
{
  const char *why, *near = path_beside(c, path, at);
  const char *text = compile_read_file(c->arena, FILE_IMPORT, near, size, &why);
  if (!text) {
    diag_error(c, E211, at, "cannot read \"%s\": %s", near, why);
    c->cannot_read = true;
    return NULL;
  }
  *base = diag_add_source(c, near, text, *size, false);
  c->sources.at[c->sources.n - 1].file = true;
  return text;
}

/* Beside the importing file first, so that a project does not depend on -I, then in the -I folders
 * in their order. A failure names the first place. */
const Ast *compile_import(Compile *c, const char *path, Span at)
{
  const char *near = path_beside(c, path, at);
  const char *why, *other;
  Import *found = open_import(c, near, &why);
  for (uint32_t i = 0; !found && path[0] != '/' && i < c->options.n_include_dirs; i++)
    found =
        open_import(c, arena_printf(c->arena, "%s/%s", c->options.include_dirs[i], path), &other);
  if (found) return &found->ast;
  diag_error(c, E211, at, "cannot read \"%s\": %s", near, why);
  if (path[0] != '/') diag_help(c, "imports are looked for beside this file and in each -I folder");
  c->cannot_read = true;
  return NULL;
}

/* ---- lists ---- */

bool pass_exists(const char *name)
{
  for (const Pass *p = passes; p < passes + PASS_COUNT; p++)
    if (strcmp(p->name, name) == 0) return true;
  return false;
}

const char *pass_name(uint32_t i)
{
  return i < PASS_COUNT ? passes[i].name : NULL;
}

/* A pass needs and gives one fact at most. */
static const char *facts_text(uint32_t facts)
{
  static const char *const names[] = {"shaped", "typed",  "diffed", "laid",
                                      "fused",  "placed", "planned"};
  for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (facts == 1u << i) return names[i];
  assert(!facts);
  return "-";
}

void list_passes(Text *out)
{
  text_printf(out, "%-10s %-8s %-8s %s\n", "pass", "needs", "gives", "why here");
  for (const Pass *p = passes; p < passes + PASS_COUNT; p++)
    text_printf(out, "%-10s %-8s %-8s %s\n", p->name, facts_text(p->needs), facts_text(p->gives),
                p->why);
}

/* --list-ops, aligned in columns. What says its type itself is shown as "fixed". */
void list_ops(Text *out)
{
  static const char *const precision[] = {"low",   "f32",   "promote", "none", "fixed",
                                          "fixed", "fixed", "fixed",   "fixed"};
  text_printf(out, "%-22s %-9s %-74s %s\n", "op", "precision", "signature", "what it is");
  for (uint32_t i = 0; i < OP_COUNT; i++) {
    const OpInfo *op = op_row((OpKind)i);
    bool internal = op->signature.internal;
    text_printf(out, "%-22s %-9s %-74s %s\n", op->name, precision[op->precision],
                op->signature_text + internal, internal ? "(internal)" : op->doc);
  }
}
