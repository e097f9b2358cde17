/* How ptx.def computes integers: the functions that its column `whole` calls. A value is the bits
 * of a register; `t` says how many of them count, and whether they have a sign. */
#pragma once
#include "ptx.h"

static inline uint64_t masked(uint64_t bits, uint32_t bytes)
{
  return bytes >= 8 ? bits : bits & ((1ull << 8 * bytes) - 1);
}

static inline int64_t sign_extended(uint64_t bits, uint32_t bytes)
{
  uint32_t shift = 64 - 8 * bytes;
  return (int64_t)(bits << shift) >> shift;
}

static inline bool is_signed(PtxType t)
{
  return t == PTX_s8 || t == PTX_s16 || t == PTX_s32 || t == PTX_s64;
}

static inline int64_t whole(PtxType t, uint64_t bits)
{
  uint32_t bytes = ptx_type_bytes(t);
  return is_signed(t) ? sign_extended(bits, bytes) : (int64_t)masked(bits, bytes);
}

static inline bool below(PtxType t, uint64_t x, uint64_t y)
{
  return is_signed(t) ? (int64_t)x < (int64_t)y : x < y;
}

/* Divides. Division by zero, which PTX leaves undefined, returns all ones, as GPUs do. */
static inline uint64_t quotient(PtxType t, uint64_t x, uint64_t y, bool rest)
{
  int64_t a = whole(t, x), b = whole(t, y);
  if (b == 0) return UINT64_MAX;
  if (is_signed(t)) {
    if (b == -1) return rest ? 0 : 0 - (uint64_t)a;
    return (uint64_t)(rest ? a % b : a / b);
  }
  return rest ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b;
}

/* Returns the upper half of a product. */
static inline uint64_t high(PtxType t, uint64_t x, uint64_t y)
{
  uint32_t bits = 8 * ptx_type_bytes(t);
  if (is_signed(t)) return (uint64_t)((__int128)whole(t, x) * whole(t, y) >> bits);
  return (uint64_t)((unsigned __int128)(uint64_t)whole(t, x) * (uint64_t)whole(t, y) >> bits);
}

static inline uint64_t shifted_left(PtxType t, uint64_t x, uint64_t by)
{
  by = (uint32_t)by;
  return by >= 8 * ptx_type_bytes(t) ? 0 : x << by;
}

static inline uint64_t shifted_right(PtxType t, uint64_t x, uint64_t by)
{
  uint64_t bits = 8 * ptx_type_bytes(t);
  by = (uint32_t)by;
  if (is_signed(t)) return (uint64_t)((int64_t)x >> (by >= bits ? bits - 1 : by));
  return by >= bits ? 0 : x >> by;
}

static inline uint64_t permuted(uint64_t a, uint64_t b, uint64_t select)
{
  uint64_t all = (uint32_t)a | b << 32, out = 0;
  for (int k = 0; k < 4; k++) {
    uint64_t pick = select >> 4 * k & 15, byte = all >> 8 * (pick & 7) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << 8 * k;
  }
  return out;
}

static inline uint64_t funnel(char mode, uint64_t low, uint64_t high_word, uint64_t by)
{
  uint64_t all = (uint32_t)low | high_word << 32;
  by &= 31;
  return mode == 'l' ? all << by >> 32 : all >> by;
}

static inline uint64_t looked_up(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
  uint64_t out = 0;
  for (int k = 0; k < 32; k++)
    out |= (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
  return out;
}

static inline uint64_t extracted(PtxType t, uint64_t a, uint64_t at, uint64_t n)
{
  uint64_t bits = 8 * ptx_type_bytes(t);
  at &= 255, n &= 255;
  if (n == 0 || at >= bits) return 0;
  if (at + n > bits) n = bits - at;
  uint64_t left = a << (64 - at - n);
  return is_signed(t) ? (uint64_t)((int64_t)left >> (64 - n)) : left >> (64 - n);
}

static inline uint64_t inserted(PtxType t, uint64_t a, uint64_t into, uint64_t at, uint64_t n)
{
  const uint64_t bits = t == PTX_b64 ? 64 : 32;
  at &= 255, n &= 255;
  if (n == 0 || at >= bits) return into;
  uint64_t mask = (n >= bits ? ~0ull : (1ull << n) - 1) << at;
  return (into & ~mask) | (a << at & mask);
}

static inline uint64_t reversed(uint64_t a)
{
  uint64_t out = 0;
  for (int k = 0; k < 32; k++) out |= (a >> k & 1) << (31 - k);
  return out;
}

static inline uint64_t leading_zeros(uint64_t a)
{
  return (uint32_t)a ? (uint64_t)__builtin_clz((uint32_t)a) : 32;
}

/* Returns z plus the product of two pairs: the halves of x by the lower bytes of y. */
static inline uint64_t pairs(PtxType of_x, PtxType of_y, uint64_t x, uint64_t y, uint64_t z)
{
  PtxType half = is_signed(of_x) ? PTX_s16 : PTX_u16, byte = is_signed(of_y) ? PTX_s8 : PTX_u8;
  return z +
         (uint64_t)(whole(half, x) * whole(byte, y) + whole(half, x >> 16) * whole(byte, y >> 8));
}
