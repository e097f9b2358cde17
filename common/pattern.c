/* Matches patterns segment by segment. Only the last wildcard is tried again, so no pattern takes
 * long. */
#include "common/pattern.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Part { /* a range of a name */
  const char *at;
  size_t n;
} Part;

typedef struct Captures { /* the texts that the wildcards stand for, in their order */
  Part at[PATTERN_WILDCARDS];
  int n;
} Captures;

/* Returns the length of the first segment: 3 for "fc1.weight". */
static size_t segment(const char *s)
{
  return strcspn(s, ".");
}

static const char *next_segment(const char *s)
{
  s += segment(s);
  return *s ? s + 1 : s;
}

/* Records that wildcard k stands for the text from `begin` to `end`. */
static void capture(Captures *c, int k, const char *begin, const char *end)
{
  if (k < PATTERN_WILDCARDS) c->at[k] = (Part){begin, (size_t)(end - begin)};
  c->n = k + 1;
}

/* Matches a segment of a name with one of a pattern: "conv*" matches "conv1". A star first takes as
 * little as possible. If the text after it does not match, the last star takes one character more;
 * earlier stars need not be tried again. */
static bool glob(const char *p, size_t n, const char *s, size_t m, Captures *c)
{
  const char *p_end = p + n, *s_end = s + m, *star = NULL, *begin = NULL, *taken = NULL;
  int number = 0;
  while (s < s_end || p < p_end) {
    if (p < p_end && *p == '*') {
      star = p++;
      begin = taken = s;
      number = c->n;
      capture(c, number, begin, taken);
    } else if (p < p_end && s < s_end && *p == *s) {
      p++, s++;
    } else if (star && taken < s_end) {
      p = star + 1;
      s = ++taken;
      capture(c, number, begin, taken);
    } else {
      return false;
    }
  }
  return true;
}

static bool is_any(const char *pattern)
{
  return segment(pattern) == 2 && memcmp(pattern, "**", 2) == 0;
}

/* Records the segments from `begin` up to `end`, without the dot after them. */
static void capture_segments(Captures *c, int k, const char *begin, const char *end)
{
  capture(c, k, begin, end > begin && *end ? end - 1 : end);
}

/* Matches segments; `**` takes them as a star takes characters. *rest is what follows the match. */
static bool match(const char *pattern, const char *path, bool whole, Captures *c, const char **rest)
{
  const char *any = NULL, *begin = NULL, *taken = NULL;
  int number = 0;
  for (;;) {
    int before = c->n;
    *rest = path;
    if (!*pattern && (!whole || !*path)) return true;
    if (*pattern && is_any(pattern)) {
      any = pattern = next_segment(pattern);
      begin = taken = path;
      number = before;
      capture_segments(c, number, begin, taken);
      if (*pattern) continue;
      *rest = path + strlen(path);
      capture_segments(c, number, begin, *rest);
      return true;
    }
    if (*pattern && *path && glob(pattern, segment(pattern), path, segment(path), c)) {
      pattern = next_segment(pattern);
      path = next_segment(path);
    } else if (any && *taken) {
      pattern = any;
      path = taken = next_segment(taken);
      capture_segments(c, number, begin, taken);
    } else {
      return false;
    }
  }
}

bool pattern_matches(const char *pattern, const char *name, bool whole)
{
  Captures c = {.n = 0};
  const char *rest;
  return match(pattern, name, whole, &c, &rest);
}

int pattern_wildcards(const char *pattern, unsigned char out[PATTERN_WILDCARDS])
{
  int n = 0;
  for (; *pattern; pattern = next_segment(pattern)) {
    bool any = is_any(pattern);
    for (size_t i = 0; i < segment(pattern); i += any ? 2 : 1) {
      if (pattern[i] != '*') continue;
      if (n < PATTERN_WILDCARDS) out[n] = any ? 2 : 1;
      n++;
    }
  }
  return n;
}

/* Returns a buffer large enough for any result: each wildcard stands for a range of the name. */
static char *rename_room(const char *to, const char *name)
{
  size_t stars = 1;
  for (const char *p = to; *p; p++) stars += *p == '*';
  return calloc(strlen(to) + stars * (strlen(name) + 1) + 2, 1);
}

static char *put(char *end, const char *text, size_t n)
{
  memcpy(end, text, n);
  return end + n;
}

/* Appends a segment of `to` with its wildcards replaced; *k counts them. */
static char *put_segment(char *end, const char *to, const Captures *c, int *k)
{
  if (is_any(to)) {
    Part part = c->at[(*k)++];
    return put(end, part.at, part.n);
  }
  for (size_t i = 0; i < segment(to); i++) {
    if (to[i] != '*') {
      *end++ = to[i];
      continue;
    }
    Part part = c->at[(*k)++];
    end = put(end, part.at, part.n);
  }
  return end;
}

char *pattern_rename(const char *from, const char *to, const char *name, bool *out_lost)
{
  Captures c = {.n = 0};
  const char *rest;
  int k = 0;
  if (!match(from, name, false, &c, &rest)) return NULL;
  char *out = rename_room(to, name), *end = out;
  *out_lost = !out;
  if (!out) return NULL;
  for (; *to; to = next_segment(to)) {
    char *begin = end > out ? end + 1 : end, *filled = put_segment(begin, to, &c, &k);
    if (filled == begin) continue; /* a `**` that stands for nothing also removes its dot */
    if (end > out) *end = '.';
    end = filled;
  }
  if (*rest && end > out) *end++ = '.';
  put(end, rest, strlen(rest));
  return out;
}
