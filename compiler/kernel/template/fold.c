/* Sizes are literals, so the arithmetic of a template may become `x * 1 - 0`. This file removes
 * terms and factors that change nothing, so that the text shows what is computed. It looks for
 * integers only: 1.0 and 0x1 are other tokens. Of float factors it removes only `R(1.0) * `, which
 * changes no bit. */
#include "compiler/kernel/kernel_parts.h"
#include <ctype.h>
#include <string.h>

/* True if c can follow a whole number. */
static bool ends(char c)
{
  return !in_name(c) && c != '.';
}

/* True if the text before an operand binds no stronger than a sum: + - = ( , < > or no text. */
static bool is_loose(const Text *t)
{
  size_t n = t->n;
  while (n && t->at[n - 1] == ' ') n--;
  return n && strchr("+-=(,<>", t->at[n - 1]);
}

/* True if the text after an operand does not bind it, as * / % and an index do. */
static bool is_free(const char *s)
{
  while (*s == ' ') s++;
  return !strchr("*/%[", *s) || !*s;
}

/* Returns the length of a term such as " + 0 * 49 * 128": 0 times literals; else 0. */
static size_t idle_product(const char *s)
{
  if (strncmp(s, " + 0 * ", 7) != 0) return 0;
  const char *end = s + 4;
  while (strncmp(end, " * ", 3) == 0 && isdigit((unsigned char)end[3])) {
    end += 3;
    while (isdigit((unsigned char)*end)) end++;
  }
  return ends(*end) && is_free(end) ? (size_t)(end - s) : 0;
}

/* Returns how many bytes at s can be removed: " * 1" and " / 1"; " + 0" and " - 0" if no product
 * follows; "1 * " if no product precedes it. */
static size_t idle(const Text *before, const char *s)
{
  if (*s == ' ' && !strchr("*/+-", s[1])) return 0;
  if ((strncmp(s, " * 1", 4) == 0 || strncmp(s, " / 1", 4) == 0) && ends(s[4])) return 4;
  if ((strncmp(s, " + 0", 4) == 0 || strncmp(s, " - 0", 4) == 0) && ends(s[4]) && is_free(s + 4))
    return 4;
  if (strncmp(s, "1 * ", 4) == 0 && is_loose(before)) return 4;
  if (strncmp(s, "R(1.0) * ", 9) == 0 && is_loose(before)) return 9;
  return idle_product(s);
}

const char *fold_line(const Kernel *k, const char *line)
{
  Text t = text_new(k->c->arena);
  for (const char *s = line; *s;) {
    size_t plain = strcspn(s, " 1R"); /* no byte of these begins a term that can be removed */
    text_add(&t, s, plain);
    s += plain;
    size_t n = idle(&t, s);
    if (!n && *s) text_add(&t, s, n = 1);
    s += n;
  }
  return t.at;
}
