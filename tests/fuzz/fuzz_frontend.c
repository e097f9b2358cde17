/* libFuzzer's entry: any bytes are a program. The front end must answer each one with messages or a
 * graph, and every emitter prints each program. There must be no invalid access, no undefined
 * arithmetic, no leak, no assertion, no endless elaboration, and no text of the program where it
 * could become code. `amp fmt` must change nothing in its own result; fmt_text() itself aborts if
 * the result has other tokens.
 *
 * The first byte selects the target and the style of messages, so that one corpus serves all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/driver.h"
#include "compiler/kernel/kernels.h"
#include "compiler/program/program.h"
#include "compiler/program/seal.h"
#include "compiler/fmt/fmt.h"
#include "compiler/graph/ir.h"
#include "compiler/cost/memory_report.h"
#include "common/shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refuse(const char *why, const Text *text)
{
  fprintf(stderr, "%s:\n%.*s\n", why, (int)text->n, text->at);
  abort();
}

/* True if a line may be printed. It may contain tabs, because the text of an op may. */
static bool is_plain(const char *s, size_t n)
{
  for (const char *end = s + n; s < end; s++) {
    const char *tab = memchr(s, '\t', (size_t)(end - s));
    if (!tab) tab = end;
    if (!ampc_is_plain(s, (size_t)(tab - s))) return false;
    s = tab;
  }
  return true;
}

/* True if the line ends within a string. In a line without a comment or a character in single
 * quotes, each string begins and ends with a quote that no backslash escapes. */
static bool ends_in_string(const char *s, size_t n)
{
  bool quoted = false;
  if (memchr(s, '\'', n)) return false;
  for (size_t i = 0; i < n; i++) {
    if (!quoted && i + 1 < n && s[i] == '/' && (s[i + 1] == '/' || s[i + 1] == '*')) return false;
    if (s[i] == '"') quoted = !quoted;
    if (s[i] == '\\' && quoted) i++;
  }
  return quoted;
}

/* Checks lines: no control characters for terminals, no comment that continues on the next line
 * (Note [the user's text in C]), and no string that goes on there. Only ampc's own macros and the
 * copied texts of ops may continue lines. */
static void check_lines(const Text *text, bool code)
{
  bool own = strstr(text->at, "\n#line ") != NULL;
  if (strlen(text->at) != text->n) refuse("a NUL in the text", text);
  for (const char *s = text->at; *s;) {
    size_t n = strcspn(s, "\n");
    if (!is_plain(s, n)) refuse("a control character", text);
    bool joined = n && (s[n - 1] == '\\' || (n >= 3 && memcmp(s + n - 3, "?\?/", 3) == 0));
    bool comment = memmem(s, n, "//", 2) != NULL;
    if (joined && comment && !own) refuse("a comment that continues on the next line", text);
    if (code && !own && ends_in_string(s, n)) refuse("a string that ends at no quote", text);
    s += n + (s[n] == '\n');
  }
}

typedef void Emitter(Compile *c, Text *out);

static void emit_whole(Compile *c, Text *out)
{
  emit_program(c, out, true);
  if (seal_of(out->at, out->n) != SEAL_whole) refuse("a broken seal", out);
}

static void emit_one(Compile *c, Text *out)
{
  for (uint32_t i = 0; i < c->program->n_kernels; i++) emit_kernel(c, i, out);
}

static void print_graph(Compile *c, Text *out)
{
  ir_print(c, out, true);
}

static void print_tree(Compile *c, Text *out)
{
  ast_print(c, c->ast, out);
}

static void report_memory(Compile *c, Text *out)
{
  memory_report(c, -1, out);
}

static void emit_all(Compile *c)
{
  enum { N_CODE = 3 }; /* the emitters of C come first */
  static Emitter *const emitters[] = {emit_whole,  emit_kernels, emit_one,   emit_plan,
                                      emit_params, print_graph,  print_tree, report_memory};
  for (size_t i = 0; i < sizeof emitters / sizeof *emitters; i++) {
    Text text;
    text_init(&text, c->arena);
    emitters[i](c, &text);
    check_lines(&text, i < N_CODE);
  }
}

/* Returns a file name. With bit 16, it is the first line: any bytes except / and NUL. */
static const char *path_of(Arena *arena, const uint8_t *data, size_t size)
{
  const char *text = (const char *)data + 1;
  size_t n = 0;
  while (n < size - 1 && n < 100 && text[n] && text[n] != '/' && text[n] != '\n') n++;
  return data[0] & 16 && n ? arena_strndup(arena, text, n) : "fuzz.amp";
}

static void format(const char *bytes, size_t size)
{
  Options options = {.silent = true, .error_limit = 1};
  Compile *c = compile_create(&options);
  const char *text = arena_strndup(c->arena, bytes, size); /* NUL-terminated */
  Text once = text_new(c->arena), twice = text_new(c->arena);
  bool good = fmt_text(c, "fuzz.amp", text, (uint32_t)size, &once);
  if (good && (!fmt_text(c, "once.amp", once.at, (uint32_t)once.n, &twice) ||
               strcmp(once.at, twice.at) != 0))
    refuse("another layout after a second call", &once);
  compile_destroy(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 1 || size > 1 << 14) return 0;
  Arena *arena = arena_create();
  Options options = {.input = path_of(arena, data, size),
                     .target = data[0] & 1 ? "cpu" : "sm_80",
                     .optimize = data[0] & 2 ? 2 : 0,
                     .color = (data[0] & 4) != 0,
                     .json_errors = (data[0] & 8) != 0,
                     .error_limit = 20};
  Compile *c = compile_create(&options);
  format((const char *)data + 1, size - 1);
  if (compile_text(c, options.input, (const char *)data + 1, size - 1) && c->program) emit_all(c);
  compile_destroy(c);
  arena_destroy(arena);
  return 0;
}
