/* Which characters can be printed, and the escapes for the others. */
#include "common/shown.h"
#include <stdio.h>
#include <string.h>

/* Returns the size of a character with this first byte; 0: no character begins with it. */
static size_t size_of(unsigned first)
{
  if (first < 0x80) return 1;
  return first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Decodes one character of UTF-8 to *out and returns its size in bytes. Returns 0 if the bytes are
 * not valid UTF-8: also for overlong forms, surrogates and values above U+10FFFF. */
static size_t decode(const unsigned char *s, size_t left, unsigned *out)
{
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned first = s[0];
  size_t n = size_of(first);
  if (n == 0 || n > left) return 0;
  unsigned value = n == 1 ? first : first & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (s[i] & 0x3fu);
  }
  if (value < least[n] || value > 0x10ffff || value - 0xd800 < 0x800) return 0;
  *out = value;
  return n;
}

/* Whether a character could make text look like another text: U+2028 and U+2029 end lines; the
 * others change the direction of text. */
static bool is_treacherous(unsigned value)
{
  return value == 0x61c || (value >= 0x200e && value <= 0x200f) ||
         (value >= 0x2028 && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
}

size_t ampc_character(const char *s, size_t left, char escape[AMPC_ESCAPE_ROOM])
{
  static const char letters[] = "\a\b\f\n\r\t\v", names[] = "abfnrtv";
  unsigned value = (unsigned char)*s;
  size_t n = decode((const unsigned char *)s, left, &value);
  const char *letter = n == 1 && value ? strchr(letters, (int)value) : NULL;
  escape[0] = 0;
  if (letter)
    snprintf(escape, AMPC_ESCAPE_ROOM, "\\%c", names[letter - letters]);
  else if (n == 0 || value < ' ' || value == 0x7f)
    snprintf(escape, AMPC_ESCAPE_ROOM, "\\x%02x", value & 0xff);
  else if ((value >= 0x80 && value < 0xa0) || is_treacherous(value))
    snprintf(escape, AMPC_ESCAPE_ROOM, "\\u%04x", value);
  return n ? n : 1;
}

bool ampc_is_plain(const char *s, size_t n)
{
  char escape[AMPC_ESCAPE_ROOM];
  for (size_t i = 0; i < n;) {
    i += ampc_character(s + i, n - i, escape);
    if (escape[0]) return false;
  }
  return true;
}

char *ampc_show(char *out, size_t room, const char *s, const char *keep)
{
  size_t used = 0;
  for (size_t left = strlen(s), n; left; s += n, left -= n) {
    char escape[AMPC_ESCAPE_ROOM];
    n = ampc_character(s, left, escape);
    const char *shown = escape[0] && !strchr(keep, *s) ? escape : s;
    size_t size = shown == s ? n : strlen(shown);
    if (used + size >= room) break;
    memcpy(out + used, shown, size);
    used += size;
  }
  out[used] = 0;
  return out;
}

char *ampc_path_argument(char *out, size_t room, const char *path)
{
  snprintf(out, room, "%s%s", *path == '-' || *path == '@' ? "./" : "", path);
  return out;
}
