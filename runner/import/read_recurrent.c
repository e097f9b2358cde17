/* LSTM, GRU and RNN: layers whose weights are ONNX's with the gates in the order of jobs. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

typedef struct Kind {
  const char *name, *activations; /* the usual ones, of one direction */
  int64_t gates, order[4];        /* gate i of jobs is gate order[i] of ONNX */
} Kind;
static const Kind kinds[] = {
    {"LSTM", "Sigmoid Tanh Tanh ", 4, {0, 2, 3, 1}}, /* i o f c; jobs: i f g o */
    {"GRU", "Sigmoid Tanh ", 3, {1, 0, 2}},          /* z r h; jobs: r z n */
    {"RNN", "Tanh ", 1, {0}}};

/* ---- weights ---- */

Value *made_tensor(Reader *r, int32_t type, size_t bytes, const int64_t *dims, size_t n)
{
  OnnxTensor *t = arena_new(r->arena, OnnxTensor);
  onnx__tensor_proto__init(t);
  t->data_type = type;
  t->n_dims = n;
  t->dims = arena_array(r->arena, int64_t, n + 1);
  memcpy(t->dims, dims, n * sizeof *dims);
  t->raw_data =
      (ProtobufCBinaryData){bytes, arena_alloc(r->arena, bytes + 1, _Alignof(max_align_t))};
  Value *v = arena_new(r->arena, Value);
  *v = (Value){.name = "", .kind = VALUE_weight, .type = type, .tensor = t};
  v->shape = fixed_shape(r, dims, (uint32_t)n);
  return v;
}

/* Rows of a tensor from `from` on, with the gates in the order of jobs. columns 0: a vector */
static Value *gates_of(Reader *r, const Kind *kind, const OnnxTensor *t, int64_t from,
                       int64_t hidden, int64_t columns)
{
  int64_t elements = tensor_elements(t), dims[] = {kind->gates * hidden, columns};
  size_t size = t->raw_data.len / (size_t)elements * (size_t)(columns ? columns : 1);
  Value *v = made_tensor(r, t->data_type, (size_t)dims[0] * size, dims, columns ? 2 : 1);
  for (int64_t g = 0; g < kind->gates; g++)
    memcpy(v->tensor->raw_data.data + (size_t)(g * hidden) * size,
           t->raw_data.data + (size_t)(from + kind->order[g] * hidden) * size,
           (size_t)hidden * size);
  return v;
}

void give_rows(Reader *r, const Value *made)
{
  Value *v = result(r, 0);
  if (!v) return;
  v->kind = VALUE_weight;
  v->type = made->type;
  v->tensor = made->tensor;
  v->shape = made->shape;
}

/* ---- nodes ---- */

typedef struct Cells {
  const Kind *kind;
  int64_t inputs, hidden, directions;
  bool backwards, relu;
  const Value *w, *r, *b;
} Cells;

/* A tensor of the file, or made of some. */
static bool of_cells(const Value *v)
{
  return v && v->kind == VALUE_weight && !v->turned;
}

/* Whether the activations are those of jobs. False after refusing. */
static bool read_activations(Reader *r, Cells *c)
{
  const char *given = "", *usual = "";
  const OnnxAttribute *a = attribute(r, "activations");
  for (size_t i = 0; a && i < a->n_strings; i++)
    given = text(r, "%s%.*s ", given, (int)a->strings[i].len, (const char *)a->strings[i].data);
  for (int64_t i = 0; i < c->directions; i++) usual = text(r, "%s%s", usual, c->kind->activations);
  c->relu = c->kind->gates == 1 && strcmp(given, c->directions == 2 ? "Relu Relu " : "Relu ") == 0;
  if (!*given || strcmp(given, usual) == 0 || c->relu) return true;
  refuse(r, text(r, "with activations %sinstead of %.*s", given, (int)strlen(usual) - 1, usual));
  return false;
}

/* Why the weights are not those of such a layer; NULL: they are. */
static const char *read_weights_of(Cells *c)
{
  bool own =
      of_cells(c->w) && of_cells(c->r) && (!c->b || of_cells(c->b)) && c->w->tensor->n_dims == 3;
  if (!own || !onnx_is_float(c->w->tensor->data_type))
    return "with weights that are computed or no floats of 3 axes";
  c->inputs = c->w->tensor->dims[2];
  int64_t rows = c->directions * c->kind->gates * c->hidden;
  bool fits = c->hidden > 0 && c->hidden < 1 << 24 && c->inputs > 0 && c->inputs < 1 << 24 &&
              tensor_elements(c->w->tensor) == rows * c->inputs &&
              tensor_elements(c->r->tensor) == rows * c->hidden &&
              (!c->b || tensor_elements(c->b->tensor) == 2 * rows);
  return fits ? NULL : "with weights whose shapes do not fit hidden_size";
}

/* Reads the layer of the node at work. False after refusing. */
static bool read_cells(Reader *r, Cells *c)
{
  const char *direction = attr_word(r, "direction", "forward"), *why = NULL;
  *c = (Cells){.kind = kinds,
               .hidden = attr_number(r, "hidden_size", 0),
               .directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1,
               .backwards = strcmp(direction, "reverse") == 0,
               .w = in(r, 1),
               .r = in(r, 2),
               .b = is_zero(in(r, 3)) ? NULL : in(r, 3)};
  while (strcmp(c->kind->name, r->node->op_type) != 0) c->kind++;
  if (!read_activations(r, c)) return false;
  if (attr_number(r, "layout", 0) || attr_number(r, "input_forget", 0))
    why = "with layout=1 or input_forget=1";
  else if (c->kind->gates == 3 && attr_number(r, "linear_before_reset", 0) == 0)
    why = "with linear_before_reset=0";
  else if (in(r, 4) || in(r, 7))
    why = in(r, 4) ? "with sequence_lens" : "with peepholes";
  else
    why = read_weights_of(c);
  if (why) refuse(r, why);
  return !why;
}

/* Makes the layer. Its path is that of the module around it; further layers of the module are
 * called cells_l1 .. */
static const char *cells_layer(Reader *r, const Cells *c)
{
  static const char *const names[] = {
      "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
      "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse"};
  const char *used[8], *around = scope_path(r), *more = c->b ? "" : ", bias=false", *path;
  Value **tensor;
  uint32_t n = 0;
  int64_t rows = c->kind->gates * c->hidden;
  if (c->directions == 2) more = text(r, "%s, bidirectional=true", more);
  if (c->relu) more = text(r, "%s, nonlinearity=\"relu\"", more);
  const char *made =
      text(r, "%s(%" PRId64 ", %" PRId64 "%s)", c->kind->name, c->inputs, c->hidden, more);
  /* a second call has the same tensors: values of the file have ids, others have 0 */
  void **known =
      names_at(&r->cells, text(r, "%u %u %u %s", c->w->id, c->r->id, c->b ? c->b->id : 0, made));
  if (*known) return layer(r, "cells", made, *known, NULL, 0);
  *known = tensor = arena_array(r->arena, Value *, 8);
  for (int64_t d = 0; d < c->directions; d++) {
    tensor[n] = gates_of(r, c->kind, c->w->tensor, d * rows, c->hidden, c->inputs),
    used[n++] = names[4 * d];
    tensor[n] = gates_of(r, c->kind, c->r->tensor, d * rows, c->hidden, c->hidden),
    used[n++] = names[4 * d + 1];
    for (int64_t i = 0; c->b && i < 2; i++)
      tensor[n] = gates_of(r, c->kind, c->b->tensor, (2 * d + i) * rows, c->hidden, 0),
      used[n++] = names[4 * d + 2 + i];
  }
  path = *around ? around : c->kind->gates == 4 ? "lstm" : c->kind->gates == 3 ? "gru" : "rnn";
  const char *stem = path;
  for (int i = 1; names_get(&r->paths, path); i++) path = text(r, "%s_l%d", stem, i);
  tensor[0]->name = text(r, "%s.weight", path);
  return layer(r, "cells", made, tensor, used, n);
}

static bool is_absent(const Value *v)
{
  return !v || is_zero(v);
}

/* The initial states as an argument: ", (h, c)". */
static const char *states(Reader *r, const Cells *c)
{
  const Value *h = in(r, 5), *state = c->kind->gates == 4 ? in(r, 6) : NULL;
  if (is_absent(h) && is_absent(state)) return "";
  const char *none = text(r, "full([%" PRId64 ", %s.size(1), %" PRId64 "], 0.0)", c->directions,
                          whole_ref(r, in(r, 0)), c->hidden);
  const char *first = is_absent(h) ? none : whole_ref(r, h);
  if (c->kind->gates != 4) return text(r, ", %s", first);
  return text(r, ", (%s, %s)", first, is_absent(state) ? none : whole_ref(r, state));
}

void read_recurrent(Reader *r)
{
  Cells c;
  const char *all[3];
  if (!read_cells(r, &c)) return;
  bool lstm = c.kind->gates == 4;
  const Value *x = in(r, 0);
  const char *cells = cells_layer(r, &c), *of = whole_ref(r, x), *given = states(r, &c);
  if (c.backwards) of = text(r, "flip(%s, 0)", of);
  const char *both = ref(r, between(r, text(r, "%s(%s%s)", cells, of, given)));
  all[0] = c.backwards ? text(r, "flip(%s[0], 0)", both) : text(r, "%s[0]", both);
  if (c.directions == 1)
    all[0] = text(r, "%s.unsqueeze(1)", all[0]);
  else
    all[0] = text(r, "%s.unflatten(2, [2, %" PRId64 "]).transpose(1, 2)", all[0], c.hidden);
  all[1] = text(r, lstm ? "%s[1][0]" : "%s[1]", both);
  all[2] = text(r, "%s[1][1]", both);
  uint32_t n = n_results(r);
  if (n == 1)
    give(r, all[0]);
  else
    give_results(r,
                 n == 2 ? text(r, "%s, %s", all[0], all[1])
                        : text(r, "%s, %s, %s", all[0], all[1], all[2]),
                 n);
}
