/* The functions that the rows of attention in template_words.def call: operands, results and tiles.
 * compiler/command/attention.h explains them. */
#include "compiler/command/attention.h"
#include "runtime/plan/attention.h"
#include "template.h"

enum { MASK = 3 };

bool attention_mask_is(const Template *t, bool numbers)
{
  if (!t->n->in[MASK].id) return false;
  return (ir_in(t->k->c, t->n, MASK)->dtype != AMPC_BOOL) == numbers;
}

bool attention_gives(const Template *t, int64_t of)
{
  return attention_result(t->k->g, t->k->group, of).id != 0;
}

const char *attention_out(const Template *t, int64_t of)
{
  return pointer_name(t->k, attention_result(t->k->g, t->k->group, of));
}

/* Returns the type of the results. In backward the anchor is any of them; all have one type. */
const char *attention_stored(const Template *t)
{
  Value first = attention_result(t->k->g, t->k->group, 0);
  const Node *n = attention_is_backward(t->n) ? t->n : ir_node(t->k->g, first);
  return stored(t->k, n->dtype, "result");
}

/* ---- operands ---- */

Access attention_place(const Template *t, uint32_t input)
{
  Access a;
  if (!attention_access(t->k->g, t->n, input, &a))
    kernel_bug(t->k, t->n->in[input], "attention has no strides for it");
  return a;
}

/* Returns "image * 4096 + head * 64": the sum of the terms whose stride is not 0, or "0". */
static const char *terms(const Kernel *k, const char *const name[2], int64_t first, int64_t second,
                         int64_t offset)
{
  const int64_t stride[] = {first, second};
  const char *sum = NULL;
  for (uint32_t i = 0; i < 2; i++) {
    if (!stride[i]) continue;
    const char *term = stride[i] == 1
                           ? name[i]
                           : arena_printf(k->c->arena, "%s * %lld", name[i], (long long)stride[i]);
    sum = sum ? arena_printf(k->c->arena, "%s + %s", sum, term) : term;
  }
  return index_sum(k, sum, NULL, NULL, offset);
}

/* Returns where a head begins. A mask has the axes [n, heads, l, s], others [n, l, heads, d]. */
const char *attention_head(const Template *t, uint32_t input)
{
  static const char *const axes[] = {"image", "head"};
  Access a = attention_place(t, input);
  return terms(t->k, axes, a.stride[0], a.stride[input == MASK ? 1 : 2], a.offset);
}

const char *attention_mask_place(const Template *t)
{
  static const char *const places[] = {"query", "key"};
  Access a = attention_place(t, MASK);
  return terms(t->k, places, a.stride[2], a.stride[3], 0);
}

/* Returns the conversion from the type in memory. */
const char *attention_from(const Template *t, uint32_t input)
{
  DType type = ir_node(t->k->g, value_root(t->k->g, t->n->in[input]))->dtype;
  return conversion_name(t->k, "from", type);
}

/* Prints which library may run. It prints numbers of arguments, which have no names yet. */
void put_library_line(const Kernel *k)
{
  const char *why;
  const ampc_attention *a = launch_for_library(k->c, k->index, &why);
  if (!a) return;
  EMIT(k->p, "//   library    cuDNN's attention, if %s%s\n",
       ampc_attention_is_own(a) ? "AMPC_ATTENTION asks for it" : "cuDNN is installed",
       a->backward ? arena_printf(k->c->arena, "; only cuDNN uses argument %u", a->y.argument)
                   : "");
}
