/* Command lists: checked when the runtime is made, run step by step. A list is that of a step or
 * the body of an AMPC_REPEAT. */
#include "runtime/plan/commands.h"
#include <stdlib.h>
#include "runtime.h"

typedef struct CommandList {
  const ampc_command *at;
  uint32_t n;
  int64_t count; /* how often it runs in a row */
} CommandList;

static CommandList list_of(const ampc_step *step)
{
  return (CommandList){step->commands, step->n_commands, 1};
}

static CommandList body_of(const ampc_command *k)
{
  return (CommandList){k->as.repeat.commands, k->as.repeat.n_commands, k->as.repeat.count};
}

/* ---- checks ---- */

/* `bytes` from the operand on lie in its space, in every iteration. Places move evenly, so that the
 * first and the last decide. */
static bool operand_is_valid(const ampc_program *p, ampc_operand o, int64_t count, int64_t bytes)
{
  int64_t way, last;
  if (o.at.space == AMPC_NONE) return bytes == 0;
  if (o.at.space < AMPC_NONE || o.at.space >= AMPC_SPACE_COUNT) return false;
  int64_t end = p->space_bytes[o.at.space] - bytes;
  if (__builtin_mul_overflow(o.stride, count - 1, &way)) return false;
  if (__builtin_add_overflow(o.at.offset, way, &last)) return false;
  return o.at.offset >= 0 && o.at.offset <= end && last >= 0 && last <= end;
}

/* Bytes that the command itself says it touches, where it does; kernels and products know alone. */
static int64_t known_bytes(const ampc_program *p, const ampc_command *k)
{
  switch (k->kind) {
  case AMPC_COPY:
    return k->as.copy.bytes;
  case AMPC_FILL:
    return k->as.fill.bytes;
  case AMPC_ALL_REDUCE:
    return k->as.all_reduce.count * ampc_element_size(p, k->as.all_reduce.type);
  default:
    return 0;
  }
}

static ampc_status check_command(ampc_runtime *rt, const ampc_command *k, int64_t count)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(k, room, &operands);
  int64_t bytes = known_bytes(rt->program, k);
  const char *name = k->label ? k->label : "a command";
  for (uint32_t i = 0; i < n; i++)
    if (bytes < 0 || !operand_is_valid(rt->program, operands[i], count, bytes))
      return ampc_fail(AMPC_RUN_FAILED, "broken plan: operand %u of %s lies outside its space", i,
                       name);
  if (k->kind == AMPC_REPEAT && k->as.repeat.count < 1)
    return ampc_fail(AMPC_RUN_FAILED, "broken plan: %s repeats %lld times", name,
                     (long long)k->as.repeat.count);
  if (n > rt->n_addresses) rt->n_addresses = n;
  return AMPC_OK;
}

static ampc_status check_list(ampc_runtime *rt, CommandList list)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < list.n && !status; i++) {
    status = check_command(rt, &list.at[i], list.count);
    if (!status && list.at[i].kind == AMPC_REPEAT) status = check_list(rt, body_of(&list.at[i]));
  }
  return status;
}

/* ---- before the first step ---- */

/* What the device can do once for products and convolutions. */
static ampc_status prepare(Device *d, CommandList list)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < list.n && !status; i++) {
    const ampc_command *k = &list.at[i];
    if (k->kind == AMPC_CONV) status = d->ops->prepare_conv(d, &k->as.conv.desc);
    if (k->kind == AMPC_GEMM) status = d->ops->prepare_gemm(d, &k->as.gemm.desc);
    if (k->kind == AMPC_REPEAT) status = prepare(d, body_of(k));
  }
  return status;
}

ampc_status commands_prepare(Device *d, const ampc_program *p)
{
  ampc_status status = AMPC_OK;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants && !status; v++)
      status = prepare(d, list_of(&p->blocks[b].variant[v]));
  return status;
}

ampc_status commands_create(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants && !status; v++)
      status = check_list(rt, list_of(&p->blocks[b].variant[v]));
  if (status) return status;
  rt->addresses = calloc(rt->n_addresses + 1, sizeof *rt->addresses);
  if (!rt->addresses) return ampc_fail(AMPC_RUN_FAILED, "out of memory for the plan");
  return commands_prepare(rt->device, p);
}

/* ---- a step ---- */

/* The addresses of a command's operands in iteration t of its list; valid until the next call. */
static void *const *find_addresses(ampc_runtime *rt, const ampc_command *k, int64_t t)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *o;
  uint32_t n = ampc_command_operands(k, room, &o);
  for (uint32_t i = 0; i < n; i++)
    rt->addresses[i] = o[i].at.space == AMPC_NONE
                           ? NULL
                           : rt->space[o[i].at.space] + o[i].at.offset + t * o[i].stride;
  return rt->addresses;
}

static void run_list(ampc_runtime *rt, CommandList list);

static void run_command(ampc_runtime *rt, const ampc_command *k, int64_t t)
{
  void *const *at = find_addresses(rt, k, t);
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
  case AMPC_ALL_REDUCE:
    ampc_do_all_reduce(rt, at[0], k->as.all_reduce.type, k->as.all_reduce.count);
    break;
  case AMPC_REPEAT:
    run_list(rt, body_of(k));
    break;
  }
}

static void run_list(ampc_runtime *rt, CommandList list)
{
  for (int64_t t = 0; t < list.count; t++)
    for (uint32_t i = 0; i < list.n && !rt->failed; i++) run_command(rt, &list.at[i], t);
}

void commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant)
{
  run_list(rt, list_of(&rt->program->blocks[block].variant[variant]));
}
