/* The graph as text: one node per line, with the reason for its type. Tests and users rely on this
 * text, so it contains no addresses, and its order does not depend on hashing. */
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- why a node has its type ---- */

/* Returns line and column as "12:9"; "-" if the span is empty. */
static const char *place_text(Compile *c, Span span)
{
  if (!span.end) return "-";
  Place p = diag_place(c, span);
  return arena_printf(c->arena, "%u:%u", p.line, p.column);
}

/* True if the job has a `precision` clause; a node outside of its region needs another reason. */
static bool has_precision_clause(const Graph *g)
{
  for (uint32_t i = 1; i < g->regions.n; i++) {
    const Region *r = &g->regions.at[i];
    if (r->parent == 0 && r->label && strncmp(r->label, "`precision ", 11) == 0) return true;
  }
  return false;
}

/* Returns the clause that made the node's region: "`precision f16`, line 2". */
static const char *region_text(Compile *c, const Node *n)
{
  const Region *all = c->graph->regions.at, *r = &all[n->region];
  while (r->sums_of || (r->no_grad && !all[r->parent].no_grad))
    r = &all[r->parent]; /* this region sets no precision */
  if (!r->label && has_precision_clause(c->graph)) return "outside of `precision`";
  if (!r->label) return "no `precision` clause";
  if (!r->span.end) return r->label;
  return arena_printf(c->arena, "%s, line %u", r->label, diag_place(c, r->span).line);
}

/* Returns the first node that reads n, or NULL. It represents all users of a cast. */
static const Node *first_user(const Graph *g, const Node *n)
{
  uint32_t id = (uint32_t)(n - g->nodes.at);
  for (const Node *user = n + 1; user < g->nodes.at + g->nodes.n; user++) {
    for (uint32_t i = 0; i < user->n_in; i++) {
      if (user->in[i].id == id) return user;
    }
  }
  return NULL;
}

/* Returns the type that n runs in and why: "in f16: `precision f16`, line 2". Returns NULL if the
 * type has another kind of reason. */
static const char *type_reason(Compile *c, const Node *n)
{
  RegionKind kind = c->graph->regions.at[n->region].kind;
  const char *region = region_text(c, n), *even = " even under ", *type;
  const uint8_t *policy = c->graph->policy;
  if (policy && !n->row && n->op < OP_COUNT && policy[n->op]) region = "`policy`", even = ": ";
  switch ((WhyKind)n->why) {
  case WHY_low:
    return arena_printf(c->arena, "in %s: %s", ir_dtype_name(region_low(kind)), region);
  case WHY_f32:
    return arena_printf(c->arena, "in f32%s%s", even, region);
  case WHY_promote:
    return arena_printf(c->arena, "in its widest input type: %s", region);
  case WHY_fewest:
    return arena_printf(c->arena, "in %s: fewest cast bytes", ir_dtype_name(region_low(kind)));
  case WHY_region:
    if (kind == REGION_off) return NULL; /* a cast because of `policy` */
    type = ir_is_tf32(c, n) && op_by_library(op_of(n)) ? "tf32" : "f32";
    return arena_printf(c->arena, "in %s: %s", type, region);
  default:
    return NULL;
  }
}

/* Returns the part of a reason after the op's name; NULL: the reason does not name the op. */
static const char *op_reason(Compile *c, const Node *n)
{
  const char *in = type_reason(c, n);
  if (in) return arena_printf(c->arena, "runs %s", in);
  switch ((WhyKind)n->why) {
  case WHY_follow:
    return "has the type of its inputs";
  case WHY_off:
    return arena_printf(c->arena, "has the type of its inputs: %s", region_text(c, n));
  case WHY_own:
    return "declares `cast`";
  case WHY_fixed:
    if (op_has(n, T_literal)) return NULL;
    return arena_printf(c->arena, "returns %s", ir_dtype_name(n->dtype));
  default:
    return NULL;
  }
}

/* Returns the reason of a cast that pass precision added. It is the reason of the cast's user: "for
 * matmul in f16: `precision f16`, line 2". */
static const char *cast_reason(Compile *c, const Node *n)
{
  const Node *user = first_user(c->graph, n);
  while (user && (user->op == OP_reshape || user->op == OP_permute || user->op == OP_pad))
    user = first_user(c->graph, user);
  if (!user) return "no longer used";
  if (user->why == WHY_cast_for) return "for another cast";
  const char *in = type_reason(c, user), *why = op_reason(c, user), *op = op_of(user)->name;
  uint64_t axes;
  bool follows = user->why == WHY_follow || user->why == WHY_off || user->why == WHY_fixed;
  if (follows && op_axes(user, &axes))
    why = "takes several steps and rounds once";
  else if (follows)
    return arena_printf(c->arena, "for %s, whose inputs have several types", op);
  if (!why) return arena_printf(c->arena, "for %s: %s", op, ir_why_text(c, user));
  if (in) return arena_printf(c->arena, "for %s %s", op, in);
  return arena_printf(c->arena, "for %s, which %s", op, why);
}

/* Returns "gradient of h": the variable's name if the forward value has one, else the op's. */
static const char *forward_text(Compile *c, const Node *n)
{
  if (!n->origin.id) return "gradient";
  const Node *from = ir_node(c->graph, n->origin);
  /* skip the reshape that pass simplify adds after a product */
  while (from->op == OP_reshape && n->op != OP_reshape) from = ir_in(c, from, 0);
  return arena_printf(c->arena, "gradient of %s", from->name ? from->name : op_of(from)->name);
}

const char *ir_why_text(Compile *c, const Node *n)
{
  if (n->after.id)
    return c->graph->regions.at[n->region].checkpoint ? "computed again, by checkpoint"
                                                      : "computed again, for its gradient";
  const char *why = op_reason(c, n);
  if (why) return arena_printf(c->arena, "%s %s", op_of(n)->name, why);
  switch ((WhyKind)n->why) {
  case WHY_fixed:
    return "a number";
  case WHY_asked:
    return "as written";
  case WHY_storage:
    return "stored type";
  case WHY_state:
    return "state is f32";
  case WHY_region:
    return arena_printf(c->arena, "cast: %s", region_text(c, n));
  case WHY_cast_for:
    return cast_reason(c, n);
  case WHY_forward:
    return forward_text(c, n);
  default:
    return "";
  }
}

/* ---- attributes ---- */

const char *ir_number_text(Compile *c, double v)
{
  const char *text = arena_number(c->arena, v, 6), *e = strchr(text, 'e');
  if (!isfinite(v) || strchr(text, '.')) return text;
  if (!e) return arena_printf(c->arena, "%s.0", text);
  return arena_printf(c->arena, "%.*se%d", (int)(e - text), text, atoi(e + 1)); /* not 1e+09 */
}

static void print_axes(Text *out, uint64_t axes)
{
  const char *comma = "[";
  for (int i = 0; i < MAX_RANK; i++) {
    if (!((axes >> i) & 1)) continue;
    text_printf(out, "%s%d", comma, i);
    comma = ", ";
  }
  text_puts(out, "]");
}

static void print_value(Compile *c, Text *out, AttrKind kind, Attr value)
{
  switch (kind) {
  case ATTR_float:
    text_puts(out, ir_number_text(c, value.f));
    break;
  case ATTR_bool:
    text_puts(out, value.i ? "true" : "false");
    break;
  case ATTR_axes:
    print_axes(out, (uint64_t)value.i);
    break;
  case ATTR_dtype:
    text_puts(out, ir_dtype_name((DType)value.i));
    break;
  default: /* numbers and indices */
    text_printf(out, "%lld", (long long)value.i);
    break;
  }
}

/* True if attribute i has its default value. Defaults are not printed: lines stay short, and a new
 * attribute of an op changes no dump. */
static bool is_default(Compile *c, const Node *n, uint32_t i)
{
  const AttrInfo *info = &op_of(n)->signature.attr[i];
  if (info->kind == ATTR_axes) /* "none given" has become the mask of all axes */
    return n->attr[i].i == ((int64_t)1 << ir_in(c, n, 0)->rank) - 1;
  return !info->required && memcmp(&info->value, &n->attr[i], sizeof(Attr)) == 0;
}

/* Returns the name of entry i in a table of the graph; NULL: no index, or no name yet. */
static const char *table_name(const Graph *g, AttrKind kind, int64_t i)
{
  if (i < 0) return NULL;
  switch (kind) {
  case ATTR_param:
    return g->params.at[i].path;
  case ATTR_source:
    return g->sources.at[i].path;
  case ATTR_setting:
    return g->settings.at[i].name;
  case ATTR_output:
    return g->outputs.n ? g->outputs.at[i].name : NULL;
  case ATTR_optimizer:
    return g->optimizers.at[i].name;
  case ATTR_metric:
    return g->metrics.at[i].name;
  default:
    return NULL;
  }
}

/* Prints the attributes. The first attribute of parameters, sources and similar ops is an index;
 * the name of its entry is printed instead. */
static void print_attrs(Compile *c, Text *out, const Node *n)
{
  const OpSignature *sig = &op_of(n)->signature;
  /* `shape` repeats the node's dims */
  bool says_shape = sig->n_attrs > MAX_RANK && strcmp(sig->attr[0].name, "rank") == 0;
  for (uint32_t i = 0; i < sig->n_attrs && !says_shape; i++) {
    const AttrInfo *info = &sig->attr[i];
    const char *name = i == 0 ? table_name(c->graph, info->kind, n->attr[i].i) : NULL;
    if (name) {
      text_printf(out, " %s", arena_shown(c->arena, name, "")); /* a source's name is a path */
    } else if (op_has(n, T_literal)) {
      text_puts(out, " ");
      print_value(c, out, info->kind, n->attr[i]);
    } else if (n->op != OP_cast && !is_default(c, n, i)) {
      text_printf(out, " %s=", info->name);
      print_value(c, out, info->kind, n->attr[i]);
    }
  }
}

/* ---- nodes ---- */

enum { COMMENT_COLUMN = 48 };

static void print_inputs(Text *out, const Node *n)
{
  uint32_t count = n->n_in;
  while (count && !n->in[count - 1].id) count--; /* absent inputs at the end are not printed */
  for (uint32_t i = 0; i < count; i++) {
    if (n->in[i].id)
      text_printf(out, " %%%u", n->in[i].id);
    else
      text_puts(out, " none");
  }
}

const char *ir_types_text(Compile *c, const Node *n)
{
  if (!(c->graph->facts & IR_TYPED)) return "";
  OpTypes t = op_types(c, n);
  bool computes = t.compute && strcmp(t.compute, t.store) != 0;
  bool sums = t.accumulate && strcmp(t.accumulate, t.store) != 0;
  const char *compute = computes ? arena_printf(c->arena, "; computes in %s", t.compute) : "";
  if (!sums) return compute;
  return arena_printf(c->arena, "%s%s sums in %s", compute, computes ? "," : ";", t.accumulate);
}

/* Prints for example
 *   %3 = softmax f32[32, 10] %2 dim=1    # 3:35 softmax runs in f32: no `precision` clause */
static void print_node(Compile *c, Text *out, uint32_t id)
{
  const Node *n = &c->graph->nodes.at[id];
  size_t start = out->n;
  text_printf(out, "%%%u = %s %s", id, op_of(n)->name, ir_type_text(c, n));
  if (n->layout == LAYOUT_channels_last) text_puts(out, n->rank == 4 ? " nhwc" : " channels last");
  print_inputs(out, n);
  print_attrs(c, out, n);
  if (op_draws(n)) text_printf(out, " stream=%u", n->stream);
  if (n->group) text_printf(out, " group=%u", n->group);
  do text_puts(out, " ");
  while (out->n - start < COMMENT_COLUMN);
  const char *why = ir_why_text(c, n);
  text_printf(out, "# %s%s%s%s\n", place_text(c, n->span), *why ? " " : "", why,
              ir_types_text(c, n));
}

const char *ir_fires_text(Arena *arena, const int64_t *period, uint32_t n, uint32_t fires,
                          const char *gap)
{
  Text t = text_new(arena);
  for (uint32_t i = 0; i < n; i++) {
    if (!(fires >> i & 1)) continue;
    if (t.n)
      text_printf(&t, "%sand%s%lld", gap, gap, (long long)period[i]);
    else
      text_printf(&t, "every%s%lld", gap, (long long)period[i]);
  }
  return t.n ? t.at : "";
}

/* The text of a train or eval block contains the variant's batch size and the periods that fire. */
const char *ir_block_text(Compile *c, uint32_t block)
{
  const BlockInfo *b = &c->graph->blocks.at[block];
  const char *fires = ir_fires_text(c->arena, b->period, b->n_periods, b->fires, " ");
  if (b->kind == AMPC_INFER) return b->name;
  return arena_printf(c->arena, "%s, batch %lld%s%s", b->name, (long long)b->batch,
                      *fires ? ", " : "", fires);
}

/* Prints tables as comments, so that dumps with and without them differ in no other line. */
static void print_tables(Compile *c, Text *out)
{
  const Graph *g = c->graph;
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *p = &g->params.at[i];
    Node shape = {.dtype = p->dtype, .rank = p->rank};
    memcpy(shape.dim, p->dim, sizeof shape.dim);
    text_printf(out, "# %s %s %s%s",
                param_is_state(p) ? "buffer"
                : p->of >= 0      ? "share of"
                                  : "param",
                p->path, ir_type_text(c, &shape), p->frozen ? ", frozen" : "");
    if (p->optimizer >= 0) text_printf(out, ", by %s", g->optimizers.at[p->optimizer].name);
    if (p->group) text_printf(out, ".group%u", p->group);
    text_puts(out, "\n");
  }
  for (uint32_t i = 0; i < g->regions.n; i++) {
    const Region *r = &g->regions.at[i];
    text_printf(out, "# region %u: %s%s, %s\n", i, r->label ? r->label : "f32",
                r->no_grad ? ", no gradients" : "", place_text(c, r->span));
  }
  for (uint32_t i = 0; i < g->blocks.n; i++)
    text_printf(out, "# block %u: %s, %s\n", i, ir_block_text(c, i),
                place_text(c, g->blocks.at[i].span));
}

void ir_print(Compile *c, Text *out, bool tables)
{
  const Graph *g = c->graph;
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    uint16_t block = g->nodes.at[i].block;
    bool starts = i == 1 || block != g->nodes.at[i - 1].block;
    if (starts && g->blocks.n) text_printf(out, "# %s\n", ir_block_text(c, block));
    print_node(c, out, i);
  }
  if (tables) print_tables(c, out);
}
