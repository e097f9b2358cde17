/* Data that `amp repl` shows: an expression may call a data block or a source.
 *
 *   mnist("t10k")[0][5000:5004]      the data block's result for samples 5000 to 5003
 *   mnist("t10k")[0].mean()          of all samples
 *
 * The first form reads those samples only, so it is fast even for a large folder. The text of the
 * `def` decides which subscript counts samples: the second if the `def` returns several values,
 * else the first. The samples become the batch of the block; the caller that runs the block writes
 * them to INPUT. */
#include "block.h"
#include <string.h>
#include "runtime/plan/formats.h"

enum { MOST_CALLS = 16 };
#define MOST_BYTES ((int64_t)1 << 30) /* limit for the samples of a source that are read */

struct Look {
  Span span;     /* span of the subscript, or of the whole expression */
  bool is_index; /* the subscript is an index, not a slice: an index out of range is an error */
  bool has_start, has_stop;
  int64_t start, stop;
  bool told; /* the mistake is reported; all sources of a block have equal lengths */
};

/* ---- which subscript counts samples ---- */

/* Returns the function of a file that an expression calls by name, or NULL. */
static const Callable *callee_of(Lower *l, Scope *s, File *f, const Expr *e)
{
  const char *name = called_name(e);
  if (!*name) return NULL;
  Datum d = s ? lookup_quiet(l, s, name, e->span) : lookup_global(l, f, name, e->span);
  return d.kind == D_function ? d.as.function : NULL;
}

/* True if the call is of a data block or of a source of the library. */
static bool reads_data(const Lower *l, const Callable *call)
{
  return call &&
         (call->data || (call->file == l->library && ampc_format_find(call->def->name.text)));
}

/* True if the last statement of the function returns several values. */
static bool gives_several(Lower *l, const Callable *call)
{
  for (int i = 0; call && i < MOST_CALLS; i++) {
    const Block *body = &call->def->body;
    const Stmt *last = body->n ? body->at[body->n - 1] : NULL;
    if (!last || last->kind != STMT_return) return false;
    const Expr *e = last->as.exprs.at[0];
    if (last->as.exprs.n > 1 || e->kind == EXPR_tuple || e->kind == EXPR_list) return true;
    call = callee_of(l, NULL, call->file, e);
  }
  return false;
}

/* Reads a bound of x[a:b]; *has is false if the bound is left out. */
static bool read_bound(Lower *l, Scope *s, const Expr *e, bool *has, int64_t *out)
{
  *has = e != NULL;
  return !e || want_int(l, eval(l, s, e), e->span, "a subscript of samples", out);
}

static bool read_window(Lower *l, Scope *s, const Sub *sub, Look *out)
{
  *out = (Look){.span = sub->span, .is_index = sub->kind == SUB_index};
  if (!out->is_index)
    return read_bound(l, s, sub->start, &out->has_start, &out->start) &&
           read_bound(l, s, sub->stop, &out->has_stop, &out->stop);
  return read_bound(l, s, sub->index, &out->has_start, &out->start);
}

/* Returns the expression with a subscript of the batch, which contains only the requested samples:
 * [0] for an index, [:] for a slice. Subscripts of other axes stay. */
static Expr *of_batch(Lower *l, const Expr *e)
{
  Expr *copy = arena_new(l->arena, Expr), *zero = arena_new(l->arena, Expr);
  Sub *subs = arena_array(l->arena, Sub, e->as.index.subs.n);
  memcpy(subs, e->as.index.subs.at, e->as.index.subs.n * sizeof *subs);
  *zero = (Expr){.kind = EXPR_int, .height = 1, .span = subs[0].span};
  if (subs[0].kind == SUB_index) subs[0].index = zero;
  subs[0].start = subs[0].stop = NULL;
  *copy = *e;
  copy->as.index.subs.at = subs;
  return copy;
}

/* If the expression is a call that reads data with a chain of subscripts, one of which counts
 * samples, reads that subscript into *look and returns the expression for the batch. Else returns
 * the expression unchanged. */
static const Expr *take_window(Lower *l, Scope *s, const Expr *e, Look *look)
{
  if (e->kind != EXPR_index) return e;
  const Expr *base = e->as.index.base;
  const Callable *call = callee_of(l, s, NULL, base);
  bool several = reads_data(l, call) && gives_several(l, call);
  if (!reads_data(l, call) || several) {
    bool inner = base->kind == EXPR_index;
    const Expr *element = inner ? base->as.index.base : NULL;
    call = inner ? callee_of(l, s, NULL, element) : NULL;
    if (!inner || !reads_data(l, call) || !gives_several(l, call)) {
      Expr *copy = arena_new(l->arena, Expr);
      *copy = *e;
      copy->as.index.base = (Expr *)take_window(l, s, base, look);
      return copy;
    }
  }
  const Sub *sub = &e->as.index.subs.at[0];
  if (sub->kind == SUB_ellipsis || !read_window(l, s, sub, look)) return e;
  return of_batch(l, e);
}

/* ---- the samples ---- */

static int64_t within(int64_t at, int64_t n)
{
  if (at < 0) at += n;
  return at < 0 ? 0 : at > n ? n : at;
}

/* Limits the bytes of a batch, since all samples that are shown become one batch. */
static bool fits(Lower *l, const ampc_source *s, int64_t n)
{
  int64_t bytes = ampc_dtype_size(s->dtype);
  for (uint32_t i = 0; i < s->rank; i++)
    if (__builtin_mul_overflow(bytes, s->dim[i], &bytes)) bytes = INT64_MAX;
  if (n <= MOST_BYTES / bytes) return true;
  fail(l, E209, l->look->span, "%lld samples of %lld bytes are too many to show", (long long)n,
       (long long)bytes);
  return diag_help(l->c, "select a slice: `faces(\"test\")[0:4]`, or `[0][0:4]` if a data block "
                         "returns several values");
}

/* Sets the samples to read: from *first to *end - 1 of the n samples of a source. */
static bool choose(Lower *l, const ampc_source *s, int64_t n, int64_t *first, int64_t *end)
{
  const Look *look = l->look;
  Span span = look->span;
  *first = look->has_start ? within(look->start, n) : 0;
  *end = look->is_index ? *first + 1 : look->has_stop ? within(look->stop, n) : n;
  if (!s->samples)
    return refuse(l, E209, span, "the number of samples is not known: give it with `samples=`");
  if (look->is_index && (look->start >= n || look->start < -n))
    return refuse(l, E209, span, "there is no sample %lld: the number of samples is %lld",
                  (long long)look->start, (long long)n);
  if (*end <= *first)
    return refuse(l, E209, span, "this slice selects none of the %lld samples", (long long)n);
  return fits(l, s, *end - *first);
}

bool look_at(Lower *l, const ampc_source *s)
{
  int64_t first, end;
  if (l->look->told) return false;
  l->look->told = !choose(l, s, l->run->samples, &first, &end);
  if (l->look->told) return false;
  l->run->batch = l->g->blocks.at[l->run->block].batch = end - first;
  l->c->first_sample = first;
  return true;
}

/* Evaluates the last statement typed in `amp repl`. */
void look_result(Lower *l, Frame *f, const Stmt *last)
{
  Look look = {.span = last->span};
  Stmt copy = *last;
  const Expr *e = last->as.exprs.n == 1 ? last->as.exprs.at[0] : NULL;
  if (e) {
    copy.as.exprs.at = arena_array(l->arena, Expr *, 1);
    copy.as.exprs.at[0] = (Expr *)take_window(l, f->scope, e, &look);
  }
  Stmt *statement = &copy;
  Block one = {.at = &statement, .n = 1, .height = 1, .span = last->span};
  l->look = &look;
  l->in_source = true;
  exec_block(l, f, &one);
  l->in_source = false;
  l->look = NULL;
}
