/* Prints the comment above a kernel: its purpose and its place in the job, the nodes that it
 * computes, types and shape. */
#include "compiler/base/user_text.h"
#include "compiler/base/names.h"
#include "compiler/graph/own.h"
#include "kernel_parts.h"
#include "runtime/plan/conv_columns.h"
#include <string.h>

/* ---- where it comes from ---- */

enum { WIDEST = 112 /* columns of a line */ };

/* Returns "features.2.1 BatchNorm2d"; "features.2.1" if the layer's type is not known. */
static const char *layer_text(Compile *c, const char *layer)
{
  const char *path = layer_path(c->graph, layer), *type = layer_type(c, layer);
  const char *text = type ? arena_printf(c->arena, "%s %s", path, type) : path;
  return comment_text(c->arena, text, strlen(text), 60);
}

/* Returns each layer of a node of the group once: "features.2.1 BatchNorm2d, features.2.2 ReLU". */
static const char *layers_text(Compile *c, const Group *p)
{
  enum { MOST = 3 };
  const char *seen[MOST];
  uint32_t n = 0;
  Text t = text_new(c->arena);
  for (uint32_t i = 0; i < p->n; i++) {
    const char *layer = ir_node(c->graph, p->nodes[i])->layer;
    uint32_t at = 0;
    while (layer && at < n && strcmp(seen[at], layer) != 0) at++;
    if (!layer || at < n) continue;
    if (n == MOST) {
      text_puts(&t, ", ..");
      break;
    }
    seen[n++] = layer;
    text_printf(&t, "%s%s", n > 1 ? ", " : "", layer_text(c, layer));
  }
  return t.at;
}

/* Returns the text of the job that a span covers, on one line; "" if the span is not in the job. */
static const char *span_text(const Compile *c, Span span, size_t width)
{
  Place place = diag_place(c, span);
  if (!span.end || !place.source || place.source->builtin) return "";
  const char *s = place.source->text + (span.start - place.source->base);
  Text t = text_new(c->arena);
  for (size_t n = span.end - span.start; n; s++, n--) {
    if (n > 1 && *s == '{' && s[1] == '\n') break; /* only the head of a block */
    bool blank = *s == ' ' || *s == '\t' || *s == '\n' || *s == '\r';
    if (!blank) text_add(&t, s, 1);
    if (blank && t.n && t.at[t.n - 1] != ' ') text_puts(&t, " ");
  }
  return comment_text(c->arena, t.at, t.n, width);
}

/* Returns the node whose expression describes the group best. */
static Value speaker(const Compile *c, uint32_t group)
{
  const Group *p = group_main_part(c->graph, group);
  return p->anchor.id ? p->anchor : p->nodes[p->n - 1];
}

/* Returns the owner of the group, a layer or an optimizer; NULL if it has no owner. */
static const char *owner_text(Compile *c, const Node *main)
{
  const char *optimizer = optimizer_name_of(c->graph, main);
  if (main->layer)
    return arena_printf(c->arena, "%s%s", main->origin.id ? "backward of " : "",
                        layer_text(c, main->layer));
  return optimizer ? arena_printf(c->arena, "optimizer %s", optimizer) : NULL;
}

Origin origin_of(Compile *c, uint32_t group, size_t width)
{
  Span span = diag_user_span(c, ir_node(c->graph, speaker(c, group))->span);
  Origin out = {.owner = owner_text(c, group_main_node(c->graph, group)), .text = "", .place = ""};
  Place place = span.end ? diag_place(c, span) : (Place){0};
  if (!place.source || place.source->builtin) return out;
  const char *file = file_name(place.source->path);
  out.place =
      arena_printf(c->arena, "%s:%u", comment_text(c->arena, file, strlen(file), 200), place.line);
  if (!out.owner) out.text = span_text(c, span, width);
  return out;
}

static const char *source_text(Compile *c, uint32_t group, size_t width)
{
  return span_text(c, diag_user_span(c, ir_node(c->graph, speaker(c, group))->span), width);
}

/* Returns the other layers or places that launch the kernel, each once: "features.3.1", "backward
 * of features.3.0", "mlp.amp:17". */
static const char *sharer_text(Compile *c, uint32_t group)
{
  const Node *main = group_main_node(c->graph, group);
  if (!main->layer) return origin_of(c, group, WIDEST).place;
  const char *path = layer_path(c->graph, main->layer);
  return arena_printf(c->arena, "%s%s", main->origin.id ? "backward of " : "",
                      comment_text(c->arena, path, strlen(path), 60));
}

typedef struct Seen {
  const char *text; /* NameIndex needs it as the first field */
} Seen;

static void put_sharers(const Kernel *k)
{
  Arena *a = k->c->arena;
  VEC(Seen) seen = {0};
  NameIndex index = {0};
  Text t = text_new(a);
  vec_push(a, &seen, (Seen){sharer_text(k->c, k->index)});
  for (uint32_t i = k->command->sharer; i; i = command_of(k->g, i)->sharer) {
    const char *text = sharer_text(k->c, i);
    if (name_find(a, &index, seen.at, seen.n, sizeof *seen.at, text) != NO_NAME) continue;
    vec_push(a, &seen, (Seen){text});
    text_printf(&t, "%s%s", t.n ? ", " : "", text);
  }
  if (t.n) EMIT_WRAPPED(k->p, "//              ", "//   also for   %s\n", t.at);
}

/* Prints for example
 *   // features_2_1_batch_norm_relu: features.2.1 BatchNorm2d, features.2.2 ReLU, mlp.amp:17
 *   //   source     features(x.unsqueeze(1)) */
static void put_title(const Kernel *k)
{
  Origin o = origin_of(k->c, k->index, WIDEST - 16);
  const char *layers = layers_text(k->c, group_main_part(k->g, k->index));
  const char *what = o.owner ? o.owner : o.text;
  if (*layers)
    what = arena_printf(k->c->arena, "%s%s",
                        group_main_node(k->g, k->index)->origin.id ? "backward of " : "", layers);
  EMIT_WRAPPED(k->p, "//     ", "// %s%s%s%s%s\n", k->name, *what ? ": " : "", what,
               *o.place ? ", " : "", o.place);
  const char *source = o.owner ? source_text(k->c, k->index, WIDEST - 16) : o.text;
  if (o.owner && *source && (!k->p->source || strcmp(k->p->source, source) != 0))
    EMIT(k->p, "//   source     %s\n", source);
  k->p->source = source;
  put_sharers(k);
}

/* ---- what it does ---- */

const char *kernel_nodes_text(const Kernel *k)
{
  Text t = text_new(k->c->arena);
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    text_printf(&t, "%s%%%u %s", i ? ", " : "", k->group->nodes[i].id, op_of(n)->name);
    if (n->origin.id) text_printf(&t, " (back of %s)", op_of(ir_node(k->g, n->origin))->name);
  }
  return t.at;
}

/* Prints for example
 *   //   nodes      %14 add, %15 relu; joined by pass fuse */
static void put_nodes_line(const Kernel *k)
{
  EMIT_WRAPPED(k->p, "//              ", "//   nodes      %s%s\n", kernel_nodes_text(k),
               k->group->n > 1 ? "; joined by pass fuse" : "");
}

/* Adds the types of arguments in this role, each once: "load f16, f32". */
static void add_type(const Kernel *k, Text *t, const char *lead, ArgRole role)
{
  uint32_t seen = 0;
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    bool both = role == ARG_in && a->over.id;
    if ((a->role != role && !both) || seen >> a->type & 1) continue;
    text_printf(t, "%s%s", seen ? ", " : lead, ir_dtype_name(a->type));
    seen |= 1u << a->type;
  }
}

/* Returns the type in which the nodes compute. They may read and write other types. */
static const char *arithmetic_text(const Kernel *k)
{
  if (kernel_template(k) == TMPL_move) return "no arithmetic";
  bool real = kernel_template(k) == TMPL_file, wide = false;
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    real |= ir_meets_floats(k->g, n);
    wide |= op_is_wide(k->c, n);
  }
  if (!real) return "compute integers";
  if (k->c->options.real64) return "compute f64";
  return wide ? "compute f32, sums f64" : "compute f32";
}

/* Adds the type of weights and moments that an update keeps in fewer bits: "; update bf16". */
static void add_narrow_state(const Kernel *k, Text *t)
{
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    if (a->role < ARG_master || a->role > ARG_moment3 || a->type == AMPC_F32) continue;
    text_printf(t, "; update %s", ir_dtype_name(a->type));
    return;
  }
}

/* Prints for example
 *   //   precision  load f16; compute f32; store f16; rounds add, relu */
static void put_precision(const Kernel *k)
{
  Text t = text_new(k->c->arena);
  add_type(k, &t, "load ", ARG_in);
  if (t.n) text_puts(&t, "; ");
  bool moves = kernel_template(k) == TMPL_move;
  text_puts(&t, kernel_template(k) == TMPL_own ? "compute as in its text" : arithmetic_text(k));
  add_type(k, &t, "; store ", ARG_out);
  add_narrow_state(k, &t);
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < k->group->n && !moves; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    if (own_of(n) || !needs_rounding(k, n)) continue;
    text_printf(&t, "%s%s", rounds++ ? ", " : "; rounds ", op_of(n)->name);
  }
  EMIT(k->p, "//   precision  %s\n", t.at);
}

const char *kernel_parts_text(const Kernel *k)
{
  const Group *g = k->group;
  const char *order = g->in_turn ? ", in turn" : g->last > 1 ? ", side by side" : "";
  const char *first = arena_printf(k->c->arena, "%u part%s%s", g->last, &"s"[g->last == 1], order);
  if (g->last == g->n_parts) return first;
  return arena_printf(k->c->arena, "%s, then %u by the last block", first, g->n_parts - g->last);
}

static const char *frame_name(const Kernel *k)
{
  const Target *target = target_of(k->c->options.target);
  if (k->group->n_parts) return kernel_parts_text(k);
  switch (kernel_template(k)) {
  case TMPL_row:
    return arena_printf(k->c->arena, "rows of templates/%s",
                        k->part->rows->columns ? target->columns : target->prelude);
  case TMPL_own:
    return arena_printf(k->c->arena, "the text of op %s", op_of(kernel_main_node(k))->name);
  case TMPL_file:
    return arena_printf(k->c->arena, "templates/%s", kernel_file(k)->name);
  default:
    return arena_printf(k->c->arena, "loops of templates/%s", target->prelude);
  }
}

static const char *vector_note(const Kernel *k)
{
  const MapWalk *m = k->part->map;
  if (!m) return "";
  if (m->rows > 1) return arena_printf(k->c->arena, " by %u rows of %u", m->rows, m->vector);
  return m->vector > 1 ? arena_printf(k->c->arena, " by %u", m->vector) : "";
}

const Node *kernel_walked_node(const Kernel *k)
{
  const Node *n = kernel_main_node(k);
  if (kernel_template(k) == TMPL_row) return ir_node(k->g, n->in[0]);
  bool effect = op_has(n, T_effect) && kernel_template(k) == TMPL_map;
  return effect ? node_walked(k->g, k->group->nodes[0]) : n;
}

/* Prints for example
 *   //   shape      [32, 512] = 16384 elements by 8; grid 8, block 256; loops of templates/cuda.cuh
 */
static void put_shape(const Kernel *k)
{
  Geometry at = k->part->at;
  const Node *n = kernel_walked_node(k);
  if (kernel_template(k) == TMPL_file || kernel_template(k) == TMPL_own || k->group->n_parts)
    EMIT(k->p, "//   shape      grid %u, block %u; %s\n", at.grid, at.block, frame_name(k));
  else
    EMIT(k->p, "//   shape      %s = %lld elements%s; grid %u, block %u; %s\n",
         ir_dims_text(k->c, n), (long long)ir_elements(n), vector_note(k), at.grid, at.block,
         frame_name(k));
}

/* Prints the lines of a kernel that computes columns, or a whole convolution. */
static void put_columns_lines(const Kernel *k)
{
  const ampc_conv *d = &k->command->conv;
  bool weight = d->kind == AMPC_CONV_WEIGHT;
  ConvColumns t = ampc_conv_columns(d, k->c->options.real64);
  if (t.whole && weight)
    EMIT(k->p,
         "//   whole      if no library computes it: sums of %lld parts, then their sum; grid %u, "
         "block %u; templates/conv_whole_weight.cu\n",
         (long long)t.sums, d->grid, d->block);
  else if (t.whole)
    EMIT(k->p,
         "//   whole      if no library computes it; grid %u, block %u; templates/conv_whole.cu\n",
         d->grid, d->block);
  if (t.whole) return;
  EMIT(k->p, "//   columns    of the %s for the product; grid %u, block %u; templates/im2col.cu\n",
       d->kind == AMPC_CONV_DATA ? "gradients, and transposed weights," : "images", d->grid,
       d->block);
}

void put_head(const Kernel *k)
{
  put_title(k);
  if (k->command->columns) {
    put_columns_lines(k);
    return;
  }
  put_nodes_line(k);
  put_precision(k);
  put_shape(k);
  put_library_line(k);
}
