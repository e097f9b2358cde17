/* Builds the graph and answers questions about its nodes. See also ir_print.c and ir_check.c. */
#include "ops.h"
#include <assert.h>
#include <string.h>

Graph *ir_create(Compile *c)
{
  Graph *g = arena_new(c->arena, Graph);
  vec_push(c->arena, &g->nodes, (Node){0});
  vec_push(c->arena, &g->regions, (Region){.kind = REGION_f32});
  vec_push(c->arena, &g->groups, (Group){0});
  vec_push(c->arena, &g->loops, (Loop){0});
  c->graph = g;
  return g;
}

/* ---- appending ---- */

/* Reports an error and returns false if n_in exceeds the 16 bits of Node.n_in. */
static bool inputs_fit(Compile *c, const Cursor *at, OpKind op, uint32_t n_in)
{
  if (n_in <= UINT16_MAX) return true;
  return diag_error(c, E210, at->span, "%s takes at most %d tensors, got %u", op_row(op)->name,
                    UINT16_MAX, n_in);
}

/* Copies the inputs and adds {0} for absent ones, so in[i] exists for every input of the signature:
 * linear(x, w) without bias has {0} as in[2]. */
static void set_inputs(Compile *c, Node *n, const Value *in, uint32_t n_in)
{
  const OpSignature *sig = &op_of(n)->signature;
  uint32_t count = n_in;
  if (sig->n_inputs > n_in && !sig->input[sig->n_inputs - 1].variadic) count = sig->n_inputs;
  n->n_in = (uint16_t)count;
  n->in = arena_array(c->arena, Value, count ? count : 1);
  for (uint32_t i = 0; i < n_in; i++) n->in[i] = in[i];
}

/* False if a required input is absent: its node was rejected, with a message. */
static bool inputs_present(const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!n->in[i].id && !op_input_optional(op_of(n), i)) return false;
  return true;
}

/* Makes negative axes count from the left: -1 becomes the last axis. */
static void settle_axes(Compile *c, Node *n)
{
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < sig->n_attrs; i++) {
    bool from_right = sig->attr[i].kind == ATTR_axis && n->attr[i].i < 0;
    if (from_right) n->attr[i].i += ir_in(c, n, 0)->rank;
  }
}

/* True if the list contains an attribute of that name. A NULL name ends the list. */
static bool is_named(const NamedAttr *attrs, const char *name)
{
  for (; attrs && attrs->name; attrs++)
    if (strcmp(attrs->name, name) == 0) return true;
  return false;
}

/* Sets defaults, then the attributes given by name. A missing required attribute is a bug of the
 * compiler. */
static void set_attrs(Node *n, const NamedAttr *attrs)
{
  const OpInfo *op = op_of(n);
  for (uint32_t i = 0; i < op->signature.n_attrs; i++) {
    const AttrInfo *info = &op->signature.attr[i];
    if (info->required && !is_named(attrs, info->name)) op_broken(op, "not given:", info->name);
    n->attr[i] = info->value;
  }
  for (; attrs && attrs->name; attrs++) {
    uint32_t i;
    if (!attr_find(op, attrs->name, &i)) op_broken(op, "no attribute", attrs->name);
    n->attr[i] = attrs->value;
  }
}

/* Sets `weak` before it calls the shape rule, which may override it. An elementwise node whose
 * inputs are all numbers is weak: 2 * 3 is, 2 * x is not. */
bool ir_infer(Compile *c, Node *n)
{
  const OpInfo *op = op_of(n);
  n->weak = op->tmpl == TMPL_map && n->n_in > 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (n->in[i].id && !ir_in(c, n, i)->weak) n->weak = false;
  }
  return op->shape(c, n);
}

/* Returns a new node without attributes. */
static Node new_node(Compile *c, const Cursor *at, OpKind op, const OpInfo *row, const Value *in,
                     uint32_t n_in)
{
  Node n = {.op = op,
            .row = row,
            .block = at->block,
            .region = at->region,
            .span = at->span,
            .layer = at->layer,
            .origin = at->origin,
            .after = at->after,
            .why = at->why,
            .loop = at->loop};
  set_inputs(c, &n, in, n_in);
  return n;
}

/* The limit for all tensors of a job. It keeps sums of bytes far below 2^63, even after passes add
 * nodes. One tensor has at most 2^48 (rules/shape.c). */
#define MOST_ELEMENTS ((int64_t)1 << 56)

static bool count_elements(Compile *c, const Node *n)
{
  Graph *g = c->graph;
  if (g->facts & IR_SHAPED) return true;
  g->elements += ir_elements(n);
  if (g->elements <= MOST_ELEMENTS) return true;
  return diag_error(c, E311, n->span, "the tensors of the job have more than 2^56 elements in all");
}

/* ---- loops ---- */

uint16_t ir_add_loop(Compile *c, Loop loop)
{
  vec_push(c->arena, &c->graph->loops, loop);
  return (uint16_t)(c->graph->loops.n - 1);
}

bool ir_loop_within(const Graph *g, uint16_t inner, uint16_t outer)
{
  while (inner && inner != outer) inner = g->loops.at[inner].parent;
  return inner == outer;
}

/* Settles a node's axes and loop, infers its shape and type, and appends it. */
static Value add_node(Compile *c, Node *n)
{
  settle_axes(c, n);
  n->loop = ir_loop_for(c->graph, n);
  if (!ir_infer(c, n) || !count_elements(c, n)) return (Value){0};
  vec_push(c->arena, &c->graph->nodes, *n);
  return (Value){c->graph->nodes.n - 1};
}

Value ir_append(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                const NamedAttr *attrs)
{
  if (!inputs_fit(c, at, op, n_in)) return (Value){0};
  Node n = new_node(c, at, op, NULL, in, n_in);
  if (!inputs_present(&n)) return (Value){0};
  set_attrs(&n, attrs);
  return add_node(c, &n);
}

Value ir_append_values(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                       const Attr *values)
{
  if (!inputs_fit(c, at, op, n_in)) return (Value){0};
  Node n = new_node(c, at, op, NULL, in, n_in);
  if (!inputs_present(&n)) return (Value){0};
  memcpy(n.attr, values, op_row(op)->signature.n_attrs * sizeof *values);
  return add_node(c, &n);
}

Value ir_append_own(Compile *c, const Cursor *at, OpKind op, const OpInfo *row, const Value *in,
                    uint32_t n_in)
{
  Node n = new_node(c, at, op, row, in, n_in);
  return inputs_present(&n) ? add_node(c, &n) : (Value){0};
}

/* ---- attributes ---- */

static const char *const sizes[MAX_RANK] = {"size0", "size1", "size2", "size3", "size4", "size5"};
static const char *const axis_names[MAX_RANK] = {"axis0", "axis1", "axis2",
                                                 "axis3", "axis4", "axis5"};

const NamedAttr *ir_shape_attrs(Compile *c, const int64_t *dim, uint32_t rank)
{
  NamedAttr *out = arena_array(c->arena, NamedAttr, rank + 2);
  assert(rank <= MAX_RANK);
  out[0] = (NamedAttr){"rank", {.i = rank}};
  for (uint32_t i = 0; i < rank; i++) out[1 + i] = (NamedAttr){sizes[i], {.i = dim[i]}};
  return out;
}

const NamedAttr *ir_axis_attrs(Compile *c, const uint32_t *axes, uint32_t n)
{
  NamedAttr *out = arena_array(c->arena, NamedAttr, n + 1);
  assert(n <= MAX_RANK);
  for (uint32_t i = 0; i < n; i++) out[i] = (NamedAttr){axis_names[i], {.i = axes[i]}};
  return out;
}

/* Used by gradients: conv2d_weight takes the stride and padding of its conv2d. */
const NamedAttr *ir_shared_attrs(Compile *c, const Node *n, OpKind op)
{
  const OpSignature *sig = &op_of(n)->signature;
  NamedAttr *out = arena_array(c->arena, NamedAttr, sig->n_attrs + 1);
  uint32_t count = 0, i;
  for (uint32_t k = 0; k < sig->n_attrs; k++)
    if (attr_find(op_row(op), sig->attr[k].name, &i))
      out[count++] = (NamedAttr){sig->attr[k].name, n->attr[k]};
  return out;
}

void ir_set_shape(Node *n, const int64_t *dim)
{
  attr_set_int(n, "rank", n->rank);
  for (uint32_t i = 0; i < n->rank; i++) attr_set_int(n, sizes[i], dim[i]);
}

uint32_t ir_shape_of(const Node *n, int64_t dim[MAX_RANK])
{
  for (uint32_t i = 0; i < MAX_RANK; i++) dim[i] = attr_int(n, sizes[i]);
  return (uint32_t)attr_int(n, "rank");
}

uint32_t ir_permuted_axis(const Node *n, uint32_t i)
{
  uint32_t dim;
  if (!attr_find(op_of(n), "dim0", &dim)) return (uint32_t)attr_int(n, axis_names[i]);
  int64_t a = n->attr[dim].i, b = attr_int(n, "dim1");
  return i == a ? (uint32_t)b : i == b ? (uint32_t)a : i;
}

Cursor ir_cursor_at(const Node *n, WhyKind why)
{
  return (Cursor){.block = n->block,
                  .region = n->region,
                  .span = n->span,
                  .layer = n->layer,
                  .after = n->after,
                  .why = (uint8_t)why,
                  .loop = n->loop};
}

Cursor ir_cursor_like(const Node *n)
{
  Cursor at = ir_cursor_at(n, (WhyKind)n->why);
  at.origin = n->origin;
  return at;
}

Cursor ir_cursor_of(const Graph *g, Value v)
{
  return ir_cursor_like(ir_node(g, v));
}

/* ---- facts ---- */

int64_t dims_product(const int64_t *dim, uint32_t rank)
{
  int64_t product = 1;
  for (uint32_t i = 0; i < rank; i++) product *= dim[i];
  return product;
}

int64_t ir_elements(const Node *n)
{
  return dims_product(n->dim, n->rank);
}

int64_t ir_dtype_size(const Compile *c, DType d)
{
  return ampc_size_of(d, c->options.real64);
}

int64_t ir_bytes(const Compile *c, const Node *n)
{
  return ir_elements(n) * ir_dtype_size(c, n->dtype);
}

int64_t ir_row(const Node *n)
{
  return n->pitch || !n->rank ? n->pitch : n->dim[n->rank - 1];
}

int64_t ir_room(const Node *n)
{
  return n->pitch ? dims_product(n->dim, n->rank - 1u) * n->pitch : ir_elements(n);
}

int64_t ir_room_bytes(const Compile *c, const Node *n)
{
  return ir_room(n) * ir_dtype_size(c, n->dtype);
}

bool ir_same_dims(const Node *a, const Node *b)
{
  return a->rank == b->rank && memcmp(a->dim, b->dim, b->rank * sizeof *b->dim) == 0;
}

ImageDims ir_image_dims(const Node *n)
{
  bool last = n->layout == LAYOUT_channels_last;
  assert(n->rank > 2 && n->rank <= 2 + AMPC_MAX_SPATIAL);
  ImageDims d = {n->dim[0], n->dim[last ? n->rank - 1 : 1], n->rank - 2u, {0}};
  memcpy(d.size, n->dim + (last ? 1 : 2), d.spatial * sizeof *d.size);
  return d;
}

uint32_t ir_set_image_dims(const ImageDims *d, Layout layout, int64_t dim[MAX_RANK])
{
  bool last = layout == LAYOUT_channels_last;
  dim[0] = d->n;
  dim[last ? 1 + d->spatial : 1] = d->c;
  memcpy(dim + (last ? 1 : 2), d->size, d->spatial * sizeof *dim);
  return 2 + d->spatial;
}

int64_t ir_pixels(const ImageDims *d)
{
  return dims_product(d->size, d->spatial);
}

Layout ir_param_dims(const Parameter *p, int64_t dim[MAX_RANK])
{
  memcpy(dim, p->dim, p->rank * sizeof *dim);
  if (!p->channels_last) return LAYOUT_row_major;
  memcpy(dim + 1, p->dim + 2, (p->rank - 2u) * sizeof *dim);
  dim[p->rank - 1] = p->dim[1];
  return LAYOUT_channels_last;
}

bool ir_meets_floats(const Graph *g, const Node *n)
{
  bool found = dtype_is_float(n->dtype);
  for (uint32_t i = 0; i < n->n_in; i++)
    found = found || (n->in[i].id && dtype_is_float(ir_node(g, n->in[i])->dtype));
  return found;
}

uint16_t ir_region_sums(Compile *c, uint16_t region, bool wide)
{
  Graph *g = c->graph;
  Region r = g->regions.at[region];
  if (r.wide == wide) return region;
  for (uint32_t i = 1; i < g->regions.n; i++)
    if (g->regions.at[i].sums_of == region && g->regions.at[i].wide == wide) return (uint16_t)i;
  if (g->regions.n > UINT16_MAX) {
    diag_error(c, E210, r.span, "the job has more than %d regions of precision", UINT16_MAX);
    return region;
  }
  r.sums_of = region;
  r.parent = region;
  r.wide = wide;
  vec_push(c->arena, &g->regions, r);
  return (uint16_t)(g->regions.n - 1);
}

#define REGION_NAME(KIND, name, ...) [REGION_##name] = #name,
const char *const region_kind_names[REGION_COUNT] = {[REGION_f32] = "f32",
                                                     [REGION_tf32] = "tf32",
                                                     AMPC_NARROW_FLOATS(REGION_NAME)[REGION_off] =
                                                         "off"};

DType region_low(RegionKind kind)
{
#define LOW(KIND, name, ...) [REGION_##name] = AMPC_##KIND,
  static const DType low[REGION_COUNT] = {AMPC_FLOATS(LOW)};
  return low[kind];
}

bool ir_is_tf32(const Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  if (g->regions.at[n->region].kind == REGION_tf32) return true;
  return g->tf32 && n->n_in && ir_in((Compile *)c, n, 0)->dtype == AMPC_F32;
}

/* ---- text ---- */

const char *ir_sizes_text(Arena *a, const int64_t *dim, uint32_t rank)
{
  Text t = text_new(a);
  text_puts(&t, "[");
  for (uint32_t i = 0; i < rank; i++) text_printf(&t, "%s%lld", i ? ", " : "", (long long)dim[i]);
  text_puts(&t, "]");
  return t.at;
}

const char *ir_dims_text(Compile *c, const Node *n)
{
  return ir_sizes_text(c->arena, n->dim, n->rank);
}

const char *ir_type_text(Compile *c, const Node *n)
{
  return arena_printf(c->arena, "%s%s", ir_dtype_name(n->dtype), ir_dims_text(c, n));
}

uint32_t ir_metric_slots(const Graph *g, uint32_t n)
{
  uint32_t slots = 0;
  for (uint32_t i = 0; i < n; i++)
    slots += g->metrics.at[i].statistics ? g->metrics.at[i].statistics : 1;
  return slots;
}
