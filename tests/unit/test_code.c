/* The code column of the op table: what its parser finds. A mistake ends the program with a message
 * that names the op. */
#include "check.h"
#include "compiler/graph/ops.h"
#include <sys/wait.h>
#include <unistd.h>

static const OpSignature signature = {
    .input = {{.name = "x"}, {.name = "y", .optional = true}},
    .attr = {{.name = "eps", .kind = ATTR_float}, {.name = "mode", .kind = ATTR_int}},
    .n_inputs = 2,
    .n_attrs = 2};

static Arena *arena;

static OpCode row(const char *text)
{
  return code_parse(arena, "test", text, &signature, true);
}

static OpCode map(const char *text)
{
  return code_parse(arena, "test", text, &signature, false);
}

static void test_operands(void)
{
  OpCode c = map("($0 > 0 ? $0 : $1|0 * $eps)");
  MUST(c.n_statements == 1 && c.result == STATEMENT_value);
  CHECK(c.reads_element[0] && c.reads_element[1] && !c.reads_row_value[1]);
  CHECK(c.chooses && !c.dear && !c.random && !c.uses_length);
  const CodeStatement *s = &c.statements[0];
  MUST(s->n_pieces == 9); /* text and operands alternate */
  CHECK(s->pieces[5].kind == PIECE_element && s->pieces[5].input == 1);
  CHECK(s->pieces[5].absent_size == 1 && *s->pieces[5].absent == '0' && !s->pieces[1].absent);
  CHECK(s->pieces[7].kind == PIECE_attribute && s->pieces[7].attribute == 0);
}

/* Checks that the function sets the cost, not a prefix of its name: `sign` is not `sigmoid`. */
static void test_cost(void)
{
  CHECK(!map("ampc_sign($0)").dear && !map("ampc_max($0, $1)").dear);
  CHECK(map("ampc_sigmoid($0)").dear && map("ampc_a_new_function($0)").dear);
  CHECK(!strcmp(map("$uniform + $0").random, "uniform") && map("$uniform").dear);
  CHECK(!strcmp(map("$normal").random, "normal") && map("$normal").uses_index);
}

static void test_statements(void)
{
  OpCode c = row("max m = $0; sum s = ampc_exp($0 - m); let z = m + ampc_log(s); each $0 - z");
  MUST(c.n_statements == 4);
  CHECK(c.statements[0].kind == STATEMENT_max && !strcmp(c.statements[0].name, "m"));
  MUST(c.statements[1].n_pieces == 6); /* ampc_exp ( $0 _-_ m ) */
  CHECK(c.statements[1].pieces[0].kind == PIECE_call);
  CHECK(c.statements[1].pieces[4].kind == PIECE_name);
  CHECK(c.result == STATEMENT_each && !c.statements[3].name && !c.walks_once);
  CHECK(row("sum s = $0; row s / $n").walks_once && row("sum s = $0; row s / $n").uses_length);
  CHECK(!row("sum s = $0; sum q = $0 - s; row q").walks_once); /* the second sum needs s */
  c = row("argmax k = $0; row k");
  MUST(c.n_statements == 3); /* the maximum, then the first index at which it occurs */
  CHECK(c.statements[1].kind == STATEMENT_first && !strcmp(c.statements[1].best, "k_best"));
}

/* Checks [name: text], a statement or a piece of one that is emitted if the attribute is not 0. */
static void test_conditions(void)
{
  OpCode c = row("sum s = $0;[eps: sum a = $0 * $eps;]row s[mode: + 1]");
  MUST(c.n_statements == 3);
  CHECK(c.statements[0].condition == -1 && c.statements[1].condition == 0);
  const CodeStatement *last = &c.statements[2];
  CHECK(last->condition == -1 && last->pieces[0].condition == -1);
  CHECK(last->pieces[last->n_pieces - 1].condition == 1);
}

/* Parses the text in a child process, because the parser ends the program at a mistake. */
static bool is_refused(const char *text, const char *message)
{
  int ends[2], status;
  char said[256] = "";
  MUST(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    row(text);
    _exit(0);
  }
  close(ends[1]);
  ssize_t n = read(ends[0], said, sizeof said - 1);
  close(ends[0]);
  MUST(waitpid(child, &status, 0) == child);
  bool good = n > 0 && WIFSIGNALED(status) && strstr(said, "op test") && strstr(said, message);
  if (!good) fprintf(stderr, "`%s` said: %s\n", text, said);
  return good;
}

static void test_mistakes(void)
{
  CHECK(is_refused("sum s = $7; row s", "no such input"));
  CHECK(is_refused("sum s = $width; row s", "no such attribute: `width`"));
  CHECK(is_refused("total s = $0; row s", "no kind of statement: `total`"));
  CHECK(is_refused("sum s = $0; row t", "no statement before defines `t`"));
  CHECK(is_refused("row [eps $0]", "bad bracket"));
  CHECK(is_refused("sum = $0", "expected a name"));
}

int main(void)
{
  arena = arena_create();
  test_operands();
  test_cost();
  test_statements();
  test_conditions();
  test_mistakes();
  arena_destroy(arena);
  return check_done();
}
