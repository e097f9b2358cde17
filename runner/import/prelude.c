/* The functions of prelude.amp: calls of them, and those that a job needs. */
#include <inttypes.h>
#include <string.h>
#include "compiler/base/names.h"
#include "read_ops.h"

extern const char import_prelude[]; /* prelude.amp, which the build embeds */

const char *prelude_text(void)
{
  return import_prelude;
}

/* Whether some text calls the function. */
static bool calls(const char *text, const char *name, size_t n)
{
  for (const char *at = text; (at = strchr(at, *name)); at++)
    if (strncmp(at, name, n) == 0 && at[n] == '(' && (at == text || !in_name(at[-1]))) return true;
  return false;
}

/* A definition begins with its comment, and ends with a blank line. */
typedef struct Definition {
  const char *at, *name; /* `name`: "onnx_LRN(x, ..", NULL after the last one */
  size_t n;              /* bytes, without the blank line */
} Definition;

static Definition next_definition(const char *at)
{
  at += strspn(at, "\n");
  const char *end = strstr(at, "\n\n"), *name = strstr(at - 1, "\ndef ");
  return (Definition){at, name ? name + strlen("\ndef ") : NULL,
                      end ? (size_t)(end - at) : strlen(at)};
}

/* Whether a step calls the function, or one that a step calls. */
static bool is_needed(Reader *r, const Definition *d)
{
  size_t n = strcspn(d->name, "(");
  for (uint32_t i = 0; i < r->steps.n; i++)
    if (r->steps.at[i].needed && calls(r->steps.at[i].text, d->name, n)) return true;
  const char *from = strstr(import_prelude, "\n\n");
  for (Definition o = next_definition(from); o.name; o = next_definition(o.at + o.n)) {
    bool other = o.name != d->name &&
                 calls(arena_strndup(r->arena, o.name, o.n - (size_t)(o.name - o.at)), d->name, n);
    if (other && is_needed(r, &o)) return true;
  }
  return false;
}

void prelude_print(Reader *r, Text *out)
{
  const char *from = strstr(import_prelude, "\n\n"); /* behind the comment of the file */
  for (Definition d = next_definition(from); d.name; d = next_definition(d.at + d.n))
    if (is_needed(r, &d)) text_printf(out, "%.*s\n\n", (int)d.n, d.at);
}

/* ---- calls: onnx_GatherND(x, i, batch_dims=1) ---- */

/* The text of an input whose numbers a function needs when the job compiles: "3", "[1, 2]". */
static const char *known_input(Reader *r, const Value *v, const char *name, bool whole)
{
  double number;
  if (v && v->kind == VALUE_items && v->shape->rank == 1)
    return text(r, "[%s]", list_text(r, v->item, v->n));
  if (v && v->kind == VALUE_items && v->n == 1) return item_text(r, v->item[0]);
  if (v && one_number(v, &number)) return whole ? text(r, "%.0f", number) : float_text(r, number);
  if (v && v->kind == VALUE_weight && rank_of(v) == 1 && tensor_elements(v->tensor) <= MOST_ITEMS) {
    Text all = text_new(r->arena);
    for (int64_t i = 0; i < tensor_elements(v->tensor); i++)
      list_add(&all, float_text(r, tensor_real(v->tensor, i)));
    return text(r, "[%s]", all.at ? all.at : "");
  }
  return refuse(r, text(r, "with a computed %s", name)), "0";
}

static const char *attribute_text(Reader *r, const OnnxAttribute *a)
{
  Item *at;
  uint32_t n;
  attribute(r, a->name);
  if (a->has_i) return text(r, "%" PRId64, a->i);
  if (a->has_f) return float_text(r, (double)a->f);
  if (a->n_ints && attr_list(r, a->name, &at, &n)) return text(r, "[%s]", list_text(r, at, n));
  const char *word = attr_word(r, a->name, "");
  bool plain =
      *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
  if (!plain) refuse(r, text(r, "with this %s", name_clean(r, a->name, "attribute")));
  return text(r, "\"%s\"", plain ? word : "");
}

/* Bytes of "axes: list = [0, 2, 3]" */
static size_t parameter_size(const char *at)
{
  size_t n = 0;
  for (int depth = 0; depth || (at[n] != ',' && at[n] != ')'); n++)
    depth += (at[n] == '[') - (at[n] == ']');
  return n;
}

/* Parameters without a default are inputs. Those with a type must be known when the job compiles.
 * The others are attributes, or inputs that may be absent: "bias=none". */
bool read_prelude(Reader *r, const char *more)
{
  const char *name = text(r, "onnx_%s", r->node->op_type);
  const char *at = strstr(import_prelude, text(r, "\ndef %s(", name));
  Text all = text_new(r->arena);
  if (!at) return false;
  at = strchr(at, '(') + 1;
  for (size_t i = 0; *at != ')'; i++) {
    size_t size = name_size(at), n = parameter_size(at);
    const char *parameter = arena_strndup(r->arena, at, size);
    bool typed = at[size] == ':', missing = memchr(at, '=', n) != NULL,
         whole = strncmp(at + size, ": int", 5) == 0;
    at += n + strspn(at + n, ", ");
    if (typed && missing) continue; /* an attribute */
    bool given = in(r, i) != NULL;
    if (!given && missing) continue;
    const char *value =
        given && !typed ? whole_ref(r, in(r, i)) : known_input(r, in(r, i), parameter, whole);
    list_add(&all, missing ? text(r, "%s=%s", parameter, value) : value);
  }
  for (size_t i = 0; i < r->node->n_attribute; i++) {
    const OnnxAttribute *a = r->node->attribute[i];
    if (a->name && name_size(a->name) == strlen(a->name))
      list_add(&all, text(r, "%s=%s", a->name, attribute_text(r, a)));
  }
  if (*more) list_add(&all, more);
  const char *call = text(r, "%s(%s)", name, all.at ? all.at : "");
  give_results(r, call, n_results(r));
  bool several = n_results(r) == 1 && !r->dropped && result(r, 0) && !result(r, 0)->shape;
  if (several) r->steps.n--; /* only the first result is needed */
  if (several) give(r, text(r, "%s[0]", call));
  return true;
}
