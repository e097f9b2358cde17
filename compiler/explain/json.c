/* `--explain=json`: docs/explain.md documents the keys. */
#include "compiler/cost/memory_report.h"
#include "explain.h"
#include <math.h>
#include <stdlib.h>

/* ---- nodes ---- */

static json_t *casts_json(const ExplainCasts *casts)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < casts->n; i++) {
    const ExplainCast *k = &casts->at[i];
    json_array_append_new(out, json_pack("{s:I, s:s, s:s, s:I}", "id", (json_int_t)k->value.id,
                                         "from", ir_dtype_name(k->from), "to", ir_dtype_name(k->to),
                                         "bytes", (json_int_t)k->bytes));
  }
  return out;
}

static json_t *shape_json(const Node *n)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < n->rank; i++) json_array_append_new(out, json_integer(n->dim[i]));
  return out;
}

/* Returns null for a node that is not a product, and on a CPU. */
static json_t *tensor_json(const Explanation *e, const ExplainBlock *b, const ExplainNode *n)
{
  if (!n->made || e->gpu->cpu) return json_null();
  json_t *out = json_pack("{s:b, s:s?, s:f}", "eligible", !n->made->against, "why_not",
                          n->made->against, "busy", n->made->busy);
  for (uint32_t i = 0; i < b->sizes.n; i++)
    if (b->sizes.at[i].value.id == n->value.id) {
      json_object_set_new(out, "size", json_integer(b->sizes.at[i].size));
      json_object_set_new(out, "padded", json_integer(b->sizes.at[i].padded));
    }
  return out;
}

static json_t *bound_json(const Node *n, const ValueBound *b)
{
  Interval r = bound_stored(b);
  if (!dtype_is_float(n->dtype) || !isfinite(r.low) || !isfinite(r.high)) return json_null();
  return json_pack("[f, f]", r.low, r.high);
}

static json_t *node_json(const Explanation *e, const ExplainBlock *b, const ExplainNode *n)
{
  const Node *node = ir_node(e->c->graph, n->value);
  json_t *out = facts_json(&n->facts, "id file line layer op name dtype compute_dtype "
                                      "accumulate_dtype reason command flops flops_dtype read "
                                      "written predicted_us");
  json_t *more =
      json_pack("{s:o, s:b, s:o, s:s?, s:o, s:o, s:I, s:b, s:o}", "shape", shape_json(node),
                "backward", node->origin.id != 0, "bound", bound_json(node, &n->bound), "overflow",
                bound_word(node, &n->bound), "casts_before", casts_json(&n->before), "casts_after",
                casts_json(&n->after), "cast_bytes", (json_int_t)n->cast_bytes, "weight_cast",
                n->weight_cast, "tensor_cores", tensor_json(e, b, n));
  json_object_update_new(out, more);
  return out;
}

/* ---- blocks ---- */

static json_t *parts_json(const double *parts)
{
  json_t *out = json_object();
  for (int i = 0; i < PART_COUNT; i++)
    json_object_set_new(out, cost_part_names[i], json_real(parts[i]));
  return out;
}

static json_t *types_json(const double by_type[AMPC_DTYPE_COUNT])
{
  json_t *out = json_object();
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (by_type[i] > 0) json_object_set_new(out, ir_dtype_name((DType)i), json_real(by_type[i]));
  return out;
}

static json_t *flops_json(const ExplainBlock *b)
{
  json_t *out = json_object();
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (b->flops_by_type[i])
      json_object_set_new(out, ir_dtype_name((DType)i), json_integer(b->flops_by_type[i]));
  return out;
}

static json_t *predicted_json(const Explanation *e, const ExplainBlock *b)
{
  json_t *out = json_pack("{s:s, s:f, s:o, s:o}", "gpu", e->gpu->name, "us", b->us, "parts",
                          parts_json(b->parts), "us_by_dtype", types_json(b->us_by_type));
  if (!e->against || b != e->blocks.at || !(b->us > 0)) return out;
  json_t *more =
      json_pack("{s:s, s:f, s:o, s:f}", "against", e->against, "against_us", e->against_us,
                "against_parts", parts_json(e->parts), "speedup", e->against_us / b->us);
  json_object_update_new(out, more);
  return out;
}

json_t *explain_block_json(const Explanation *e, const ExplainBlock *b)
{
  const BlockInfo *info = &e->c->graph->blocks.at[b->block];
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "block", info->name, "batch",
                   (json_int_t)info->batch, "commands", (json_int_t)b->commands, "weight_casts",
                   (json_int_t)b->weight_casts, "cast_bytes", (json_int_t)b->cast_bytes, "read",
                   (json_int_t)b->read, "written", (json_int_t)b->written, "flops_by_dtype",
                   flops_json(b), "predicted", predicted_json(e, b));
}

static json_t *whole_block_json(const Explanation *e, const ExplainBlock *b)
{
  json_t *out = explain_block_json(e, b), *nodes = json_array();
  for (uint32_t i = 0; i < b->nodes.n; i++)
    json_array_append_new(nodes, node_json(e, b, &b->nodes.at[i]));
  json_object_set_new(out, "nodes", nodes);
  return out;
}

json_t *explain_answer_json(const Explanation *e)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < e->answer.n; i++)
    json_array_append_new(out, json_string(e->answer.at[i]));
  return out;
}

void explain_json(const Explanation *e, Text *out)
{
  const ampc_program *p = e->c->program;
  json_t *others = json_array();
  for (uint32_t i = 1; i < e->blocks.n; i++)
    json_array_append_new(others, whole_block_json(e, &e->blocks.at[i]));
  json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:I}", "job", p->source, "precision", p->precision,
                          "target", e->c->options.target, "answer", explain_answer_json(e),
                          "memory_bytes", (json_int_t)memory_of_spaces(p));
  if (e->blocks.n) json_object_update_new(all, whole_block_json(e, &e->blocks.at[0]));
  json_object_set_new(all, "others", others);
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
  json_decref(all);
  if (!text) arena_out_of_memory();
  text_puts(out, text);
  text_puts(out, "\n");
  free(text);
}
