/* Command lists: checked and bound to addresses when the runtime is created, then run step by step.
 * A list holds the commands of a step, or of the body of an AMPC_REPEAT. */
#include "runtime/plan/commands.h"
#include <stdlib.h>
#include "runtime.h"

typedef struct CommandList {
  const ampc_command *at;
  uint32_t n;
  int64_t count; /* how often it runs in a row */
} CommandList;

/* The list of a step, for `members` members. */
static CommandList list_of(const ampc_step *step, int64_t members)
{
  return (CommandList){step->commands, step->n_commands, members};
}

static CommandList body_of(const ampc_command *k)
{
  return (CommandList){k->as.repeat.commands, k->as.repeat.n_commands, k->as.repeat.count};
}

/* ---- checks ---- */

/* Whether the `bytes` bytes that begin at the operand are inside its space in every iteration. The
 * stride is constant, so checking the first and the last iteration is enough. */
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

/* Returns the bytes that the command accesses. Kernels and products do not state this number: 0. */
static int64_t known_bytes(const ampc_program *p, const ampc_command *k)
{
  switch (k->kind) {
  case AMPC_COPY:
    return k->as.copy.bytes;
  case AMPC_FILL:
    return k->as.fill.bytes;
  case AMPC_EXCHANGE:
    return k->as.exchange.desc.count * ampc_element_size(p, k->as.exchange.desc.type);
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
  rt->n_bound++;
  rt->n_addresses += n;
  if (n > rt->most_operands) rt->most_operands = n;
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

/* Lets the device's libraries prepare what the list's commands compute. */
static ampc_status prepare(Device *d, CommandList list)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < list.n && !status; i++) {
    const ampc_command *k = &list.at[i];
    if (k->kind == AMPC_LAUNCH_KERNEL && k->as.launch.library && d->ops->prepare_launch)
      status = d->ops->prepare_launch(d, k->as.launch.library);
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
      status = prepare(d, list_of(&p->blocks[b].variant[v], 1));
  return status;
}

/* Steps that are functions have no list. This calls each part of them once, to see what the device
 * must prepare. */
static ampc_status prepare_functions(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  rt->preparing = true;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *s = &p->blocks[b].variant[v];
      for (rt->part = 0; s->run && rt->part < (s->n_parts ? s->n_parts : 1); rt->part++) s->run(rt);
    }
  rt->part = 0;
  rt->preparing = false;
  return rt->failed;
}

/* ---- binding ---- */

/* Appends the list to rt->bound, and the addresses of its operands to rt->addresses. Commands keep
 * their order; the body of a repeat follows the repeat. */
static void bind_list(ampc_runtime *rt, CommandList list, int64_t t)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *o;
  for (uint32_t i = 0; i < list.n; i++) {
    uint32_t place = rt->n_bound++, n = ampc_command_operands(&list.at[i], room, &o);
    void **at = rt->addresses + rt->n_addresses;
    rt->n_addresses += n;
    for (uint32_t k = 0; k < n; k++)
      at[k] = o[k].at.space == AMPC_NONE
                  ? AMPC_NUMBER(o[k].at.offset + t * o[k].stride)
                  : rt->base[o[k].at.space] + o[k].at.offset + t * o[k].stride;
    if (list.at[i].kind == AMPC_REPEAT) bind_list(rt, body_of(&list.at[i]), 0);
    rt->bound[place] = (BoundCommand){&list.at[i], at, rt->n_bound - place - 1};
  }
}

static ampc_status bind_program(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  rt->bound = calloc(rt->n_bound + 1, sizeof *rt->bound);
  uint32_t n_keys = step_key(p->n_blocks, 0);
  rt->first_bound = calloc(n_keys + 1, sizeof *rt->first_bound);
  rt->addresses = calloc(rt->n_addresses + rt->most_operands + 1, sizeof *rt->addresses);
  if (!rt->bound || !rt->first_bound || !rt->addresses)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for the plan");
  rt->moved = rt->addresses + rt->n_addresses;
  rt->n_bound = rt->n_addresses = 0;
  for (uint32_t key = 0; key < n_keys; key++) {
    const ampc_block *b = &p->blocks[key / AMPC_MAX_VARIANTS];
    uint32_t v = key % AMPC_MAX_VARIANTS;
    rt->first_bound[key] = rt->n_bound;
    if (v < b->n_variants) bind_list(rt, list_of(&b->variant[v], 1), rt->members.first);
  }
  rt->first_bound[n_keys] = rt->n_bound;
  return AMPC_OK;
}

ampc_status commands_create(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants && !status; v++)
      status = check_list(rt, list_of(&p->blocks[b].variant[v], rt->members.all));
  if (!status) status = bind_program(rt);
  if (!status) status = commands_prepare(rt->device, p);
  return status ? status : prepare_functions(rt);
}

void commands_free(ampc_runtime *rt)
{
  free(rt->bound);
  free(rt->first_bound);
  free(rt->addresses);
}

/* ---- a step ---- */

/* Returns the addresses of the operands in iteration t of their list; valid until the next call.
 * Bound addresses are those of the first member of this process, in the first half of INPUT. */
static void *const *addresses_in(ampc_runtime *rt, const BoundCommand *b, int64_t t)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *o;
  if (t == 0 && rt->half == 0 && rt->member == 0 && !rt->moved_spaces) return b->at;
  uint32_t n = ampc_command_operands(b->command, room, &o);
  for (uint32_t i = 0; i < n; i++)
    rt->moved[i] = o[i].at.space == AMPC_NONE
                       ? AMPC_NUMBER((int64_t)(uintptr_t)b->at[i] + t * o[i].stride)
                       : (char *)b->at[i] + t * o[i].stride +
                             (rt->space[o[i].at.space] - rt->base[o[i].at.space]);
  return rt->moved;
}

static void run_list(ampc_runtime *rt, const BoundCommand *list, uint32_t n, int64_t t);

static void run_launch(ampc_runtime *rt, const ampc_launch *l, void *const *at)
{
  if (l->once && rt->member) return;
  if (l->library)
    ampc_do_attention(rt, l->library, l->kernel, l->grid, l->block, at, l->n_args);
  else if (l->deferred)
    ampc_do_defer(rt, l->kernel, l->grid, l->block, at, l->n_args);
  else
    ampc_do_launch(rt, l->kernel, l->grid, l->block, at, l->n_args);
}

static void run_exchange(ampc_runtime *rt, const ampc_exchange *x, ampc_ref at)
{
  ampc_do_exchange(rt, x->kind, x->mode, x->type, x->count, x->closing, at.space, at.offset);
}

static void run_command(ampc_runtime *rt, const BoundCommand *b, int64_t t)
{
  const ampc_command *k = b->command;
  void *const *at = addresses_in(rt, b, t);
  ampc_called(rt, k->label ? k->label : "a command");
  switch (k->kind) {
  case AMPC_LAUNCH_KERNEL:
    run_launch(rt, &k->as.launch, at);
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
  case AMPC_EXCHANGE:
    run_exchange(rt, &k->as.exchange.desc, k->as.exchange.at.at);
    break;
  case AMPC_REPEAT:
    for (int64_t i = 0; i < k->as.repeat.count; i++) run_list(rt, b + 1, b->body, i);
    break;
  }
}

/* Runs iteration t of a list of `n` bound commands; `n` includes the commands of bodies. */
static void run_list(ampc_runtime *rt, const BoundCommand *list, uint32_t n, int64_t t)
{
  for (uint32_t i = 0; i < n && !rt->failed; i += 1 + list[i].body) {
    if (rt->device->profile && list[i].command->kind != AMPC_REPEAT)
      runtime_mark(rt, &list[i] - rt->bound);
    run_command(rt, &list[i], t);
  }
}

bool commands_run(ampc_runtime *rt, uint32_t block, uint32_t variant, uint32_t *at)
{
  const uint32_t *first = &rt->first_bound[step_key(block, variant)];
  const BoundCommand *list = rt->bound + first[0];
  uint32_t n = first[1] - first[0], end = *at;
  while (end < n && list[end].command->kind != AMPC_EXCHANGE) end += 1 + list[end].body;
  if (end < n) end++;
  run_list(rt, list + *at, end - *at, rt->member);
  *at = end;
  if (end < n && !rt->failed) return true;
  if (rt->device->profile && !rt->failed) runtime_mark(rt, MARK_END);
  return false;
}
