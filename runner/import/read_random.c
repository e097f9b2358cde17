/* Dropout that an exporter writes as a product with drawn numbers:
 * x * Cast(RandomUniformLike(..) < p) / p. Jobs draw only in train blocks. */
#include <stdlib.h>
#include <string.h>
#include "read_ops.h"

/* Makes the result a step of the pattern. */
static void give_drawn(Reader *r, ValueKind kind, double number, const Value *x)
{
  Item shape[READ_RANK];
  Value *v = result(r, 0);
  for (int64_t i = 0; i < rank_of(x); i++) shape[i] = item_of_size(r, x, i);
  if (v) fill_value(r, v, kind, number, shape, (uint32_t)rank_of(x));
}

void read_uniform(Reader *r)
{
  if (attr_real(r, "low", 0) != 0 || attr_real(r, "high", 1) != 1)
    return refuse(r, "with other bounds than 0 and 1");
  if (rank_of(in(r, 0)) < 0) return refuse(r, "of a sequence");
  give_drawn(r, VALUE_uniform, 0, in(r, 0));
}

/* 1 - p, as a short number: 0.2 for 0.8f. */
static const char *complement(Reader *r, double p)
{
  for (int digits = 1; digits < 9; digits++) {
    const char *number = text(r, "%.*g", digits, 1 - p);
    if ((float)(1 - strtod(number, NULL)) == (float)p) return float_text(r, strtod(number, NULL));
  }
  return float_text(r, 1 - p);
}

static void drop(Reader *r, const Value *x, const Value *kept)
{
  /* equal: axes with x's size; ones: axes of size 1; first: leading axes with x's size */
  uint32_t equal = 0, ones = 0, first = 0;
  bool known = rank_of(x) == kept->n;
  for (uint32_t i = 0; known && i < kept->n; i++) {
    bool same = is_size(x, i, kept->item[i]);
    equal += same;
    first += same && first == i;
    ones += !kept->item[i].text && kept->item[i].n == 1;
  }
  if (!known || kept->n == 0) return refuse(r, "of random numbers of another shape");
  const char *p = complement(r, kept->number), *of = ref(r, x);
  if (equal == kept->n) return give(r, text(r, "dropout(%s, %s)", of, p));
  if (first >= 1 && ones >= kept->n - 1) return give(r, text(r, "stochastic_depth(%s, %s)", of, p));
  if (ones == kept->n) return give(r, text(r, "stochastic_depth(%s, %s, \"batch\")", of, p));
  if (first >= 2 && ones >= kept->n - 2) return give(r, text(r, "dropout2d(%s, %s)", of, p));
  refuse(r, "of random numbers of another shape");
}

/* A step of the pattern that only one node reads: two products with it drop the same elements. */
static bool is_drawn(const Value *v, ValueKind kind)
{
  return v && v->kind == kind && v->readers <= 1;
}

bool read_drawn(Reader *r)
{
  const Value *a = in(r, 0), *b = in(r, 1);
  const char *op = r->node->op_type;
  if (strcmp(op, "Less") == 0 && a->kind == VALUE_uniform && b && b->kind == VALUE_number) {
    give_drawn(r, VALUE_chosen, b->number, a);
  } else if (strncmp(op, "Cast", 4) == 0 && is_drawn(a, VALUE_chosen)) {
    give_drawn(r, VALUE_chosen, a->number, a);
  } else if (strcmp(op, "Div") == 0 && is_drawn(a, VALUE_chosen) && b->kind == VALUE_number &&
             (float)b->number == (float)a->number) {
    give_drawn(r, VALUE_kept, a->number, a);
  } else if (strcmp(op, "Mul") == 0 && (is_drawn(a, VALUE_kept) || is_drawn(b, VALUE_kept))) {
    drop(r, a->kind == VALUE_kept ? b : a, a->kind == VALUE_kept ? a : b);
  } else {
    return false;
  }
  return true;
}
