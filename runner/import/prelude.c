/* The functions of ops.amp, sizes.amp and prelude.amp, and those that a job needs. */
#include <string.h>
#include "compiler/base/names.h"
#include "read_ops.h"

/* ops.amp, ..; the build embeds them */
extern const char import_ops[], import_sizes[], import_prelude[];

/* The rows of onnx.def for other ops are functions, too: $0 is a. */
const char *prelude_text(Reader *r)
{
  static const char *const rows[][2] = {
#define AMPC_ONNX(op, onnx, text) {#onnx, text},
#include "runner/onnx/onnx.def"
  };
  Text all = text_new(r->arena);
  text_printf(&all, "%s\n%s\n%s\n", import_ops, import_sizes, import_prelude);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *code = arena_strdup(r->arena, rows[i][1]);
    if (strstr(all.at, text(r, "\ndef onnx_%s(", rows[i][0]))) continue;
    const char *parameters = strstr(code, "$2") ? "a, b, c" : strstr(code, "$1") ? "a, b" : "a";
    text_printf(&all, "def onnx_%s(%s) { return ", rows[i][0], parameters);
    for (const char *at = code; *at; at++)
      *at == '$' ? text_add(&all, &"abc"[*++at - '0'], 1) : text_add(&all, at, 1);
    text_puts(&all, " }\n");
  }
  return all.at;
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
  const char *at, *name; /* `name`: "pad_same(x, ..", NULL after the last one */
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
