/* Finds the function of a node. Ops of two operands. */
#include <string.h>
#include "read_ops.h"

typedef void ReadOp(Reader *r);

static ReadOp *function_of(const char *op)
{
#define READ(name, function, file)                                                                 \
  if (strcmp(op, #name) == 0) return function;
#include "read_ops.def"
  return NULL;
}

/* Refuses a node with inputs or attributes that its function does not know: they may change the
 * result. */
static void check_known(Reader *r)
{
  static const char *const harmless[] = {"saturate", "stash_type", "storage_order",   "seed",
                                         "dtype",    "spatial",    "consumed_inputs", "keepdims"};
  const OnnxNode *n = r->node;
  for (size_t i = 0; i < n->n_input && i < 64; i++)
    if (!(r->asked_inputs >> i & 1) && n->input[i] && *n->input[i])
      return refuse(r, text(r, "with input %zu", i));
  for (size_t i = 0; i < n->n_attribute && i < 64; i++) {
    bool known = (r->asked_attributes >> i & 1) || !n->attribute[i]->name;
    for (size_t k = 0; !known && k < sizeof harmless / sizeof *harmless; k++)
      known = strcmp(n->attribute[i]->name, harmless[k]) == 0;
    if (!known) return refuse(r, text(r, "with %s", n->attribute[i]->name));
  }
}

void read_op(Reader *r)
{
  const char *op = r->node->op_type, *domain = r->node->domain;
  bool standard = !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
  ReadOp *function = standard ? function_of(op) : NULL;
  for (size_t i = 0; i < r->node->n_input; i++)
    if (r->node->input[i] && *r->node->input[i] && !value_named(r, r->node->input[i])) return;
  if (!in(r, 0) && strcmp(op, "Constant") != 0) return refuse(r, "without its first input");
  if (standard && read_folded(r)) return;
  r->asked_inputs = r->asked_attributes = 0;
  if (function)
    function(r);
  else if (!standard || !read_prelude(r))
    return refuse(r, "");
  if (!r->dropped && strcmp(op, "Constant") != 0) check_known(r);
  if (!r->dropped) keep_number(r);
}

/* ---- two operands ---- */

/* The letter of an op: its first one, but Max x, Min n, Mod d. */
static char letter_of(const char *op)
{
  return op[0] != 'M' || op[1] == 'u' ? op[0] : op[2];
}

/* Division and remainder of ONNX round towards 0, those of jobs down. */
static void whole_division(Reader *r, char letter, const Value *a, const Value *b)
{
  const char *x = operand(r, 0), *y = operand(r, 1), *by = text(r, "abs(%s)", y),
             *sign = text(r, " * sign(%s)", y);
  bool counts = is_known(b) && b->n == 1 && b->item[0].n > 0;
  if (counts) by = y, sign = "";
  if (a->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8)
    return give(r, text(r, "%s %s %s", x, letter == 'D' ? "//" : "%", y));
  if (letter == 'D') return give(r, text(r, "sign(%s)%s * (abs(%s) // %s)", x, sign, x, by));
  give(r, text(r, "sign(%s) * (abs(%s) %% %s)", x, x, by));
}

/* x + 0, x * 1 and x & true, which exporters write for positions and masks */
static bool is_neutral(char op, const Value *x, const Value *number)
{
  bool scalar = x->kind == VALUE_tensor && is_known(number) && number->shape->rank == 0 &&
                x->type == number->type;
  return scalar && ((op == 'A' && number->item[0].n == 0) ||
                    (op == 'M' && number->item[0].n == 1) || (op == '&' && number->item[0].n != 0));
}

static bool mixes_types(const Value *a, const Value *b)
{
  bool tensors = a->kind == VALUE_tensor && b->kind == VALUE_tensor && a->type && b->type;
  return tensors && onnx_is_float(a->type) != onnx_is_float(b->type);
}

/* ONNX adds no floats and bools. But PyTorch 2.15 adds the mask of attention with dropout in this
 * way if the opset is 23. */
static void read_mask(Reader *r, const Value *scores, const Value *mask)
{
  const char *classes = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.class_hierarchy");
  bool attention = classes && strstr(classes, "aten.scaled_dot_product_attention");
  if (!attention || mask->type != ONNX__TENSOR_PROTO__DATA_TYPE__BOOL || *r->node->op_type != 'A')
    return refuse(r, "of floats and integers, which ONNX does not allow");
  give(r, text(r, "where(%s, %s, -inf)", ref(r, mask), ref(r, scores)));
}

/* Reads what several nodes together mean, or a node that does nothing. */
static bool read_known_pair(Reader *r, char letter, Value *a, Value *b)
{
  if (read_drawn(r) || (letter == 'M' && read_silu(r))) return true;
  bool bias = letter == 'A' && (a->bias_of == r->node || b->bias_of == r->node);
  if (bias) return give_value(r, a->bias_of ? a : b), true;
  if (is_neutral(letter, a, b)) return give_value(r, a), true;
  if (mixes_types(a, b)) return read_mask(r, a, b), true;
  return false;
}

void read_binary(Reader *r)
{
  Value *a = in(r, 0), *b = in(r, 1);
  char letter = letter_of(r->node->op_type);
  bool fmod = attr_number(r, "fmod", 0) != 0;
  if (!b) return refuse(r, "without its second input");
  if (read_known_pair(r, letter, a, b)) return;
  int32_t type = a->type ? a->type : b->type;
  bool whole = !onnx_is_float(type);
  if ((letter == 'D' && whole) || (letter == 'd' && fmod)) return whole_division(r, letter, a, b);
  if (letter == 'd') return give(r, text(r, "%s %% %s", operand(r, 0), operand(r, 1)));
  if (letter == 'P' && whole && b->type != type && type_word(type))
    return give(r, text(r, "(%s ** %s).to(%s)", operand(r, 0), operand(r, 1), type_word(type)));
  read_prelude(r);
}

/* Max, Min, Sum, Mean of any number of operands. */
void read_several(Reader *r)
{
  const char *op = r->node->op_type, *all = operand(r, 0);
  size_t n = r->node->n_input;
  if (n == 1) return give_value(r, in(r, 0));
  if (n > 200) return refuse(r, "of more than 200 operands");
  if (n == 2 && op[0] == 'M' && op[1] != 'e') return read_binary(r);
  for (size_t i = 1; i < n; i++) {
    const char *next = operand(r, i);
    if (op[0] == 'S' || op[1] == 'e')
      all = text(r, "%s + %s", all, next);
    else
      all = text(r, "%s(%s, %s)", op[1] == 'a' ? "maximum" : "minimum", all, next);
  }
  give(r, op[1] == 'e' ? text(r, "(%s) / %zu", all, n) : all);
}

/* Less, Equal, And: perhaps steps of a dropout, or a mask that does nothing. */
void read_compare(Reader *r)
{
  const Value *a = in(r, 0), *b = in(r, 1);
  if (read_drawn(r)) return;
  bool both = b && r->node->op_type[0] == 'A';
  if (both && (is_neutral('&', a, b) || is_neutral('&', b, a)))
    return give_value(r, is_neutral('&', a, b) ? a : b);
  read_prelude(r);
}
