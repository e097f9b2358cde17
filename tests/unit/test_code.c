/* The code column of the op table: what its parser finds, and how formulas are printed. A mistake
 * ends the program with a message that names the op. */
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

static const char *word(const void *frame, const Formula *f)
{
  (void)frame;
  if (f->name) return f->name;
  if (f->kind == FORMULA_element) return arena_printf(arena, "$%u", f->index);
  return f->kind == FORMULA_attribute ? signature.attr[f->index].name : "word";
}

static const Formula *all(const void *frame, const Formula *f)
{
  (void)frame;
  return f;
}

static const Formula *without_mode(const void *frame, const Formula *f)
{
  (void)frame;
  while (f->condition == 1) f = f->otherwise;
  return f;
}

static bool prints(const char *text, const char *as)
{
  const char *got =
      formula_text(arena, &(FormulaTexts){NULL, word, all}, map(text).statements->value);
  if (strcmp(got, as) != 0) fprintf(stderr, "`%s` is printed as `%s`\n", text, got);
  return strcmp(got, as) == 0;
}

static void test_operands(void)
{
  OpCode c = map("($0 > 0 ? $0 : $1|0 * $eps)");
  MUST(c.n_statements == 1 && c.result == STATEMENT_value);
  CHECK(c.reads_element[0] && c.reads_element[1] && !c.reads_row_value[1]);
  CHECK(c.chooses && !c.dear && !c.random && !c.uses_length);
  const Formula *f = c.statements[0].value;
  MUST(f->kind == FORMULA_choose && f->in[2]->kind == FORMULA_mul);
  const Formula *optional = f->in[2]->in[0], *eps = f->in[2]->in[1];
  CHECK(optional->kind == FORMULA_element && optional->index == 1);
  CHECK(!strcmp(optional->absent, "0") && !f->in[1]->absent);
  CHECK(eps->kind == FORMULA_attribute && eps->index == 0);
}

/* Checks that operators bind as in C, and that brackets are printed only where they matter. */
static void test_printing(void)
{
  CHECK(prints("$0-$1-2", "$0 - $1 - 2"));
  CHECK(prints("$0 - ($1 - 2)", "$0 - ($1 - 2)"));
  CHECK(prints("($0 * $1) / 2 + (1)", "$0 * $1 / 2 + 1"));
  CHECK(prints("$0 * ($1 / 2)", "$0 * ($1 / 2)"));
  CHECK(prints("-($0 + 1) * -$1", "-($0 + 1) * -$1"));
  CHECK(prints("!($0 & $1) | $0", "!($0 & $1) | $0"));
  CHECK(prints("$0 < 1 || $1 >= 0.5 && $0 != 1e5", "$0 < 1 || $1 >= 0.5 && $0 != 1e5"));
  CHECK(prints("($0 < 1 || $1) && $0", "($0 < 1 || $1) && $0"));
  CHECK(prints("($0 && $1) | 1", "($0 && $1) | 1"));
  CHECK(prints("$0 && ($1 | 1)", "$0 && $1 | 1"));
  CHECK(prints("-(-$0)", "-(-$0)"));
  CHECK(prints("max($0 ? 1 : 2, exp(-$1))", "max(($0 ? 1 : 2), exp(-$1))"));
  CHECK(prints("($0 ? 1 : ($1 ? 2 : 3)) + 1", "($0 ? 1 : $1 ? 2 : 3) + 1"));
  CHECK(prints("($0 ? ($1 ? 1 : 2) : nan())", "($0 ? ($1 ? 1 : 2) : nan())"));
}

/* Checks that the function sets the cost, not a prefix of its name: `sign` is not `sigmoid`. */
static void test_cost(void)
{
  CHECK(!map("sign($0)").dear && !map("max($0, $1)").dear);
  CHECK(map("sigmoid($0)").dear && map("a_new_function($0)").dear);
  CHECK(!strcmp(map("$uniform + $0").random, "uniform") && map("$uniform").dear);
  CHECK(!strcmp(map("$normal").random, "normal") && map("$normal").uses_index);
}

static void test_statements(void)
{
  OpCode c = row("max m = $0; sum s = exp($0 - m); let z = m + log(s); each $0 - z");
  MUST(c.n_statements == 4);
  CHECK(c.statements[0].kind == STATEMENT_max && !strcmp(c.statements[0].name, "m"));
  const Formula *power = c.statements[1].value;
  CHECK(power->kind == FORMULA_call && !strcmp(power->name, "exp"));
  CHECK(power->in[0]->kind == FORMULA_sub && !strcmp(power->in[0]->in[1]->name, "m"));
  CHECK(c.result == STATEMENT_each && !c.statements[3].name && !c.walks_once);
  CHECK(row("sum s = $0; row s / $n").walks_once && row("sum s = $0; row s / $n").uses_length);
  CHECK(!row("sum s = $0; sum q = $0 - s; row q").walks_once); /* the second sum needs s */
  c = row("argmax k = $0; row k");
  MUST(c.n_statements == 3); /* the maximum, then the first index at which it occurs */
  CHECK(c.statements[1].kind == STATEMENT_first && !strcmp(c.statements[1].best, "k_best"));
}

/* Checks brackets with a condition around a statement, and around an operand with its operator. */
static void test_conditions(void)
{
  OpCode c = row("sum s = $0;[eps: sum a = $0 * $eps;]row [mode: 2 * ](s - 1)[mode: + $eps]");
  MUST(c.n_statements == 3);
  CHECK(c.statements[0].condition == -1 && c.statements[1].condition == 0);
  const CodeStatement *last = &c.statements[2];
  CHECK(last->condition == -1 && last->value->condition == 1);
  const FormulaTexts whole = {NULL, word, all}, less = {NULL, word, without_mode};
  CHECK(!strcmp(formula_text(arena, &whole, last->value), "2 * (s - 1) + eps"));
  CHECK(!strcmp(formula_text(arena, &less, last->value), "s - 1"));
}

/* Checks formulas of gradients: one for each input, of which some may be empty. */
static void test_gradients(void)
{
  OpCode c = lets_parse(arena, "test", "let d = dy * $eps; ; -d * y", &signature, true);
  MUST(c.n_statements == 3);
  CHECK(c.statements[0].kind == STATEMENT_let && !strcmp(c.statements[0].name, "d"));
  CHECK(c.statements[1].kind == STATEMENT_value && !c.statements[1].value);
  const Formula *f = c.statements[2].value;
  MUST(c.statements[2].kind == STATEMENT_value && f && f->kind == FORMULA_mul);
  CHECK(f->in[0]->kind == FORMULA_minus && !strcmp(f->in[1]->name, "y"));
  CHECK(gradient_reads_result(op_row(OP_tanh)) && gradient_reads_result(op_row(OP_relu)));
  CHECK(!gradient_reads_result(op_row(OP_div))); /* only the gradient of the divisor does */
  CHECK(!gradient_reads_result(op_row(OP_sin)) && !gradient_reads_result(op_row(OP_sum)));
  CHECK(gradient_is_passed(op_row(OP_sub)) && gradient_is_passed(op_row(OP_neg)));
  CHECK(!gradient_is_passed(op_row(OP_mul)) && !gradient_is_passed(op_row(OP_like)));
}

/* Checks names of values and of inputs in the code of map ops. */
static void test_lets(void)
{
  OpCode c = map("let d = $x - $eps; let e = d * d; e > 0 ? $y|0 : d");
  MUST(c.n_statements == 3 && c.result == STATEMENT_value && c.chooses);
  CHECK(c.statements[0].kind == STATEMENT_let && !strcmp(c.statements[1].name, "e"));
  CHECK(c.reads_element[0] && c.reads_element[1]);
  const Formula *x = c.statements[0].value->in[0];
  CHECK(x->kind == FORMULA_element && x->index == 0);
}

/* Checks the formula of an optimizer. A statement without `let` is a new value. */
static void test_updates(void)
{
  static const char *const names[] = {"g", "w", "lr"};
  OpCode c = update_parse(arena, "test", "let s = lr * g; w = w - s", names, 3);
  MUST(c.n_statements == 2);
  CHECK(c.statements[0].kind == STATEMENT_let && c.statements[1].kind == STATEMENT_set);
  CHECK(!strcmp(c.statements[1].name, "w") && c.statements[1].value->kind == FORMULA_sub);
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
  CHECK(is_refused("row $0 $1", "no operator at"));
  CHECK(is_refused("row $0] + 1", "no kind of statement"));
  CHECK(is_refused("row ($0", "no ) at"));
  CHECK(is_refused("row [mode: $0 + ]$1", "no factor"));
}

int main(void)
{
  arena = arena_create();
  test_operands();
  test_printing();
  test_cost();
  test_statements();
  test_conditions();
  test_gradients();
  test_lets();
  test_updates();
  test_mistakes();
  arena_destroy(arena);
  return check_done();
}
