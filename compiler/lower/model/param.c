/* Makes parameters and buffers, their initial values and nodes. */
#include "model.h"
#include "compiler/graph/shares.h"
#include <math.h>

/* The limit on elements of all parameters and buffers. With 8 bytes for each element, in every
 * space, the total fits in 64 bits. */
#define MOST_PARAMS ((int64_t)1 << 48)

/* Makes only the slot. Only parameters of a model, which are known later, get memory. */
Datum make_param(Lower *l, Datum shape, Datum init, Datum dtype, bool buffer, Span span)
{
  const char *what = buffer ? "Buffer" : "Parameter";
  ParamSlot *p = arena_new(l->arena, ParamSlot);
  uint32_t rank = 0;
  if (!want_sizes(l, shape, span, arena_printf(l->arena, "the shape of %s", what), p->dim, &rank) ||
      !want_dtype(l, dtype, span, "`dtype`", &p->dtype))
    return d_of(D_error);
  for (uint32_t i = 0; i < rank; i++)
    if (p->dim[i] < 1)
      return fail(l, E209, span, "the shape of %s is %s; sizes are at least 1", what,
                  d_text(l, shape));
  int64_t elements = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (__builtin_mul_overflow(elements, p->dim[i], &elements)) elements = INT64_MAX / 2;
  if (elements > MOST_PARAMS - l->param_elements)
    return fail(l, E311, span, "%s %s: the parameters of a job have at most 2^48 elements", what,
                d_text(l, shape));
  l->param_elements += elements;
  if (init.kind != D_init)
    return fail(l, E209, span, "`init` needs an initialiser such as normal_(), got %s",
                d_kind_text(l, init));
  if (!buffer && !dtype_is_float(p->dtype))
    return fail(l, E209, span, "a Parameter is " AMPC_NARROW_LIST "or f32, got %s",
                ir_dtype_name(p->dtype));
  if (!buffer) p->store = p->dtype;
  if (!buffer) p->dtype = AMPC_F32;
  p->rank = (uint8_t)rank;
  p->buffer = buffer;
  p->init = init.as.init;
  p->span = p->init_span = diag_user_span(l->c, span);
  p->index = -1;
  return (Datum){.kind = D_param, .as.param = p};
}

bool want_store(Lower *l, Datum d, Span span, DType *out)
{
  if (!want_dtype(l, d, span, "the type of storage", out)) return false;
  if (dtype_is_float(*out)) return true;
  fail(l, E209, span, "parameters are stored as " AMPC_NARROW_LIST "or f32, got %s",
       ir_dtype_name(*out));
  return diag_help(l->c, "a frozen matrix can be quantized: `store(int8, ..)`, `store(nf4, ..)`");
}

/* Returns the version. For a parameter it increases with each step of one of its optimizers. For a
 * buffer it increases with each step of any optimizer, since a step also commits running
 * statistics. */
uint32_t param_version(const Lower *l, uint32_t index)
{
  uint32_t steps = 0;
  for (uint32_t i = 0; i < l->optimizers.n; i++) {
    const Parameter *p = &l->g->params.at[index];
    bool own = param_is_state(p) || share_find(l->g, index, i) != NO_SHARE;
    steps += own ? l->optimizers.at[i]->updates : 0;
  }
  return steps;
}

/* Returns the values of a quantized weight, whose codes the node `codes` reads. */
static Value packed_values(Lower *l, const ParamSlot *p, const Cursor *at, Value codes)
{
  bool nf4 = l->g->params.at[p->index].packing == AMPC_NF4;
  Value in[] = {codes, ir_append(l->c, at, OP_param, NULL, 0,
                                 ATTRS({"index", {.i = p->index}}, {"scales", {.i = true}}))};
  ir_node(l->g, in[1])->name = l->g->params.at[p->index].path;
  return ir_append(l->c, at, nf4 ? OP_nf4_values : OP_int8_values, in, 2,
                   ir_shape_attrs(l->c, p->dim, p->rank));
}

/* Returns the node that reads the parameter, or its 16-bit copy if it is stored in 16 bits and has
 * an f32 master. All
 * reads of one version in a block share the node. It is in the outermost region: it has the stored
 * type, which the consumer casts. */
Value param_value(Lower *l, ParamSlot *p, Span span)
{
  if (p->given.id) return p->given;
  if (p->index < 0) {
    fail(l, E210, span, "this parameter belongs to no model");
    diag_note(l->c, p->span, "it is made here");
    diag_help(l->c, "build its module inside the module of a `model`");
    return (Value){0};
  }
  uint32_t version = param_version(l, (uint32_t)p->index);
  bool average = l->averages.end && !p->buffer && !l->g->params.at[p->index].frozen &&
                 l->g->blocks.at[l->at.block].kind == AMPC_TRAIN;
  if (p->node.id && p->block == l->at.block && p->version == version && p->average == average)
    return p->node;
  Cursor at = l->at;
  at.region = 0;
  at.span = average ? l->averages : p->span; /* messages name the call of `.ema()` */
  p->node = ir_append(
      l->c, &at, OP_param, NULL, 0,
      ATTRS({"index", {.i = p->index}}, {"version", {.i = version}}, {"average", {.i = average}}));
  p->average = average;
  p->block = l->at.block;
  p->version = version;
  ir_node(l->g, p->node)->name = l->g->params.at[p->index].path;
  if (l->g->params.at[p->index].packing) return p->node = packed_values(l, p, &at, p->node);
  if (p->store == AMPC_F32 || p->store == ir_node(l->g, p->node)->dtype) return p->node;
  at.why = WHY_asked;
  p->node = ir_cast_asked(l->c, &at, p->node, p->store);
  return p->node;
}

/* ---- initialisers: the numbers of torch.nn.init ---- */

/* Computes torch.nn.init.calculate_gain, which compensates for the variance that an activation
 * removes. The gain of leaky_relu depends on its slope, init->a. */
static bool gain_of(Lower *l, const Init *init, Span span, double *out)
{
  static const struct {
    const char *name;
    double gain;
  } gains[] = {{"linear", 1},     {"sigmoid", 1},    {"tanh", 5.0 / 3},
               {"relu", M_SQRT2}, {"leaky_relu", 0}, {"selu", 0.75}};
  const char *names[sizeof gains / sizeof gains[0]];
  for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++) {
    names[i] = gains[i].name;
    if (strcmp(gains[i].name, init->gain) != 0) continue;
    *out = gains[i].gain != 0 ? gains[i].gain : sqrt(2 / (1 + init->a * init->a));
    return true;
  }
  fail(l, E205, span, "there is no nonlinearity \"%s\"", init->gain);
  const char *near = diag_nearest(init->gain, names, sizeof gains / sizeof gains[0]);
  if (near) diag_help(l->c, "did you mean \"%s\"?", near);
  return false;
}

/* Computes fan-in and fan-out: how many inputs an output depends on, and how many outputs depend on
 * an input. A weight has the shape [out, in, kernel...]. */
static bool fans(Lower *l, const ParamSlot *p, Span span, double *in, double *out)
{
  if (p->rank < 2) {
    Datum d = {.kind = D_param, .as.param = (ParamSlot *)(uintptr_t)p};
    return refuse(l, E209, span, "this initialiser needs at least two axes, the parameter is %s",
                  d_text(l, d));
  }
  double field = 1;
  for (uint32_t i = 2; i < p->rank; i++) field *= (double)p->dim[i];
  *in = (double)p->dim[1] * field;
  *out = (double)p->dim[0] * field;
  return true;
}

/* Checks initialisers that need a certain rank or size. */
static bool fits_shape(Lower *l, const Init *init, const ParamSlot *p, Span span)
{
  const char *needs = NULL;
  if (init->kind == INIT_eye && p->rank != 2) needs = "eye_ needs two axes";
  if (init->kind == INIT_orthogonal && p->rank < 2) needs = "orthogonal_ needs at least two axes";
  if (init->kind == INIT_dirac && (p->rank < 3 || p->rank > 5))
    needs = "dirac_ needs the weight of a convolution";
  else if (init->kind == INIT_dirac && (init->a < 1 || p->dim[0] % (int64_t)init->a != 0))
    needs = "`groups` of dirac_ divides the first axis";
  if (!needs) return true;
  Datum d = {.kind = D_param, .as.param = (ParamSlot *)(uintptr_t)p};
  return refuse(l, E209, span, "%s, the parameter is %s", needs, d_text(l, d));
}

/* Replaces xavier_* and kaiming_* by a normal or uniform distribution with numbers for this shape,
 * so the runtime needs neither. A uniform distribution with standard deviation s is on [-sqrt(3) s,
 * sqrt(3) s]. */
bool init_resolve(Lower *l, const Init *init, const ParamSlot *p, Span span, ampc_init *out)
{
  static const ampc_init_kind as_given[] = {[INIT_constant] = AMPC_INIT_CONSTANT,
                                            [INIT_uniform] = AMPC_INIT_UNIFORM,
                                            [INIT_normal] = AMPC_INIT_NORMAL,
                                            [INIT_trunc_normal] = AMPC_INIT_TRUNC_NORMAL,
                                            [INIT_eye] = AMPC_INIT_EYE,
                                            [INIT_dirac] = AMPC_INIT_DIRAC,
                                            [INIT_orthogonal] = AMPC_INIT_ORTHOGONAL,
                                            [INIT_padded] = AMPC_INIT_PADDED,
                                            [INIT_norms] = AMPC_INIT_NORMS,
                                            [INIT_left] = AMPC_INIT_LEFT,
                                            [INIT_right] = AMPC_INIT_RIGHT};
  double fan_in, fan_out, gain = init->a, std;
  bool by_fans = init->kind >= INIT_xavier_uniform && init->kind <= INIT_kaiming_normal;
  if (!by_fans) {
    *out = (ampc_init){as_given[init->kind], init->a, init->b, init->low, init->high};
    if (init->of) out->a = init->of->index - p->index;
    return fits_shape(l, init, p, span);
  }
  if (!fans(l, p, span, &fan_in, &fan_out)) return false;
  bool xavier = init->kind == INIT_xavier_uniform || init->kind == INIT_xavier_normal;
  if (xavier) {
    std = gain * sqrt(2 / (fan_in + fan_out));
  } else {
    if (!gain_of(l, init, span, &gain)) return false;
    std = gain / sqrt(init->fan_out ? fan_out : fan_in);
  }
  if (init->kind == INIT_xavier_normal || init->kind == INIT_kaiming_normal)
    *out = (ampc_init){.kind = AMPC_INIT_NORMAL, .b = std};
  else
    *out = (ampc_init){.kind = AMPC_INIT_UNIFORM, .a = -sqrt(3) * std, .b = sqrt(3) * std};
  return true;
}
