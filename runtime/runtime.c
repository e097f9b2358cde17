/* A program on a device: its memory, its steps, and access for the host. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "infer/rows.h"
#include "members.h"
#include "runtime/plan/attention.h"
#include "common/level.h"
#include "common/needs.h"
#include "runtime/plan/types.h"

/* ---- create and free ---- */

/* Opens a device of the program's kind; `device` only confirms the kind, or is "auto". */
static ampc_status open_device(const ampc_program *p, int64_t members, const char *device,
                               Device **out)
{
  DeviceWish wish;
  bool for_cpu = strcmp(p->target, "cpu") == 0;
  if (!device_read(device, &wish))
    return ampc_fail(AMPC_BAD_USAGE, "unknown device `%s`: " DEVICE_NAMES, device);
  if (wish.kind == (for_cpu ? DEVICE_CUDA : DEVICE_CPU))
    return ampc_fail(AMPC_RUN_FAILED,
                     "--device %s: %s was compiled for %s; compile it with --target=%s", device,
                     p->source, p->target, for_cpu ? "sm_xx" : "cpu");
  if (!for_cpu && p->own_products)
    return ampc_fail(AMPC_BAD_USAGE, "--no-onednn is for the CPU, and the device is a GPU: omit "
                                     "it, or add --device cpu");
  ampc_status status = ampc_attention_check();
  if (status) return status;
  return for_cpu ? cpu_device_open(p, out) : cuda_device_open(p, members, wish.gpu, out);
}

static ampc_status open_spaces(ampc_runtime *rt)
{
  for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++) {
    if (rt->program->space_bytes[s] == 0) continue;
    ampc_status status = members_alloc(rt, (ampc_space)s, s == AMPC_INPUT ? rt->device->inputs : 1);
    if (status)
      return ampc_fail(status, "%s: %s", ampc_space_of((ampc_space)s)->shown, ampc_last_error());
  }
  rt->input_step = device_step(rt->program, AMPC_INPUT) * rt->members.n;
  members_turn(rt, 0);
  return AMPC_OK;
}

/* Refuses a program that would let later calls write out of bounds. The device checks images. */
static ampc_status check_program(const ampc_program *p)
{
  int64_t need = runtime_setting_place(p, p->n_settings).offset;
  if (p->space_bytes[AMPC_STATE] < need)
    return ampc_fail(AMPC_RUN_FAILED, "broken plan: STATE has %lld bytes, needs %lld",
                     (long long)p->space_bytes[AMPC_STATE], (long long)need);
  for (uint32_t i = 0; i < p->n_kernels && !p->n_images; i++)
    if (!p->kernels[i].function)
      return ampc_fail(AMPC_RUN_FAILED, "kernel %s is not loaded", p->kernels[i].name);
  return AMPC_OK;
}

static ampc_status write_settings(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_settings && !status; i++)
    status = runtime_write_setting(rt, i, p->settings[i].value);
  return status;
}

/* Restores the settings that plateaus have lowered. */
static ampc_status reset_plateaus(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_plateaus && !status; i++) {
    if (rt->plateau[i].any)
      status = runtime_write_setting(rt, p->plateaus[i].setting, rt->plateau[i].start);
    rt->plateau[i] = (PlateauState){0};
  }
  return status;
}

/* Sets the scales of all optimizers to the initial scale, if each optimizer has its own scale. */
static ampc_status reset_scales(ampc_runtime *rt, const ampc_state *state)
{
  const ampc_program *p = rt->program;
  ampc_optimizer o = {.scale = state->scale, .inv_scale = state->inv_scale};
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_optimizers && p->scaler.per_optimizer && !status; i++)
    status = ampc_write(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
  return status;
}

/* Also clears the optimizers and metrics, which are after ampc_state in the space. */
ampc_status runtime_reset_state(ampc_runtime *rt, uint64_t seed)
{
  const ampc_program *p = rt->program;
  const ampc_scaler_desc *s = &p->scaler;
  double scale = s->on ? s->init : 1;
  ampc_state state = {
      .seed = (long long)seed,
      .scale = (float)scale,
      .inv_scale = (float)(1 / scale),
      .growth_factor = s->on ? s->growth : 1,
      .backoff_factor = s->on ? s->backoff : 1,
      .min_scale = (float)(s->on ? s->min : 1),
      .max_scale = (float)(s->on ? s->max : 1),
      .growth_interval = s->interval,
      .hysteresis = s->hysteresis,
      .dynamic = s->on && s->dynamic,
      .first = 1,
      .closes = 1,
  };
  rt->first = rt->closes = true;
  rt->call = 0;
  memset(rt->measured, 0, p->n_blocks);
  rt->patience = (Patience){.any = false};
  ampc_status status = reset_plateaus(rt);
  if (status) return status;
  int64_t rest = runtime_setting_place(p, 0).offset - (int64_t)sizeof state;
  status = ampc_write(rt, (ampc_ref){AMPC_STATE, 0}, &state, sizeof state);
  for (uint32_t i = 0; i < rt->members.n && !status; i++) {
    rt->firsts[i] = 0;
    status = rt->device->ops->fill(
        rt->device, rt->base[AMPC_STATE] + i * rt->apart[AMPC_STATE] + sizeof state, 0, rest);
  }
  return status ? status : reset_scales(rt, &state);
}

/* Joins the devices of the other ranks. */
static ampc_status join_ranks(ampc_runtime *rt)
{
  Device *d = rt->device;
  if (strcmp(rt->program->target, "cpu") != 0) return cuda_use_ranks(d, rt->members.ranks);
  d->ranks = rt->members.ranks;
  return AMPC_OK;
}

static ampc_status set_up(ampc_runtime *rt, const char *device, Ranks *ranks)
{
  ampc_status status = check_program(rt->program);
  if (!status) status = members_set(rt, ranks);
  if (!status) status = open_device(rt->program, rt->members.n, device, &rt->device);
  if (!status && rt->members.ranks) status = join_ranks(rt);
  if (!status) status = open_spaces(rt);
  if (!status) status = commands_create(rt);
  if (!status) status = members_prepare(rt);
  if (!status) status = runtime_reset_state(rt, rt->program->seed);
  if (!status) status = write_settings(rt);
  return status;
}

static void free_tables(ampc_runtime *rt)
{
  free(rt->rehearsed);
  free(rt->measured);
  free(rt->given);
  free(rt->bodies);
  free(rt->plateau);
  free(rt->firsts);
  free(rt->variants);
  free(rt->next);
  free(rt->places);
  free(rt->sent_by);
}

ampc_status ampc_create(const ampc_program *program, const char *device, ampc_runtime **out)
{
  return runtime_create(program, device, NULL, out);
}

ampc_status runtime_create(const ampc_program *program, const char *device, Ranks *ranks,
                           ampc_runtime **out)
{
  NEEDS(program && out);
  *out = NULL;
  if (program->processor && ampc_level_suffices(program->processor)) return AMPC_RUN_FAILED;
  ampc_runtime *rt = calloc(1, sizeof *rt);
  if (!rt) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  rt->program = program;
  rt->rehearsed = calloc(program->n_blocks + 1, sizeof *rt->rehearsed);
  rt->measured = calloc(program->n_blocks + 1, sizeof *rt->measured);
  rt->given = calloc(program->n_settings + 1, sizeof *rt->given);
  rt->bodies = calloc(program->n_blocks + 1, sizeof *rt->bodies);
  rt->plateau = calloc(program->n_plateaus + 1, sizeof *rt->plateau);
  rt->sent_by = calloc(2 * step_key(program->n_blocks, 0) + 1, sizeof *rt->sent_by);
  if (!rt->rehearsed || !rt->measured || !rt->given || !rt->bodies || !rt->plateau ||
      !rt->sent_by) {
    free_tables(rt);
    free(rt);
    return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  }
  ampc_status status = set_up(rt, device ? device : "auto", ranks);
  if (status) {
    ampc_free(rt);
  } else {
    *out = rt;
  }
  return status;
}

void ampc_free(ampc_runtime *rt)
{
  if (!rt) return;
  Device *d = rt->device;
  if (d) {
    rows_free(rt);
    for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
      if (rt->base[s]) d->ops->release(d, rt->base[s]);
    if (rt->stage) d->ops->release(d, rt->stage);
    d->ops->close(d);
  }
  commands_free(rt);
  free_tables(rt);
  free(rt);
}

const ampc_program *ampc_program_of(const ampc_runtime *rt)
{
  if (!rt) return NULL;
  return rt->program;
}

const char *ampc_device_name(const ampc_runtime *rt)
{
  if (!rt) return "none";
  return rt->device->name;
}

ampc_memory ampc_memory_of(const ampc_runtime *rt)
{
  if (!rt) return (ampc_memory){.total = 0};
  ampc_memory m = {.library = rt->device->ops->library_bytes(rt->device)};
  m.total = m.library;
  for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
    m.total += m.space[s] = rt->base[s] ? members_bytes(rt, (ampc_space)s) : 0;
  return m;
}

/* Returns the most scratch bytes outside WORK that a command of the list can need for a GPU's
 * libraries: Note [scratch] of cuda/cudnn_choice.c. */
static int64_t scratch_of(const ampc_program *p, const ampc_command *commands, uint32_t n)
{
  int64_t most = 0;
  int capability = ampc_target_capability(p->target);
  for (uint32_t i = 0; i < n; i++) {
    const ampc_command *k = &commands[i];
    int64_t bytes = 0;
    if (k->kind == AMPC_CONV)
      bytes = ampc_conv_workspace_cuda(&k->as.conv.desc, p->real64, capability);
    if (k->kind == AMPC_LAUNCH_KERNEL && k->as.launch.library)
      bytes = cuda_launch_scratch(k->as.launch.library, capability);
    if (k->kind == AMPC_REPEAT)
      bytes = scratch_of(p, k->as.repeat.commands, k->as.repeat.n_commands);
    if (bytes > most) most = bytes;
  }
  return most;
}

static int64_t most_scratch(const ampc_program *p)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < p->n_blocks; i++) {
    const ampc_block *b = &p->blocks[i];
    for (uint32_t v = 0; v < b->n_variants; v++) {
      int64_t bytes = scratch_of(p, b->variant[v].commands, b->variant[v].n_commands);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

/* The CPU's library reports its scratch space only for primitives that exist. So for the CPU this
 * function opens and prepares a device, but does not allocate the spaces. */
ampc_status ampc_plan_memory(const ampc_program *program, const char *device, ampc_memory *out)
{
  NEEDS(program && out);
  Device *d = NULL;
  *out = (ampc_memory){.library = 0};
  ampc_status status = AMPC_OK;
  if (strcmp(program->target, "cpu") == 0) {
    status = open_device(program, 1, device ? device : "auto", &d);
    if (status) return status;
    status = commands_prepare(d, program);
    out->library = d->ops->library_bytes(d);
    d->ops->close(d);
  } else {
    out->library =
        cuda_bytes_beside(program, ampc_process_members(program)) + most_scratch(program);
  }
  out->library += members_scratch(program);
  out->total = out->library;
  for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
    out->total += out->space[s] = ampc_process_bytes(program, (ampc_space)s);
  return status;
}

/* ---- steps ---- */

/* Returns the failure of an earlier call, if there is one. */
static ampc_status failed(const ampc_runtime *rt)
{
  return rt->failed ? ampc_fail(rt->failed, "%s", rt->failure) : AMPC_OK;
}

/* Keeps the first failure of a step; later failures often follow from it. */
static void keep_failure(ampc_runtime *rt, ampc_status status)
{
  if (!status || rt->failed) return;
  rt->failed = status;
  snprintf(rt->failure, sizeof rt->failure, "%s", ampc_last_error());
}

ampc_runtime *ampc_called(ampc_runtime *rt, const char *name)
{
  if (!rt) return NULL;
  rt->called = name;
  return rt;
}

/* The library's message has sizes and types. This adds the operation's name and line. */
static void keep_failure_of(ampc_runtime *rt, ampc_status status, uint32_t asked)
{
  if (!status || rt->failed) return;
  char line[16] = "", why[ERROR_TEXT];
  if (asked) snprintf(line, sizeof line, ":%u", asked);
  snprintf(why, sizeof why, "%s", ampc_last_error());
  keep_failure(rt, ampc_fail(status, "%s (%s%s): %s", rt->called, rt->program->source, line, why));
}

/* The argument of run_commands. A device may call run_commands again later, with the same one. */
typedef struct Step {
  ampc_runtime *rt;
  uint32_t block, key;
  const uint32_t *variants; /* one for each member of this process */
} Step;

/* Runs the next part of each member's step. Returns false if there is none. Lists of members with
 * different shares may differ in length. */
static bool run_part(const Step *s)
{
  ampc_runtime *rt = s->rt;
  bool more = false;
  for (uint32_t i = 0; i < rt->members.n; i++) {
    const ampc_step *step = &rt->program->blocks[s->block].variant[s->variants[i]];
    members_turn(rt, i);
    if (step->run) {
      step->run(rt);
      more = rt->part + 1 < step->n_parts;
    } else {
      more = commands_run(rt, s->block, s->variants[i], &rt->next[i]);
    }
  }
  return more && !rt->failed;
}

/* Members run the same exchanges in the same order. */
static ampc_status run_commands(void *context)
{
  const Step *s = context;
  for (uint32_t i = 0; i < s->rt->members.n; i++) s->rt->next[i] = 0;
  s->rt->part = 0;
  s->rt->step_sent = 0;
  while (run_part(s)) s->rt->part++;
  s->rt->sent_by[s->key] = s->rt->step_sent;
  members_turn(s->rt, 0);
  return failed(s->rt);
}

/* Rehearses all variants of a block whose steps have several bodies. Otherwise a variant, such as
 * the smaller last batch, could have its trial run when the gradients of earlier bodies are
 * summed. */
static ampc_status rehearse(ampc_runtime *rt, uint32_t block)
{
  const ampc_block *b = &rt->program->blocks[block];
  ampc_status status = AMPC_OK;
  if (b->accumulate <= 1 || rt->rehearsed[block]) return AMPC_OK;
  rt->rehearsed[block] = true;
  bool closes = rt->closes;
  uint32_t *same = calloc(rt->members.n, sizeof *same);
  if (!same) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  rt->closes = true; /* members exchange only in a step's last body */
  for (uint32_t v = 0; v < b->n_variants && !status; v++) {
    for (uint32_t i = 0; i < rt->members.n; i++) same[i] = v;
    Step s = {rt, block, step_key(block, v), same};
    status = rt->device->ops->rehearse(rt->device, step_key(block, v), rt->space[AMPC_STATE],
                                       run_commands, &s);
  }
  rt->closes = closes;
  free(same);
  return status;
}

/* One write sets both, because `first` and `closes` are adjacent. It is only done if they
 * change. */
ampc_status ampc_set_group(ampc_runtime *rt, bool first, bool closes)
{
  NEEDS(rt);
  const int flags[2] = {first, closes};
  if (rt->first == first && rt->closes == closes) return AMPC_OK;
  rt->first = first;
  rt->closes = closes;
  return ampc_write(rt, (ampc_ref){AMPC_STATE, offsetof(ampc_state, first)}, flags, sizeof flags);
}

ampc_status runtime_set_call(ampc_runtime *rt, int64_t call)
{
  const unsigned n = (unsigned)call;
  if (rt->call == n) return AMPC_OK;
  rt->call = n;
  return ampc_write(rt, (ampc_ref){AMPC_STATE, offsetof(ampc_state, call)}, &n, sizeof n);
}

/* An infer block always runs a full batch. If no variant fits, the result is the number of
 * variants, which ampc_run_step refuses. */
uint32_t ampc_variant_at(const ampc_block *b, int64_t samples, int64_t step)
{
  if (!b) return 0;
  uint32_t fires = 0, v = 0;
  int64_t batch = b->kind == AMPC_INFER ? b->variant[0].batch : samples;
  for (uint32_t i = 0; i < b->n_periods; i++) fires |= (uint32_t)(step % b->period[i] == 0) << i;
  while (v < b->n_variants && (b->variant[v].fires != fires || b->variant[v].batch != batch)) v++;
  return v;
}

ampc_status ampc_run_step(ampc_runtime *rt, uint32_t block, uint32_t variant)
{
  NEEDS(rt);
  if (rt->members.n == 1) return runtime_run_step(rt, block, &variant);
  uint32_t *same = malloc(rt->members.n * sizeof *same);
  if (!same) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (uint32_t i = 0; i < rt->members.n; i++) same[i] = variant;
  ampc_status status = runtime_run_step(rt, block, same);
  free(same);
  return status;
}

ampc_status runtime_run_step(ampc_runtime *rt, uint32_t block, const uint32_t *variants)
{
  const ampc_program *p = rt->program;
  const DeviceOps *ops = rt->device->ops;
  for (uint32_t i = 0; i < rt->members.n; i++)
    if (block >= p->n_blocks || variants[i] >= p->blocks[block].n_variants)
      return ampc_fail(AMPC_BAD_USAGE, "no block %u with variant %u", block, variants[i]);
  if (rt->failed) return failed(rt);
  uint32_t key = step_key(block, variants[0]);
  rt->last_variant = variants[0];
  if (rt->members.all > 1 && !rt->closes) key += step_key(p->n_blocks, 0);
  Step s = {rt, block, key, variants};
  keep_failure(rt, rehearse(rt, block));
  if (rt->failed) return failed(rt);
  double begin = profile_begin(rt);
  bool apart = rt->moved_spaces && !rt->device->host_memory; /* a recording has other addresses */
  keep_failure(rt, apart ? run_commands(&s)
                         : ops->step(rt->device, key, rt->space[AMPC_STATE], run_commands, &s));
  profile_since(rt, TIME_step, step_key(block, variants[0]), begin);
  rt->sent += rt->sent_by[key];
  return failed(rt);
}

ampc_status ampc_wait(ampc_runtime *rt)
{
  NEEDS(rt);
  double begin = profile_begin(rt);
  keep_failure(rt, rt->device->ops->wait(rt->device));
  if (!rt->device->host_memory) profile_since(rt, TIME_wait, 0, begin);
  return failed(rt);
}

ampc_status runtime_profile(ampc_runtime *rt, Profile *p)
{
  ampc_status status = ampc_wait(rt);
  rt->device->profile = p;
  return status;
}

void runtime_mark(ampc_runtime *rt, int64_t command)
{
  profile_ranges(rt->device->profile, command);
  keep_failure(rt, rt->device->ops->mark(rt->device, command));
}

int64_t ampc_waits(const ampc_runtime *rt)
{
  if (!rt) return 0;
  return rt->device->waits;
}

char *const *ampc_spaces(ampc_runtime *rt)
{
  if (!rt) return NULL;
  return rt->space;
}

/* Whether the calls of a step do nothing: after a failure, and while libraries are prepared. */
static bool is_idle(const ampc_runtime *rt)
{
  return !rt || rt->failed || rt->preparing;
}

void ampc_do_launch(ampc_runtime *rt, uint32_t kernel, uint32_t grid, uint32_t block,
                    void *const *args, uint32_t n_args)
{
  if (is_idle(rt) || grid == 0) return;
  const ampc_program *p = rt->program;
  if (kernel >= p->n_kernels || p->kernels[kernel].n_args != n_args) {
    keep_failure(
        rt, ampc_fail(AMPC_RUN_FAILED, "broken plan: kernel %u with %u arguments", kernel, n_args));
    return;
  }
  keep_failure(rt, rt->device->ops->launch(rt->device, &p->kernels[kernel], grid, block, args));
}

void ampc_do_defer(ampc_runtime *rt, uint32_t kernel, uint32_t grid, uint32_t block,
                   void *const *args, uint32_t n_args)
{
  if (is_idle(rt)) return;
  if (n_args > AMPC_MOST_DEFERRED) {
    ampc_do_launch(rt, kernel, grid, block, args, n_args);
    return;
  }
  rt->deferred = (ampc_deferred){kernel, grid, block, n_args, {NULL}};
  for (uint32_t i = 0; i < n_args; i++) rt->deferred.args[i] = args[i];
}

void ampc_do_attention(ampc_runtime *rt, const ampc_attention *desc, uint32_t kernel, uint32_t grid,
                       uint32_t block, void *const *args, uint32_t n_args)
{
  bool done = false;
  if (!rt || rt->failed) return;
  const DeviceOps *ops = rt->device->ops;
  if (ops->launch_by_library)
    keep_failure_of(rt,
                    rt->preparing ? ops->prepare_launch(rt->device, desc)
                                  : ops->launch_by_library(rt->device, desc, args, &done),
                    desc->line);
  const ampc_deferred w = rt->deferred;
  rt->deferred.n_args = 0;
  if (!done && w.n_args) ampc_do_launch(rt, w.kernel, w.grid, w.block, w.args, w.n_args);
  if (!done) ampc_do_launch(rt, kernel, grid, block, args, n_args);
}

void ampc_do_gemm(ampc_runtime *rt, const ampc_gemm *desc, const void *a, const void *b,
                  const void *bias, void *c, void *workspace)
{
  const GemmOperands at = {a, b, bias, c, workspace};
  if (!rt || rt->failed) return;
  const DeviceOps *ops = rt->device->ops;
  keep_failure_of(
      rt, rt->preparing ? ops->prepare_gemm(rt->device, desc) : ops->gemm(rt->device, desc, &at),
      desc->line);
}

void ampc_do_conv(ampc_runtime *rt, const ampc_conv *desc, void *x, void *w, const void *bias,
                  void *y, void *workspace)
{
  const ConvOperands at = {x, w, bias, y, workspace};
  if (!rt || rt->failed) return;
  const DeviceOps *ops = rt->device->ops;
  keep_failure_of(
      rt, rt->preparing ? ops->prepare_conv(rt->device, desc) : ops->conv(rt->device, desc, &at),
      desc->line);
}

void ampc_do_copy(ampc_runtime *rt, void *to, const void *from, int64_t bytes)
{
  if (is_idle(rt)) return;
  keep_failure(rt, rt->device->ops->copy(rt->device, to, from, bytes));
}

void ampc_do_fill(ampc_runtime *rt, void *to, uint8_t value, int64_t bytes)
{
  if (is_idle(rt)) return;
  keep_failure(rt, rt->device->ops->fill(rt->device, to, value, bytes));
}

void ampc_do_exchange(ampc_runtime *rt, ampc_exchange_kind kind, ampc_exchange_mode mode,
                      ampc_dtype type, int64_t count, bool closing, ampc_space space,
                      int64_t offset)
{
  const ampc_exchange x = {
      .kind = kind, .type = type, .count = count, .closing = closing, .mode = mode};
  if (rt && !rt->failed) keep_failure(rt, members_exchange(rt, &x, (ampc_ref){space, offset}));
}
