/* Reads {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}: what JSON the
 * format allows, and no more. The compiler links no JSON library, so this is read here. */
#include "tensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "header.h"

typedef struct Scan {
  const char *at, *end;
} Scan;

typedef struct Tensor {
  ElementType type;
  char name[64];  /* as far as it is told */
  char dtype[12]; /* as the file writes it */
  uint32_t axes;
  int64_t size[AMPC_MAX_RANK];
  int64_t begin, end;
  bool wanted, offsets, shape;
} Tensor;

typedef struct Tensors {
  Tensor *at;
  int64_t n, room;
} Tensors;

#define NARROW_TYPE(KIND, name, SPACE, copy, cpu, lt, dnn, bytes, ...)                             \
  {#KIND, {ELEMENT_##KIND, bytes, false}},
static const struct {
  const char *name;
  ElementType type;
} types[] = {{"BOOL", {ELEMENT_BOOL, 1, false}},  {"U8", {ELEMENT_UNSIGNED, 1, false}},
             {"I8", {ELEMENT_SIGNED, 1, false}},  {"U16", {ELEMENT_UNSIGNED, 2, false}},
             {"I16", {ELEMENT_SIGNED, 2, false}}, {"U32", {ELEMENT_UNSIGNED, 4, false}},
             {"I32", {ELEMENT_SIGNED, 4, false}}, {"U64", {ELEMENT_UNSIGNED, 8, false}},
             {"I64", {ELEMENT_SIGNED, 8, false}}, {"F32", {ELEMENT_FLOAT, 4, false}},
             {"F64", {ELEMENT_FLOAT, 8, false}},  AMPC_NARROW_FLOATS(NARROW_TYPE)};

/* ---- JSON ---- */

static bool takes(Scan *s, char c)
{
  while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
  if (s->at == s->end || *s->at != c) return false;
  s->at++;
  return true;
}

/* What follows a backslash, as a character; escapes by number are those of ASCII only. */
static bool take_escape(Scan *s, char *out)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (s->at == s->end) return false;
  const char *known = *s->at ? strchr(from, *s->at) : NULL;
  if (known) {
    *out = to[known - from];
    s->at++;
    return true;
  }
  char digits[5] = "", *end;
  if (*s->at != 'u' || s->end - s->at < 5) return false;
  memcpy(digits, s->at + 1, 4);
  long code = strtol(digits, &end, 16);
  *out = (char)code;
  s->at += 5;
  return !*end && code > 0 && code < 128;
}

/* A string; what does not fit into `to` is cut off and cannot equal anything. */
static bool take_string(Scan *s, char *to, size_t size)
{
  size_t n = 0;
  if (!takes(s, '"')) return false;
  while (s->at < s->end && *s->at != '"') {
    char c = *s->at++;
    if (c == '\\' && !take_escape(s, &c)) return false;
    if (n + 1 < size) to[n++] = c;
  }
  to[n] = 0;
  return s->at++ < s->end;
}

static bool take_number(Scan *s, int64_t *out)
{
  int64_t n = 0;
  takes(s, 0);
  const char *from = s->at;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n))
      return false;
  *out = n;
  return s->at > from;
}

/* [1, 2, 3]: up to `room` numbers. */
static bool take_numbers(Scan *s, int64_t *to, uint32_t room, uint32_t *out_n)
{
  *out_n = 0;
  if (!takes(s, '[')) return false;
  if (takes(s, ']')) return true;
  do {
    if (*out_n == room || !take_number(s, &to[(*out_n)++])) return false;
  } while (takes(s, ','));
  return takes(s, ']');
}

/* {"key": "value", ...} */
static bool skip_metadata(Scan *s)
{
  char scrap[4];
  if (!takes(s, '{')) return false;
  if (takes(s, '}')) return true;
  do {
    if (!take_string(s, scrap, sizeof scrap) || !takes(s, ':') ||
        !take_string(s, scrap, sizeof scrap))
      return false;
  } while (takes(s, ','));
  return takes(s, '}');
}

/* ---- tensors ---- */

static bool take_tensor(Scan *s, Tensor *t)
{
  char key[16];
  uint32_t n;
  int64_t offsets[2];
  if (!takes(s, '{')) return false;
  do {
    if (!take_string(s, key, sizeof key) || !takes(s, ':')) return false;
    if (strcmp(key, "dtype") == 0) {
      if (*t->dtype || !take_string(s, t->dtype, sizeof t->dtype)) return false;
    } else if (strcmp(key, "shape") == 0) {
      if (t->shape || !take_numbers(s, t->size, AMPC_MAX_RANK, &t->axes)) return false;
      t->shape = true;
    } else if (strcmp(key, "data_offsets") == 0) {
      if (t->offsets || !take_numbers(s, offsets, 2, &n) || n != 2) return false;
      t->begin = offsets[0];
      t->end = offsets[1];
      t->offsets = true;
    } else {
      return false;
    }
  } while (takes(s, ','));
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, t->dtype) == 0) t->type = types[i].type;
  return takes(s, '}') && *t->dtype && t->shape && t->offsets;
}

static Tensor *add_tensor(Tensors *all)
{
  if (all->n == all->room) {
    int64_t room = all->room ? 2 * all->room : 64;
    Tensor *more = realloc(all->at, (size_t)room * sizeof *more);
    if (!more) return NULL;
    all->at = more;
    all->room = room;
  }
  all->at[all->n] = (Tensor){0};
  return &all->at[all->n++];
}

static ampc_status read_tensors(const char *path, Scan *s, const char *key, Tensors *all)
{
  char name[512];
  bool good = takes(s, '{');
  if (good && takes(s, '}')) return AMPC_OK;
  while (good) {
    good = take_string(s, name, sizeof name) && takes(s, ':');
    if (good && strcmp(name, "__metadata__") == 0) {
      good = skip_metadata(s);
    } else if (good) {
      Tensor *t = add_tensor(all);
      if (!t) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
      t->wanted = strcmp(name, key) == 0;
      snprintf(t->name, sizeof t->name, "%.63s", name);
      good = take_tensor(s, t);
    }
    if (!good || !takes(s, ',')) break;
  }
  if (good && takes(s, '}')) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: its header is not the JSON of safetensors", path);
}

static int by_begin(const void *a, const void *b)
{
  const Tensor *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* The range of a tensor is as long as its shape and type ask for. */
static ampc_status check_range(const char *path, const Tensor *t, int64_t most)
{
  int64_t n = t->type.size;
  if (t->begin > t->end)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is damaged: its tensor %s begins at byte %lld and ends at %lld", path,
                     t->name, (long long)t->begin, (long long)t->end);
  if (t->end > most)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is truncated or damaged: its tensor %s ends at byte %lld; %lld bytes follow its "
        "header",
        path, t->name, (long long)t->end, (long long)most);
  for (uint32_t i = 0; i < t->axes; i++)
    if (__builtin_mul_overflow(n, t->size[i], &n)) n = INT64_MAX;
  if (t->type.kind == ELEMENT_NONE || t->end - t->begin == n) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_FILE, "%s is damaged: its tensor %s has %lld bytes, its shape takes %s%lld", path,
      t->name, (long long)(t->end - t->begin), n == INT64_MAX ? "over " : "", (long long)n);
}

/* Ranges must not overlap: such a file was made to mislead. */
static ampc_status check_ranges(const char *path, Tensors *all, int64_t most)
{
  for (int64_t i = 0; i < all->n; i++) {
    ampc_status status = check_range(path, &all->at[i], most);
    if (status) return status;
  }
  if (all->n) qsort(all->at, (size_t)all->n, sizeof *all->at, by_begin);
  for (int64_t i = 1; i < all->n; i++)
    if (all->at[i].begin < all->at[i - 1].end)
      return ampc_fail(AMPC_BAD_FILE, "%s is damaged: its tensors %s and %s overlap at byte %lld",
                       path, all->at[i - 1].name, all->at[i].name, (long long)all->at[i].begin);
  return AMPC_OK;
}

static ampc_status take_wanted(const char *path, const Tensors *all, const char *key,
                               ampc_array *out, int64_t *out_at)
{
  const Tensor *found = NULL;
  int64_t elements, n = 0;
  for (int64_t i = 0; i < all->n; i++)
    if (all->at[i].wanted) found = &all->at[i], n++;
  if (n != 1) {
    char names[200] = "";
    for (int64_t i = 0; i < all->n && strlen(names) + 3 < sizeof names; i++)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : ": ",
               all->at[i].name);
    return ampc_fail(AMPC_BAD_FILE, "%s has %s tensor %s among its %lld%s", path,
                     n ? "more than one" : "no", key, (long long)all->n, names);
  }
  if (found->type.kind == ELEMENT_NONE)
    return ampc_fail(AMPC_BAD_FILE, "%s has %s of type %s, which the language lacks", path, key,
                     found->dtype);
  if (!found->axes)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is a single number in %s: data has an axis that counts samples", key,
                     path);
  out->type = found->type;
  out->is = (ampc_header){.rank = found->axes - 1, .samples = found->size[0]};
  memcpy(out->is.dim, found->size + 1, (found->axes - 1) * sizeof *found->size);
  *out_at = found->begin;
  ampc_status status = array_type(path, out->type, &out->is.dtype);
  return status ? status
                : header_elements(&out->is, path, (found->end - found->begin) / out->type.size,
                                  &elements);
}

ampc_status tensors_find(const char *path, const char *text, int64_t size, int64_t most,
                         const char *key, ampc_array *out, int64_t *out_at)
{
  Tensors all = {0};
  Scan s = {text, text + size};
  ampc_status status = read_tensors(path, &s, key, &all);
  if (!status) status = check_ranges(path, &all, most);
  if (!status) status = take_wanted(path, &all, key, out, out_at);
  free(all.at);
  return status;
}
