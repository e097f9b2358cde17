/* The host's access to the spaces of a program. */
#include "members.h"
#include "common/needs.h"
#include "runtime/plan/types.h"

/* Callers choose offset and size, so the sum of the two could overflow and is not computed. */
static ampc_status check_range(const ampc_runtime *rt, ampc_ref r, int64_t bytes)
{
  bool space = r.space > AMPC_NONE && r.space < AMPC_SPACE_COUNT;
  int64_t size = space ? rt->program->space_bytes[r.space] : 0;
  if (space && r.offset >= 0 && bytes >= 0 && r.offset <= size && bytes <= size - r.offset)
    return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "%lld bytes at %lld lie outside the %s, which have %lld bytes",
                   (long long)bytes, (long long)r.offset,
                   space ? ampc_space_of(r.space)->shown : "spaces", (long long)size);
}

ampc_status ampc_read(ampc_runtime *rt, ampc_ref from, void *to, int64_t bytes)
{
  NEEDS(rt && (to || !bytes));
  bool done = false;
  ampc_status status = members_move(rt, from, to, bytes, true, &done);
  if (!done) status = check_range(rt, from, bytes);
  if (done || status || bytes == 0) return status;
  return rt->device->ops->copy_out(rt->device, to, rt->space[from.space] + from.offset, bytes);
}

ampc_status ampc_write(ampc_runtime *rt, ampc_ref to, const void *from, int64_t bytes)
{
  NEEDS(rt && (from || !bytes));
  bool done = false;
  ampc_status status = members_move(rt, to, (void *)(uintptr_t)from, bytes, false, &done);
  if (!done) status = check_range(rt, to, bytes);
  if (done || status || bytes == 0) return status;
  for (uint32_t i = 0; i < rt->members.n && !status; i++)
    if (i == 0 || rt->apart[to.space])
      status = rt->device->ops->copy_in(
          rt->device, rt->base[to.space] + i * rt->apart[to.space] + to.offset, from, bytes);
  return status;
}

ampc_status runtime_turn_input(ampc_runtime *rt)
{
  ampc_status status = rt->device->ops->turn_input(rt->device, &rt->half);
  members_turn(rt, 0);
  return status;
}

ampc_status runtime_bring(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes)
{
  ampc_status status = check_range(rt, (ampc_ref){AMPC_INPUT, offset}, bytes);
  if (status || bytes == 0) return status;
  return rt->device->ops->bring(rt->device, rt->space[AMPC_INPUT] + offset, from, bytes);
}

ampc_status runtime_bring_on(ampc_runtime *rt, int64_t offset, const void *from, int64_t bytes,
                             void *stream)
{
  const DeviceOps *ops = rt->device->ops;
  if (!ops->bring_on) return runtime_bring(rt, offset, from, bytes);
  ampc_status status = check_range(rt, (ampc_ref){AMPC_INPUT, offset}, bytes);
  if (status || bytes == 0) return status;
  return ops->bring_on(rt->device, rt->space[AMPC_INPUT] + offset, from, bytes, stream);
}

ampc_status runtime_look(ampc_runtime *rt, uint32_t slot)
{
  return rt->device->ops->look(rt->device, slot, rt->space[AMPC_STATE],
                               rt->program->space_bytes[AMPC_STATE]);
}

ampc_status runtime_looked(ampc_runtime *rt, uint32_t slot, bool wait, void *to, bool *out_there)
{
  return rt->device->ops->looked(rt->device, slot, wait, to, rt->program->space_bytes[AMPC_STATE],
                                 out_there);
}

ampc_status ampc_get_state(ampc_runtime *rt, ampc_state *out)
{
  NEEDS(rt && out);
  ampc_status status = ampc_wait(rt);
  return status ? status : ampc_read(rt, (ampc_ref){AMPC_STATE, 0}, out, sizeof *out);
}
