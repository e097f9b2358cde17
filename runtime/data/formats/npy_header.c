/* "\x93NUMPY", a version, the length of the text that follows, and that text, a Python dict:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }      and spaces,
 * newline */
#include "npy_header.h"
#include <stdlib.h>
#include <string.h>
#include "header.h"

/* A position in the text of the header. */
typedef struct Scan {
  const char *at, *end;
} Scan;

static ampc_status damaged(const char *path)
{
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is damaged: its header is no dict of descr, fortran_order and shape", path);
}

/* Skips blanks, then `word` if it follows. Returns whether it followed. */
static bool takes(Scan *s, const char *word)
{
  size_t n = strlen(word);
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n')) s->at++;
  if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
  s->at += n;
  return true;
}

/* Reads 'text' or "text" of less than `size` bytes. */
static bool take_quoted(Scan *s, char *to, int64_t size)
{
  const char *quote = takes(s, "'") ? "'" : takes(s, "\"") ? "\"" : NULL;
  if (!quote) return false;
  const char *end = memchr(s->at, *quote, (size_t)(s->end - s->at));
  if (!end || end - s->at >= size) return false;
  memcpy(to, s->at, (size_t)(end - s->at));
  to[end - s->at] = 0;
  s->at = end + 1;
  return true;
}

static bool take_size(Scan *s, int64_t *out)
{
  takes(s, "");
  int64_t n = 0;
  const char *from = s->at;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n))
      return false;
  *out = n;
  return s->at > from;
}

static ampc_status refuse_type(const char *path, const char *descr)
{
  const char *what = strchr("?biufcSUVOMm", descr[1]) && descr[1] ? descr + 1 : descr;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s has elements of type '%s', expected numbers of up to 64 bits; save them as "
                   "a.astype(numpy.float32) or numpy.int64",
                   path, *what == 'O' ? "object" : descr);
}

static ElementKind kind_of(char letter, long size)
{
  static const char letters[] = "fiub";
  static const ElementKind kinds[] = {ELEMENT_FLOAT, ELEMENT_SIGNED, ELEMENT_UNSIGNED,
                                      ELEMENT_BOOL};
  const char *at = strchr(letters, letter);
  if (!at || size < (letter == 'f' ? 2 : 1) || size > 8 || size & (size - 1)) return ELEMENT_NONE;
  return letter == 'f' && size == 2 ? ELEMENT_F16 : kinds[at - letters];
}

/* Reads '<f4': byte order, kind, size. */
static ampc_status take_type(Scan *s, const char *path, ampc_array *out)
{
  char descr[32];
  if (takes(s, "["))
    return ampc_fail(AMPC_BAD_FILE, "%s has records as elements, expected numbers: save one field",
                     path);
  if (!take_quoted(s, descr, sizeof descr)) return damaged(path);
  if (!strchr("<>|=", descr[0]) || strlen(descr) < 3) return refuse_type(path, descr);
  char *end;
  long size = strtol(descr + 2, &end, 10);
  ElementKind kind = kind_of(descr[1], size);
  if (*end || kind == ELEMENT_NONE) return refuse_type(path, descr);
  out->type = (ElementType){kind, (uint8_t)size, descr[0] == '>' && size > 1};
  return array_type(path, out->type, &out->is.dtype);
}

static ampc_status take_order(Scan *s, const char *path, bool *out_fortran)
{
  *out_fortran = takes(s, "True");
  return *out_fortran || takes(s, "False") ? AMPC_OK : damaged(path);
}

/* Reads (3, 4), (3,) or (). */
static ampc_status take_shape(Scan *s, const char *path, ampc_header *h)
{
  uint32_t axes = 0;
  int64_t size;
  if (!takes(s, "(")) return damaged(path);
  while (!takes(s, ")")) {
    if (!take_size(s, &size)) return damaged(path);
    if (axes > AMPC_MAX_RANK - 1)
      return ampc_fail(AMPC_BAD_FILE, "%s has more than %d axes", path, AMPC_MAX_RANK);
    *(axes ? &h->dim[axes - 1] : &h->samples) = size;
    axes++;
    if (takes(s, ",")) continue;
    if (!takes(s, ")")) return damaged(path);
    break;
  }
  if (!axes)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is a single number: an array of data has an axis that counts samples",
                     path);
  h->rank = axes - 1;
  return AMPC_OK;
}

/* Reads a key; *out is its number. Returns false for an unknown key. */
static bool take_key(Scan *s, unsigned *out)
{
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[32];
  if (!take_quoted(s, key, sizeof key) || !takes(s, ":")) return false;
  for (*out = 0; *out < 3 && strcmp(key, keys[*out]) != 0;) ++*out;
  return *out < 3;
}

/* Reads the dict. Keys may come in any order, each once. */
static ampc_status read_dict(Scan *s, const char *path, ampc_array *out)
{
  bool fortran = false;
  unsigned seen = 0, which;
  if (!takes(s, "{")) return damaged(path);
  while (!takes(s, "}")) {
    if (!take_key(s, &which) || seen & 1u << which) return damaged(path);
    seen |= 1u << which;
    ampc_status status = which == 0   ? take_type(s, path, out)
                         : which == 1 ? take_order(s, path, &fortran)
                                      : take_shape(s, path, &out->is);
    if (status) return status;
    takes(s, ",");
  }
  if (seen != 7) return damaged(path);
  if (fortran && out->is.rank > 0)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is in Fortran order, so its samples are not contiguous: save it with "
                     "numpy.save(path, numpy.ascontiguousarray(a))",
                     path);
  return AMPC_OK;
}

ampc_status npy_read_header(const char *path, const uint8_t *head, int64_t got, int64_t most,
                            ampc_array *out, int64_t *out_at)
{
  static const char magic[] = "\x93NUMPY";
  int64_t elements;
  if (got < 6 || memcmp(head, magic, 6) != 0)
    return ampc_fail(AMPC_BAD_FILE, "%s is no NPY file: it does not begin with \\x93NUMPY", path);
  int64_t begin = got > 6 && head[6] > 1 ? 12 : 10, size = 0;
  for (int64_t i = begin - 1; got >= begin && i >= 8; i--) size = size << 8 | head[i];
  if (got > 6 && (head[6] < 1 || head[6] > 3))
    return ampc_fail(AMPC_BAD_FILE, "%s is an NPY file of version %d; 1 to 3 are read", path,
                     head[6]);
  if (size > NPY_HEAD - begin)
    return ampc_fail(AMPC_BAD_FILE, "%s has a header of %lld bytes; up to %lld are read", path,
                     (long long)size, (long long)(NPY_HEAD - begin));
  if (got < begin + size)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %lld of %lld bytes",
                     path, (long long)got, (long long)(begin + size));
  Scan s = {(const char *)head + begin, (const char *)head + begin + size};
  ampc_status status = read_dict(&s, path, out);
  if (status) return status;
  *out_at = begin + size;
  return header_elements(&out->is, path, (most - *out_at) / out->type.size, &elements);
}
