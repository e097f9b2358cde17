/* Elaborates infer blocks. Other programs call them, so the sizes of their arguments are declared,
 * as numbers or as dims. The caller writes the arguments, or data of the compile provide them
 * (infer_data.c). */
#include "infer.h"
#include "block.h"
#include <string.h>

/* ---- arguments that the caller writes ---- */

/* Reads an exact type. `float` and `int` are not exact. */
static bool exact_dtype(const TypeExpr *t, DType *out)
{
  *out = t->name ? ampc_dtype_by(t->name) : AMPC_DTYPE_COUNT;
  return *out != AMPC_DTYPE_COUNT;
}

/* Helps if a size is an unknown name, as in `x: f32[N, 8]` without a `dim N`. */
static bool undeclared_dim(Lower *l, Scope *s, const Expr *e)
{
  if (e->kind != EXPR_name || !d_is(lookup_quiet(l, s, e->as.name, e->span), D_absent))
    return false;
  return diag_help(l->c, "write `dim %s(max=64)` at the top level if the caller chooses this size",
                   e->as.name);
}

bool infer_argument_type(Lower *l, Scope *s, const Param *p, ampc_source *out)
{
  const TypeExpr *t = &p->type;
  if (!exact_dtype(t, &out->dtype) || !t->tensor) {
    fail(l, E209, p->name.span, "`%s` of an infer block needs a type with its sizes", p->name.text);
    return diag_help(l->c, "`%s: f32[32, 784]`, or `%s: f32[]` for one number", p->name.text,
                     p->name.text);
  }
  if (t->n_dims > MAX_RANK)
    return refuse(l, E209, t->span, "tensors have at most %d axes", MAX_RANK);
  for (uint32_t i = 0; i < t->n_dims; i++) {
    if (!t->dims[i]) return refuse(l, E209, t->span, "the type of an input cannot have `...`");
    if (!want_int(l, eval(l, s, t->dims[i]), t->dims[i]->span, "a size", &out->dim[i]))
      return undeclared_dim(l, s, t->dims[i]);
    if (out->dim[i] < 1)
      return refuse(l, E209, t->dims[i]->span, "a size is %lld; the minimum is 1",
                    (long long)out->dim[i]);
  }
  out->rank = t->n_dims;
  return true;
}

void infer_bind(Lower *l, Scope *s, const Param *p, Datum v)
{
  name_node(l, s, p->name.text, v);
  scope_bind(l, s, p->name.text, v, p->name.span);
}

/* Makes each argument a source whose bytes the caller provides. */
static bool bind_arguments(Lower *l, Scope *s, const Function *def)
{
  BlockInfo *b = &l->g->blocks.at[l->run->block];
  b->n_sources = def->params.n;
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    ampc_source source = {.kind = AMPC_SOURCE_ARGUMENT, .path = p->name.text, .part_end = 1};
    if (!infer_argument_type(l, s, p, &source)) return false;
    int64_t index = l->g->sources.n;
    vec_push(l->arena, &l->g->sources, source);
    infer_bind(l, s, p,
               append(l, p->name.span, OP_source, NULL, 0, ATTRS({"index", {.i = index}})));
  }
  return true;
}

/* ---- the block ---- */

/* Casts a result to the float type that the block declares, since callers rely on it. Elsewhere an
 * annotation only checks. */
static void add_result(Lower *l, const char *name, Datum v, const TypeExpr *type, Span span)
{
  DType d;
  Value x;
  if (type && exact_dtype(type, &d) && dtype_is_float(d)) {
    x = as_tensor(l, v, span);
    v = x.id ? cast_to(l, x, d, type->span) : d_of(D_error);
  }
  if (!d_is(v, D_error)) add_output(l, name, v, span);
}

/* Adds the results of infer `f`: `return a, b` makes the outputs "f.0" and "f.1". */
static void add_results(Lower *l, const Frame *f, const Function *def)
{
  Datum v = function_result(l, f, def);
  const TypeExpr *types = def->n_results ? def->results : NULL;
  Span span = f->result_span;
  if (d_is(v, D_error)) return;
  if (v.kind == D_none) {
    if (!diag_error_count(l->c))
      fail(l, E210, def->name.span, "infer `%s` returns nothing", def->name.text);
    return;
  }
  if (v.kind != D_list) {
    add_result(l, def->name.text, v, types, span);
    return;
  }
  for (uint32_t i = 0; i < v.n; i++)
    add_result(l, arena_printf(l->arena, "%s.%u", def->name.text, i), v.as.list[i],
               def->n_results == v.n ? &types[i] : NULL, span);
}

BlockInfo infer_info(const Lower *l, const Decl *decl)
{
  return (BlockInfo){.kind = AMPC_INFER,
                     .name = decl->name.text,
                     .span = decl->span,
                     .batch = 1,
                     .accumulate = 1,
                     .variant_of = -1,
                     .first_source = l->g->sources.n};
}

/* Elaborates one choice of sizes of `infer name(x: f32[32, 784]) { return ... }`: a block without
 * training, for programs that embed the model. */
static void lower_one(Lower *l, const Decl *decl, const Choice *x, const char *name)
{
  const Function *def = &decl->as.function;
  BlockInfo info = infer_info(l, decl);
  Run run;
  uint32_t errors = diag_error_count(l->c);
  Scope *s = scope_new(l, NULL, l->job, NULL);
  bool data = l->c->options.n_infer_inputs > 0;
  dims_enter(l, s, x);
  info.name = name;
  info.call = def->name.text;
  info.n_sizes = x->n;
  for (uint32_t i = 0; i < x->n; i++) {
    const Dim *d = x->dim[i];
    info.size[i] = (ampc_dim_size){d->name, x->value[i]};
    info.least[i] = d->least;
    info.most[i] = d->most;
    info.multiple[i] = d->multiple;
  }
  bool good =
      (!data || infer_batch(l, s, def, x, &info.batch)) && begin_block(l, &run, &info, NULL);
  if (good && (data ? infer_bind_data(l, s, def) : bind_arguments(l, s, def))) {
    Frame frame = {.kind = FRAME_function, .scope = s};
    l->at.region = l->job_region;
    exec_block(l, &frame, &def->body);
    if (frame.returned || diag_error_count(l->c) == errors) add_results(l, &frame, def);
  }
  end_block(l);
  dims_leave(l);
}

/* Elaborates a block that only reads its batch, to take the dims from the shapes. */
static void measure(Lower *l, const Decl *decl, Choice *x)
{
  const Function *def = &decl->as.function;
  BlockInfo info = infer_info(l, decl);
  Scope *s = scope_new(l, NULL, l->job, NULL);
  Run run;
  for (uint32_t i = 0; i < x->n; i++) { /* one sample is enough */
    const TypeExpr *t = &def->params.at[0].type;
    if (t->n_dims && t->dims[0] && dim_named(x, t->dims[0]) == i && !x->given[i])
      x->value[i] = x->dim[i]->least;
  }
  dims_enter(l, s, x);
  dims_leave(l); /* messages must not show temporary sizes */
  if (infer_batch(l, s, def, x, &info.batch) && begin_block(l, &run, &info, NULL))
    infer_measure(l, s, def, x);
  end_block(l);
}

/* Returns bit 0 if all dims are at their minimum, bit 1 if all are at their maximum. */
static uint32_t ends_of(const Choice *x)
{
  bool least = true, most = true;
  for (uint32_t i = 0; i < x->n; i++) {
    least = least && x->value[i] == x->dim[i]->least;
    most = most && x->value[i] == x->dim[i]->most;
  }
  return (uint32_t)least | (uint32_t)most << 1;
}

/* Elaborates each requested choice of sizes. If there are several, names contain the sizes. */
void lower_infer(Lower *l, const Decl *decl)
{
  const Function *def = &decl->as.function;
  uint32_t at[AMPC_MAX_SIZES] = {0}, errors = diag_error_count(l->c), ends = 0;
  Choice x;
  if (!dims_of(l, def, &x) || (l->sizes->sizing != SIZING_asked && !x.n)) return;
  bool data = l->c->options.n_infer_inputs > 0, several = false;
  for (uint32_t i = 0; i < x.n; i++) several = several || x.dim[i]->n_asked > 1;
  if (x.n && data && !l->sizes->known) {
    measure(l, decl, &x);
    return;
  }
  if (x.n && data) memcpy(x.value, l->sizes->found, sizeof x.value);
  do {
    const char *name = def->name.text;
    if (several) name = arena_printf(l->arena, "%s[%s]", name, dims_text(l, &x, "="));
    ends |= ends_of(&x);
    lower_one(l, decl, &x, name);
  } while (diag_error_count(l->c) == errors && dims_next(&x, at));
  if (l->c->options.decode && diag_error_count(l->c) == errors) decoder_check(l, def, &x);
  l->sizes->ends_missed |= ~ends & 3;
}
