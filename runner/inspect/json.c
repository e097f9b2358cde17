/* `amp inspect --json`: prints the table as one object. */
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "inspect.h"

/* Returns the usage by architecture, in the order of --arch. */
static json_t *usage_json(const Inspection *in, const CommandRow *row)
{
  json_t *out = json_object();
  for (uint32_t i = 0; i < in->n_archs; i++) {
    const Usage *u = &row->usage[i];
    json_object_set_new(out, in->arch[i],
                        json_pack("{s:i, s:i, s:i}", "registers", u->registers, "shared", u->shared,
                                  "spilled", u->spilled));
  }
  return out;
}

/* Returns the nodes; a node that the compiler made has line 0. */
static json_t *nodes_json(const Inspection *in, const CommandRow *row)
{
  const Graph *g = in->c->graph;
  const Group *group = &g->groups.at[row->group];
  json_t *out = json_array();
  for (uint32_t i = 0; i < group->n; i++) {
    const Node *n = ir_node(g, group->nodes[i]);
    Place place = inspect_place(in, group->nodes[i]);
    json_array_append_new(out,
                          json_pack("{s:I, s:s, s:s, s:I}", "id", (json_int_t)group->nodes[i].id,
                                    "op", op_of(n)->name, "type", ir_type_text(in->c, n), "line",
                                    (json_int_t)place.line));
  }
  return out;
}

/* Returns a row as JSON. A command that a vendor's library computes has no grid, block and usage.
 * On the CPU, key "library" names the library's implementation of a convolution. */
json_t *inspect_row_json(const Inspection *in, const CommandRow *row)
{
  static const char *const kinds[] = {[COMMAND_kernel] = "kernel",
                                      [COMMAND_gemm] = "gemm",
                                      [COMMAND_conv] = "conv",
                                      [COMMAND_exchange] = "exchange"};
  json_t *out = json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:s?, s:I, s:o*, s:o, s:s*, s:s*}", "name",
      row->name, "kind", kinds[row->kind], "template", row->frame, "types", row->types, "shape",
      row->shape, "read", (json_int_t)row->read, "written", (json_int_t)row->written, "flops",
      row->flops < 0 ? json_null() : json_integer(row->flops), "file",
      row->place.source ? row->place.source->shown : NULL, "line", (json_int_t)row->place.line,
      "times", row->times > 1 ? json_integer(row->times) : NULL, "nodes", nodes_json(in, row),
      "library", row->library, "kernel", row->kernel);
  if (!row->kernel) return out;
  json_object_set_new(out, "grid", json_integer(row->at.grid));
  json_object_set_new(out, "block", json_integer(row->at.block));
  json_object_set_new(out, "usage", usage_json(in, row));
  return out;
}

json_t *inspect_fires_json(const BlockInfo *b)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < b->n_periods; i++)
    if (b->fires >> i & 1) json_array_append_new(out, json_integer(b->period[i]));
  return out;
}

/* Returns a block. `remainder`: it is for a smaller last batch; `every`: the numbers that fire. */
static json_t *block_json(const Inspection *in, uint16_t block)
{
  const BlockInfo *b = &in->c->graph->blocks.at[block];
  json_t *commands = json_array();
  for (uint32_t i = 0; i < in->rows.n; i++)
    if (in->rows.at[i].block == block)
      json_array_append_new(commands, inspect_row_json(in, &in->rows.at[i]));
  return json_pack("{s:s, s:I, s:b, s:o, s:o}", "name", b->name, "batch", (json_int_t)b->batch,
                   "remainder", b->remainder, "every", inspect_fires_json(b), "commands", commands);
}

/* Prints JSON. Keys keep the order in which they were added, so that two outputs can be diffed. */
int inspect_print_json(json_t *value)
{
  bool good = value != NULL;
  if (good) json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
  putchar('\n'); /* main reports a failed write */
  json_decref(value);
  if (good) return 0;
  fprintf(stderr, "amp: error: out of memory\n");
  return AMPC_RUN_FAILED;
}

int inspect_json(const Inspection *in)
{
  json_t *archs = json_array(), *blocks = json_array();
  for (uint32_t i = 0; i < in->n_archs; i++) json_array_append_new(archs, json_string(in->arch[i]));
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++)
    json_array_append_new(blocks, block_json(in, (uint16_t)i));
  return inspect_print_json(json_pack("{s:s, s:s, s:s, s:o, s:o}", "job", in->c->program->source,
                                      "precision", in->c->program->precision, "target",
                                      in->c->options.target, "architectures", archs, "blocks",
                                      blocks));
}
