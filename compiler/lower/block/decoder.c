/* Checks the infer block of options.decode: pass decode makes a program that computes its text
 * token by token. So the block takes the tokens of one text, whose length is a dim, and returns
 * logits. */
#include "block.h"
#include "infer.h"
#include "runtime/plan/types.h"
#include <string.h>

void decoder_check_name(Lower *l)
{
  const char *wanted = l->c->options.infer_block;
  NameVec names = {0};
  for (uint32_t i = 0; i < l->job->ast->n; i++)
    if (l->job->ast->at[i]->kind == DECL_infer)
      vec_push(l->arena, &names, l->job->ast->at[i]->name.text);
  for (uint32_t i = 0; i < names.n; i++)
    if (strcmp(names.at[i], wanted) == 0) return;
  fail(l, E207, (Span){0, 0}, "--decode %s: no such infer block", wanted);
  if (names.n)
    diag_help_names(l->c, wanted, names.at, names.n);
  else
    diag_help(l->c, "the job has none: `infer %s(ids: i64[1, S]) -> float[1, S, V] { ... }`",
              wanted);
}

static bool wrong(Lower *l, const Function *def, Span span, const char *what)
{
  fail(l, E614, span, "infer `%s` %s", def->name.text, what);
  return diag_help(l->c,
                   "write `infer %s(ids: i64[1, S]) -> float[1, S, V] { ... }`, with "
                   "`dim S(max=1024)` at the top level; the ids may be i32 or u8",
                   def->name.text);
}

/* Returns the only result of a block; NULL: it has several. */
static const Node *result_of(const Lower *l, uint16_t block)
{
  const Node *found = NULL;
  for (uint32_t i = 0; i < l->g->outputs.n; i++) {
    if (l->g->outputs.at[i].block != block) continue;
    if (found) return NULL;
    found = ir_node(l->g, l->g->outputs.at[i].value);
  }
  return found;
}

bool decoder_check(Lower *l, const Function *def, const Choice *x)
{
  const ampc_source *s = &l->g->sources.at[l->g->blocks.at[0].first_source];
  const TypeExpr *t = &def->params.at[0].type;
  char type[AMPC_TYPE_ROOM];
  if (def->params.n != 1)
    return wrong(l, def, def->name.span,
                 arena_printf(l->arena, "has %u arguments; expected one, the tokens of a text",
                              def->params.n));
  bool ids = s->dtype == AMPC_I64 || s->dtype == AMPC_I32 || s->dtype == AMPC_U8;
  if (!ids || s->rank != 2 || s->dim[0] != 1)
    return wrong(l, def, t->span,
                 arena_printf(l->arena, "takes %s; expected the tokens of one text, i64[1, S]",
                              ampc_type_text(type, s->dtype, s->rank, s->dim)));
  uint32_t length = dim_named(x, t->dims[1]);
  if (length == AMPC_MAX_SIZES)
    return wrong(l, def, t->dims[1]->span, "takes a number of tokens that is not a `dim`");
  const Dim *d = x->dim[length];
  if (d->n_asked < 2) {
    fail(l, E614, d->span, "dim `%s` has only the size %lld", d->name, (long long)d->least);
    return diag_help(l->c, "a text grows token by token: give it a larger `max`");
  }
  const Node *y = result_of(l, 0), *other = result_of(l, 1); /* for another length */
  if (!y || !other)
    return wrong(l, def, def->name.span, "has several results; expected one, the logits");
  bool all = y->rank == 3 && y->dim[1] == s->dim[1], last = y->rank == 2;
  bool fits = (all || last) && y->dim[0] == 1 && y->dim[y->rank - 1] == other->dim[y->rank - 1];
  if (fits && dtype_is_float(y->dtype)) return true;
  return wrong(l, def, def->name.span,
               arena_printf(l->arena, "returns %s for %lld tokens; expected the logits",
                            ampc_type_text(type, y->dtype, y->rank, y->dim), (long long)s->dim[1]));
}
