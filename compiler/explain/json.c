/* `--explain=json`: docs/explain.md documents the keys. */
#include "compiler/base/json.h"
#include "compiler/cost/memory_report.h"
#include "explain.h"
#include <math.h>

static void add_key(Text *out, const char *key)
{
  text_printf(out, "\"%s\": ", key);
}

static void add_string(Text *out, const char *key, const char *s)
{
  add_key(out, key);
  if (s)
    text_add_json(out, s);
  else
    text_puts(out, "null");
  text_puts(out, ", ");
}

static void add_integer(Text *out, const char *key, int64_t n)
{
  text_printf(out, "\"%s\": %lld, ", key, (long long)n);
}

static void add_number(Text *out, const char *key, double n)
{
  text_printf(out, "\"%s\": %.9g, ", key, n);
}

/* Ends a list: replaces the comma after its last element by `text`. */
static void end(Text *out, const char *text)
{
  if (out->n >= 2 && out->at[out->n - 2] == ',') out->n -= 2;
  text_puts(out, text);
}

/* ---- nodes ---- */

static void add_casts(Text *out, const char *key, const ExplainCasts *casts)
{
  add_key(out, key);
  text_puts(out, "[");
  for (uint32_t i = 0; i < casts->n; i++) {
    const ExplainCast *k = &casts->at[i];
    text_printf(out, "{\"id\": %u, \"from\": \"%s\", \"to\": \"%s\", \"bytes\": %lld}, ",
                k->value.id, ir_dtype_name(k->from), ir_dtype_name(k->to), (long long)k->bytes);
  }
  end(out, "], ");
}

static void add_shape(Text *out, const Node *n)
{
  text_puts(out, "\"shape\": [");
  for (uint32_t i = 0; i < n->rank; i++) text_printf(out, "%lld, ", (long long)n->dim[i]);
  end(out, "], ");
}

static void add_padded(Text *out, const ExplainBlock *b, Value v)
{
  for (uint32_t i = 0; i < b->sizes.n; i++)
    if (b->sizes.at[i].value.id == v.id) {
      add_integer(out, "size", b->sizes.at[i].size);
      add_integer(out, "padded", b->sizes.at[i].padded);
    }
}

/* Adds null for a node that is not a product, and on a CPU. */
static void add_tensor(const Explanation *e, const ExplainBlock *b, const ExplainNode *n, Text *out)
{
  add_key(out, "tensor_cores");
  if (!n->made || e->gpu->cpu) {
    text_puts(out, "null, ");
    return;
  }
  text_printf(out, "{\"eligible\": %s, ", n->made->against ? "false" : "true");
  add_string(out, "why_not", n->made->against);
  add_padded(out, b, n->value);
  add_number(out, "busy", n->made->busy);
  end(out, "}, ");
}

static void add_bound(Text *out, const Node *n, const ValueBound *b)
{
  Interval r = bound_stored(b);
  add_key(out, "bound");
  if (dtype_is_float(n->dtype) && isfinite(r.low) && isfinite(r.high))
    text_printf(out, "[%.9g, %.9g], ", r.low, r.high);
  else
    text_puts(out, "null, ");
  add_string(out, "overflow", bound_word(n, b));
}

static void add_node(const Explanation *e, const ExplainBlock *b, const ExplainNode *n, Text *out)
{
  const Node *node = ir_node(e->c->graph, n->value);
  OpTypes types = op_types(e->c, node);
  text_puts(out, "\n  {");
  add_integer(out, "id", n->value.id);
  add_string(out, "file", n->place.source ? n->place.source->shown : NULL);
  add_integer(out, "line", n->place.line);
  add_string(out, "layer", n->path);
  add_string(out, "op", op_of(node)->name);
  add_string(out, "name", node->name);
  add_string(out, "dtype", ir_dtype_name(node->dtype));
  add_string(out, "compute_dtype", types.compute);
  add_string(out, "accumulate_dtype", types.accumulate);
  add_shape(out, node);
  add_string(out, "reason", n->reason);
  text_printf(out, "\"backward\": %s, ", node->origin.id ? "true" : "false");
  add_string(out, "command", n->command);
  add_bound(out, node, &n->bound);
  add_casts(out, "casts_before", &n->before);
  add_casts(out, "casts_after", &n->after);
  add_integer(out, "cast_bytes", n->cast_bytes);
  text_printf(out, "\"weight_cast\": %s, ", n->weight_cast ? "true" : "false");
  add_tensor(e, b, n, out);
  add_integer(out, "flops", n->count.flops);
  add_string(out, "flops_dtype", ir_dtype_name(n->flops_type));
  add_integer(out, "read", n->count.read);
  add_integer(out, "written", n->count.written);
  add_number(out, "us", n->us);
  end(out, "}, ");
}

/* ---- blocks ---- */

static void add_flops(const ExplainBlock *b, Text *out)
{
  add_key(out, "flops_by_dtype");
  text_puts(out, "{");
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    if (b->flops_by_type[i]) add_integer(out, ir_dtype_name((DType)i), b->flops_by_type[i]);
  end(out, "}, ");
}

static void add_parts(Text *out, const char *key, const double *parts)
{
  add_key(out, key);
  text_puts(out, "{");
  for (int i = 0; i < PART_COUNT; i++) add_number(out, cost_part_names[i], parts[i]);
  end(out, "}, ");
}

static void add_predicted(const Explanation *e, const ExplainBlock *b, Text *out)
{
  add_key(out, "predicted");
  text_puts(out, "{");
  add_string(out, "gpu", e->gpu->name);
  add_number(out, "us", b->us);
  add_parts(out, "parts", b->parts);
  if (e->against && b == e->blocks.at && b->us > 0) {
    add_string(out, "against", e->against);
    add_number(out, "against_us", e->against_us);
    add_parts(out, "against_parts", e->parts);
    add_number(out, "speedup", e->against_us / b->us);
  }
  end(out, "}, ");
}

static void add_block(const Explanation *e, const ExplainBlock *b, Text *out)
{
  const BlockInfo *info = &e->c->graph->blocks.at[b->block];
  add_string(out, "block", info->name);
  add_integer(out, "batch", info->batch);
  add_integer(out, "commands", b->commands);
  add_integer(out, "weight_casts", b->weight_casts);
  add_integer(out, "cast_bytes", b->cast_bytes);
  add_integer(out, "read", b->read);
  add_integer(out, "written", b->written);
  add_flops(b, out);
  add_predicted(e, b, out);
  add_key(out, "nodes");
  text_puts(out, "[");
  for (uint32_t i = 0; i < b->nodes.n; i++) add_node(e, b, &b->nodes.at[i], out);
  end(out, "], ");
}

static void add_answer(const Explanation *e, Text *out)
{
  add_key(out, "answer");
  text_puts(out, "[");
  for (uint32_t i = 0; i < e->answer.n; i++) {
    text_add_json(out, e->answer.at[i]);
    text_puts(out, ", ");
  }
  end(out, "], ");
}

void explain_json(const Explanation *e, Text *out)
{
  const Compile *c = e->c;
  text_puts(out, "{");
  add_string(out, "job", c->program->source);
  add_string(out, "precision", c->program->precision);
  add_string(out, "target", c->options.target);
  add_answer(e, out);
  add_integer(out, "memory_bytes", memory_of_spaces(c->program));
  if (e->blocks.n) add_block(e, &e->blocks.at[0], out);
  add_key(out, "others");
  text_puts(out, "[");
  for (uint32_t i = 1; i < e->blocks.n; i++) {
    text_puts(out, "{");
    add_block(e, &e->blocks.at[i], out);
    end(out, "}, ");
  }
  end(out, "]}\n");
}
