/* Reads the names of devices that --device takes. */
#include <stdlib.h>
#include <string.h>
#include "device.h"

bool device_read(const char *text, DeviceWish *out)
{
  enum { MOST_DIGITS = 4 };
  static const char *const words[] = {
      [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", [DEVICE_AUTO] = "auto"};
  static const char numbered[] = "cuda:";
  *out = (DeviceWish){.kind = DEVICE_CUDA, .gpu = ANY_GPU};
  for (DeviceKind k = DEVICE_CPU; k <= DEVICE_AUTO; k++)
    if (strcmp(text, words[k]) == 0) return out->kind = k, true;
  if (strncmp(text, numbered, sizeof numbered - 1) != 0) return false;
  text += sizeof numbered - 1;
  size_t n = strlen(text), digits = strspn(text, "0123456789");
  if (n == 0 || n > MOST_DIGITS || digits != n) return false;
  out->gpu = atoi(text);
  return true;
}
