/* Numbers of bytes as text. */
#include "common/bytes.h"
#include <stdio.h>

const char *ampc_scaled_text(int64_t n, const char *unit, char text[AMPC_BYTES_ROOM])
{
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  double value = (double)n;
  int prefix = 0;
  while (value >= 999.5 && prefix < 6) {
    value /= 1000;
    prefix++;
  }
  int digits = !prefix || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const char *space = prefix || *unit ? " " : "";
  snprintf(text, AMPC_BYTES_ROOM, "%.*f%s%s%s", digits, value, space, prefixes[prefix], unit);
  return text;
}

const char *ampc_bytes_text(int64_t bytes, char text[AMPC_BYTES_ROOM])
{
  return ampc_scaled_text(bytes, "B", text);
}
