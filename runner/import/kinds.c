/* Decides which tensors of a file train. A table at the end has the order of the evidence. */
#include <math.h>
#include <string.h>
#include "read.h"

/* ---- PyTorch's list of tensors ---- */

char listed_parameter, listed_buffer, listed_temporary, listed_constant, listed_state;

/* Whether an exporter without a list made up the name: PyTorch's older one "onnx::MatMul_12",
 * "/Constant_output_0", "12"; amp export "net/Number_12". */
static bool is_numbered(const char *name)
{
  const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
  return *name == '/' || strstr(name, "::") || name[strspn(name, "0123456789")] == 0 ||
         strncmp(last, "Number_", 7) == 0 || strncmp(last, "Scales_", 7) == 0 ||
         strncmp(last, "Ints_", 5) == 0;
}

/* These exporters have no list. But tensors of the net have its names, and those that are stored
 * once have further names: results of Identity. */
static void list_state(Reader *r)
{
  const char *producer = r->model->producer_name ? r->model->producer_name : "";
  if (strcmp(producer, "pytorch") != 0 && strcmp(producer, "ampc") != 0) return;
  for (size_t i = 0; i < r->graph->n_initializer; i++) {
    const char *name = r->graph->initializer[i]->name;
    if (name && !is_numbered(name)) *names_at(&r->listed, name) = &listed_state;
  }
  for (size_t i = 0; i < r->graph->n_node; i++) {
    const OnnxNode *n = r->graph->node[i];
    bool same = n->op_type && strcmp(n->op_type, "Identity") == 0 && n->n_input && n->n_output &&
                n->input[0] && n->output[0];
    if (same && names_get(&r->listed, n->input[0]) && !is_numbered(n->output[0]))
      *names_at(&r->listed, n->output[0]) = &listed_state;
  }
}

/* Reads the list: "p_fc_weight: PARAMETER target='fc.weight'", "b_mask: BUFFER target='mask'
 * persistent=True", "c_lifted: CONSTANT_TENSOR target='lifted'". Other entries are no tensors. */
void list_tensors(Reader *r)
{
  static const char target[] = " target='", unsaved[] = "' persistent=False";
  static const struct {
    const char *word;
    char *kind;
  } words[] = {{": PARAMETER", &listed_parameter},
               {": BUFFER", &listed_buffer},
               {": CONSTANT_TENSOR", &listed_constant}};
  const char *from =
      graph_metadata(r->arena, r->graph, "pkg.torch.export.ExportedProgram.graph_signature");
  for (const char *at = from; at && (at = strstr(at, target));) {
    const char *word = at, *name = at + sizeof target - 1;
    size_t n = strcspn(name, "'");
    at = name + n;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
      size_t length = strlen(words[i].word);
      if ((size_t)(word - from) < length || memcmp(word - length, words[i].word, length) != 0)
        continue;
      bool temporary =
          words[i].kind == &listed_buffer && strncmp(at, unsaved, sizeof unsaved - 1) == 0;
      *names_at(&r->listed, arena_strndup(r->arena, name, n)) =
          temporary ? &listed_temporary : words[i].kind;
    }
  }
  r->has_list = from != NULL;
  if (!from) list_state(r);
}

bool in_state_dict(const void *listed)
{
  return listed && listed != &listed_temporary && listed != &listed_constant;
}

bool is_made_up(Reader *r, const char *name)
{
  if (r->has_list || r->listed.entries.n) return !in_state_dict(names_get(&r->listed, name));
  return name[strcspn(name, ":/")] || name[strspn(name, "0123456789")] == 0;
}

bool stored_once(const OnnxTensor *t)
{
  return t->n_dims < 2 || is_filled(t);
}

/* ---- what the user asks for ---- */

ampc_status name_trained(Reader *r, const char *names)
{
  for (const char *at = names; at && *at; at += *at == ',') {
    size_t n = strcspn(at, ",");
    const char *name = arena_strndup(r->arena, at, n);
    bool known = false;
    for (size_t i = 0; i < r->graph->n_initializer; i++) {
      const OnnxTensor *t = r->graph->initializer[i];
      known = known || (t->name && strcmp(t->name, name) == 0 && onnx_is_float(t->data_type));
    }
    for (size_t i = 0; i < r->graph->n_node; i++) {
      const OnnxNode *c = r->graph->node[i];
      bool constant = c->op_type && strcmp(c->op_type, "Constant") == 0 && c->n_output;
      known = known || (constant && c->output[0] && strcmp(c->output[0], name) == 0);
    }
    if (!known)
      return ampc_fail(AMPC_BAD_USAGE, "--train %s: the model has no tensor of floats of this name",
                       name);
    *names_at(&r->trained, name) = r;
    at += n;
  }
  return AMPC_OK;
}

/* ---- what reads a tensor ---- */

/* The inputs that are weights of a layer: bit i is input i. `stem`: what a layer without a name is
 * called. */
static const struct {
  const char *op, *stem;
  unsigned inputs;
} places[] = {{"Conv", "conv", 6},
              {"ConvTranspose", "conv", 6},
              {"Gemm", "linear", 7},
              {"MatMul", "linear", 3},
              {"BatchNormalization", "norm", 30},
              {"LayerNormalization", "norm", 6},
              {"RMSNormalization", "norm", 2},
              {"GroupNormalization", "norm", 6},
              {"InstanceNormalization", "norm", 6},
              {"PRelu", "prelu", 2},
              {"LSTM", "lstm", CELL_INPUTS},
              {"GRU", "gru", CELL_INPUTS},
              {"RNN", "rnn", CELL_INPUTS},
              {"Gather", "embedding", 1}};
/* Ops between a weight and its layer. */
static const char *const moves[] = {"Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze",
                                    "Cast",     "Slice",     "Split",   "Concat"};

static char in_place, in_cells, as_bias; /* in_cells: of a recurrent layer */

unsigned weight_inputs(const char *op, const char **stem)
{
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (strcmp(places[i].op, op) == 0) return *stem = places[i].stem, places[i].inputs;
  return 0;
}

/* The place of what the node's result becomes; NULL: it is no weight, or changed. */
static const char *place_after(Reader *r, const OnnxNode *n)
{
  const char *after = NULL;
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    for (size_t k = 0; strcmp(moves[i], n->op_type) == 0 && k < n->n_output; k++) {
      const char *place = n->output[k] ? names_get(&r->places, n->output[k]) : NULL;
      if (place == &in_place || place == &in_cells) after = place;
    }
  return after;
}

bool feeds_cells(Reader *r, const char *name)
{
  return names_get(&r->places, name) == &in_cells;
}

static void find_products(const OnnxGraph *g, NameMap *products)
{
  for (size_t i = 0; i < g->n_node; i++) {
    const OnnxNode *n = g->node[i];
    const char *stem;
    bool product =
        n->op_type && n->n_output && n->output[0] && (weight_inputs(n->op_type, &stem) & 2);
    if (product) *names_at(products, n->output[0]) = products;
    for (size_t k = 0; k < n->n_attribute; k++)
      if (n->attribute[k]->g) find_products(n->attribute[k]->g, products);
  }
}

static void find_places_in(Reader *r, const OnnxGraph *g, NameMap *products)
{
  for (size_t i = g->n_node; i-- > 0;) {
    const OnnxNode *n = g->node[i];
    if (!n->op_type) continue;
    for (size_t k = 0; k < n->n_attribute; k++)
      if (n->attribute[k]->g) find_places_in(r, n->attribute[k]->g, products);
    const char *after = place_after(r, n), *stem;
    unsigned inputs = after ? UINT32_MAX : weight_inputs(n->op_type, &stem);
    bool sum = strcmp(n->op_type, "Add") == 0 && n->n_input == 2;
    if (!after) after = inputs == CELL_INPUTS ? &in_cells : &in_place;
    for (size_t k = 0; k < n->n_input && k < 32; k++) {
      if (!n->input[k]) continue;
      if (inputs >> k & 1)
        *names_at(&r->places, n->input[k]) = (void *)(uintptr_t)after;
      else if (sum && n->input[1 - k] && names_get(products, n->input[1 - k]) &&
               !names_get(&r->places, n->input[k]))
        *names_at(&r->places, n->input[k]) = &as_bias;
    }
  }
}

void find_places(Reader *r)
{
  NameMap products = {.arena = r->arena};
  find_products(r->graph, &products);
  find_places_in(r, r->graph, &products);
}

/* ---- evidence, each about a tensor of the file ---- */

static bool is_asked_for(Reader *r, const Value *v)
{
  return names_get(&r->trained, v->name) != NULL;
}

static bool is_listed_parameter(Reader *r, const Value *v)
{
  return names_get(&r->listed, v->name) == &listed_parameter;
}

static bool is_listed_buffer(Reader *r, const Value *v)
{
  const void *listed = names_get(&r->listed, v->name);
  return listed == &listed_buffer || listed == &listed_temporary;
}

static bool is_listed_constant(Reader *r, const Value *v)
{
  return names_get(&r->listed, v->name) == &listed_constant;
}

static bool is_of_node(Reader *r, const Value *v)
{
  (void)v;
  return r->node != NULL; /* the tensors of the graph come before its nodes */
}

static bool is_no_parameter(Reader *r, const Value *v)
{
  (void)r;
  if (!onnx_is_float(v->tensor->data_type)) return true;
  for (int64_t i = 0, n = tensor_elements(v->tensor); i < n; i++)
    if (!isfinite(tensor_real(v->tensor, i))) return true;
  return false;
}

static bool is_in_place(Reader *r, const Value *v)
{
  const void *place = names_get(&r->places, v->name);
  return place == &in_place || place == &in_cells || (place == &as_bias && v->tensor->n_dims == 1);
}

/* The exporter made it from weights of the net. For norms and layers without weights it also makes
 * vectors of ones and zeros. */
static bool is_folded_weight(Reader *r, const Value *v)
{
  double first = v->tensor->n_dims == 1 && is_filled(v->tensor) ? tensor_real(v->tensor, 0) : 2;
  return is_made_up(r, v->name) && is_in_place(r, v) && first != 0 && first != 1;
}

static bool is_of_exporter(Reader *r, const Value *v)
{
  return (r->has_list || r->listed.entries.n) && is_made_up(r, v->name);
}

static bool is_in_state(Reader *r, const Value *v)
{
  return names_get(&r->listed, v->name) == &listed_state;
}

static bool is_one_number(Reader *r, const Value *v)
{
  (void)r;
  return tensor_elements(v->tensor) == 1;
}

/* The first line that holds decides. docs/onnx.md has the table in words. */
static const struct {
  bool (*holds)(Reader *r, const Value *v);
  TensorKind kind;
} evidence[] = {{is_asked_for, TENSOR_trains},     {is_listed_parameter, TENSOR_trains},
                {is_listed_buffer, TENSOR_buffer}, {is_listed_constant, TENSOR_constant},
                {is_of_node, TENSOR_constant},     {is_no_parameter, TENSOR_buffer},
                {is_folded_weight, TENSOR_trains}, {is_of_exporter, TENSOR_constant},
                {is_in_state, TENSOR_trains},      {is_in_place, TENSOR_trains},
                {is_one_number, TENSOR_constant}};

TensorKind kind_of_tensor(Reader *r, const Value *v)
{
  for (size_t i = 0; i < sizeof evidence / sizeof *evidence; i++)
    if (evidence[i].holds(r, v)) return evidence[i].kind;
  return TENSOR_trains;
}
