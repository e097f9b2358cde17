/* The functions of prelude.amp that a job calls. */
#include <string.h>
#include "compiler/base/embedded.h"
#include "compiler/base/names.h"
#include "read.h"

extern const char import_prelude[]; /* prelude.amp, which the build embeds */

const char *prelude_text(void)
{
  return import_prelude;
}

/* Whether some text calls the function. */
static bool calls(const char *text, const char *name, size_t n)
{
  for (const char *at = text; (at = strchr(at, *name)); at++)
    if (strncmp(at, name, n) == 0 && at[n] == '(' && (at == text || !in_name(at[-1]))) return true;
  return false;
}

static bool is_called(const Reader *r, const char *name, size_t n)
{
  for (uint32_t i = 0; i < r->steps.n; i++)
    if (r->steps.at[i].needed && calls(r->steps.at[i].text, name, n)) return true;
  return false;
}

/* A definition begins with its comment, and ends with a blank line. */
void prelude_print(const Reader *r, Text *out)
{
  const char *at = strstr(import_prelude, "\n\n");
  for (const char *end; at && *at; at = end) {
    at += strspn(at, "\n");
    end = strstr(at, "\n\n");
    if (!end) end = at + strlen(at);
    const char *def = *at == '#' ? strstr(at, "\ndef ") : at - 1;
    if (!def || def > end) continue;
    def += strlen("\ndef ");
    if (is_called(r, def, strcspn(def, "("))) text_printf(out, "%.*s\n\n", (int)(end - at), at);
  }
}
