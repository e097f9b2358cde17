/* One compile: reads the job, parses it, runs the passes. The file of each pass explains it. */
#include "driver.h"
#include "compiler/base/limits.h"
#include "compiler/kernel/kernels.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "compiler/syntax/source.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A pass. run_passes() asserts that earlier passes have established the facts that it needs. */
typedef struct Pass {
  const char *name;
  bool (*run)(Compile *c);
  uint32_t needs, gives; /* facts about the graph: IR_SHAPED .. */
  const char *why;       /* the reason for its place in the list */
} Pass;

/* Read this array to know what ampc does. */
static const Pass passes[] = {
    {"lower", pass_lower, 0, IR_SHAPED,
     "elaborates the program; appending a node runs its shape rule"},
    {"members", pass_members, IR_SHAPED, 0,
     "shares out samples; sums over members are differentiated like other ops"},
    {"precision", pass_precision, IR_SHAPED, IR_TYPED,
     "casts become nodes before anything is differentiated"},
    {"gradient", pass_gradient, IR_TYPED, IR_DIFFED,
     "so the derivative of a cast is a cast, and backward runs in the types of forward"},
    {"simplify", pass_simplify, IR_DIFFED, 0,
     "equal nodes shared, dead ones dropped, in forward and backward alike"},
    {"decode", pass_decode, IR_DIFFED, 0,
     "derives a program for single tokens from typed nodes; simplify has left one of each"},
    {"layout", pass_layout, IR_DIFFED, IR_LAID,
     "NCHW or NHWC; looks at all users of a value, backward ones too"},
    {"recompute", pass_recompute, IR_LAID, 0,
     "clones typed nodes; simplify, if it came later, would share them again"},
    {"probe", pass_probe, IR_LAID, 0,
     "measures the values of the language, before split and fuse take them apart"},
    {"split", pass_split, IR_LAID, 0,
     "cuts long sums and rows into parts: after layout, which decides what is adjacent, and before "
     "fuse, which makes each part a kernel"},
    {"fuse", pass_fuse, IR_LAID, IR_FUSED, "groups the final nodes, one command each"},
    {"memory", pass_memory, IR_FUSED, IR_PLACED, "a value inside a group needs no memory"},
    {"commands", pass_commands, IR_PLACED, IR_COMMANDS,
     "all that follows from types, shapes and places is decided once for each group"},
    {"kernels", pass_kernels, IR_COMMANDS, 0,
     "the text of a kernel depends on where its operands are; plan lists equal kernels once"},
    {"plan", pass_plan, IR_COMMANDS, IR_PLANNED,
     "the command list that program/ prints and the runtime walks"},
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

#ifdef NDEBUG
static const bool checks_each = false; /* it takes a tenth of the time of a large compile */
#else
static const bool checks_each = true;
#endif

/* Runs the passes from `first` on. Stops after the first pass after which there are errors. After
 * syntax errors this is pass lower: it elaborates the text that could be parsed, and so finds
 * further errors (diag_aftermath.c). */
static bool run_passes(Compile *c, const Pass *first)
{
  templates_check();
  for (const Pass *p = first; p < passes + PASS_COUNT; p++) {
    assert(!p->needs || (c->graph->facts & p->needs) == p->needs);
    if (!p->run(c) || diag_error_count(c)) return false; /* the pass has reported an error */
    c->graph->facts |= p->gives;
    bool last = p + 1 == passes + PASS_COUNT;
    if (checks_each || p == first || last)
      ir_check(c, p->name); /* aborts: a broken graph is a bug of the compiler */
    if (c->options.dump_after && strcmp(p->name, c->options.dump_after) == 0) break;
  }
  return true;
}

/* The first pass is lower. A graph that was built by hand does not need it. */
bool compile_graph(Compile *c)
{
  bool good = run_passes(c, passes + 1);
  diag_finish(c);
  return good;
}

/* ---- reading ---- */

/* Replaces the job's `precision` by options.precision. */
static bool set_precision(Compile *c)
{
  const char *text = c->options.precision;
  Ast one = {0};
  bool good = !text || source_parse(c, "<precision>", text, (uint32_t)strlen(text), &one);
  ast_merge(c, c->ast, &one);
  return good;
}

/* Reads and parses the job. Sets c->cannot_read, for exit status 3, if it cannot be read. */
static bool parse_job(Compile *c)
{
  uint32_t size;
  const char *why, *text = source_text_of(c, FILE_JOB, c->options.input, &size, &why);
  if (text) return source_parse_file(c, c->options.input, text, size, c->ast) && set_precision(c);
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

/* The passes run even after syntax errors: see run_passes(). */
bool compile_job(Compile *c)
{
  bool good = parse_job(c);
  if (!c->cannot_read) good = run_passes(c, passes) && good;
  diag_finish(c);
  return good;
}

/* Used for text without a file: tests, and jobs that programs generate. */
bool compile_text(Compile *c, const char *name, const char *text, size_t size)
{
  assert(size <= MAX_SOURCE);
  bool good = source_parse(c, name, text, (uint32_t)size, c->ast);
  good = run_passes(c, passes) && good;
  diag_finish(c);
  return good;
}

/* ---- a job that grows ---- */

bool compile_add_file(Compile *c, const char *name, const char *text, size_t size)
{
  Ast one = {0};
  bool good = source_parse(c, name, text, (uint32_t)size, &one);
  ast_merge(c, c->ast, &one);
  return good;
}

/* In `amp repl`, statements may be at the top level. */
bool compile_add_input(Compile *c, const char *name, const char *text, size_t size, Ast *out)
{
  Ast one = {0};
  uint32_t base = diag_add_source(c, name, text, (uint32_t)size, false);
  bool good = ast_parse_input(c, base, &one);
  ast_merge(c, c->ast, &one);
  if (out) *out = one;
  return good;
}

bool compile_parsed(Compile *c)
{
  bool good = run_passes(c, passes) && !diag_error_count(c);
  diag_finish(c);
  return good;
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

/* Returns the name of the fact that a pass needs or establishes: at most one each. */
static const char *facts_text(uint32_t facts)
{
  static const char *const names[] = {"shaped", "typed",  "diffed",   "laid",
                                      "fused",  "placed", "commands", "planned"};
  for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (facts == 1u << i) return names[i];
  assert(!facts);
  return "-";
}

void list_passes(const TableView *view, Text *out)
{
  Table t;
  table_open(&t, out->arena, out, view, "pass|needs|gives|why here:<20");
  for (const Pass *p = passes; p < passes + PASS_COUNT; p++)
    TABLE_ROW(&t, 0, {p->name}, {facts_text(p->needs)}, {facts_text(p->gives)}, {p->why});
  table_put(&t);
}

/* An op with a type rule of its own is listed as "fixed". */
void list_ops(const TableView *view, Text *out)
{
  static const char *const precision[] = {"low",   "f32",   "promote", "none", "fixed",
                                          "fixed", "fixed", "fixed",   "fixed"};
  Table t;
  table_open(&t, out->arena, out, view, "op:<16|precision|signature:<24|what it is:<20");
  for (uint32_t i = 0; i < OP_COUNT; i++) {
    const OpInfo *op = op_row((OpKind)i);
    bool internal = op->signature.internal;
    TABLE_ROW(&t, 0, {op->name}, {precision[op->precision]}, {op->signature_text + internal},
              {internal ? "(internal)" : op->doc});
  }
  table_put(&t);
}
