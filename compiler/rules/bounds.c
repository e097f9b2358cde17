/* Bounds of the elements of every value, found without running the job.
 *
 * Note [bounds]
 * Nothing is known of weights and of most data, so most products have no useful bound. But every
 * finite number of a type is at most its largest one. So a weaker claim is often proved: if the
 * operands of an op are finite, so is its result (VERDICT_safe), as for relu of f16. Then no
 * overflow begins at this op. By induction over the order of execution: in every step, the first
 * value that is not finite has no such verdict; and as long as all values are finite, each element
 * is within its bound.
 *
 * An operand is therefore taken as finite, whatever its verdict is. An exception is -inf that the
 * job itself writes, as in masks. Its bound stays infinite, and nothing that is computed from it
 * gets a verdict.
 *
 * The interval of an op is that of its exact result, widened for rounding in f32 (Note [widening]).
 * Rounding to the stored type is monotone, so the rounded bounds contain the rounded numbers. */
#include "bounds.h"
#include "runtime/plan/types.h"
#include <math.h>

typedef struct Finder {
  Compile *c;
  const Graph *g;
  ValueBound *of; /* indexed by node */
} Finder;

/* ---- operands ---- */

static Interval all_of(DType d)
{
  double most = ampc_type_of(d)->greatest;
  return (Interval){-most, most};
}

static Interval operand(const Finder *f, const Node *n, uint32_t i)
{
  if (i >= n->n_in || !n->in[i].id) return INTERVAL_ANY;
  const Node *x = ir_node(f->g, n->in[i]);
  const ValueBound *b = &f->of[n->in[i].id];
  if (x->dtype == AMPC_BOOL) return (Interval){0, 1};
  if (dtype_is_integer(x->dtype)) {
    Interval r = integer_range(f->c, n->in[i]);
    return (Interval){fmax(r.low, -0x1p63), fmin(r.high, 0x1p63)};
  }
  return b->verdict == VERDICT_lost ? all_of(x->dtype) : bound_stored(b);
}

/* ---- lengths ---- */

/* Returns the number of elements that row op n, or its step, reduces. */
static Interval row_length(const Finder *f, const Node *n)
{
  uint64_t axes;
  uint32_t i;
  const OpInfo *op = op_of(n);
  const Node *x = n->n_in && n->in[0].id ? ir_node(f->g, n->in[0]) : NULL;
  if (attr_find(op, "length", &i)) return interval_of((double)n->attr[i].i);
  if (!x || op->tmpl != TMPL_row) return interval_of(1);
  double all = (double)ir_elements(x), length = 1;
  if (attr_find(op, "channel", &i)) return (Interval){1, all / (double)x->dim[n->attr[i].i]};
  if (attr_find(op, "columns", &i)) return (Interval){1, all / (double)n->attr[i].i};
  if (!op_axes(n, &axes)) return interval_of((double)x->dim[attr_int(n, "dim")]);
  for (uint32_t k = 0; k < x->rank; k++)
    if (!axes || axes >> k & 1) length *= (double)x->dim[k];
  return interval_of(length);
}

/* Returns the number of terms of each element of a product; 0: not known. */
static double terms_of(const Finder *f, const Node *n)
{
  const Node *a = ir_node(f->g, n->in[0]), *b = ir_node(f->g, n->in[1]);
  if (op_of(n)->tmpl == TMPL_gemm) {
    bool turned = n->op == OP_gemm && attr_int(n, "trans_a");
    return (double)a->dim[a->rank - (turned ? 2 : 1)];
  }
  bool gradient = op_has(n, T_gives_image) || op_has(n, T_gives_weight);
  return gradient ? 0 : (double)(ir_elements(b) / b->dim[0]);
}

/* ---- ops without code ---- */

/* Libraries may round the operands to tf32, and compute convolutions by other sums (Winograd). */
static Interval product(const Finder *f, const Node *n, const Interval *in)
{
  double terms = terms_of(f, n);
  if (terms == 0) return INTERVAL_ANY;
  Interval one = interval_mul(in[0], in[1]);
  if (op_of(n)->tmpl == TMPL_conv) one = interval_join(one, interval_of(0)); /* padding */
  Interval all = interval_widen(interval_sum(one, interval_of(terms)), 0x1p-8);
  return n->n_in > 2 && n->in[2].id ? interval_add(all, in[2]) : all;
}

/* A move copies elements of its inputs, or zeros. */
static Interval moved(const Finder *f, const Node *n, const Interval *in)
{
  Interval all = in[0];
  for (uint32_t i = 1; op_has(n, T_mixes) && i < n->n_in; i++)
    all = interval_join(all, operand(f, n, i));
  if (n->op == OP_pad) return interval_join(all, interval_of(attr_float(n, "value")));
  bool whole = op_has(n, T_mixes) || op_has(n, T_strided) || op_has(n, T_permutes);
  return whole ? all : interval_join(all, interval_of(0));
}

static Interval of_file(const Finder *f, const Node *n, const Interval *in)
{
  ImageDims image;
  switch (n->op) {
  case OP_max_pool2d:
  case OP_interpolate_nearest:
  case OP_pick_ordered:
    return in[0];
  case OP_place_ordered:
    return interval_join(in[0], interval_of(0));
  case OP_avg_pool2d:
    if (attr_int(n, "divisor")) return INTERVAL_ANY;
    return interval_widen(interval_join(in[0], interval_of(0)),
                          (double)(attr_int(n, "kernel0") * attr_int(n, "kernel1")) * 0x1p-20);
  case OP_adaptive_avg_pool2d:
    image = ir_image_dims(ir_node(f->g, n->in[0]));
    return interval_widen(in[0], (double)ir_pixels(&image) * 0x1p-20);
  case OP_cumsum:
    return interval_sum(in[0], (Interval){1, (double)n->dim[attr_int(n, "dim")]});
  default:
    return INTERVAL_ANY;
  }
}

static Interval of_leaf(const Finder *f, const Node *n)
{
  if (n->op == OP_number) return interval_of(attr_float(n, "value"));
  if (n->op != OP_source) return INTERVAL_ANY;
  const ampc_source *s = &f->g->sources.at[attr_int(n, "index")];
  if (s->kind != AMPC_SOURCE_SYNTHETIC) return INTERVAL_ANY;
  return s->low == 0 && s->high == 0 ? INTERVAL_NORMAL : (Interval){s->low, s->high};
}

/* ---- ops whose operands depend on each other ---- */

/* If one of n numbers deviates from their mean and the others are alike, it deviates by sqrt(n - 1)
 * standard deviations; no number deviates more. The mean is rounded, so the result may be larger,
 * but not twice as large. */
static Interval normalized(const Node *n, const Interval *in, double length, uint32_t weight)
{
  double most = 2 * sqrt(length), greatest = fmax(fabs(in[0].low), fabs(in[0].high));
  if (!(greatest * greatest * 4 * length < 1e38)) return INTERVAL_ANY; /* the squares overflow */
  Interval out = {-most, most};
  if (n->n_in > weight && n->in[weight].id) out = interval_mul(out, in[weight]);
  if (n->n_in > weight + 1 && n->in[weight + 1].id) out = interval_add(out, in[weight + 1]);
  return out;
}

static Interval of_code(const Finder *f, const Node *n, const Interval *in)
{
  Interval length = row_length(f, n);
  const Node *x = ir_node(f->g, n->in[0]);
  switch (n->op) {
  case OP_carry: /* the values of all iterations */
    return INTERVAL_ANY;
  case OP_softmax:
    return (Interval){0, 1};
  case OP_layer_norm:
  case OP_rms_norm:
    return normalized(n, in, length.low, 1);
  case OP_batch_norm:
    length.low = (double)(ir_elements(x) / x->dim[attr_int(n, "channel")]) * f->g->members;
    return normalized(n, in, length.low, 3);
  default:
    return interval_of_code(n, in, length);
  }
}

/* ---- nodes ---- */

/* True if n may read an index out of range, which gives NaN. Such an index ends the run, but in
 * loops nothing checks it; pass lower may have moved n out of its loop. */
static bool reads_anywhere(const Finder *f, const Node *n)
{
  bool reads = n->op == OP_gather || n->op == OP_index_select || n->op == OP_cross_entropy_rows;
  if (!reads || f->g->loops.n <= 1) return false;
  Interval r = integer_range(f->c, n->in[1]);
  int64_t axis = attr_int(n, n->op == OP_index_select ? "axis" : "dim");
  return r.low < 0 || r.high >= (double)ir_node(f->g, n->in[0])->dim[axis];
}

static Interval of_node(const Finder *f, const Node *n)
{
  Interval in[MAX_SIGNATURE + MAX_STATEMENTS];
  uint32_t most = sizeof in / sizeof *in;
  if (reads_anywhere(f, n)) return INTERVAL_ANY;
  for (uint32_t i = 0; i < most; i++) in[i] = operand(f, n, i);
  switch (op_of(n)->tmpl) {
  case TMPL_leaf:
    return of_leaf(f, n);
  case TMPL_alias:
  case TMPL_loop:
    return in[0];
  case TMPL_move:
    return moved(f, n, in);
  case TMPL_map:
  case TMPL_row:
    return n->n_in ? of_code(f, n, in) : interval_of_code(n, in, interval_of(1));
  case TMPL_gemm:
  case TMPL_conv:
    return product(f, n, in);
  case TMPL_file:
    return of_file(f, n, in);
  default:
    return INTERVAL_ANY;
  }
}

/* True if no operand contains an infinity that the job writes. */
static bool all_finite(const Finder *f, const Node *n)
{
  bool finite = !op_has(n, T_literal) && !(n->op == OP_pad && isinf(attr_float(n, "value")));
  for (uint32_t i = 0; i < n->n_in && finite; i++) {
    Interval x = operand(f, n, i);
    finite = !n->in[i].id || (isfinite(x.low) && isfinite(x.high));
  }
  return finite;
}

static Verdict verdict_on(DType d, Interval x)
{
  double over = ampc_type_of(d)->overflow, most = fmax(fabs(x.low), fabs(x.high));
  if (x.low >= over || x.high <= -over) return VERDICT_lost;
  if (most > 0 && rule_rounded(d, most) == 0) return VERDICT_zero;
  return most < over ? VERDICT_safe : VERDICT_open;
}

static ValueBound bound_of(const Finder *f, const Node *n)
{
  DType d = n->dtype;
  Interval x = of_node(f, n), all = all_of(d);
  bool finite = all_finite(f, n);
  if (!(x.low <= x.high)) x = (Interval){-INFINITY, INFINITY};
  Verdict verdict = finite ? verdict_on(d, x) : VERDICT_open;
  if (verdict == VERDICT_lost || verdict == VERDICT_zero) return (ValueBound){x, verdict};
  if (finite) x = (Interval){fmax(x.low, all.low), fmin(x.high, all.high)};
  return (ValueBound){{rule_rounded(d, x.low), rule_rounded(d, x.high)}, verdict};
}

const ValueBound *bounds_find(Compile *c)
{
  Finder f = {c, c->graph, arena_array(c->arena, ValueBound, c->graph->nodes.n)};
  for (uint32_t id = 1; id < f.g->nodes.n; id++) {
    const Node *n = &f.g->nodes.at[id];
    if (dtype_is_float(n->dtype) && !op_has(n, T_effect)) f.of[id] = bound_of(&f, n);
  }
  return f.of;
}

Interval bound_stored(const ValueBound *b)
{
  return b->verdict == VERDICT_zero ? interval_of(0) : b->range;
}

const char *bound_word(const Node *n, const ValueBound *b)
{
  static const char *const words[] = {[VERDICT_open] = "open",
                                      [VERDICT_safe] = "no",
                                      [VERDICT_lost] = "yes",
                                      [VERDICT_zero] = "no"};
  return dtype_is_float(n->dtype) ? words[b->verdict] : NULL;
}

/* ---- warnings ---- */

static void warn(Compile *c, const Node *n, const ValueBound *b)
{
  const ampc_type *type = ampc_type_of(n->dtype);
  bool lost = b->verdict == VERDICT_lost, asked = n->why == WHY_asked;
  double greatest = ampc_type_of(AMPC_F32)->greatest; /* bounds beyond it are infinite */
  double least = fmin(fmin(fabs(b->range.low), fabs(b->range.high)), greatest);
  if (lost)
    diag_warning(c, W411, n->span,
                 "each element of %s is infinite in %s: its magnitude is %.6g or more, the largest "
                 "%s is %s",
                 op_of(n)->name, type->name, least, type->name, type->greatest_text);
  else
    diag_warning(c, W411, n->span,
                 "each element of %s is 0 in %s: its magnitude is %.3g or less, the smallest %s "
                 "above 0 is %s",
                 op_of(n)->name, type->name, fmax(fabs(b->range.low), fabs(b->range.high)),
                 type->name, type->least_text);
  if (n->dtype == AMPC_F32)
    diag_help(c, "make its operands %s", lost ? "smaller" : "larger");
  else
    diag_help(c, asked ? "`.to(f32)`" : "compute it in `autocast(f32)`");
}

/* Warns once for each location: loops and blocks create several nodes for one line. */
void bounds_warn(Compile *c)
{
  const ValueBound *of = bounds_find(c);
  VEC(uint32_t) said = {0};
  for (uint32_t id = 1; id < c->graph->nodes.n; id++) {
    const Node *n = &c->graph->nodes.at[id];
    uint32_t start = diag_user_span(c, n->span).start;
    bool known = of[id].verdict < VERDICT_lost || !rule_numbers_fit(c, n);
    for (uint32_t i = 0; i < said.n && !known; i++) known = said.at[i] == start;
    if (known) continue;
    warn(c, n, &of[id]);
    vec_push(c->arena, &said, start);
  }
}
