/* The code column of the op table as C: `$0 + $1` with its words replaced, operands converted to
 * the type in which the op computes, results rounded to the type of the node. */
#include "kernel_parts.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- words of code ------------------------------------------------------------------------------
 */

static const char *attribute_text(const CodeScope *s, const char *name, size_t n)
{
  const OpSignature *sig = op_signature(s->n->op);
  for (uint32_t i = 0; i < sig->n_attrs; i++) {
    const AttrInfo *a = &sig->attr[i];
    if (strlen(a->name) != n || memcmp(a->name, name, n) != 0) continue;
    if (a->kind == ATTR_float) return real_text(s->k, s->n->attr[i].f);
    long long v = s->n->attr[i].i;
    return arena_printf(s->k->c->arena, v < 0 ? "(%lld)" : "%lld", v);
  }
  assert(!"a word of the op table that nobody knows");
  return "";
}

static bool is_word(const char *name, size_t n, const char *word)
{
  return strlen(word) == n && memcmp(name, word, n) == 0;
}

static const char *dollar_word(const CodeScope *s, const char *name, size_t n)
{
  Arena *a = s->k->c->arena;
  if (is_word(name, n, "i")) return s->index;
  if (is_word(name, n, "c")) return s->column;
  if (is_word(name, n, "n") && s->length_text) return s->length_text;
  if (is_word(name, n, "n"))
    return s->integers ? arena_printf(a, "%lld", (long long)s->length)
                       : real_text(s->k, (double)s->length);
  if (op_info[s->n->op].shape == shape_channel_join) {
    const Node *parts = ir_node(s->k->g, s->n->in[0]);
    if (is_word(name, n, "parts")) return arena_printf(a, "%lld", (long long)parts->dim[1]);
    if (is_word(name, n, "channels")) return arena_printf(a, "%lld", (long long)parts->dim[2]);
  }
  if (is_word(name, n, "stream"))
    return arena_printf(a, "state->seed, state->body, %uu", s->n->stream);
  return attribute_text(s, name, n);
}

/* $0, $1|0, @1, &0 at `*at`; moves on behind it. */
static const char *operand_word(const CodeScope *s, const char **at, const char *end)
{
  bool row = **at == '@';
  uint32_t i = (uint32_t)((*at)[1] - '0');
  bool pointer = **at == '&';
  *at += 2;
  if (pointer) return s->k->arg_names[argument_of(s->k, s->n->in[i])];
  const char *absent = *at + 1, *stop = absent;
  if (*at < end && **at == '|' && *at + 1 < end && isdigit((unsigned char)**&absent)) {
    while (stop < end && isdigit((unsigned char)*stop)) stop++;
    *at = stop;
  }
  if (row) return s->row_value[i];
  if (s->element && s->element[i].text) return s->element[i].text;
  return arena_printf(s->k->c->arena, "R(%.*s.0)", (int)(stop - absent), absent);
}

/* What a name of a row program is called in the kernel; NULL for other words. */
static const char *local_text(const CodeScope *s, const char *name, size_t n)
{
  for (uint32_t i = 0; s->locals && s->locals[i]; i++)
    if (is_word(name, n, s->locals[i])) return s->local_texts[i];
  return NULL;
}

static size_t word_length(const char *at, const char *end)
{
  size_t n = 0;
  while (at + n < end && (isalnum((unsigned char)at[n]) || at[n] == '_')) n++;
  return n;
}

static void put_word(const CodeScope *s, Text *out, const char *at, size_t n)
{
  const char *local = local_text(s, at, n);
  if (local)
    text_printf(out, "%s%s", local, s->local_suffix);
  else
    text_add(out, at, n);
  if (s->integers && n > 5 && memcmp(at, "ampc_", 5) == 0) text_puts(out, "_int");
}

const char *code_text(const CodeScope *s, const char *code, size_t n)
{
  Text out;
  text_init(&out, s->k->c->arena);
  for (const char *at = code, *end = code + n; at < end;) {
    bool sign = *at == '$' || *at == '@' || *at == '&';
    bool operand = sign && at + 1 < end && isdigit((unsigned char)at[1]);
    if (operand) {
      text_puts(&out, operand_word(s, &at, end));
    } else if (*at == '$') {
      size_t length = word_length(at + 1, end);
      text_puts(&out, dollar_word(s, at + 1, length));
      at += 1 + length;
    } else if (isalpha((unsigned char)*at)) {
      size_t length = word_length(at, end);
      put_word(s, &out, at, length);
      at += length;
    } else {
      text_add(&out, at++, 1);
    }
  }
  return out.at;
}

/* "[name: text]" at s: the end of text; `*text` where it begins. */
static const char *bracket(const char *s, const char **text, const char **name, size_t *n)
{
  const char *colon = strchr(s, ':');
  *name = s + 1;
  *n = (size_t)(colon - s - 1);
  *text = colon + 1;
  return strchr(s, ']');
}

static bool attribute_is_set(const Node *n, const char *name, size_t size)
{
  const OpSignature *sig = op_signature(n->op);
  uint32_t i = 0;
  while (!is_word(name, size, sig->attr[i].name)) i++;
  return sig->attr[i].kind == ATTR_float ? n->attr[i].f != 0 : n->attr[i].i != 0;
}

const char *code_of(Compile *c, const Node *n)
{
  const char *code = op_info[n->op].code;
  if (!strchr(code, '[')) return code;
  Text out;
  text_init(&out, c->arena);
  while (*code) {
    size_t plain = strcspn(code, "[");
    text_add(&out, code, plain);
    code += plain;
    if (!*code) break;
    const char *text, *name;
    size_t size;
    const char *end = bracket(code, &text, &name, &size);
    if (attribute_is_set(n, name, size)) text_add(&out, text, (size_t)(end - text));
    code = end + 1;
  }
  return out.at;
}

/* ---- operands -----------------------------------------------------------------------------------
 */

static Operand literal(const Kernel *k, const Node *n)
{
  if (n->op == OP_number) return (Operand){real_text(k, n->attr[0].f), true};
  long long v = n->attr[0].i;
  return (Operand){arena_printf(k->c->arena, v < 0 ? "(%lld)" : "%lld", v), false};
}

Operand load_operand(const Kernel *k, Value in, const char *index)
{
  if (!in.id) return (Operand){0};
  const Node *root = ir_node(k->g, value_root(k->g, in));
  if (is_literal(root)) return literal(k, root);
  uint32_t i = argument_of(k, in);
  assert(i < k->args.n);
  const KernelArg *a = &k->args.at[i];
  const char *place = arena_printf(k->c->arena, "%s[%s]", k->arg_names[i], index);
  switch (a->type) {
  case AMPC_F16:
    return (Operand){arena_printf(k->c->arena, "from_f16(%s)", place), true};
  case AMPC_BF16:
    return (Operand){arena_printf(k->c->arena, "from_bf16(%s)", place), true};
  case AMPC_F32:
    return (Operand){place, true};
  default:
    return (Operand){place, false};
  }
}

Operand as_real(const Kernel *k, Operand o)
{
  if (!o.text || o.real) return o;
  char *end;
  long long v = strtoll(o.text + (*o.text == '('), &end, 10);
  if (end != o.text && (*end == 0 || *end == ')')) return (Operand){real_text(k, (double)v), true};
  return (Operand){arena_printf(k->c->arena, "(real)%s", o.text), true};
}

static Operand as_integer(const Kernel *k, Operand o)
{
  if (!o.text || !o.real) return o;
  return (Operand){arena_printf(k->c->arena, "ampc_to_i64(%s)", o.text), false};
}

static bool any_float(const Kernel *k, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id && dtype_is_float(ir_node(k->g, n->in[i])->dtype)) return true;
  return false;
}

Operand convert_operand(const Kernel *k, const Node *n, uint32_t input, Operand o)
{
  bool (*shape)(Compile *, Node *) = op_info[n->op].shape;
  bool condition = n->op == OP_where && input == 0;
  if (n->op == OP_cast || shape == shape_bitwise || n->op == OP_logical_not || condition) return o;
  bool real = dtype_is_float(n->dtype);
  if (shape == shape_compare) real = any_float(k, n);
  if (shape == shape_test) real = true;
  return real ? as_real(k, o) : as_integer(k, o);
}

static const char *cast_text(const Kernel *k, const Node *n, Operand x)
{
  Arena *a = k->c->arena;
  if (dtype_is_float(n->dtype)) return as_real(k, x).text;
  if (n->dtype == AMPC_BOOL) return arena_printf(a, "%s != 0", x.text);
  if (x.real) return arena_printf(a, "ampc_to_%s(%s)", ir_dtype_name(n->dtype), x.text);
  if (n->dtype == AMPC_I64) return arena_printf(a, "(long long)%s", x.text);
  return arena_printf(a, n->dtype == AMPC_I32 ? "(int)%s" : "(unsigned char)%s", x.text);
}

const char *node_expression(const Kernel *k, const Node *n, const Operand *in, const char *index)
{
  if (n->op == OP_cast) return cast_text(k, n, in[0]);
  if (op_info[n->op].tmpl == TMPL_move) return in[0].text;
  Operand *converted = arena_array(k->c->arena, Operand, n->n_in + 1);
  for (uint32_t i = 0; i < n->n_in; i++) converted[i] = convert_operand(k, n, i, in[i]);
  bool (*shape)(Compile *, Node *) = op_info[n->op].shape;
  bool real =
      shape == shape_compare ? any_float(k, n) : dtype_is_float(n->dtype) || shape == shape_test;
  CodeScope s = {.k = k, .n = n, .element = converted, .index = index, .integers = !real};
  const char *code = code_of(k->c, n);
  return code_text(&s, code, strlen(code));
}

/* ---- results ------------------------------------------------------------------------------------
 */

const char *rounded(const Kernel *k, DType d, const char *expression)
{
  switch (d) {
  case AMPC_F16:
    return arena_printf(k->c->arena, "round_f16(%s)", expression);
  case AMPC_BF16:
    return arena_printf(k->c->arena, "round_bf16(%s)", expression);
  case AMPC_I32:
    return arena_printf(k->c->arena, "(int)(%s)", expression);
  case AMPC_U8:
    return arena_printf(k->c->arena, "(unsigned char)(%s)", expression);
  default:
    return expression;
  }
}

const char *stored(const Kernel *k, DType d, const char *expression)
{
  switch (d) {
  case AMPC_F16:
    return arena_printf(k->c->arena, "to_f16(%s)", expression);
  case AMPC_BF16:
    return arena_printf(k->c->arena, "to_bf16(%s)", expression);
  case AMPC_I32:
    return arena_printf(k->c->arena, "(int)(%s)", expression);
  case AMPC_U8:
  case AMPC_BOOL:
    return arena_printf(k->c->arena, "(unsigned char)(%s)", expression);
  default:
    return expression;
  }
}
