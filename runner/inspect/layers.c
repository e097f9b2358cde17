/* `amp inspect --by-layer`: sums the commands of a block by the layer that they compute, forward
 * and backward. A command that computes nodes of several layers counts for the layer of its main
 * node. Each optimizer has a row; row "(no layer)" has the rest, such as loss and metrics. */
#include "inspect.h"
#include <string.h>

typedef struct LayerRow {
  const char *name;  /* "net.fc1", "opt" */
  const char *shown; /* "fc1" if only one model has this layer */
  int64_t commands, backward, read, written, flops;
} LayerRow;

typedef VEC(LayerRow) LayerRows;

static LayerRow *find_row(const Inspection *in, LayerRows *rows, const char *name)
{
  for (uint32_t i = 0; i < rows->n; i++)
    if (strcmp(rows->at[i].name, name) == 0) return &rows->at[i];
  vec_push(in->c->arena, rows, (LayerRow){.name = name});
  return &rows->at[rows->n - 1];
}

/* ---- names ---- */

static const char *without_model(const char *name)
{
  const char *dot = strchr(name, '.');
  return dot ? dot + 1 : name;
}

/* Whether another row has the same name without its model. */
static bool is_ambiguous(const LayerRows *rows, uint32_t at)
{
  const char *name = without_model(rows->at[at].name);
  for (uint32_t i = 0; i < rows->n; i++)
    if (i != at && strcmp(without_model(rows->at[i].name), name) == 0) return true;
  return false;
}

static void set_shown(const Graph *g, LayerRows *rows)
{
  for (uint32_t i = 0; i < rows->n; i++) {
    LayerRow *r = &rows->at[i];
    r->shown = is_ambiguous(rows, i) ? r->name : layer_path(g, r->name);
  }
}

/* ---- rows ---- */

/* Returns the rows, in the order of each layer's first command. */
static LayerRows rows_of(const Inspection *in, uint16_t block)
{
  const Graph *g = in->c->graph;
  LayerRows rows = {0};
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    const Node *n = group_main_node(g, r->group);
    const char *optimizer = n->layer ? NULL : optimizer_name_of(g, n);
    LayerRow *row = find_row(in, &rows, n->layer ? n->layer : optimizer ? optimizer : "(no layer)");
    row->commands++;
    row->backward += n->layer && n->origin.id != 0;
    row->read += r->read;
    row->written += r->written;
    row->flops += r->flops > 0 ? r->flops : 0;
  }
  set_shown(g, &rows);
  return rows;
}

static void add_row(const LayerRow *r, const LayerRow *all, Table *t)
{
  double bytes = (double)(r->read + r->written), whole = (double)(all->read + all->written);
  TABLE_ROW(t, bytes, {r->shown}, {.amount = (double)r->commands}, {.amount = (double)r->backward},
            {.amount = (double)r->read}, {.amount = (double)r->written},
            {.amount = 100 * bytes / (whole ? whole : 1)}, {.amount = (double)r->flops});
}

static LayerRow sum_of(const LayerRows *rows)
{
  LayerRow all = {.shown = "all"};
  for (uint32_t i = 0; i < rows->n; i++) {
    all.commands += rows->at[i].commands;
    all.backward += rows->at[i].backward;
    all.read += rows->at[i].read;
    all.written += rows->at[i].written;
    all.flops += rows->at[i].flops;
  }
  return all;
}

static void put_block(const Inspection *in, uint16_t block, Table *t)
{
  LayerRows rows = rows_of(in, block);
  LayerRow all = sum_of(&rows);
  if (!rows.n) return;
  for (uint32_t i = 0; i < rows.n; i++) add_row(&rows.at[i], &all, t);
  add_row(&all, &all, t);
  table_say(t, 2, "\n%s", inspect_block_text(in, block));
  table_put(t);
}

int inspect_layers(const Inspection *in)
{
  Table t;
  table_open(&t, in->c->arena, NULL, &in->c->options.view,
             "layer:key<12|commands:count!2|backward:count!3|read:bytes|written:bytes|of "
             "bytes:share!1|FLOPs:count");
  table_say(&t, 2, "%s: %s, %s, by layer", in->c->program->source, in->c->program->precision,
            in->c->options.target);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, (uint16_t)i, &t);
  table_close(&t);
  return 0;
}
