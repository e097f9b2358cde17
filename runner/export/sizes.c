/* Numbers that depend on the sizes of the arguments: Note [sizes] in export.h. */
#include "compiler/graph/ops.h"
#include "export.h"

Sized sized(int64_t v)
{
  Sized q;
  for (uint32_t i = 0; i < MAX_VARIANTS; i++) q.at[i] = v;
  return q;
}

static uint32_t id_of(const Export *e, const Node *n)
{
  return (uint32_t)(n - e->g->nodes.at);
}

const Node *sized_twin(const Export *e, const Node *n, uint32_t variant)
{
  return ir_node(e->graph[variant], (Value){id_of(e, n)});
}

Sized sized_dim(const Export *e, const Node *n, uint32_t axis)
{
  Sized q = sized(0);
  for (uint32_t v = 0; v < e->n_variants; v++) q.at[v] = sized_twin(e, n, v)->dim[axis];
  return q;
}

Sized sized_attr(const Export *e, const Node *n, const char *name)
{
  Sized q = sized(0);
  for (uint32_t v = 0; v < e->n_variants; v++) q.at[v] = attr_int(sized_twin(e, n, v), name);
  return q;
}

bool sized_varies(const Export *e, Sized q)
{
  for (uint32_t v = 1; v < e->n_variants; v++)
    if (q.at[v] != q.at[0]) return true;
  return false;
}

/* ---- formulas ---- */

/* q = (a p + b) / c, where p is the product of the sizes of the set `of` (a bit mask). */
typedef struct SizeFormula {
  uint32_t of;
  int64_t a, b, c;
} SizeFormula;

/* Products of large sizes need more than 64 bits. */
typedef __int128 Wide;

static Wide product_of(const Export *e, uint32_t set, uint32_t variant)
{
  Wide p = 1;
  for (uint32_t i = 0; i < e->n_sizes; i++)
    if (set >> i & 1) p *= e->size[i].at[variant];
  return p;
}

/* Fits a line through two variants that differ, and checks that the others are on it. */
static bool fit(const Export *e, Sized q, uint32_t set, SizeFormula *out)
{
  uint32_t v = 1;
  Wide p = product_of(e, set, 0);
  while (v < e->n_variants && product_of(e, set, v) == p) v++;
  if (v == e->n_variants) return false;
  Wide a = q.at[v] - q.at[0], c = product_of(e, set, v) - p;
  if (a % c == 0) {
    a /= c;
    c = 1;
  }
  Wide b = q.at[0] * c - a * p;
  *out = (SizeFormula){set, (int64_t)a, (int64_t)b, (int64_t)c};
  if (out->a != a || out->b != b || out->c != c) return false;
  for (v = 1; v < e->n_variants; v++)
    if (q.at[v] * c != a * product_of(e, set, v) + b) return false;
  return true;
}

/* Returns the name of an i64[1] with size i, from an argument one of whose dims is a * size + b. */
static const char *size_of(Export *e, uint32_t i)
{
  OnnxBuild *b = e->root;
  SizeFormula f;
  for (uint32_t id = 1; id < e->g->nodes.n && !e->size_value[i]; id++) {
    const Node *n = ir_node(e->g, (Value){id});
    for (uint32_t axis = 0; n->op == OP_source && axis < n->rank; axis++) {
      Sized q = sized_dim(e, n, axis);
      if (!sized_varies(e, q) || !fit(e, q, UINT32_C(1) << i, &f) || f.c != 1) continue;
      const char *x =
          build_node(b, "Shape", FROM(e->name[id]), WITH(INT("start", axis), INT("end", axis + 1)));
      if (f.b) x = build_node(b, "Sub", FROM(x, build_int(b, f.b)), NO_ATTRS);
      if (f.a != 1) x = build_node(b, "Div", FROM(x, build_int(b, f.a)), NO_ATTRS);
      e->size_value[i] = x;
      break;
    }
  }
  return e->size_value[i];
}

static const char *put_formula(Export *e, SizeFormula f)
{
  OnnxBuild *b = e->root;
  const char *p = NULL;
  for (uint32_t i = 0; i < e->n_sizes; i++) {
    if (!(f.of >> i & 1)) continue;
    const char *size = size_of(e, i);
    if (!size) return NULL;
    p = p ? build_node(b, "Mul", FROM(p, size), NO_ATTRS) : size;
  }
  if (f.a != 1) p = build_node(b, "Mul", FROM(p, build_int(b, f.a)), NO_ATTRS);
  if (f.b) p = build_node(b, "Add", FROM(p, build_int(b, f.b)), NO_ATTRS);
  if (f.c != 1) p = build_node(b, "Div", FROM(p, build_int(b, f.c)), NO_ATTRS);
  return p;
}

const char *sized_value(Export *e, const Node *n, Sized q)
{
  if (!sized_varies(e, q)) return build_int(e->b, q.at[0]);
  SizeFormula f;
  for (uint32_t set = 1; set < UINT32_C(1) << e->n_sizes; set++) {
    const char *value = fit(e, q, set, &f) ? put_formula(e, f) : NULL;
    if (value) return value;
  }
  return cannot(e, n,
                arena_printf(e->arena,
                             "a size (%lld with %s) is no product or sum of sizes of the arguments",
                             (long long)q.at[0], variants_text(e, 0)));
}

const char *sized_list(Export *e, const Node *n, const Sized *q, uint32_t count)
{
  bool varies = false;
  for (uint32_t i = 0; i < count; i++) varies = varies || sized_varies(e, q[i]);
  if (!varies) {
    int64_t *at = arena_array(e->arena, int64_t, count + 1);
    for (uint32_t i = 0; i < count; i++) at[i] = q[i].at[0];
    return build_ints(e->b, at, count);
  }
  const char **part = arena_array(e->arena, const char *, count + 1);
  for (uint32_t i = 0; i < count; i++)
    if (!(part[i] = sized_value(e, n, q[i]))) return NULL;
  return build_node(e->b, "Concat", part, WITH(INT("axis", 0)));
}
