/* Words of templates. A template may use the words of its op and of its subject. Any other word
 * ends the program, and the message names the file and the line. Every row of the table is used. */
#include "check.h"
#include "compiler/kernel/kernels.h"
#include "compiler/kernel/template/template.h"
#include <ctype.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the message with which the check of a template ends the program; "" without a message. */
static const char *said_of(Template t, const char *text)
{
  static char said[512];
  const EmbeddedFile file = {"test.cu", text, strlen(text)};
  int ends[2], status;
  MUST(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    template_check(arena_create(), t, &file);
    _exit(0);
  }
  close(ends[1]);
  size_t n = 0;
  for (ssize_t more; (more = read(ends[0], said + n, sizeof said - 1 - n)) > 0;) n += (size_t)more;
  said[n] = 0;
  close(ends[0]);
  MUST(waitpid(child, &status, 0) == child);
  bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  CHECK_MSG(aborted == (n > 0), "said `%s`, status %d", said, status);
  return said;
}

static Template of(OpKind op)
{
  return (Template){.op = op_row(op)};
}

static void test_known(Template t, const char *line)
{
  const char *text = said_of(t, line);
  CHECK_MSG(!*text, "`%s`: %s", line, text);
}

/* Checks that an unknown word is reported. It is on line 4, after a comment of two lines. */
static void test_unknown(Template t, const char *line, const char *word)
{
  char text[256], message[128];
  snprintf(text, sizeof text, "/* a test of\n * words: $nobody */\n\n%s\n}\n", line);
  snprintf(message, sizeof message, "ampc: templates/test.cu:4: `%s` is no ", word);
  CHECK_MSG(strstr(said_of(t, text), message), "instead of `%s`: %s", message, said_of(t, text));
}

static void test_check(void)
{
  Template pool = of(OP_max_pool2d), back = of(OP_max_pool2d_backward), sgd = of(OP_sgd_update);
  const Template columns = {0}, whole = {.columns = {.whole = true}};
  /* words of the table, by subject: inputs, attributes */
  test_known(pool, "/* */\n@argmax@!ceil $x[$index] = $kernel0 + $value_out; // $oh @nobody\n");
  test_known(back, "/* */\n      $operands_dy\n$dy\n");
  test_known(sgd, "/* */\n@nesterov@moment1@!clip_value  $lr * $clamp1\n  $formula\n");
  test_known(columns, "/* */\n@deep$seen_d");
  test_known(whole, "/* */\n@deep@grouped $seen_d $from_x(x)");
  test_unknown(pool, "@nobody  x", "nobody");
  test_unknown(pool, "@argmax@!nobody  x", "nobody");
  test_unknown(pool, "@  x", "");
  test_unknown(pool, "x[$index] = $nobody;", "nobody");
  test_unknown(pool, "x = $;", "");
  test_unknown(pool, "x = $argmax_", "argmax_");
  /* words of other subjects, ops or uses */
  test_unknown(pool, "$lanes", "lanes");
  test_unknown(pool, "$dy", "dy");
  test_unknown(of(OP_lamb_moments), "@nesterov  x", "nesterov");
  test_unknown(of(OP_lamb_moments), "$maximize", "maximize");
  test_unknown(of(OP_lamb_moments), "@count  x", "count");
  test_unknown(columns, "$from_x", "from_x");
  test_unknown(columns, "$count", "count");
}

/* Tests that sections are checked where they are defined, under the marks of including lines. */
static void test_pieces(void)
{
  Template pool = of(OP_max_pool2d);
  test_known(pool, "/* */\n@value  $lines a\n// --- b\n$ow\n// --- a\n    $lines b\n");
  test_unknown(pool, "@nobody  $lines taken", "nobody");
  test_unknown(pool, "$lines nobody", "nobody");
  test_unknown(pool, "$lines a\n// --- ab\n$x\n", "a");
  const char *deep = "/* */\n$lines a\n// --- a\n$lines b\n// --- b\n@ceil  $nobody";
  CHECK(strstr(said_of(pool, deep), "test.cu:6: `nobody` is no word"));
}

static bool has_word(const EmbeddedFile *file, char sign, const char *word)
{
  size_t n = strlen(word);
  for (const char *s = file->text; (s = strchr(s, sign)); s++) {
    const char *from = s + 1 + (s[1] == '!');
    if (name_size(from) == n && memcmp(from, word, n) == 0) return true;
  }
  return false;
}

static void test_used(char sign, const char *word)
{
  for (const EmbeddedFile *f = embedded_files; f->name; f++)
    if (strstr(f->name, ".cu") && has_word(f, sign, word)) return;
  CHECK_MSG(false, "no template has %c%s", sign, word);
}

/* Checks that each section is included somewhere. */
static void test_piece_used(const EmbeddedFile *file)
{
  char use[64];
  for (const char *s = file->text; (s = strstr(s, "// --- ")); s++) {
    snprintf(use, sizeof use, "$lines %.*s\n", (int)name_size(s + 7), s + 7);
    bool used = strstr(file->text, use) || strstr(embedded_find("update.cu")->text, use);
    for (const EmbeddedFile *f = embedded_files; f->name && !used; f++)
      used = strcmp(file->name, "update.cu") == 0 && strstr(f->name, ".cu") && strstr(f->text, use);
    CHECK_MSG(used, "%s: no template has %s", file->name, use);
  }
}

int main(void)
{
  templates_check();
  test_check();
  test_pieces();
#define SUBJECT(about, condition)
#define MARK(about, word, condition) test_used('@', #word);
#define TEXT(about, word, text)      test_used('$', #word);
#define NUMBER(about, word, value)   test_used('$', #word);
#include "compiler/kernel/template/words.def"
  for (const EmbeddedFile *f = embedded_files; f->name; f++)
    if (strcmp(strrchr(f->name, '.'), ".cu") == 0) test_piece_used(f);
  return check_done();
}
