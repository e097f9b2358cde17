/* Sizes are literals, so a template's arithmetic may come out as `x * 1 - 0`. What changes nothing
 * is left out, so that the text says what is computed. Integers only: 1.0 and 0x1 are other tokens.
 */
#include "kernel_parts.h"
#include <ctype.h>
#include <string.h>

/* Ends a token: what follows is not part of the number. */
static bool ends(char c)
{
  return !isalnum((unsigned char)c) && c != '_' && c != '.';
}

/* What stands before an operand binds no stronger than a sum: + - = ( , < > and the beginning. */
static bool is_loose(const Text *t)
{
  size_t n = t->n;
  while (n && t->at[n - 1] == ' ') n--;
  return n && strchr("+-=(,<>", t->at[n - 1]);
}

/* What follows does not bind the operand before it: * / % and an index do. */
static bool is_free(const char *s)
{
  while (*s == ' ') s++;
  return !strchr("*/%[", *s) || !*s;
}

/* How many bytes at s may go: " * 1" and " / 1"; " + 0" and " - 0" where no product follows; "1 * "
 * where none is before it. */
static size_t idle(const Text *before, const char *s)
{
  if ((strncmp(s, " * 1", 4) == 0 || strncmp(s, " / 1", 4) == 0) && ends(s[4])) return 4;
  if ((strncmp(s, " + 0", 4) == 0 || strncmp(s, " - 0", 4) == 0) && ends(s[4]) && is_free(s + 4))
    return 4;
  return strncmp(s, "1 * ", 4) == 0 && is_loose(before) ? 4 : 0;
}

const char *fold_line(const Kernel *k, const char *line)
{
  Text t;
  text_init(&t, k->c->arena);
  for (const char *s = line; *s;) {
    size_t n = idle(&t, s);
    if (!n) text_add(&t, s, 1);
    s += n ? n : 1;
  }
  return t.at;
}
