/* `dim S(max=512, multiple=64)`: a size of infer blocks that the caller chooses. This file handles
 * the declaration, --dim, and the choices of sizes of a block; Note [dims] in infer.h. */
#include "block.h"
#include "infer.h"
#include <errno.h>
#include <stdlib.h>

enum { MOST_SIZE = INT32_MAX };

/* ---- the declaration ---- */

static bool dim_argument(Lower *l, Scope *s, const Arg *arg, Dim *d)
{
  static const char *const names[] = {"min", "max", "multiple"};
  int64_t *const into[] = {&d->least, &d->most, &d->multiple};
  if (!arg->key.text || arg->star)
    return refuse(l, E205, arg->value->span, "a dim takes `min`, `max` and `multiple`, by name");
  for (int i = 0; i < 3; i++) {
    if (strcmp(arg->key.text, names[i]) != 0) continue;
    if (into[i][0]) return refuse(l, E205, arg->key.span, "`%s` is given twice", names[i]);
    const char *what = arena_printf(l->arena, "`%s` of dim `%s`", names[i], d->name);
    return want_count(l, eval(l, s, arg->value), arg->value->span, what, (Counts){1, MOST_SIZE},
                      into[i]);
  }
  fail(l, E205, arg->key.span, "a dim has no argument `%s`", arg->key.text);
  return diag_help_names(l->c, arg->key.text, names, 3);
}

/* Reads `min` and `max`, which must be valid sizes: the largest size is what the program says. */
static bool dim_bounds(Lower *l, Dim *d)
{
  if (!d->most) {
    fail(l, E305, d->span, "dim `%s` has no `max`", d->name);
    return diag_help(l->c, "memory is planned for the largest size: write `dim %s(max=256)`",
                     d->name);
  }
  if (!d->multiple) d->multiple = 1;
  if (!d->least) d->least = d->multiple;
  const char *wrong = d->most % d->multiple ? "max" : d->least % d->multiple ? "min" : NULL;
  int64_t value = d->most % d->multiple ? d->most : d->least;
  if (wrong)
    return refuse(l, E305, d->span, "`%s` of dim `%s` is %lld, which is no multiple of %lld", wrong,
                  d->name, (long long)value, (long long)d->multiple);
  if (d->least <= d->most) return true;
  return refuse(l, E305, d->span, "dim `%s` has the minimum %lld, which exceeds its maximum %lld",
                d->name, (long long)d->least, (long long)d->most);
}

Datum dim_misplaced(Lower *l, const Dim *d, Span span)
{
  fail(l, E305, span,
       "dim `%s` has no value here: only an infer block with an argument of that size defines it",
       d->name);
  diag_help(
      l->c,
      "write `infer f(x: f32[%s, 8]) { ... }`; elsewhere read the size of a tensor: `x.size(0)`",
      d->name);
  return d_of(D_error);
}

/* ---- requested sizes ---- */

bool dim_takes(Lower *l, const Dim *d, int64_t size, Span span, const char *what)
{
  if (size >= d->least && size <= d->most && size % d->multiple == 0) return true;
  if (size > d->most)
    fail(l, E305, span, "%s is %lld; the maximum is %lld", what, (long long)size,
         (long long)d->most);
  else if (size < d->least)
    fail(l, E305, span, "%s is %lld; the minimum is %lld", what, (long long)size,
         (long long)d->least);
  else
    fail(l, E305, span, "%s is %lld; it must be a multiple of %lld, such as %lld", what,
         (long long)size, (long long)d->multiple, (long long)ampc_round_up(size, d->multiple));
  return diag_note(l->c, d->span, "declared here");
}

static void add_size(int64_t *list, uint32_t *n, int64_t size)
{
  for (uint32_t i = 0; i < *n; i++)
    if (list[i] == size) return;
  list[(*n)++] = size;
}

/* Reads a list of sizes: "64,128,512". */
static bool read_sizes(Lower *l, const Dim *d, const char *text, int64_t *list, uint32_t *n)
{
  const char *option = arena_printf(l->arena, "--dim %s=%s", d->name, text);
  for (char *end;; text = end + 1) {
    errno = 0;
    long long size = strtoll(text, &end, 10);
    bool number = end > text && *text >= '0' && *text <= '9' && !errno;
    if (!number || (*end && *end != ','))
      return refuse(l, E305, (Span){0, 0}, "%s: expected sizes, such as %lld or %lld,%lld", option,
                    (long long)d->most, (long long)d->least, (long long)d->most);
    if (!dim_takes(l, d, size, (Span){0, 0}, arena_printf(l->arena, "%s: the size", option)))
      return false;
    add_size(list, n, size);
    if (!*end) return true;
  }
}

/* Finds the sizes that --dim gives, combined over several --dim of one name. */
static bool asked_sizes(Lower *l, Dim *d)
{
  const Options *o = &l->c->options;
  size_t room = 1;
  for (uint32_t i = 0; i < o->n_dims; i++) room += strlen(o->dims[i].value);
  int64_t *list = arena_array(l->arena, int64_t, room);
  for (uint32_t i = 0; i < o->n_dims; i++)
    if (strcmp(o->dims[i].key, d->name) == 0 &&
        !read_sizes(l, d, o->dims[i].value, list, &d->n_asked))
      return false;
  d->given = d->n_asked > 0;
  d->asked = list;
  if (d->given && l->sizes->sizing == SIZING_asked) return true;
  list[0] = l->sizes->sizing == SIZING_least ? d->least : d->most;
  d->n_asked = 1;
  return true;
}

Datum declare_dim(Lower *l, File *f, const Decl *decl)
{
  Dim *d = arena_new(l->arena, Dim);
  Scope *s = scope_new(l, NULL, f, NULL);
  const ArgList *args = &decl->as.args;
  bool good = true;
  *d = (Dim){.name = decl->name.text, .span = decl->span};
  for (uint32_t i = 0; i < args->n; i++) good = dim_argument(l, s, &args->at[i], d) && good;
  if (!good || !dim_bounds(l, d) || !asked_sizes(l, d)) return d_of(D_error);
  return (Datum){.kind = D_dim, .as.dim = d};
}

static void dim_names(Lower *l, NameVec *out)
{
  for (uint32_t i = 0; i < l->files.n; i++)
    for (uint32_t k = 0; k < l->files.at[i]->globals.n && !l->files.at[i]->builtin; k++)
      if (l->files.at[i]->globals.at[k].decl->kind == DECL_dim)
        vec_push(l->arena, out, l->files.at[i]->globals.at[k].name);
}

void check_dims(Lower *l)
{
  const Options *o = &l->c->options;
  NameVec names = {0};
  dim_names(l, &names);
  for (uint32_t i = 0; i < o->n_dims; i++) {
    bool known = false;
    for (uint32_t k = 0; k < names.n; k++)
      known = known || strcmp(names.at[k], o->dims[i].key) == 0;
    if (known) continue;
    fail(l, E207, (Span){0, 0}, "--dim %s=%s: no such dim", o->dims[i].key, o->dims[i].value);
    if (names.n)
      diag_help_names(l->c, o->dims[i].key, names.at, names.n);
    else
      diag_help(l->c, "the job declares none: `dim %s(max=%s)`", o->dims[i].key, o->dims[i].value);
  }
}

/* ---- the dims of a block ---- */

static bool add_dim(Lower *l, Choice *x, const Expr *e)
{
  Datum v = lookup_quiet(l, scope_new(l, NULL, l->job, NULL), e->as.name, e->span);
  if (d_is(v, D_error)) return false;
  if (v.kind != D_dim || dim_named(x, e) < AMPC_MAX_SIZES) return true;
  if (x->n == AMPC_MAX_SIZES)
    return refuse(l, E305, e->span, "an infer block has at most %d dims", AMPC_MAX_SIZES);
  x->dim[x->n++] = v.as.dim;
  return true;
}

/* Finds names in arithmetic, such as `2 * N`. Other code reports a dim as an error. */
static bool find_dims(Lower *l, Choice *x, const Expr *e)
{
  if (e->kind == EXPR_name) return add_dim(l, x, e);
  if (e->kind == EXPR_unary) return find_dims(l, x, e->as.unary.operand);
  if (e->kind != EXPR_binary) return true;
  return find_dims(l, x, e->as.binary.left) && find_dims(l, x, e->as.binary.right);
}

/* Chooses the length of the shortest text that fits, a power of two times the least, and another
 * one for pass decode to compare with. */
static void ask_for_twin(Dim *d, int64_t to, int64_t *list)
{
  enum { SHORT = 256 };
  int64_t length = ampc_round_up(SHORT, d->multiple);
  while (length < to && length < d->most) length *= 2;
  if (length > d->most) length = d->most;
  list[d->n_asked++] = length;
  if (length - d->multiple >= d->least)
    list[d->n_asked++] = length - d->multiple;
  else if (length + d->multiple <= d->most)
    list[d->n_asked++] = length + d->multiple;
  d->asked = list;
}

/* Chooses sizes for a block that reads a growing text. Each size costs compile time, and padding
 * costs run time. So at most four lengths are compiled: the maximum, a half, a quarter and an
 * eighth of it. A step uses the shortest length that fits. */
static void ask_lengths(Lower *l, Dim *d)
{
  enum { LENGTHS = 4 };
  const Options *o = &l->c->options;
  int64_t from = o->text_from < d->most ? o->text_from : d->most;
  int64_t to = o->text_to < d->most ? o->text_to : d->most, below = 0;
  int64_t *list = arena_array(l->arena, int64_t, LENGTHS);
  d->n_asked = 0;
  if (o->decode) {
    ask_for_twin(d, to, list);
    return;
  }
  for (int i = LENGTHS - 1; i >= 0; i--) {
    int64_t length = ampc_round_up((d->most + ((int64_t)1 << i) - 1) >> i, d->multiple);
    if (length < d->least) length = d->least;
    if (from <= length && below < to) add_size(list, &d->n_asked, length);
    below = length;
  }
  d->asked = list;
}

static int64_t largest(const Dim *d)
{
  int64_t most = d->least;
  for (uint32_t i = 0; i < d->n_asked; i++) most = d->asked[i] > most ? d->asked[i] : most;
  return most;
}

/* Chooses sizes for --generate and --decode: one text, whose length grows. */
static void ask_for_text(Lower *l, const Function *def, Choice *x)
{
  const TypeExpr *t = &def->params.at[0].type;
  for (uint32_t axis = 0; axis < 2 && axis < t->n_dims; axis++) {
    uint32_t i = t->dims[axis] ? dim_named(x, t->dims[axis]) : AMPC_MAX_SIZES;
    bool twin = axis == 1 && l->c->options.decode;
    if (i == AMPC_MAX_SIZES || (x->dim[i]->given && !twin)) continue;
    Dim *d = arena_new(l->arena, Dim);
    *d = *x->dim[i];
    if (d->given) d->most = largest(d); /* --dim says how long a text may be */
    x->dim[i] = d;
    if (axis == 0)
      d->asked = &d->least;
    else
      ask_lengths(l, d);
  }
}

bool dims_of(Lower *l, const Function *def, Choice *out)
{
  *out = (Choice){0};
  for (uint32_t i = 0; i < def->params.n; i++) {
    const TypeExpr *t = &def->params.at[i].type;
    for (uint32_t k = 0; t->name && k < t->n_dims; k++)
      if (t->dims[k] && !find_dims(l, out, t->dims[k])) return false;
  }
  if (l->c->options.text_to && def->params.n) ask_for_text(l, def, out);
  for (uint32_t i = 0; i < out->n; i++) {
    out->given[i] = out->dim[i]->given;
    out->value[i] = out->dim[i]->asked[0];
  }
  return true;
}

uint32_t dim_named(const Choice *x, const Expr *size)
{
  for (uint32_t i = 0; size->kind == EXPR_name && i < x->n; i++)
    if (strcmp(x->dim[i]->name, size->as.name) == 0) return i;
  return AMPC_MAX_SIZES;
}

const char *dims_text(Lower *l, const Choice *x, const char *is)
{
  Text t = text_new(l->arena);
  for (uint32_t i = 0; i < x->n; i++)
    text_printf(&t, "%s%s%s%lld", i ? ", " : "", x->dim[i]->name, is, (long long)x->value[i]);
  return t.at;
}

void dims_enter(Lower *l, Scope *s, const Choice *x)
{
  for (uint32_t i = 0; i < x->n; i++) {
    Datum size = d_int(x->value[i]);
    size.sized = true;
    scope_bind(l, s, x->dim[i]->name, size, x->dim[i]->span);
  }
  if (x->n)
    diag_circumstance(l->c, x->dim[0]->span,
                      arena_printf(l->arena, "with %s", dims_text(l, x, " = ")));
}

void dims_leave(Lower *l)
{
  diag_circumstance(l->c, (Span){0, 0}, NULL);
}

bool dims_next(Choice *x, uint32_t at[AMPC_MAX_SIZES])
{
  for (uint32_t i = x->n; i-- > 0;) {
    at[i] = at[i] + 1 < x->dim[i]->n_asked ? at[i] + 1 : 0;
    x->value[i] = x->dim[i]->asked[at[i]];
    if (at[i]) return true;
  }
  return false;
}
