/* Evaluates arguments of an infer block that are data of the compile (options.infer_inputs). The
 * batch is the size of axis 0 of the arguments. If arguments differ in it, as states [layers, n, h]
 * and sequences [n, t, f] do, there is no batch: each file is one sample, the whole argument. An
 * argument without axes is a number of the compile. */
#include "block.h"
#include "infer.h"
#include <string.h>

/* Binds the sizes that the call for a picture in options.infer_inputs reads. */
static void bind_sides(Lower *l, Scope *s, const ampc_source *type, Span span)
{
  if (type->rank < 2) return;
  scope_bind(l, s, "_height", d_int(type->dim[type->rank - 2]), span);
  scope_bind(l, s, "_width", d_int(type->dim[type->rank - 1]), span);
}

/* Reports an argument that one call for all arguments cannot read. `first`: the first one that has
 * axes. */
static bool needs_file(Lower *l, const Param *p, const Param *first)
{
  if (!p->type.n_dims)
    fail(l, E209, p->name.span, "`%s` has no axis of samples, so --data cannot read it",
         p->name.text);
  else
    fail(l, E209, p->name.span,
         "the first size of `%s` is %s, that of `%s` is %s, so --data cannot read them",
         p->name.text, source_text(l, p->type.dims[0]->span), first->name.text,
         source_text(l, first->type.dims[0]->span));
  return diag_help(l->c, "give each argument: --input %s=%s", p->name.text,
                   p->type.n_dims ? "FILE" : "0.5");
}

bool infer_batch(Lower *l, Scope *s, const Function *def, const Choice *x, int64_t *out)
{
  bool each = l->c->options.n_infer_inputs == def->params.n;
  const Param *first = NULL;
  int64_t batch = 1;
  l->sizes->whole = false;
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    ampc_source type = {.rank = 0};
    if (!infer_argument_type(l, s, p, &type)) return false;
    if (type.rank && !first) {
      first = p;
      batch = type.dim[0];
    }
    bool same = !type.rank || (type.dim[0] == batch &&
                               dim_named(x, p->type.dims[0]) == dim_named(x, first->type.dims[0]));
    if (!each && (!type.rank || !same)) return needs_file(l, p, first);
    l->sizes->whole = l->sizes->whole || !same;
  }
  *out = l->sizes->whole ? 1 : batch;
  return true;
}

/* Parses the call that the command line gives for an argument; returns NULL after a message. */
static const Expr *input_call(Lower *l, const char *text)
{
  Ast *ast = arena_new(l->arena, Ast);
  const char *line = arena_printf(l->arena, "%s\n", text);
  uint32_t at = diag_add_source(l->c, "<input>", line, (uint32_t)strlen(line), false);
  if (!ast_parse(l->c, at, ast)) return NULL;
  if (ast->n == 1 && ast->at[0]->kind == DECL_expr) return ast->at[0]->as.value;
  fail(l, E210, (Span){at, at + (uint32_t)strlen(text)},
       "data must be a call, such as `faces(\"test\")`");
  return NULL;
}

/* Evaluates the calls to one value for each argument. A single call may return several values;
 * further values of a data block, such as labels, are not used. */
static bool input_values(Lower *l, Scope *outer, const Function *def, Datum *out, Span *spans)
{
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_infer_inputs; i++) {
    const Expr *e = input_call(l, o->infer_inputs[i]);
    if (!e) return false;
    Scope *s = scope_new(l, outer, l->job, NULL);
    ampc_source type = {.rank = 0};
    if (infer_argument_type(l, s, &def->params.at[i], &type)) bind_sides(l, s, &type, e->span);
    l->in_source = true;
    out[i] = eval(l, s, e);
    l->in_source = false;
    spans[i] = e->span;
    if (d_is(out[i], D_error)) return false;
    bool first = o->n_infer_inputs > 1 && out[i].kind == D_list && out[i].n;
    if (first) out[i] = out[i].as.list[0];
  }
  if (o->n_infer_inputs != 1 || out[0].kind != D_list) return true;
  Datum list = out[0];
  if (list.n < def->params.n)
    return refuse(l, E209, spans[0], "this returns %u values, but infer `%s` takes %u", list.n,
                  def->name.text, def->params.n);
  for (uint32_t i = 0; i < def->params.n; i++) {
    out[i] = list.as.list[i];
    spans[i] = spans[0];
  }
  return true;
}

/* Removes the axis of samples from the only sample of a source. */
static Datum only_sample(Lower *l, Datum v, Span span)
{
  if (v.kind != D_tensor || !ir_node(l->g, v.as.tensor)->rank) return v;
  Node n = *ir_node(l->g, v.as.tensor);
  return append(l, span, OP_reshape, &v.as.tensor, 1, ir_shape_attrs(l->c, n.dim + 1, n.rank - 1));
}

/* Reads one value for each argument, and the span of its call. */
static bool read_values(Lower *l, Scope *s, const Function *def, Datum **out, Span **spans)
{
  bool axes = false;
  uint32_t n = l->c->options.n_infer_inputs;
  *out = arena_array(l->arena, Datum, n + def->params.n);
  *spans = arena_array(l->arena, Span, n + def->params.n);
  if (!input_values(l, s, def, *out, *spans)) return false;
  l->g->blocks.at[l->run->block].n_sources = l->run->n_sources;
  for (uint32_t i = 0; i < def->params.n; i++) {
    bool some = def->params.at[i].type.n_dims > 0;
    if (some && l->sizes->whole) (*out)[i] = only_sample(l, (*out)[i], (*spans)[i]);
    axes = axes || some;
  }
  if (axes && !l->run->n_sources)
    return refuse(l, E209, (*spans)[0], "this reads no data source; its value is %s",
                  d_kind_text(l, (*out)[0]));
  return true;
}

bool infer_bind_data(Lower *l, Scope *s, const Function *def)
{
  Datum *values;
  Span *spans;
  if (!read_values(l, s, def, &values, &spans)) return false;
  const char *of = arena_printf(l->arena, "infer `%s`", def->name.text);
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    Typed what = {p->name.text, of};
    if (!check_type(l, s, &p->type, &values[i], spans[i], what))
      return l->sizes->whole &&
             diag_help(l->c,
                       "the arguments differ in their first size, so each file has all of its "
                       "argument; a `dim` is a size that files may choose");
    infer_bind(l, s, p, values[i]);
  }
  return true;
}

/* ---- dims ---- */

/* Returns the batch: the number of samples, rounded up to the dim's multiple, if that is smaller
 * than the largest batch. A larger batch would only be padded. */
static int64_t batch_size(const Lower *l, const Dim *d)
{
  int64_t size = ampc_round_up(l->run->samples, d->multiple);
  if (!l->run->samples || size > d->most) return d->most;
  return size < d->least ? d->least : size;
}

/* Reads dims from the axes of one argument's data. Axis 0 counts samples, unless the data are the
 * whole argument. */
static bool found_sizes(Lower *l, Choice *x, const Param *p, Datum v, Span span)
{
  const int64_t *dim;
  uint32_t rank;
  if (!d_is_tensor(v) || !tensor_dims(l, v, &dim, &rank) || rank != p->type.n_dims) return true;
  for (uint32_t k = 0; k < rank; k++) {
    uint32_t at = p->type.dims[k] ? dim_named(x, p->type.dims[k]) : AMPC_MAX_SIZES;
    if (at == AMPC_MAX_SIZES || x->given[at]) continue;
    const char *what =
        arena_printf(l->arena, "`%s`, axis %u of `%s`,", x->dim[at]->name, k, p->name.text);
    bool samples = k == 0 && !l->sizes->whole;
    x->value[at] = samples ? batch_size(l, x->dim[at]) : dim[k];
    x->given[at] = true;
    if (!samples && !dim_takes(l, x->dim[at], dim[k], span, what)) return false;
  }
  return true;
}

/* Any batch size is correct here: only the other sizes of the sources matter. Pass lower then
 * elaborates the job again, with the sizes that were found. */
bool infer_measure(Lower *l, Scope *s, const Function *def, Choice *x)
{
  Datum *values;
  Span *spans;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->dim[i]->n_asked > 1)
      return refuse(l, E305, (Span){0, 0},
                    "--dim %s requests %u sizes; with data only one size is possible",
                    x->dim[i]->name, x->dim[i]->n_asked);
  if (!read_values(l, s, def, &values, &spans)) return false;
  for (uint32_t i = 0; i < def->params.n; i++)
    if (!found_sizes(l, x, &def->params.at[i], values[i], spans[i])) return false;
  memcpy(l->sizes->found, x->value, sizeof x->value);
  l->sizes->known = l->sizes->again = true;
  return true;
}
