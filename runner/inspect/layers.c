/* `amp inspect --by-layer`: the commands of a block added up by the layer that they compute,
 * forward and backward. A command that does the work of several layers counts for the one of its
 * main node; what no layer asked for (loss, metrics) and each optimizer have a row of their own. */
#include "columns.h"
#include "inspect.h"
#include "runtime/base/terminal.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct LayerRow {
  const char *name;  /* "net.fc1", "opt" */
  const char *shown; /* "fc1" where that says enough */
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

/* Would another row be called so, too? */
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

/* In the order in which the layers first have a command. */
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

enum { COLUMNS = 7 };

static void row_texts(const Inspection *in, const LayerRow *r, const LayerRow *all,
                      const char *out[COLUMNS])
{
  Arena *arena = in->c->arena;
  int64_t bytes = r->read + r->written, whole = all->read + all->written;
  out[0] = r->shown;
  out[1] = arena_printf(arena, "%lld", (long long)r->commands);
  out[2] = arena_printf(arena, "%lld", (long long)r->backward);
  out[3] = arena_strdup(arena, inspect_bytes(r->read));
  out[4] = arena_strdup(arena, inspect_bytes(r->written));
  out[5] = arena_printf(arena, "%.1f %%", 100.0 * (double)bytes / (double)(whole ? whole : 1));
  out[6] = arena_strdup(arena, inspect_flops(r->flops));
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

static void put_block(const Inspection *in, uint16_t block)
{
  Column at[COLUMNS] = {{"layer", 5, true, 0}, {"commands", 8, false, 2}, {"backward", 8, false, 3},
                        {"read", 9, false, 0}, {"written", 9, false, 0},  {"of bytes", 8, false, 1},
                        {"FLOPs", 9, false, 0}};
  LayerRows rows = rows_of(in, block);
  LayerRow all = sum_of(&rows);
  const char *texts[COLUMNS];
  int columns = terminal_columns(STDOUT_FILENO);
  if (!rows.n) return;
  vec_push(in->c->arena, &rows, all);
  for (uint32_t i = 0; i < rows.n; i++) {
    row_texts(in, &rows.at[i], &all, texts);
    columns_see(at, COLUMNS, texts);
  }
  columns_fit(at, COLUMNS, columns);
  printf("\n%s\n", inspect_block_text(in, block));
  columns_put(at, COLUMNS, NULL, "", columns);
  for (uint32_t i = 0; i < rows.n; i++) {
    row_texts(in, &rows.at[i], &all, texts);
    columns_put(at, COLUMNS, texts, "", columns);
  }
}

int inspect_layers(const Inspection *in)
{
  printf("%s: %s, %s, by layer\n", in->c->program->source, in->c->program->precision,
         in->c->options.target);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, (uint16_t)i);
  return 0;
}
