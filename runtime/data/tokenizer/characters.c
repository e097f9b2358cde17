/* Characters: UTF-8, classes, normal forms, graphemes. All knowledge of Unicode is utf8proc's. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "strings.h"

enum { LEAST = 0, MOST = 1 };

/* Sets the range of the second byte, and returns the number of bytes; 1: no character begins so. */
static int utf8_kind(uint8_t first, uint8_t range[2])
{
  range[LEAST] = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  range[MOST] = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int utf8_step(const char *at, size_t n)
{
  const uint8_t *b = (const uint8_t *)at;
  uint8_t range[2];
  if (b[0] < 0x80) return 1;
  int size = utf8_kind(b[0], range), i = 1;
  if (size == 1 || n < 2 || b[1] < range[LEAST] || b[1] > range[MOST]) return -1;
  for (i = 2; i < size && (size_t)i < n && (b[i] & 0xc0) == 0x80;) i++;
  return i == size ? size : -i;
}

int32_t char_at(const char *at, size_t n, size_t *size)
{
  int32_t c = (uint8_t)at[0];
  *size = 1;
  if (c >= 0x80) *size = (size_t)utf8proc_iterate((const uint8_t *)at, (utf8proc_ssize_t)n, &c);
  return c;
}

static void str_char(Str *s, int32_t c)
{
  uint8_t bytes[4];
  str_add(s, (const char *)bytes, (size_t)utf8proc_encode_char(c, bytes));
}

/* ---- classes ---- */

#define CATEGORIES(from, to, c)                                                                    \
  (utf8proc_category(c) >= UTF8PROC_CATEGORY_##from &&                                             \
   utf8proc_category(c) <= UTF8PROC_CATEGORY_##to)

/* The property White_Space. */
bool is_blank(int32_t c)
{
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || CATEGORIES(ZS, ZP, c);
}

bool is_punctuation(int32_t c)
{
  if (c < 0x80) return c > ' ' && c < 0x7f && !CATEGORIES(LU, LO, c) && !CATEGORIES(ND, NO, c);
  return CATEGORIES(PC, PO, c);
}

bool is_numeric(int32_t c)
{
  return CATEGORIES(ND, NO, c);
}

bool is_mark(int32_t c)
{
  return CATEGORIES(MN, ME, c);
}

bool is_nonspacing(int32_t c)
{
  return CATEGORIES(MN, MN, c);
}

/* What BERT's cleaning removes: controls, formats, private use; blanks of ASCII stay. */
bool is_removed(int32_t c)
{
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == 0 || c == 0xfffd || CATEGORIES(CC, CF, c) || CATEGORIES(CO, CO, c);
}

void lower_add(Str *out, int32_t c)
{
  if (c == 0x130) /* the only character whose lower case is two */
    str_add(out, "i\u0307", 3);
  else
    str_char(out, utf8proc_tolower(c));
}

size_t grapheme_size(const char *at, size_t n)
{
  int32_t state = 0;
  size_t size, i;
  int32_t before = char_at(at, n, &i);
  while (i < n) {
    int32_t c = char_at(at + i, n - i, &size);
    if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
    before = c;
    i += size;
  }
  return i;
}

/* ---- normal forms ---- */

/* Sorts each run of marks by their combining class. Marks of one class keep their order. The sort
 * of utf8proc takes quadratic time. */
static void sort_marks(int32_t *c, int32_t *copy, size_t n)
{
  size_t count[257] = {0};
  for (size_t i = 0; i < n; i++) count[utf8proc_get_property(c[i])->combining_class + 1]++;
  for (int i = 0; i < 256; i++) count[i + 1] += count[i];
  for (size_t i = 0; i < n; i++) copy[count[utf8proc_get_property(c[i])->combining_class]++] = c[i];
  memcpy(c, copy, n * sizeof *c);
}

static void order_marks(int32_t *c, int32_t *copy, size_t n)
{
  for (size_t i = 0, from; i < n; i++) {
    for (from = i; i < n && utf8proc_get_property(c[i])->combining_class; i++)
      ;
    if (i - from > 1) sort_marks(c + from, copy, i - from);
  }
}

enum { MOST_PARTS = 32 /* of one character; U+FDFA has 18 */ };

/* Appends the normal form of a segment to `out`. */
static void form_segment(Str *out, const char *at, size_t n, int form)
{
  utf8proc_option_t options =
      form == FORM_c || form == FORM_kc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == FORM_kc || form == FORM_kd) options |= UTF8PROC_COMPAT;
  options |= UTF8PROC_STABLE;
  size_t cap = 0, count = 0, size;
  int32_t *c = NULL;
  for (size_t i = 0; i < n && !out->failed; i += size) {
    int32_t one = char_at(at + i, n - i, &size);
    if (!grow(&c, &cap, count + MOST_PARTS, sizeof *c))
      out->failed = true;
    else
      count += (size_t)utf8proc_decompose_char(one, c + count, MOST_PARTS, options, NULL);
  }
  int32_t *copy = out->failed ? NULL : malloc(count * sizeof *c + 1);
  if (copy) {
    order_marks(c, copy, count);
    count = (size_t)utf8proc_normalize_utf32(c, (utf8proc_ssize_t)count, options);
    for (size_t i = 0; i < count; i++) str_char(out, c[i]);
  } else
    out->failed = true;
  free(copy);
  free(c);
}

void form_add(Str *out, const char *at, size_t n, int form)
{
  for (size_t i = 0, end; i < n; i = end) { /* an ASCII character never joins what is before it */
    for (end = i + 1; end < n && (at[end] & 0x80);) end++;
    if (end - i == 1 && !(at[i] & 0x80))
      str_add(out, at + i, 1);
    else
      form_segment(out, at + i, end - i, form);
  }
}

/* ---- sentencepiece's table: a double array of Darts, then NUL-terminated texts ---- */

static uint32_t unit_at(const Charsmap *m, size_t i)
{
  uint32_t unit = 0xff; /* a label that no byte of valid text has */
  if (i < m->n_units) memcpy(&unit, m->units + i * sizeof unit, sizeof unit);
  return unit;
}

bool charsmap_read(Charsmap *m, char *bytes, size_t n)
{
  uint32_t size = 0;
  m->bytes = bytes;
  if (n < sizeof size) return n == 0;
  memcpy(&size, bytes, sizeof size);
  if (size % 4 || size > n - sizeof size || (n > sizeof size + size && bytes[n - 1])) return false;
  m->units = bytes + sizeof size;
  m->n_units = size / 4;
  m->text = m->units + size;
  m->n_text = n - sizeof size - size;
  return true;
}

size_t charsmap_find(const Charsmap *m, const char *at, size_t n, bool longest, Span *to)
{
  size_t found = 0, node = 0;
#define OFFSET(unit) ((unit) >> 10 << (((unit)&1 << 9) >> 6))
  uint32_t unit = unit_at(m, 0);
  if (!m->n_units) return 0;
  node ^= OFFSET(unit);
  for (size_t i = 0; i < n && at[i]; i++) {
    node ^= (uint8_t)at[i];
    unit = unit_at(m, node);
    if ((unit & (1u << 31 | 0xff)) != (uint8_t)at[i]) break;
    node ^= OFFSET(unit);
    uint32_t value = unit_at(m, node) & ~(1u << 31);
    if (!(unit >> 8 & 1) || value >= m->n_text) continue;
    found = i + 1;
    *to = (Span){m->text + value, strlen(m->text + value)};
    if (!longest) break;
  }
  return found;
}
