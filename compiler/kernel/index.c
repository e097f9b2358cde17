/* The text of an index: arithmetic in the variables of a kernel's loops. */
#include "kernel_parts.h"

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
    name = arena_printf(k->c->arena, "o * %lld + column", (long long)k->part->rows->shape.inner);
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
