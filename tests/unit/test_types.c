/* The table of types: the columns of a float type follow from its numbers of bits and agree with
 * its conversions. Every type is found by its name, and every 16-bit copy by its space. */
#include <math.h>
#include "check.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"

static double narrowed(ampc_dtype d, double x)
{
  float wide = (float)x, back = 0;
  uint32_t room = 0;
  convert_narrow(d, &wide, &room, 1);
  convert_widen(d, &room, &back, 1);
  return (double)back;
}

static void check_bits(const ampc_type *t)
{
  int top = 1 << (t->exponent - 1); /* the exponent bias plus 1 */
  CHECK_MSG(1 + t->exponent + t->mantissa == 8 * t->size, "%s: bits", t->name);
  CHECK_MSG(t->normal == ldexp(1, 2 - top), "%s: %a", t->name, t->normal);
  CHECK_MSG(t->least == ldexp(t->normal, -t->mantissa), "%s: %a", t->name, t->least);
  CHECK_MSG(t->overflow - t->greatest == ldexp(1, ilogb(t->greatest) - t->mantissa - 1),
            "%s: %a and %a", t->name, t->greatest, t->overflow);
  double greatest = strtod(t->greatest_text, NULL), least = strtod(t->least_text, NULL);
  CHECK_MSG(fabs(greatest / t->greatest - 1) < 1e-5, "%s: %s", t->name, t->greatest_text);
  CHECK_MSG(fabs(least / t->least - 1) < 1e-2, "%s: %s", t->name, t->least_text);
}

static void check_conversions(ampc_dtype d, const ampc_type *t)
{
  float under = nextafterf((float)t->overflow, 0), over = nextafterf((float)(t->least / 2), 1);
  CHECK_MSG(narrowed(d, t->greatest) == t->greatest, "%s: the greatest", t->name);
  CHECK_MSG(narrowed(d, (double)under) == t->greatest, "%s: below overflow", t->name);
  CHECK_MSG(isinf(narrowed(d, t->overflow)), "%s: overflow", t->name);
  CHECK_MSG(narrowed(d, t->least) == t->least, "%s: the least", t->name);
  CHECK_MSG(narrowed(d, t->least / 2) == 0, "%s: half of the least", t->name);
  CHECK_MSG(narrowed(d, (double)over) == t->least, "%s: above half of the least", t->name);
}

int main(void)
{
  int narrow = 0;
  for (ampc_dtype d = 0; d < AMPC_DTYPE_COUNT; d++) {
    const ampc_type *t = ampc_type_of(d);
    CHECK_MSG(ampc_dtype_by(t->name) == d, "%s is not found", t->name);
    if (ampc_is_float(d)) check_bits(t);
    if (!ampc_is_narrow(d)) continue;
    check_conversions(d, t);
    CHECK_MSG(ampc_space_of(t->copies)->type == d, "the copies of %s", t->name);
    narrow++;
  }
  CHECK(narrow >= 2 && ampc_dtype_by("float") == AMPC_DTYPE_COUNT);
  return check_done();
}
