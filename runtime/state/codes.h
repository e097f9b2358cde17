/* Moments in 8 bits: see Note [codes] in codes.c. For the files of the runtime. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Sets value[k] to the value of code k. `any_sign`: the moment may be negative. */
void codes_values(bool any_sign, float value[256]);
/* Converts one block: n <= AMPC_CODE_BLOCK numbers. Codes after the n-th become 0. Returns the
 * scale. */
float codes_pack(const float value[256], bool any_sign, const float *from, int64_t n,
                 uint8_t *codes);
void codes_unpack(const float value[256], const uint8_t *codes, float scale, int64_t n, float *to);
