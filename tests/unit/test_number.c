/* Numbers in user input: which text is a number, and which numbers a domain contains. */
#include <float.h>
#include <math.h>
#include "check.h"
#include "common/number.h"

static void check_whole(void)
{
  static const struct {
    const char *text;
    bool good;
    int64_t value;
  } cases[] = {
      {"0", true, 0},
      {"12", true, 12},
      {"-12", true, -12},
      {"007", true, 7},
      {"9223372036854775807", true, INT64_MAX},
      {"-9223372036854775808", true, INT64_MIN},
      {"9223372036854775808", false, 0},
      {"99999999999999999999999", false, 0},
      {"", false, 0},
      {"-", false, 0},
      {"12abc", false, 0},
      {"12 ", false, 0},
      {" 12", false, 0},
      {"+12", false, 0},
      {"1.0", false, 0},
      {"1e3", false, 0},
      {"0x10", false, 0},
      {"--1", false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t value = 0;
    bool good = ampc_read_whole(cases[i].text, &value);
    CHECK_MSG(good == cases[i].good && (!good || value == cases[i].value), "`%s`: %d, %lld",
              cases[i].text, good, (long long)value);
  }
  int64_t n;
  CHECK(ampc_read_count("1", 1, 5, &n) && ampc_read_count("5", 1, 5, &n) && n == 5);
  CHECK(!ampc_read_count("0", 1, 5, &n) && !ampc_read_count("6", 1, 5, &n));
}

static void check_real(void)
{
  static const char *const bad[] = {"",    "nan", "inf", "-inf", "1e400", "0x1p3", "1.5x", "1e",
                                    "1e+", " 1",  "1 ",  "+1",   ".5",    "1..2",  "1-2",  "--1.0"};
  double v;
  CHECK(ampc_read_real("1e-4", &v) && v == 1e-4);
  CHECK(ampc_read_real("-0.25", &v) && v == -0.25);
  CHECK(ampc_read_real("65536", &v) && v == 65536);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(!ampc_read_real(bad[i], &v), "`%s` is read as %g", bad[i], v);
}

/* Checks the ends of each domain, and the nearest f32 numbers outside of it. */
static void check_domains(void)
{
  for (ampc_domain d = 0; d < AMPC_DOMAIN_COUNT; d++) {
    CHECK(!ampc_in_domain(d, NAN));
    CHECK(ampc_in_domain(d, INFINITY) == (d == AMPC_BOUND));
    CHECK(ampc_in_domain(d, -INFINITY) == (d == AMPC_BOUND));
    CHECK(!ampc_in_domain(d, 1e39) && !ampc_in_domain(d, 1e-60) && !ampc_in_domain(d, -1e39));
    CHECK(ampc_domain_text(d) != NULL);
  }
  CHECK(ampc_in_domain(AMPC_FINITE, -FLT_MAX) && ampc_in_domain(AMPC_FINITE, 0));
  CHECK(ampc_in_domain(AMPC_NOT_NEGATIVE, 0) && !ampc_in_domain(AMPC_NOT_NEGATIVE, -1e-9));
  CHECK(ampc_in_domain(AMPC_POSITIVE, 1e-30) && !ampc_in_domain(AMPC_POSITIVE, 0));
  CHECK(ampc_in_domain(AMPC_ABOVE_ONE, 1.001) && !ampc_in_domain(AMPC_ABOVE_ONE, 1));
  CHECK(!ampc_in_domain(AMPC_ABOVE_ONE, 1 + 1e-12));
  CHECK(ampc_in_domain(AMPC_FRACTION, 0) && ampc_in_domain(AMPC_FRACTION, 0.999));
  CHECK(!ampc_in_domain(AMPC_FRACTION, 1) && !ampc_in_domain(AMPC_FRACTION, 1 - 1e-12));
  CHECK(ampc_in_domain(AMPC_SHRINKING, 0.5) && !ampc_in_domain(AMPC_SHRINKING, 0));
  CHECK(!ampc_in_domain(AMPC_SHRINKING, 1));
  CHECK(ampc_in_domain(AMPC_UNIT, 0) && ampc_in_domain(AMPC_UNIT, 1));
  CHECK(!ampc_in_domain(AMPC_UNIT, -1e-9) && !ampc_in_domain(AMPC_UNIT, 1.001));
  CHECK(ampc_in_domain(AMPC_SCALE, 0x1p126) && ampc_in_domain(AMPC_SCALE, 0x1p-126));
  CHECK(!ampc_in_domain(AMPC_SCALE, 0x1p127) && !ampc_in_domain(AMPC_SCALE, 0x1p-127));
}

static void check_texts(void)
{
  char to[AMPC_RANGE_ROOM];
  CHECK(!strcmp(ampc_range_text(to, 1, 100), "a whole number from 1 to 100"));
  CHECK(!strcmp(ampc_range_text(to, 1, AMPC_MOST_STEPS), "a whole number from 1 to 2^53"));
  CHECK(!strcmp(ampc_range_text(to, 0, INT64_MAX), "a whole number from 0 on"));
  CHECK(strlen(ampc_range_text(to, INT64_MIN, INT64_MAX - 1)) < AMPC_RANGE_ROOM);
}

static void check_steps(void)
{
  int64_t n;
  CHECK(ampc_steps_of(3, 5, &n) && n == 15);
  CHECK(ampc_steps_of(AMPC_MOST_STEPS, 1, &n) && !ampc_steps_of(AMPC_MOST_STEPS, 2, &n));
  CHECK(!ampc_steps_of((int64_t)1 << 62, 4, &n) && !ampc_steps_of(INT64_MAX, INT64_MAX, &n));
}

/* Checks that an epoch's last batches are a step, even if they are too few for an accumulation. */
static void check_groups(void)
{
  CHECK(ampc_groups(6, 3) == 2 && ampc_groups(7, 3) == 3 && ampc_groups(8, 3) == 3);
  CHECK(ampc_groups(2, 3) == 1 && ampc_groups(0, 3) == 0 && ampc_groups(5, 1) == 5);
}

int main(void)
{
  check_whole();
  check_real();
  check_domains();
  check_texts();
  check_steps();
  check_groups();
  return check_done();
}
