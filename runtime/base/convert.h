/* Conversions between float formats: widening is exact, narrowing rounds to nearest even.
 * Subnormals, infinities and NaN (made quiet, leading payload bits kept) are treated as the
 * hardware does. */
#pragma once
#include "ampc_plan.h"

void convert_widen(ampc_dtype from_type, const void *from, float *to, int64_t n); /* 16-bit, f32 */
void convert_narrow(ampc_dtype to_type, const float *from, void *to, int64_t n);  /* 16-bit, f32 */
void convert_tf32(const float *from, float *to, int64_t n); /* keeps 10 mantissa bits */

/* Store or load element i of an array. A double is rounded to f32 before it becomes a 16-bit float;
 * it is truncated to an integer. real64: elements of type f32 are doubles. */
void number_store(ampc_dtype t, bool real64, void *base, int64_t i, double value);
double number_load(ampc_dtype t, bool real64, const void *base, int64_t i);
