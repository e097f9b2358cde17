/* `ampc --explain`: compiles the job also in the precision to compare with, then prints. */
#include "explain.h"
#include <string.h>

Compile *explain_compile_against(const Compile *c, const char *precision)
{
  uint32_t n = c->options.n_settings;
  Options options = c->options;
  options.silent = true;
  options.settings = arena_array(c->arena, Assignment, n + 1);
  if (n) memcpy(options.settings, c->options.settings, n * sizeof(Assignment));
  options.settings[n] = (Assignment){"precision", precision};
  options.n_settings = n + 1;
  Compile *other = compile_create(&options);
  if (compile_job(other)) return other;
  compile_destroy(other);
  return NULL;
}

bool explain_job(Compile *c, const Gpu *gpu, bool json, Text *out)
{
  Explanation e;
  Compile *other = explain_compile_against(c, explain_against(c, gpu));
  explain_gather(c, gpu, other, &e);
  compile_destroy(other);
  explain_warn(&e);
  diag_finish(c);
  if (json)
    explain_json(&e, out);
  else
    explain_text(&e, out);
  return !diag_error_count(c);
}
