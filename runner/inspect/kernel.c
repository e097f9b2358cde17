/* `amp inspect --kernel NAME`: prints the emitted text, the lines of the job that it computes, and
 * its PTX. They are side by side if the terminal is wide enough, else one below the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ampc_rt.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/kernel/kernels.h"
#include "inspect.h"
#include "common/terminal.h"
#include "compiler/cli/option_table.h"

enum { NARROWEST = 60 /* smallest width of a side, in columns */ };

/* ---- finding ---- */

/* Finds the command of this name, or the only one whose name contains it. */
static const CommandRow *find_row(const Inspection *in, const char *name, uint32_t *out_found)
{
  const CommandRow *found = NULL;
  *out_found = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (!strstr(r->facts.name, name)) continue;
    found = r;
    ++*out_found;
    if (strcmp(r->facts.name, name) != 0) continue;
    *out_found = 1;
    break;
  }
  return found;
}

/* Reports that no command was found, with the nearest name. Returns exit status 2. */
static int no_row(const Inspection *in, const char *name, uint32_t found)
{
  if (found)
    return usage_error("amp inspect",
                       "--kernel %s: the names of %u commands contain this; give more of the name",
                       name, found);
  const char **names = arena_array(in->c->arena, const char *, in->rows.n + 1);
  for (uint32_t i = 0; i < in->rows.n; i++) names[i] = in->rows.at[i].facts.name;
  const char *near = diag_nearest(name, names, in->rows.n);
  if (!near) return usage_error("amp inspect", "--kernel %s: the job has no such command", name);
  return usage_error("amp inspect", "--kernel %s: the job has no such command; did you mean %s?",
                     name, near);
}

/* ---- the parts ---- */

/* Returns the lines of the job that the kernel's nodes come from, each once, in their order. */
static Text job_lines(const Inspection *in, const CommandRow *row)
{
  const Group *group = &in->c->graph->groups.at[row->group];
  Text out = text_new(in->c->arena);
  for (uint32_t i = 0; i < group->n; i++) {
    Place p = diag_user_place(in->c, ir_node(in->c->graph, group->nodes[i])->span);
    bool seen = !p.source;
    for (uint32_t k = 0; k < i && !seen; k++) {
      Place q = diag_user_place(in->c, ir_node(in->c->graph, group->nodes[k])->span);
      seen = q.source == p.source && q.line == p.line;
    }
    if (seen) continue;
    Facts f = facts_none();
    facts_place(&f, in->c, p);
    text_printf(&out, "%s:%u: %s\n", f.file, p.line, f.source);
  }
  if (!out.n) text_puts(&out, "(made by the compiler; no line of the job)\n");
  return out;
}

/* Whether the line is an instruction, not a declaration, which begins with a dot. The caller skips
 * labels, which have no semicolon. */
static bool is_instruction(const char *line, size_t n)
{
  return n && line[0] != '/' && line[0] != '.';
}

/* Returns the entry of the kernel, without the declarations around it. */
static Text ptx_body(Arena *arena, const Text *ptx)
{
  Text out = text_new(arena);
  const char *entry = strstr(ptx->at, ".entry"), *end = entry ? strstr(entry, "\n}") : NULL;
  while (entry && entry > ptx->at && entry[-1] != '\n') entry--;
  if (entry && end) text_add(&out, entry, (size_t)(end + 3 - entry));
  for (size_t i = 0; i < out.n; i++)
    if (out.at[i] == '\t') out.at[i] = ' ';
  return out;
}

/* Counts PTX instructions. ptxas translates them to other machine instructions. */
static uint32_t count_instructions(const Text *ptx)
{
  uint32_t n = 0;
  for (const char *s = strstr(ptx->at, "{"); s && *s; s += strcspn(s, "\n"), s += *s == '\n') {
    s += strspn(s, " \t");
    const char *end = s + strcspn(s, "\n");
    n += end > s && end[-1] == ';' && is_instruction(s, (size_t)(end - s));
  }
  return n;
}

/* ---- printing ---- */

static const char *take_line(Arena *arena, const char **at)
{
  size_t n = strcspn(*at, "\n");
  const char *line = arena_strndup(arena, *at, n);
  *at += n + ((*at)[n] == '\n');
  return line;
}

/* Prints two texts side by side. */
static void put_beside(const Inspection *in, const char *left, const char *right)
{
  Table t;
  table_open(&t, in->c->arena, NULL, &(TableView){0}, "kernel:<40|:<1|PTX:<40");
  while (*left || *right)
    TABLE_ROW(&t, 0, {take_line(t.arena, &left)}, {"|"}, {take_line(t.arena, &right)});
  table_put(&t);
  table_close(&t);
}

static void put_row_facts(const Inspection *in, const CommandRow *r)
{
  Arena *a = in->c->arena;
  const Facts *f = &r->facts;
  printf("%s, in %s\n", f->name, inspect_block_text(in, r->block));
  printf("  %s %s, %s; %s read, %s written, %s FLOPs\n", f->types, f->shape, f->frame,
         bytes_text(a, f->read), bytes_text(a, f->written), count_text(a, f->flops));
  if (r->is == COMMAND_conv && f->kernel) printf("  kernel %s writes its columns\n", f->kernel);
  if (f->kernel) printf("  grid %u, block %u\n", r->at.grid, r->at.block);
  for (uint32_t i = 0; i < in->n_archs && r->usage[i].known; i++)
    printf("  %s: %d registers, %d bytes of shared memory, %d spilled\n", in->arch[i],
           r->usage[i].registers, r->usage[i].shared, r->usage[i].spilled);
}

/* Prints the PTX next to `left`, the job's lines and the kernel's text, or below them. */
static int put_ptx(Inspection *in, uint32_t kernel, const char *left)
{
  Text text = text_new(in->c->arena);
  Text ptx = text_new(in->c->arena);
  emit_some_kernels(in->c, kernel, 1, &text);
  if (!emit_nvrtc(in->c, &text, in->c->options.target, NVRTC_ptx, &ptx)) return AMPC_NO_COMPILER;
  Text body = ptx_body(in->c->arena, &ptx);
  printf("  PTX for %s: %u instructions\n\n", in->c->options.target, count_instructions(&body));
  if (terminal_columns(STDOUT_FILENO) >= 2 * NARROWEST)
    put_beside(in, left, body.at);
  else
    printf("%s\n%s", left, body.at);
  return 0;
}

uint32_t inspect_kernel_index(const ampc_program *p, const char *name)
{
  uint32_t i = 0;
  while (i < p->n_kernels && (!name || strcmp(p->kernels[i].name, name) != 0)) i++;
  return i;
}

int inspect_kernel(Inspection *in, const char *name)
{
  uint32_t found;
  const CommandRow *row = find_row(in, name, &found);
  if (found != 1) return no_row(in, name, found);
  put_row_facts(in, row);
  Text left = job_lines(in, row);
  if (!row->facts.kernel) {
    bool loops = row->facts.library && strcmp(row->facts.library, "loops") == 0;
    printf("\n%s\n%s, so it has no kernel text\n", left.at,
           loops ? "the runtime's own loops compute it" : "the vendor's library computes it");
    return 0;
  }
  uint32_t kernel = inspect_kernel_index(in->c->program, row->facts.kernel);
  emit_kernel(in->c, kernel, &left);
  if (!is_cpu_target(in->c) && nvrtc_present()) return put_ptx(in, kernel, left.at);
  printf("\n%s", left.at);
  if (!is_cpu_target(in->c)) puts("\nno PTX: NVRTC (CUDA 12 or 13) is not on this machine");
  return 0;
}
