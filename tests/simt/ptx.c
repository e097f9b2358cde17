/* Turns inline PTX into calls: see ptx.h. */
#include "ptx.h"
#include <ctype.h>
#include <string.h>

static const char *skip_space(const char *s)
{
  while (isspace((unsigned char)*s)) s++;
  return s;
}

/* Returns the text after the parenthesis that closes the one at s. */
static const char *behind_closing(const char *s)
{
  int depth = 0;
  for (; *s; s++) {
    depth += (*s == '(') - (*s == ')');
    if (!depth) return s + 1;
  }
  return s;
}

/* Writes the operands of `: "=f"(x), "=r"(y)`, each as its expression after `sign`. */
static const char *put_operands(const char *s, const char *sign, Text *out)
{
  s = skip_space(s);
  if (*s != ':') return s;
  for (s = skip_space(s + 1); *s == '"'; s = skip_space(s + (*s == ','))) {
    s += strcspn(s, "(");
    const char *end = behind_closing(s);
    text_printf(out, "%s%s%.*s", out->at[out->n - 1] == '(' ? "" : ", ", sign, (int)(end - s), s);
    s = skip_space(end);
  }
  return s;
}

/* Writes the instruction at s as a call. Returns the text after it; NULL: another form. */
static const char *put_call(const char *s, Text *out)
{
  text_puts(out, "simt_");
  for (; isalnum((unsigned char)*s) || *s == '.'; s++) text_add(out, *s == '.' ? "_" : s, 1);
  text_puts(out, "(");
  s += strcspn(s, "\"\n");
  if (*s != '"') return NULL;
  s = put_operands(put_operands(s + 1, "&", out), "", out);
  return *s == ')' ? s : NULL;
}

void ptx_as_calls(const Text *cuda, Text *out)
{
  static const char mark[] = "asm(\"";
  const char *s = cuda->at;
  for (const char *next; (next = strstr(s, mark));) {
    text_add(out, s, (size_t)(next - s));
    size_t before = out->n;
    s = put_call(next + sizeof mark - 1, out);
    if (s) continue;
    out->n = before;
    text_puts(out, mark);
    s = next + sizeof mark - 1;
  }
  text_puts(out, s);
}
