/* The command lists of a program. A command names its operands by space and offset; the addresses
 * are found once, when the runtime is made, so that a step only calls. */
#include <stdlib.h>
#include <string.h>
#include "runtime.h"

enum { OPERANDS = 5 }; /* of a product or a convolution */

/* The references of a command in the order in which its pointers are kept. */
static uint32_t command_refs(const ampc_command *k, const ampc_ref **out, ampc_ref room[OPERANDS])
{
  *out = room;
  switch (k->kind) {
  case AMPC_LAUNCH_KERNEL:
    *out = k->as.launch.args;
    return k->as.launch.n_args;
  case AMPC_GEMM:
    room[0] = k->as.gemm.a;
    room[1] = k->as.gemm.b;
    room[2] = k->as.gemm.bias;
    room[3] = k->as.gemm.c;
    room[4] = k->as.gemm.workspace;
    return OPERANDS;
  case AMPC_CONV:
    room[0] = k->as.conv.x;
    room[1] = k->as.conv.w;
    room[2] = k->as.conv.bias;
    room[3] = k->as.conv.y;
    room[4] = k->as.conv.workspace;
    return OPERANDS;
  case AMPC_COPY:
    room[0] = k->as.copy.to;
    room[1] = k->as.copy.from;
    return 2;
  case AMPC_FILL:
    room[0] = k->as.fill.to;
    return 1;
  }
  return 0;
}

/* A broken plan must end with a message, not with bytes written somewhere. An operand without
 * elements may begin at the end of its space. */
static bool ref_is_valid(const ampc_runtime *rt, ampc_ref r)
{
  if (r.space == AMPC_NONE) return true;
  return r.space > AMPC_NONE && r.space < AMPC_SPACE_COUNT && r.offset >= 0 &&
         r.offset <= rt->program->space_bytes[r.space];
}

/* Two rounds: the first counts the operands of all commands, the second fills in their addresses.
 */
static ampc_status resolve(ampc_runtime *rt, const ampc_step *step, Resolved *w)
{
  ampc_ref room[OPERANDS];
  const ampc_ref *refs;
  uint32_t total = 0;
  for (uint32_t i = 0; i < step->n_commands; i++)
    total += command_refs(&step->commands[i], &refs, room);
  w->pointers = malloc((total + 1) * sizeof *w->pointers);
  w->first = malloc((step->n_commands + 1) * sizeof *w->first);
  if (!w->pointers || !w->first) return ampc_fail(AMPC_RUN_FAILED, "out of memory for the plan");
  uint32_t at = 0;
  for (uint32_t i = 0; i < step->n_commands; i++) {
    const ampc_command *k = &step->commands[i];
    uint32_t n = command_refs(k, &refs, room);
    w->first[i] = at;
    for (uint32_t j = 0; j < n; j++) {
      if (!ref_is_valid(rt, refs[j]))
        return ampc_fail(AMPC_RUN_FAILED, "broken plan: operand %u of %s lies outside its space", j,
                         k->label ? k->label : "a command");
      w->pointers[at++] =
          refs[j].space == AMPC_NONE ? NULL : rt->space[refs[j].space] + refs[j].offset;
    }
  }
  return AMPC_OK;
}

/* What the device can do once for products and convolutions, it does before the first step. */
static ampc_status prepare(Device *d, const ampc_step *step)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < step->n_commands && !status; i++) {
    const ampc_command *k = &step->commands[i];
    if (k->kind == AMPC_CONV) status = d->ops->prepare_conv(d, &k->as.conv.desc);
    if (k->kind == AMPC_GEMM) status = d->ops->prepare_gemm(d, &k->as.gemm.desc);
  }
  return status;
}

ampc_status commands_prepare(Device *d, const ampc_program *p)
{
  ampc_status status = AMPC_OK;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants && !status; v++)
      status = prepare(d, &p->blocks[b].variant[v]);
  return status;
}

ampc_status commands_resolve(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  rt->resolved = calloc(2 * p->n_blocks + 1, sizeof *rt->resolved);
  if (!rt->resolved) return ampc_fail(AMPC_RUN_FAILED, "out of memory for the plan");
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *step = &p->blocks[b].variant[v];
      if (step->run) continue;
      ampc_status status = resolve(rt, step, &rt->resolved[2 * b + v]);
      if (status) return status;
    }
  return commands_prepare(rt->device, p);
}

void commands_free(ampc_runtime *rt)
{
  if (!rt->resolved) return;
  for (uint32_t i = 0; i < 2 * rt->program->n_blocks; i++) {
    free(rt->resolved[i].pointers);
    free(rt->resolved[i].first);
  }
  free(rt->resolved);
}

/* `at`: the addresses of the command's operands, in the order of command_refs. */
static void run_command(ampc_runtime *rt, const ampc_command *k, void *const *at)
{
  switch (k->kind) {
  case AMPC_LAUNCH_KERNEL:
    ampc_do_launch(rt, k->as.launch.kernel, k->as.launch.grid, k->as.launch.block, at,
                   k->as.launch.n_args);
    break;
  case AMPC_GEMM:
    ampc_do_gemm(rt, &k->as.gemm.desc, at[0], at[1], at[2], at[3], at[4]);
    break;
  case AMPC_CONV:
    ampc_do_conv(rt, &k->as.conv.desc, at[0], at[1], at[2], at[3], at[4]);
    break;
  case AMPC_COPY:
    ampc_do_copy(rt, at[0], at[1], k->as.copy.bytes);
    break;
  case AMPC_FILL:
    ampc_do_fill(rt, at[0], k->as.fill.value, k->as.fill.bytes);
    break;
  }
}

void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant)
{
  const ampc_step *step = &rt->program->blocks[block].variant[variant];
  const Resolved *w = &rt->resolved[2 * block + variant];
  for (uint32_t i = 0; i < step->n_commands && !rt->failed; i++)
    run_command(rt, &step->commands[i], w->pointers + w->first[i]);
}
