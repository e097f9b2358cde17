/* Lowers `load` of a model, whose signature is in the layer library. A run reads the file when it
 * begins (runtime/state/load.c), so a job compiles without it. This code checks the parts that do
 * not need the file: patterns of the model's own parameters, and the two sides of a renaming. */
#include "model.h"
#include "common/pattern.h"

enum { PATH, STRIP, RENAME, TRANSPOSE, MISSING, UNUSED, ADAPTER };
static const char *const names[] = {"path", "strip", "rename", "transpose", "missing", "unused"};
typedef struct Loading {
  Lower *l;
  const Model *model;
  const ArgValue *given; /* the arguments */
  NameVec patterns;      /* patterns in the order of ampc_load */
  const char *what;      /* "transpose", for messages */
  Span span;
  bool good;
} Loading;

/* ---- patterns of the model's parameters ---- */

static void push(Loading *x, const char *pattern)
{
  vec_push(x->l->arena, &x->patterns, pattern);
}

static void must_have_two_axes(Loading *x, const ParamSlot *p)
{
  if (p->rank == 2 || strcmp(x->what, names[TRANSPOSE]) != 0 || !x->good) return;
  x->good = false;
  fail(x->l, E503, x->span, "`transpose` names %s, which does not have two axes: it is %s",
       x->l->g->params.at[p->index].path,
       d_text(x->l, (Datum){.kind = D_param, .as.param = (ParamSlot *)(uintptr_t)p}));
}

/* Replaces a layer type by the paths of its parameters, since the running program knows no layer
 * types. */
static void name_param(Lower *l, ParamSlot *p, void *data)
{
  Loading *x = data;
  (void)l;
  must_have_two_axes(x, p);
  if (p->index >= 0) push(x, x->l->g->params.at[p->index].path);
}

static void check_param(Lower *l, ParamSlot *p, void *data)
{
  (void)l;
  must_have_two_axes(data, p);
}

static void own_pattern(Loading *x, Datum pattern, Span span)
{
  pattern = pattern_choices(x->l, pattern);
  if (pattern.kind == D_list) {
    for (uint32_t i = 0; i < pattern.n; i++) own_pattern(x, pattern.as.list[i], span);
    return;
  }
  Match m = match_of(x->l, x->model);
  m.param = pattern.kind == D_class ? name_param : check_param;
  m.data = x;
  x->span = span;
  ArgValue value = {.value = pattern, .span = span};
  match_patterns(x->l, &m, &value, 1);
  if (pattern.kind == D_str) push(x, pattern.as.text);
}

/* Returns the number of patterns of the argument. A string counts as a list of one pattern. */
static uint32_t own_patterns(Loading *x, uint32_t k)
{
  uint32_t before = x->patterns.n;
  x->what = names[k];
  own_pattern(x, x->given[k].value, x->given[k].span);
  return x->patterns.n - before;
}

/* ---- patterns of names in the file ---- */

static void bad_list(Loading *x, uint32_t k, const char *takes, const char *example)
{
  x->good = false;
  fail(x->l, E209, x->given[k].span, "`%s` of load takes %s, got %s", names[k], takes,
       d_text(x->l, x->given[k].value));
  diag_help(x->l->c, "`%s=%s`", names[k], example);
}

static uint32_t file_patterns(Loading *x, uint32_t k)
{
  uint32_t before = x->patterns.n;
  Datum one = x->given[k].value, list = one.kind == D_list ? one : d_list(&one, 1);
  for (uint32_t i = 0; i < list.n; i++) {
    if (list.as.list[i].kind != D_str) {
      bad_list(x, k, "patterns of names in the file", "[\"head.**\"]");
      return 0;
    }
    push(x, list.as.list[i].as.text);
  }
  return x->patterns.n - before;
}

/* Checks ["**.gamma", "**.weight"]: both sides need the same wildcards in the same order. */
static bool pair_fits(Loading *x, const char *from, const char *to, Span span)
{
  unsigned char a[PATTERN_WILDCARDS] = {0}, b[PATTERN_WILDCARDS] = {0};
  int n = pattern_wildcards(from, a), m = pattern_wildcards(to, b);
  if (n > PATTERN_WILDCARDS)
    fail(x->l, E209, span, "\"%s\" has %d wildcards; a pattern of `rename` has at most %d", from, n,
         PATTERN_WILDCARDS);
  else if (n != m || memcmp(a, b, sizeof a) != 0)
    fail(x->l, E209, span, "\"%s\" and \"%s\" of `rename` have different wildcards", from, to);
  else
    return true;
  diag_help(x->l->c, "a wildcard on the right stands for the text that the same wildcard on the "
                     "left matches: `rename=[[\"**.gamma\", \"**.weight\"]]`");
  return x->good = false;
}

static bool is_pair(Datum d)
{
  return d.kind == D_list && d.n == 2 && d.as.list[0].kind == D_str && d.as.list[1].kind == D_str;
}

/* Returns the number of pairs. `rename=["a", "b"]` counts as a list of one pair. */
static uint32_t rename_pairs(Loading *x)
{
  uint32_t before = x->patterns.n;
  Datum one = x->given[RENAME].value, list = is_pair(one) ? d_list(&one, 1) : one;
  for (uint32_t i = 0; list.kind != D_list || i < list.n; i++) {
    if (list.kind != D_list || !is_pair(list.as.list[i])) {
      bad_list(x, RENAME, "pairs of patterns", "[[\"**.gamma\", \"**.weight\"]]");
      return 0;
    }
    const Datum *pair = list.as.list[i].as.list;
    if (!pair_fits(x, pair[0].as.text, pair[1].as.text, x->given[RENAME].span)) return 0;
    push(x, pair[0].as.text);
    push(x, pair[1].as.text);
  }
  return (x->patterns.n - before) / 2;
}

/* Runs _load(path, strip, ..): the arguments of load() in the layer library. */
Datum native_load(Lower *l, Args *args)
{
  const ArgValue *at = args->at.at;
  const Model *model = l->loading;
  if (!model) return fail(l, E210, args->span, "`load` is a clause of a model");
  const char *strip;
  if (!want_str(l, at[STRIP].value, at[STRIP].span, "`strip` of load", &strip)) return d_of(D_none);
  Loading x = {.l = l, .model = model, .given = at, .good = true};
  Span span = diag_user_span(l->c, args->span);
  ampc_load load = {.path = at[PATH].value.as.text,
                    .model = model->name,
                    .prefix = "",
                    .strip = strip,
                    .line = span.end ? diag_place(l->c, span).line : 0,
                    .adapter = at[ADAPTER].value.as.truth};
  load.n_rename = rename_pairs(&x);
  load.n_transpose = own_patterns(&x, TRANSPOSE);
  load.n_missing = own_patterns(&x, MISSING);
  load.n_unused = file_patterns(&x, UNUSED);
  load.patterns = x.patterns.at;
  if (x.good && !*load.path) fail(l, E209, at[PATH].span, "the path of load is empty");
  if (load.adapter && !model->adapts)
    fail(l, E210, args->span,
         "`adapter=true` needs an `adapt` clause before it, which makes the "
         "parameters that the file has");
  vec_push(l->arena, &l->g->loads, load);
  return d_of(D_none);
}
