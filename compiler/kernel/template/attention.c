/* The functions that the rows of attention in words.def call: operands, results and tiles.
 * compiler/command/attention.h explains them. */
#include "compiler/command/attention.h"
#include "runtime/plan/attention.h"
#include "template.h"
#include <math.h>

enum { QUERY, KEY, VALUE, MASK };

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

int64_t attention_group(const Template *t)
{
  return ir_in(t->k->c, t->n, QUERY)->dim[2] / ir_in(t->k->c, t->n, VALUE)->dim[2];
}

/* Returns where a head begins. A mask has the axes [n, heads, l, s], others [n, l, heads, d]. */
const char *attention_head(const Template *t, uint32_t input)
{
  Access a = attention_place(t, input);
  Index x = {.offset = a.offset};
  index_add_term(&x, VAR_image, a.stride[0]);
  index_add_term(&x, input == KEY || input == VALUE ? VAR_kv_head : VAR_head,
                 a.stride[input == MASK ? 1 : 2]);
  return index_text(t->k, &x);
}

/* Returns the stride between keys; with blocks of keys, a block divided by its keys. */
int64_t attention_key_row(const Template *t)
{
  const Node *k = ir_in(t->k->c, t->n, KEY);
  return attention_place(t, KEY).stride[1] / (k->rank > 4 ? k->dim[4] : 1);
}

/* Returns the place of key `key` of a step, which is a block if there are blocks, in the step. */
const char *attention_key_text(const Template *t, const char *key)
{
  const Node *k = ir_in(t->k->c, t->n, KEY);
  int64_t row = k->rank > 4 ? attention_place(t, KEY).stride[4] : attention_key_row(t);
  return row == 1 ? key : arena_printf(t->k->c->arena, "%s * %lld", key, (long long)row);
}

const char *attention_key_feature(const Template *t)
{
  int64_t stride = attention_place(t, KEY).stride[3];
  return stride > 1 ? arena_printf(t->k->c->arena, "c * %lld", (long long)stride) : "c";
}

const char *attention_mask_place(const Template *t)
{
  Access a = attention_place(t, MASK);
  Index x = {0};
  index_add_term(&x, VAR_query, a.stride[2]);
  index_add_term(&x, VAR_key, a.stride[3]);
  return index_text(t->k, &x);
}

/* Returns the conversion from the type in memory. */
const char *attention_from(const Template *t, uint32_t input)
{
  DType type = ir_node(t->k->g, value_root(t->k->g, t->n->in[input]))->dtype;
  return conversion_name(t->k, "from", type);
}

/* ---- tensor cores ---- */

/* True if all tiles and steps have as many rows as there is room for. */
bool attention_is_whole(const Template *t)
{
  int64_t l = ir_in(t->k->c, t->n, QUERY)->dim[1], s = ir_in(t->k->c, t->n, VALUE)->dim[1];
  int64_t group = attention_group(t), lanes = t->walk.lanes;
  bool causal = attr_int(t->n, "causal"); /* the last step ends at a query */
  return l * group % lanes == 0 && s % lanes == 0 && (!causal || group == 1);
}

/* True if some pairs of query and key of a tile are computed and have no weight. */
bool attention_guards(const Template *t)
{
  return attr_int(t->n, "causal") || !attention_is_whole(t);
}

/* Returns the narrowest type that can number all pairs of query and key in the whole batch. A
 * narrow one needs fewer registers. */
const char *attention_pair_type(const Template *t)
{
  const Node *q = ir_in(t->k->c, t->n, 0);
  int64_t pairs = q->dim[0] * q->dim[1] * q->dim[2] * ir_in(t->k->c, t->n, 2)->dim[1];
  return pairs <= UINT32_MAX && !t->n->draws.each ? "unsigned" : "long long";
}

/* True if the element of the first of four keys has a number that is a multiple of 4: Philox makes
 * four words at once. */
bool attention_draws_in_fours(const Template *t)
{
  return ir_in(t->k->c, t->n, 2)->dim[1] % 4 == 0 && t->n->draws.each % 4 == 0;
}

/* Returns the least word whose ampc_unit() is at least p: the upper 24 bits of a word are compared
 * with p, a float. */
const char *attention_least(const Template *t)
{
  double least = ceil((double)(float)attr_float(t->n, "p") * 0x1p24);
  return arena_printf(t->k->c->arena, "%uu", (unsigned)least << 8);
}

/* Returns how many adjacent elements of a row a thread can copy at once: up to 16 bytes. */
int64_t attention_vector(const Template *t, uint32_t input)
{
  const Node *x = ir_in(t->k->c, t->n, input);
  Access a = attention_place(t, input);
  int64_t n = 8;
  while (x->dim[3] % n || a.offset % n || a.stride[0] % n || a.stride[1] % n || a.stride[2] % n)
    n /= 2;
  return n;
}

/* Prints which library may run. It prints numbers of arguments, which have no names yet. */
void put_library_line(const Kernel *k)
{
  const ampc_attention *a = k->command->library;
  if (!a) return;
  EMIT(k->p, "//   library    cuDNN's attention, if %s%s\n",
       ampc_attention_is_own(a) ? "AMPC_ATTENTION asks for it" : "cuDNN is installed",
       a->backward ? arena_printf(k->c->arena, "; only cuDNN uses argument %u", a->y.argument)
                   : "");
}
