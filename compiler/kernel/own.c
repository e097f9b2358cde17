/* Prints kernels of the job's own ops: the user's text unchanged, in a frame that declares what the
 * text uses: pointers, types of elements, sizes and numbers.
 *
 * The `#line` before the text makes compilers report the job's lines. The `#line` after the text is
 * corrected when the whole output is known (own_lines.c).
 *
 * On CUDA a 16-bit element is a struct that converts itself (op_f16 of templates/cuda.cuh). Host
 * texts are C, so there 16-bit tensors are floats in scratch memory, converted before and after the
 * text. */
#include "compiler/base/user_text.h"
#include "compiler/graph/own.h"
#include "kernels.h"
#include "kernel_parts.h"
#include <ctype.h>
#include <string.h>

static const Node *own_node(const Kernel *k)
{
  return ir_node(k->g, k->group->anchor);
}

static const OwnText *own_text(const Kernel *k)
{
  return &own_of(own_node(k))->text[target_of(k->c->options.target)->kind];
}

/* True if the text uses the name; the frame declares only such names. */
static bool text_names(const Kernel *k, const char *name)
{
  const OwnText *t = own_text(k);
  for (const char *s = t->text, *end = s + t->size; t->text && s < end; s++) {
    if (!isalpha((unsigned char)*s) && *s != '_') continue;
    const char *from = s;
    while (s < end && in_name(*s)) s++;
    if (is_name(from, (size_t)(s - from), name)) return true;
  }
  return false;
}

/* ---- tensors ---- */

/* Returns tensor i: first inputs, then outputs. */
static const OwnTensor *tensor(const Kernel *k, uint32_t i)
{
  const OwnOp *own = own_of(own_node(k));
  return i < own->n_inputs ? &own->input[i] : &own->output[i - own->n_inputs];
}

static uint32_t n_tensors(const Kernel *k)
{
  const OwnOp *own = own_of(own_node(k));
  return own->n_inputs + own->n_outputs;
}

/* Returns the type of an element as the text uses it. */
static const char *own_type(const Kernel *k, DType d)
{
  KernelArg a = {.role = ARG_in, .type = d};
  if (ampc_is_narrow(d)) return is_cpu_target(k->c) ? "real" : conversion_name(k, "op", d);
  return element_type(&a);
}

/* Returns the name of an argument: the name of its first tensor. If that tensor is converted, its
 * floats have that name and the argument is called "<name>_bits". */
const char *own_argument_name(const Kernel *k, const KernelArg *a)
{
  for (uint32_t i = 0; i < n_tensors(k); i++) {
    Value v = own_tensor(k->g, k->group, i);
    if (!v.id || v.id != a->value.id) continue;
    bool converted = own_scratch_at(k->c, k->group, i) >= 0;
    return converted ? arena_printf(k->c->arena, "%s_bits", tensor(k, i)->name)
                     : tensor(k, i)->name;
  }
  return "scratch";
}

/* Threads of a GPU may exchange results: see argument_list. */
const char *own_argument_list(const Kernel *k)
{
  Text t = text_new(k->c->arena);
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    const char *type = is_cpu_target(k->c) || a->place.space == AMPC_STATE ? element_type(a)
                                                                           : own_type(k, a->type);
    bool read = a->role == ARG_in;
    text_printf(&t, "%s%s%s *%s%s", i ? ", " : "", read ? "const " : "", type,
                read || is_cpu_target(k->c) ? "__restrict__ " : "", k->arg_names[i]);
  }
  return t.at;
}

/* Declares a tensor whose name is not its argument's: it is passed twice or converted. */
static void put_tensor(const Kernel *k, uint32_t i)
{
  Value v = own_tensor(k->g, k->group, i);
  const char *name = tensor(k, i)->name, *given = v.id ? pointer_name(k, v) : NULL;
  int64_t at = own_scratch_at(k->c, k->group, i);
  DType dtype = own_tensor_type(k->c, k->group, i);
  const char *type = own_type(k, dtype);
  bool input = i < own_of(own_node(k))->n_inputs;
  if (at < 0 && strcmp(name, given) != 0)
    EMIT(k->p, "const %s *const %s = %s;\n", type, name, given);
  if (at < 0) return;
  bool same = strcmp(type, "real") == 0;
  const char *from = same ? "scratch" : arena_printf(k->c->arena, "(%s *)(void *)scratch", type);
  const int64_t real = ir_dtype_size(k->c, AMPC_F32);
  const int64_t unit = same ? real : ir_dtype_size(k->c, dtype);
  EMIT(k->p, "%s *const %s = %s + %lld;%s\n", type, name, from, (long long)(at * real / unit),
       v.id ? "" : " // nobody reads it");
  if (input)
    EMIT(k->p, "for (int64_t at = 0; at < %lld; at++) %s[at] = %s(%s[at]);\n",
         (long long)ir_elements(ir_node(k->g, v)), name, conversion_name(k, "from", dtype), given);
}

static void put_own_results(const Kernel *k)
{
  for (uint32_t i = own_of(own_node(k))->n_inputs; i < n_tensors(k); i++) {
    Value v = own_tensor(k->g, k->group, i);
    const Node *n = ir_node(k->g, v);
    if (!v.id || own_scratch_at(k->c, k->group, i) < 0) continue;
    EMIT(k->p, "for (int64_t at = 0; at < %lld; at++) %s[at] = %s(%s[at]);\n",
         (long long)ir_elements(n), pointer_name(k, v), conversion_name(k, "to", n->dtype),
         tensor(k, i)->name);
  }
}

static void put_types(const Kernel *k)
{
  for (uint32_t i = 0; i < n_tensors(k); i++) {
    const char *name = arena_printf(k->c->arena, "%s_t", tensor(k, i)->name);
    if (text_names(k, name))
      EMIT(k->p, "typedef %s %s;\n", own_type(k, own_tensor_type(k->c, k->group, i)), name);
  }
}

static void put_numbers(const Kernel *k)
{
  const OwnOp *own = own_of(own_node(k));
  for (uint32_t i = 0; i < own->n_numbers; i++) {
    const OwnNumber *number = &own->number[i];
    if (!text_names(k, number->name)) continue;
    if (number->is_float)
      EMIT(k->p, "const real %s = %s;\n", number->name, real_text(k, number->value.f));
    else
      EMIT(k->p, "const int64_t %s = %lld;\n", number->name, (long long)number->value.i);
  }
}

/* ---- the text ---- */

static void put_place(const Kernel *k, uint32_t line, const Place *place)
{
  const char *file = file_name(place->source->path);
  const char *text =
      arena_printf(k->c->arena, "#line %u %s", line, string_literal(k->c->arena, file));
  printer_text(k->p, "compiler/kernel/own.c", __LINE__, text, strlen(text));
}

/* Prints the text with its original columns: the first line begins in its column of the job. In a
 * string with escapes, every line is reported as the line of the string. */
static void put_text(const Kernel *k)
{
  const OwnText *t = own_text(k);
  const char *s = t->text, *end = s + t->size, *path;
  Place place = diag_place(k->c, t->span);
  uint32_t line = place.line;
  size_t blank = strspn(s, " \t\r");
  bool skips = s + blank < end && s[blank] == '\n';
  if (skips) s += blank + 1, line += t->raw;
  path = arena_printf(k->c->arena, "%s", place.source->path);
  put_place(k, line, &place);
  while (end > s && strchr(" \t\r\n", end[-1])) end--;
  for (bool first = !skips; s < end; first = false, line += t->raw) {
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    size_t n = (size_t)((stop ? stop : end) - s), pad = first ? place.column - 1 : 0;
    size_t kept = n && s[n - 1] == '\r' ? n - 1 : n;
    const char *text = arena_printf(k->c->arena, "%*s%.*s", (int)pad, "", (int)kept, s);
    if (!t->raw && !first) put_place(k, line, &place);
    printer_text(k->p, path, line, text, strlen(text));
    if (!*text) EMIT(k->p, "\n");
    s += n + 1;
  }
  printer_text(k->p, "compiler/kernel/own.c", __LINE__, own_line_after, strlen(own_line_after));
}

/* Prints copies of pointers for each part, since a text may move its pointers, as in `x += part *
 * D`. No tensor has a name that begins like these copies: own_names.c. */
static void put_part_pointers(const Kernel *k)
{
  uint32_t inputs = own_of(own_node(k))->n_inputs;
  for (int inner = 0; inner < 2; inner++) {
    k->p->indent++;
    for (uint32_t i = 0; i < n_tensors(k); i++) {
      const char *name = tensor(k, i)->name, *is_const = i < inputs ? "const " : "";
      const char *type = own_type(k, own_tensor_type(k->c, k->group, i));
      if (!text_names(k, name)) continue;
      if (inner)
        EMIT(k->p, "%s%s *%s = __%s;\n", is_const, type, name, name);
      else
        EMIT(k->p, "%s%s *const __%s = %s;\n", is_const, type, name, name);
    }
    if (!inner) EMIT(k->p, "{\n");
  }
  k->p->indent -= 2;
}

/* Under Note [real64] prints `float` of a host text as double, and calls of float functions as
 * calls of double functions. */
static void put_float(const Kernel *k, bool as_double)
{
  static const char *const functions[] = {
      "acos", "acosh", "asin",  "asinh", "atan",  "atan2", "atanh", "cbrt",  "ceil",
      "cos",  "cosh",  "erf",   "erfc",  "exp",   "exp2",  "expm1", "fabs",  "floor",
      "fma",  "fmax",  "fmin",  "fmod",  "hypot", "log",   "log10", "log1p", "log2",
      "pow",  "rint",  "round", "sin",   "sinh",  "sqrt",  "tan",   "tanh",  "trunc"};
  if (!k->c->options.real64 || !is_cpu_target(k->c)) return;
  EMIT(k->p, as_double ? "#define float double\n" : "#undef float\n");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (!text_names(k, arena_printf(k->c->arena, "%sf", functions[i]))) continue;
    if (as_double)
      EMIT(k->p, "#define %sf %s\n", functions[i], functions[i]);
    else
      EMIT(k->p, "#undef %sf\n", functions[i]);
  }
}

/* Prints the text in a frame: a thread for each i, a part of the host's work, or just braces. */
static void put_frame(const Kernel *k)
{
  const OwnOp *own = own_of(own_node(k));
  bool cpu = is_cpu_target(k->c), parts = cpu && own->parts > 0;
  if (parts) {
    EMIT(k->p, "ROW_LOOP(1, int64_t, part, %lld) {\n", (long long)own->parts);
    put_part_pointers(k);
  } else if (!cpu && own->threads > 0) {
    EMIT(k->p, "const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n");
    EMIT(k->p, "if (i < %lld) {\n", (long long)own->threads);
  } else {
    EMIT(k->p, "{\n");
  }
  put_float(k, true);
  put_text(k);
  put_float(k, false);
  if (parts) EMIT(k->p, "  }\n");
  EMIT(k->p, "}\n");
}

void emit_own(Kernel *k)
{
  const OwnOp *own = own_of(own_node(k));
  bool cpu = is_cpu_target(k->c);
  if (!own_text(k)->text) { /* a check of kernels compiles for both targets */
    EMIT(k->p, "#error \"op %s has no text for this machine\"\n", own->name);
    return;
  }
  if (cpu && k->part->at.grid == 1) EMIT(k->p, "FIRST_BLOCK;\n");
  put_types(k);
  put_numbers(k);
  for (uint32_t i = 0; i < n_tensors(k); i++) put_tensor(k, i);
  if (!cpu && own->shared > 0)
    EMIT(k->p, "__shared__ __align__(16) unsigned char shared[%lld];\n", (long long)own->shared);
  put_frame(k);
  put_own_results(k);
}
