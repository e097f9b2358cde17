/* Warns about parameters that an optimizer trains, but that no loss reaches: W607. */
#include "optimizer.h"
#include "compiler/graph/shares.h"

/* Marks the nodes on which marked nodes depend. Inputs precede their users in the array. */
static void mark_back(const Lower *l, bool *needed)
{
  for (uint32_t id = l->g->nodes.n; id-- > 1;) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id] || gradient_stops(l, n)) continue;
    for (uint32_t i = 0; i < n->n_in; i++) needed[n->in[i].id] = true;
  }
}

/* Marks what the losses of the optimizer depend on. In a loop, a needed `carry` also needs the
 * value that its `next` computes, though no edge leads there. */
static bool *reached(Lower *l, int64_t optimizer)
{
  uint32_t count = l->g->nodes.n;
  bool *needed = arena_array(l->arena, bool, count + 1);
  for (uint32_t id = 1; id < count; id++) {
    const Node *n = &l->g->nodes.at[id];
    if (n->op == OP_minimize && attr_int(n, "optimizer") == optimizer) needed[n->in[0].id] = true;
  }
  for (bool more = true; more;) {
    mark_back(l, needed);
    more = false;
    for (uint32_t id = 1; id < count; id++) {
      const Node *n = &l->g->nodes.at[id];
      if (n->op != OP_next || needed[id] || !needed[n->in[0].id]) continue;
      needed[id] = more = true;
    }
  }
  return needed;
}

/* Returns the path of the module of parameter p, or p's own if a loss reaches another parameter of
 * the module. A `model` names its parameters without the "net." that a job with several models puts
 * in front. */
static const char *frozen_path(Lower *l, const Parameter *p, const bool *read)
{
  size_t model = strlen(p->model);
  bool prefixed = l->models.n > 1 && strncmp(p->path, p->model, model) == 0;
  const char *path = p->path + (prefixed && p->path[model] == '.' ? model + 1 : 0);
  const char *dot = strrchr(path, '.');
  size_t n = dot ? (size_t)(dot - p->path) + 1 : 0; /* the module and its dot */
  for (uint32_t i = 0; i < share_params(l->g); i++)
    if (n && read[i] && strncmp(l->g->params.at[i].path, p->path, n) == 0) return path;
  return dot ? arena_strndup(l->arena, path, (size_t)(dot - path)) : path;
}

/* Sets read[i] if a loss of an optimizer that trains parameter i reaches it. */
static void mark_read(Lower *l, const Opt *o, bool *read)
{
  bool *needed = reached(l, o->index);
  for (uint32_t id = 1; id < l->g->nodes.n; id++) {
    const Node *n = &l->g->nodes.at[id];
    if (!needed[id] || !ir_parameter(l->g, n) || reads_average(l->g, n)) continue;
    uint32_t param = (uint32_t)attr_int(n, "index");
    read[param] = read[param] || share_find(l->g, param, o->index) != NO_SHARE;
  }
}

void check_unreached(Lower *l)
{
  bool *read = arena_array(l->arena, bool, l->g->params.n + 1);
  for (uint32_t i = 0; i < l->optimizers.n; i++) mark_read(l, l->optimizers.at[i], read);
  for (uint32_t i = 0; i < share_params(l->g); i++) {
    const Parameter *p = &l->g->params.at[i];
    const Optimizer *o = p->optimizer < 0 ? NULL : &l->g->optimizers.at[p->optimizer];
    if (!o || !o->updates || read[i]) continue;
    diag_warning(l->c, W607, p->span, "no loss reaches `%s`, so `%s` does not train it", p->path,
                 o->name);
    diag_help(l->c, "use it, or write `freeze(\"%s\")` in `model %s`", frozen_path(l, p, read),
              p->model);
  }
}
