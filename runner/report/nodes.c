/* The nodes of the step, which the page draws as a graph. Equal layers are listed once. */
#include "report.h"
#include <string.h>

/* ---- equal layers ---- */

typedef struct Lines { /* nodes that differ only in the numbers of their layer */
  FactRows rows;
  VEC(const ExplainNode *) first; /* the first node of each row */
} Lines;

/* Folds nodes into lines. line_of[id of a node] becomes 1 + its index in *out, or 0. */
static void fold(const Explanation *e, const ExplainBlock *b, Lines *out, uint32_t *line_of)
{
  *out = (Lines){0};
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    if (!explain_is_shown(e->c, n)) continue;
    uint32_t row =
        facts_group(e->c->arena, &out->rows, "op line file reason dtype shape layer*", &n->facts);
    if (row == out->first.n) vec_push(e->c->arena, &out->first, n);
    line_of[n->value.id] = 1 + row;
  }
}

/* ---- a line ---- */

static const char *phase_of(const Graph *g, const ExplainNode *n)
{
  const Node *node = ir_node(g, n->value);
  if (node->origin.id) return "backward";
  return op_of(node)->precision == PREC_state && !node->layer ? "update" : "forward";
}

/* Adds the operands: "in" lists the lines that compute them, "stored" the names of stored ones. */
static void add_operands(const Report *r, json_t *out, const Node *n, const uint32_t *line_of)
{
  const Graph *g = r->e.c->graph;
  json_t *in = json_array(), *stored = json_array();
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id) continue;
    Value v = line_of[n->in[i].id] ? n->in[i] : value_root(g, n->in[i]);
    const Node *from = ir_node(g, v);
    if (line_of[v.id])
      json_array_append_new(in, json_integer(line_of[v.id] - 1));
    else if (op_of(from)->tmpl == TMPL_leaf && !op_has(from, T_literal))
      json_array_append_new(stored, json_string(explain_name(r->e.c, v)));
  }
  json_object_set_new(out, "in", in);
  json_object_set_new(out, "stored", stored);
}

static json_t *cast_json(const Report *r, const ExplainNode *n)
{
  const Node *node = ir_node(r->e.c->graph, n->value);
  if (!op_has(node, T_casts)) return json_null();
  return json_pack("{s:s, s:s, s:I}", "from", ir_dtype_name(ir_in(r->e.c, node, 0)->dtype), "to",
                   ir_dtype_name(node->dtype), "bytes", (json_int_t)n->cast_bytes);
}

static json_t *tensor_json(const Report *r, const ExplainNode *n)
{
  if (!n->made || r->e.gpu->cpu) return json_null();
  return json_string(n->made->against ? n->made->against : "tensor cores");
}

static json_t *node_json(const Report *r, const Facts *line, const ExplainNode *n,
                         const uint32_t *line_of)
{
  const Node *node = ir_node(r->e.c->graph, n->value);
  json_t *out = facts_json(line, "layer op dtype reason line times predicted_us flops bytes name "
                                 "command");
  json_t *more =
      json_pack("{s:s, s:s, s:o, s:o}", "type", ir_type_text(r->e.c, node), "phase",
                phase_of(r->e.c->graph, n), "cast", cast_json(r, n), "tensor", tensor_json(r, n));
  json_object_update_new(out, more);
  add_operands(r, out, node, line_of);
  return out;
}

json_t *report_nodes(const Report *r)
{
  const Compile *c = r->e.c;
  uint32_t *line_of = arena_array(c->arena, uint32_t, c->graph->nodes.n);
  Lines lines;
  json_t *out = json_array();
  if (!r->e.blocks.n) return out;
  fold(&r->e, &r->e.blocks.at[0], &lines, line_of);
  for (uint32_t i = 0; i < lines.rows.n; i++)
    json_array_append_new(out, node_json(r, &lines.rows.at[i], lines.first.at[i], line_of));
  return out;
}
