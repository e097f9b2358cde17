/* Checks what losses and layers take from a source: targets, indices, values to standardize. */
#include "block.h"
#include "compiler/lower/index_check.h"
#include "runtime/data/formats/args.h"

#define ARG(i) (args->at.at[i].value)

/* Returns the source of which an integer tensor is a copy or a view, or NULL. */
static ampc_source *source_behind(Lower *l, Value v)
{
  for (;;) {
    const Node *n = ir_node(l->g, v);
    if (n->op == OP_source) return &l->g->sources.at[attr_int(n, "index")];
    bool copies = op_of(n)->tmpl == TMPL_alias || op_has(n, T_strided) ||
                  (op_has(n, T_casts) && dtype_is_integer(n->dtype));
    if (!copies || !dtype_is_integer(ir_in(l->c, n, 0)->dtype)) return NULL;
    v = n->in[0];
  }
}

/* Sets *out to 1 + the number of the source, in the block, whose labels the target has. */
bool source_balance(Lower *l, Datum target, const char *name, Span span, uint32_t *out)
{
  const ampc_source *s = target.kind == D_tensor ? source_behind(l, target.as.tensor) : NULL;
  if (!s) {
    fail(l, E209, span, "`balance` needs labels that a source has; `%s` is %s", name,
         d_kind_text(l, target));
    return diag_help(l->c, "name the variable with the labels as they are in the file");
  }
  *out = (uint32_t)(s - l->g->sources.at) - l->g->blocks.at[l->run->first].first_source + 1;
  return has_labels(l, s, "balance", span);
}

/* Makes the loader check the labels of a file. If several losses use the source, the smallest
 * number of classes is the limit, and a label is ignored only if all these losses ignore it. `why`:
 * "classes of cross_entropy". */
static void limit_values(Lower *l, ampc_source *s, int64_t n, int64_t ignored, const char *why,
                         Span span)
{
  if (ignored >= 0 && ignored < n) ignored = 0;
  s->ignored = s->limit && s->ignored != ignored ? 0 : ignored;
  if (s->limit && n >= s->limit) return;
  s->limit = n;
  s->limit_why = with_place(l, why, span);
}

/* Checks synthetic labels, whose range is known now. */
static bool labels_fit(Lower *l, Interval b, int64_t n, int64_t ignored, const char *name,
                       Span span)
{
  int64_t low = (int64_t)b.low, high = (int64_t)b.high;
  if (low < 0 && !(low == -1 && ignored == -1))
    fail(l, E310, span, "%s of %lld classes gets labels down to %lld", name, (long long)n,
         (long long)low);
  else if (high >= n && !(high == n && ignored == n))
    fail(l, E310, span, "%s of %lld classes gets labels up to %lld", name, (long long)n,
         (long long)high);
  else
    return true;
  return diag_help(l->c, "`low=0, high=%lld` makes labels from 0 to %lld", (long long)n,
                   (long long)(n - 1));
}

/* Returns the names of the classes of a source, a line each; "": it has none. */
static const char *class_names(Lower *l, const ampc_source *s)
{
  int n;
  Text names = text_new(l->arena);
  const char *at = s && s->args ? args_next(s->args, "class", NULL, &n) : NULL;
  for (; at; at = args_next(s->args, "class", at, &n)) text_printf(&names, "%.*s\n", n, at);
  return names.n ? names.at : "";
}

/* Runs _target_names(target): the names of the classes of the target's source, a line each. */
static Datum run_target_names(Lower *l, Args *args)
{
  Datum target = ARG(0);
  return d_str(class_names(l, target.kind == D_tensor ? source_behind(l, target.as.tensor) : NULL));
}

/* Keeps the names of the classes of a target for checkpoints. If two targets have different names,
 * none are kept. */
static void keep_classes(Lower *l, const ampc_source *s)
{
  const char *before = l->g->classes, *names = class_names(l, s);
  if (names[0]) l->g->classes = !before || strcmp(before, names) == 0 ? names : "";
}

/* Runs _classes(target, n, ignore_index, "cross_entropy"): checks that target holds classes below
 * n. Returns true if some targets may be ignored. */
static Datum run_classes(Lower *l, Args *args)
{
  int64_t n = ARG(1).as.integer, ignored = ARG(2).as.integer;
  if (ARG(0).kind != D_tensor) return d_bool(true);
  ampc_source *s = source_behind(l, ARG(0).as.tensor);
  if (!s) check_labels(l, ARG(0).as.tensor, n, ignored, ARG(3).as.text, args->span);
  if (!s) return d_bool(true);
  keep_classes(l, s);
  const Interval b = source_range(s);
  bool some_ignored = (double)ignored >= b.low && (double)ignored <= b.high;
  const char *why = arena_printf(l->arena, AMPC_LABELS_OF "%s", ARG(3).as.text);
  if (has_file(s) || s->kind == AMPC_SOURCE_GIVEN)
    limit_values(l, s, n, some_ignored ? ignored : 0, why, args->span);
  if (s->kind == AMPC_SOURCE_SYNTHETIC && !labels_fit(l, b, n, ignored, ARG(3).as.text, args->span))
    return d_of(D_error);
  return d_bool(some_ignored || is_given(s));
}

/* Runs _indices_below(index, n, "embedding"): checks that all indices are below n. The compiler
 * checks synthetic indices, the loader indices of files and arguments, the device computed ones. */
static Datum run_indices_below(Lower *l, Args *args)
{
  int64_t n = ARG(1).as.integer;
  const char *name = ARG(2).as.text;
  if (ARG(0).kind != D_tensor) return d_of(D_none);
  ampc_source *s = source_behind(l, ARG(0).as.tensor);
  if (!s) {
    check_computed(l, ARG(0).as.tensor, n, name, args->span);
    return d_of(D_none);
  }
  const Interval b = source_range(s);
  if ((has_file(s) || is_given(s)) && b.high >= (double)n)
    limit_values(l, s, n, 0, index_limit_name(l, name), args->span);
  if (s->kind != AMPC_SOURCE_SYNTHETIC || (b.low >= 0 && b.high < (double)n)) return d_of(D_none);
  fail(l, E310, args->span, "%s of %lld rows gets indices from %.17g to %.17g", name, (long long)n,
       b.low, b.high);
  diag_help(l->c, "`low=0, high=%lld` makes numbers from 0 to %lld", (long long)n,
            (long long)(n - 1));
  return d_of(D_error);
}

/* ---- statistics ---- */

/* Returns the index of the source of which the values are a copy, perhaps in another type; -1: they
 * are computed. */
static int64_t source_of_values(Lower *l, Value v)
{
  const Node *n = ir_node(l->g, v);
  while (op_has(n, T_casts)) n = ir_in(l->c, n, 0);
  return n->op == OP_source ? attr_int(n, "index") : -1;
}

/* Runs _measure(x, buffer): makes the run fill the buffer with means and deviations of the source x
 * before its first step. A later train block uses the buffer as it is. So does a call that reads
 * another value: one that the step assigned, as `follow` does, or that functional_call() gives. */
static Datum run_measure(Lower *l, Args *args)
{
  Value x = as_tensor(l, ARG(0), args->span), buffer = as_tensor(l, ARG(1), args->span);
  if (!x.id || !buffer.id) return d_of(D_error);
  const Node *n = ir_node(l->g, buffer);
  while (op_has(n, T_casts)) n = ir_in(l->c, n, 0); /* to the type that .to() stores */
  Parameter *q = ir_parameter(l->g, n);
  if (!q || ARG(1).kind != D_param || q != &l->g->params.at[ARG(1).as.param->index])
    return d_of(D_none);
  if (!l->training) {
    q->standardizes = diag_user_span(l->c, args->span);
    return d_of(D_none);
  }
  int64_t index = source_of_values(l, x);
  uint32_t first = l->g->blocks.at[l->run->first].first_source;
  if (index < 0)
    return fail(l, E209, args->span,
                "Standardize needs the values of a source as they are in the file, not computed "
                "ones: call it first, then compute");
  if (l->g->sources.at[index].kind == AMPC_SOURCE_GIVEN) {
    fail(l, E209, args->span,
         "a program gives these samples, so their mean is not known before the first step");
    diag_help(l->c, "standardize in the program");
    return d_of(D_error);
  }
  if (q->measured > first && q->measured != (uint32_t)index + 1)
    return fail(l, E209, args->span,
                "this layer standardizes two sources: build one Standardize for each");
  if (!q->measured) q->measured = (uint32_t)index + 1;
  return d_of(D_none);
}

void check_measured(Lower *l)
{
  bool trains = false;
  for (uint32_t i = 0; i < l->g->blocks.n; i++) trains |= l->g->blocks.at[i].kind == AMPC_TRAIN;
  for (uint32_t id = 1; id < l->g->nodes.n; id++) {
    const Node *n = ir_node(l->g, (Value){id});
    if (n->op == OP_buffer_update) l->g->params.at[attr_int(n, "param")].standardizes = (Span){0};
  }
  for (uint32_t i = 0; i < l->g->params.n && trains && !l->g->loads.n; i++) {
    const Parameter *q = &l->g->params.at[i];
    if (!q->standardizes.end || q->measured) continue;
    diag_warning(l->c, W610, q->standardizes,
                 "no train block measures `%s`, so Standardize leaves this input as it is",
                 q->path);
    diag_help(l->c, "call the whole net in the train block, not only the layers that follow");
  }
}

/* Runs _negative(index): true if an element of the index can be below 0. */
static Datum run_negative(Lower *l, Args *args)
{
  return d_bool(ARG(0).kind == D_tensor && integer_range(l->c, ARG(0).as.tensor).low < 0);
}

const Native target_natives[] = {
    {"classes", 4, 4, .internal = true, .run = run_classes},
    {"target_names", 1, 1, .internal = true, .run = run_target_names},
    {"measure", 2, 2, .internal = true, .run = run_measure},
    {"negative", 1, 1, .internal = true, .run = run_negative},
    {"indices_below", 3, 3, .internal = true, .run = run_indices_below},
    {0},
};
