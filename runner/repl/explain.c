/* :explain prints the output of ampc --explain for the session's program, or for one line of it. */
#include "commands.h"
#include "compiler/explain/explain.h"
#include "runtime/plan/number.h"
#include <limits.h>
#include <stdio.h>

bool command_explain(Repl *r, const char *arg)
{
  const Gpu *gpu = gpu_find("h200");
  int64_t line = 0;
  Explanation e;
  if (*arg && !ampc_read_count(arg, 1, INT_MAX, &line))
    return repl_error(r, ":explain takes a line of the job, got %s", arg);
  Compiled *p = program_compile(r, &(Request){.target = gpu->arch});
  if (!p) return false;
  Request against = {.target = gpu->arch, .precision = explain_against(p->c, gpu), .quiet = true};
  Compiled *other = program_compile(r, &against);
  explain_gather(p->c, gpu, other ? other->c : NULL, &e);
  compiled_drop(other);
  Text text = text_new(p->c->arena);
  bool any = !line || explain_line(&e, (uint32_t)line, &text);
  if (!line) explain_text(&e, &text);
  if (any) fwrite(text.at, 1, text.n, stdout);
  compiled_drop(p);
  return any || repl_error(r, "nothing is computed at line %lld", (long long)line);
}
