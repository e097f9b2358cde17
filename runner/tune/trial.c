/* Measures an assignment: compiles the job with it, and compares loss and gradients of some batches
 * with those of f32.
 *
 * All programs start from the same weights, those after Tune.steps steps of f32, and draw the same
 * random numbers. The optimizers accumulate over two batches, and each batch runs as the first of
 * two. So no update runs, and the gradients of the batch remain in GRAD. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_metrics.h"
#include "compiler/cost/predict.h"
#include "compiler/driver.h"
#include "reference.h"
#include "common/clock.h"

/* ---- compiling ---- */

static Options options_of(Tune *t, const char *text, bool accumulate)
{
  Options o = *t->compile;
  o.precision = text;
  o.silent = true;
  if (!accumulate) return o;
  const ampc_program *p = t->reference->base.c->program;
  o.settings = arena_array(t->arena, Assignment, o.n_settings + p->n_optimizers);
  for (uint32_t i = 0; i < o.n_settings; i++) o.settings[i] = t->compile->settings[i];
  for (uint32_t i = 0; i < p->n_optimizers; i++)
    o.settings[o.n_settings++] =
        (Assignment){arena_printf(t->arena, "%s.accumulate", p->optimizers[i].name), "2"};
  return o;
}

/* Compiles again with messages, for the user. */
static ampc_status refused(Options o)
{
  o.silent = false;
  Compile *c = compile_create(&o);
  compile_job(c);
  compile_destroy(c);
  return ampc_fail(1, "the job does not compile with another precision");
}

static ampc_status open_program(Loaded *r, const Options *o, const char *device)
{
  *r = (Loaded){.c = compile_create(o)};
  if (!compile_job(r->c)) return refused(*o);
  ampc_status status = jit_tell(r->c, jit_load(r->c, &r->jit));
  return status ? status : ampc_create(r->c->program, device, &r->rt);
}

void loaded_close(Loaded *r)
{
  ampc_free(r->rt);
  jit_unload(r->jit);
  compile_destroy(r->c);
  *r = (Loaded){0};
}

ampc_status loaded_open(Tune *t, Loaded *r, const char *text, uint32_t probe_every)
{
  Options o = options_of(t, text, false);
  o.probe_every = probe_every;
  return open_program(r, &o, t->train.device);
}

/* *buffers: a copy of BUFFER, in the arena. */
static ampc_status open_trial(Tune *t, Loaded *r, const char *text, void **buffers)
{
  Options o = options_of(t, text, true);
  ampc_status status = open_program(r, &o, t->train.device);
  if (!status) status = ampc_init_params(r->rt, r->c->program->seed);
  if (!status) status = ampc_load_given(r->rt, t->train.data_dir, NULL, NULL);
  if (!status) status = ampc_load_weights(r->rt, t->reference->weights, NULL, NULL);
  if (status) return status;
  int64_t bytes = r->c->program->space_bytes[AMPC_BUFFER];
  *buffers = arena_alloc(t->arena, (size_t)bytes + 1, 64);
  return ampc_read(r->rt, (ampc_ref){AMPC_BUFFER, 0}, *buffers, bytes);
}

/* ---- one batch ---- */

/* Undoes what earlier batches have changed: running statistics, and GRAD, to which kernels add. */
static ampc_status clear(const Loaded *r, const Batch *b, const void *buffers)
{
  const int64_t *bytes = r->c->program->space_bytes;
  memset(b->gradient, 0, (size_t)bytes[AMPC_GRAD]);
  ampc_status status = ampc_write(r->rt, (ampc_ref){AMPC_GRAD, 0}, b->gradient, bytes[AMPC_GRAD]);
  return status ? status
                : ampc_write(r->rt, (ampc_ref){AMPC_BUFFER, 0}, buffers, bytes[AMPC_BUFFER]);
}

/* Sets the counters, which random numbers depend on, and the loss scale. */
static ampc_status set_state(const Loaded *r, int64_t batch, double scale)
{
  ampc_state s;
  ampc_status status = ampc_set_group(r->rt, true, false);
  if (!status) status = ampc_get_state(r->rt, &s);
  if (status) return status;
  s.body = s.begun = batch;
  s.step = batch;
  s.found_inf = s.decided = s.passed = s.again = s.dropped = s.replay = 0;
  s.bad_loss = 0;
  s.scale = (float)scale;
  s.inv_scale = (float)(1 / scale);
  status = ampc_write(r->rt, (ampc_ref){AMPC_STATE, 0}, &s, sizeof s);
  for (uint32_t i = 0; i < r->c->program->n_optimizers && !status; i++) {
    ampc_ref at = {AMPC_STATE, ampc_state_optimizer(i)};
    ampc_optimizer o;
    status = ampc_read(r->rt, at, &o, sizeof o);
    if (!status && o.scale > 0) {
      o.scale = s.scale, o.inv_scale = s.inv_scale;
      status = ampc_write(r->rt, at, &o, sizeof o);
    }
  }
  return status;
}

uint32_t tune_block(const ampc_program *p)
{
  uint32_t b = 0;
  while (b < p->n_blocks && p->blocks[b].kind != AMPC_TRAIN) b++;
  return b;
}

ampc_status tune_loss(ampc_runtime *rt, double *out)
{
  const ampc_program *p = ampc_program_of(rt);
  const ampc_block *b = &p->blocks[tune_block(p)];
  ampc_metric m = {0};
  ampc_status status = AMPC_OK;
  *out = 0;
  for (uint32_t i = 0; i < b->n_metrics && !status; i++) {
    if (!p->metrics[b->first_metric + i].is_loss) continue;
    status = ampc_get_metric(rt, b->first_metric + i, &m);
    *out += (double)m.last;
  }
  return status;
}

static bool is_trained(const ampc_param *p)
{
  return !p->buffer && p->optimizer >= 0;
}

static bool all_finite(const Tune *t, const float *gradient)
{
  const ampc_program *p = t->reference->base.c->program;
  for (uint32_t i = 0; i < p->n_params; i++)
    for (int64_t k = 0; is_trained(&p->params[i]) && k < p->params[i].elements; k++)
      if (!isfinite(gradient[p->params[i].offset + k])) return false;
  return true;
}

/* Runs forward and backward on batch i. Lowers the loss scale until all gradients are finite, as
 * the loss scaler does over several steps. */
static ampc_status run_batch(Tune *t, const Loaded *r, uint32_t i, const void *buffers, Batch *out)
{
  const ampc_program *p = r->c->program;
  uint32_t block = tune_block(p);
  ampc_batches *from = t->reference->batches;
  int64_t samples, bytes = p->space_bytes[AMPC_GRAD];
  ampc_data_position at = {0, i % ampc_data.per_epoch(from), block};
  for (;; out->scale /= 16) {
    ampc_status status = clear(r, out, buffers);
    if (!status) status = set_state(r, i, out->scale);
    if (!status) status = ampc_data.seek(from, at);
    double begin = seconds_now();
    if (!status) status = ampc_run_batch(r->rt, &ampc_data, from, block, 1, &samples);
    if (!status) status = ampc_wait(r->rt);
    out->us = 1e6 * (seconds_now() - begin);
    if (!status) status = tune_loss(r->rt, &out->loss);
    if (!status) status = ampc_read(r->rt, (ampc_ref){AMPC_GRAD, 0}, out->gradient, bytes);
    if (status) return status;
    out->finite = isfinite(out->loss) && all_finite(t, out->gradient);
    if (out->finite || !isfinite(out->loss) || out->scale <= 1) return AMPC_OK;
  }
}

ampc_status batches_run(Tune *t, const char *text, Batch *out)
{
  Loaded r = {0};
  void *buffers;
  ampc_state s = {.scale = 1};
  ampc_status status = open_trial(t, &r, text, &buffers);
  if (!status) status = ampc_get_state(r.rt, &s);
  for (uint32_t i = 0; i < t->batches && !status; i++) {
    out[i].scale = i ? out[i - 1].scale : (double)s.scale;
    out[i].gradient = calloc((size_t)r.c->program->space_bytes[AMPC_GRAD] + 1, 1);
    status = out[i].gradient ? run_batch(t, &r, i, buffers, &out[i])
                             : ampc_fail(AMPC_RUN_FAILED, "out of memory for gradients");
  }
  loaded_close(&r);
  return status;
}

void batches_free(const Tune *t, Batch *b)
{
  for (uint32_t i = 0; b && i < t->batches; i++) free(b[i].gradient);
}

/* ---- deviations ---- */

/* Of the root mean square of all gradients: the size below which gradients of a parameter count as
 * noise. Some are zero but for rounding, such as that of a bias before a batch norm. */
static const double NOISE = 0.1;

static double square_of(double x)
{
  return x * x;
}

static double squares(const float *x, double scale, const ampc_param *p)
{
  double sum = 0;
  for (int64_t i = 0; i < p->elements; i++) sum += square_of((double)x[p->offset + i] / scale);
  return sum;
}

static double difference(const Batch *a, const Batch *b, const ampc_param *p)
{
  double sum = 0;
  for (int64_t i = p->offset; i < p->offset + p->elements; i++)
    sum += square_of((double)a->gradient[i] / a->scale - (double)b->gradient[i] / b->scale);
  return sum;
}

/* Returns the mean over parameters of the squared relative difference of their gradients. The root
 * of its number of elements is the weight of a parameter: a small layer counts, but the gradient of
 * a single bias, a difference of large sums, does not decide. */
static double gradient_deviation(const ampc_program *p, const Batch *of, const Batch *is)
{
  double all = 0, sum = 0, weights = 0;
  int64_t elements = 0;
  for (uint32_t i = 0; i < p->n_params; i++) {
    if (!is_trained(&p->params[i])) continue;
    all += squares(is->gradient, is->scale, &p->params[i]);
    elements += p->params[i].elements;
    weights += sqrt((double)p->params[i].elements);
  }
  for (uint32_t i = 0; i < p->n_params && all > 0; i++) {
    const ampc_param *q = &p->params[i];
    if (!is_trained(q)) continue;
    double noise = square_of(NOISE) * all * (double)q->elements / (double)elements;
    sum += sqrt((double)q->elements) * difference(of, is, q) /
           (squares(is->gradient, is->scale, q) + noise);
  }
  return weights > 0 ? sum / weights : 0;
}

Deviation batches_compare(const Tune *t, const Batch *of, const Batch *is)
{
  const ampc_program *p = t->reference->base.c->program;
  Deviation sum = {0};
  for (uint32_t i = 0; i < t->batches; i++) {
    if (!of[i].finite) return (Deviation){INFINITY, INFINITY};
    sum.gradient += gradient_deviation(p, &of[i], &is[i]);
    sum.loss += square_of((of[i].loss - is[i].loss) / (fabs(is[i].loss) + 1e-30));
  }
  return (Deviation){sqrt(sum.gradient / t->batches), sqrt(sum.loss / t->batches)};
}

/* ---- trials ---- */

bool trial_holds(const Tune *t, const Trial *trial)
{
  return trial->from_f32.gradient <= t->bound && trial->from_f32.loss <= t->bound;
}

/* Returns the fastest batch: the first one also prepares libraries. */
static double fastest(const Tune *t, const Batch *b)
{
  double us = b[0].us;
  for (uint32_t i = 1; i < t->batches; i++) us = fmin(us, b[i].us);
  return us;
}

ampc_status tune_measure(Tune *t, const char *text, Trial *out)
{
  Batch *b = arena_array(t->arena, Batch, t->batches);
  ampc_status status = tune_run_f32(t);
  if (!status) status = batches_run(t, text, b);
  if (!status) {
    out->text = text;
    out->from_f32 = batches_compare(t, b, t->reference->batch);
    out->scale = b[t->batches - 1].scale;
    out->measured_us = fastest(t, b);
    out->us = tune_predict(t, text);
    t->measured++;
  }
  batches_free(t, b);
  return status;
}

uint32_t trial_lowered(const Tune *t, const Trial *trial)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->units.n; i++)
    n += t->units.at[i].own && ampc_is_narrow(region_low(t->kinds[trial->kinds[i]]));
  return n;
}

static void tell(const Tune *t, const Trial *trial)
{
  uint32_t modules = 0;
  if (t->quiet) return;
  for (uint32_t i = 0; i < t->units.n; i++) modules += t->units.at[i].own;
  fprintf(stderr, "trial %u: %u of %u modules in 16 bits, ", t->trials.n, trial_lowered(t, trial),
          modules);
  if (isfinite(trial->from_f32.gradient))
    fprintf(stderr, "gradients %.2g, loss %.2g\n", trial->from_f32.gradient, trial->from_f32.loss);
  else
    fputs("not finite\n", stderr);
}

ampc_status tune_trial(Tune *t, Kinds kinds, Trial **out)
{
  Cover cover = cover_find(t->arena, &t->units, t->n_kinds, kinds);
  const char *text = tune_declaration(t, &cover, 0, NULL);
  for (uint32_t i = 0; i < t->trials.n; i++) {
    *out = t->trials.at[i];
    if (strcmp((*out)->text, text) == 0) return AMPC_OK;
  }
  t->late = seconds_now() > t->deadline;
  if (t->late) return AMPC_INTERRUPTED;
  uint8_t *own = arena_array(t->arena, uint8_t, t->units.n);
  memcpy(own, kinds, t->units.n);
  Trial *trial = arena_new(t->arena, Trial);
  trial->kinds = own;
  ampc_status status = tune_measure(t, text, trial);
  if (status) return status;
  vec_push(t->arena, &t->trials, trial);
  *out = trial;
  tell(t, trial);
  return store_write(t, NULL);
}

double tune_predict(const Tune *t, const char *text)
{
  Options o = *t->compile;
  double parts[PART_COUNT] = {0}, us = INFINITY;
  o.precision = text;
  o.silent = true;
  if (t->gpu && !t->gpu->cpu) o.target = t->gpu->arch;
  Compile *c = compile_create(&o);
  if (compile_job(c)) {
    uint16_t block = 0;
    while (c->graph->blocks.at[block].kind != AMPC_TRAIN) block++;
    predict_block(c, t->gpu, block, parts);
    us = 0;
    for (int i = 0; i < PART_COUNT; i++) us += parts[i];
  }
  compile_destroy(c);
  return us;
}
