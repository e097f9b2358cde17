/* Input of `amp repl`: complete or unfinished, its kind, and the statements that it replaces. */
#include "check.h"
#include "compiler/driver.h"
#include <string.h>

static bool is_open(const char *text)
{
  return ast_is_open(text, (uint32_t)strlen(text));
}

static void check_open(void)
{
  CHECK(!is_open(""));
  CHECK(!is_open("x = f(1)\n"));
  CHECK(is_open("f(1,\n"));
  CHECK(is_open("module A {\n"));
  CHECK(is_open("module A {\n  def forward(x) {\n    return x\n  }\n"));
  CHECK(!is_open("module A {\n  def forward(x) {\n    return x\n  }\n}\n"));
  CHECK(!is_open("s = \"([{\"  # ((\n"));
  CHECK(is_open("x = [1, (2\n]\n"));
  CHECK(!is_open(")))\n"));
  CHECK(!is_open("\xff\xfe"));
}

typedef struct Job {
  Compile *c;
  Options options;
  Ast last;
} Job;

static void open_job(Job *job)
{
  memset(job, 0, sizeof *job);
  job->options = (Options){.input = "job", .target = "cpu", .error_limit = 20};
  job->c = compile_create(&job->options);
}

static bool add(Job *job, const char *text)
{
  return compile_add_input(job->c, "input", text, strlen(text), &job->last);
}

static void check_kinds(void)
{
  Job job;
  open_job(&job);
  CHECK(add(&job, "const A = 1") && job.last.at[0]->kind == DECL_const);
  CHECK(add(&job, "def f(x) { return x }") && job.last.at[0]->kind == DECL_def);
  CHECK(add(&job, "manual_seed(3)") && job.last.at[0]->kind == DECL_expr);
  CHECK(add(&job, "# only a comment\n") && job.last.n == 0);
  CHECK(add(&job, "x = 1; x + 1") && job.last.n == 1 && job.last.at[0]->kind == DECL_body);
  const Block *body = &job.last.at[0]->as.function.body;
  CHECK(body->n == 2 && body->at[0]->kind == STMT_assign && body->at[1]->kind == STMT_return);
  CHECK(add(&job, "data = 3") && job.last.at[0]->kind == DECL_body); /* `data` is a name here */
  compile_destroy(job.c);
}

static void check_replacing(void)
{
  Job job;
  open_job(&job);
  CHECK(add(&job, "const A = 1\nconst B = A"));
  CHECK(add(&job, "const A = 2") && job.c->ast->n == 2);
  CHECK(job.c->ast->at[0]->as.constant.value->as.integer == 2);    /* where the old one was */
  CHECK(add(&job, "def B(x) { return x }") && job.c->ast->n == 2); /* even of another kind */
  CHECK(add(&job, "precision f16") && add(&job, "precision bf16") && job.c->ast->n == 3);
  CHECK(add(&job, "manual_seed(1)") && add(&job, "manual_seed(2)") && job.c->ast->n == 4);
  CHECK(add(&job, "train x in f(1) { y = x }") && job.c->ast->n == 5);
  CHECK(add(&job, "train x in f(2) { y = x }") && job.c->ast->n == 5);
  CHECK(add(&job, "train x in f(2) with name=\"other\" { y = x }") && job.c->ast->n == 6);
  CHECK(add(&job, "eval x in f(2) { y = x }") && job.c->ast->n == 7);
  CHECK(add(&job, "1 + 1") && add(&job, "1 + 1") && job.c->ast->n == 9); /* added, never replaced */
  CHECK(add(&job, "const C = 1\nconst C = 2") && job.c->ast->n == 11);   /* an error in one text */
  compile_destroy(job.c);
}

int main(void)
{
  check_open();
  check_kinds();
  check_replacing();
  return check_done();
}
