/* Finds out why a run was lost. A second program with probes on all values repeats the step, and
 * the first value that is not finite is printed with its inputs. The run itself does not change. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/driver.h"
#include "probe.h"
#include "runner/jit/jit.h"
#include "runtime/runtime.h"

typedef struct Again { /* the repeated step */
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
  ampc_batches *batches;
  Watch watch;
  const Lost *lost;
  ampc_state state;           /* before the step */
  ampc_optimizer *optimizers; /* state of each optimizer before the step */
} Again;

/* ---- the state before the step ---- */

/* Copies a space. Both programs have the same parameters, settings and optimizers, so these spaces
 * have the same layout. */
static ampc_status copy_space(ampc_runtime *from, ampc_runtime *to, ampc_space space)
{
  int64_t bytes = from->program->space_bytes[space];
  if (!bytes || space == AMPC_GRAD) return AMPC_OK;
  if (to->program->space_bytes[space] != bytes)
    return ampc_fail(AMPC_RUN_FAILED, "the program with probes has another memory layout");
  void *room = malloc((size_t)bytes);
  if (!room) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read(from, (ampc_ref){space, 0}, room, bytes);
  if (!status) status = ampc_write(to, (ampc_ref){space, 0}, room, bytes);
  free(room);
  return status;
}

static ampc_status copy_run(ampc_runtime *from, ampc_runtime *to)
{
  ampc_status status = ampc_wait(from);
  for (int s = AMPC_STATE; s < AMPC_INPUT && !status; s++)
    status = copy_space(from, to, (ampc_space)s);
  return status;
}

/* Writes the state before the step, so that the same random numbers are drawn. `unscaled`: with a
 * loss scale of 1. */
static ampc_status set_state(Again *a, bool unscaled)
{
  const ampc_program *p = a->c->program;
  ampc_state s = a->state;
  if (unscaled) s.scale = s.inv_scale = 1;
  ampc_status status = ampc_write(a->rt, (ampc_ref){AMPC_STATE, 0}, &s, sizeof s);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    ampc_optimizer o = a->optimizers[i];
    if (unscaled && o.scale > 0) o.scale = o.inv_scale = 1;
    status = ampc_write(a->rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
  }
  return status;
}

static ampc_status read_state(Again *a)
{
  const ampc_program *p = a->c->program;
  a->optimizers = arena_array(a->c->arena, ampc_optimizer, p->n_optimizers + 1);
  ampc_status status = ampc_get_state(a->rt, &a->state);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++)
    status = ampc_read(a->rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &a->optimizers[i],
                       sizeof a->optimizers[i]);
  return status;
}

static ampc_status open_again(Again *a, const Options *options, ampc_runtime *from,
                              const char *device, const char *data_dir)
{
  const ampc_block *b = &from->program->blocks[a->lost->at.block];
  Options own = *options;
  own.probe_every = 1;
  own.silent = true;
  a->c = compile_create(&own);
  if (!compile_job(a->c)) return ampc_fail(AMPC_RUN_FAILED, "the job no longer compiles");
  ampc_status status = jit_load(a->c, &a->jit);
  if (!status) status = ampc_create(a->c->program, device, &a->rt);
  if (!status) status = copy_run(from, a->rt);
  if (!status) status = read_state(a);
  if (status) return status;
  int64_t back = a->state.step - a->lost->step + 1;
  a->state.step -= back;
  a->state.body -= back * b->accumulate;
  a->state.bad_loss = a->state.growth = 0;
  a->state.found_inf = 0;
  a->state.decided = a->state.passed = a->state.again = a->state.dropped = a->state.replay = 0;
  a->state.begun = a->state.body;
  a->state.outside = (ampc_outside){0};
  watch_init(&a->watch, a->c);
  return ampc_data.open(a->c->program, (uint32_t)a->lost->at.block, data_dir,
                        (uint64_t)a->state.seed, &a->batches);
}

static void close_again(Again *a)
{
  if (a->batches) ampc_data.close(a->batches);
  ampc_free(a->rt);
  jit_unload(a->jit);
  compile_destroy(a->c);
}

/* Runs the bodies of the step, up to the first one in which a value is not finite. */
static ampc_status run_again(Again *a, bool unscaled, const Seen **out)
{
  uint32_t block = (uint32_t)a->lost->at.block;
  int64_t bodies = a->c->program->blocks[block].accumulate, samples;
  ampc_status status = set_state(a, unscaled);
  if (!status) status = ampc_data.seek(a->batches, a->lost->at);
  *out = NULL;
  for (int64_t i = 0; i < bodies && !status && !*out; i++) {
    bool found;
    watch_clear(&a->watch);
    status = ampc_set_group(a->rt, i == 0, i + 1 == bodies);
    if (!status)
      status = ampc_run_batch(a->rt, &ampc_data, a->batches, block, a->lost->step, &samples);
    if (!status) status = watch_read(&a->watch, a->rt, block, &found);
    *out = watch_first_lost(&a->watch, false);
    if (!*out) *out = watch_first_lost(&a->watch, true);
  }
  return status;
}

/* ---- output ---- */

static void tell_line(const Again *a, const Seen *s)
{
  uint32_t size;
  if (!s->place.source) return;
  const char *text = diag_line_text(a->c, &s->place, &size);
  while (size && (*text == ' ' || *text == '\t')) text++, size--;
  const char *kept = arena_shown(a->c->arena, arena_strndup(a->c->arena, text, size), "");
  fprintf(stderr, "  %5u | %s\n", s->place.line, kept);
}

/* Prints " it is computed from net relu `h` f16 from 0.0025 up to 1.77". */
static void tell_inputs(const Again *a, const Seen *s)
{
  const char *between = "  it is computed from ";
  for (uint32_t i = 0; i < s->probe->of.n_in; i++) {
    const Seen *in = watch_input(&a->watch, s, i);
    if (!in || !in->range.n) continue;
    fprintf(stderr, "%s%s %s from %.3g up to %.3g", between, seen_name(&a->watch, in),
            ir_dtype_name(in->probe->of.dtype), in->range.least, in->range.greatest);
    between = ", ";
  }
  if (*between == ',') fputc('\n', stderr);
}

static void tell_value(const Again *a, const Seen *s)
{
  const Range *r = &s->range;
  const char *place = "";
  if (s->place.source)
    place = arena_printf(a->c->arena, ", %s:%u", s->place.source->shown, s->place.line);
  fprintf(stderr, "diagnosis: in step %lld the first value that is not finite is %s%s\n",
          (long long)a->lost->step, seen_name(&a->watch, s), place);
  tell_line(a, s);
  fprintf(stderr,
          "  of %lld numbers (%s), %lld are infinite and %lld are NaN; the largest finite one is "
          "%.3g\n",
          (long long)r->n, ir_dtype_name(s->probe->of.dtype), (long long)r->infinite,
          (long long)r->nans, r->greatest);
  tell_inputs(a, s);
}

/* Whether the value has infinite elements, in a type with a smaller range than f32. */
static bool leaves_range(const Seen *s)
{
  return ampc_type_of(s->probe->of.dtype)->exponent < ampc_type_of(AMPC_F32)->exponent &&
         s->range.infinite > 0;
}

/* Reports that the numbers themselves are wrong: the value is of forward, or of backward with a
 * loss scale of 1. */
static void tell_model(const Seen *s)
{
  if (s->probe->kind == PROBE_weight)
    fputs("  the model: the weight was not finite before this step, so no loss scale helps; resume "
          "from an earlier checkpoint with a smaller learning rate\n",
          stderr);
  else if (s->probe->of.op == OP_source)
    fputs("  the data: a sample of this batch contains a number that is not finite\n", stderr);
  else if (leaves_range(s))
    fputs("  the model: the number leaves the range of f16 (65504) at any loss scale; put "
          "autocast(f32) around this line, use bf16, or make its inputs smaller\n",
          stderr);
  else
    fputs("  the model: the operation itself produces such numbers, at any loss scale and in any "
          "type; check its inputs\n",
          stderr);
}

static void tell_scale(float scale)
{
  fprintf(stderr,
          "  the loss scale: the gradient leaves the range of its type at scale %g but not at 1; "
          "lower `min` or `static` of the scaler, or put autocast(f32) around this line\n",
          (double)scale);
}

static ampc_status tell(Again *a)
{
  const Seen *first, *unscaled;
  float scale = a->state.scale;
  ampc_status status = run_again(a, false, &first);
  if (status) return status;
  if (!first) {
    fprintf(stderr, "diagnosis: all numbers of the repeated step %lld are finite\n",
            (long long)a->lost->step);
    return AMPC_OK;
  }
  tell_value(a, first);
  if (!seen_is_backward(first) || first->probe->kind == PROBE_weight || scale == 1) {
    tell_model(first);
    return AMPC_OK;
  }
  status = run_again(a, true, &unscaled);
  if (!status && unscaled) tell_model(unscaled);
  if (!status && !unscaled) tell_scale(scale);
  return status;
}

void diagnose(const Options *options, const char *device, const char *data_dir, ampc_runtime *rt,
              const Lost *lost)
{
  Again a = {.lost = lost};
  ampc_status status = open_again(&a, options, rt, device, data_dir);
  if (!status) status = tell(&a);
  if (status) fprintf(stderr, "no diagnosis: %s\n", ampc_last_error());
  close_again(&a);
}
