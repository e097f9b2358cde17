/* Messages: places in the source, counting, quoting of lines, spelling suggestions. The right
 * programs of --explain-error must parse; the wrong ones too, except for errors of syntax. */
#include "compiler/diag/diag_internal.h"
#include "compiler/syntax/ast.h"
#include "check.h"

static Compile *start(void)
{
  Arena *arena = arena_create();
  Compile *c = arena_new(arena, Compile);
  c->arena = arena;
  c->options.error_limit = 20;
  return c;
}

static uint32_t add(Compile *c, const char *path, const char *text, bool builtin)
{
  return diag_add_source(c, path, text, (uint32_t)strlen(text), builtin);
}

/* heard() returns what was printed since listen(). The caller frees it. */
static FILE *real_stderr;
static char *heard_text;
static size_t heard_size;

static void listen(void)
{
  real_stderr = stderr;
  FILE *memory = open_memstream(&heard_text, &heard_size);
  MUST(memory);
  stderr = memory;
}

static char *heard(void)
{
  fclose(stderr);
  stderr = real_stderr;
  return heard_text;
}

static unsigned count(const char *text, const char *part)
{
  unsigned n = 0;
  for (; (text = strstr(text, part)); text++) n++;
  return n;
}

static void test_places(void)
{
  Compile *c = start();
  uint32_t a = add(c, "a.amp", "one\ntwo\r\n\nfour", false), b = add(c, "b.amp", "x", false);
  Place p = diag_place(c, (Span){a + 5, a + 6});
  CHECK(strcmp(p.source->path, "a.amp") == 0 && p.line == 2 && p.column == 2);
  p = diag_place(c, (Span){a + 14, a + 14}); /* the end of the text */
  CHECK(strcmp(p.source->path, "a.amp") == 0 && p.line == 4 && p.column == 5);
  p = diag_place(c, (Span){b, b + 1});
  CHECK(strcmp(p.source->path, "b.amp") == 0 && p.line == 1 && p.column == 1);
  CHECK(!diag_place(c, (Span){0, 0}).source);
  uint32_t size;
  p = diag_place(c, (Span){a + 4, a + 5});
  const char *line = diag_line_text(c, &p, &size);
  CHECK(size == 3 && memcmp(line, "two", 3) == 0);
  arena_destroy(c->arena);
}

static void test_counting(void)
{
  Compile *c = start();
  c->options.error_limit = 2;
  uint32_t at = add(c, "a.amp", "x = y\n", false);
  listen();
  for (uint32_t i = 0; i < 4; i++) {
    diag_error(c, E201, (Span){at + i, at + i + 1}, "error %u", i);
    diag_note(c, (Span){at, at + 1}, "note %u", i);
    diag_error(c, E201, (Span){at + i, at + i + 1}, "error %u",
               i); /* reported again, as in the next round of a loop */
    diag_help(c, "help %u", i);
  }
  diag_warning(c, W406, (Span){at, at + 1}, "warning");
  diag_finish(c);
  char *text = heard();
  CHECK_MSG(diag_error_count(c) == 4, "%u errors", diag_error_count(c));
  CHECK(count(text, "error[E201]: error") == 2);
  CHECK(count(text, "note: note") == 2 && count(text, "help:") == 0);
  CHECK(count(text, "warning[W406]: warning") == 1);
  CHECK(strstr(text, "2 more errors not shown"));
  free(text);
  arena_destroy(c->arena);
}

static void test_werror(void)
{
  Compile *c = start();
  c->options.werror = true;
  uint32_t at = add(c, "a.amp", "x", false);
  listen();
  diag_warning(c, W406, (Span){at, at + 1}, "widened");
  char *text = heard();
  CHECK(diag_error_count(c) == 1 && strstr(text, "error[W406]: widened"));
  free(text);
  arena_destroy(c->arena);
}

/* Checks that an error inside the layer library is reported at the user's call. */
static void test_frames(void)
{
  Compile *c = start();
  uint32_t user = add(c, "job.amp", "Linear(1, 2)", false);
  uint32_t library = add(c, "layers.amp", "return x @ w", true);
  Span inside = {library + 7, library + 12}, call = {user, user + 12};
  CHECK(diag_user_span(c, inside).start == 0);
  diag_frame_push(c, call);
  diag_frame_push(c, (Span){library, library + 5});
  CHECK(diag_user_span(c, inside).start == call.start && diag_user_span(c, inside).end == call.end);
  listen();
  diag_error(c, E301, inside, "sizes differ");
  char *text = heard();
  CHECK(strstr(text, "job.amp:1:1: error[E301]") && !strstr(text, "layers.amp"));
  free(text);
  diag_frame_pop(c);
  diag_frame_pop(c);
  CHECK(diag_user_span(c, call).start == call.start);
  arena_destroy(c->arena);
}

static void test_nearest(void)
{
  static const char *const names[] = {"Conv2d", "Linear", "stride", "padding", "x",
                                      "relu",   "scaler", "gelu",   "log"};
  enum { N = sizeof names / sizeof *names };
  struct {
    const char *written, *meant;
  } cases[] = {
      {"Conv2D", "Conv2d"}, {"strides", "stride"}, {"Liner", "Linear"}, {"paddnig", "padding"},
      {"rleu", "relu"},     {"LINEAR", "Linear"},  {"banana", NULL},    {"", NULL},
      {"y", NULL},          {"Relu", "relu"},      {"reluu", "relu"},   {"strid", "stride"},
      {"scatter", NULL},    {"glu", NULL},         {"selu", NULL},      {"long", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *found = diag_nearest(cases[i].written, names, N);
    CHECK_MSG(found == cases[i].meant ||
                  (found && cases[i].meant && !strcmp(found, cases[i].meant)),
              "%s: %s", cases[i].written, found ? found : "nothing");
  }
}

/* Returns whether the parser accepts this text, alone, in a def or in a module. Sets *messages. */
static bool parses(const char *program, char **messages)
{
  static const char *const before[] = {"", "def f() {\n", "module M {\n"};
  *messages = NULL;
  for (int i = 0; i < 3; i++) {
    Compile *c = start();
    Ast tree = {0};
    char text[2000];
    snprintf(text, sizeof text, "%s%s%s", before[i], program, i ? "}\n" : "");
    listen();
    bool good = ast_parse(c, add(c, "explain.amp", text, false), &tree);
    free(*messages);
    *messages = heard();
    arena_destroy(c->arena);
    if (good) return true;
  }
  return false;
}

static void test_explanations(void)
{
  for (int i = 0; i < ERROR_COUNT; i++) {
    const ErrorInfo *e = &error_info[i];
    if (strncmp(e->wrong, "ampc ", 5) == 0) continue; /* a command line */
    char *messages;
    bool syntax = e->code[1] == '1';
    CHECK_MSG(parses(e->right, &messages), "%s, right:\n%s", e->code, messages);
    free(messages);
    CHECK_MSG(parses(e->wrong, &messages) == !syntax, "%s, wrong:\n%s", e->code, messages);
    CHECK_MSG(!syntax || strstr(messages, e->code), "%s is not in:\n%s", e->code, messages);
    free(messages);
  }
}

int main(void)
{
  test_places();
  test_counting();
  test_werror();
  test_frames();
  test_nearest();
  test_explanations();
  return check_done();
}
