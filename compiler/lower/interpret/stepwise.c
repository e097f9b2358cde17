/* A program whose lines are elaborated one by one: statements of one infer block, and models. */
#include "stepwise.h"
#include "interpret.h"
#include "compiler/lower/block/block.h"
#include "compiler/lower/block/infer.h"
#include "compiler/lower/model/model.h"
#include "compiler/syntax/source.h"
#include <string.h>

struct Stepwise {
  Lower l;
  Sizes sizes;
  Run run;
  Frame frame;
  Scope *def; /* variables of a def */
};

Stepwise *stepwise_begin(Compile *c, const char *defs)
{
  Stepwise *s = arena_new(c->arena, Stepwise);
  Lower *l = &s->l;
  if (!source_parse(c, "<defs>", defs, (uint32_t)strlen(defs), c->ast)) return NULL;
  s->sizes.sizing = SIZING_asked;
  *l = (Lower){.c = c, .g = ir_create(c), .arena = c->arena, .store = AMPC_F32, .sizes = &s->sizes};
  open_library(l);
  l->job = file_open(l, c->ast, false);
  file_add_globals(l, l->job, true);
  lower_precision(l, NULL);
  lower_members(l);
  const BlockInfo info = {
      .kind = AMPC_INFER, .name = "lines", .batch = 1, .accumulate = 1, .variant_of = -1};
  if (!begin_block(l, &s->run, &info, NULL)) return NULL;
  l->at.region = l->job_region;
  s->frame = (Frame){.kind = FRAME_function, .scope = scope_new(l, NULL, l->job, NULL)};
  return s;
}

void stepwise_tensor(Stepwise *s, const char *name, ampc_dtype dtype, const int64_t *dim,
                     uint32_t rank)
{
  Lower *l = &s->l;
  ampc_source source = {
      .kind = AMPC_SOURCE_ARGUMENT, .path = name, .part_end = 1, .dtype = dtype, .rank = rank};
  memcpy(source.dim, dim, rank * sizeof *dim);
  int64_t index = l->g->sources.n;
  vec_push(l->arena, &l->g->sources, source);
  const Span none = {0, 0};
  scope_bind(l, s->frame.scope, name,
             append(l, none, OP_source, NULL, 0, ATTRS({"index", {.i = index}})), none);
}

static bool parse_line(Lower *l, const char *line, Ast *out)
{
  uint32_t base = diag_add_source(l->c, "<line>", line, (uint32_t)strlen(line), true);
  l->work = 0; /* the limit is for one line */
  return ast_parse_input(l->c, base, out);
}

bool stepwise_line(Stepwise *s, const char *line)
{
  Lower *l = &s->l;
  Ast one = {0};
  uint32_t errors = diag_error_count(l->c);
  if (!parse_line(l, line, &one)) return false;
  for (uint32_t i = 0; i < one.n; i++) {
    const Decl *d = one.at[i];
    if (d->kind == DECL_model)
      scope_bind(l, s->frame.scope, d->name.text, declare_model(l, l->job, d), d->span);
    else
      exec_block(l, &s->frame, &d->as.function.body);
  }
  return diag_error_count(l->c) == errors;
}

Known stepwise_known(Stepwise *s, const char *name)
{
  Lower *l = &s->l;
  const Span none = {0, 0};
  Known k = {0};
  const int64_t *dim;
  Datum d = lookup_quiet(l, s->frame.scope, name, none);
  k.tensor = d_is_tensor(d) && tensor_dims(l, d, &dim, &k.rank);
  if (!k.tensor) return k;
  memcpy(k.dim, dim, k.rank * sizeof *dim);
  k.dtype = tensor_dtype(l, d);
  return k;
}

void stepwise_enter(Stepwise *s)
{
  s->def = scope_new(&s->l, s->frame.scope, s->l.job, NULL);
}

bool stepwise_bind(Stepwise *s, const char *name, const char *value)
{
  Lower *l = &s->l;
  Ast one = {0};
  const Span none = {0, 0};
  Datum d = d_of(D_absent);
  if (name_size(value) == strlen(value)) d = lookup_quiet(l, s->frame.scope, value, none);
  if (d_is(d, D_absent)) {
    if (!parse_line(l, arena_printf(l->arena, "%s = %s", name, value), &one)) return false;
    const Stmt *line = one.at[0]->as.function.body.at[0];
    d = eval(l, s->frame.scope, line->as.assign.values.at[0]);
  }
  scope_bind(l, s->def, name, d, none);
  return !d_is(d, D_error);
}

bool stepwise_bind_known(Stepwise *s, const char *name, const Expr *value)
{
  Datum d = eval(&s->l, s->def, value);
  scope_bind(&s->l, s->def, name, d, value->span);
  return !d_is(d, D_error);
}

const char *stepwise_value(Stepwise *s, const Expr *e)
{
  enum {
    KNOWN = 1 << D_none | 1 << D_bool | 1 << D_int | 1 << D_float | 1 << D_str | 1 << D_list |
            1 << D_dtype | 1 << D_function | 1 << D_op | 1 << D_class
  };
  Lower *l = &s->l;
  l->work = 0;
  Datum d = eval(l, s->def, e), around = d_list(&d, 1);
  if (d_is(d, D_error)) return NULL;
  if (around.holds & ~(uint32_t)KNOWN) return "";
  const char *text = d_whole_text(l, around); /* strings are quoted in lists only */
  return arena_strndup(l->arena, text + 1, strlen(text) - 2);
}
