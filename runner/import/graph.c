/* Reads an ONNX graph into values, steps and members: constants, arguments, nodes, results. */
#include <string.h>
#include "common/shown.h"
#include "read_ops.h"

/* Whether the constant is a small integer tensor, whose numbers are read now. */
static bool are_items(const OnnxTensor *t)
{
  bool whole = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
               t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32 ||
               t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
  return whole && t->n_dims <= 1 && tensor_elements(t) <= MOST_ITEMS;
}

bool is_filled(const OnnxTensor *t)
{
  int64_t n = tensor_elements(t), i = 1;
  while (i < n && tensor_real(t, i) == tensor_real(t, 0)) i++;
  return n > 0 && i >= n;
}

void read_constant(Reader *r, Value *v, const OnnxTensor *t)
{
  v->tensor = t;
  v->tensor_kind = kind_of_tensor(r, v);
  v->type = t->data_type;
  v->kind = VALUE_weight;
  v->shape = fixed_shape(r, t->dims, (uint32_t)t->n_dims);
  if (are_items(t)) {
    v->kind = VALUE_items;
    v->n = (uint32_t)tensor_elements(t);
    v->item = arena_array(r->arena, Item, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) v->item[i].n = tensor_int(t, i);
    return;
  }
  if (!onnx_is_float(t->data_type) || v->tensor_kind != TENSOR_constant) return;
  if (!r->node || !is_filled(t)) vec_push(r->arena, &r->constants, v->name);
  if (!is_filled(t)) return;
  Item shape[READ_RANK] = {{0}};
  for (uint32_t i = 0; i < t->n_dims; i++) shape[i].n = t->dims[i];
  fill_value(r, v, VALUE_number, tensor_real(t, 0), shape, (uint32_t)t->n_dims);
}

static ampc_status read_if(Reader *r);

static ampc_status damaged(const Reader *r, const char *what, const char *name)
{
  char shown[200];
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s %s", r->path, what,
                   ampc_show(shown, sizeof shown, name ? name : "", ""));
}

/* The type of a value; the compiler tells its shape. */
static void read_value_info(Reader *r, const OnnxValueInfo *info)
{
  if (!info->name || !info->type || !info->type->tensor_type) return;
  Value *v = named(r, info->name);
  v->type = info->type->tensor_type->elem_type;
  v->stated = info->type->tensor_type->shape;
}

static ampc_status read_tensors(Reader *r, const OnnxGraph *g)
{
  for (size_t i = 0; i < g->n_value_info; i++) read_value_info(r, g->value_info[i]);
  for (size_t i = 0; i < g->n_output; i++) read_value_info(r, g->output[i]);
  for (size_t i = 0; i < g->n_initializer; i++) {
    OnnxTensor *t = g->initializer[i];
    if (!t->name || !*t->name) return damaged(r, "a tensor has", "no name");
    Value *v = named(r, t->name);
    if (v->kind != VALUE_unread) return damaged(r, "two tensors are called", t->name);
    ampc_status status = tensor_load(r, t);
    if (status) return status;
    read_constant(r, v, t);
  }
  return AMPC_OK;
}

static ampc_status read_arguments(Reader *r)
{
  const OnnxGraph *g = r->graph;
  for (size_t i = 0; i < g->n_input; i++) {
    read_value_info(r, g->input[i]);
    Value *v = g->input[i]->name ? named(r, g->input[i]->name) : NULL;
    if (!v || v->kind != VALUE_unread) continue; /* old files list tensors here, too */
    v->kind = VALUE_tensor;
    v->argument = true;
    if (!v->stated || v->stated->n_dim > READ_RANK || !type_word(v->type))
      return damaged(r,
                     "no shape of at most 6 axes, or no type that jobs have, is stated for "
                     "argument",
                     v->name);
    vec_push(r->arena, &r->arguments, v);
  }
  return AMPC_OK;
}

/* Whether all inputs are read. *missing: an input without a maker, or NULL. */
static bool inputs_read(Reader *r, const char **missing)
{
  bool all = true;
  *missing = NULL;
  for (size_t i = 0; i < r->node->n_input; i++) {
    const char *name = r->node->input[i];
    const Value *v = value_named(r, name);
    if (name && *name && (!v || (v->kind == VALUE_unread && !v->maker))) *missing = name;
    all = all && (!v || v->kind != VALUE_unread);
  }
  return all;
}

/* Takes away what a node gave before it was refused. */
static void drop_node(Reader *r, uint32_t steps)
{
  r->steps.n = steps;
  for (size_t i = 0; i < r->node->n_output; i++)
    if (result(r, i) && result(r, i)->maker == r->node) result(r, i)->kind = VALUE_unread;
}

static ampc_status read_node(Reader *r)
{
  const char *missing;
  bool ready = inputs_read(r, &missing);
  if (!r->node->op_type) return damaged(r, "a node has", "no operator");
  if (missing) return damaged(r, "no earlier node has the result", missing);
  for (size_t i = 0; i < r->node->n_output; i++) {
    const char *name = r->node->output[i];
    if (!name || !*name) continue;
    Value *v = named(r, name);
    if (v->maker || v->kind != VALUE_unread) return damaged(r, "two nodes have the result", name);
    v->maker = r->node;
  }
  if (!ready) return AMPC_OK; /* the node that it needs has been refused */
  r->dropped = false;
  r->scopes = (Scopes){0};
  r->asked_inputs = r->asked_attributes = 0;
  r->place = scope_path(r);
  uint32_t steps = r->steps.n;
  ampc_status status = AMPC_OK;
  if (strcmp(r->node->op_type, "If") == 0)
    status = read_if(r);
  else if (strcmp(r->node->op_type, "Scan") == 0)
    status = read_scan(r);
  else
    read_op(r);
  if (r->dropped) drop_node(r, steps);
  return status;
}

static ampc_status read_nodes(Reader *r, const OnnxGraph *g)
{
  ampc_status status = AMPC_OK;
  const OnnxGraph *outer = r->nodes;
  const OnnxNode *node = r->node;
  size_t index = r->index;
  r->nodes = g;
  for (size_t i = 0; i < g->n_node && !status; i++) {
    r->node = g->node[i];
    r->index = i;
    status = read_node(r);
  }
  r->nodes = outer;
  r->index = index;
  if (outer) r->node = node;
  return status;
}

ampc_status read_inner(Reader *r, const OnnxGraph *g)
{
  const bool dropped = r->dropped;
  const char *place = r->place;
  const Scopes scopes = r->scopes;
  ampc_status status = read_tensors(r, g);
  if (!status) status = read_nodes(r, g);
  r->dropped = dropped;
  r->place = place;
  r->scopes = scopes;
  return status;
}

/* Names in a branch of an If may be those of the other branch. */
static void forget_names(Reader *r, const OnnxGraph *g)
{
  for (size_t i = 0; i < g->n_initializer; i++)
    *names_at(&r->names, g->initializer[i]->name) = NULL;
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++)
      if (g->node[i]->output[k]) *names_at(&r->names, g->node[i]->output[k]) = NULL;
}

/* Reads a branch of the If at work; its steps become part of the graph. Some results are NULL if a
 * node was refused. */
static ampc_status read_branch(Reader *r, const char *name, const Value **out)
{
  const OnnxAttribute *a = attribute(r, name);
  const OnnxGraph *g = a ? a->g : NULL;
  if (!g || g->n_output != r->node->n_output) return damaged(r, "an If has no", name);
  ampc_status status = read_inner(r, g);
  for (size_t i = 0; i < g->n_output && !status; i++) {
    const Value *v = value_named(r, g->output[i]->name);
    if (!v) return damaged(r, "no node of a branch has the result", g->output[i]->name);
    out[i] = v->kind != VALUE_unread ? v : NULL;
  }
  if (!status) forget_names(r, g);
  return status;
}

/* If the condition is known when the job compiles, one branch counts. Otherwise the job computes
 * both. */
static ampc_status read_if(Reader *r)
{
  const Value *c = in(r, 0);
  size_t n = r->node->n_output;
  const Value **then = arena_array(r->arena, const Value *, n + 1),
              **other = arena_array(r->arena, const Value *, n + 1);
  bool known = is_known(c) && c->n == 1, one = c && c->kind == VALUE_tensor && c->shape;
  for (int64_t i = 0, size; one && i < rank_of(c); i++) one = size_of(c, i, &size) && size == 1;
  if (!known && !one) return refuse(r, "without a condition that is one bool"), AMPC_OK;
  if (known) {
    ampc_status status = read_branch(r, c->item[0].n ? "then_branch" : "else_branch", then);
    for (size_t i = 0; i < n && !status; i++)
      if (then[i]) give_value_as(r, i, then[i]);
    return status;
  }
  ampc_status status = read_branch(r, "then_branch", then);
  if (!status) status = read_branch(r, "else_branch", other);
  const char *truth = text(r, rank_of(c) ? "%s.flatten()[0]" : "%s", ref(r, c));
  for (size_t i = 0; i < n && !status; i++)
    if (then[i] && other[i] && result(r, i))
      give_value_as(r, i,
                    between(r, text(r, "where(%s, %s, %s)", truth, whole_ref(r, then[i]),
                                    whole_ref(r, other[i]))));
  return status;
}

static void count_readers(Reader *r, const OnnxGraph *g)
{
  for (size_t i = 0; i < g->n_node; i++) {
    for (size_t k = 0; k < g->node[i]->n_input; k++)
      if (g->node[i]->input[k] && *g->node[i]->input[k]) named(r, g->node[i]->input[k])->readers++;
    for (size_t k = 0; k < g->node[i]->n_attribute; k++)
      if (g->node[i]->attribute[k]->g) count_readers(r, g->node[i]->attribute[k]->g);
  }
  for (size_t i = 0; i < g->n_output; i++)
    if (g->output[i]->name) named(r, g->output[i]->name)->readers++;
}

/* A step that computes a result that is a constant. */
static Value *constant_result(Reader *r, const Value *v)
{
  Value *y = between(r, whole_ref(r, v));
  y->name = v->name;
  y->type = v->type;
  y->shape = v->shape;
  return y;
}

static ampc_status read_results(Reader *r)
{
  for (size_t i = 0; i < r->graph->n_output; i++) {
    const char *name = r->graph->output[i]->name;
    Value *v = value_named(r, name);
    if (!v || (v->kind == VALUE_unread && !v->maker))
      return damaged(r, "no node has the result", name);
    bool constant = v->kind != VALUE_tensor && v->kind != VALUE_unread;
    if (constant && !r->node) return damaged(r, "no node at all; a constant is the result", name);
    if (constant) v = constant_result(r, v);
    vec_push(r->arena, &r->results, v);
  }
  return AMPC_OK;
}

static ampc_status read_graph(Reader *r, const ReadWishes *wishes, Vary vary)
{
  count_readers(r, r->graph);
  ampc_status status = read_tensors(r, r->graph);
  if (!status) status = read_arguments(r);
  if (!status) status = sizes_choose(r, wishes->size, wishes->n_sizes, vary);
  if (status) return status;
  ask_begin(r);
  for (uint32_t i = 0; i < r->arguments.n; i++) ask_tensor(r, r->arguments.at[i]);
  status = read_nodes(r, r->graph);
  if (!status) status = read_results(r);
  ask_end(r);
  return status;
}

static ampc_status read_varied(Reader *r, Arena *arena, const OnnxModel *model,
                               const ReadWishes *wishes, Vary vary, uint32_t guess)
{
  *r = (Reader){.arena = arena,
                .guess = guess,
                .model = model,
                .graph = model->graph,
                .path = wishes->path,
                .folder = wishes->folder,
                .opset = 1};
  r->names.arena = r->paths.arena = r->counts.arena = r->listed.arena = r->cells.arena = arena;
  r->places.arena = r->trained.arena = arena;
  ampc_status status = name_trained(r, wishes->train);
  if (status) return status;
  list_tensors(r);
  find_places(r);
  for (size_t i = 0; i < model->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *set = model->opset_import[i];
    if (!set->domain || !*set->domain || strcmp(set->domain, "ai.onnx") == 0)
      r->opset = set->version;
  }
  return read_graph(r, wishes, vary);
}

/* Reads the model with the first guess of its open sizes that the compiler accepts; if there is
 * none, with the first one. */
static ampc_status read_guessed(Reader *r, Arena *arena, const OnnxModel *model,
                                const ReadWishes *wishes, Vary vary)
{
  ampc_status status;
  uint32_t guess = 0;
  bool again;
  do {
    status = read_varied(r, arena, model, wishes, vary, guess);
    again = !status && r->refused_by_compiler && sizes_guess_again(r);
    guess++;
  } while (again);
  if (!status && r->refused_by_compiler && r->guess)
    status = read_varied(r, arena, model, wishes, vary, 0);
  return status;
}

ampc_status read_model(Reader *r, Arena *arena, const OnnxModel *model, const ReadWishes *wishes)
{
  const char *why = NULL;
  for (Vary vary = VARY_more;; vary++) {
    ampc_status status = read_guessed(r, arena, model, wishes, vary);
    bool other = r->only_first || (r->refused.n && r->arguments.n); /* try with fewer sizes open */
    if (status || vary == VARY_none || !other) {
      const char *fits = vary == VARY_less ? "larger sizes may not fit; "
                                           : "the job may fit only the sizes that it has; ";
      r->only_first = why ? text(r, "%s%s", fits, why) : NULL;
      return status;
    }
    why = r->only_first ? text(r, "with %s: %s", sizes_tried(r), r->only_first)
                        : "with others, an op needs numbers";
    vary += vary == VARY_more && !r->only_first;
  }
}
