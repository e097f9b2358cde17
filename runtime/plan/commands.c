/* See commands.h. */
#include "commands.h"
#include <string.h>

#define LIST(...) ((const ampc_operand[]){__VA_ARGS__})

static uint32_t take(ampc_operand *room, uint32_t n, const ampc_operand *from)
{
  memcpy(room, from, n * sizeof *from);
  return n;
}

uint32_t ampc_command_operands(const ampc_command *k, ampc_operand room[COMMAND_OPERANDS],
                               const ampc_operand **out)
{
  *out = room;
  switch (k->kind) {
  case AMPC_LAUNCH_KERNEL:
    *out = k->as.launch.args;
    return k->as.launch.n_args;
  case AMPC_GEMM:
    return take(
        room, 5,
        LIST(k->as.gemm.a, k->as.gemm.b, k->as.gemm.bias, k->as.gemm.c, k->as.gemm.workspace));
  case AMPC_CONV:
    return take(
        room, 5,
        LIST(k->as.conv.x, k->as.conv.w, k->as.conv.bias, k->as.conv.y, k->as.conv.workspace));
  case AMPC_COPY:
    return take(room, 2, LIST(k->as.copy.to, k->as.copy.from));
  case AMPC_FILL:
    return take(room, 1, &k->as.fill.to);
  case AMPC_EXCHANGE:
    return take(room, 1, &k->as.exchange.at);
  case AMPC_REPEAT:
    return 0;
  }
  return 0;
}
