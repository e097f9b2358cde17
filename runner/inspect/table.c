/* Prints the table of `amp inspect`. */
#include <string.h>
#include "inspect.h"

/* ---- cells ---- */

const char *inspect_line_number(const Inspection *in, const CommandRow *r)
{
  if (!r->place.source) return "-";
  const char *path = r->place.source->shown, *slash = strrchr(path, '/');
  bool job = strcmp(r->place.source->path, in->c->options.input) == 0;
  return arena_printf(in->c->arena, "%s%s%u",
                      job     ? ""
                      : slash ? slash + 1
                              : path,
                      job ? "" : ":", r->place.line);
}

/* Returns how many nodes of the group have the op of node `first`; 0 if an earlier node has it. */
static uint32_t count_alike(const Inspection *in, const Group *group, uint32_t first)
{
  const Graph *g = in->c->graph;
  uint32_t n = 0;
  for (uint32_t i = 0; i < group->n; i++) {
    bool alike = op_of(ir_node(g, group->nodes[i])) == op_of(ir_node(g, group->nodes[first]));
    if (alike && i < first) return 0;
    n += alike;
  }
  return n;
}

/* Returns "sum, grad_accumulate x 3"; the wide table lists each node with its number. */
const char *inspect_nodes_text(const Inspection *in, const CommandRow *r)
{
  const Group *group = &in->c->graph->groups.at[r->group];
  Text t = text_new(in->c->arena);
  if (in->c->options.view.wide) return r->nodes;
  for (uint32_t i = 0; i < group->n; i++) {
    uint32_t n = count_alike(in, group, i);
    if (!n) continue;
    text_printf(&t, "%s%s", t.n ? ", " : "", op_of(ir_node(in->c->graph, group->nodes[i]))->name);
    if (n > 1) text_printf(&t, " x %u", n);
  }
  return t.at;
}

/* Returns "1056 x 256", or "-" for a vendor's library, which chooses its own grid. */
static const char *grid_text(Arena *arena, const CommandRow *r)
{
  return r->kernel ? arena_printf(arena, "%u x %u", r->at.grid, r->at.block) : "-";
}

const char *inspect_usage_text(Arena *arena, const Usage *u)
{
  Text t = text_new(arena);
  if (!u->known) return "-";
  text_printf(&t, "%d", u->registers);
  if (u->shared) text_printf(&t, ", %s", bytes_text(arena, u->shared));
  if (u->spilled) text_printf(&t, ", %s spilled", bytes_text(arena, u->spilled));
  return t.at;
}

/* ---- the table ---- */

enum { OWN_COLUMNS = 9 };

/* Opens the table. If it does not fit, the columns that the user can most easily do without are
 * dropped first (numbers after `!`). Column template is kept if it names libraries. Each
 * architecture has a column of usage before the nodes. */
static void open_table(const Inspection *in, Table *t)
{
  bool libraries = false;
  for (uint32_t i = 0; i < in->rows.n; i++) libraries |= in->rows.at[i].library != NULL;
  Text columns = text_new(in->c->arena);
  text_printf(&columns,
              "name:key<26|line:number!1|types:!2<14|shape:!4|launch:!7|template:!%d<12|read:bytes|"
              "written:bytes|FLOPs:count",
              libraries ? 0 : 6);
  for (uint32_t i = 0; i < in->n_archs; i++) text_printf(&columns, "|%s:!3<12", in->arch[i]);
  text_puts(&columns, "|nodes:!5<16");
  table_open(t, in->c->arena, NULL, &in->c->options.view, columns.at);
}

static void add_row(const Inspection *in, const CommandRow *r, Table *t)
{
  TableCell cells[OWN_COLUMNS + INSPECT_ARCHS + 1] = {{r->name},
                                                      {inspect_line_number(in, r)},
                                                      {r->types},
                                                      {r->shape},
                                                      {grid_text(t->arena, r)},
                                                      {inspect_frame_text(in, r)},
                                                      {.amount = (double)r->read},
                                                      {.amount = (double)r->written},
                                                      {.amount = (double)r->flops}};
  uint32_t n = OWN_COLUMNS;
  for (uint32_t i = 0; i < in->n_archs; i++)
    cells[n++].text = inspect_usage_text(t->arena, &r->usage[i]);
  cells[n].text = inspect_nodes_text(in, r);
  table_row(t, (double)(r->read + r->written), cells);
}

/* Prints title, rows and sums of a block that has commands. The sum of FLOPs leaves out commands
 * whose FLOPs are not counted. */
static void put_block(const Inspection *in, uint16_t block, Table *t)
{
  double read = 0, written = 0, flops = 0;
  uint32_t commands = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    commands++;
    add_row(in, r, t);
    read += (double)r->read;
    written += (double)r->written;
    flops += r->flops > 0 ? (double)r->flops : 0;
  }
  if (!commands) return;
  table_say(t, 2, "\n%s", inspect_block_text(in, block));
  table_put(t);
  table_say(t, 2, "  %u commands: %s read, %s written, %s FLOPs", commands,
            bytes_text(t->arena, read), bytes_text(t->arena, written), count_text(t->arena, flops));
}

static void put_title(const Inspection *in, Table *t)
{
  Text archs = text_new(t->arena);
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) kernels += in->rows.at[i].kind == COMMAND_kernel;
  for (uint32_t i = 0; i < in->n_archs; i++)
    text_printf(&archs, "%s%s", i ? ", " : "; ", in->arch[i]);
  table_say(t, 2, "%s: %s, %s, %u commands, %u of them kernels%s%s", in->c->program->source,
            in->c->program->precision, in->c->options.target, in->rows.n, kernels, archs.at,
            archs.n ? ": registers, shared memory, spills" : "");
}

int inspect_table(const Inspection *in, const char *note)
{
  Table t;
  open_table(in, &t);
  put_title(in, &t);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, (uint16_t)i, &t);
  if (note) table_say(&t, 0, "\n%s", note);
  table_close(&t);
  return 0;
}
