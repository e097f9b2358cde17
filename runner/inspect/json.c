/* `amp inspect --json`: prints the table as one object. */
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "compiler/cost/gpu.h"
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
    Place place = diag_user_place(in->c, n->span);
    json_array_append_new(out,
                          json_pack("{s:I, s:s, s:s, s:I}", "id", (json_int_t)group->nodes[i].id,
                                    "op", op_of(n)->name, "type", ir_type_text(in->c, n), "line",
                                    (json_int_t)place.line));
  }
  return out;
}

/* A command that a vendor's library computes has no grid, block and usage. On the CPU, key
 * "library" names the library's implementation of a convolution. */
static const char command_keys[] =
    "name kind template work layer types shape read written flops times file line source library? "
    "kernel? grid? block?";
static const char predicted_keys[] =
    "elements launches bytes predicted_us bound roof dram_us l2_us issue_us latency_us tensor_us "
    "l2_bytes threads tensor? why_not? own? instructions? instructions_per_element? slots? "
    "longest? walked? measured_us?";
static const char sum_keys[] = "backward_commands read written bytes flops "
                               "launches? unavoidable? instructions? predicted_us? measured_us?";

json_t *inspect_row_json(const Inspection *in, const CommandRow *row)
{
  json_t *out = facts_json(&row->facts, command_keys);
  if (row->facts.kernel) json_object_set_new(out, "usage", usage_json(in, row));
  json_object_set_new(out, "nodes", nodes_json(in, row));
  return out;
}

json_t *inspect_block_json(const Inspection *in, uint16_t block)
{
  const BlockInfo *b = &in->c->graph->blocks.at[block];
  json_t *fires = json_array();
  for (uint32_t i = 0; i < b->n_periods; i++)
    if (b->fires >> i & 1) json_array_append_new(fires, json_integer(b->period[i]));
  return json_pack("{s:s, s:I, s:b, s:o}", "name", b->name, "batch", (json_int_t)b->batch,
                   "remainder", b->remainder, "every", fires);
}

static json_t *commands_json(const Inspection *in, uint16_t block, bool predicted)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < in->rows.n; i++) {
    if (in->rows.at[i].block != block) continue;
    json_t *row = inspect_row_json(in, &in->rows.at[i]);
    if (predicted) facts_into(row, &in->rows.at[i].facts, predicted_keys);
    json_array_append_new(out, row);
  }
  return out;
}

json_t *inspect_groups_json(InspectSum by, const FactRows *groups, const char *keys)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < groups->n; i++) {
    json_t *row = facts_json(&groups->at[i], inspect_by[by].keys);
    facts_into(row, &groups->at[i], "commands");
    facts_into(row, &groups->at[i], keys);
    json_array_append_new(out, row);
  }
  return out;
}

static json_t *block_json(const Inspection *in, const InspectView *view, uint16_t block)
{
  FactRows groups = {0};
  Facts all = inspect_facts(in, block, view->by, &groups);
  json_t *out = inspect_block_json(in, block);
  if (view->gpu) all.unavoidable = gpu_unavoidable(in, block, all.bytes);
  if (view->gpu && view->by != BY_NONE) facts_sort(&groups, "predicted_us");
  if (groups.n) facts_into(out, &all, sum_keys);
  if (view->by != BY_NONE)
    json_object_set_new(out, "groups", inspect_groups_json(view->by, &groups, sum_keys));
  else
    json_object_set_new(out, "commands", commands_json(in, block, view->gpu != NULL));
  return out;
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

static json_t *gpu_json(const Gpu *g)
{
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "name", g->name,
                   "model", g->model, "architecture", g->arch, "multiprocessors",
                   g->multiprocessors, "mhz", g->mhz, "dram_peak_gbs", g->dram_peak, "dram_gbs",
                   g->dram, "l2_gbs", g->l2, "tensor16_tflops", g->tensor16, "tf32_tflops",
                   g->tensor_tf32, "node_us", g->node);
}

int inspect_json(const Inspection *in, const InspectView *view)
{
  json_t *archs = json_array(), *blocks = json_array();
  for (uint32_t i = 0; i < in->n_archs; i++) json_array_append_new(archs, json_string(in->arch[i]));
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++)
    json_array_append_new(blocks, block_json(in, view, (uint16_t)i));
  json_t *out =
      json_pack("{s:s, s:s, s:s, s:o}", "job", in->c->program->source, "precision",
                in->c->program->precision, "target", in->c->options.target, "architectures", archs);
  if (view->gpu) {
    json_object_set_new(out, "gpu", gpu_json(gpu_find(view->gpu->name)));
    json_object_set_new(out, "cudnn", json_boolean(!view->gpu->no_cudnn));
  }
  json_object_set_new(out, "blocks", blocks);
  return inspect_print_json(out);
}
