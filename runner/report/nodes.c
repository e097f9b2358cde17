/* The nodes of the step, which the page draws as a graph. Equal layers are listed once. */
#include "report.h"
#include <string.h>

/* ---- equal layers ---- */

typedef struct Line { /* nodes that differ only in the numbers of their path */
  const ExplainNode *first;
  const char *path; /* "h.*.attn" */
  const char *type; /* "f16[128, 512]" */
  uint32_t times;
  int64_t flops, bytes;
  double us;
} Line;
typedef VEC(Line) Lines;

static bool is_alike(const Compile *c, const Line *l, const ExplainNode *n, const char *type)
{
  const Node *a = ir_node(c->graph, l->first->value), *b = ir_node(c->graph, n->value);
  return a->op == b->op && a->row == b->row && l->first->place.line == n->place.line &&
         l->first->place.source == n->place.source && strcmp(l->first->reason, n->reason) == 0 &&
         strcmp(l->type, type) == 0;
}

/* Finds or adds a node's line. Searches the latest first, because equal layers follow each
 * other. */
static Line *line_of_node(Compile *c, Lines *lines, const ExplainNode *n)
{
  const char *type = ir_type_text(c, ir_node(c->graph, n->value)), *path;
  for (uint32_t i = lines->n; i-- > 0;) {
    Line *l = &lines->at[i];
    if (!is_alike(c, l, n, type) || !(path = text_common(c->arena, l->path, n->path))) continue;
    l->path = path;
    return l;
  }
  vec_push(c->arena, lines, (Line){.first = n, .path = n->path, .type = type});
  return &lines->at[lines->n - 1];
}

/* Folds nodes into lines. line_of[id of a node] becomes 1 + its index in *out, or 0. */
static void fold(const Explanation *e, const ExplainBlock *b, Lines *out, uint32_t *line_of)
{
  *out = (Lines){0};
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    if (!explain_is_shown(e->c, n)) continue;
    Line *l = line_of_node(e->c, out, n);
    l->times++;
    l->flops += n->count.flops;
    l->bytes += n->count.read + n->count.written;
    l->us += n->us;
    line_of[n->value.id] = 1 + (uint32_t)(l - out->at);
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

static json_t *node_json(const Report *r, const Line *l, const uint32_t *line_of)
{
  const ExplainNode *n = l->first;
  const Node *node = ir_node(r->e.c->graph, n->value);
  json_t *out =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:s?, s:s, s:s?, s:o, s:o}",
                "layer", l->path, "op", op_of(node)->name, "type", l->type, "dtype",
                ir_dtype_name(node->dtype), "reason", n->reason, "line", (json_int_t)n->place.line,
                "times", (json_int_t)l->times, "us", l->us, "flops", (json_int_t)l->flops, "bytes",
                (json_int_t)l->bytes, "name", node->name, "phase", phase_of(r->e.c->graph, n),
                "command", n->command, "cast", cast_json(r, n), "tensor", tensor_json(r, n));
  if (out) add_operands(r, out, node, line_of);
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
  for (uint32_t i = 0; i < lines.n; i++)
    json_array_append_new(out, node_json(r, &lines.at[i], line_of));
  return out;
}
