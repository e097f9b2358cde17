/* What computes the convolutions of a job for the CPU: the device is asked, which chooses among the
 * implementations of its library by what this machine has. */
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "inspect.h"
#include "runtime/device.h"

static ampc_status name_rows(Inspection *in, Device *device)
{
  Compile *c = in->c;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    CommandRow *row = &in->rows.at[i];
    if (!row->product || strcmp(row->frame, "conv") != 0) continue;
    ampc_conv d = convolution_of(c, row->group).desc;
    const char *name;
    ampc_status status = device->ops->conv_implementation(device, &d, &name);
    if (status) return status;
    row->library = arena_strdup(c->arena, name);
  }
  return AMPC_OK;
}

int inspect_library(Inspection *in)
{
  Device *device;
  if (!is_cpu_target(in->c)) return 0;
  ampc_status status = cpu_device_open(in->c->program, &device);
  if (!status) {
    status = name_rows(in, device);
    device->ops->close(device);
  }
  if (status) fprintf(stderr, "amp inspect: error: %s\n", ampc_last_error());
  return (int)status;
}

const char *inspect_frame_text(const Inspection *in, const CommandRow *row)
{
  if (!row->library) return row->frame;
  return arena_printf(in->c->arena, "%s by %s", row->frame, row->library);
}
