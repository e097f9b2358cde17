/* Nodes as calls of the functions of ops.amp, which says how. A node becomes the expression
 * that its function returns; the compiler tells the values of conditions and numbers in it. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "read_ops.h"

enum { LAYER_TENSORS = 4, LAYER_BEGINS = 1, LAYER_ENDS }; /* marks around a layer in code */

typedef struct Inline {
  Reader *r;
  NameMap texts; /* of parameters and variables */
  const char *stem;
  Value *tensor[LAYER_TENSORS]; /* of the layer; NULL: absent */
  uint32_t n;                   /* 0: the node is no layer */
  bool cells;                   /* the layer is recurrent */
  bool plain;                   /* it has statistics alone */
} Inline;

/* Whether the code is only a value: "$12". */
static bool is_value(const char *code)
{
  return *code == '$' && !code[1 + strspn(code + 1, "0123456789")];
}

/* ---- layers ---- */

static bool is_vector(const Value *v)
{
  return v && v->kind == VALUE_weight && !v->turned && v->tensor->n_dims == 1;
}

/* A layer has one slope, or one for each channel; elsewhere slopes are broadcast. */
static bool are_slopes(const Value *x, const Value *w)
{
  return rank_of(x) > 1 && w->tensor->n_dims == 1 &&
         (rank_of(x) == 2 || w->slopes || w->tensor->dims[0] == 1);
}

/* Whether a layer may have the value as tensor i; NULL: it goes without. */
static bool is_tensor_of(const Inline *n, uint32_t i, const Value *v)
{
  if (n->cells) return v ? v->kind == VALUE_weight && !v->turned : i == 2;
  if (i > 1) return is_vector(v); /* statistics */
  return v ? is_weight(v) : i == 1 || n->plain;
}

static bool has_parameter(const Function *f, const char *name)
{
  uint32_t i = 0;
  while (i < f->params.n && strcmp(f->params.at[i].name.text, name) != 0) i++;
  return i < f->params.n;
}

/* Finds the tensors of the layer that the node may be. */
static void find_tensors(Inline *n)
{
  Reader *r = n->r;
  unsigned inputs = weight_inputs(r->node->op_type, &n->stem);
  bool good = true;
  n->cells = inputs == CELL_INPUTS;
  n->plain = inputs >> 4 && is_all(in(r, 1), 1) && is_zero(in(r, 2));
  for (; inputs >> (n->n + 1); n->n++) {
    Value *v = in(r, n->n + 1);
    bool zero = is_zero(v) && (n->n == 1 || n->cells);
    n->tensor[n->n] = zero || (n->n < 2 && n->plain) ? NULL : v;
    good = good && is_tensor_of(n, n->n, n->tensor[n->n]);
  }
  if (good && strcmp(n->stem, "prelu") == 0) good = are_slopes(in(r, 0), n->tensor[0]);
  if (!good) n->n = 0;
  for (uint32_t i = 0; i < n->n; i++)
    if (n->tensor[i]) ask_tensor(r, n->tensor[i]);
}

/* Makes the layer in the code, or if there is none, the tensors that it has. layer() takes its path
 * from the name of the first tensor: statistics alone have that of the weight. */
static const char *with_layer(Inline *n, const char *code)
{
  static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
  Reader *r = n->r;
  const char *begin = strchr(code, LAYER_BEGINS), *end = strchr(code, LAYER_ENDS);
  uint32_t first = n->tensor[0] ? 0 : 2;
  for (uint32_t i = 0; i < n->n && !begin; i++) {
    const char *name = n->tensor[i] ? text(r, "$%u", n->tensor[i]->id) : code + strlen(code),
               *at = strstr(code, name);
    if (*name && at && !isdigit((unsigned char)at[strlen(name)])) whole_ref(r, n->tensor[i]);
  }
  if (!begin) return code;
  const char *made = arena_strndup(r->arena, begin + 1, (size_t)(end - begin - 1));
  Value *of = n->tensor[first];
  const char *name = of->name, *dot = strrchr(name, '.');
  if (first && dot && strcmp(dot, ".running_mean") == 0)
    of->name = text(r, "%.*s.weight", (int)(dot - name), name);
  made = n->cells ? cells_layer(r, n->stem, made, n->tensor)
                  : layer(r, n->stem, made, n->tensor + first, names + first, n->n - first);
  of->name = name;
  return text(r, "%.*s%s%s", (int)(begin - code), code, made, end + 1);
}

/* ---- arguments ---- */

/* The text of input i, whose numbers a function needs when the job compiles: "3", "[1, 2]". */
static const char *known_input(Reader *r, const Value *v, const Param *p, uint32_t i)
{
  double number;
  Text all = text_new(r->arena);
  bool list = strcmp(p->type.name, "list") == 0;
  if (v->kind == VALUE_items && (list || v->n == 1))
    return text(r, list ? "[%s]" : "%s", list_text(r, v->item, v->n));
  if (!list && one_number(v, &number))
    return strcmp(p->type.name, "int") == 0 ? text(r, "%.0f", number) : float_text(r, number);
  if (!list || !v->tensor || rank_of(v) != 1 || tensor_elements(v->tensor) > MOST_ITEMS)
    return refuse(r, text(r, "with %s computed in input %u", p->name.text, i)), NULL;
  for (int64_t k = 0; k < tensor_elements(v->tensor); k++)
    list_add(&all, float_text(r, tensor_real(v->tensor, k)));
  return text(r, "[%s]", all.at);
}

/* A word in quotes; NULL: it has other characters. */
static const char *word_text(Reader *r, ProtobufCBinaryData word)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ.,-> ";
  const char *plain = arena_strndup(r->arena, (const char *)word.data, word.len);
  return *plain && !plain[strspn(plain, letters)] ? text(r, "\"%s\"", plain) : NULL;
}

static const char *attribute_text(Reader *r, const OnnxAttribute *a)
{
  Text all = text_new(r->arena);
  bool good = !a->n_floats && !a->t && !a->g && a->n_ints + a->n_strings <= MOST_ITEMS;
  if (a->has_i) return text(r, "%" PRId64, a->i);
  if (a->has_f) return float_text(r, (double)a->f);
  for (size_t i = 0; good && i < a->n_ints; i++) list_add(&all, text(r, "%" PRId64, a->ints[i]));
  for (size_t i = 0; good && i < a->n_strings; i++) {
    const char *word = word_text(r, a->strings[i]);
    good = word != NULL;
    if (good) list_add(&all, word);
  }
  const char *value = !good ? NULL : a->has_s ? word_text(r, a->s) : text(r, "[%s]", all.at);
  if (value) return value;
  const char *name = name_clean(r, a->name, "attribute");
  const char *given = a->has_s ? arena_strndup(r->arena, (const char *)a->s.data, a->s.len) : "";
  refuse(r, text(r, a->has_s ? "with %s=%s" : "with a %s of another kind%s", name, given));
  return NULL;
}

/* Whether it is a constant without elements. */
static bool is_empty(const Value *v)
{
  bool empty = false;
  for (uint32_t i = 0; v && v->kind == VALUE_number && i < v->n; i++)
    empty = empty || (v->item[i].n == 0 && !v->item[i].text);
  return empty;
}

/* The inputs, or their types. */
static const char *list_of_inputs(Reader *r, bool types)
{
  Text all = text_new(r->arena);
  for (size_t i = 0; i < r->node->n_input; i++) {
    const Value *v = in(r, i);
    const char *type = v && v->type ? type_word(v->type) : NULL;
    if (types)
      list_add(&all, text(r, "\"%s\"", type ? type : ""));
    else if (!is_empty(v))
      list_add(&all, v ? whole_ref(r, v) : "none");
  }
  return text(r, "[%s]", all.at);
}

static const char *known_sizes(Reader *r, const Value *x)
{
  Text all = text_new(r->arena);
  for (int64_t i = 0, size; i < rank_of(x); i++)
    list_add(&all, size_of(x, i, &size) ? text(r, "%" PRId64, size) : "-1");
  return text(r, "[%s]", all.at);
}

/* The value of a parameter whose name has a meaning of its own; NULL: another name. */
static const char *own_argument(const Inline *n, const char *name)
{
  Reader *r = n->r;
  if (strcmp(name, "opset") == 0) return text(r, "%" PRId64, r->opset);
  if (strcmp(name, "results") == 0) return text(r, "%u", n_results(r));
  if (strcmp(name, "op") == 0) return text(r, "\"%s\"", r->node->op_type);
  if (strcmp(name, "layer") == 0) return n->n ? "true" : "false";
  if (strcmp(name, "all") == 0) return list_of_inputs(r, false);
  if (strcmp(name, "types") == 0) return list_of_inputs(r, true);
  return strcmp(name, "x_shape") == 0 ? known_sizes(r, in(r, 0)) : NULL;
}

/* Input i; NULL: it is absent. *tensor: a layer may have it. */
static const Value *argument_of(const Inline *n, const char *name, uint32_t i, bool *tensor)
{
  const Value *v = in(n->r, i);
  *tensor = i && i <= n->n;
  if (*tensor) return n->tensor[i - 1];
  return strncmp(name, "state_", 6) == 0 && is_zero(v) ? NULL : v;
}

/* The value of parameter i: the attribute of its name, or input i. *usual: its usual value, if it
 * is absent. NULL after refusing. */
static const char *argument_text(const Inline *n, const Param *p, uint32_t i, const Expr **usual)
{
  Reader *r = n->r;
  const char *name = p->name.text, *own = own_argument(n, name);
  bool tensor;
  if (own) return own;
  const OnnxAttribute *a = p->type.name ? attribute(r, name) : NULL;
  if (a) return attribute_text(r, a);
  const Value *v = argument_of(n, name, i, &tensor);
  if (v && p->type.name) return known_input(r, v, p, i);
  if (v && tensor) return text(r, "$%u", v->id);
  if (v) return !name[1] && strchr("abc", *name) ? operand(r, i) : whole_ref(r, v);
  *usual = p->value;
  if (p->value) return ask_source(r, p->value->span.start, p->value->span.end);
  return n->n ? "none" : (refuse(r, text(r, "without %s", name)), NULL);
}

/* ---- expressions ---- */

typedef enum Stands { ALONE, OPERAND, TIGHT } Stands; /* TIGHT: of `**`, `-`, `.` or `[` */

static const char *shown(Inline *n, const Expr *e, Stands as);

/* The value of an expression. NULL after refusing the node: it depends on the arguments. */
static const char *fixed_value(const Inline *n, const Expr *e)
{
  const char *value = ask_value(n->r, e);
  if (value == VARIES) return refuse(n->r, "with sizes that depend on the arguments"), NULL;
  return value;
}

static bool holds(const Inline *n, const Expr *e)
{
  const char *value = fixed_value(n, e);
  return value && *value == 't';
}

static const char *bracketed(const Inline *n, const char *code, Stands as)
{
  int depth = 0;
  bool loose = *code == '-' && as == TIGHT;
  for (const char *at = code; *at; at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    loose = loose || (depth == 0 && *at == ' ');
  }
  return loose && as != ALONE ? text(n->r, "(%s)", code) : code;
}

/* Adds the source between *from and the part, then the part's code. */
static void add_part(Inline *n, Text *out, uint32_t *from, const Expr *part, Stands as)
{
  if (!part) return;
  text_puts(out, ask_source(n->r, *from, part->span.start));
  text_puts(out, shown(n, part, as));
  *from = part->span.end;
}

/* Whether an argument is none, or usually(x, y) with equal x and y. */
static bool is_left_out(Inline *n, const Expr *e, const char *value)
{
  if (strcmp(called_name(e), "usually") != 0) return strcmp(value, "none") == 0;
  const char *given = ask_value(n->r, e), *usual = ask_value(n->r, e->as.call.args.at[1].value);
  return given && usual && strcmp(given, usual) == 0;
}

/* Arguments, or the elements of a list. An argument that others follow by place stays. */
static const char *list_shown(Inline *n, const ArgList *all, bool arguments)
{
  Text out = text_new(n->r->arena), left_out = text_new(n->r->arena);
  for (uint32_t i = 0; i < all->n; i++) {
    const char *name = all->at[i].key.text, *value = shown(n, all->at[i].value, ALONE);
    if (arguments && is_left_out(n, all->at[i].value, value)) {
      if (!name) list_add(&left_out, value);
      continue;
    }
    if (!name && left_out.n) list_add(&out, left_out.at), left_out = text_new(n->r->arena);
    if (all->at[i].star && *value == '[')
      value = text(n->r, "%.*s", (int)strlen(value) - 2, value + 1);
    list_add(&out, name ? text(n->r, "%s=%s", name, value) : value);
  }
  return out.at;
}

/* An element of a list, or those from one on. */
static const char *elements(Inline *n, const char *list, const Sub *s)
{
  const char *value = fixed_value(n, s->kind == SUB_index ? s->index : s->start), *at = list + 1;
  if (!value || n->r->dropped) return "";
  assert(isdigit((unsigned char)*value));
  int depth = 0;
  for (int64_t k = strtoll(value, NULL, 10); k > 0 && *at; at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    k -= *at == ',' && depth == 0;
  }
  at += *at == ' ';
  const char *end = at;
  for (depth = 0; *end && (depth || (*end != ',' && *end != ']')); end++)
    depth += (*end == '(' || *end == '[') - (*end == ')' || *end == ']');
  return s->kind == SUB_index ? text(n->r, "%.*s", (int)(end - at), at) : text(n->r, "[%s", at);
}

static const char *parts_shown(Inline *n, const Expr *e)
{
  Text out = text_new(n->r->arena);
  uint32_t from = e->span.start;
  if (e->kind == EXPR_list || e->kind == EXPR_tuple)
    return text(n->r, e->kind == EXPR_list ? "[%s]" : "(%s)", list_shown(n, &e->as.args, false));
  if (e->kind == EXPR_unary) add_part(n, &out, &from, e->as.unary.operand, TIGHT);
  if (e->kind == EXPR_attr) add_part(n, &out, &from, e->as.attr.base, TIGHT);
  if (e->kind == EXPR_binary) {
    add_part(n, &out, &from, e->as.binary.left, e->as.binary.op == OPER_pow ? TIGHT : OPERAND);
    add_part(n, &out, &from, e->as.binary.right, OPERAND);
  }
  if (e->kind == EXPR_index) add_part(n, &out, &from, e->as.index.base, TIGHT);
  for (uint32_t i = 0; e->kind == EXPR_index && i < e->as.index.subs.n; i++) {
    const Sub *sub = &e->as.index.subs.at[i];
    add_part(n, &out, &from, sub->kind == SUB_index ? sub->index : sub->start, ALONE);
    if (sub->kind == SUB_slice) add_part(n, &out, &from, sub->stop, ALONE);
  }
  text_puts(&out, ask_source(n->r, from, e->span.end));
  return out.at;
}

static const char *variable(Inline *n, const Expr *e)
{
  return e->kind == EXPR_name ? names_get(&n->texts, e->as.name) : NULL;
}

static const char *call_shown(Inline *n, const Expr *e)
{
  const Expr *callee = e->as.call.callee;
  const char *name;
  if (callee->kind == EXPR_attr)
    name = text(n->r, "%s.%s", shown(n, callee->as.attr.base, TIGHT), callee->as.attr.name.text);
  else if (callee->kind == EXPR_call)
    name = text(n->r, "%c%s%c", LAYER_BEGINS, call_shown(n, callee), LAYER_ENDS);
  else
    name = callee->kind == EXPR_name && !variable(n, callee) ? callee->as.name
                                                             : shown(n, callee, ALONE);
  return text(n->r, "%s(%s)", name, list_shown(n, &e->as.call.args, true));
}

/* A call of a call is one of a layer. */
static bool has_layer(const Expr *e)
{
  return e->kind == EXPR_call && e->as.call.callee->kind == EXPR_call;
}

/* The code of an expression; if the compiler knows its value, the value. */
static const char *shown(Inline *n, const Expr *e, Stands as)
{
  const char *own = variable(n, e);
  if (e->kind == EXPR_float) return ask_source(n->r, e->span.start, e->span.end);
  if (own) return bracketed(n, own, as);
  if (e->kind == EXPR_cond)
    return shown(n, holds(n, e->as.cond.test) ? e->as.cond.then : e->as.cond.other, as);
  if (has_layer(e)) return call_shown(n, e);
  const char *value = n->r->dropped ? NULL : ask_value(n->r, e);
  if (!value) return "";
  if (*value && value != VARIES) return bracketed(n, value, as);
  if (e->kind == EXPR_call) return call_shown(n, e);
  const char *list = e->kind == EXPR_index ? shown(n, e->as.index.base, TIGHT) : "";
  return *list == '[' ? elements(n, list, e->as.index.subs.at) : parts_shown(n, e);
}

/* ---- statements ---- */

static void bind(Inline *n, const char *name, const char *value, const Expr *known)
{
  *names_at(&n->texts, name) = (void *)(uintptr_t)value;
  ask_bind(n->r, name, value, known);
}

/* A tensor becomes a step; any other value replaces the variable where it is used. */
static void inline_assign(Inline *n, const char *name, const Expr *e)
{
  const char *value = has_layer(e) ? "" : ask_value(n->r, e), *code = shown(n, e, ALONE);
  if (!value || n->r->dropped) return;
  bool step = !*value && !is_value(code);
  if (step) code = text(n->r, "$%u", between(n->r, with_layer(n, code))->id);
  bind(n, name, code, *value ? e : NULL);
}

static void inline_assert(Inline *n, const ExprList *e)
{
  const char *why = holds(n, e->at[0]) || n->r->dropped ? NULL : ask_value(n->r, e->at[1]);
  if (why) refuse(n->r, reason_of(n->r, text(n->r, "%.*s", (int)strlen(why) - 2, why + 1)));
}

/* The expressions that the statements return; NULL: none. */
static const char *inline_block(Inline *n, const Block *b)
{
  Text all = text_new(n->r->arena);
  const char *result = NULL;
  for (uint32_t i = 0; i < b->n && !result && !n->r->dropped; i++) {
    const Stmt *s = b->at[i];
    const ExprList *to = &s->as.assign.targets, *values = &s->as.assign.values;
    switch (s->kind) {
    case STMT_return:
      for (uint32_t k = 0; k < s->as.exprs.n && k < n_results(n->r); k++)
        list_add(&all, shown(n, s->as.exprs.at[k], ALONE));
      return all.at;
    case STMT_if:
      result =
          inline_block(n, holds(n, s->as.branch.test) ? &s->as.branch.then : &s->as.branch.other);
      break;
    case STMT_for:
      for (const char *at = fixed_value(n, s->as.loop.iter);
           at && !n->r->dropped && *at && *at != ']' && at[1] != ']';) {
        long long k = strtoll(at + 1, (char **)(uintptr_t)&at, 10);
        bind(n, s->as.loop.names.at[0].text, text(n->r, "%lld", k), NULL);
        inline_block(n, &s->as.loop.body);
      }
      break;
    case STMT_assert:
      inline_assert(n, &s->as.exprs);
      break;
    default:
      assert(s->kind == STMT_assign && to->n == 1 && to->at[0]->kind == EXPR_name);
      inline_assign(n, to->at[0]->as.name, values->at[0]);
    }
  }
  return result;
}

/* ---- nodes ---- */

/* The code of a call. given[i]: the text of parameter i; others are arguments of the node. NULL
 * after refusing. */
static const char *inline_call(Inline *n, const Function *f, const char *const *given,
                               uint32_t n_given)
{
  ask_enter(n->r);
  for (uint32_t i = 0; i < f->params.n; i++) {
    const Expr *usual = NULL;
    const char *value = i < n_given ? given[i] : argument_text(n, &f->params.at[i], i, &usual);
    if (!value) return NULL;
    bind(n, f->params.at[i].name.text, value, usual);
  }
  const char *code = inline_block(n, &f->body);
  return n->r->dropped ? NULL : code;
}

const char *call_prelude(Reader *r, const char *function, const char *const *given, uint32_t n)
{
  Inline all = {.r = r, .texts.arena = r->arena};
  return inline_call(&all, ask_function(r, function), given, n);
}

bool read_prelude(Reader *r)
{
  const Function *f = ask_function(r, text(r, "onnx_%s", r->node->op_type));
  Inline n = {.r = r, .texts.arena = r->arena};
  if (!f) return false;
  if (has_parameter(f, "layer")) find_tensors(&n);
  const char *code = inline_call(&n, f, NULL, 0);
  if (!code) return true;
  code = with_layer(&n, code);
  Value *of = is_value(code) ? r->values.at[strtoul(code + 1, NULL, 10)] : NULL;
  if (of && of->step == r->steps.n && of->kind == VALUE_tensor && !*of->name)
    code = r->steps.at[--r->steps.n].text; /* the latest variable is the result */
  else if (of)
    return give_value(r, of), true;
  give_results(r, code, n_results(r));
  bool several = n_results(r) == 1 && !r->dropped && result(r, 0) && !result(r, 0)->shape;
  if (several) r->steps.n--; /* only the first result is needed */
  if (several) give(r, text(r, "%s[0]", code));
  Value *x = in(r, 0), *y = result(r, 0);
  if (y && x && x->kind == VALUE_tensor && strstr("Flatten Squeeze Unsqueeze", r->node->op_type))
    y->viewed = x->viewed ? x->viewed : x;
  return true;
}
