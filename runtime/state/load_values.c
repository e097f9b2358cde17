/* Converts the numbers of a file to the type of a parameter: floats of any width to the f32 of the
 * masters, integers to the type of the buffer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"
#include "param.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"

enum { PIECE = 1 << 18 /* elements converted at once */ };

typedef struct Range { /* values outside the range of a narrow type */
  bool read;           /* the job reads these weights in this type */
  int64_t beyond, vanished;
} Range;

typedef struct Copying {
  ampc_runtime *rt;
  const LoadTensor *from;
  const ampc_param *to;
  ampc_space space;
  int64_t size;             /* bytes of an element of the parameter */
  int64_t lost, not_finite; /* numbers of elements */
  Range range[AMPC_DTYPE_COUNT];
  char *raw, *made;
} Copying;

static ampc_status no_memory(const Copying *c)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->to->path);
}

/* ---- numbers ---- */

static bool same_type(const Copying *c)
{
  return c->from->entry.dtype == c->to->dtype &&
         (c->to->dtype != AMPC_F32 || c->from->entry.wide == c->rt->program->real64);
}

static void narrow_integers(Copying *c, int64_t n)
{
  int64_t least = c->to->dtype == AMPC_I32 ? INT32_MIN : 0;
  int64_t most = c->to->dtype == AMPC_I32 ? INT32_MAX : 255;
  for (int64_t i = 0; i < n; i++) {
    ampc_dtype from = c->from->entry.dtype;
    int64_t v = ampc_is_float(from) ? (int64_t)number_load(from, c->from->entry.wide, c->raw, i)
                : from == AMPC_I64  ? ((const int64_t *)(const void *)c->raw)[i]
                : from == AMPC_I32  ? ((const int32_t *)(const void *)c->raw)[i]
                                    : ((const uint8_t *)c->raw)[i];
    if (c->to->dtype == AMPC_I64) {
      ((int64_t *)(void *)c->made)[i] = v;
      continue;
    }
    c->lost += v < least || v > most;
    if (c->to->dtype == AMPC_I32)
      ((int32_t *)(void *)c->made)[i] = (int32_t)(v < least ? least : v > most ? most : v);
    else
      ((uint8_t *)c->made)[i] = (uint8_t)(v < least ? least : v > most ? most : v);
  }
}

static void convert_floats(Copying *c, int64_t n)
{
  const TensorEntry *e = &c->from->entry;
  bool real64 = c->rt->program->real64;
  if (e->dtype != AMPC_F32 && c->to->dtype == AMPC_F32 && !real64) {
    convert_widen(e->dtype, c->raw, (float *)(void *)c->made, n);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    double v = number_load(e->dtype, e->wide, c->raw, i);
    number_store(c->to->dtype, real64, c->made, i, v);
    c->lost += isfinite(v) && !isfinite(number_load(c->to->dtype, real64, c->made, i));
  }
}

static double magnitude(const Copying *c, int64_t i)
{
  return fabs(number_load(c->to->dtype, c->rt->program->real64, c->made, i));
}

static void count_range(Copying *c, ampc_dtype d, int64_t n)
{
  const ampc_type *type = ampc_type_of(d);
  Range *r = &c->range[d];
  for (int64_t i = 0; i < n && r->read; i++) {
    double v = magnitude(c, i);
    r->beyond += isfinite(v) && v >= type->overflow;
    r->vanished += v > 0 && v <= type->least / 2;
  }
}

static void count_floats(Copying *c, int64_t n)
{
  if (!ampc_is_float(c->to->dtype)) return;
  for (int64_t i = 0; i < n; i++) c->not_finite += !isfinite(magnitude(c, i));
  for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT; d++) count_range(c, d, n);
}

/* Adds what a frozen weight becomes to the hash that checkpoints of adapters keep (FNV-1a, by words
 * of 8 bytes). */
static void add_to_base(const Copying *c, int64_t n)
{
  uint64_t hash = c->rt->given_hash ? c->rt->given_hash : 0xcbf29ce484222325u, word;
  size_t bytes = (size_t)(n * c->size);
  for (size_t i = 0; i < bytes; i += sizeof word) {
    word = 0;
    memcpy(&word, c->made + i, bytes - i < sizeof word ? bytes - i : sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  c->rt->given_hash = hash ? hash : 1;
}

static void convert(Copying *c, int64_t n)
{
  if (same_type(c))
    memcpy(c->made, c->raw, (size_t)(n * c->size));
  else if (ampc_is_float(c->to->dtype))
    convert_floats(c, n);
  else
    narrow_integers(c, n);
  count_floats(c, n);
  if (c->to->given) add_to_base(c, n);
}

/* ---- tensors ---- */

static ampc_status copy_pieces(Copying *c)
{
  const TensorEntry *e = &c->from->entry;
  int64_t all = c->to->elements, piece = param_piece(c->to, PIECE);
  c->raw = malloc((size_t)(piece * e->unit) + 1);
  c->made = malloc((size_t)(piece * c->size) + 1);
  ampc_status status = c->raw && c->made ? AMPC_OK : no_memory(c);
  for (int64_t at = 0; at < all && !status; at += piece) {
    int64_t n = all - at < piece ? all - at : piece;
    status = tensor_file_load(c->from->file, e->begin + at * e->unit, c->raw, n * e->unit);
    if (status) break;
    convert(c, n);
    status = param_write(c->rt, c->to, c->space, at, n, c->made);
  }
  return status;
}

/* Loads a matrix that the file stores transposed. Converts all of it at once. */
static ampc_status copy_transposed(Copying *c)
{
  const TensorEntry *e = &c->from->entry;
  int64_t rows = c->to->dim[0], columns = c->to->dim[1], n = rows * columns;
  c->raw = malloc((size_t)(n * (e->unit > c->size ? e->unit : c->size)) + 1);
  c->made = malloc((size_t)(n * c->size) + 1);
  if (!c->raw || !c->made) return no_memory(c);
  ampc_status status = tensor_file_load(c->from->file, e->begin, c->raw, n * e->unit);
  if (status) return status;
  convert(c, n);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      memcpy(c->raw + (i * columns + k) * c->size, c->made + (k * rows + i) * c->size,
             (size_t)c->size);
  return param_write(c->rt, c->to, c->space, 0, n, c->raw);
}

/* Reports values that become infinite or 0 in a narrow type. If fewer than 1 % become 0, which does
 * no harm, the report is only a note. */
static void tell_range(const Copying *c, ampc_dtype d, const Loading *x)
{
  char line[400];
  const ampc_type *n = ampc_type_of(d);
  const char *name = n->name;
  const Range *r = &c->range[d];
  long long all = c->to->elements;
  if (r->beyond) {
    snprintf(line, sizeof line,
             "%s: %lld of %lld values are beyond %s (%s): infinite wherever the job reads them "
             "as %s",
             c->to->path, (long long)r->beyond, all, name, n->greatest_text, name);
    x->tell(x->to, true, line);
  }
  if (r->vanished) {
    snprintf(line, sizeof line,
             "%s: %lld of %lld values are below %s (%s): 0 wherever the job reads them as %s",
             c->to->path, (long long)r->vanished, all, name, n->least_text, name);
    x->tell(x->to, r->vanished >= all / 100, line);
  }
}

static void tell_values(const Copying *c, const Loading *x)
{
  char line[400];
  long long all = c->to->elements;
  const char *type = ampc_dtype_name(c->to->dtype),
             *became = ampc_is_float(c->to->dtype) ? "infinite" : "its nearest value";
  if (c->lost) {
    snprintf(line, sizeof line, "%s: %lld of %lld values of the file are beyond %s and became %s",
             c->to->path, (long long)c->lost, all, type, became);
    x->tell(x->to, true, line);
  }
  if (c->not_finite > c->lost) {
    snprintf(line, sizeof line, "%s: %lld of %lld values of the file are not finite", c->to->path,
             (long long)(c->not_finite - c->lost), all);
    x->tell(x->to, true, line);
  }
  for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT; d++) tell_range(c, d, x);
}

#define READ(KIND, name, SPACE, copy, ...) [AMPC_##KIND] = {.read = q->copy},

ampc_status load_value(const Loading *x, uint32_t i, LoadCount *count)
{
  const ampc_param *q = &x->program->params[i];
  Copying c = {.rt = x->rt,
               .from = &x->at[x->given[i] - 1],
               .to = q,
               .space = q->buffer ? AMPC_BUFFER : AMPC_MASTER,
               .size = ampc_element_size(x->program, q->dtype),
               .range = {AMPC_NARROW_FLOATS(READ)}};
  ampc_status status = x->fit[i] == FIT_transposed ? copy_transposed(&c) : copy_pieces(&c);
  free(c.raw);
  free(c.made);
  if (status) return status;
  tell_values(&c, x);
  count->tensors++;
  count->converted += !same_type(&c);
  return AMPC_OK;
}

ampc_status load_is_same(const LoadTensor *a, const LoadTensor *b, bool *out)
{
  const TensorEntry *x = &a->entry, *y = &b->entry;
  *out = x->dtype == y->dtype && x->wide == y->wide && x->rank == y->rank &&
         memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) == 0;
  int64_t bytes = x->elements * x->unit;
  char *one = malloc(PIECE), *two = malloc(PIECE);
  ampc_status status =
      one && two ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", a->name);
  for (int64_t at = 0; at < bytes && !status && *out; at += PIECE) {
    int64_t n = bytes - at < PIECE ? bytes - at : PIECE;
    status = tensor_file_load(a->file, x->begin + at, one, n);
    if (!status) status = tensor_file_load(b->file, y->begin + at, two, n);
    *out = !status && memcmp(one, two, (size_t)n) == 0;
  }
  free(one);
  free(two);
  return status;
}
