#include "float_type.h"

const ampc_float_type *ampc_float_type_of(ampc_dtype d)
{
  static const ampc_float_type f16 = {11, 65504, 65520, 0x1p-24, 0x1p-14, "65504", "5.96e-8"},
                               bf16 = {8,        0x1.fep127,   0x1.ffp127, 0x1p-133,
                                       0x1p-126, "3.38953e38", "9.2e-41"},
                               f32 = {24,       0x1.fffffep127, 0x1.ffffffp127, 0x1p-149,
                                      0x1p-126, "3.40282e38",   "1.4e-45"};
  return d == AMPC_F16 ? &f16 : d == AMPC_BF16 ? &bf16 : &f32;
}
