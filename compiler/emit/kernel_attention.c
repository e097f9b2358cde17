/* What fills the holes of attention's templates: where operands lie, tiles, what the group gives.
 * The words are in templates/README.md; the tiles in compiler/command/attention.h. */
#include "compiler/command/attention.h"
#include "kernel_parts.h"
#include <string.h>

static const Node *anchor_of(const Kernel *k)
{
  return ir_node(k->g, k->group->anchor);
}

static bool gives(const Kernel *k, int64_t of)
{
  return attention_result(k->g, k->group, of).id != 0;
}

bool attention_holds(const Kernel *k, const char *word, size_t n, bool *out)
{
  const Node *a = anchor_of(k);
  enum { MASK = 3 };
  bool back = attention_is_backward(a);
  AttentionWalk w = attention_walk(k->c, k->group);
  const Node *mask = a->in[MASK].id ? ir_node(k->g, a->in[MASK]) : NULL;
  bool allowed = mask && mask->dtype == AMPC_BOOL, causal = attr_int(a, "causal");
  const struct {
    const char *name;
    bool holds;
  } flags[] = {{"random", op_draws(a)},
               {"causal", causal},
               {"allowed", allowed},
               {"added", mask && !allowed},
               {"placed", mask || causal},
               {"values", !back && gives(k, 0)},
               {"logarithms", !back && gives(k, 1)},
               {"keys", w.key_units > 0},
               {"queries", w.query_units > 0},
               {"joint", back && gives(k, 0) && !w.query_units},
               {"dk", back && gives(k, 1)},
               {"dv", back && gives(k, 2)}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (is(word, n, flags[i].name)) {
      *out = flags[i].holds;
      return true;
    }
  return false;
}

/* ---- numbers ---- */

static const char *number_text(const Kernel *k, int64_t v)
{
  return arena_printf(k->c->arena, "%lld", (long long)v);
}

static const char *size_text(const Kernel *k, const char *word, size_t n)
{
  const Node *a = anchor_of(k), *q = ir_node(k->g, a->in[0]), *v = ir_node(k->g, a->in[2]);
  AttentionWalk w = attention_walk(k->c, k->group);
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"l", q->dim[1]},
               {"heads", q->dim[2]},
               {"d", q->dim[3]},
               {"s", v->dim[1]},
               {"e", v->dim[3]},
               {"lanes", w.lanes},
               {"rows", w.rows},
               {"d_room", w.d_room},
               {"e_room", w.e_room},
               {"room", w.d_room > w.e_room ? w.d_room : w.e_room},
               {"longest", w.lanes > w.rows ? w.lanes : w.rows},
               {"key_split", w.key_split},
               {"query_split", w.query_split},
               {"key_units", w.key_units},
               {"units", w.key_units + w.query_units}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (is(word, n, sizes[i].name)) return number_text(k, sizes[i].value);
  return NULL;
}

/* ---- operands ---- */

/* "image * 4096 + head * 64": the terms with a stride, or "0". */
static const char *place_text(const Kernel *k, const char *const *name, const int64_t *stride,
                              uint32_t n, int64_t offset)
{
  const char *sum = NULL;
  for (uint32_t i = 0; i < n; i++) {
    if (!stride[i]) continue;
    const char *term = stride[i] == 1
                           ? name[i]
                           : arena_printf(k->c->arena, "%s * %lld", name[i], (long long)stride[i]);
    sum = sum ? arena_printf(k->c->arena, "%s + %s", sum, term) : term;
  }
  return index_sum(k, sum, NULL, NULL, offset);
}

/* $q_at, where a head of the operand begins; $q_row from row to row. Of a mask, whose axes are [n,
 * heads, l, s], $mask_at and $mask_place, which adds query and key. */
static const char *access_text(const Kernel *k, uint32_t input, const char *what, size_t n)
{
  enum { MASK = 3 };
  static const char *const axes[] = {"image", "head"}, *const places[] = {"query", "key"};
  Access a;
  if (!attention_access(k->g, anchor_of(k), input, &a)) return "";
  int64_t head = input == MASK ? a.stride[1] : a.stride[2];
  if (is(what, n, "at")) return place_text(k, axes, (int64_t[]){a.stride[0], head}, 2, a.offset);
  if (is(what, n, "row")) return number_text(k, a.stride[1]);
  if (!is(what, n, "place")) return NULL;
  return place_text(k, places, &a.stride[2], 2, 0);
}

static const char *argument_text(const Kernel *k, Value v)
{
  return pointer_name(k, v);
}

/* "from_f16", by what lies in memory. */
static const char *conversion_text(const Kernel *k, Value v)
{
  DType type = ir_node(k->g, value_root(k->g, v))->dtype;
  return type == AMPC_F16 ? "from_f16" : type == AMPC_BF16 ? "from_bf16" : "";
}

static const char *operand_text(const Kernel *k, const char *word, size_t n)
{
  const Node *a = anchor_of(k);
  const OpSignature *sig = &op_of(a)->signature;
  bool from = n > 5 && memcmp(word, "from_", 5) == 0;
  for (uint32_t i = 0; i < sig->n_inputs; i++) {
    const char *name = sig->input[i].name;
    size_t size = strlen(name);
    if (from && is(word + 5, n - 5, name)) return conversion_text(k, a->in[i]);
    if (is(word, n, name)) return argument_text(k, a->in[i]);
    if (n > size + 1 && memcmp(word, name, size) == 0 && word[size] == '_') {
      const char *text = access_text(k, i, word + size + 1, n - size - 1);
      if (text) return text;
    }
  }
  return NULL;
}

static const char *result_text(const Kernel *k, const char *word, size_t n)
{
  static const char *const names[2][3] = {{"values", "logarithms", ""}, {"dq", "dk", "dv"}};
  bool back = attention_is_backward(anchor_of(k));
  for (int64_t of = 0; of < 3; of++)
    if (is(word, n, names[back][of])) return argument_text(k, attention_result(k->g, k->group, of));
  if (!is(word, n, "result")) return NULL;
  Value v = back ? k->group->anchor : attention_result(k->g, k->group, 0);
  return stored(k, ir_node(k->g, v)->dtype, "result");
}

const char *attention_text(const Kernel *k, const char *word, size_t n)
{
  if (is(word, n, "stream")) return stream_name(k, anchor_of(k));
  const char *text = result_text(k, word, n);
  if (!text) text = size_text(k, word, n);
  return text ? text : operand_text(k, word, n);
}
