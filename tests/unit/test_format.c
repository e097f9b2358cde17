/* Compares format_text() with vsnprintf(): every conversion that it prints itself, some that it
 * leaves to vsnprintf(), and every room from 1 byte on. */
#include "compiler/base/format.h"
#include "check.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 1, 2))) static void same(const char *fmt, ...)
{
  char want[200], got[200];
  for (size_t room = 1; room < 80; room++) {
    va_list a, b;
    va_start(a, fmt);
    va_start(b, fmt);
    memset(want, '#', sizeof want);
    memset(got, '#', sizeof got);
    size_t n = (size_t)vsnprintf(want, room, fmt, a);
    CHECK(format_text(got, room, fmt, b) == n && memcmp(want, got, sizeof want) == 0);
    va_end(a);
    va_end(b);
  }
}

int main(void)
{
  same("plain");
  same("%s", "");
  same("100 %% of %s, %c", "all", 'x');
  same("%.*s|%.*s|%.*s", 3, "abcdef", 0, "abc", 9, "abc");
  same("%d %d %d", 0, INT_MIN, INT_MAX);
  same("%u %u", 0u, UINT_MAX);
  same("%lld %lld %lld", 0ll, LLONG_MIN, LLONG_MAX);
  same("%llu %llu", 0ull, ULLONG_MAX);
  same("%s %g %d", "mixed", 0.1, 5);
  same("%-8s|%08x|%.2s|%5d|%zu|%ld|%llx", "pad", 255u, "cut", 7, sizeof(int), 3l, 10ull);
  return check_done();
}
