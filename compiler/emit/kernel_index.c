/* Where an element of an operand is, in the variables of a kernel's loops, and its text in C.
 * compiler/command/walk.h explains which values are walked in which order. */
#include "kernel_parts.h"

Index index_at(LoopVariable of)
{
  return (Index){.n = 1, .term[0] = {.of = of, .over = 1, .stride = 1}};
}

Index index_each(LoopVariable of)
{
  Index x = index_at(of);
  x.term[0].each = true;
  return x;
}

void index_add_term(Index *x, LoopVariable of, int64_t stride)
{
  if (stride) x->term[x->n++] = (IndexTerm){.of = of, .over = 1, .stride = stride};
}

/* With r over [4, 32] and strides 0 and 512, axis 0 is r / 32 and axis 1 is r % 32, so the term is
 * "r % 32 * 512". Axes with stride 0 need no arithmetic. */
void index_add(Index *x, const LoopShape *s, const Access *a, uint32_t from, uint32_t to,
               IndexTerm through)
{
  LoopShape part = {.rank = to - from};
  Access own = {.offset = 0};
  for (uint32_t i = from; i < to; i++) {
    part.dim[i - from] = s->dim[i];
    own.stride[i - from] = a->stride[i];
  }
  loop_collapse(&part, &own, 1);
  for (uint32_t i = 0; i < part.rank; i++) {
    if (!own.stride[i]) continue;
    through.over = dims_product(part.dim + i + 1, part.rank - i - 1);
    through.size = i ? part.dim[i] : 0;
    through.stride = own.stride[i];
    x->term[x->n++] = through;
  }
}

static bool same_term(const IndexTerm *a, const IndexTerm *b)
{
  return a->of == b->of && a->each == b->each && a->over == b->over && a->size == b->size &&
         a->stride == b->stride;
}

bool index_equal(const Index *a, const Index *b)
{
  bool same = a->n == b->n && a->offset == b->offset;
  for (uint32_t i = 0; i < a->n && same; i++) same = same_term(&a->term[i], &b->term[i]);
  return same;
}

bool index_is(const Index *x, LoopVariable of)
{
  const IndexTerm *t = &x->term[0];
  return x->n == 1 && !x->offset && t->of == of && t->over == 1 && !t->size && t->stride == 1;
}

bool index_has(const Index *x, LoopVariable of)
{
  bool any = false;
  for (uint32_t i = 0; i < x->n; i++) any |= x->term[i].of == of;
  return any;
}

bool index_counts(const Index *x, LoopVariable of)
{
  const IndexTerm *last = &x->term[x->n ? x->n - 1 : 0];
  return x->n && !x->offset && last->of == of && !last->each && last->over == 1 && !last->size &&
         last->stride == 1;
}

static const char *variable_text(const Kernel *k, const IndexTerm *t)
{
  static const char *const names[] = {[VAR_i] = "i",
                                      [VAR_r] = "r",
                                      [VAR_c] = "c",
                                      [VAR_row] = "row",
                                      [VAR_o] = "o",
                                      [VAR_at] = "at",
                                      [VAR_column] = "column",
                                      [VAR_image] = "image",
                                      [VAR_head] = "head",
                                      [VAR_key] = "key",
                                      [VAR_kv_head] = "kv_head",
                                      [VAR_query] = "query",
                                      [VAR_kept] = "(kept ? c + j : 0)"};
  const char *name = names[t->of];
  if (t->of == VAR_cell)
    name = arena_printf(k->c->arena, "o * %lld + column", (long long)k->part->rows->inner);
  return t->each ? arena_printf(k->c->arena, "(%s + j)", name) : name;
}

const char *index_text(const Kernel *k, const Index *x)
{
  Text out = text_new(k->c->arena);
  for (uint32_t i = 0; i < x->n; i++) {
    const IndexTerm *t = &x->term[i];
    text_printf(&out, "%s%s", i ? " + " : "", variable_text(k, t));
    if (t->over > 1) text_printf(&out, " / %lld", (long long)t->over);
    if (t->size) text_printf(&out, " %% %lld", (long long)t->size);
    if (t->stride != 1) text_printf(&out, " * %lld", (long long)t->stride);
  }
  if (!x->n || x->offset) text_printf(&out, "%s%lld", x->n ? " + " : "", (long long)x->offset);
  return out.at;
}
