/* infer blocks: called from outside, so the sizes of their arguments are written down. Who calls
 * one writes its arguments, or they are data of the compile (options.infer_inputs), in batches as
 * large as the first size of the arguments. */
#include "lower.h"
#include <string.h>

/* ---- arguments that the caller writes ---- */

static bool argument_dtype(const TypeExpr *t, DType *out)
{
  for (int i = 0; t->name && i < AMPC_DTYPE_COUNT; i++) {
    if (strcmp(t->name, ir_dtype_name((DType)i)) != 0) continue;
    *out = (DType)i;
    return true;
  }
  return false;
}

static bool argument_type(Lower *l, Scope *s, const Param *p, ampc_source *out)
{
  const TypeExpr *t = &p->type;
  if (!argument_dtype(t, &out->dtype) || !t->tensor) {
    fail(l, E209, p->name.span, "`%s` of an infer block needs a type with its sizes", p->name.text);
    diag_help(l->c, "`%s: f32[32, 784]`", p->name.text);
    return false;
  }
  if (t->n_dims > MAX_RANK)
    return fail(l, E209, t->span, "tensors have at most %d axes", MAX_RANK), false;
  for (uint32_t i = 0; i < t->n_dims; i++) {
    if (!t->dims[i]) return fail(l, E209, t->span, "`...` is no size of an input"), false;
    if (!want_int(l, eval(l, s, t->dims[i]), t->dims[i]->span, "a size", &out->dim[i]))
      return false;
    if (out->dim[i] < 1)
      return fail(l, E209, t->dims[i]->span, "a size is %lld; it is at least 1",
                  (long long)out->dim[i]),
             false;
  }
  out->rank = t->n_dims;
  return true;
}

static void bind_argument(Lower *l, Scope *s, const Param *p, Datum v)
{
  name_node(l, s, p->name.text, v);
  scope_bind(l, s, p->name.text, v, p->name.span);
}

/* Arguments are sources whose bytes the caller provides. */
static bool bind_arguments(Lower *l, Scope *s, const Function *def)
{
  BlockInfo *b = &l->g->blocks.at[l->run->block];
  b->n_sources = def->params.n;
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    ampc_source source = {.kind = AMPC_SOURCE_ARGUMENT, .path = p->name.text, .part_end = 1};
    if (!argument_type(l, s, p, &source)) return false;
    int64_t index = l->g->sources.n;
    vec_push(l->arena, &l->g->sources, source);
    bind_argument(l, s, p,
                  append(l, p->name.span, OP_source, NULL, 0, ATTRS({"index", {.i = index}})));
  }
  return true;
}

/* ---- arguments that are data ---- */

/* The sizes that a call for a picture reads: infer_inputs of options. */
static void bind_sides(Lower *l, Scope *s, const ampc_source *type, Span span)
{
  if (type->rank < 2) return;
  scope_bind(l, s, "_height", d_int(type->dim[type->rank - 2]), span);
  scope_bind(l, s, "_width", d_int(type->dim[type->rank - 1]), span);
}

/* The first size of all arguments: samples of a batch. */
static bool batch_of(Lower *l, Scope *s, const Function *def, int64_t *out)
{
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    ampc_source type = {.rank = 0};
    if (!argument_type(l, s, p, &type)) return false;
    if (type.rank == 0) {
      fail(l, E209, p->name.span, "`%s` has no axis of samples, so it cannot be read from data",
           p->name.text);
      return false;
    }
    if (i && type.dim[0] != *out) {
      fail(l, E209, p->name.span, "`%s` has %lld samples, `%s` has %lld: data give all as many",
           p->name.text, (long long)type.dim[0], def->params.at[0].name.text, (long long)*out);
      return false;
    }
    *out = type.dim[0];
  }
  return true;
}

/* The call that a command line gives for an argument; NULL after a message. */
static const Expr *input_call(Lower *l, const char *text)
{
  Ast *ast = arena_new(l->arena, Ast);
  const char *line = arena_printf(l->arena, "%s\n", text);
  uint32_t at = diag_add_source(l->c, "<input>", line, (uint32_t)strlen(line), false);
  if (!ast_parse(l->c, at, ast)) return NULL;
  if (ast->n == 1 && ast->at[0]->kind == DECL_expr) return ast->at[0]->as.value;
  fail(l, E210, (Span){at, at + (uint32_t)strlen(text)},
       "data are a call such as `faces(\"test\")`");
  return NULL;
}

/* What the calls give, one value an argument. One call may give several; what a data block gives
 * beyond them, such as labels, is not read. */
static bool input_values(Lower *l, const Function *def, Datum *out, Span *spans)
{
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_infer_inputs; i++) {
    const Expr *e = input_call(l, o->infer_inputs[i]);
    if (!e) return false;
    Scope *s = scope_new(l, NULL, l->job, NULL);
    ampc_source type = {.rank = 0};
    if (argument_type(l, s, &def->params.at[i], &type)) bind_sides(l, s, &type, e->span);
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
    return fail(l, E209, spans[0], "this gives %u values, infer `%s` takes %u", list.n,
                def->name.text, def->params.n),
           false;
  for (uint32_t i = 0; i < def->params.n; i++) {
    out[i] = list.as.list[i];
    spans[i] = spans[0];
  }
  return true;
}

static bool bind_data(Lower *l, Scope *s, const Function *def)
{
  uint32_t n = l->c->options.n_infer_inputs;
  Datum *values = arena_array(l->arena, Datum, n + def->params.n);
  Span *spans = arena_array(l->arena, Span, n + def->params.n);
  if (!input_values(l, def, values, spans)) return false;
  l->g->blocks.at[l->run->block].n_sources = l->run->n_sources;
  if (!l->run->n_sources)
    return fail(l, E209, spans[0], "this reads no data source, it gives %s",
                d_kind_text(l, values[0])),
           false;
  for (uint32_t i = 0; i < def->params.n; i++) {
    const Param *p = &def->params.at[i];
    const char *what = arena_printf(l->arena, "`%s` of infer `%s`", p->name.text, def->name.text);
    if (!check_type(l, s, &p->type, &values[i], spans[i], what)) return false;
    bind_argument(l, s, p, values[i]);
  }
  return true;
}

/* ---- the block ---- */

/* `return a, b` of infer `f` are the outputs "f.0" and "f.1". */
static void add_outputs(Lower *l, const Frame *f, const Function *def)
{
  Datum v = function_result(l, f, def);
  if (d_is(v, D_error)) return;
  if (v.kind == D_none) {
    fail(l, E210, def->name.span, "infer `%s` returns nothing", def->name.text);
    return;
  }
  if (v.kind != D_list) {
    add_output(l, def->name.text, v, f->result_span);
    return;
  }
  for (uint32_t i = 0; i < v.n; i++)
    add_output(l, arena_printf(l->arena, "%s.%u", def->name.text, i), v.as.list[i], f->result_span);
}

BlockInfo infer_info(const Lower *l, const Decl *decl)
{
  return (BlockInfo){.kind = AMPC_INFER,
                     .name = decl->as.function.name.text,
                     .span = decl->span,
                     .batch = 1,
                     .accumulate = 1,
                     .variant_of = -1,
                     .first_source = l->g->sources.n};
}

/* `infer name(x: f32[32, 784]) { return ... }`: a block without training, for programs that
 * embed the model. */
void lower_infer(Lower *l, const Decl *decl)
{
  const Function *def = &decl->as.function;
  BlockInfo info = infer_info(l, decl);
  Run run;
  uint32_t errors = diag_error_count(l->c);
  Scope *s = scope_new(l, NULL, l->job, NULL);
  bool data = l->c->options.n_infer_inputs > 0;
  if (data && !batch_of(l, s, def, &info.batch)) return;
  if (!begin_block(l, &run, &info, NULL)) return;
  if (data ? bind_data(l, s, def) : bind_arguments(l, s, def)) {
    Frame frame = {.kind = FRAME_function, .scope = s};
    l->at.region = l->job_region;
    exec_block(l, &frame, &def->body);
    if (frame.returned || diag_error_count(l->c) == errors) add_outputs(l, &frame, def);
  }
  end_block(l);
}
