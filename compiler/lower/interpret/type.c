/* Checks type annotations, and binds size names that are new. They cast only an int to a float.
 * Infer blocks also cast their results to declared float types (infer.c). */
#include "interpret.h"
#include "common/number.h"

/* True if a size name is new: not bound here, no module parameter, and no const of the file. */
static bool is_fresh(Scope *s, const char *name)
{
  if (scope_find(s, name) || (s->self && scope_find(s->self->params, name))) return false;
  const Global *g = file_find(s->file, name);
  return !g || !g->decl || g->decl->kind != DECL_const; /* the library has no consts */
}

/* Warns if a new size is named only here in the file, and nearly as a const, a dim or another size:
 * it then agrees with every size. */
static void check_spelling(Lower *l, const Scope *s, const Expr *e)
{
  const char *name = e->as.name;
  uint32_t uses = 0;
  NameVec names = {0};
  for (uint32_t i = 0; i < s->file->globals.n; i++) {
    const Decl *d = s->file->globals.at[i].decl;
    if (d->kind == DECL_const || d->kind == DECL_dim) vec_push(l->arena, &names, d->name.text);
  }
  for (uint32_t i = 0; i < s->names.n; i++)
    if (s->names.at[i].value.kind == D_int) vec_push(l->arena, &names, s->names.at[i].name);
  const char *near = diag_nearest(name, names.at, names.n);
  for (const char *p = near ? diag_place(l->c, e->span).source->text : ""; *p; p += *p != 0) {
    if (*p == '#') p += strcspn(p, "\n");
    uses += is_name(p, name_size(p), name);
    p += name_size(p);
  }
  if (uses != 1) return;
  diag_warning(l->c, W313, e->span, "`%s` is a new size, which no other text uses", name);
  diag_help(l->c, "did you mean `%s`?", near);
}

/* Returns the axis of the value for axis i of the annotation; -1 for `...`. After the dots, axes
 * count from the end: in f32[N, ..., C], C is the last. */
static int axis_of(const TypeExpr *t, uint32_t i, uint32_t rank)
{
  for (uint32_t k = 0; k < t->n_dims; k++)
    if (!t->dims[k] && k < i) return (int)rank - (int)(t->n_dims - i);
  return t->dims[i] ? (int)i : -1;
}

/* True if the type has `...`, a size that is NULL in the tree. It matches any number of axes. */
static bool has_dots(const TypeExpr *t)
{
  for (uint32_t i = 0; i < t->n_dims; i++)
    if (!t->dims[i]) return true;
  return false;
}

static bool rank_fits(const TypeExpr *t, uint32_t rank)
{
  return has_dots(t) ? rank >= t->n_dims - 1 : rank == t->n_dims;
}

/* Binds size names: `x: float[N, 784]` binds N to the first size of x if the name is new.
 * check_tensor() compares the other sizes. */
void bind_sizes(Lower *l, Scope *s, const TypeExpr *t, Datum value)
{
  const int64_t *dim;
  uint32_t rank;
  if (!t->name || !t->tensor || !d_is_tensor(value) || !tensor_dims(l, value, &dim, &rank) ||
      !rank_fits(t, rank))
    return;
  for (uint32_t i = 0; i < t->n_dims; i++) {
    int axis = axis_of(t, i, rank);
    const Expr *e = t->dims[i];
    if (axis < 0 || e->kind != EXPR_name || !is_fresh(s, e->as.name)) continue;
    if (!s->file->builtin) check_spelling(l, s, e);
    scope_bind(l, s, e->as.name, d_int(dim[axis]), e->span);
  }
}

/* True if the type fits. Float types fit each other: pass precision decides them later. */
static bool dtype_fits(const char *name, DType d)
{
  if (strcmp(name, "float") == 0) return dtype_is_float(d);
  if (strcmp(name, "int") == 0) return dtype_is_integer(d);
  DType named = ampc_dtype_by(name);
  return d == named || (dtype_is_float(d) && dtype_is_float(named));
}

/* Returns the annotation as it is in the program. */
static const char *type_text(Lower *l, const TypeExpr *t)
{
  return source_text(l, t->span);
}

/* Returns "`kernel_size` of Conv2d", the value that has the wrong type. */
static const char *typed_text(Lower *l, Typed what)
{
  return what.of ? arena_printf(l->arena, "`%s` of %s", what.name, what.of) : what.name;
}

/* Reports a mismatch at the annotation, and at the place where the value was made. */
static bool mismatch(Lower *l, const TypeExpr *t, Datum v, Span span, Typed what)
{
  fail(l, E306, span, "%s is declared %s, the value is %s", typed_text(l, what), type_text(l, t),
       d_text(l, v));
  diag_note(l->c, t->span, "declared here");
  Span made = v.kind == D_tensor ? ir_node(l->g, v.as.tensor)->span : span;
  if (made.start != diag_user_span(l->c, span).start)
    diag_note(l->c, made, "the value is made here");
  return false;
}

/* Checks a tensor. Each size of the annotation is an expression: a number, a name, `2 * H`. */
static bool check_tensor(Lower *l, Scope *s, const TypeExpr *t, Datum v, Span span, Typed what)
{
  const int64_t *dim;
  uint32_t rank;
  if (!d_is_tensor(v) && !d_is_number(v)) return mismatch(l, t, v, span, what);
  tensor_dims(l, v, &dim, &rank);
  if (!rank_fits(t, rank) || !dtype_fits(t->name, tensor_dtype(l, v)))
    return mismatch(l, t, v, span, what);
  bind_sizes(l, s, t, v);
  for (uint32_t i = 0; i < t->n_dims; i++) {
    int axis = axis_of(t, i, rank);
    if (axis < 0) continue;
    Datum size = eval(l, s, t->dims[i]);
    int64_t n;
    if (!want_int(l, size, t->dims[i]->span, "a size", &n)) return false;
    tensor_dims(l, v, &dim, &rank); /* eval() may have moved the nodes */
    if (n == dim[axis]) continue;
    mismatch(l, t, v, span, what);
    if (t->dims[i]->kind != EXPR_int)
      diag_note(l->c, t->dims[i]->span, "%s is %lld, axis %d of the value is %lld",
                source_text(l, t->dims[i]->span), (long long)n, axis, (long long)dim[axis]);
    return false;
  }
  return true;
}

/* Types without brackets. A float also accepts an int or a schedule. */
static const struct Scalar {
  const char *name, *wanted; /* wanted: for messages */
  DatumKind kind;
} scalars[] = {{"int", "an int", D_int},          {"float", "a number", D_float},
               {"bool", "true or false", D_bool}, {"str", "a str", D_str},
               {"list", "a list", D_list},        {NULL, NULL, D_absent}};

/* Helps if a tensor was declared as a number: `x: float` for `x: float[]`. */
static bool help_tensor(Lower *l, Datum v, Span span)
{
  const int64_t *dim;
  uint32_t rank;
  tensor_dims(l, v, &dim, &rank);
  diag_note(l->c, span, "the value is given here");
  const char *name = dtype_is_float(tensor_dtype(l, v)) ? "float" : "int";
  return diag_help(l->c, "write `%s%s`: the type of a tensor has brackets", name,
                   ir_sizes_text(l->arena, dim, rank));
}

/* Checks a whole number against its range: `n: int(1, 64)`. */
static bool check_range(Lower *l, Scope *s, const TypeExpr *t, Datum v, Span span, Typed what)
{
  Counts range;
  int64_t n;
  const char *wrong = strcmp(t->name, "int") != 0 ? "only `int` has a range, `int(1, 64)`"
                      : t->n_dims != 2            ? "a range has two bounds, `int(1, 64)`"
                                                  : NULL;
  if (!wrong && (!want_int(l, eval(l, s, t->dims[0]), t->dims[0]->span, "a bound", &range.least) ||
                 !want_int(l, eval(l, s, t->dims[1]), t->dims[1]->span, "a bound", &range.most)))
    return false;
  if (!wrong && range.least > range.most) wrong = "its first bound is above its second one";
  if (wrong) return refuse(l, E209, t->span, "`%s` is not a type: %s", type_text(l, t), wrong);
  return want_count(l, v, span, typed_text(l, what), range, &n);
}

/* Checks one of several texts: `mode: "min" | "max"`. */
static bool check_choice(Lower *l, const TypeExpr *t, Datum v, Span span, Typed what)
{
  Text known = text_new(l->arena);
  for (uint32_t i = 0; i < t->n_dims; i++) {
    const char *choice = t->dims[i]->as.string.text;
    if (v.kind == D_str && strcmp(choice, v.as.text) == 0) return true;
    text_printf(&known, "%s\"%s\"", !i ? "" : i + 1 < t->n_dims ? ", " : " or ", choice);
  }
  const char *given =
      v.kind == D_str ? arena_printf(l->arena, "\"%s\"", v.as.text) : d_kind_text(l, v);
  return refuse(l, E209, span, "%s is %s; it must be %s", typed_text(l, what), given, known.at);
}

/* Checks a value against its annotation. It is never cast, with one exception: an int for `float`
 * or a domain becomes a float, since later code may depend on the kind. */
bool check_type(Lower *l, Scope *s, const TypeExpr *t, Datum *value, Span span, Typed what)
{
  ampc_domain domain = ampc_domain_by(t->name);
  if (t->tensor && domain < AMPC_DOMAIN_COUNT)
    return refuse(l, E209, t->span, "`%s` is not a type: a domain is of one number, `%s`",
                  type_text(l, t), t->name);
  if (t->tensor) return check_tensor(l, s, t, *value, span, what);
  if (strcmp(t->name, "one of") == 0) return check_choice(l, t, *value, span, what);
  if (t->n_dims) return check_range(l, s, t, *value, span, what);
  if (domain < AMPC_DOMAIN_COUNT) {
    double number;
    if (!want_in(l, *value, span, typed_text(l, what), domain, &number)) return false;
    *value = d_float(number);
    return true;
  }
  const struct Scalar *scalar = scalars;
  while (scalar->name && strcmp(scalar->name, t->name) != 0) scalar++;
  bool real = scalar->kind == D_float && (d_is_number(*value) || value->kind == D_schedule);
  if (scalar->kind == D_int && value->kind == D_float)
    return want_int(l, *value, span, typed_text(l, what), &(int64_t){0});
  if (value->kind != scalar->kind && !real) {
    bool tensor = d_is_tensor(*value) && diag_user_span(l->c, t->span).start == t->span.start;
    fail(l, E209, tensor ? t->span : span, "%s needs %s, got %s", typed_text(l, what),
         scalar->name ? scalar->wanted : t->name, d_kind_text(l, *value));
    return tensor && help_tensor(l, *value, span);
  }
  if (real && value->kind == D_int) *value = d_float((double)value->as.integer);
  return true;
}

/* Checks the value of a parameter. If the default is `none`, `none` fits any type. */
bool check_param(Lower *l, Scope *s, const Param *p, Datum *value, Span span, Typed what)
{
  bool none = p->value && p->value->kind == EXPR_none;
  if ((none && value->kind == D_none) || check_type(l, s, &p->type, value, span, what)) return true;
  return none && diag_help(l->c, "`none` is allowed, too");
}

bool setting_argument(Lower *l, const char *def, uint32_t i, const char *object, Datum *value,
                      Span *span)
{
  const Param *p = &global_decl(l, file_find(l->library, def))->as.function.params.at[i];
  const char *key = arena_printf(l->arena, "%s.%s", object, p->name.text);
  if (!setting_value(l, key, value, span)) return false;
  const Typed what = {arena_printf(l->arena, "`%s`", key), NULL};
  return check_param(l, scope_new(l, NULL, l->library, NULL), p, value, *span, what);
}
