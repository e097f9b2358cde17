/* Numbers of every type as doubles: rounding and encoding, computed from the definition of the
 * formats (number.c), and the random numbers that fill inputs. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "compiler/graph/ops.h"

double number_round(DType d, double x);         /* to the type's nearest value, ties to even */
double number_ulp(DType d, double x);           /* returns the distance between neighbours at |x| */
double number_round_bits(double x, int digits); /* rounds to `digits` significant bits */
bool number_same(double a, double b);           /* true if the numbers are equal, or both NaN */
double number_worse(double a, double b);        /* returns the larger error; a NaN is the largest */
/* Convert between doubles and a type's bytes. real64: the graph computes in doubles, so a value
 * that is f32 elsewhere takes 8 bytes. */
void number_encode(DType d, bool real64, const double *from, int64_t n, void *to);
void number_decode(DType d, bool real64, const void *from, int64_t n, double *to);
DType number_type(char letter);          /* f f32, h f16, b bf16, i i32, l i64, u u8, else bool */
uint64_t number_random(uint64_t *state); /* returns a number of SplitMix64 */
double number_uniform(uint64_t *state);  /* returns a number in [0, 1) */
