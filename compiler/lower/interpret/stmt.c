/* Executes statements. After a mistake, elaboration continues with the next statement. Names that
 * the wrong statement would have bound hold D_error, so uses of them are not reported. */
#include "interpret.h"
#include "compiler/lower/block/block.h"
#include "scan.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/optimizer/optimizer.h"

/* ---- names of branches that were not taken ---- */

static void note_missing(Lower *l, Scope *s, const Block *b, const char *why);

static void note_missing_targets(Lower *l, Scope *s, const Stmt *st, const char *why)
{
  if (!count_work(l, st->as.assign.targets.n / ELEMENTS_PER_WORK, st->span)) return;
  for (uint32_t i = 0; i < st->as.assign.targets.n; i++) {
    const Expr *target = st->as.assign.targets.at[i];
    if (target->kind == EXPR_name && !scope_missing(s, target->as.name))
      vec_push(l->arena, &s->missing, (Missing){target->as.name, why, target->span, false});
  }
}

/* Records the names that only the branch not taken would have assigned, with the reason: "`bias` is
 * false". unknown_name() uses it for its message. A loop records them in each iteration, so every
 * block counts as work. */
static void note_missing(Lower *l, Scope *s, const Block *b, const char *why)
{
  if (!b->n || !count_work(l, b->n / ELEMENTS_PER_WORK + 1, b->at[0]->span)) return;
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *st = b->at[i];
    if (st->kind == STMT_assign) note_missing_targets(l, s, st, why);
    if (st->kind == STMT_for) note_missing(l, s, &st->as.loop.body, why);
    if (st->kind == STMT_autocast || st->kind == STMT_no_grad)
      note_missing(l, s, &st->as.region.body, why);
    if (st->kind == STMT_if) {
      note_missing(l, s, &st->as.branch.then, why);
      note_missing(l, s, &st->as.branch.other, why);
    }
  }
}

/* Binds the names that a block would have bound to D_error, after a mistake. */
static void bind_errors(Lower *l, Scope *s, const Block *b)
{
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *st = b->at[i];
    for (uint32_t k = 0; st->kind == STMT_assign && k < st->as.assign.targets.n; k++) {
      const Expr *target = st->as.assign.targets.at[k];
      if (target->kind == EXPR_name) scope_bind(l, s, target->as.name, d_of(D_error), target->span);
    }
  }
}

/* Elaborates one branch of an `if`: the test is a compile-time value. After a mistake in the test
 * neither branch is elaborated, but their names are bound. */
static void exec_if(Lower *l, Frame *f, const Stmt *st)
{
  const Expr *test = st->as.branch.test;
  int truth = d_truth(l, eval(l, f->scope, test), test->span, "`if`");
  if (truth < 0) {
    bind_errors(l, f->scope, &st->as.branch.then);
    bind_errors(l, f->scope, &st->as.branch.other);
    return;
  }
  const Block *left_out = truth ? &st->as.branch.other : &st->as.branch.then;
  if (left_out->n)
    note_missing(
        l, f->scope, left_out,
        arena_printf(l->arena, "`%s` is %s", source_text(l, test->span), truth ? "true" : "false"));
  exec_block(l, f, truth ? &st->as.branch.then : &st->as.branch.other);
}

/* ---- assignment ---- */

/* True if the name is a member that the code must not rebind. In a method, `fc1 = relu(fc1(x))`
 * would make the next call read the tensor as the layer. The module's own body, which makes layers,
 * may rebind members. */
static bool is_member(const Frame *f, const char *name)
{
  Instance *self = f->scope->self;
  if (!self || f->kind == FRAME_module) return false;
  Binding *b = scope_find(self->body, name);
  return b && (d_contains(b->value, D_instance) || d_contains(b->value, D_param));
}

/* Returns the Buffer with this name, which a method may assign; else NULL. */
static ParamSlot *member_buffer(const Frame *f, const char *name)
{
  if (!is_member(f, name)) return NULL;
  Datum v = scope_find(f->scope->self->body, name)->value;
  return v.kind == D_param && v.as.param->buffer ? v.as.param : NULL;
}

static void reassigned_member(Lower *l, const Frame *f, const char *name, Span span)
{
  Instance *self = f->scope->self;
  Binding *b = scope_find(self->body, name);
  fail(l, E204, span, "`%s` is a layer of %s and cannot be reassigned in a method", name,
       self->class->name);
  diag_note(l->c, b->span, "it is defined here");
  diag_help(l->c, "use another name for the result");
}

/* Names a node after the first variable of the job that holds it. With `h = relu(x)`, messages,
 * dumps and emitted code say h. Constants have many users and get no name. */
void name_node(Lower *l, const Scope *s, const char *name, Datum v)
{
  if (v.kind != D_tensor || s->file->builtin) return;
  Node *n = ir_node(l->g, v.as.tensor);
  if (!n->name && n->op != OP_number && n->op != OP_integer) n->name = name;
}

/* Binds a name: in a module's body as a member with a path, elsewhere as a local variable. */
static void assign_name(Lower *l, Frame *f, const char *name, Datum v, Span span)
{
  name_node(l, f->scope, name, v);
  ParamSlot *buffer = member_buffer(f, name);
  if (buffer)
    assign_buffer(l, buffer, name, v, span, false, NULL);
  else if (is_member(f, name))
    reassigned_member(l, f, name, span);
  else if (f->kind == FRAME_module)
    bind_member(l, f->scope, name, v, span);
  else
    scope_bind(l, f->scope, name, v, span);
}

/* Executes `fc2.weight = fc1.weight`: in a module's body it ties two paths to one parameter. */
static void assign_target(Lower *l, Frame *f, const Expr *target, Datum v)
{
  if (target->kind == EXPR_name)
    assign_name(l, f, target->as.name, v, target->span);
  else if (target->kind == EXPR_attr && foreign_prefix_said(l, f->scope, target))
    assign_name(l, f, target->as.attr.name.text, v, target->span); /* self.fc = .. */
  else if (f->kind == FRAME_module && target->kind == EXPR_attr)
    tie(l, f->scope, target, v, target->span);
  else if (target->kind == EXPR_attr)
    assign_path(l, f->scope, target, v);
  else
    fail(l, E210, target->span, "only names can be assigned here");
}

/* Evaluates all values before it binds a name, so `a, b = b, a` swaps them. One name for several
 * values gets a tuple; several names for one value unpack it. After a mistake all names are bound
 * to D_error. */
static void exec_assign(Lower *l, Frame *f, const Stmt *st)
{
  const ExprList *targets = &st->as.assign.targets, *values = &st->as.assign.values;
  Datum *out = arena_array(l->arena, Datum, targets->n > values->n ? targets->n : values->n);
  bool good = true;
  for (uint32_t i = 0; i < values->n; i++) {
    out[i] = eval(l, f->scope, values->at[i]);
    good = good && !d_is(out[i], D_error);
  }
  if (good && values->n == 1) good = unpack(l, out[0], targets->n, values->at[0]->span, out);
  if (good && values->n != 1 && values->n != targets->n) {
    if (targets->n != 1) {
      fail(l, E209, st->span, "%u names for %u values", targets->n, values->n);
      good = false;
    } else {
      Datum tuple = d_list(out, values->n);
      tuple.tuple = true;
      out = arena_new(l->arena, Datum); /* the tuple keeps the array */
      *out = tuple;
    }
  }
  for (uint32_t i = 0; i < targets->n; i++)
    assign_target(l, f, targets->at[i], good ? out[i] : d_of(D_error));
}

/* Executes `x += y` as `x = x + y`. */
static void exec_augment(Lower *l, Frame *f, const Stmt *st)
{
  const Expr *target = st->as.augment.target;
  Datum old = eval(l, f->scope, target);
  Datum v =
      apply_binary(l, st->as.augment.op, old, eval(l, f->scope, st->as.augment.value), st->span);
  assign_target(l, f, target, v);
}

/* ---- control ---- */

static void exec_return(Lower *l, Frame *f, const Stmt *st)
{
  const ExprList *e = &st->as.exprs;
  if (f->kind != FRAME_function && f->kind != FRAME_data) {
    fail(l, E210, st->span, "`return` stands in a `def`, `data` or `infer` only");
    return;
  }
  Datum *at = arena_array(l->arena, Datum, e->n);
  bool good = true;
  for (uint32_t i = 0; i < e->n; i++) {
    at[i] = eval(l, f->scope, e->at[i]);
    good = good && !d_is(at[i], D_error);
  }
  f->returned = true;
  f->result = !good ? d_of(D_error) : e->n == 1 ? at[0] : d_list(at, e->n);
  if (good && e->n > 1) f->result.tuple = true;
  f->result_span = st->span;
}

/* Notes the values of both sides of a comparison that failed. */
static void note_sides(Lower *l, Frame *f, const Expr *e)
{
  if (e->kind != EXPR_binary || e->as.binary.op < OPER_lt || e->as.binary.op > OPER_ne) return;
  const Expr *sides[2] = {e->as.binary.left, e->as.binary.right};
  for (int i = 0; i < 2; i++)
    if (sides[i]->kind != EXPR_int && sides[i]->kind != EXPR_float)
      diag_note(l->c, sides[i]->span, "this is %s", d_text(l, eval(l, f->scope, sides[i])));
}

static void exec_assert(Lower *l, Frame *f, const Stmt *st)
{
  const ExprList *e = &st->as.exprs;
  int truth = d_truth(l, eval(l, f->scope, e->at[0]), e->at[0]->span, "`assert`");
  if (truth) return;
  Datum why = e->n > 1 ? eval(l, f->scope, e->at[1]) : d_of(D_none);
  if (why.kind == D_str)
    fail(l, E210, e->at[0]->span, "%s", why.as.text);
  else
    fail(l, E210, e->at[0]->span, "`%s` does not hold", source_text(l, e->at[0]->span));
  note_sides(l, f, e->at[0]);
  if (l->run && l->g->blocks.at[l->run->block].n_sizes)
    diag_help(l->c, "`min`, `max` and `multiple` of a dim limit its sizes");
}

/* Executes a `for`: elaborates the body once for each element. */
static void exec_for(Lower *l, Frame *f, const Stmt *st)
{
  const Expr *iter = st->as.loop.iter;
  DatumVec items = {0};
  Datum over = eval(l, f->scope, iter);
  if (!may_unroll(l, over, iter->span) || !iterate(l, over, iter->span, &items)) {
    bind_errors(l, f->scope, &st->as.loop.body);
    return;
  }
  for (uint32_t i = 0; i < items.n && !f->returned && !l->stopped; i++) {
    if (!count_work(l, 1, iter->span) ||
        !bind_loop_names(l, f->scope, &st->as.loop.names, items.at[i], iter->span))
      return;
    exec_block(l, f, &st->as.loop.body);
  }
}

/* Executes `autocast(f32) { ... }`: nodes inside belong to a region of that precision. Without
 * braces it applies to the end of the enclosing braces. In the library autocast() marks built-ins
 * that compute in f32; their label is then the reason in dumps. */
static void exec_autocast(Lower *l, Frame *f, const Stmt *st)
{
  const ArgList *args = &st->as.region.args;
  RegionKind kind;
  if (args->n != 1 || args->at[0].key.text) {
    fail(l, E205, st->span, "`autocast` takes one type: " AMPC_NARROW_LIST "f32 or off");
    return;
  }
  if (!region_kind_of(l, f->scope, args->at[0].value, &kind)) return;
  uint16_t before = l->at.region;
  const char *label = arena_printf(l->arena, "`autocast(%s)`", region_kind_names[kind]);
  if (f->scope->file->builtin) label = "a built-in of category f32";
  l->at.region = region_push(l, kind, false, diag_user_span(l->c, st->span), label);
  if (!st->as.region.has_block)
    return; /* exec_block() restores the region at the end of the braces */
  exec_block(l, f, &st->as.region.body);
  l->at.region = before;
}

/* Executes `no_grad`: a region of the same precision through which no gradient flows. */
static void exec_no_grad(Lower *l, Frame *f, const Stmt *st)
{
  uint16_t before = l->at.region;
  l->at.region = region_push(l, l->g->regions.at[before].kind, true, st->span, "no_grad");
  exec_block(l, f, &st->as.region.body);
  l->at.region = before;
}

/* Executes `metric acc = accuracy(h, y)`: a number that is accumulated over the block's steps. */
static void exec_metric(Lower *l, Frame *f, const Stmt *st)
{
  if (f->kind != FRAME_train && f->kind != FRAME_eval) {
    fail(l, E210, st->span, "`metric` stands in train and eval blocks only");
    return;
  }
  Metric m = {.name = st->as.named.name.text};
  Span span = st->as.named.value->span;
  Datum d = eval(l, f->scope, st->as.named.value);
  if (!metric_options(l, f->scope, &st->as.named.with, &m)) return;
  if (d.kind == D_statistics) {
    lower_statistics(l, m, d.as.statistics, span);
    return;
  }
  Value v = as_tensor(l, d, span);
  if (v.id) lower_metric(l, m, v, span);
}

/* Checks a statement in a `scan`: it must not run once per step or end the function. */
static bool may_stand_in_scan(Lower *l, const Frame *f, const Stmt *st)
{
  const char *word = st->kind == STMT_return     ? "return"
                     : st->kind == STMT_minimize ? "minimize"
                     : st->kind == STMT_metric   ? "metric"
                     : st->kind == STMT_every    ? "every"
                                                 : NULL;
  if (f->kind != FRAME_scan || !word) return true;
  fail(l, E210, st->span, "`%s` cannot stand in `scan`", word);
  return diag_help(l->c, "carry or `emit` a value, and use it after the loop");
}

static void exec_expr(Lower *l, Frame *f, const Stmt *st)
{
  Span outer = l->dropped; /* this statement may be in a def that an argument calls */
  l->dropped = st->as.value->span;
  eval(l, f->scope, st->as.value);
  l->dropped = outer;
}

static void exec_stmt(Lower *l, Frame *f, const Stmt *st)
{
  static void (*const run[])(Lower *, Frame *, const Stmt *) = {
      [STMT_expr] = exec_expr,
      [STMT_assign] = exec_assign,
      [STMT_augment] = exec_augment,
      [STMT_return] = exec_return,
      [STMT_assert] = exec_assert,
      [STMT_if] = exec_if,
      [STMT_for] = exec_for,
      [STMT_scan] = exec_scan,
      [STMT_emit] = exec_emit,
      [STMT_autocast] = exec_autocast,
      [STMT_no_grad] = exec_no_grad,
      [STMT_every] = exec_every,
      [STMT_minimize] = lower_minimize,
      [STMT_metric] = exec_metric,
      [STMT_def] = NULL, /* a method: found when it is called */
  };
  if (may_stand_in_scan(l, f, st) && run[st->kind]) run[st->kind](l, f, st);
}

/* Runs statements until one returns. An `autocast` without braces ends here. */
void exec_block(Lower *l, Frame *f, const Block *b)
{
  uint16_t region = l->at.region;
  for (uint32_t i = 0;
       i < b->n && !f->returned && count_work(l, 1, b->at[i]->span) && go_deeper(l, b->at[i]->span);
       i++) {
    exec_stmt(l, f, b->at[i]);
    l->stack--;
  }
  l->at.region = region;
}
