/* Which values of a metric are better, lower or higher ones: `metric acc = .. with mode="max"`, or
 * else the function that computes the metric, or a loss in it, says so by `_mode`. Names of metrics
 * say nothing: early stopping on a guess ends a run that improves. */
#include "optimizer.h"
#include <string.h>

/* ---- modes of functions of the library ---- */

static bool read_mode(const char *word, ampc_mode *out)
{
  bool max = strcmp(word, "max") == 0;
  *out = max ? AMPC_MODE_MAX : AMPC_MODE_MIN;
  return max || strcmp(word, "min") == 0;
}

/* Runs _mode("min"): lower values of what this function returns are better. */
static Datum run_mode(Lower *l, Args *args)
{
  if (!read_mode(args->at.at[0].value.as.text, &l->mode))
    library_broken("_mode()", "does not know the mode ", args->at.at[0].value.as.text);
  return d_of(D_none);
}

void mode_leave(Lower *l, Datum result, ampc_mode outer)
{
  if (l->mode && result.kind == D_tensor)
    vec_push(l->arena, &l->judged, ((Judged){result.as.tensor, l->mode}));
  l->mode = outer;
}

/* ---- modes of values ---- */

static ampc_mode flip(ampc_mode m)
{
  return m == AMPC_MODE_NONE ? m : m == AMPC_MODE_MIN ? AMPC_MODE_MAX : AMPC_MODE_MIN;
}

static ampc_mode walk(const Lower *l, Value v, int *left);

/* Returns the mode of the sum, difference, product or quotient of x and y. Only numbers scale: the
 * sign of a tensor is not known. */
static ampc_mode walk_pair(const Lower *l, const Node *n, int *left)
{
  const Node *a = ir_node(l->g, n->in[0]), *b = ir_node(l->g, n->in[1]);
  bool scales = n->op == OP_mul || n->op == OP_div;
  const Node *number = op_has(b, T_literal)                      ? b
                       : op_has(a, T_literal) && n->op != OP_div ? a
                                                                 : NULL;
  if (scales && !number) return AMPC_MODE_NONE;
  ampc_mode of_a = op_has(a, T_literal) ? AMPC_MODE_NONE : walk(l, n->in[0], left);
  ampc_mode of_b = op_has(b, T_literal) ? AMPC_MODE_NONE : walk(l, n->in[1], left);
  if (n->op == OP_sub) of_b = flip(of_b);
  ampc_mode m = of_a ? of_a : of_b;
  if (!number) return of_a == of_b ? m : AMPC_MODE_NONE;
  if (!scales) return m;
  double value =
      number->op == OP_integer ? (double)attr_int(number, "value") : attr_float(number, "value");
  return value > 0 ? m : value < 0 ? flip(m) : AMPC_MODE_NONE;
}

/* Follows a value back to results of functions with a mode, through ops that keep the order of
 * numbers or turn it around. */
static ampc_mode walk(const Lower *l, Value v, int *left)
{
  for (uint32_t i = 0; i < l->judged.n; i++)
    if (l->judged.at[i].value.id == v.id) return l->judged.at[i].mode;
  const Node *n = ir_node(l->g, v);
  if (!(*left)--) return AMPC_MODE_NONE;
  if (op_has(n, T_increasing)) return walk(l, n->in[0], left);
  switch (n->op) {
  case OP_neg:
    return flip(walk(l, n->in[0], left));
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_div:
    return walk_pair(l, n, left);
  default:
    return AMPC_MODE_NONE;
  }
}

ampc_mode mode_of(const Lower *l, Value v)
{
  int left = 64; /* a value that is added to itself n times has 2^n ways back */
  return walk(l, v, &left);
}

/* ---- `with` of a metric ---- */

bool metric_options(Lower *l, Scope *s, const ArgList *with, Metric *m)
{
  for (uint32_t i = 0; i < with->n; i++) {
    const Arg *a = &with->at[i];
    const char *word;
    if (strcmp(a->key.text, "mode") != 0)
      return refuse(l, E205, a->key.span, "`metric` has no option `%s`; it has `mode`",
                    a->key.text);
    if (!want_str(l, eval(l, s, a->value), a->value->span, "`mode` of a metric", &word))
      return false;
    if (!read_mode(word, &m->mode))
      return refuse(l, E209, a->value->span,
                    "`mode` of a metric is \"%s\"; it must be \"min\" (lower values are better) or "
                    "\"max\"",
                    word);
  }
  return true;
}

const Native mode_natives[] = {{"mode", 1, 1, .internal = true, .run = run_mode}, {0}};
