/* Names, types and literals in kernels. Emitted text is for people to read, so arguments have the
 * names of the job (`h`, `fc1_weight`) where C, C++ and CUDA allow them. Equal jobs have equal
 * names. */
#include "compiler/base/reserved_names.h"
#include "compiler/base/names.h"
#include "compiler/base/user_text.h"
#include "compiler/graph/own.h"
#include "kernel_parts.h"
#include <math.h>
#include <string.h>

/* ---- texts that cannot be made ---- */

Value value_of(const Kernel *k, const Node *n)
{
  return (Value){(uint32_t)(n - k->g->nodes.at)};
}

uint32_t value_number(const Kernel *k, Value v)
{
  uint32_t i = 0;
  if (!k->p->bare) return v.id;
  while (i < k->group->n && k->group->nodes[i].id != v.id) i++;
  return i < k->group->n ? i : i + argument_of(k, v);
}

void kernel_bug(const Kernel *k, Value v, const char *what)
{
  ir_bug(k->c, "kernels", v, what);
}

/* ---- types ---- */

/* Returns the C type of an element. Floats in STATE are `float` even if real is double. */
const char *element_type(const KernelArg *a)
{
  switch (a->role) {
  case ARG_state:
    return "ampc_state";
  case ARG_optimizer:
    return "ampc_optimizer";
  case ARG_metric:
    return "ampc_metric";
  case ARG_stream:
    return "unsigned";
  default:
    break;
  }
  bool host_float = a->place.space == AMPC_STATE && a->type == AMPC_F32;
  return host_float ? "float" : ampc_type_of(a->type)->kernel;
}

const char *conversion_name(const Kernel *k, const char *what, DType d)
{
  return ampc_is_narrow(d) ? arena_printf(k->c->arena, "%s_%s", what, ampc_dtype_name(d)) : "";
}

const char *local_type(DType d)
{
  return dtype_is_float(d) ? "real" : d == AMPC_I64 ? "long long" : "int";
}

bool argument_is_number(const KernelArg *a)
{
  return a->role == ARG_stream;
}

/* ---- names ---- */

/* Returns the path of the parameter whose value or gradient the argument points to; or NULL. */
static const char *param_of(const Kernel *k, const KernelArg *a)
{
  const Graph *g = k->g;
  if (a->role == ARG_buffer || a->role == ARG_kept) return g->params.at[a->index].path;
  if (!a->value.id) return NULL;
  const Node *n = ir_node(g, a->value);
  if (a->role == ARG_grad) return g->params.at[attr_int(n, "param")].path;
  if (is_working_copy(g, a->value)) n = ir_node(g, n->in[0]);
  return n->op == OP_param ? g->params.at[attr_int(n, "index")].path : NULL;
}

static const char *last_word(const char *path)
{
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

typedef struct Names { /* names of a kernel's arguments, while they are being chosen */
  const Kernel *k;
  struct ParamWord {
    const char *path, *word; /* "fc1.weight", "weight" */
  } * params;                /* parameters that arguments point to */
  uint32_t n_params;
  NameIndex taken;
} Names;

static bool is_taken(Names *x, uint32_t n, const char *name)
{
  const Kernel *k = x->k;
  return name_find(k->c->arena, &x->taken, k->arg_names, n, sizeof *k->arg_names, name) != NO_NAME;
}

/* Returns "weight", since layers may share the kernel; "fc1_weight" if it has several weights. */
static const char *param_name(const Names *x, const char *path)
{
  if (x->k->p->bare) return "p";
  bool several = false;
  const char *word = last_word(path);
  for (uint32_t i = 0; i < x->n_params && !several; i++)
    several = same_name(x->params[i].word, word) && strcmp(x->params[i].path, path) != 0;
  return identifier(x->k->c->arena, several ? path : word);
}

/* Returns the name of the value in the job, or the name of its op. */
static const char *source_name(const Names *x, const KernelArg *a)
{
  const Kernel *k = x->k;
  const Node *n = ir_node(k->g, a->value);
  const char *path = param_of(k, a);
  if (path || k->p->bare) return param_name(x, path);
  return n->name && *n->name ? identifier(k->c->arena, n->name) : op_of(n)->name;
}

/* Returns `h`, or `register_value` if C reserves the name. In a template it is `lr_at` for input
 * lr, because $lr is the value of lr there. */
static const char *value_name(const Names *x, const KernelArg *a)
{
  const Kernel *k = x->k;
  const Node *anchor = ir_node(k->g, k->group->anchor);
  if (own_of(anchor)) return own_argument_name(k, a);
  if (op_of(anchor)->tmpl == TMPL_file && !op_has(anchor, T_windows)) {
    for (uint32_t i = 0; i < anchor->n_in; i++) /* templates use the names of the signature */
      if (value_root(k->g, anchor->in[i]).id == a->value.id)
        return arena_printf(k->c->arena, "%s_at", op_of(anchor)->signature.input[i].name);
    return anchor->op == OP_grad_norm ? "partials" : "out";
  }
  const char *name = source_name(x, a);
  return reserved_name(name) ? arena_printf(k->c->arena, "%s_value", name) : name;
}

/* Returns a name for one of several arguments in a role: for buffers of parts the name in
 * checkpoints; other arguments in STATE are numbered. */
static const char *shared_name(const Names *x, const KernelArg *a, const char *role)
{
  Arena *arena = x->k->c->arena;
  if (a->role == ARG_buffer) return param_name(x, param_of(x->k, a));
  if (a->role == ARG_kept) return arena_printf(arena, "%s_kept", param_name(x, param_of(x->k, a)));
  return a->index && !x->k->p->bare ? arena_printf(arena, "%s%u", role, a->index) : role;
}

/* Returns a name that is unique in the kernel: a second `x` is "x_2". */
static const char *argument_name(Names *x, uint32_t i)
{
  const Kernel *k = x->k;
  static const char *const of_role[] = {
      [ARG_state] = "state",     [ARG_optimizer] = "optimizer", [ARG_metric] = "metric",
      [ARG_grad] = "grad",       [ARG_master] = "master",       [ARG_moment1] = "moment1",
      [ARG_moment2] = "moment2", [ARG_moment3] = "moment3",     [ARG_ema] = "ema",
      [ARG_buffer] = "buffer",   [ARG_kept] = "kept",           [ARG_scratch] = "scratch",
      [ARG_stream] = "stream",   [ARG_residue] = "residue",     [ARG_scale1] = "scale1",
      [ARG_scale2] = "scale2",   [ARG_scale3] = "scale3"};
  const KernelArg *a = &k->args.at[i];
  const char *name;
  if (a->role == ARG_grad && a->value.id)
    name = arena_printf(k->c->arena, "%s_grad", param_name(x, param_of(k, a)));
  else if (a->role == ARG_copy)
    name = ampc_space_of(a->place.space)->name;
  else if (a->role != ARG_in && a->role != ARG_out)
    name = k->group->n_parts ? shared_name(x, a, of_role[a->role]) : of_role[a->role];
  else
    name = value_name(x, a);
  const char *own = name;
  for (uint32_t n = 2; is_taken(x, i, name); n++) name = arena_printf(k->c->arena, "%s_%u", own, n);
  return name;
}

void name_arguments(Kernel *k)
{
  k->arg_names = arena_array(k->c->arena, const char *, k->args.n + 1);
  Names x = {.k = k, .params = arena_array(k->c->arena, struct ParamWord, k->args.n + 1)};
  for (uint32_t i = 0; i < k->args.n; i++) {
    const char *path = param_of(k, &k->args.at[i]);
    if (path) x.params[x.n_params++] = (struct ParamWord){path, last_word(path)};
  }
  for (uint32_t i = 0; i < k->args.n; i++) k->arg_names[i] = argument_name(&x, i);
}

/* True if a thread reads or overwrites what another one has stored. */
static bool threads_meet(const Graph *g, const Group *group)
{
  if (!group->n_parts) return group->anchor.id && op_has(ir_node(g, group->anchor), T_meets);
  bool meet = group->last < group->n_parts;
  for (uint32_t i = 0; i < group->n_parts; i++)
    meet = meet || group->parts[i].meets || threads_meet(g, &group->parts[i]);
  return meet;
}

/* Returns the parameters. `const` marks data that a kernel only reads. Two pointers of a launch
 * into STATE may overlap, so these have no __restrict__. Neither have results that threads of a
 * GPU exchange: NVRTC moves a load through a __restrict__ pointer across a barrier. */
const char *argument_list(const Kernel *k)
{
  Text t = text_new(k->c->arena);
  bool meet = !is_cpu_target(k->c) && threads_meet(k->g, k->group);
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    bool read = a->role == ARG_in || a->only_read;
    bool shared = k->group->n_parts && a->place.space == AMPC_STATE;
    shared = shared || (meet && !read);
    text_printf(&t, "%s%s%s %s%s%s", i ? ", " : "", read ? "const " : "", element_type(a),
                argument_is_number(a) ? "" : "*",
                argument_is_number(a) || shared ? "" : "__restrict__ ", k->arg_names[i]);
  }
  return t.at;
}

/* Returns the argument with v's bytes: a value shares it with the operand that it overwrites. */
uint32_t argument_of(const Kernel *k, Value v)
{
  Value root = value_root(k->g, v);
  for (uint32_t i = 0; i < k->args.n && root.id; i++)
    if (k->args.at[i].value.id == root.id || k->args.at[i].over.id == root.id) return i;
  return k->args.n;
}

uint32_t pointer_of(const Kernel *k, Value v)
{
  uint32_t i = argument_of(k, v);
  if (i == k->args.n) kernel_bug(k, v, "its kernel has no pointer to it");
  return i;
}

const char *pointer_name(const Kernel *k, Value v)
{
  return k->arg_names[pointer_of(k, v)];
}

uint32_t stream_argument(const Kernel *k, const Node *n)
{
  for (uint32_t i = 0; i < k->args.n; i++)
    if (k->args.at[i].role == ARG_stream && k->args.at[i].place.offset == n->stream) return i;
  kernel_bug(k, value_of(k, n), "it draws random numbers without a stream");
}

bool argument_is_reused(const Kernel *k, Value v)
{
  for (uint32_t i = 0; i < k->args.n; i++)
    if (v.id && k->args.at[i].over.id == v.id) return true;
  return false;
}

/* ---- numbers ---- */

/* Returns a C literal that reads back as v. R() makes it a `real`: arithmetic stays in real. */
const char *real_text(const Kernel *k, double v)
{
  if (isnan(v)) return "ampc_nan()";
  if (isinf(v)) return v > 0 ? "ampc_inf()" : "(-ampc_inf())";
  if (v == rint(v) && fabs(v) < 1e15) return arena_printf(k->c->arena, "R(%.1f)", v);
  return arena_printf(k->c->arena, "R(%s)", arena_number(k->c->arena, v, 1));
}
