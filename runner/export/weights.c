/* The weights of a block as constants of its ONNX model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/graph/ops.h"
#include "ampc_rt.h"
#include "export.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"
#include "runtime/state/safetensors.h"

struct Weights {
  ampc_program program; /* without kernels: nothing runs */
  ampc_runtime *rt;
  const char **made[AMPC_DTYPE_COUNT]; /* of each parameter in each type; NULL: not made yet */
};

void weights_tell(void *to, bool warning, const char *line)
{
  (void)to;
  if (warning) fprintf(stderr, "warning: %s\n", line);
}

/* Reads the names of classes; a checkpoint has one a line. */
static void read_classes(Export *e, const char *file)
{
  TensorFile f = {.fd = -1};
  if (tensor_file_read_any(file, &f)) return;
  const char *names = tensor_file_get(&f, "ampc.classes");
  json_t *list = json_array();
  for (; names && *names; names = strchrnul(names, '\n'), names += *names == '\n')
    json_array_append_new(list, json_stringn(names, strcspn(names, "\n")));
  char *text = json_array_size(list) ? json_dumps(list, JSON_COMPACT) : NULL;
  if (text) e->classes = arena_strdup(e->arena, text);
  free(text);
  json_decref(list);
  tensor_file_free(&f);
}

ampc_status weights_open(Export *e, const ampc_program *program, const char *file,
                         const char *data_dir)
{
  struct Weights *w = e->weights = arena_new(e->arena, struct Weights);
  w->program = *program;
  w->program.n_kernels = 0;
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++)
    w->made[i] = arena_array(e->arena, const char *, e->g->params.n + 1);
  if (file) read_classes(e, file);
  return ampc_infer_open(&w->program, "cpu", file, data_dir, weights_tell, NULL, &w->rt);
}

void weights_close(Export *e)
{
  if (e->weights) ampc_free(e->weights->rt);
}

static const ampc_param *find(const struct Weights *w, const Parameter *p)
{
  for (uint32_t i = 0; i < w->program.n_params; i++)
    if (strcmp(w->program.params[i].path, p->path) == 0) return &w->program.params[i];
  return NULL;
}

/* Whether the block also reads the weight in another type. */
static bool has_types(const Export *e, int64_t index, DType type)
{
  for (uint32_t id = 1; id < e->g->nodes.n; id++) {
    const Node *n = ir_node(e->g, (Value){id});
    for (uint32_t i = 0; i < n->n_in; i++) {
      const Node *x = in_node(e, n, i);
      if (!x || x->op != OP_param || attr_int(x, "index") != index) continue;
      if ((n->op == OP_cast ? n->dtype : x->dtype) != type) return true;
    }
  }
  return false;
}

const char *weight_value(Export *e, const Node *param, DType type)
{
  struct Weights *w = e->weights;
  int64_t index = attr_int(op_has(param, T_blocks) ? in_node(e, param, 0) : param, "index");
  const Parameter *p = &e->g->params.at[index];
  if (p->decodes) return state_value(e, param, type);
  const ampc_param *q = find(w, p);
  const char **made = &w->made[type][index];
  if (*made) return *made;
  for (uint32_t axis = 0; axis < param->rank; axis++)
    if (sized_varies(e, sized_dim(e, param, axis)))
      return cannot(e, param, arena_printf(e->arena, "the shape of %s depends on a size", p->path));
  if (!q || q->elements != ir_elements(param))
    return cannot(e, param, "the program has no such weight");
  ampc_space space = q->buffer ? AMPC_BUFFER : AMPC_MASTER; /* averages replace them: ampc_rt.h */
  int64_t n = ir_elements(param), size = ampc_size_of(type, false);
  void *raw = arena_alloc(e->arena, (size_t)(n * ampc_size_of(q->dtype, false)) + 1, 16), *to = raw;
  if (ampc_read_param(w->rt, q, space, raw)) return cannot(e, param, ampc_last_error());
  if (q->dtype != type) {
    to = arena_alloc(e->arena, (size_t)(n * size) + 1, 16);
    for (int64_t i = 0; i < n; i++)
      number_store(type, false, to, i, number_load(q->dtype, false, raw, i));
  }
  bool shared = type != param->dtype && has_types(e, index, type);
  *made = p->path;
  if (shared || put_is_public(e, p->path))
    *made = arena_printf(e->arena, "%s.%s", p->path, ampc_type_of(type)->name);
  build_tensor(e->root, *made, type, param->dim, param->rank, to, (size_t)(n * size));
  return *made;
}
