/* Layers, parameters and buffers: their paths in the job, and the tensors that they store. */
#include <inttypes.h>
#include <string.h>
#include "read.h"

/* ---- paths ---- */

bool names_layer(const Value *v)
{
  const char *dot = strrchr(v->name, '.');
  return dot && strcmp(dot, ".weight") == 0;
}

/* Reader.paths: what a path is. A member contains no other one. */
static char is_member, is_module;

static bool in_member(Reader *r, const char *path)
{
  for (; *path; path = path_parent(r, path))
    if (names_get(&r->paths, path) == &is_member) return true;
  return false;
}

static bool is_taken(Reader *r, const char *path)
{
  return names_get(&r->paths, path) || in_member(r, path);
}

static void add_member(Reader *r, Member made)
{
  vec_push(r->arena, &r->members, made);
  *names_at(&r->paths, made.path) = &is_member;
  for (const char *path = path_parent(r, made.path); *path; path = path_parent(r, path))
    *names_at(&r->paths, path) = &is_module;
}

static const char *joined(Reader *r, const char *path, const char *name)
{
  return *path ? text(r, "%s.%s", path, name) : name;
}

static const char *free_path(Reader *r, const char *path, const char *stem)
{
  while (in_member(r, path)) path = path_parent(r, path);
  const char *first = joined(r, path, stem), *all = first;
  void **count = names_at(&r->counts, first); /* the last number that was tried, as a pointer */
  while (is_taken(r, all)) {
    uintptr_t next = (uintptr_t)*count + 1;
    *count = (void *)next;
    all = text(r, "%s%u", first, (unsigned)next + 1);
  }
  return all;
}

/* Moves the step at work outwards to a module that contains the member. */
static void reach(Reader *r, const char *member_path)
{
  const char *module = path_parent(r, member_path);
  while (!path_within(module, r->place)) r->place = path_parent(r, r->place);
}

/* ---- layers ---- */

static void store(Reader *r, Value *v, uint32_t member, const char *role)
{
  v->member = member;
  v->role = role;
  vec_push(r->arena, &r->stored, (Stored){member - 1, role, NULL, v->tensor});
}

/* Whether the list has tensors of a layer with this path. */
static bool is_listed_layer(Reader *r, const char *path)
{
  static const char *const roles[] = {"weight", "bias", "running_mean"};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (in_state_dict(names_get(&r->listed, text(r, "%s.%s", path, roles[i])))) return true;
  return false;
}

/* Whether another layer has the tensor, but it is no tied weight. */
static bool is_copy(Reader *r, const Member *m, const char *constructor, const Value *first)
{
  const char *path = scope_path(r);
  bool another = strcmp(path, m->path) != 0 && is_listed_layer(r, path);
  return stored_once(first->tensor) && (another || strcmp(m->text, constructor) != 0);
}

/* The path of a new layer: by the name of its weight; if that names no layer around the node, by
 * the innermost module, if it is a layer of PyTorch; else a new name. */
static const char *layer_path(Reader *r, const char *stem, const Value *weight)
{
  Scopes s = scopes_of(r);
  const Scope *last = &s.at[s.n - 1];
  bool library =
      s.n > 1 && (last->library || is_listed_layer(r, last->path)) && !is_taken(r, last->path);
  const char *path = names_layer(weight) ? path_clean(r, path_parent(r, weight->name)) : "";
  if (*path && !weight->member && !is_taken(r, path) && (path_within(path, last->path) || !library))
    return path;
  return library ? last->path : free_path(r, last->path, stem);
}

/* A batch norm also counts the batches of its statistics, which ONNX does not keep. */
static void store_counter(Reader *r)
{
  static const int64_t none = 0;
  OnnxTensor *t = arena_new(r->arena, OnnxTensor);
  onnx__tensor_proto__init(t);
  t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
  t->raw_data = (ProtobufCBinaryData){sizeof none, (uint8_t *)(uintptr_t)&none};
  vec_push(r->arena, &r->stored, (Stored){r->members.n - 1, "num_batches_tracked", NULL, t});
}

/* Whether the member was made with these tensors. */
static bool has_tensors(const Reader *r, const Member *m, Value *const *weight,
                        const char *const *name, uint32_t n)
{
  uint32_t given = 0, held = 0;
  for (uint32_t i = 0; i < n; i++) given += weight[i] != NULL;
  for (uint32_t at = m->stored; at < r->stored.n; at++) {
    const Stored *s = &r->stored.at[at];
    if (&r->members.at[s->member] != m) break;
    for (uint32_t i = 0; i < n; i++)
      held +=
          weight[i] && s->role && strcmp(s->role, name[i]) == 0 && s->tensor == weight[i]->tensor;
  }
  return given == held;
}

const char *layer(Reader *r, const char *stem, const char *constructor, Value *const *weight,
                  const char *const *name, uint32_t n)
{
  const Value *first = weight[0];
  Member *m = first->member ? &r->members.at[first->member - 1] : NULL;
  bool copy = m && is_copy(r, m, constructor, first);
  if (m && !copy && strcmp(m->text, constructor) == 0 &&
      has_tensors(r, m, weight, name, n)) { /* again */
    reach(r, m->path);
    return text(r, "#%u", first->member - 1);
  }
  Member made = {.path = layer_path(r, stem, first), .text = constructor, .stored = r->stored.n};
  if (m && !copy) made.tie = first;
  add_member(r, made);
  ask_layer(r, r->members.n - 1);
  for (uint32_t i = 0; i < n; i++) {
    if (weight[i] && !weight[i]->member)
      store(r, weight[i], r->members.n, name[i]);
    else if (weight[i] && (i > 0 || copy))
      vec_push(r->arena, &r->stored, (Stored){r->members.n - 1, name[i], NULL, weight[i]->tensor});
  }
  if (strncmp(constructor, "BatchNorm", 9) == 0) store_counter(r);
  reach(r, made.path);
  return text(r, "#%u", r->members.n - 1);
}

/* ---- tensors that no layer contains ---- */

static const char *tensor_constructor(Reader *r, const Value *v)
{
  const char *shape = "", *word = type_word(v->tensor->data_type);
  for (size_t i = 0; i < v->tensor->n_dims; i++)
    shape = text(r, "%s%s%" PRId64, shape, i ? ", " : "", v->tensor->dims[i]);
  if (v->tensor_kind == TENSOR_trains) return text(r, "Parameter([%s])", shape);
  return text(r, onnx_is_float(v->tensor->data_type) ? "Buffer([%s])" : "Buffer([%s], dtype=%s)",
              shape, word);
}

/* Names without dots belong to the whole net, unless the exporter made them up. */
static const char *tensor_path(Reader *r, const Value *v)
{
  const char *path = path_clean(r, v->name), *name = name_clean(r, v->name, "constant");
  if (strchr(v->name, '.') && !is_made_up(r, v->name) && !is_taken(r, path)) return path;
  return free_path(r, is_made_up(r, v->name) ? scope_path(r) : "", name);
}

/* Takes the scopes away that are not around the path, or not in the other list. */
static void narrow(Scopes *s, const char *path, const Scopes *other)
{
  while (s->n > 1 && !path_within(path, s->at[s->n - 1].path)) s->n--;
  for (uint32_t i = 1; i < s->n; i++)
    if (i >= other->n || strcmp(s->at[i].key, other->at[i].key) != 0) s->n = i;
}

/* The tensor is a value that its module passes to the modules inside that need it. */
const char *weight_ref(Reader *r, Value *v)
{
  Scopes here = scopes_of(r);
  if (v->turned) return text(r, "%s.t()", weight_ref(r, v->turned));
  if (!v->member) {
    Member made = {.path = tensor_path(r, v), .text = tensor_constructor(r, v)};
    add_member(r, made);
    store(r, v, r->members.n, NULL);
  }
  if (!v->step) {
    uint32_t *out = arena_new(r->arena, uint32_t);
    *out = v->id;
    Step s = {.text = text(r, v->role ? "#%u.%s" : "#%u", v->member - 1, v->role),
              .out = out,
              .n_out = 1,
              .scopes = here};
    vec_push(r->arena, &r->steps, s);
    v->step = r->steps.n;
    ask_tensor(r, v);
  }
  const char *module = path_parent(r, r->members.at[v->member - 1].path);
  narrow(&r->steps.at[v->step - 1].scopes, module, &here);
  return text(r, "$%u", v->id);
}
