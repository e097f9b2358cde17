/* Compares bit for bit, except for sums in another order: see Note [bounds]. */
#include "compare.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Note [bounds]
 * If the threads of a kernel never synchronize, it computes each number like the CPU text, so the
 * bits must be equal. Otherwise sums of rows have another order, and a number may differ by a
 * fraction of a scale. The scale is the largest number of its tensor, or the number's value if all
 * terms were positive, whichever is larger. A reordered sum of n f32 terms is off by at most n
 * 2^-24 of the sum of |terms|, and the result may cancel completely, as in the gradient of a bias
 * before batch norm. So the CPU text runs once more and adds |terms|. A further 2^-17 is for
 * operations on sums. Numbers that are stored in 16 bits, or rounded to them before they are added
 * to a gradient, may round to the other neighbour; those of f16 below 2^-14 are 2^-24 apart. A
 * missing lane or a term that is added twice is an error of whole terms. It is detected in rows of
 * up to some thousand terms; in longer rows only if several terms are wrong. */
static double bound_of(const Comparison *c, DType type)
{
  if (type == AMPC_F16) return ldexp(1, -10);
  if (type == AMPC_BF16) return ldexp(1, -7);
  return c->real64 ? ldexp(1, -44) + c->terms * ldexp(1, -53)
                   : ldexp(1, -17) + c->terms * ldexp(1, -24);
}

static bool is_float(DType type)
{
  return type == AMPC_F32 || type == AMPC_F16 || type == AMPC_BF16;
}

/* Returns a number of STATE, a struct of floats, doubles and integers. 8 bytes are read as a
 * double, 4 as a float. An integer becomes a subnormal, which differs from its neighbours by a
 * large factor. */
static double number_of(DType type, unsigned size, uint64_t bits)
{
  double d;
  float f;
  uint32_t low = (uint32_t)bits;
  if (type == AMPC_F16) {
    uint16_t half = (uint16_t)bits;
    _Float16 h;
    memcpy(&h, &half, sizeof h);
    return (double)h;
  }
  if (type == AMPC_BF16) low <<= 16;
  memcpy(&d, &bits, sizeof d);
  memcpy(&f, &low, sizeof f);
  return size == 8 ? d : (double)f;
}

/* Returns the argument at an address. STATE's numbers may lie in a struct, another argument. */
static uint32_t argument_at(const Comparison *c, uintptr_t at)
{
  uint32_t best = c->n_args;
  for (uint32_t i = 0; i < c->n_args; i++) {
    if (c->args[i].role == ARG_in && c->args[i].place.space == AMPC_STATE) continue;
    if (c->args[i].role == ARG_stream) continue;
    uintptr_t from = (uintptr_t)c->at[i];
    if (from <= at && (best == c->n_args || from > (uintptr_t)c->at[best])) best = i;
  }
  return best;
}

void describe_place(const Comparison *c, uintptr_t at, char *out, size_t size)
{
  uint32_t i = at ? argument_at(c, at) : c->n_args;
  *out = 0;
  if (i < c->n_args)
    snprintf(out, size, " (argument %u, byte %llu)", i,
             (unsigned long long)(at - (uintptr_t)c->at[i]));
}

static bool is_scratch(const Comparison *c, const Word *w)
{
  return w->at >= c->skip && w->at - c->skip < c->skip_size;
}

/* Finds the largest finite number that the CPU text wrote to each argument. */
static void find_scales(const Comparison *c, const WordList *want)
{
  for (uint32_t i = 0; i < c->n_args; i++) c->scale[i] = 0;
  for (size_t i = 0; i < want->n; i++) {
    const Word *w = &want->at[i];
    uint32_t arg = is_scratch(c, w) ? c->n_args : argument_at(c, w->at);
    double x = arg < c->n_args ? fabs(number_of(c->args[arg].type, w->size, w->value)) : 0;
    if (isfinite(x) && x > c->scale[arg]) c->scale[arg] = x;
  }
}

/* Returns the value of word i if all terms were positive; 0 if it is unknown. */
static double size_of(const Comparison *c, size_t i, const Word *w, DType type)
{
  if (i >= c->sizes->n || c->sizes->at[i].at != w->at) return 0;
  double x = fabs(number_of(type, w->size, c->sizes->at[i].value));
  return isfinite(x) ? x : 0;
}

static bool is_state(const KernelArg *a)
{
  return a->role == ARG_state || a->role == ARG_optimizer || a->role == ARG_metric;
}

static bool close_enough(const Comparison *c, size_t i, const Word *w, uint64_t got)
{
  uint32_t arg = argument_at(c, w->at);
  if (arg == c->n_args) return false;
  const KernelArg *a = &c->args[arg];
  if (!is_state(a) && !is_float(a->type)) return false;
  double x = number_of(a->type, w->size, w->value), y = number_of(a->type, w->size, got);
  if (isnan(x) && isnan(y)) return true;
  if (!c->waited || !isfinite(x) || !isfinite(y)) return x == y && signbit(x) == signbit(y);
  double scale = is_state(a) ? fabs(x) : c->scale[arg], size = size_of(c, i, w, a->type);
  if (size > scale) scale = size;
  double least = c->rounded[arg] == AMPC_F16 ? ldexp(1, -24) : 0;
  return fabs(x - y) <= fmax(bound_of(c, c->rounded[arg]) * scale, least);
}

static void say_different(const Comparison *c, const Word *w, uint64_t got, SimtFault *out)
{
  uint32_t arg = argument_at(c, w->at);
  DType type = arg < c->n_args ? c->args[arg].type : AMPC_I64;
  out->memory = w->at;
  if (is_float(type))
    snprintf(out->text, sizeof out->text, "%.9g where the CPU text has %.9g",
             number_of(type, w->size, got), number_of(type, w->size, w->value));
  else
    snprintf(out->text, sizeof out->text, "0x%llx where the CPU text has 0x%llx",
             (unsigned long long)got, (unsigned long long)w->value);
}

bool compare_words(const Comparison *c, const WordList *want, const WordList *got,
                   SimtFault *out_fault)
{
  uint64_t bytes = want->bytes, written = got->bytes;
  if (c->waited) find_scales(c, want);
  for (size_t i = 0; i < got->n && c->skip_size; i++)
    if (is_scratch(c, &got->at[i])) written -= got->at[i].size;
  for (size_t i = 0; i < want->n; i++) {
    const Word *w = &want->at[i];
    if (is_scratch(c, w)) {
      bytes -= w->size;
      continue;
    }
    uint64_t now = memory_read(w->at, w->size);
    if (!memory_was_written(w->at)) {
      *out_fault = (SimtFault){"not written; the CPU text does", w->at};
      return false;
    }
    if (now == w->value || close_enough(c, i, w, now)) continue;
    say_different(c, w, now, out_fault);
    return false;
  }
  if (bytes == written) return true;
  snprintf(out_fault->text, sizeof out_fault->text, "%llu bytes written, by the CPU text %llu",
           (unsigned long long)written, (unsigned long long)bytes);
  out_fault->memory = 0;
  return false;
}
