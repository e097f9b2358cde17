/* Evaluates arguments of an infer block that are data of the compile (options.infer_inputs). The
 * batch is the size of axis 0 of the arguments. */
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

bool infer_batch(Lower *l, Scope *s, const Function *def, int64_t *out)
{
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    ampc_source type = {.rank = 0};
    if (!infer_argument_type(l, s, p, &type)) return false;
    if (type.rank == 0)
      return refuse(l, E209, p->name.span,
                    "`%s` has no axis of samples, so it cannot be read from data", p->name.text);
    if (i && type.dim[0] != *out) {
      return refuse(l, E209, p->name.span,
                    "`%s` has %lld samples and `%s` has %lld; the numbers must be equal",
                    p->name.text, (long long)type.dim[0], def->params.at[0].name.text,
                    (long long)*out);
    }
    *out = type.dim[0];
  }
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

/* Reads one value for each argument, and the span of its call. */
static bool read_values(Lower *l, Scope *s, const Function *def, Datum **out, Span **spans)
{
  uint32_t n = l->c->options.n_infer_inputs;
  *out = arena_array(l->arena, Datum, n + def->params.n);
  *spans = arena_array(l->arena, Span, n + def->params.n);
  if (!input_values(l, s, def, *out, *spans)) return false;
  l->g->blocks.at[l->run->block].n_sources = l->run->n_sources;
  if (!l->run->n_sources)
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
    if (!check_type(l, s, &p->type, &values[i], spans[i], what)) return false;
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

/* Reads dims from the axes of one argument's data. */
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
    x->value[at] = k ? dim[k] : batch_size(l, x->dim[at]);
    x->given[at] = true;
    if (k && !dim_takes(l, x->dim[at], dim[k], span, what)) return false;
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
