/* Prints the user's text in emitted C: Note [the user's text in C]. */
#include "user_text.h"
#include "names.h"
#include "common/shown.h"
#include <string.h>

/* ---- comments ---- */

/* True if s begins with the sign that ends or begins a block comment. */
static bool is_comment_sign(const char *s, size_t left)
{
  return left > 1 && (memcmp(s, "*/", 2) == 0 || memcmp(s, "/*", 2) == 0);
}

/* Removes trailing spaces, and backslashes and trigraphs that would join the next line. */
static void drop_end(Text *t)
{
  for (;;) {
    char last = t->n ? t->at[t->n - 1] : 0;
    size_t drop = last == ' ' || last == '\\' ? 1 : 0;
    if (t->n >= 3 && memcmp(t->at + t->n - 3, "?\?/", 3) == 0) drop = 3;
    if (!drop) return;
    t->n -= drop;
    t->at[t->n] = 0;
  }
}

/* True if all characters are those of names and simple expressions. Such text needs no change. */
static bool is_plain(const char *s, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!in_name(s[i]) && !memchr(". ,:=()[]", s[i], sizeof ". ,:=()[]" - 1)) return false;
  return true;
}

const char *comment_text(Arena *a, const char *s, size_t n, size_t width)
{
  Text t;
  while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
  if (n <= width && is_plain(s, n)) return arena_strndup(a, s, n);
  text_init(&t, a);
  size_t at = 0;
  for (size_t columns = 0, size; at < n && columns < width; at += size, columns++) {
    char escape[AMPC_ESCAPE_ROOM];
    size = ampc_character(s + at, n - at, escape);
    if (s[at] == '\t')
      text_puts(&t, " ");
    else if (escape[0])
      text_puts(&t, escape);
    else
      text_add(&t, s + at, size);
    if (is_comment_sign(s + at, n - at)) text_puts(&t, " ");
  }
  drop_end(&t);
  if (at < n) text_puts(&t, " ..");
  return t.at;
}

/* ---- strings ---- */

/* Octal escapes always have three digits, so that a digit that follows is not read as a fourth. The
 * second ? of ?? is escaped, because ?? can begin a trigraph. */
const char *string_literal(Arena *a, const char *s)
{
  if (!s) return "0";
  Text t = text_new(a);
  text_puts(&t, "\"");
  for (size_t left = strlen(s), n; left; s += n, left -= n) {
    char escape[AMPC_ESCAPE_ROOM];
    n = ampc_character(s, left, escape);
    if (*s == '"' || *s == '\\' || (*s == '?' && t.at[t.n - 1] == '?'))
      text_printf(&t, "\\%c", *s);
    else if (!escape[0])
      text_add(&t, s, n);
    else
      for (size_t i = 0; i < n; i++) text_printf(&t, "\\%03o", (unsigned char)s[i]);
  }
  text_puts(&t, "\"");
  return t.at;
}

/* ---- identifiers ---- */

char *identifier(Arena *a, const char *name)
{
  size_t digit = *name >= '0' && *name <= '9', n = strlen(name);
  char *out = arena_alloc(a, digit + n + 1, 1);
  if (digit) out[0] = 'p';
  for (size_t i = 0; i <= n; i++) out[digit + i] = in_name(name[i]) || i == n ? name[i] : '_';
  return out;
}
