/* Gradients of whole jobs on the cpu: `amp selftest job.amp ...`. A body of the first train block
 * runs in doubles. The gradient of each parameter is compared with central differences of the loss
 * along a random direction. This tests ops of the job, whose backward only the job knows, and every
 * op between them and the parameters. */
#include "ampc_metrics.h"
#include "graph.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Optimizers accumulate over two bodies, so the first one leaves its gradients, halved, in GRAD. */
enum { BODIES = 2 };

/* The differences use a step of STEP. They neglect terms of order STEP^2, and a loss in doubles has
 * a relative error of about 1e-15, that is 1e-8 of a slope. Errors are relative to the sum of the
 * absolute values of the terms of the slope.
 * Differences are wrong if a relu or a maximum switches within the step. So the step is small, and
 * a parameter fails only if it fails along several directions: a wrong gradient is wrong along all
 * of them.
 * Where values tie, as in a maximum over a new bias, the loss has different slopes on the two sides
 * of the point. Any gradient between the two is right. */
enum { DIRECTIONS = 3 };
static const double STEP = 1e-7, BOUND = 1e-4;

typedef struct Trial {
  Arena *arena;
  TestRun *run;
  const char *path, *folder;
  Built b;
  uint32_t block;
  void **batch; /* for each source, its elements in the layout of the graph in doubles */
  void *state;  /* AMPC_STATE, restored before each body. So each body is the first one of an
                 * unfinished step and draws the same random numbers. */
  double loss;  /* loss at the initial parameters */
} Trial;

/* ---- the job ---- */

static ampc_status refused(const Trial *t, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: %s", t->path, why);
}

static ampc_status find_block(Trial *t, const ampc_program *p)
{
  uint32_t losses = 0;
  for (t->block = 0; t->block < p->n_blocks; t->block++)
    if (p->blocks[t->block].kind == AMPC_TRAIN) break;
  if (t->block == p->n_blocks) return refused(t, "there is no train block");
  const ampc_block *b = &p->blocks[t->block];
  for (uint32_t i = 0; i < b->n_metrics; i++) losses += p->metrics[b->first_metric + i].is_loss;
  if (losses == 1) return AMPC_OK;
  return refused(
      t, "its first train block minimizes several values, so a parameter's gradient need not be "
         "that of their sum: keep one `minimize`");
}

/* ---- one batch ---- */

static int64_t source_elements(const ampc_source *s, int64_t batch)
{
  for (uint32_t i = 0; i < s->rank; i++) batch *= s->dim[i];
  return batch;
}

/* Returns a source's batch as the loader delivers it, with f32 widened to double. */
static void *widened(Trial *t, const ampc_source *s, int64_t n, const char *bytes)
{
  void *raw = arena_alloc(t->arena, (size_t)(n * ampc_size_of(s->dtype, true)), 64);
  double *at = arena_array(t->arena, double, (size_t)n);
  if (s->dtype != AMPC_F32) return memcpy(raw, bytes, (size_t)(n * ampc_size_of(s->dtype, true)));
  number_decode(s->dtype, false, bytes, n, at);
  number_encode(s->dtype, true, at, n, raw);
  return raw;
}

static ampc_status read_batch(Trial *t, const ampc_program *from)
{
  const ampc_block *b = &from->blocks[t->block];
  ampc_batches *batches;
  const void *base;
  int64_t samples, lowest = INT64_MAX;
  ampc_data_position at;
  ampc_status status = ampc_data.open(from, t->block, t->folder, 1, &batches);
  if (status) return status;
  status = ampc_data.next(batches, &base, &samples, &at);
  for (uint32_t i = 0; i < b->n_sources; i++)
    if (from->sources[b->first_source + i].offset < lowest)
      lowest = from->sources[b->first_source + i].offset;
  t->batch = arena_array(t->arena, void *, b->n_sources + 1);
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *s = &from->sources[b->first_source + i];
    t->batch[i] =
        widened(t, s, source_elements(s, b->batch), (const char *)base + (s->offset - lowest));
  }
  ampc_data.close(batches);
  return status;
}

/* Writes the inputs. Call it before each body, because a body may overwrite its inputs. */
static ampc_status write_batch(Trial *t)
{
  const ampc_program *p = t->b.c->program;
  const ampc_block *b = &p->blocks[t->block];
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *s = &p->sources[b->first_source + i];
    status = ampc_write(t->b.rt, (ampc_ref){AMPC_INPUT, s->offset}, t->batch[i],
                        source_elements(s, b->batch) * ampc_size_of(s->dtype, true));
  }
  return status;
}

/* ---- slopes ---- */

/* Runs a body, which updates no weight, and returns its loss. */
static ampc_status run_body(Trial *t, double *out)
{
  const ampc_program *p = t->b.c->program;
  const ampc_block *b = &p->blocks[t->block];
  ampc_metric m;
  ampc_status status =
      ampc_write(t->b.rt, (ampc_ref){AMPC_STATE, 0}, t->state, p->space_bytes[AMPC_STATE]);
  if (!status) status = write_batch(t);
  if (!status) status = ampc_run_step(t->b.rt, t->block, ampc_variant_at(b, b->batch, 1));
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics && !status; i++) {
    if (!p->metrics[i].is_loss) continue;
    status = ampc_get_metric(t->b.rt, i, &m);
    *out = m.sum / m.count;
  }
  return status;
}

/* Computes the loss after the parameter has moved `side` steps along the direction. */
static ampc_status loss_beside(Trial *t, const ampc_param *q, const double *at,
                               const double *direction, double side, double *out)
{
  double *moved = arena_array(t->arena, double, (size_t)q->elements);
  for (int64_t i = 0; i < q->elements; i++) moved[i] = at[i] + side * STEP * direction[i];
  ampc_status status = ampc_write_param(t->b.rt, q, AMPC_MASTER, moved);
  return status ? status : run_body(t, out);
}

typedef struct Slope { /* slopes of the loss along a direction */
  double differences, gradient, error;
} Slope;

static ampc_status find_slope(Trial *t, const ampc_param *q, const double *gradient, uint64_t *seed,
                              Slope *out)
{
  size_t n = (size_t)q->elements;
  double *at = arena_array(t->arena, double, n), *direction = arena_array(t->arena, double, n);
  double size = 0, up = 0, down = 0, half_gap;
  ampc_status status = ampc_read_param(t->b.rt, q, AMPC_MASTER, at);
  out->gradient = 0;
  for (size_t i = 0; i < n; i++) {
    direction[i] = 2 * number_uniform(seed) - 1;
    out->gradient += BODIES * gradient[i] * direction[i];
    size += fabs(BODIES * gradient[i] * direction[i]);
  }
  if (!status) status = loss_beside(t, q, at, direction, 1, &up);
  if (!status) status = loss_beside(t, q, at, direction, -1, &down);
  if (!status) status = ampc_write_param(t->b.rt, q, AMPC_MASTER, at);
  out->differences = (up - down) / (2 * STEP);
  half_gap = fabs(up - t->loss - (t->loss - down)) / (2 * STEP);
  out->error = number_worse(0, fabs(out->gradient - out->differences) - half_gap) /
               (BOUND * size + 1e-14 * fabs(up) / STEP);
  return status;
}

static ampc_status check_param(Trial *t, const ampc_param *q, const double *gradient, uint64_t seed)
{
  Slope s = {.error = INFINITY};
  ampc_status status = AMPC_OK;
  for (int i = 0; i < DIRECTIONS && !status && !(s.error <= 1); i++)
    status = find_slope(t, q, gradient, &seed, &s);
  if (status) return status;
  test_report(
      t->run, OP_minimize, PROOF_backward, AMPC_F32, s.error,
      arena_printf(
          t->arena,
          "%s: along a random direction of %s the loss rises by %.9g; its gradient predicts %.9g",
          t->path, q->path, s.differences, s.gradient));
  return AMPC_OK;
}

/* Checks every parameter. Reads all gradients before it moves a parameter. */
static ampc_status check_params(Trial *t)
{
  const ampc_program *p = t->b.c->program;
  double **gradient = arena_array(t->arena, double *, p->n_params);
  int64_t bytes = p->space_bytes[AMPC_STATE];
  t->state = arena_alloc(t->arena, (size_t)bytes, 64);
  ampc_status status = ampc_set_group(t->b.rt, true, false);
  if (!status) status = ampc_read(t->b.rt, (ampc_ref){AMPC_STATE, 0}, t->state, bytes);
  if (!status) status = run_body(t, &t->loss);
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    gradient[i] = arena_array(t->arena, double, (size_t)p->params[i].elements);
    if (p->params[i].optimizer >= 0)
      status = ampc_read_param(t->b.rt, &p->params[i], AMPC_GRAD, gradient[i]);
  }
  for (uint32_t i = 0; i < p->n_params && !status; i++)
    if (p->params[i].optimizer >= 0) status = check_param(t, &p->params[i], gradient[i], i + 1);
  return status;
}

/* ---- jobs ---- */

static ampc_status check_job(Trial *t)
{
  Options plain = test_job_options(t->arena, t->run, t->path, "f32", NULL);
  Compile *c = compile_create(&plain);
  ampc_status status =
      compile_job(c) ? find_block(t, c->program) : refused(t, "it does not compile");
  Options wide = plain;
  if (!status) wide = test_job_options(t->arena, t->run, t->path, "f32", c->program);
  wide.real64 = true;
  t->b = (Built){.run = t->run, .c = compile_create(&wide), .real64 = true};
  if (!status && !compile_job(t->b.c)) status = refused(t, "it does not compile in doubles");
  if (!status) status = built_start(&t->b);
  if (!status) status = ampc_init_params(t->b.rt, 1);
  if (!status) status = read_batch(t, c->program);
  if (!status) status = check_params(t);
  built_close(&t->b);
  compile_destroy(c);
  return status;
}

ampc_status suite_differences(Arena *a, TestRun *run)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < run->n_jobs && !status; i++) {
    const char *path = run->jobs[i], *slash = strrchr(path, '/');
    Trial t = {.arena = a, .run = run, .path = path};
    t.folder = slash ? arena_strndup(a, path, (size_t)(slash - path + 1)) : ".";
    status = check_job(&t);
  }
  return status;
}
