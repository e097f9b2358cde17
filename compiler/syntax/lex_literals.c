/* Values of numbers and strings, and messages about invalid ones. An invalid literal still becomes
 * a token of its kind, so that it causes only one message. */
#include "parse.h"
#include "amp.tab.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* True if the token follows a value without a space, as `.0` in `net.0.weight`. */
static bool follows_value(const Parser *p, const Token *t)
{
  const char *at = p->source->text + (t->span.start - p->source->base);
  return at > p->source->text && (isalnum((unsigned char)at[-1]) || strchr("_)]", at[-1]));
}

/* Reports numbers of other languages: .5, 5., 0xff, 1__0, 2nd. The token becomes 1, so that the
 * expression around it can be parsed. */
static void bad_number(Parser *p, Token *t, const char *text, const char *plain)
{
  Arena *a = p->c->arena;
  const char *why = arena_printf(a, "`%s` is not a number", text), *help = NULL;
  size_t n = strlen(text);
  t->kind = TOK_INT;
  t->as.integer = 1;
  t->reported = true; /* a name may be required here, but one message is enough */
  if (text[0] == '.' && follows_value(p, t)) {
    why = "a number is no name";
    help = arena_printf(a, "write `[%s]`", text + 1);
  } else if (text[0] == '.') {
    help = arena_printf(a, "digits stand on both sides of the point: `0%s`", text);
  } else if (text[n - 1] == '.') {
    help = arena_printf(a, "digits stand on both sides of the point: `%s0`", text);
  } else if (text[0] == '0' && strchr("xXbBoO", text[1])) {
    help = "integers are written in decimal digits";
  } else if (strstr(text, "__") || text[n - 1] == '_') {
    help = "a `_` stands between two digits";
  } else if (isdigit((unsigned char)text[0]) && !strchr(plain, '.')) {
    help = "a name starts with a letter or `_`";
  }
  parse_problem(p, E100, t->span, why, help);
}

/* Sets the value of a number. Ignores `_` between digits: 1_000_000. */
void lex_number(Parser *p, Token *t, const char *text)
{
  char *plain = arena_strdup(p->c->arena, text), *to = plain;
  for (const char *from = text; *from; from++)
    if (*from != '_') *to++ = *from;
  *to = 0;
  errno = 0;
  if (t->kind == TOK_INT) {
    t->as.integer = strtoll(plain, NULL, 10);
    if (errno == ERANGE)
      parse_problem(p, E100, t->span, "the integer does not fit 64 bits",
                    "the largest is 9223372036854775807; a float has a point or an exponent");
  } else if (t->kind == TOK_FLOAT) {
    t->as.number = strtod(plain, NULL);
    if (isinf(t->as.number))
      parse_problem(p, E100, t->span, "the number is too large for a float",
                    "the largest is about 1.8e308; `inf` is infinity");
  } else {
    bad_number(p, t, text, plain);
  }
}

/* ---- strings ---- */

static int hex_value(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

typedef struct Unescape {
  const char *at, *end; /* the unread text of the source */
  char *to;
} Unescape;

/* Reads up to `most` digits of the base. Returns false if there are fewer than `least`. */
static bool read_digits(Unescape *u, int base, int least, int most, unsigned *value)
{
  int n = 0;
  for (*value = 0; n < most && u->at < u->end; n++, u->at++) {
    int digit = hex_value(*u->at);
    if (digit < 0 || digit >= base) break;
    *value = *value * (unsigned)base + (unsigned)digit;
  }
  return n >= least;
}

static bool put_byte(Unescape *u, unsigned value)
{
  if (value > 0xff) return false;
  *u->to++ = (char)(unsigned char)value;
  return true;
}

/* Adds a character as UTF-8. Returns false for surrogates and for values above U+10FFFF. */
static bool put_utf8(Unescape *u, unsigned value)
{
  if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
  int more = value < 0x80 ? 0 : value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  static const unsigned first[] = {0, 0xc0, 0xe0, 0xf0};
  put_byte(u, first[more] | value >> (6 * more));
  while (more-- > 0) put_byte(u, 0x80 | (value >> (6 * more) & 0x3f));
  return true;
}

/* Reads one escape; u->at is after the backslash. The result is never longer than the escape. */
static bool unescape(Unescape *u)
{
  static const char names[] = "abfnrtv\\\"'?", values[] = "\a\b\f\n\r\t\v\\\"'?";
  unsigned value;
  const char *name = memchr(names, *u->at, sizeof names - 1);
  if (name) {
    u->at++;
    return put_byte(u, (unsigned char)values[name - names]);
  }
  switch (*u->at) {
  case 'x':
    u->at++;
    return read_digits(u, 16, 1, 2, &value) && put_byte(u, value);
  case 'u':
    u->at++;
    return read_digits(u, 16, 4, 4, &value) && put_utf8(u, value);
  case 'U':
    u->at++;
    return read_digits(u, 16, 8, 8, &value) && put_utf8(u, value);
  default:
    if (read_digits(u, 8, 1, 3, &value)) return put_byte(u, value);
    u->at++;
    return false;
  }
}

static void bad_escape(Parser *p, Token *t, const char *start, const char *text, size_t n)
{
  uint32_t at = t->span.start + (uint32_t)(start - text);
  parse_problem(p, E100, (Span){at, at + (uint32_t)n},
                arena_printf(p->c->arena, "`%.*s` is not an escape", (int)n, start),
                "the escapes are those of C; a backslash itself is `\\\\`");
}

/* Reads """...""", which may have several lines and has no escapes, for CUDA C text. */
static void lex_raw_string(Parser *p, Token *t, const char *text, size_t size)
{
  bool closed = size >= 6 && memcmp(text + size - 3, "\"\"\"", 3) == 0;
  if (!closed)
    parse_problem(p, E100, (Span){t->span.start, t->span.start + 3},
                  "the text that starts here has no closing `\"\"\"`", NULL);
  t->as.string.size = size - (closed ? 6 : 3);
  t->as.string.text = arena_strndup(p->c->arena, text + 3, t->as.string.size);
}

/* A string in typographic or single quotes is reported, but keeps its value. */
void lex_string(Parser *p, Token *t, const char *text, size_t size)
{
  if (size >= 3 && memcmp(text, "\"\"\"", 3) == 0) {
    lex_raw_string(p, t, text, size);
    return;
  }
  if ((unsigned char)text[0] == 0xe2) {
    parse_problem(p, E100, t->span, "these are not the quotes of a string", "write `\"`");
    t->as.string.text = arena_strndup(p->c->arena, text + 3, t->as.string.size = size - 6);
    return;
  }
  char *value = arena_alloc(p->c->arena, size, 1);
  Unescape u = {text + 1, text + size, value};
  while (u.at < u.end && *u.at != text[0]) {
    if (*u.at != '\\') {
      *u.to++ = *u.at++;
      continue;
    }
    const char *start = u.at++;
    if (u.at == u.end) break; /* a backslash before the line end: the string is not closed */
    if (!unescape(&u)) bad_escape(p, t, start, text, (size_t)(u.at - start));
  }
  if (u.at == u.end)
    parse_problem(p, E100, t->span, "the string is not closed on its line",
                  "a text over several lines stands between `\"\"\"` and `\"\"\"`");
  else if (text[0] == '\'')
    parse_problem(p, E100, t->span, "strings stand in double quotes",
                  memchr(text, '"', size) ? NULL
                                          : arena_printf(p->c->arena, "write `\"%.*s\"`",
                                                         (int)(u.at - text - 1), text + 1));
  t->as.string.text = value;
  t->as.string.size = (size_t)(u.to - value);
}

/* ---- characters that start no token ---- */

/* Returns the length of the UTF-8 character at s; 0 if it is malformed. */
static size_t utf8_size(const unsigned char *s, size_t left)
{
  size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (s[0] > 0xf4 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

/* Reports only the first invalid byte, because a file in another encoding has many. */
void lex_check_utf8(Parser *p)
{
  const unsigned char *text = (const unsigned char *)p->source->text;
  for (size_t i = 0, n; i < p->source->size; i += n) {
    n = utf8_size(text + i, p->source->size - i);
    if (n) continue;
    uint32_t at = p->source->base + (uint32_t)i;
    parse_problem(p, E100, (Span){at, at + 1},
                  arena_printf(p->c->arena, "byte 0x%02x is not UTF-8", text[i]),
                  "save the file as UTF-8");
    return;
  }
}

/* Rejects NUL bytes: names and strings are NUL-terminated, and messages quote lines. */
bool lex_is_text(Parser *p)
{
  const Source *s = p->source;
  const char *zero = s->size ? memchr(s->text, 0, s->size) : NULL;
  if (!zero) return true;
  uint32_t at = s->base + (uint32_t)(zero - s->text);
  diag_error(p->c, E100, (Span){at, at + 1}, "byte 0x00: this is no text");
  return diag_help(p->c, "save the file as UTF-8");
}

/* Returns a help for characters of other languages or from a word processor. */
static const char *stray_help(const char *text, size_t size)
{
  static const char *const known[][2] = {
      {"?", "a choice is written `a if condition else b`"},
      {"^", "a power is written `x ** y`"},
      {"\\", "a line continues after an operator or inside `( )`"},
      {"\xe2\x88\x92", "minus is `-`"},
      {"\xc3\x97", "times is `*`"},
      {"\xc2\xa0", "this is a non-breaking space; write a plain one"},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t n = strlen(known[i][0]);
    if (n <= size && memcmp(text, known[i][0], n) == 0) return known[i][1];
  }
  return NULL;
}

/* Reports characters that start no token. */
void lex_stray(Parser *p, Span span, const char *text, size_t size)
{
  p->after_stray = true;
  if (span.start == p->source->base && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
    if (size == 3) { /* a byte order mark is allowed */
      p->after_stray = false;
      return;
    }
    span.start += 3, text += 3, size -= 3;
  }
  size_t n = utf8_size((const unsigned char *)text, size);
  if (!n) return; /* reported by lex_check_utf8 */
  unsigned char c = (unsigned char)text[0];
  const char *what = c >= ' ' && c != 0x7f ? arena_printf(p->c->arena, "`%.*s`", (int)n, text)
                                           : arena_printf(p->c->arena, "byte 0x%02x", c);
  parse_problem(p, E100, span, arena_printf(p->c->arena, "%s is no part of the language", what),
                stray_help(text, size));
}
