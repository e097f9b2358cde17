/* A large job formats hundreds of thousands of short texts, and vsnprintf() takes up to a thousand
 * instructions for each. Most of these texts consist of strings and integers, which are printed
 * here. A format with another conversion, such as %g or %-8s, is left to vsnprintf(). */
#include "format.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct Output {
  char *at;
  size_t room, n; /* n: length of the whole text so far; only what fits into `room` is stored */
} Output;

static void put(Output *out, const char *s, size_t n)
{
  if (out->n < out->room)
    memcpy(out->at + out->n, s, n < out->room - out->n ? n : out->room - out->n);
  out->n += n;
}

static void put_integer(Output *out, uint64_t v, bool negative)
{
  char digits[24];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + v % 10);
  while (v /= 10);
  if (negative) digits[--at] = '-';
  put(out, digits + at, sizeof digits - at);
}

static void put_signed(Output *out, int64_t v)
{
  put_integer(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

static void put_string(Output *out, const char *s)
{
  if (!s) s = "(null)"; /* as vsnprintf() prints it */
  put(out, s, strlen(s));
}

/* Prints the conversion that begins after the % at s. Returns its end; NULL if it is not one of
 * %s %.*s %c %d %u %lld %llu %%. */
static const char *put_conversion(Output *out, const char *s, va_list *args)
{
  switch (*s) {
  case 's':
    put_string(out, va_arg(*args, const char *));
    return s + 1;
  case 'u':
    put_integer(out, va_arg(*args, unsigned), false);
    return s + 1;
  case 'd':
    put_signed(out, va_arg(*args, int));
    return s + 1;
  case 'c':
    put(out, &(char){(char)va_arg(*args, int)}, 1);
    return s + 1;
  case '%':
    put(out, s, 1);
    return s + 1;
  case '.': {
    if (s[1] != '*' || s[2] != 's') return NULL;
    size_t n = (size_t)va_arg(*args, int);
    const char *text = va_arg(*args, const char *);
    put(out, text, strnlen(text, n));
    return s + 3;
  }
  case 'l':
    if (s[1] != 'l' || (s[2] != 'd' && s[2] != 'u')) return NULL;
    if (s[2] == 'd')
      put_signed(out, va_arg(*args, long long));
    else
      put_integer(out, va_arg(*args, unsigned long long), false);
    return s + 3;
  default:
    return NULL;
  }
}

static bool put_all(Output *out, const char *fmt, va_list *args)
{
  while (fmt) {
    const char *end = strchrnul(fmt, '%');
    put(out, fmt, (size_t)(end - fmt));
    if (!*end) return true;
    fmt = put_conversion(out, end + 1, args);
  }
  return false;
}

size_t format_text(char *to, size_t room, const char *fmt, va_list args)
{
  Output out = {to, room, 0};
  va_list own;
  va_copy(own, args);
  bool simple = put_all(&out, fmt, &own);
  va_end(own);
  if (!simple) return (size_t)vsnprintf(to, room, fmt, args);
  to[out.n < room ? out.n : room - 1] = 0;
  return out.n;
}
