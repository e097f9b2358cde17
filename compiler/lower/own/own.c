/* Checks and calls `op name(x: float[N, D]) -> (y: float[N, D]) { ... }`. Sizes and numbers of a
 * call are constants of the kernel text, so each call makes an op of its own. */
#include "own.h"
#include "compiler/lower/model/model.h"
#include "compiler/graph/ops.h"

/* ---- the declaration ---- */

static const char *const clauses[CLAUSE_COUNT] = {
    [CLAUSE_cast] = "cast",   [CLAUSE_threads] = "threads", [CLAUSE_grid] = "grid",
    [CLAUSE_block] = "block", [CLAUSE_shared] = "shared",   [CLAUSE_cuda] = "cuda",
    [CLAUSE_host] = "host",   [CLAUSE_parts] = "host_parts"};

static bool read_clause(Lower *l, OwnDecl *own, const Stmt *st)
{
  const Expr *target = st->as.assign.targets.at[0];
  bool one = st->as.assign.targets.n == 1 && st->as.assign.values.n == 1;
  const char *name = one && target->kind == EXPR_name ? target->as.name : "";
  for (uint32_t i = 0; i < CLAUSE_COUNT; i++) {
    if (strcmp(name, clauses[i]) != 0) continue;
    if (own->clause[i]) return refuse(l, E210, st->span, "the clause `%s` occurs twice", name);
    own->clause[i] = st->as.assign.values.at[0];
    return true;
  }
  fail(l, E210, st->span, "this is no clause of an op");
  return diag_help_names(l->c, name, clauses, CLAUSE_COUNT);
}

static bool read_body(Lower *l, OwnDecl *own)
{
  const Block *b = &own->decl->as.op.body;
  bool good = true;
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *st = b->at[i];
    bool backward = st->kind == STMT_def && strcmp(st->as.def.name.text, "backward") == 0;
    if (st->kind == STMT_assign) {
      good = read_clause(l, own, st) && good;
    } else if (backward && !own->backward) {
      own->backward = &st->as.def;
    } else {
      fail(l, E210, st->span, "an op has clauses and one `def backward`");
      diag_help_names(l->c, "", clauses, CLAUSE_COUNT);
      good = false;
    }
  }
  return good;
}

static bool is_number_type(const TypeExpr *t)
{
  return strcmp(t->name, "int") == 0 || strcmp(t->name, "float") == 0 ||
         strcmp(t->name, "bool") == 0;
}

static bool check_inputs(Lower *l, const OwnDecl *own)
{
  const ParamList *p = &own->decl->as.op.params;
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const TypeExpr *t = &p->at[i].type;
    tensors += t->tensor;
    if (t->name && (t->tensor || is_number_type(t))) continue;
    fail(l, E209, p->at[i].name.span,
         "`%s` of an op needs a type: the kernel text is compiled for this type",
         p->at[i].name.text);
    return diag_help(l->c, "`%s: float[N, D]` is a tensor, `%s: int` a number", p->at[i].name.text,
                     p->at[i].name.text);
  }
  if (tensors >= 1 && tensors <= MAX_SIGNATURE) return true;
  return refuse(l, E209, own->decl->name.span, "an op takes 1 to %d tensors, this one takes %u",
                MAX_SIGNATURE, tensors);
}

static bool check_outputs(Lower *l, const OwnDecl *own)
{
  const ParamList *p = &own->decl->as.op.outputs;
  if (p->n < 1 || p->n > MAX_RESULTS)
    return refuse(l, E210, own->decl->name.span, "an op has 1 to %d outputs, this one has %u",
                  MAX_RESULTS, p->n);
  for (uint32_t i = 0; i < p->n; i++) {
    const TypeExpr *t = &p->at[i].type;
    bool sized = t->name && t->tensor && t->n_dims <= MAX_RANK;
    for (uint32_t k = 0; sized && k < t->n_dims; k++) sized = t->dims[k] != NULL;
    if (sized && strcmp(t->name, "int") != 0) continue;
    fail(l, E209, p->at[i].name.span, "the output `%s` needs a type with its sizes",
         p->at[i].name.text);
    return diag_help(
        l->c, "`%s: float[N, D]`, the widest float input; or " AMPC_NARROW_LIST "f32, i32, i64, u8",
        p->at[i].name.text);
  }
  return true;
}

static bool check_backward(Lower *l, const OwnDecl *own)
{
  uint32_t n = own->decl->as.op.outputs.n;
  if (!own->backward || own->backward->params.n == n) return true;
  fail(l, E703, own->backward->name.span, "backward takes %u value%s, but the op has %u output%s",
       own->backward->params.n, &"s"[own->backward->params.n == 1], n, &"s"[n == 1]);
  return diag_help(l->c, "backward takes the gradient of each output");
}

/* Checks that the number of threads is given exactly once. */
static bool check_launch(Lower *l, const OwnDecl *own)
{
  const Expr *const *at = own->clause;
  const Span span = own->decl->name.span;
  if (!at[CLAUSE_cuda] && !at[CLAUSE_host])
    return refuse(l, E702, span, "op `%s` has neither `cuda` nor `host` text",
                  own->decl->name.text);
  if (!at[CLAUSE_cuda]) return true;
  if (at[CLAUSE_threads] && at[CLAUSE_grid])
    return refuse(l, E210, at[CLAUSE_grid]->span, "an op has `threads` or a `grid`, not both");
  if (at[CLAUSE_threads] || (at[CLAUSE_grid] && at[CLAUSE_block])) return true;
  fail(l, E210, span, "op `%s` does not set its number of threads", own->decl->name.text);
  return diag_help(l->c,
                   "write `threads = N * D` for one thread for each i, or `grid =` and `block =`");
}

Datum declare_own(Lower *l, File *f, const Decl *d)
{
  OwnDecl *own = arena_new(l->arena, OwnDecl);
  *own = (OwnDecl){.decl = d, .file = f};
  own->good = read_body(l, own);
  own->good = own->good && check_inputs(l, own) && check_outputs(l, own) &&
              own_check_names(l, own) && check_backward(l, own) && check_launch(l, own);
  if (own->clause[CLAUSE_cuda])
    own->good = own_text(l, f, own->clause[CLAUSE_cuda], &own->text[TARGET_cuda]) && own->good;
  if (own->clause[CLAUSE_host])
    own->good = own_text(l, f, own->clause[CLAUSE_host], &own->text[TARGET_cpu]) && own->good;
  return (Datum){.kind = D_own, .as.own = own};
}

/* ---- a call ---- */

typedef struct OwnCall {
  Lower *l;
  const OwnDecl *decl;
  Scope *scope;
  OwnOp *op;
} OwnCall;

/* Reads `cast`: a type, a category, or `none`. A `policy` of the job overrides it. */
static bool set_cast(OwnCall *k)
{
  static const OwnCast casts[] = {[PREC_low] = OWN_low,
                                  [PREC_f32] = OWN_type,
                                  [PREC_promote] = OWN_promote,
                                  [PREC_none] = OWN_none};
  const Expr *e = k->decl->clause[CLAUSE_cast];
  const Policy *policy = policy_of(k->l, (Datum){.kind = D_own, .as.own = k->decl});
  if (policy) {
    k->op->cast = casts[policy->class];
    k->op->type = AMPC_F32;
    return true;
  }
  k->op->cast = OWN_region;
  if (!e) return true;
  Datum d = eval(k->l, k->scope, e);
  k->op->cast = OWN_type;
  if (d_is(d, D_error)) return false;
  if (d.kind == D_dtype && dtype_is_float(d.as.dtype)) return k->op->type = d.as.dtype, true;
  k->op->cast = d.kind == D_none ? OWN_none : OWN_low;
  if (d.kind == D_none || (d.kind == D_word && strcmp(d.as.text, "low") == 0)) return true;
  k->op->cast = OWN_promote;
  if (d.kind == D_word && strcmp(d.as.text, "promote") == 0) return true;
  return refuse(k->l, E209, e->span,
                "the cast of an op is " AMPC_NARROW_LIST "f32, low, promote or none, got %s",
                d_kind_text(k->l, d));
}

/* Reads a number of the launch; -1 if it is not given. */
static bool launch_number(OwnCall *k, OwnClause clause, int64_t most, int64_t *out)
{
  const Expr *e = k->decl->clause[clause];
  *out = -1;
  if (!e) return true;
  const char *what = arena_printf(k->l->arena, "`%s` of op %s", clauses[clause], k->op->name);
  return want_count(k->l, eval(k->l, k->scope, e), e->span, what, (Counts){1, most}, out);
}

enum { MOST_BLOCK = 1024, MOST_SHARED = 49152, USUAL_BLOCK = 256 };
#define MOST_GRID (((int64_t)1 << 31) - 1)

static bool set_launch(OwnCall *k)
{
  OwnOp *op = k->op;
  if (!launch_number(k, CLAUSE_block, MOST_BLOCK, &op->block) ||
      !launch_number(k, CLAUSE_grid, MOST_GRID, &op->grid) ||
      !launch_number(k, CLAUSE_threads, MOST_GRID * 64, &op->threads) ||
      !launch_number(k, CLAUSE_shared, MOST_SHARED, &op->shared) ||
      !launch_number(k, CLAUSE_parts, MOST_GRID, &op->parts))
    return false;
  if (op->shared < 0) op->shared = 0;
  if (op->threads < 0) return true;
  if (op->block < 0) op->block = USUAL_BLOCK;
  op->grid = (op->threads + op->block - 1) / op->block;
  return true;
}

static bool is_of_floats(const OwnTensor *t)
{
  DType type;
  return !own_exact_type(t, &type) || dtype_is_float(type);
}

static bool set_outputs(OwnCall *k)
{
  const ParamList *p = &k->decl->decl->as.op.outputs;
  OwnTensor *out = arena_array(k->l->arena, OwnTensor, p->n);
  for (uint32_t i = 0; i < p->n; i++) {
    const TypeExpr *t = &p->at[i].type;
    out[i] = (OwnTensor){p->at[i].name.text, t->name, t->span, t->n_dims, {0}};
    for (uint32_t d = 0; d < t->n_dims; d++) {
      Datum size = eval(k->l, k->scope, t->dims[d]);
      if (!want_count(k->l, size, t->dims[d]->span, "a size", (Counts){1, INT64_MAX},
                      &out[i].dim[d]))
        return false;
    }
  }
  k->op->output = out;
  k->op->n_outputs = p->n;
  while (k->op->main < p->n && !is_of_floats(&out[k->op->main])) k->op->main++;
  if (k->op->main == p->n) k->op->main = 0;
  return true;
}

/* Collects the sizes that the signature binds and the numbers that the call passes. */
static bool set_numbers(OwnCall *k)
{
  const Scope *s = k->scope;
  OwnNumber *out = arena_array(k->l->arena, OwnNumber, s->names.n);
  for (uint32_t i = 0; i < s->names.n; i++) {
    const Binding *b = &s->names.at[i];
    OwnNumber number = {.name = b->name, .is_float = b->value.kind == D_float};
    if (b->value.kind == D_int) number.value.i = b->value.as.integer;
    if (b->value.kind == D_bool) number.value.i = b->value.as.truth;
    if (b->value.kind == D_float) number.value.f = b->value.as.number;
    if (b->value.kind == D_schedule)
      return refuse(k->l, E209, b->span,
                    "`%s` of op %s is a constant in its kernel text, got a schedule", b->name,
                    k->op->name);
    if (d_is_number(b->value) || b->value.kind == D_bool) out[k->op->n_numbers++] = number;
  }
  k->op->number = out;
  return true;
}

/* Makes nodes of the tensor arguments. A number that is passed for a tensor becomes a node. */
static bool set_inputs(OwnCall *k, Span span, Value *in)
{
  const ParamList *p = &k->decl->decl->as.op.params;
  OwnTensor *out = arena_array(k->l->arena, OwnTensor, MAX_SIGNATURE);
  for (uint32_t i = 0; i < p->n; i++) {
    const TypeExpr *t = &p->at[i].type;
    if (!t->tensor) continue;
    Binding *b = scope_find(k->scope, p->at[i].name.text);
    Datum v = b->value;
    if (v.kind == D_int && strcmp(t->name, "int") != 0 && t->name[0] != 'i')
      v = d_float((double)v.as.integer);
    in[k->op->n_inputs] = as_tensor(k->l, v, span);
    if (!in[k->op->n_inputs].id) return false;
    b->value = d_tensor(in[k->op->n_inputs]);
    out[k->op->n_inputs++] = (OwnTensor){p->at[i].name.text, t->name, t->span, 0, {0}};
  }
  k->op->input = out;
  return true;
}

/* Checks that the op has a text for the target of this compile. */
static bool check_text(const OwnCall *k)
{
  const Options *o = &k->l->c->options;
  const Target *target = target_of(o->target);
  const char *word = target->own_text;
  if (k->decl->text[target->kind].text) return true;
  fail(k->l, E702, k->decl->decl->name.span, "op `%s` has no `%s` text, needed by --target=%s",
       k->op->name, word, o->target);
  return diag_help(k->l->c, "add `%s = \"...\"`, in %s", word, target->own_language);
}

/* Returns one tensor, or a tuple if there are several outputs. */
static Datum results_of(OwnCall *k, Value op)
{
  Value out[MAX_RESULTS];
  uint32_t n = k->op->n_outputs;
  Datum *at = arena_array(k->l->arena, Datum, n);
  own_append_results(k->l->c, &k->l->at, op, out);
  for (uint32_t i = 0; i < n; i++) at[i] = d_tensor(out[i]);
  Datum tuple = d_list(at, n);
  tuple.tuple = true;
  return n == 1 ? at[0] : tuple;
}

static Datum make_call(OwnCall *k, Span span)
{
  Lower *l = k->l;
  Value in[MAX_SIGNATURE];
  if (!check_text(k) || !set_numbers(k) || !set_outputs(k) || !set_cast(k) || !set_launch(k) ||
      !set_inputs(k, span, in))
    return d_of(D_error);
  l->at.span = diag_user_span(l->c, span);
  Value op = own_append(l->c, &l->at, k->op, in);
  if (!op.id || !count_work(l, NODE_WORK * k->op->n_outputs, span)) return d_of(D_error);
  Datum results = results_of(k, op);
  if (k->decl->backward) lower_own_backward(l, k->decl, k->scope, op);
  return results;
}

Datum call_own(Lower *l, const OwnDecl *decl, Args *args)
{
  const Name *name = &decl->decl->name;
  if (!decl->good || !call_begin(l, name->text, decl->file, args->span)) return d_of(D_error);
  OwnOp *op = arena_new(l->arena, OwnOp);
  *op = (OwnOp){.name = name->text, .span = name->span};
  memcpy(op->text, decl->text, sizeof op->text);
  OwnCall k = {l, decl, scope_new(l, NULL, decl->file, NULL), op};
  Datum r = d_of(D_error);
  if (bind_params(l, k.scope, name->text, &decl->decl->as.op.params, args))
    r = make_call(&k, args->span);
  call_end(l);
  return r;
}
