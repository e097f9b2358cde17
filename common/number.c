/* Which numbers are allowed where, and reading them from text. */
#include "common/number.h"
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds are inclusive. FLT_BELOW_1 is the largest float below 1, FLT_ABOVE_1 the smallest above
 * it. A loss scale and its inverse are both normal floats. */
#define FLT_BELOW_1 0x1.fffffep-1
#define FLT_ABOVE_1 0x1.000002p+0
static const struct {
  double least, most;
  const char *text;
} domains[AMPC_DOMAIN_COUNT] = {
    [AMPC_FINITE] = {-FLT_MAX, FLT_MAX, "a finite number"},
    [AMPC_NOT_NEGATIVE] = {0, FLT_MAX, "a finite number, 0 or more"},
    [AMPC_POSITIVE] = {FLT_MIN, FLT_MAX, "a finite number above 0"},
    [AMPC_ONE_OR_MORE] = {1, FLT_MAX, "a finite number, 1 or more"},
    [AMPC_ABOVE_ONE] = {FLT_ABOVE_1, FLT_MAX, "a finite number above 1"},
    [AMPC_FRACTION] = {0, FLT_BELOW_1, "a number from 0 to below 1"},
    [AMPC_SHRINKING] = {FLT_MIN, FLT_BELOW_1, "a number above 0 and below 1"},
    [AMPC_SCALE] = {0x1p-126, 0x1p+126, "a number from 2^-126 to 2^126"},
    [AMPC_UNIT] = {0, 1, "a number from 0 to 1"},
    [AMPC_BOUND] = {-INFINITY, INFINITY, "a number, inf or -inf"},
};

int64_t ampc_groups(int64_t batches, int64_t accumulate)
{
  return batches / accumulate + (batches % accumulate > 0);
}

bool ampc_steps_of(int64_t epochs, int64_t per_epoch, int64_t *out)
{
  return !__builtin_mul_overflow(epochs, per_epoch, out) && *out <= AMPC_MOST_STEPS;
}

bool ampc_in_domain(ampc_domain domain, double value)
{
  double rounded = (double)(float)value;
  bool vanishes = value != 0 && rounded == 0, bursts = isinf(rounded) && !isinf(value);
  return !vanishes && !bursts && rounded >= domains[domain].least &&
         rounded <= domains[domain].most;
}

const char *ampc_domain_text(ampc_domain domain)
{
  return domains[domain].text;
}

const char *ampc_domain_name(ampc_domain domain)
{
  static const char *const names[AMPC_DOMAIN_COUNT] = {
#define NAME(DOMAIN, name) [AMPC_##DOMAIN] = #name,
      AMPC_DOMAINS(NAME)};
  return names[domain];
}

ampc_domain ampc_domain_by(const char *name)
{
  ampc_domain domain = 0;
  while (domain < AMPC_DOMAIN_COUNT && strcmp(ampc_domain_name(domain), name) != 0) domain++;
  return domain;
}

/* Excludes what strtoll and strtod also accept: spaces, a plus sign, hexadecimal digits. */
static bool is_decimal(const char *text, const char *others)
{
  const char *digits = text + (*text == '-');
  if (*digits < '0' || *digits > '9') return false;
  return !digits[strspn(digits, others)];
}

bool ampc_read_whole(const char *text, int64_t *out)
{
  errno = 0;
  *out = is_decimal(text, "0123456789") ? strtoll(text, NULL, 10) : 0;
  return is_decimal(text, "0123456789") && errno == 0;
}

bool ampc_read_real(const char *text, double *out)
{
  char *end = NULL;
  if (!is_decimal(text, "0123456789.eE+-")) return false;
  *out = strtod(text, &end);
  return !*end && isfinite(*out);
}

bool ampc_read_count(const char *text, int64_t least, int64_t most, int64_t *out)
{
  return ampc_read_whole(text, out) && *out >= least && *out <= most;
}

const char *ampc_range_text(char to[AMPC_RANGE_ROOM], int64_t least, int64_t most)
{
  bool power = most >= (int64_t)1 << 32 && (most & (most - 1)) == 0;
  int n = snprintf(to, AMPC_RANGE_ROOM, "a whole number from %lld ", (long long)least);
  if (most == INT64_MAX)
    snprintf(to + n, AMPC_RANGE_ROOM - (size_t)n, "on");
  else if (power)
    snprintf(to + n, AMPC_RANGE_ROOM - (size_t)n, "to 2^%d", __builtin_ctzll((uint64_t)most));
  else
    snprintf(to + n, AMPC_RANGE_ROOM - (size_t)n, "to %lld", (long long)most);
  return to;
}
