/* Compiles the infer block for several sizes: Note [sizes] in export.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "compiler/syntax/ast.h"
#include "export.h"

/* LEAST: with size 1, ops that only repeat or reshape disappear. Small and large sizes reveal
 * limits, such as min(S, 64). MOST_BATCH stands for no limit. A decoder can be compiled for
 * more new tokens than its text has room for, so MOST_NEW is a choice for short texts, too. */
enum { LEAST = 3, MOST_BATCH = 1000, MOST_NEW = 61 };
enum { BASE, OTHER, LARGE, SMALL, MIDDLE, CHOICES };
/* Pass simplify merges nodes with equal numbers. So BASE and OTHER of all sizes differ, are
 * unusual, and equal no number of the job. Another choice that equals one is replaced if the graphs
 * differ. */
static const int64_t unusual[] = {7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67};
static_assert(sizeof unusual / sizeof *unusual >= 2 * AMPC_MAX_SIZES, "each size has two");

typedef struct Choosable { /* a size that the caller of the model chooses */
  const char *name;
  bool is_dim; /* else a const: the batch */
  bool is_new; /* the number of new tokens of a decoder */
  int64_t choice[CHOICES];
  int64_t least, most, multiple; /* the possible choices */
} Choosable;

static int64_t at_most(int64_t v, int64_t most)
{
  return v < most ? v : most;
}

/* Whether a shape or an attribute of the graph contains the number. */
static bool has_number(const Graph *g, int64_t v)
{
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = ir_node(g, (Value){id});
    const OpSignature *s = &op_of(n)->signature;
    for (uint32_t i = 0; i < n->rank; i++)
      if (n->dim[i] == v) return true;
    for (uint32_t i = 0; i < s->n_attrs && n->op != OP_number; i++)
      if (s->attr[i].kind != ATTR_float && n->attr[i].i == v) return true;
  }
  return false;
}

/* Returns a value from `v` on, before `end`, whose multiple is neither a number of the graph nor
 * that of `other`; `v` if there is none. */
static int64_t free_value(const Graph *g, int64_t v, int64_t end, int64_t multiple, int64_t other)
{
  for (int64_t k = v; k < end; k++)
    if (k != other && !has_number(g, k * multiple)) return k;
  return v;
}

/* Chooses values of size i of a job with this graph; false: fewer than three are possible. */
static bool choose(Choosable *x, const Graph *g, uint32_t i, int64_t least, int64_t most,
                   int64_t multiple)
{
  int64_t last = most / multiple,
          first = (at_most(least > LEAST ? least : LEAST, most) - 1) / multiple + 1;
  if (last < first + 2) first = at_most(first, (least - 1) / multiple + 1);
  int64_t base = first + at_most(unusual[2 * i] - LEAST, (last - first) / 2);
  base = free_value(g, base, last, multiple, base - 1);
  int64_t other = at_most(first + unusual[2 * i + 1] - LEAST, last);
  int64_t choice[CHOICES] = {[BASE] = base,
                             [OTHER] = free_value(g, other, last, multiple, base),
                             [LARGE] = last - (last - base > 2 * AMPC_MAX_SIZES ? i : 0),
                             [SMALL] = first + (base - first > AMPC_MAX_SIZES ? i : 0),
                             [MIDDLE] = (base + last) / 2};
  for (int k = 0; k < CHOICES; k++) x->choice[k] = choice[k] * multiple;
  x->least = first * multiple;
  x->most = last * multiple;
  x->multiple = multiple;
  return last >= first + 2;
}

/* Returns the const that all arguments have as their first size, or NULL. */
static const char *batch_const(const Compile *c, const Function *block)
{
  const char *name = NULL;
  for (uint32_t i = 0; i < block->params.n; i++) {
    const TypeExpr *t = &block->params.at[i].type;
    const Expr *first = t->n_dims ? t->dims[0] : NULL;
    if (!first || first->kind != EXPR_name || (name && strcmp(name, first->as.name) != 0))
      return NULL;
    name = first->as.name;
  }
  for (uint32_t i = 0; i < c->ast->n && name; i++)
    if (c->ast->at[i]->kind == DECL_const && strcmp(c->ast->at[i]->name.text, name) == 0)
      return name;
  return NULL;
}

/* Lists the sizes of the block that c has compiled. */
static uint32_t list_sizes(const Compile *c, const Function *block, Choosable *out)
{
  const BlockInfo *b = &c->graph->blocks.at[0];
  const char *batch = batch_const(c, block);
  uint32_t n = 0;
  if (c->options.decode) { /* the length of the text is fixed, and the batch is one text */
    out[0] = (Choosable){.name = "T", .is_new = true};
    return choose(&out[0], c->graph, 0, LEAST, b->context > MOST_NEW ? b->context - 1 : MOST_NEW,
                  1);
  }
  for (uint32_t i = 0; i < b->n_sizes; i++) {
    bool asked = false;
    for (uint32_t k = 0; k < c->options.n_dims; k++)
      asked = asked || strcmp(c->options.dims[k].key, b->size[i].name) == 0;
    out[n] = (Choosable){.name = b->size[i].name, .is_dim = true};
    n += !asked && choose(&out[n], c->graph, n, b->least[i], b->most[i], b->multiple[i]);
  }
  for (uint32_t k = 0; k < c->options.n_consts && batch; k++)
    if (strcmp(c->options.consts[k].key, batch) == 0) batch = NULL; /* -D fixes it */
  if (!batch || n == AMPC_MAX_SIZES) return n;
  out[n] = (Choosable){.name = batch};
  return n + choose(&out[n], c->graph, n, 1, MOST_BATCH, 1);
}

/* Compiles up to the last pass before the layout of images changes. */
static Compile *compile_for(Arena *arena, const Options *like, const Choosable *sizes, uint32_t n,
                            const int *choice, bool silent)
{
  Options o = *like;
  o.dims = arena_array(arena, Assignment, o.n_dims + n + 1);
  o.consts = arena_array(arena, Assignment, o.n_consts + n + 1);
  if (o.n_dims) memcpy(o.dims, like->dims, o.n_dims * sizeof *o.dims);
  if (o.n_consts) memcpy(o.consts, like->consts, o.n_consts * sizeof *o.consts);
  for (uint32_t i = 0; i < n; i++) {
    Assignment a = {sizes[i].name,
                    arena_printf(arena, "%lld", (long long)sizes[i].choice[choice[i]])};
    if (sizes[i].is_new)
      o.decode_new = sizes[i].choice[choice[i]];
    else if (sizes[i].is_dim)
      o.dims[o.n_dims++] = a;
    else
      o.consts[o.n_consts++] = a;
  }
  o.dump_after = o.decode ? "decode" : "simplify";
  o.silent = silent;
  Compile *c = compile_create(&o);
  if (compile_job(c)) return c;
  compile_destroy(c);
  return NULL;
}

/* ---- do the graphs agree? ---- */

static const char *differs(const Node *a, const Node *b)
{
  bool same = a->op == b->op && a->dtype == b->dtype && a->rank == b->rank && a->n_in == b->n_in &&
              a->loop == b->loop;
  for (uint32_t i = 0; same && i < a->n_in; i++) same = a->in[i].id == b->in[i].id;
  if (!same) return "other operations";
  const OpSignature *s = &op_of(a)->signature;
  for (uint32_t i = 0; i < s->n_attrs && a->op != OP_number; i++)
    if (s->attr[i].kind == ATTR_float &&
        memcmp(&a->attr[i].f, &b->attr[i].f, sizeof a->attr->f) != 0)
      return "another number";
  return NULL;
}

const char *variants_text(const Export *e, uint32_t variant)
{
  const char *text = "";
  for (uint32_t i = 0; i < e->n_sizes; i++)
    text = arena_printf(e->arena, "%s%s%s = %lld", text, i ? ", " : "", e->size_name[i],
                        (long long)e->size[i].at[variant]);
  return text;
}

/* Compares a variant with the first one; `tell`: reports a difference. */
static bool agree(const Export *e, uint32_t variant, const Choosable *sizes, bool tell)
{
  const Graph *a = e->graph[0], *b = e->graph[variant];
  for (uint32_t id = 1; id < a->nodes.n || id < b->nodes.n; id++) {
    const Node *n = ir_node(id < a->nodes.n ? a : b, (Value){id});
    const char *what = "more operations";
    if (id < a->nodes.n && id < b->nodes.n) what = differs(n, ir_node(b, (Value){id}));
    if (!what) continue;
    if (!tell) return false;
    diag_error(e->c, E802, n->span, "with %s the block has %s here than with %s",
               variants_text(e, id < b->nodes.n ? variant : 0), what,
               variants_text(e, id < b->nodes.n ? 0 : variant));
    if (sizes->is_new) return diag_help(e->c, "export the block without --decode");
    for (uint32_t i = 0; i < e->n_sizes; i++)
      if (e->size[i].at[variant] != e->size[i].at[0])
        return diag_help(e->c, "export it for one size: `%s %s=%lld`",
                         sizes[i].is_dim ? "--dim" : "-D", sizes[i].name,
                         (long long)e->size[i].at[variant]);
    return false;
  }
  return true;
}

static void add(Export *e, const Choosable *sizes, const int *choice, Compile *c)
{
  uint32_t v = e->n_variants++;
  e->compiles[v] = c;
  e->graph[v] = c->graph;
  for (uint32_t i = 0; i < e->n_sizes; i++) e->size[i].at[v] = sizes[i].choice[choice[i]];
}

/* Replaces the sizes of the last variant that equal a number of the job by others, and says so.
 * Returns false if there are none. */
static bool avoid_numbers(Export *e, Choosable *sizes, const int *choice)
{
  bool any = false;
  for (uint32_t i = 0; i < e->n_sizes; i++) {
    int64_t *v = &sizes[i].choice[choice[i]], from = *v, base = sizes[i].choice[BASE];
    int64_t step = from < base ? sizes[i].multiple : -sizes[i].multiple;
    while (*v >= sizes[i].least && *v <= sizes[i].most &&
           (*v == base || has_number(e->graph[0], *v)))
      *v += step;
    if (from == base || *v < sizes[i].least || *v > sizes[i].most) *v = from;
    if (*v == from) continue;
    any = true;
    fprintf(stderr,
            "warning: %s = %lld is also another number of the job, so the operations were compared "
            "with %s = %lld\n",
            sizes[i].name, (long long)from, sizes[i].name, (long long)*v);
  }
  return any;
}

/* Adds a variant. If its graph differs only since a size equals a number of the job, takes another
 * size. */
static bool add_variant(Export *e, const Compile *whole, Choosable *sizes, const int *choice)
{
  Compile *c = compile_for(e->arena, &whole->options, sizes, e->n_sizes, choice, false);
  if (!c) return false;
  add(e, sizes, choice, c);
  if (agree(e, e->n_variants - 1, sizes, false)) return true;
  if (!avoid_numbers(e, sizes, choice)) return agree(e, e->n_variants - 1, sizes, true);
  compile_destroy(e->compiles[--e->n_variants]);
  return add_variant(e, whole, sizes, choice);
}

bool variants_compile(Export *e, const Compile *whole, const Function *block)
{
  Choosable sizes[AMPC_MAX_SIZES + 1];
  int choice[AMPC_MAX_SIZES + 1] = {0};
  uint32_t n = list_sizes(whole, block, sizes);
  /* A const; if the job needs its own value, the batch stays fixed. */
  bool batch = n && !sizes[n - 1].is_dim && !sizes->is_new;
  Compile *c = compile_for(e->arena, &whole->options, sizes, n, choice, batch);
  if (!c && batch) c = compile_for(e->arena, &whole->options, sizes, --n, choice, false);
  e->n_sizes = n;
  for (uint32_t i = 0; i < n; i++) e->size_name[i] = sizes[i].name;
  if (!c) return false;
  c->options.silent = false; /* for messages about ops */
  e->c = c;
  e->g = c->graph;
  add(e, sizes, choice, c);
  for (uint32_t i = 0; i < 2 * n + 3 && n; i++) { /* one size changed, or all */
    for (uint32_t k = 0; k < n; k++) choice[k] = k != i / 2 ? BASE : i % 2 ? LARGE : OTHER;
    for (uint32_t k = 0; k < n && i >= 2 * n; k++) choice[k] = LARGE + (int)(i - 2 * n);
    if (!add_variant(e, whole, sizes, choice)) return false;
  }
  return true;
}

void variants_end(Export *e)
{
  for (uint32_t v = 0; v < e->n_variants; v++) compile_destroy(e->compiles[v]);
}
