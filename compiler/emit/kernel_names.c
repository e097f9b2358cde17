/* Names, types and literals in kernels. */
#include "kernel_parts.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- types --------------------------------------------------------------------------------------
 */

const char *element_type(const Kernel *k, const KernelArg *a)
{
  static const char *const of_type[AMPC_DTYPE_COUNT] = {
      [AMPC_F32] = "real",          [AMPC_F16] = "f16",       [AMPC_BF16] = "bf16",
      [AMPC_I32] = "int",           [AMPC_I64] = "long long", [AMPC_U8] = "unsigned char",
      [AMPC_BOOL] = "unsigned char"};
  (void)k;
  switch (a->role) {
  case ARG_state:
    return "ampc_state";
  case ARG_optimizer:
    return "ampc_optimizer";
  case ARG_metric:
    return "ampc_metric";
  default:
    break;
  }
  bool host_float = a->place.space == AMPC_STATE && a->type == AMPC_F32;
  return host_float ? "float" : of_type[a->type];
}

const char *local_type(DType d)
{
  return dtype_is_float(d) ? "real" : d == AMPC_I64 ? "long long" : "int";
}

/* ---- names --------------------------------------------------------------------------------------
 */

/* Words that kernels use themselves: keywords, locals of frames and of row programs. */
static const char *const reserved[] = {
    "a",        "auto",      "b",        "bf16",     "break",     "c",          "case",
    "char",     "column",    "const",    "continue", "d",         "default",    "do",
    "double",   "else",      "enum",     "exp",      "extern",    "f16",        "first",
    "float",    "for",       "goto",     "i",        "if",        "inline",     "int",
    "j",        "k",         "lane",     "log",      "long",      "m",          "main",
    "mean",     "n",         "o",        "q",        "r",         "real",       "register",
    "restrict", "return",    "row",      "rstd",     "s",         "short",      "signed",
    "sizeof",   "state",     "static",   "struct",   "switch",    "t",          "this",
    "new",      "delete",    "class",    "template", "operator",  "typedef",    "union",
    "unsigned", "void",      "volatile", "while",    "width",     "z",          "R",
    "COLUMNS",  "DEVICE",    "input",    "work",     "master",    "grad",       "buffer",
    "copy16",   "copybf",    "moment1",  "moment2",  "params",    "optimizers", "settings",
    "sources",  "metrics",   "outputs",  "blocks",   "kernels",   "program",    "private",
    "public",   "protected", "virtual",  "friend",   "namespace", "using",      "bool",
    "true",     "false",     "try",      "catch",    "throw",     "typename",   "and",
    "begin",    "end",       "or",       "not",      "xor",       "asm",        "export",
    "explicit", "mutable"};

bool reserved_name(const char *s, size_t n)
{
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strlen(reserved[i]) == n && memcmp(reserved[i], s, n) == 0) return true;
  if (n > 1 && s[0] == 't' && strspn(s + 1, "0123456789") >= n - 1) return true; /* t14 */
  return n >= 5 && memcmp(s, "ampc_", 5) == 0;
}

/* What the value is called in the job, as far as C allows; NULL where it has no name. */
static const char *source_name(const Kernel *k, Value v)
{
  const Node *n = ir_node(k->g, v);
  if (is_working_copy(k->g, v)) n = ir_node(k->g, n->in[0]);
  const char *from = n->op == OP_param ? k->g->params.at[n->attr[0].i].path : n->name;
  if (!from || !*from) return NULL;
  char *name = arena_strdup(k->c->arena, from);
  for (char *s = name; *s; s++)
    if (!isalnum((unsigned char)*s)) *s = '_';
  if (isdigit((unsigned char)*name)) name = arena_printf(k->c->arena, "p%s", name);
  return reserved_name(name, strlen(name)) ? arena_printf(k->c->arena, "%s_%u", name, v.id) : name;
}

static const char *value_name(const Kernel *k, const KernelArg *a)
{
  const Node *anchor = ir_node(k->g, k->group->anchor);
  if (k->group->anchor.id && op_info[anchor->op].tmpl == TMPL_file) {
    for (uint32_t i = 0; i < anchor->n_in; i++) /* templates know the names of the signature */
      if (value_root(k->g, anchor->in[i]).id == a->value.id)
        return arena_printf(k->c->arena, "%s_at", op_signature(anchor->op)->input[i].name);
    return anchor->op == OP_grad_norm ? "partials" : "out";
  }
  const char *name = source_name(k, a->value);
  if (name) return name;
  return arena_printf(k->c->arena, "%s%u", op_info[ir_node(k->g, a->value)->op].name, a->value.id);
}

static const char *argument_name(const Kernel *k, uint32_t i)
{
  static const char *const of_role[] = {
      [ARG_state] = "state",     [ARG_optimizer] = "optimizer", [ARG_metric] = "metric",
      [ARG_grad] = "grad",       [ARG_master] = "master",       [ARG_moment1] = "moment1",
      [ARG_moment2] = "moment2", [ARG_copy16] = "copy16",       [ARG_copybf] = "copybf",
      [ARG_buffer] = "buffer"};
  const KernelArg *a = &k->args.at[i];
  if (a->role != ARG_in && a->role != ARG_out) return of_role[a->role];
  const char *name = value_name(k, a);
  for (uint32_t j = 0; j < i; j++)
    if (strcmp(k->arg_names[j], name) == 0)
      return arena_printf(k->c->arena, "%s_%u", name, a->value.id);
  return name;
}

void name_arguments(Kernel *k)
{
  k->arg_names = arena_array(k->c->arena, const char *, k->args.n + 1);
  for (uint32_t i = 0; i < k->args.n; i++) k->arg_names[i] = argument_name(k, i);
}

static bool is_written(const KernelArg *a, bool file)
{
  return a->role != ARG_in && (a->role != ARG_state || file);
}

const char *argument_list(const Kernel *k)
{
  const Node *anchor = ir_node(k->g, k->group->anchor);
  bool file = k->group->anchor.id && op_info[anchor->op].tmpl == TMPL_file;
  Text t;
  text_init(&t, k->c->arena);
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    text_printf(&t, "%s%s%s *__restrict__ %s", i ? ", " : "", is_written(a, file) ? "" : "const ",
                element_type(k, a), k->arg_names[i]);
  }
  return t.at;
}

uint32_t argument_of(const Kernel *k, Value v)
{
  Value root = value_root(k->g, v);
  for (uint32_t i = 0; i < k->args.n; i++)
    if (k->args.at[i].value.id == root.id && root.id) return i;
  return k->args.n;
}

/* ---- numbers ------------------------------------------------------------------------------------
 */

const char *real_text(const Kernel *k, double v)
{
  if (isnan(v)) return "ampc_nan()";
  if (isinf(v)) return v > 0 ? "ampc_inf()" : "(-ampc_inf())";
  if (v == rint(v) && fabs(v) < 1e15) return arena_printf(k->c->arena, "R(%.1f)", v);
  char s[40];
  for (int digits = 1; digits <= 17; digits++) { /* the shortest form that reads back the same */
    snprintf(s, sizeof s, "%.*g", digits, v);
    if (strtod(s, NULL) == v) break;
  }
  return arena_printf(k->c->arena, "R(%s)", s);
}
