/* `every n { }` of a train block. The host knows the number of a step, so it decides what fires
 * before the step runs. A block is elaborated once for each choice of firing `every` that occurs,
 * and each choice is a step of its own.
 *
 * Note [choices]
 * The first variant of a block has all that may fire. It finds mistakes, declares metrics in the
 * order of the text and collects the numbers of `every`. The other variants are elaborated when
 * these numbers are known. An `every` that does not fire still adds its losses, metrics and random
 * streams to the counts, as in the first variant. So all variants have the same names and random
 * numbers, and an `every` that contains only a metric changes no weight. */
#include "block.h"
#include "common/number.h"
#include <assert.h>

void note_ended_names(Lower *l, Scope *to, const Scope *s, const char *where)
{
  for (uint32_t i = 0; i < s->names.n; i++) {
    const Binding *b = &s->names.at[i];
    if (!scope_missing(to, b->name) && !scope_find(to, b->name))
      vec_push(l->arena, &to->missing, (Missing){b->name, where, b->span, true});
  }
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Returns the least common multiple; 2^53, which no run reaches, if it is larger. */
static int64_t least_multiple(int64_t a, int64_t b)
{
  int64_t out;
  bool far = __builtin_mul_overflow(a / greatest_divisor(a, b), b, &out) || out > AMPC_MOST_STEPS;
  return far ? AMPC_MOST_STEPS : out;
}

static void exec_body(Lower *l, Frame *f, const Stmt *st, int64_t n)
{
  Scope *s = f->scope;
  Frame inner = {.kind = f->kind, .scope = scope_new(l, s, s->file, s->self)};
  int64_t outer = l->run->every;
  l->run->every = least_multiple(outer, n);
  exec_block(l, &inner, &st->as.every.body);
  l->run->every = outer;
  note_ended_names(l, s, inner.scope, arena_printf(l->arena, "`every %lld`", (long long)n));
}

/* ---- in the variant in which all fire ---- */

/* Records the numbers at the first variant of the block, even if the variant for the smaller last
 * batch is the first to use one. */
static bool add_period(Lower *l, int64_t n, Span span)
{
  BlockInfo *b = &l->g->blocks.at[l->run->first];
  if (n == 1) return true;
  for (uint32_t i = 0; i < b->n_periods; i++)
    if (b->period[i] == n) return true;
  if (b->n_periods == AMPC_MAX_PERIODS) {
    fail(l, E605, span, "`every %lld` exceeds the limit of %d different numbers in one block",
         (long long)n, AMPC_MAX_PERIODS);
    return diag_help(l->c, "the block is compiled for each combination of `every` numbers that "
                           "occurs: use fewer numbers");
  }
  b->period[b->n_periods++] = n;
  return true;
}

static Counted counted(const Lower *l)
{
  const Run *r = l->run;
  return (Counted){r->n_every, r->n_losses, r->n_metrics, l->g->n_streams};
}

/* A step that pass probe measures counts as an `every` without statements. */
void every_probe(Lower *l, Span span)
{
  int64_t n = l->c->options.probe_every;
  if (n && !l->run->whole) add_period(l, n, span);
}

/* Records what this statement adds to the counts, by its number among the `every` of the block. */
static void exec_first(Lower *l, Frame *f, const Stmt *st, int64_t n)
{
  Run *r = l->run;
  uint32_t at = r->counted.n;
  vec_push(l->arena, &r->counted, (Counted){0});
  r->n_every++;
  Counted before = counted(l);
  exec_body(l, f, st, n);
  Counted after = counted(l);
  r->counted.at[at] =
      (Counted){after.n_every - before.n_every, after.n_losses - before.n_losses,
                after.n_metrics - before.n_metrics, after.n_streams - before.n_streams};
}

/* ---- in the other variants ---- */

static bool fires(const Lower *l, int64_t n)
{
  const BlockInfo *b = &l->g->blocks.at[l->run->block];
  for (uint32_t i = 0; i < b->n_periods; i++)
    if (b->period[i] == n) return b->fires >> i & 1;
  return true; /* `every 1` */
}

static void leave_out(Lower *l, uint32_t at)
{
  Run *r = l->run;
  assert(at < r->whole->counted.n);
  const Counted *x = &r->whole->counted.at[at];
  r->n_every += x->n_every;
  r->n_losses += x->n_losses;
  r->n_metrics += x->n_metrics;
  l->g->n_streams += x->n_streams;
}

void exec_every(Lower *l, Frame *f, const Stmt *st)
{
  const Expr *interval = st->as.every.interval;
  int64_t n;
  if (f->kind != FRAME_train) {
    fail(l, E210, st->span, "`every` stands in train blocks only");
    return;
  }
  Datum v = eval(l, f->scope, interval);
  if (!want_count(l, v, interval->span, "`every`", (Counts){1, AMPC_MOST_STEPS}, &n)) return;
  int64_t each =
      least_multiple(l->run->every, n); /* an inner `every` fires if the outer one fires too */
  if (!l->run->whole) {
    if (add_period(l, each, interval->span)) exec_first(l, f, st, n);
    return;
  }
  uint32_t at = l->run->n_every++;
  if (fires(l, each))
    exec_body(l, f, st, n);
  else
    leave_out(l, at);
}

/* ---- which choices occur ---- */

/* True if the choice `set` occurs in a step. Let m be the least common multiple of the numbers in
 * `set`. `set` first fires as a whole in step m, and m divides every step in which `set` fires. So
 * the choice occurs unless a number outside of `set` divides m. n divides m exactly if the least
 * common multiple of gcd(n, k), over all k in `set`, is n. This test avoids an overflow of m. */
static bool comes(const BlockInfo *b, uint32_t set)
{
  for (uint32_t i = 0; i < b->n_periods; i++) {
    int64_t n = b->period[i], common = 1;
    for (uint32_t k = 0; k < b->n_periods; k++) {
      int64_t one = greatest_divisor(n, b->period[k]);
      if (set >> k & 1) common = least_multiple(common, one);
    }
    if (!(set >> i & 1) && common == n) return false;
  }
  return true;
}

static void sort_periods(BlockInfo *b)
{
  for (uint32_t i = 1; i < b->n_periods; i++)
    for (uint32_t k = i; k > 0 && b->period[k - 1] > b->period[k]; k--) {
      int64_t n = b->period[k];
      b->period[k] = b->period[k - 1];
      b->period[k - 1] = n;
    }
}

uint32_t every_choices(Lower *l, BlockInfo *b, uint32_t most, uint32_t *out)
{
  uint32_t n = 0, all = (1u << b->n_periods) - 1;
  sort_periods(b);
  for (uint32_t left = all + 1; left-- > 0;)
    if (comes(b, left) && n++ < most) out[n - 1] = left;
  b->fires = all;
  if (n <= most) return n;
  fail(l, E605, b->span, "`%s` result in %u variants of this block; the maximum is %u",
       ir_fires_text(l->arena, b->period, b->n_periods, all, " "), n, most);
  diag_help(l->c, "each variant is compiled; numbers that divide each other, such as 2, 4 and 8, "
                  "need fewer variants");
  return 0;
}
