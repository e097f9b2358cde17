/* Reads and writes parameters as f32 in the order of their shape, independent of their type and
 * order in memory. Only this file knows how a convolution's weight is stored, and how the bf16
 * weights of a program without f32 masters are. */
#include <stdlib.h>
#include <string.h>
#include "runtime/base/convert.h"
#include "codes.h"
#include "packed.h"
#include "param.h"
#include "runtime/runtime.h"
#include "common/needs.h"
#include "runtime/plan/types.h"

/* ---- one filter ---- */

static ampc_packed packed_of(const ampc_param *q)
{
  return ampc_packed_of(q->packing, q->dim[0], q->dim[1]);
}

typedef struct Filter {         /* a slice along the first axis: [c, kernel..] or [kernel.., c] */
  int64_t channels, taps, size; /* size: bytes of an element */
} Filter;

static int64_t filter_elements(const ampc_param *q)
{
  if (q->packing) return 2 * packed_of(q).block; /* even, as hashes need pieces of 8 bytes */
  return q->channels_last && q->dim[0] > 0 ? q->elements / q->dim[0] : 1;
}

static Filter filter_of(const ampc_program *p, const ampc_param *q)
{
  int64_t channels = q->dim[1];
  return (Filter){channels, filter_elements(q) / channels, ampc_element_size(p, q->dtype)};
}

/* Transposes [rows, columns]. The compiler makes a loop for each element size. */
static void transpose(int64_t size, const char *from, char *to, int64_t rows, int64_t columns)
{
  const uint16_t *from2 = (const uint16_t *)(const void *)from;
  const uint32_t *from4 = (const uint32_t *)(const void *)from;
  const uint64_t *from8 = (const uint64_t *)(const void *)from;
  uint16_t *to2 = (uint16_t *)(void *)to;
  uint32_t *to4 = (uint32_t *)(void *)to;
  uint64_t *to8 = (uint64_t *)(void *)to;
  for (int64_t i = 0; i < columns; i++)
    for (int64_t k = 0; k < rows; k++) {
      if (size == 8)
        to8[i * rows + k] = from8[k * columns + i];
      else if (size == 2)
        to2[i * rows + k] = from2[k * columns + i];
      else
        to4[i * rows + k] = from4[k * columns + i];
    }
}

/* Reorders whole filters in place. */
static ampc_status permute(const Filter *f, char *filters, int64_t n, bool to_channels_last)
{
  int64_t bytes = f->channels * f->taps * f->size;
  if (f->channels == 1 || f->taps == 1) return AMPC_OK;
  char *one = malloc((size_t)bytes);
  if (!one) return ampc_fail(AMPC_RUN_FAILED, "out of memory for weights");
  int64_t rows = to_channels_last ? f->channels : f->taps;
  for (int64_t i = 0; i < n; i++) {
    memcpy(one, filters + i * bytes, (size_t)bytes);
    transpose(f->size, one, filters + i * bytes, rows, f->channels * f->taps / rows);
  }
  free(one);
  return AMPC_OK;
}

/* ---- parameters ---- */

int64_t param_piece(const ampc_param *q, int64_t most)
{
  int64_t whole = filter_elements(q);
  while (whole % AMPC_CODE_BLOCK) whole *= 2; /* whole filters, whole blocks */
  int64_t piece = most < whole ? whole : most / whole * whole;
  return piece < q->elements ? piece : q->elements;
}

static ampc_dtype stored_type(const ampc_program *p, const ampc_param *q, ampc_space space)
{
  return q->buffer ? q->dtype : ampc_space_type(p, space);
}

static ampc_ref place_of(const ampc_program *p, const ampc_param *q, ampc_space space,
                         int64_t first)
{
  int64_t size = ampc_element_size(p, stored_type(p, q, space));
  return (ampc_ref){space, (q->buffer ? q->offset : q->offset * size) + first * size};
}

/* ---- bf16 weights and moments ---- */

enum { CHUNK = 1 << 13 /* elements that are converted at once */ };

/* Note [residue]: with rounding="kahan" a weight is the sum of two bf16 numbers: the number in
 * MASTER, which ops read, and its rounding error in RESIDUE. The f32 sum is exact and determines
 * both: they are the sum rounded to bf16, and what is left. The update (ampc_two_bf16 in
 * templates/device.cuh) keeps it so. Files contain the sum. */
static bool has_residue(const ampc_program *p, const ampc_param *q, ampc_space space)
{
  return space == AMPC_MASTER && q->optimizer >= 0 && p->space_bytes[AMPC_RESIDUE];
}

/* Sets `high` to x rounded to bf16, and `rest` to the rounded rest; 0 if it is not finite. */
static void split(const float *x, uint16_t *high, uint16_t *rest, int64_t n)
{
  float wide[CHUNK], left[CHUNK];
  convert_narrow(AMPC_BF16, x, high, n);
  convert_widen(AMPC_BF16, high, wide, n);
  for (int64_t i = 0; i < n; i++) {
    left[i] = x[i] - wide[i];
    if (left[i] - left[i] != 0) left[i] = 0;
  }
  convert_narrow(AMPC_BF16, left, rest, n);
}

/* Sets `to` to the sums of the weights and their residues. */
static void join(const uint16_t *high, const uint16_t *rest, float *to, int64_t n)
{
  float left[CHUNK];
  convert_widen(AMPC_BF16, high, to, n);
  convert_widen(AMPC_BF16, rest, left, n);
  for (int64_t i = 0; i < n; i++)
    if (left[i] != 0) to[i] += left[i]; /* -0 + 0 would be 0 */
}

static ampc_status narrow_read(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                               int64_t first, int64_t n, float *to)
{
  const ampc_program *p = rt->program;
  uint16_t high[CHUNK], rest[CHUNK];
  ampc_status status = AMPC_OK;
  for (int64_t i = 0, k; i < n && !status; i += k) {
    k = n - i < CHUNK ? n - i : CHUNK;
    int64_t bytes = k * (int64_t)sizeof *high;
    status = ampc_read(rt, place_of(p, q, space, first + i), high, bytes);
    if (!status && has_residue(p, q, space)) {
      status = ampc_read(rt, place_of(p, q, AMPC_RESIDUE, first + i), rest, bytes);
      join(high, rest, to + i, k);
    } else
      convert_widen(AMPC_BF16, high, to + i, k);
  }
  return status;
}

/* Rounds to nearest. Values of a file that the same program has written do not change. */
static ampc_status narrow_write(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                                int64_t first, int64_t n, const float *from)
{
  const ampc_program *p = rt->program;
  uint16_t high[CHUNK], rest[CHUNK];
  float sum[CHUNK];
  ampc_status status = AMPC_OK;
  for (int64_t i = 0, k; i < n && !status; i += k) {
    k = n - i < CHUNK ? n - i : CHUNK;
    int64_t bytes = k * (int64_t)sizeof *high;
    split(from + i, high, rest, k);
    if (has_residue(p, q, space)) { /* the rounded sum may have another `high` */
      join(high, rest, sum, k);
      split(sum, high, rest, k);
      status = ampc_write(rt, place_of(p, q, AMPC_RESIDUE, first + i), rest, bytes);
    }
    if (!status) status = ampc_write(rt, place_of(p, q, space, first + i), high, bytes);
  }
  return status;
}

/* ---- quantized weights ---- */

/* Moves the codes and the scales of n elements, from element `first` on: whole blocks. */
static ampc_status packed_move(ampc_runtime *rt, const ampc_param *q, int64_t first, int64_t n,
                               float *values, bool writes)
{
  ampc_packed p = packed_of(q);
  int64_t each = q->packing == AMPC_NF4 ? 2 : 1, size = n / p.block * (int64_t)sizeof(float);
  uint8_t *codes = malloc((size_t)(n / each));
  float *scales = malloc((size_t)size);
  ampc_ref at = {AMPC_BUFFER, q->offset + first / each};
  ampc_ref scales_at = {AMPC_BUFFER,
                        q->offset + p.scales + first / p.block * (int64_t)sizeof(float)};
  ampc_status status =
      codes && scales ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", q->path);
  if (!status && writes) {
    if (!packed_from(q->packing, p.block, values, n, codes, scales))
      status = ampc_fail(AMPC_BAD_FILE, "%s: values are not finite, so they cannot be stored as %s",
                         q->path, ampc_packing_name(q->packing));
    if (!status) status = ampc_write(rt, at, codes, n / each);
    if (!status) status = ampc_write(rt, scales_at, scales, size);
  } else if (!status) {
    status = ampc_read(rt, at, codes, n / each);
    if (!status) status = ampc_read(rt, scales_at, scales, size);
    if (!status) packed_to(q->packing, p.block, codes, scales, values, n);
  }
  free(codes);
  free(scales);
  return status;
}

/* ---- moments in 8 bits ---- */

static bool has_codes(const ampc_program *p, const ampc_param *q, ampc_space space)
{
  return !q->buffer && stored_type(p, q, space) == AMPC_U8;
}

/* Returns the place of the scale of the block that begins at element `first`. */
static ampc_ref scale_place(const ampc_program *p, const ampc_param *q, ampc_space space,
                            int64_t first)
{
  int64_t block = (q->offset + first) / AMPC_CODE_BLOCK;
  return (ampc_ref){AMPC_SCALE1 + (space - AMPC_MOMENT1), block * ampc_element_size(p, AMPC_F32)};
}

/* Reads or writes elements [first, first + n): blocks, of which the last may be the end of the
 * parameter. */
static ampc_status codes_move(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              int64_t first, int64_t n, float *values, bool write)
{
  const ampc_program *p = rt->program;
  const bool any_sign =
      !(p->optimizers[q->optimizer].unsigned_moments >> (space - AMPC_MOMENT1) & 1);
  uint8_t codes[CHUNK];
  float scales[CHUNK / AMPC_CODE_BLOCK], value[256];
  ampc_status status = AMPC_OK;
  codes_values(any_sign, value);
  for (int64_t i = 0; i < n && !status; i += CHUNK) {
    int64_t blocks = ((n - i < CHUNK ? n - i : CHUNK) + AMPC_CODE_BLOCK - 1) / AMPC_CODE_BLOCK;
    ampc_ref at = place_of(p, q, space, first + i), scale = scale_place(p, q, space, first + i);
    int64_t bytes = blocks * AMPC_CODE_BLOCK, scale_bytes = blocks * (int64_t)sizeof *scales;
    if (!write) status = ampc_read(rt, at, codes, bytes);
    if (!write && !status) status = ampc_read(rt, scale, scales, scale_bytes);
    for (int64_t b = 0; b < blocks && !status; b++) {
      int64_t from = i + b * AMPC_CODE_BLOCK;
      int64_t here = n - from < AMPC_CODE_BLOCK ? n - from : AMPC_CODE_BLOCK;
      uint8_t *own = codes + b * AMPC_CODE_BLOCK;
      if (write)
        scales[b] = codes_pack(value, any_sign, values + from, here, own);
      else
        codes_unpack(value, own, scales[b], here, values + from);
    }
    if (write && !status) status = ampc_write(rt, at, codes, bytes);
    if (write && !status) status = ampc_write(rt, scale, scales, scale_bytes);
  }
  return status;
}

static bool is_narrow(const ampc_program *p, const ampc_param *q, ampc_space space)
{
  return stored_type(p, q, space) != q->dtype;
}

static ampc_status values_write(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                                int64_t first, int64_t n, const void *from)
{
  const ampc_program *p = rt->program;
  if (q->packing) return packed_move(rt, q, first, n, (float *)(uintptr_t)from, true);
  if (has_codes(p, q, space))
    return codes_move(rt, q, space, first, n, (float *)(uintptr_t)from, true);
  if (is_narrow(p, q, space)) return narrow_write(rt, q, space, first, n, from);
  return ampc_write(rt, place_of(p, q, space, first), from, n * ampc_element_size(p, q->dtype));
}

/* ---- reading and writing ---- */

static ampc_status param_read(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              int64_t first, int64_t n, void *to)
{
  const ampc_program *p = rt->program;
  if (q->packing) return packed_move(rt, q, first, n, to, false);
  int64_t bytes = n * ampc_element_size(p, q->dtype);
  ampc_status status = has_codes(p, q, space) ? codes_move(rt, q, space, first, n, to, false)
                       : is_narrow(p, q, space)
                           ? narrow_read(rt, q, space, first, n, to)
                           : ampc_read(rt, place_of(p, q, space, first), to, bytes);
  if (status || !q->channels_last) return status;
  Filter f = filter_of(p, q);
  return permute(&f, to, n / filter_elements(q), false);
}

ampc_status param_write(ampc_runtime *rt, const ampc_param *q, ampc_space space, int64_t first,
                        int64_t n, void *from)
{
  ampc_status status = AMPC_OK;
  if (q->channels_last) {
    Filter f = filter_of(rt->program, q);
    status = permute(&f, from, n / filter_elements(q), true);
  }
  return status ? status : values_write(rt, q, space, first, n, from);
}

ampc_status param_move(ampc_runtime *rt, const ampc_param *q, ampc_space space, bool load,
                       ParamMove *move, void *context)
{
  enum { PIECE = 1 << 20 /* bytes that are moved at once */ };
  int64_t size = ampc_element_size(rt->program, q->dtype), each = param_piece(q, PIECE / size);
  char *piece = malloc((size_t)(each * size) + 1);
  ampc_status status =
      piece ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", q->path);
  for (int64_t at = 0; at < q->elements && !status; at += each) {
    int64_t n = q->elements - at < each ? q->elements - at : each;
    if (!load) status = param_read(rt, q, space, at, n, piece);
    if (!status) status = move(context, at * size, n * size, piece);
    if (!status && load) status = param_write(rt, q, space, at, n, piece);
  }
  free(piece);
  return status;
}

ampc_status ampc_read_param(ampc_runtime *rt, const ampc_param *q, ampc_space space, void *to)
{
  NEEDS(rt && q && to && (unsigned)space < AMPC_SPACE_COUNT);
  return param_read(rt, q, space, 0, q->elements, to);
}

ampc_status ampc_write_param(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                             const void *from)
{
  NEEDS(rt && q && from && (unsigned)space < AMPC_SPACE_COUNT);
  int64_t bytes = q->elements * ampc_element_size(rt->program, q->dtype);
  if (!q->channels_last) return values_write(rt, q, space, 0, q->elements, from);
  void *copy = malloc((size_t)bytes + 1);
  if (!copy) return ampc_fail(AMPC_RUN_FAILED, "out of memory for weights");
  memcpy(copy, from, (size_t)bytes);
  ampc_status status = param_write(rt, q, space, 0, q->elements, copy);
  free(copy);
  return status;
}
