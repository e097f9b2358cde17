/* The functions of prelude.amp, and those that a job needs. */
#include <string.h>
#include "compiler/base/names.h"
#include "read_ops.h"

extern const char import_prelude[]; /* prelude.amp, which the build embeds */

/* The rows of onnx.def for other ops are functions, too: $0 is a. */
const char *prelude_text(Reader *r)
{
  static const char *const rows[][2] = {
#define AMPC_ONNX(op, onnx, text) {#onnx, text},
#include "runner/onnx/onnx.def"
  };
  Text all = text_new(r->arena);
  text_puts(&all, import_prelude);
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

/* A definition begins with its comment. */
typedef struct Definition {
  const char *at, *name; /* `name`: "pad_same(x, ..", NULL after the last one */
  size_t n;              /* bytes */
} Definition;

static Definition next_definition(const char *at)
{
  const char *name = strstr(at, "\ndef ");
  if (!name) return (Definition){0};
  const char *end = strchr(++name, '\n'), *from = name;
  if (end[-1] != '}') end = strstr(name, "\n}\n") + 2;
  for (const char *line = from; line; from = line ? line : from) {
    for (line = from - 1; line > at && line[-1] != '\n'; line--) continue;
    if (line <= at || strncmp(line, "# ", 2) != 0 || line[2] == '-') line = NULL;
  }
  return (Definition){from, name + strlen("def "), (size_t)(end - from)};
}

/* Whether a step calls the function, or one that a step calls. */
static bool is_needed(Reader *r, const Definition *d)
{
  size_t n = strcspn(d->name, "(");
  for (uint32_t i = 0; i < r->steps.n; i++)
    if (r->steps.at[i].needed && calls(r->steps.at[i].text, d->name, n)) return true;
  for (Definition o = next_definition(import_prelude); o.name; o = next_definition(o.at + o.n)) {
    bool other = o.name != d->name && strncmp(o.name, "onnx_", 5) != 0 &&
                 calls(arena_strndup(r->arena, o.name, o.n - (size_t)(o.name - o.at)), d->name, n);
    if (other && is_needed(r, &o)) return true;
  }
  return false;
}

void prelude_print(Reader *r, Text *out)
{
  for (Definition d = next_definition(import_prelude); d.name; d = next_definition(d.at + d.n))
    if (is_needed(r, &d)) text_printf(out, "%.*s\n\n", (int)d.n, d.at);
}
