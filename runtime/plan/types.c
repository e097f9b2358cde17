#include "types.h"
#include "arithmetic.h"
#include <stdio.h>
#include <string.h>

#define FLOAT(KIND, name, SPACE, copy, cpu, lt, dnn, ...)                                          \
  [AMPC_##KIND] = {#name, "AMPC_" #KIND, AMPC_##SPACE, __VA_ARGS__},
#define WHOLE(KIND, named, bytes, in_kernels, in_c, in_npy)                                        \
  [AMPC_##KIND] = {.name = #named,                                                                 \
                   .constant = "AMPC_" #KIND,                                                      \
                   .size = bytes,                                                                  \
                   .kernel = in_kernels,                                                           \
                   .c = in_c,                                                                      \
                   .npy = in_npy}
static const ampc_type types[AMPC_DTYPE_COUNT] = {
    WHOLE(I32, i32, 4, "int", "int32_t", "<i4"), WHOLE(I64, i64, 8, "long long", "int64_t", "<i8"),
    WHOLE(U8, u8, 1, "unsigned char", "uint8_t", "|u1"),
    WHOLE(BOOL, bool, 1, "unsigned char", "uint8_t", "|b1"), AMPC_FLOATS(FLOAT)};

#define SPACE(KIND, name, ...) [AMPC_##KIND] = {#name, "AMPC_" #KIND, __VA_ARGS__}
#define COPIES(TYPE, type, KIND, name, ...)                                                        \
  SPACE(KIND, name, AMPC_##TYPE, #type " copies", #type " copies of weights"),
static const ampc_space_row spaces[AMPC_SPACE_COUNT] = {
    SPACE(NONE, none, AMPC_DTYPE_COUNT, "none", ""),
    SPACE(STATE, state, AMPC_DTYPE_COUNT, "state", "counters, scaler, settings"),
    SPACE(MASTER, master, AMPC_F32, "weights", "weights (f32)"),
    SPACE(RESIDUE, residue, AMPC_BF16, "residues", "rounding errors of weights (bf16, kahan)"),
    SPACE(GRAD, grad, AMPC_F32, "gradients", "gradients"),
    SPACE(MOMENT1, moment1, AMPC_F32, "first moments", "optimizer state"),
    SPACE(MOMENT2, moment2, AMPC_F32, "second moments", "optimizer state"),
    SPACE(MOMENT3, moment3, AMPC_F32, "third moments", "optimizer state"),
    SPACE(SCALE1, scale1, AMPC_F32, "scales of first moments", "scales of optimizer state"),
    SPACE(SCALE2, scale2, AMPC_F32, "scales of second moments", "scales of optimizer state"),
    SPACE(SCALE3, scale3, AMPC_F32, "scales of third moments", "scales of optimizer state"),
    SPACE(EMA, ema, AMPC_F32, "weight averages", "averages of weights (ema)"),
    SPACE(BUFFER, buffer, AMPC_DTYPE_COUNT, "buffers", "buffers; frozen weights"),
    SPACE(KEPT, kept, AMPC_DTYPE_COUNT, "kept buffers",
          "copy of the buffers before a step (accumulate)"),
    SPACE(CACHE, cache, AMPC_DTYPE_COUNT, "cache", "cache of a text: keys, values, carried state"),
    SPACE(INPUT, input, AMPC_DTYPE_COUNT, "batch", "batch"),
    SPACE(WORK, work, AMPC_DTYPE_COUNT, "activations and work",
          "work: all other values, placed by lifetime"),
    AMPC_NARROW_FLOATS(COPIES)};

const ampc_type *ampc_type_of(ampc_dtype d)
{
  return &types[d];
}

const ampc_space_row *ampc_space_of(ampc_space s)
{
  return &spaces[s];
}

bool ampc_space_is_moment(ampc_space s)
{
  return s >= AMPC_MOMENT1 && s <= AMPC_SCALE3;
}

int64_t ampc_space_each(ampc_space s)
{
  return s >= AMPC_SCALE1 && s <= AMPC_SCALE3 ? AMPC_CODE_BLOCK : 1;
}

ampc_dtype ampc_space_type(const ampc_program *p, ampc_space s)
{
  if (s == AMPC_MASTER) return p->weights;
  return s >= AMPC_MOMENT1 && s <= AMPC_MOMENT3 ? p->moments : spaces[s].type;
}

const char *ampc_space_purpose(const ampc_program *p, ampc_space s)
{
  if (s == AMPC_MASTER && p->weights != AMPC_F32) return "weights (bf16, without f32 masters)";
  bool moment = s >= AMPC_MOMENT1 && s <= AMPC_MOMENT3;
  if (moment && p->moments == AMPC_U8) return "optimizer state (8-bit codes)";
  if (moment && p->moments != AMPC_F32) return "optimizer state (bf16)";
  return spaces[s].purpose;
}

bool ampc_is_float(ampc_dtype d)
{
  return d < AMPC_DTYPE_COUNT && types[d].mantissa > 0;
}

bool ampc_is_narrow(ampc_dtype d)
{
  return ampc_is_float(d) && d != AMPC_F32;
}

ampc_dtype ampc_dtype_by(const char *name)
{
  int d = 0;
  while (d < AMPC_DTYPE_COUNT && strcmp(types[d].name, name) != 0) d++;
  return (ampc_dtype)d;
}

int64_t ampc_dtype_size(ampc_dtype t)
{
  return t < AMPC_DTYPE_COUNT ? types[t].size : 0;
}

int64_t ampc_size_of(ampc_dtype d, bool real64)
{
  return d == AMPC_F32 && real64 ? (int64_t)sizeof(double) : ampc_dtype_size(d);
}

int64_t ampc_element_size(const ampc_program *p, ampc_dtype t)
{
  return ampc_size_of(t, p && p->real64);
}

ampc_packed ampc_packed_of(ampc_packing packing, int64_t rows, int64_t columns)
{
  enum { NF4_BLOCK = 64 };
  bool nf4 = packing == AMPC_NF4;
  ampc_packed p = {.block = nf4 ? NF4_BLOCK : columns,
                   .codes = nf4 ? rows * columns / 2 : rows * columns};
  p.scales = ceil_div(p.codes, AMPC_BUFFER_ALIGN) * AMPC_BUFFER_ALIGN;
  p.bytes = p.scales + rows * columns / p.block * ampc_dtype_size(AMPC_F32);
  return p;
}

const char *ampc_packing_name(ampc_packing packing)
{
  static const char *const names[] = {"", "int8", "nf4"};
  return names[packing];
}

const char *ampc_type_text(char to[AMPC_TYPE_ROOM], ampc_dtype d, uint32_t rank, const int64_t *dim)
{
  int n = snprintf(to, AMPC_TYPE_ROOM, "%s[", ampc_dtype_name(d));
  for (uint32_t i = 0; i < rank; i++)
    n += snprintf(to + n, AMPC_TYPE_ROOM - (size_t)n, "%s%lld", i ? ", " : "", (long long)dim[i]);
  snprintf(to + n, AMPC_TYPE_ROOM - (size_t)n, "]");
  return to;
}

const char *ampc_dtype_name(ampc_dtype t)
{
  return t < AMPC_DTYPE_COUNT ? types[t].name : "none";
}
