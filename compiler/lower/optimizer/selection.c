/* Lowers the clauses of an optimizer that say which parameters of its model it updates:
 * `only(*patterns, rank=)` and `without(optimizer)`. Without a clause it updates all. */
#include "optimizer.h"
#include "compiler/lower/model/model.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"
#include <string.h>

/* What one `only` finds. */
typedef struct Found {
  Opt *opt;
  int64_t rank; /* of these parameters; -1: any */
  uint32_t n;
} Found;

static void take(Lower *l, ParamSlot *p, void *data)
{
  Found *f = data;
  (void)l;
  if (p->buffer || p->index < 0 || (f->rank >= 0 && p->rank != f->rank)) return;
  f->opt->only[p->index] = true;
  f->n++;
}

static bool only_clause(Lower *l, Opt *o, const Args *args, Match *m)
{
  Found found = {.opt = o, .rank = -1};
  uint32_t n = 0;
  while (n < args->at.n && !args->at.at[n].key) n++;
  for (uint32_t i = n; i < args->at.n; i++) {
    if (strcmp(args->at.at[i].key, "rank") != 0) {
      wrong_key(l, "only", &args->at.at[i], (const char *[]){"rank"}, 1, "only(*patterns, rank)");
      return false;
    }
    if (!want_rank(l, &args->at.at[i], &found.rank)) return false;
  }
  if (!args->at.n) {
    fail(l, E205, args->span, "`only` takes patterns or `rank`");
    return diag_help(l->c, "`only(\"layers.**\", rank=2)`");
  }
  if (!o->only) o->only = arena_array(l->arena, bool, l->g->params.n);
  m->data = &found;
  if (!match_params(l, m, args, n)) return false;
  if (found.n || l->broken) return true;
  return refuse(l, E501, args->span, "`%s` has no parameter %s", o->name,
                n ? "that matches" : "of this rank");
}

static bool without_clause(Lower *l, Opt *o, const Args *args)
{
  bool one = args->at.n == 1 && !args->at.at[0].key && o->without.n < 32;
  if (!one || args->at.at[0].value.kind != D_optimizer) {
    fail(l, E205, args->span, "`without` takes one optimizer");
    return diag_help(l->c, "`without(muon)`; for several optimizers, write a clause for each");
  }
  Opt *other = args->at.at[0].value.as.optimizer;
  if (other->state == GLOBAL_busy)
    return refuse(l, E605, args->span, "what `%s` updates depends on what `%s` updates",
                  other->name, o->name);
  if (!optimizer_settle(l, other)) return false;
  vec_push(l->arena, &o->without, other);
  return true;
}

bool optimizer_select(Lower *l, Opt *o, Datum model)
{
  const Block *clauses = &o->decl->as.object.clauses;
  Match m = {.owner = o->name, .broken = l->broken, .param = take};
  optimizer_roots(l, model, false, &m.roots);
  for (uint32_t i = 0; i < clauses->n; i++) {
    const Stmt *st = clauses->at[i];
    if (!selects(st)) continue;
    const Expr *e = st->as.value;
    Args args = {.span = e->span};
    if (!eval_args(l, scope_new(l, NULL, o->file, NULL), &e->as.call.args, &args)) return false;
    bool only = strcmp(called_name(e), "only") == 0;
    if (!(only ? only_clause(l, o, &args, &m) : without_clause(l, o, &args))) return false;
  }
  return true;
}

bool selects(const Stmt *st)
{
  const char *name = called_name(st->kind == STMT_expr ? st->as.value : NULL);
  return strcmp(name, "only") == 0 || strcmp(name, "without") == 0;
}

bool optimizer_selects(Lower *l, Opt *o, uint32_t param)
{
  for (uint32_t i = 0; i < o->without.n; i++) {
    if (share_find(l->g, param, o->without.at[i]->index) == NO_SHARE) continue;
    o->used |= 1u << i;
    return false;
  }
  if (!o->only || o->only[param]) return true;
  vec_push(l->arena, &o->left_out, param);
  return false;
}

bool check_without(Lower *l, const Opt *o, Span span)
{
  for (uint32_t i = 0; i < o->without.n; i++)
    if (!(o->used >> i & 1))
      return refuse(l, E605, span, "`without(%s)` leaves nothing out of `%s`",
                    o->without.at[i]->name, o->name);
  return true;
}

/* Warns of an optimizer that no `minimize` names, if another one is named. */
static void warn_unused(Lower *l, const Opt *o)
{
  const Opt *other = NULL;
  for (uint32_t i = 0; i < l->optimizers.n && !other; i++)
    if (l->g->optimizers.at[l->optimizers.at[i]->index].updates) other = l->optimizers.at[i];
  if (!other || l->g->optimizers.at[o->index].updates) return;
  diag_warning(l->c, W613, o->decl->span, "no `minimize` names `%s`, so it updates nothing",
               o->name);
  diag_help(l->c, "`minimize ... with %s, %s`", other->name, o->name);
}

void warn_left_out(Lower *l)
{
  for (uint32_t i = 0; i < l->optimizers.n; i++) {
    const Opt *o = l->optimizers.at[i];
    warn_unused(l, o);
    const Parameter *first = NULL;
    uint32_t n = 0;
    for (uint32_t k = 0; k < o->left_out.n; k++) {
      const Parameter *p = &l->g->params.at[o->left_out.at[k]];
      if (p->optimizer >= 0) continue;
      if (!first) first = p;
      n++;
    }
    if (!first) continue;
    diag_warning(l->c, W613, o->decl->span, "no optimizer updates `%s`%s", first->path,
                 n > 1 ? arena_printf(l->arena, " and %u more", n - 1) : "");
    diag_help(l->c,
              "`optimizer %s_rest = AdamW(%s) { without(%s) }` and `minimize ... with %s, %s_rest` "
              "update what `only` leaves out; "
              "`freeze(PATTERNS)` in `model %s` says that it stays as it is",
              o->name, first->model, o->name, o->name, o->name, first->model);
  }
}

bool check_matrix(Lower *l, const Opt *o, const Parameter *p, Span span)
{
  const OptimizerInfo *row = optimizer_of(&l->g->optimizers.at[o->index]);
  if (!row->matrices || p->rank == 2) return true;
  fail(l, E605, span, "%s updates matrices, and `%s` has %d %s", row->name, p->path, (int)p->rank,
       p->rank == 1 ? "axis" : "axes");
  return diag_help(l->c,
                   "%s selects the matrices; `optimizer rest = AdamW(net) { without(%s) }` updates "
                   "the other parameters",
                   o->only ? "`rank=2` in each `only`" : "`{ only(rank=2) }` after this call",
                   o->name);
}
