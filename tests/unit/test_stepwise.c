/* A program that is elaborated line by line: what its names hold, and mistakes, after which further
 * lines are elaborated. */
#include "check.h"
#include "compiler/cli/options.h"
#include "compiler/diag/diag.h"
#include "compiler/lower/interpret/stepwise.h"
#include "compiler/syntax/source.h"

static Compile *quiet_compile(void)
{
  Options options = options_default();
  options.target = "cpu";
  options.input = "";
  options.keep_messages = true;
  return compile_create(&options);
}

static void test_lines(void)
{
  Compile *c = quiet_compile();
  Stepwise *s = stepwise_begin(c, "def twice(x) { return x + x }\n");
  MUST(s);
  stepwise_tensor(s, "x", AMPC_F32, (const int64_t[]){5, 3}, 2);
  CHECK(stepwise_line(s, "model m = Linear(3, 4)"));
  CHECK(stepwise_line(s, "y = twice(m(x))"));
  CHECK(stepwise_line(s, "a, b = topk(y, 2)"));
  CHECK(stepwise_line(s, "n = y.size(0)"));
  Known y = stepwise_known(s, "y"), b = stepwise_known(s, "b");
  CHECK(y.tensor && y.dtype == AMPC_F32 && y.rank == 2 && y.dim[0] == 5 && y.dim[1] == 4);
  CHECK(b.tensor && b.dtype == AMPC_I64 && b.dim[1] == 2);
  CHECK(!stepwise_known(s, "n").tensor && !stepwise_known(s, "nothing").tensor);
  compile_destroy(c);
}

static void test_mistakes(void)
{
  Compile *c = quiet_compile();
  Stepwise *s = stepwise_begin(c, "");
  MUST(s);
  stepwise_tensor(s, "x", AMPC_F32, (const int64_t[]){5, 3}, 2);
  CHECK(!stepwise_line(s, "y = x @ x"));
  uint32_t errors = diag_error_count(c);
  CHECK(errors == 1 && !stepwise_known(s, "y").tensor);
  CHECK(stepwise_line(s, "z = relu(y)")); /* one mistake gives one message */
  CHECK(diag_error_count(c) == errors);
  CHECK(!stepwise_line(s, "z = relu("));
  CHECK(stepwise_line(s, "z = relu(x)"));
  CHECK(stepwise_known(s, "z").tensor);
  compile_destroy(c);
  c = quiet_compile();
  CHECK(!stepwise_begin(c, "def f(x { return x }"));
  compile_destroy(c);
}

int main(void)
{
  test_lines();
  test_mistakes();
  return check_done();
}
