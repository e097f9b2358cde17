/* Lowers `group(*patterns, rank=, **settings)` in an optimizer: parameters with their own settings.
 * A parameter belongs only to the last clause that names it. A setting that this clause does not
 * set is the optimizer's, even if an earlier clause sets it. */
#include "optimizer.h"
#include "compiler/lower/model/model.h"
#include "compiler/graph/shares.h"

/* The optimizer and the group that matching parameters join. */
typedef struct Member {
  Opt *opt;
  uint32_t group;
  int64_t rank;   /* of these parameters; -1: any */
  uint32_t found; /* parameters that match and have the rank */
  uint32_t taken; /* those of them that the optimizer updates */
} Member;

/* Adds a parameter to the group. Patterns may also match buffers, frozen parameters and other
 * models, which the optimizer does not update. These do not change. */
static void join(Lower *l, ParamSlot *p, void *data)
{
  Member *m = data;
  if (p->buffer || (m->rank >= 0 && p->rank != m->rank)) return;
  m->found++;
  if (p->index < 0) return;
  uint32_t entry = share_find(l->g, (uint32_t)p->index, m->opt->index);
  if (entry == NO_SHARE) return;
  l->g->params.at[entry].group = m->group;
  m->taken++;
}

/* ---- what patterns can name ---- */

/* Adds a module or parameter at which patterns start. In a list of models, paths begin with the
 * model's name, since two models may have equal paths. */
static void add_root(Lower *l, Datum part, bool listed, RootVec *roots)
{
  const Instance *m = part.kind == D_param ? part.as.param->owner : part.as.instance;
  if (!m || !m->path) return; /* outside of any model: never updated */
  const char *path = m->path;
  if (part.kind == D_param)
    path = arena_printf(l->arena, "%s%s%s", path, path[0] ? "." : "", part.as.param->name);
  if (listed) path = arena_printf(l->arena, "%s%s%s", m->model, path[0] ? "." : "", path);
  vec_push(l->arena, roots, (Root){part, path});
}

void optimizer_roots(Lower *l, Datum model, bool listed, RootVec *roots)
{
  if (model.kind == D_param || model.kind == D_instance) add_root(l, model, listed, roots);
  for (uint32_t i = 0; model.kind == D_list && i < model.n; i++)
    optimizer_roots(l, model.as.list[i], true, roots);
}

/* ---- settings ---- */

/* Returns setting i of `group`, and its key: the clause's own setting, or else the optimizer's. */
Datum group_setting(const Opt *o, uint32_t group, uint32_t i, const char **key)
{
  const SettingGroup *g = group ? &o->groups.at[group - 1] : NULL;
  bool own = g && g->own[i];
  *key = own ? g->key : o->name;
  return own ? g->value[i] : o->value[i];
}

/* Gives the group its own setting `name`. */
static bool set_one(Lower *l, const Opt *o, SettingGroup *g, const char *name, Datum v, Span span)
{
  for (uint32_t i = 0; i < o->n_settings; i++) {
    if (strcmp(o->setting[i], name) != 0) continue;
    if (!check_setting(l, o, g->key, name, &v, span)) return false;
    g->own[i] = true;
    g->value[i] = v;
  }
  return true;
}

static bool unknown_argument(Lower *l, const OptimizerInfo *row, const ArgValue *arg)
{
  const char *names[MAX_ARGUMENTS + 1];
  uint32_t n = 0;
  Text t = text_new(l->arena);
  text_puts(&t, "group(*patterns, rank");
  names[n++] = "rank";
  for (uint32_t i = 0; i < row->n_arguments; i++) {
    if (row->argument[i].whole) continue;
    names[n++] = row->argument[i].name;
    text_printf(&t, ", %s", row->argument[i].name);
  }
  text_puts(&t, ")");
  wrong_key(l, "group", arg, names, n, t.at);
  return false;
}

/* Sets an argument of a group: an argument of the optimizer that does not apply to it as a
 * whole. */
static bool set_argument(Lower *l, const Opt *o, SettingGroup *g, ParamGroup *group,
                         const ArgValue *arg)
{
  const OptimizerInfo *row = optimizer_of(&l->g->optimizers.at[o->index]);
  for (uint32_t i = 0; i < row->n_arguments; i++) {
    const OptimizerArgument *a = &row->argument[i];
    if (strcmp(a->name, arg->key) != 0 || a->whole) continue;
    if (a->flag) return set_flag(l, a, group, arg->value, arg->span);
    const Datum *values = argument_values(l, a, &arg->value, arg->span);
    for (uint32_t k = 0; values && k < a->n; k++)
      if (!set_one(l, o, g, optimizer_setting_name(row, a->first + k), values[k], arg->span))
        return false;
    return values != NULL;
  }
  return unknown_argument(l, row, arg);
}

/* True if the setting applies to all groups of the optimizer together. */
static bool is_whole(const char *setting)
{
  static const char *const all[] = {"clip_norm", "skip_above", "ema"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(setting, all[i]) == 0) return true;
  return false;
}

/* Sets settings from --set, which may name one that the group's clause does not set. */
static bool set_from_options(Lower *l, const Opt *o, SettingGroup *g, Span span)
{
  for (uint32_t i = 0; i < o->n_settings; i++) {
    const char *key = arena_printf(l->arena, "%s.%s", g->key, o->setting[i]);
    if (is_whole(o->setting[i]) || g->own[i] || !setting_given(l, key)) continue;
    if (!set_one(l, o, g, o->setting[i], o->value[i], span)) return false;
  }
  return true;
}

/* ---- clauses ---- */

bool match_params(Lower *l, const Match *m, const Args *args, uint32_t n)
{
  uint32_t errors = diag_error_count(l->c);
  const ArgValue every = {.value = d_str("**"), .span = args->span};
  match_patterns(l, m, n ? args->at.at : &every, n ? n : 1);
  return diag_error_count(l->c) == errors;
}

bool want_rank(Lower *l, const ArgValue *arg, int64_t *out)
{
  return want_count(l, arg->value, arg->span, "`rank`", (Counts){0, AMPC_MAX_RANK}, out);
}

/* Adds the parameters of the clause to the group. Without patterns, `rank` alone names them. */
static bool match_group(Lower *l, Match *m, Member *group, const Args *args, uint32_t n)
{
  m->data = group;
  if (!match_params(l, m, args, n)) return false;
  bool selects = group->opt->only || group->opt->without.n;
  if (group->found && !group->taken && selects)
    return refuse(l, E501, args->span, "`%s` updates none of these parameters", group->opt->name);
  if (group->rank < 0 || group->found || l->broken) return true;
  return refuse(l, E501, args->span, "`%s` has no parameter of rank %lld%s", group->opt->name,
                (long long)group->rank, n ? " that matches" : "");
}

/* Lowers `group("**.bias", weight_decay=0.0)`: patterns, then settings. */
static bool group_clause(Lower *l, Opt *o, const Args *args, Match *m)
{
  Optimizer *q = &l->g->optimizers.at[o->index];
  uint32_t index = q->groups.n, n = 0;
  Member member = {.opt = o, .group = index, .rank = -1};
  while (n < args->at.n && !args->at.at[n].key) n++;
  for (uint32_t i = n; i < args->at.n; i++)
    if (strcmp(args->at.at[i].key, "rank") == 0 && !want_rank(l, &args->at.at[i], &member.rank))
      return false;
  if (!n && member.rank < 0) {
    fail(l, E205, args->span, "`group` takes patterns or `rank`, and then settings");
    return diag_help(l->c,
                     "`group(\"**.bias\", weight_decay=0.0)`; `group(rank=1, weight_decay=0.0)`");
  }
  SettingGroup group = {.key = arena_printf(l->arena, "%s.group%u", o->name, index)};
  ParamGroup own = {.flags = q->groups.at[0].flags, .settings = index};
  for (uint32_t i = n; i < args->at.n; i++)
    if (strcmp(args->at.at[i].key, "rank") != 0 &&
        !set_argument(l, o, &group, &own, &args->at.at[i]))
      return false;
  if (!set_from_options(l, o, &group, args->span)) return false;
  vec_push(l->arena, &o->groups, group);
  vec_push(l->arena, &q->groups, own);
  if (!match_group(l, m, &member, args, n)) return false;
  return settle_group(l, o, index, args->span);
}

/* Lowers a `group`. Other clauses are in selection.c. */
static bool clause(Lower *l, Opt *o, const Stmt *st, Match *m)
{
  const Expr *e = st->kind == STMT_expr ? st->as.value : NULL;
  if (selects(st)) return true;
  if (strcmp(called_name(e), "group") != 0) {
    fail(l, E210, st->span, "this is no clause of an optimizer");
    return diag_help(l->c,
                     "the clauses are `group(*patterns, **settings)`, `only(*patterns, rank=)` "
                     "and `without(optimizer)`");
  }
  Args args = {.span = e->span};
  if (!eval_args(l, scope_new(l, NULL, o->file, NULL), &e->as.call.args, &args)) return false;
  return group_clause(l, o, &args, m);
}

/* Lowers groups after the optimizer's own settings, which are the defaults of its groups. */
bool optimizer_groups(Lower *l, Opt *o, Datum model)
{
  bool good = true;
  Match m = {.owner = o->name, .broken = l->broken, .param = join};
  optimizer_roots(l, model, false, &m.roots);
  const Block *clauses = &o->decl->as.object.clauses;
  for (uint32_t i = 0; i < clauses->n; i++) good = clause(l, o, clauses->at[i], &m) && good;
  return good;
}
