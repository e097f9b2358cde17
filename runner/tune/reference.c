/* Trains the job in f32: the weights of the trials, the ranges of values, and how far two runs of
 * f32 differ that begin one ulp apart. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "reference.h"
#include "runner/job/memory.h"
#include "runner/job/steps.h"
#include "runner/probe/probe.h"

/* ---- training ---- */

typedef struct Seeing { /* a probed value over all steps */
  Range range;
  uint32_t steps_over;
} Seeing;

typedef struct Course { /* a training run */
  bool nudge;
  Watch *watch; /* NULL: ranges are not read */
  Seeing *seen; /* for each entry of `watch` */
  double last;  /* sum of the losses of the last quarter of the steps */
  uint32_t step, steps;
} Course;

/* Moves each weight by one unit in the last place. */
static ampc_status nudge(ampc_runtime *rt)
{
  int64_t bytes = ampc_program_of(rt)->space_bytes[AMPC_MASTER];
  uint32_t *w = malloc((size_t)bytes);
  if (!w) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read(rt, (ampc_ref){AMPC_MASTER, 0}, w, bytes);
  for (int64_t i = 0; i < bytes / 4; i++) w[i] ^= (w[i] & 0x7fffffff) != 0;
  if (!status) status = ampc_write(rt, (ampc_ref){AMPC_MASTER, 0}, w, bytes);
  free(w);
  return status ? status : ampc_refresh_copies(rt);
}

static ampc_status read_ranges(Course *course, ampc_runtime *rt, uint32_t block)
{
  bool found;
  watch_clear(course->watch);
  ampc_status status = watch_read(course->watch, rt, block, &found);
  for (uint32_t i = 0; i < course->watch->n && !status; i++) {
    const Range *r = &course->watch->at[i].range;
    range_merge(&course->seen[i].range, r);
    course->seen[i].steps_over += r->over_f16 > 0;
  }
  return status;
}

static ampc_status after_step(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                              const char **out_note)
{
  Course *course = context;
  double loss;
  (void)step, (void)out_note;
  ampc_status status = tune_loss(rt, &loss);
  if (!status && course->watch) status = read_ranges(course, rt, block);
  if (!status && course->nudge && course->step == 0) status = nudge(rt);
  course->step++;
  if (4 * course->step > 3 * course->steps) course->last += loss;
  return status;
}

/* Trains from the beginning. *loss: mean of the last quarter of the steps. */
static ampc_status train(const Tune *t, ampc_runtime *rt, Course *course, double *loss)
{
  ampc_train_options o = t->train;
  o.after_step = after_step;
  o.context = course;
  o.train_only = o.steps_given = o.quiet = true;
  course->steps = t->steps;
  ampc_status status = job_more_steps(rt, &o, t->steps);
  if (!status) status = ampc_train(rt, &ampc_data, &o);
  uint32_t last = course->steps - 3 * course->steps / 4;
  *loss = course->step == course->steps ? course->last / last : INFINITY;
  return status;
}

ampc_status tune_train(Tune *t, const char *text, Proof *out)
{
  Loaded r = {0};
  Course course = {0};
  ampc_state s = {0};
  ampc_status status = loaded_open(t, &r, text, 0);
  if (!status) {
    status = train(t, r.rt, &course, &out->loss);
    if (status == AMPC_RUN_FAILED) status = AMPC_OK; /* a loss that is not finite */
  }
  if (!status) status = ampc_get_state(r.rt, &s);
  out->skipped = s.skipped;
  out->scale = (double)s.scale;
  loaded_close(&r);
  return status;
}

/* ---- ranges of modules ---- */

/* Whether two programs of the job have this value in common. */
static bool same_value(const Probe *a, const Probe *b)
{
  const char *x = a->of.layer ? a->of.layer : "", *y = b->of.layer ? b->of.layer : "";
  return a->kind == b->kind && a->param == b->param && a->of.op == b->of.op &&
         a->of.span.start == b->of.span.start && !a->of.origin.id == !b->of.origin.id &&
         strcmp(x, y) == 0;
}

/* Finds, for each value of the f16 program, the same value of the f32 program; NULL: only one of
 * them has it. Equal values match in order. */
static const Seeing **match_values(const Tune *t, const Watch *low, const Course *f32)
{
  const Watch *w = f32->watch;
  const Seeing **out = arena_array(t->arena, const Seeing *, low->n + 1);
  bool *taken = arena_array(t->arena, bool, w->n + 1);
  for (uint32_t i = 0; i < low->n; i++)
    for (uint32_t k = 0; k < w->n && !out[i]; k++) {
      if (taken[k] || !same_value(low->at[i].probe, w->at[k].probe)) continue;
      taken[k] = true;
      out[i] = &f32->seen[k];
    }
  return out;
}

static void add_to_unit(Unit *u, const Seeing *s)
{
  const Range *r = &s->range;
  double under = r->n ? (double)range_under(r, AMPC_F16, 1) / (double)r->n : 0;
  u->greatest = fmax(u->greatest, r->greatest);
  if (r->least > 0 && (u->least == 0 || r->least < u->least)) u->least = r->least;
  if (s->steps_over > u->steps_over) u->steps_over = s->steps_over;
  u->under = fmax(u->under, under);
}

/* Gives each module the ranges of the values that f16 would store in it, and of the operands of
 * these: if the module that makes an operand is raised, this one casts it to f16. */
static bool find_ranges(Tune *t, const Course *f32)
{
  Options o = *t->compile;
  Watch low;
  Cover all = {.base = 1};
  Tune as = *t;
  as.kinds[1] = REGION_f16;
  o.precision = tune_declaration(&as, &all, 0, NULL);
  o.probe_every = 1;
  o.silent = true;
  Compile *c = compile_create(&o);
  bool good = compile_job(c);
  if (good) watch_init(&low, c);
  const Seeing **is = good ? match_values(t, &low, f32) : NULL;
  for (uint32_t i = 0; good && i < low.n; i++) {
    const Probe *p = low.at[i].probe;
    if (p->kind != PROBE_value || p->of.origin.id || p->of.dtype != AMPC_F16) continue;
    Unit *unit = &t->units.at[unit_find(&t->units, p->of.layer)];
    if (!op_has(&p->of, T_casts) && is[i]) add_to_unit(unit, is[i]);
    for (uint32_t k = 0; k < p->of.n_in; k++) {
      const Seen *from = watch_input(&low, &low.at[i], k);
      if (from && is[from - low.at]) add_to_unit(unit, is[from - low.at]);
    }
  }
  compile_destroy(c);
  return good;
}

/* ---- the reference ---- */

/* Trains with weights that move by one ulp. */
static ampc_status run_nudged(Tune *t)
{
  Loaded *r = &t->reference->base;
  Course course = {.nudge = true};
  ampc_status status = ampc_create(r->c->program, t->train.device, &r->rt);
  if (!status) status = train(t, r->rt, &course, &t->nudged_loss);
  ampc_free(r->rt);
  r->rt = NULL;
  return status;
}

/* Writes the weights to a file that has no name any more, so nothing is left of it at the end. */
static ampc_status keep_weights(const Tune *t, Reference *ref)
{
  const char *path = arena_printf(t->arena, "%s.%ld.weights", t->store, (long)getpid());
  ampc_status status = ampc_weights_save(ref->base.rt, path);
  if (status) return status;
  ref->file = open(path, O_RDONLY | O_CLOEXEC);
  if (ref->file < 0) status = ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", path, strerror(errno));
  unlink(path);
  ref->weights = arena_printf(t->arena, "/dev/fd/%d", ref->file);
  return status;
}

static ampc_status run_probed(Tune *t, Course *course)
{
  Reference *ref = t->reference;
  ampc_status status = loaded_open(t, &ref->base, t->f32, 1);
  if (!status) status = memory_admit(ref->base.c, t->train.device, t->quiet, false);
  if (status) return status;
  Watch *w = arena_new(t->arena, Watch);
  watch_init(w, ref->base.c);
  course->watch = w;
  course->seen = arena_array(t->arena, Seeing, w->n + 1);
  status = train(t, ref->base.rt, course, &t->loss);
  if (!status) status = keep_weights(t, ref);
  ampc_free(ref->base.rt); /* its memory is needed for trials */
  ref->base.rt = NULL;
  return status;
}

static bool searches(const Tune *t, RegionKind kind)
{
  for (uint32_t k = 0; k < t->n_kinds; k++)
    if (t->kinds[k] == kind) return true;
  return false;
}

ampc_status tune_run_f32(Tune *t)
{
  Course course = {0};
  if (t->reference) return AMPC_OK;
  if (!t->quiet) fprintf(stderr, "%u steps in f32, with the ranges of all values\n", t->steps);
  Reference *ref = t->reference = arena_new(t->arena, Reference);
  ref->batch = arena_array(t->arena, Batch, t->batches);
  ampc_status status = run_probed(t, &course);
  if (!status) {
    const ampc_program *p = ref->base.c->program;
    status = ampc_data.open(p, tune_block(p), t->train.data_dir, p->seed, &ref->batches);
  }
  if (!status) status = batches_run(t, t->f32, ref->batch);
  if (status || t->ran) return status;
  if (searches(t, REGION_f16) && !find_ranges(t, &course))
    return ampc_fail(1, "the job does not compile with precision f16");
  if (!t->quiet) fprintf(stderr, "%u steps in f32, with weights moved by one ulp\n", t->steps);
  status = run_nudged(t);
  t->ran = !status;
  return status;
}

void tune_close(Tune *t)
{
  Reference *ref = t->reference;
  if (!ref) return;
  batches_free(t, ref->batch);
  if (ref->batches) ampc_data.close(ref->batches);
  if (ref->weights) close(ref->file);
  loaded_close(&ref->base);
  t->reference = NULL;
}
