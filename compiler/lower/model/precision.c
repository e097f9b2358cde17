/* Makes regions: for the `precision` clause, for autocast and for pins. */
#include "model.h"

/* Finds a precision by name. Returns false if the name is unknown. */
static bool kind_by_name(const char *name, RegionKind *out)
{
  for (int i = 0; i < REGION_COUNT; i++)
    if (strcmp(region_kind_names[i], name) == 0) return *out = (RegionKind)i, true;
  return false;
}

/* Reads a precision. `f32`, `f16` and `bf16` are types, `off` and `tf32` are words. `off` is
 * allowed for regions only, not for a job: parameter `off`. */
static bool kind_of_datum(Lower *l, Datum d, Span span, bool off, RegionKind *out)
{
  if (d_is(d, D_error)) return false;
  const char *name = d.kind == D_dtype  ? ir_dtype_name(d.as.dtype)
                     : d.kind == D_word ? d.as.text
                                        : "";
  if (kind_by_name(name, out) && (off || *out != REGION_off)) return true;
  if (off)
    return refuse(l, E209, span, "a precision is " AMPC_NARROW_LIST "f32, tf32 or off, got %s",
                  d_kind_text(l, d));
  return refuse(l, E209, span, "the precision of a job is " AMPC_NARROW_LIST "f32 or tf32, got %s",
                d_kind_text(l, d));
}

bool region_kind_of_datum(Lower *l, Datum d, Span span, RegionKind *out)
{
  return kind_of_datum(l, d, span, true, out);
}

/* Evaluates a precision. The message about an unknown name lists the precisions. */
static bool kind_of_expr(Lower *l, Scope *s, const Expr *e, bool off, RegionKind *out)
{
  if (e->kind == EXPR_name && d_is(lookup_quiet(l, s, e->as.name, e->span), D_absent)) {
    const char *names[REGION_COUNT + LEVEL_COUNT];
    uint32_t n = 0;
    for (int i = 0; i < REGION_COUNT; i++)
      if (off || i != REGION_off) names[n++] = region_kind_names[i];
    for (int i = 0; !off && i < LEVEL_COUNT; i++) names[n++] = levels[i].name;
    fail(l, E201, e->span, "unknown precision `%s`", e->as.name);
    if (foreign_help(l, e->as.name)) return false;
    return diag_help_names(l->c, e->as.name, names, n);
  }
  return kind_of_datum(l, eval(l, s, e), e->span, off, out);
}

bool region_kind_of(Lower *l, Scope *s, const Expr *e, RegionKind *out)
{
  return kind_of_expr(l, s, e, true, out);
}

/* Rejects slow types. Tensor cores support a type from a certain compute capability on. Below
 * it, libraries lack some products and convolutions of the type, and emulate the rest slowly. */
static void check_target(Lower *l, DType d, Span span)
{
  const char *target = l->c->options.target;
  int capability = target ? ampc_target_capability(target) : 0,
      needed = ampc_type_of(d)->capability;
  if (!capability || capability >= needed) return;
  fail(l, E405, span, "%s needs sm_%d or later, the target is %s", ir_dtype_name(d), needed,
       target);
  diag_help(l->c, "write `precision f16`, which is fast on this GPU, or `precision f32`");
}

/* Returns a region. Equal regions are shared, so a layer in a loop does not make one for each call.
 * Above the limit the caller stays in its own region, after an error. */
uint16_t region_push(Lower *l, RegionKind kind, bool no_grad, Span span, const char *label)
{
  Graph *g = l->g;
  uint16_t parent = l->at.region;
  no_grad = no_grad || g->regions.at[parent].no_grad;
  for (uint32_t i = 1; i < g->regions.n; i++) {
    const Region *r = &g->regions.at[i];
    if (r->kind == kind && r->parent == parent && r->no_grad == no_grad &&
        r->checkpoint == g->regions.at[parent].checkpoint && r->span.start == span.start &&
        !r->sums_of && strcmp(r->label, label) == 0)
      return (uint16_t)i;
  }
  if (g->regions.n > UINT16_MAX) {
    fail(l, E210, span, "the job has more than %d regions of precision", UINT16_MAX);
    return parent;
  }
  vec_push(l->arena, &g->regions,
           ((Region){.kind = kind,
                     .parent = parent,
                     .no_grad = no_grad,
                     .wide = g->regions.at[parent].wide,
                     .span = span,
                     .label = label,
                     .checkpoint = g->regions.at[parent].checkpoint}));
  if (kind != g->regions.at[parent].kind) check_target(l, region_low(kind), span);
  return (uint16_t)(g->regions.n - 1);
}

/* Returns a copy of the current region for one call of checkpoint(). Inside another such call the
 * region does not change: the outer call already recomputes all its nodes. */
uint16_t region_checkpoint(Lower *l, Span span)
{
  Graph *g = l->g;
  Region region = g->regions.at[l->at.region];
  if (region.checkpoint) return l->at.region;
  if (g->regions.n > UINT16_MAX) {
    fail(l, E210, span, "the job has more than %d regions of precision and checkpoints",
         UINT16_MAX);
    return l->at.region;
  }
  region.checkpoint = ++g->n_checkpoints;
  vec_push(l->arena, &g->regions, region);
  return (uint16_t)(g->regions.n - 1);
}

/* ---- the precision clause ---- */

/* Keeps the pins of `precision` for job_pins(). Returns the precision that determines the scaler:
 * `kind`, or f16 if a pin is f16. */
static RegionKind read_pins(Lower *l, Scope *s, const Decl *decl, RegionKind kind)
{
  for (uint32_t i = 0; decl && i < decl->as.object.clauses.n; i++) {
    const Stmt *st = decl->as.object.clauses.at[i];
    RegionKind pin;
    if (st->kind != STMT_autocast || !pin_kind(l, s, st, &pin)) continue;
    vec_push(l->arena, &l->pins, ((JobPin){st, pin}));
    if (needs_scaler(pin)) kind = pin;
  }
  return kind;
}

/* Applies `precision f16 { scaler(init=1024.0) }`. Returns false if the precision has no scaler. */
static bool clause_scaler(Lower *l, Scope *s, const Expr *e, RegionKind kind, bool overridden)
{
  if (needs_scaler(kind)) {
    l->in_precision = true;
    eval(l, s, e);
    l->in_precision = false;
    return true;
  }
  if (!overridden) { /* if --set replaces the precision, the clause is allowed */
    fail(l, E404, e->span, "`scaler` with `precision %s`: %s gradients need no scaler",
         region_kind_names[kind], region_kind_names[kind]);
    diag_help(l->c, "remove the clause");
  }
  return false;
}

/* Reads the argument of `tf32(true)` or `fewest_casts(true)`. Returns false after a message. */
static bool clause_truth(Lower *l, const char *name, const Args *args, bool *out)
{
  const char *quoted = arena_printf(l->arena, "`%s`", name);
  if (args->at.n == 1 && !args->at.at[0].key)
    return want_bool(l, args->at.at[0].value, args->at.at[0].span, quoted, out);
  return fail(l, E205, args->span, "%s takes true or false", quoted), false;
}

/* Applies `tf32(true)`, like torch.backends.cuda.matmul.allow_tf32. It also applies to regions of
 * f32 and to regions with autocast off. In `precision tf32` it has no effect, and tf32(false) is a
 * contradiction. */
static void clause_tf32(Lower *l, const Args *args, RegionKind kind)
{
  if (!clause_truth(l, "tf32", args, &l->g->tf32) || l->g->tf32 || kind != REGION_tf32) return;
  fail(l, E605, args->span, "`precision tf32` and `tf32(false)` contradict each other");
  diag_help(l->c, "write `precision f32` for products in full f32");
}

static void run_clause(Lower *l, const char *name, const Args *args, RegionKind kind)
{
  if (strcmp(name, "policy") == 0) clause_policy(l, args);
  if (strcmp(name, "accumulate") == 0) clause_accumulate(l, args);
  if (strcmp(name, "params") == 0) clause_params(l, args);
  if (strcmp(name, "moments") == 0) clause_moments(l, args);
  if (strcmp(name, "tf32") == 0) clause_tf32(l, args, kind);
  if (strcmp(name, "fewest_casts") == 0) clause_truth(l, name, args, &l->g->fewest_casts);
}

/* Applies a clause. Returns true if it gives the job a scaler. */
static bool precision_clause(Lower *l, Scope *s, const Stmt *st, RegionKind kind, RegionKind scales,
                             bool overridden)
{
  static const char *const clauses[] = {"scaler",  "policy", "accumulate",  "params",
                                        "moments", "tf32",   "fewest_casts"};
  const Expr *e = st->kind == STMT_expr ? st->as.value : NULL;
  const char *name = called_name(e);
  Args args = {.span = st->span};
  bool known = false;
  if (st->kind == STMT_autocast) return false; /* read_pins() */
  for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++)
    known |= strcmp(name, clauses[i]) == 0;
  if (!known) {
    fail(l, E210, st->span, "this is no clause of `precision`");
    return diag_help(
        l->c,
        "clauses are autocast, scaler, policy, accumulate, params, moments, tf32, fewest_casts");
  }
  if (strcmp(name, "scaler") == 0) return clause_scaler(l, s, e, scales, overridden);
  if (eval_args(l, s, &e->as.call.args, &args)) run_clause(l, name, &args, kind);
  return false;
}

/* Returns the level of `precision O2`, unless the job itself declares the name O2. */
static const Level *level_of(Lower *l, Scope *s, const char *given, const Decl *decl)
{
  const Expr *e = decl ? decl->as.object.value : NULL;
  if (given) return level_by_name(given);
  if (!e || e->kind != EXPR_name) return NULL;
  bool taken = !d_is(lookup_quiet(l, s, e->as.name, e->span), D_absent);
  return taken ? NULL : level_by_name(e->as.name);
}

/* Finds the precision of the job, from the command line or its text; false after a message. */
static bool job_kind(Lower *l, Scope *s, const Decl *decl, RegionKind *out)
{
  const char *given = setting_text_given(l, "precision");
  *out = REGION_f32;
  l->level = level_of(l, s, given, decl);
  if (l->level) return *out = l->level->kind, true;
  if (!given) return !decl || kind_of_expr(l, s, decl->as.object.value, false, out);
  if (kind_by_name(given, out) && *out != REGION_off) return true;
  return refuse(l, E207, (Span){0, 0},
                "--set precision=%s: a precision is " AMPC_NARROW_LIST
                "f32 or tf32, or a level, O0 to O3",
                given);
}

/* Applies --set fewest_casts=true. */
static void set_fewest(Lower *l)
{
  Datum truth = d_bool(l->g->fewest_casts);
  Span span = {0, 0};
  if (setting_value(l, "fewest_casts", &truth, &span))
    want_bool(l, truth, span, "`fewest_casts`", &l->g->fewest_casts);
}

/* Reads the clause; decl is NULL in a job without it. The precision is then f32, or from --set. */
void lower_precision(Lower *l, const Decl *decl)
{
  Scope *s = scope_new(l, NULL, l->job, NULL);
  RegionKind kind;
  bool given = setting_given(l, "precision"), scaled = false;
  if (!job_kind(l, s, decl, &kind)) return;
  l->g->precision = region_kind_names[kind];
  if (!decl && !given) {
    lower_no_scaler(l);
    return;
  }
  Span span = decl ? decl->span : (Span){0, 0};
  l->at.region = 0;
  const char *word = l->level ? l->level->name : region_kind_names[kind];
  l->job_region = region_push(l, l->level ? l->level->region : kind, false, span,
                              arena_printf(l->arena, "`precision %s`", word));
  RegionKind scales = read_pins(l, s, decl, kind);
  for (uint32_t i = 0; decl && i < decl->as.object.clauses.n; i++)
    scaled |= precision_clause(l, s, decl->as.object.clauses.at[i], kind, scales, given);
  set_fewest(l);
  bool none = l->level && l->level->number == 3;
  if (!scaled) default_scaler(l, none ? REGION_f32 : scales, span);
}
