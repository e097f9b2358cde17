/* Commands that print the code of the program: graph, casts, kernels, and the writer of a line. */
#include "commands.h"
#include "compiler/command/command.h"
#include "compiler/kernel/kernels.h"
#include "compiler/graph/ir.h"
#include "common/number.h"
#include "common/terminal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a graph. Compiles again up to the pass, because later passes change graphs in place. */
bool command_graph(Repl *r, const char *arg)
{
  const char *pass = *arg ? arg : "simplify";
  if (!pass_exists(pass)) {
    Text names = text_new(r->arena);
    for (uint32_t i = 0; pass_name(i); i++) text_printf(&names, " %s", pass_name(i));
    return repl_error(r, "no pass %s; the passes are%s", pass, names.at);
  }
  Compiled *p = program_compile(r, &(Request){.dump_after = arena_strdup(r->arena, pass)});
  if (!p) return false;
  Text text = text_new(p->c->arena);
  ir_print(p->c, &text, true);
  fwrite(text.at, 1, text.n, stdout);
  compiled_drop(p);
  return true;
}

/* ---- casts ---- */

/* Returns the name by which the user knows n: the path of a parameter, or the variable that holds
 * the value; NULL: neither. */
static const char *name_of(const Graph *g, const Node *n)
{
  const Parameter *p = ir_parameter(g, n);
  return p ? p->path : n->name;
}

/* Whether a cast matches the pattern, by the name of its input or of its result. */
static bool is_wanted(const Graph *g, const Node *cast, const char *pattern)
{
  if (!*pattern) return true;
  const char *from = name_of(g, ir_node(g, cast->in[0])), *to = name_of(g, cast);
  return (from && path_matches(pattern, from)) || (to && path_matches(pattern, to));
}

/* Adds a cast. Its place is "-" if it comes from no line of the user's files. */
static void add_cast(Compile *c, const Node *n, Table *t)
{
  const Node *from = ir_in(c, n, 0);
  Span span = diag_user_span(c, n->span);
  Place at = span.end ? diag_place(c, span) : (Place){0};
  const char *name = name_of(c->graph, from), *place = "-";
  const char *slash = at.source ? strrchr(at.source->shown, '/') : NULL;
  if (at.source)
    place = arena_printf(c->arena, "%s:%u:%u", slash ? slash + 1 : at.source->shown, at.line,
                         at.column);
  const char *types =
      arena_printf(c->arena, "%s -> %s", ir_type_text(c, from), ir_dtype_name(n->dtype));
  TABLE_ROW(t, 0, {place}, {name ? name : op_of(from)->name}, {types}, {ir_why_text(c, n)});
}

/* Prints casts by block and returns their number. Only the first variant of a block is listed,
 * because the others have the same casts. */
static uint32_t print_casts(Compile *c, const char *pattern)
{
  const Graph *g = c->graph;
  uint32_t found = 0;
  Table t;
  table_open(&t, c->arena, NULL, &c->options.view, "place:!1<14|value:key<12|cast:<14|reason:<24");
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    const BlockInfo *block = &g->blocks.at[b];
    uint32_t before = found;
    for (uint32_t i = 1; i < g->nodes.n && block->variant_of < 0; i++) {
      const Node *n = &g->nodes.at[i];
      if (!op_has(n, T_casts) || n->block != b || !is_wanted(g, n, pattern)) continue;
      add_cast(c, n, &t);
      found++;
    }
    if (found == before) continue;
    table_say(&t, 2, "block %s", block->name);
    table_put(&t);
  }
  table_close(&t);
  return found;
}

bool command_casts(Repl *r, const char *arg)
{
  Compiled *p = program_compile(r, &(Request){.dump_after = "precision"});
  if (!p) return false;
  uint32_t found = print_casts(p->c, arg);
  compiled_drop(p);
  if (!found && *arg) return repl_error(r, "no cast of %s", arg);
  printf("%u cast%s\n", found, found == 1 ? "" : "s");
  return true;
}

/* ---- kernels ---- */

/* Finds the kernel that the command of this name launches. Commands may share a kernel. */
static bool find_command(const ampc_step *s, const char *name, uint32_t *out)
{
  for (uint32_t i = 0; i < s->n_commands; i++) {
    const ampc_command *k = &s->commands[i];
    if (k->kind != AMPC_LAUNCH_KERNEL || strcmp(k->label, name) != 0) continue;
    *out = k->as.launch.kernel;
    return true;
  }
  return false;
}

/* Finds the kernel of the command of this name, or the kernel of this name, or the only kernel
 * whose name contains it: "silu" for net_silu. */
bool kernel_find(Repl *r, const ampc_program *p, const char *name, uint32_t *out)
{
  uint32_t found = 0;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++)
      if (find_command(&p->blocks[b].variant[v], name, out)) return true;
  for (uint32_t i = 0; i < p->n_kernels; i++) {
    if (!strstr(p->kernels[i].name, name)) continue;
    *out = i;
    if (strcmp(p->kernels[i].name, name) == 0) return true;
    found++;
  }
  if (found == 1) return true;
  if (found) return repl_error(r, "%s matches %u kernels; :kernel lists them", name, found);
  return repl_error(r, "no kernel %s; :kernel lists them", name);
}

/* Adds the comment line at s and its continuation lines, without the comment signs. */
static void put_title(Text *out, const char *s)
{
  static const char next[] = "\n//     ";
  do {
    s += strspn(s, "\n/ ");
    size_t size = strcspn(s, "\n");
    text_printf(out, "%s%.*s", out->n ? " " : "", (int)size, s);
    s += size;
  } while (strncmp(s, next, strlen(next)) == 0);
}

/* Prints the title of each kernel's text, a comment with the values that it computes and their
 * lines. */
static void list_kernels(Repl *r, Compile *c)
{
  Text out = text_new(c->arena);
  for (uint32_t i = 0; i < c->program->n_kernels; i++) {
    Text text = text_new(c->arena);
    Text title = text_new(c->arena);
    emit_kernel(c, i, &text);
    put_title(&title, text.at);
    if (kernels_is_edited(r->kernels, c, i)) text_puts(&title, "  (edited)");
    text_wrap(&out, title.at, 4, line_columns());
    text_puts(&out, "\n");
  }
  fputs(out.at, stdout);
}

/* Prints the lines of a kernel, numbered as in the whole text. */
static void print_kernel(Compile *c, const char *name)
{
  Text text = text_new(c->arena);
  emit_kernels(c, &text);
  const char *head = arena_printf(c->arena, "// %s", name);
  size_t n = strlen(head);
  uint32_t line = 1;
  bool inside = false;
  for (const char *s = text.at; *s; line++) {
    size_t size = strcspn(s, "\n");
    bool own = strncmp(s, head, n) == 0 && strchr(":,\n", s[n]);
    if (own) inside = true;
    if (inside) printf("%5u  %.*s\n", line, (int)size, s);
    if (inside && strncmp(s, "}", 1) == 0 && s[size] == '\n' && s[size + 1] == '\n') return;
    s += size + (s[size] == '\n');
  }
}

/* Runs :kernel | :kernel NAME | :kernel NAME edit | :kernel NAME reload. */
bool command_kernel(Repl *r, const char *arg)
{
  Compiled *p = program_latest(r);
  if (!p) return false;
  if (!*arg) {
    list_kernels(r, p->c);
    return true;
  }
  size_t n = strcspn(arg, " \t");
  const char *name = arena_strndup(p->c->arena, arg, n), *verb = arg + n + strspn(arg + n, " \t");
  uint32_t kernel;
  if (!kernel_find(r, p->c->program, name, &kernel)) return false;
  if (strcmp(verb, "edit") == 0) return kernel_edit(r, kernel);
  if (strcmp(verb, "reload") == 0) return kernel_reload(r, kernel);
  if (*verb) return repl_error(r, ":kernel %s %s: expected edit or reload", name, verb);
  print_kernel(p->c, p->c->program->kernels[kernel].name);
  if (kernels_is_edited(r->kernels, p->c, kernel))
    puts("this is the emitted text; the edited text runs");
  return true;
}

/* Runs :blame. The text is emitted again, because the printer remembers which source line wrote a
 * line only for the last emitted text. */
bool command_blame(Repl *r, const char *arg)
{
  Compiled *p = program_latest(r);
  int64_t line;
  if (!p) return false;
  if (!ampc_read_count(arg, 1, UINT32_MAX, &line))
    return repl_error(r, ":blame needs a line number, as :kernel NAME shows them");
  Text text = text_new(p->c->arena);
  emit_kernels(p->c, &text);
  const char *writer = emit_blame(p->c, (uint32_t)line), *s = text.at;
  if (!writer) return repl_error(r, "the kernels' text has no line %lld", (long long)line);
  for (int64_t i = 1; i < line; i++) s += strcspn(s, "\n") + 1;
  printf("%lld: %.*s\nwritten by %s\n", (long long)line, (int)strcspn(s, "\n"), s, writer);
  return true;
}
