/* What all devices share: their names for --device, and defaults for their functions. */
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

int64_t device_step(const ampc_program *p, ampc_space s)
{
  return ampc_round_up(p->space_bytes[s], AMPC_CUDA_ALIGN);
}

ampc_status device_one_input(Device *d, int *out_half)
{
  (void)d;
  *out_half = 0;
  return AMPC_OK;
}

ampc_status device_no_rehearsal(Device *d, uint32_t key, void *state,
                                ampc_status (*body)(void *context), void *context)
{
  (void)d, (void)key, (void)state, (void)body, (void)context;
  return AMPC_OK;
}
