/* Suite: whole jobs, `amp selftest --device cuda job.amp ...`. The first train block runs on the
 * GPU and on the cpu, from equal weights and batches. Losses, the gradients of step 1 and the
 * lengths of the first updates must agree. jobs_compare.c has the bounds.
 *
 * Note [plain steps]
 * The losses of later steps are not those of the job's own optimizer. The first update of Adam is
 * about the sign of the gradient, so an element near 0, whose sign depends on the order of a sum,
 * changes by twice the learning rate. The losses of such steps differ between two orders on one
 * device as much as between two devices. Instead, the weights follow the gradient itself. */
#include "jobs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLIND_STEPS = 10 }; /* steps whose results are not read */

typedef struct Job {
  Arena *arena; /* of this job only: its gradients may take gigabytes */
  const char *path, *folder;
} Job;

/* ---- steps ---- */

/* Finds the first train block that has a loss. */
static ampc_status train_block_of(const ampc_program *p, uint32_t *out)
{
  for (*out = 0; *out < p->n_blocks; ++*out)
    if (p->blocks[*out].kind == AMPC_TRAIN && p->blocks[*out].n_metrics) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "%s has no train block", p->source);
}

/* Runs one step and reads its loss. If `loss` is NULL, the result is not read. */
static ampc_status one_step(ampc_runtime *rt, uint32_t block, ampc_batches *batches, double *loss)
{
  const ampc_block *b = &ampc_program_of(rt)->blocks[block];
  int64_t samples;
  ampc_metric m;
  ampc_status status = ampc_run_batch(rt, &ampc_data, batches, block, 0, &samples);
  if (status || !loss) return status;
  status = ampc_get_metric(rt, b->first_metric, &m);
  if (!status) *loss = (double)m.last;
  return status;
}

/* Runs steps without reading results. The host must only queue them and not wait for the GPU. */
static ampc_status blind_steps(Built *b, uint32_t block, ampc_batches *batches, JobResult *out)
{
  ampc_status status = AMPC_OK;
  int64_t before = ampc_waits(b->rt);
  for (int i = 0; i < BLIND_STEPS && !status; i++) status = one_step(b->rt, block, batches, NULL);
  out->waits = ampc_waits(b->rt) - before;
  return status ? status : ampc_wait(b->rt);
}

/* Reads the weights (MASTER) or gradients (GRAD) of all parameters with an optimizer. */
static ampc_status read_params(const Job *j, Built *b, ampc_space space, float ***out)
{
  const ampc_program *p = b->c->program;
  ampc_status status = AMPC_OK;
  *out = arena_array(j->arena, float *, p->n_params);
  for (uint32_t i = 0; i < p->n_params && !status; i++) {
    const ampc_param *q = &p->params[i];
    if (q->optimizer < 0) continue;
    (*out)[i] = arena_array(j->arena, float, (size_t)q->elements);
    status = ampc_read_param(b->rt, q, space, (*out)[i]);
  }
  return status;
}

/* Runs a step of the job as it is. *out_moved: whether it has changed a weight. */
static ampc_status own_step(const Job *j, Built *b, uint32_t block, ampc_batches *batches,
                            JobResult *out, bool *out_moved)
{
  const ampc_program *p = b->c->program;
  double epsilon = p->weights == AMPC_BF16 ? 0x1p-8 : 0x1p-24;
  float **before, **after;
  ampc_status status = read_params(j, b, AMPC_MASTER, &before);
  if (!status) status = one_step(b->rt, block, batches, out->moved ? NULL : &out->own_loss);
  if (!status) status = read_params(j, b, AMPC_MASTER, &after);
  if (status) return status;
  out->moved = arena_array(j->arena, double, p->n_params);
  out->blur = arena_array(j->arena, double, p->n_params);
  for (uint32_t i = 0; i < p->n_params; i++) {
    if (!before[i]) continue;
    out->moved[i] = job_distance(after[i], before[i], p->params[i].elements);
    out->blur[i] = epsilon * job_norm(before[i], p->params[i].elements);
    *out_moved |= out->moved[i] > 0;
  }
  return AMPC_OK;
}

/* Runs the job as it is until an update, then blind steps on a GPU. The learning rate of a schedule
 * with warm-up is 0 in the first step. */
static ampc_status own_steps(const Job *j, Built *b, uint32_t block, ampc_batches *batches,
                             JobResult *out)
{
  ampc_status status = AMPC_OK;
  bool moved = false;
  for (int i = 0; i < 2 && !moved && !status; i++)
    status = own_step(j, b, block, batches, out, &moved);
  if (!status && test_on_gpu(b->run)) status = blind_steps(b, block, batches, out);
  return status;
}

/* Reads the gradients, without the loss scale, of a body that is one of JOB_BODIES of its step. */
static ampc_status read_gradients(const Job *j, Built *b, float ***out)
{
  const ampc_program *p = b->c->program;
  ampc_state state;
  ampc_status status = ampc_get_state(b->rt, &state);
  if (!status) status = read_params(j, b, AMPC_GRAD, out);
  for (uint32_t i = 0; i < p->n_params && !status; i++)
    for (int64_t k = 0; (*out)[i] && k < p->params[i].elements; k++)
      (*out)[i][k] *= JOB_BODIES * state.inv_scale;
  return status;
}

/* Subtracts a multiple of the gradient from the weights. As with a loss scaler, an overflow moves
 * nothing. */
static ampc_status descend(const Job *j, Built *b, double loss, float **gradient)
{
  const ampc_program *p = b->c->program;
  double square = 0;
  float **w;
  ampc_status status = read_params(j, b, AMPC_MASTER, &w);
  for (uint32_t i = 0; i < p->n_params; i++)
    if (gradient[i]) square += pow(job_norm(gradient[i], p->params[i].elements), 2);
  bool usable = square > 0 && isfinite(square);
  for (uint32_t i = 0; i < p->n_params && usable && !status; i++) {
    if (!gradient[i]) continue;
    for (int64_t k = 0; k < p->params[i].elements; k++)
      w[i][k] -= (float)(JOB_DROP * fabs(loss) / square * (double)gradient[i][k]);
    status = ampc_write_param(b->rt, &p->params[i], AMPC_MASTER, w[i]);
  }
  return status ? status : ampc_refresh_copies(b->rt);
}

/* Runs bodies that leave their gradients in GRAD, because no step ends. */
static ampc_status plain_steps(const Job *j, Built *b, uint32_t block, ampc_batches *batches,
                               JobResult *out)
{
  ampc_status status = AMPC_OK;
  float **gradient;
  for (int i = 0; i < JOB_STEPS && !status; i++) {
    status = ampc_set_group(b->rt, true, false);
    if (!status) status = one_step(b->rt, block, batches, &out->loss[i]);
    if (i + 1 == JOB_STEPS) break;
    if (!status) status = read_gradients(j, b, &gradient);
    if (!status) status = descend(j, b, out->loss[i], gradient);
    if (i == 0) out->gradient = gradient;
  }
  return status;
}

/* ---- jobs ---- */

/* Gives schedules a length, as a run of 1000 steps does. */
static ampc_status set_lengths(const Job *j, Built *b)
{
  uint32_t n = b->c->program->n_blocks;
  int64_t *steps = arena_array(j->arena, int64_t, n);
  for (uint32_t i = 0; i < n; i++) steps[i] = 1000;
  return ampc_set_lengths(b->rt, steps);
}

typedef ampc_status Steps(const Job *j, Built *b, uint32_t block, ampc_batches *batches,
                          JobResult *out);

/* Runs steps of a compiled job. Seeds are fixed, so both devices have equal weights and batches. */
static ampc_status run_steps(const Job *j, Built *b, Steps *steps, JobResult *out)
{
  const ampc_program *p = b->c->program;
  ampc_batches *batches = NULL;
  uint32_t block;
  ampc_status status = train_block_of(p, &block);
  if (!status) status = built_start(b);
  if (!status) status = ampc_init_params(b->rt, b->run->seed);
  if (!status) status = set_lengths(j, b);
  if (!status) status = ampc_data.open(p, block, j->folder, b->run->seed, &batches);
  if (!status) status = steps(j, b, block, batches, out);
  if (batches) ampc_data.close(batches);
  return status;
}

/* Copies what the comparison needs to know of the program, which is freed before. */
static void describe(const Job *j, const ampc_program *p, JobResult *out)
{
  snprintf(out->precision, sizeof out->precision, "%s", p->precision);
  out->n_params = p->n_params;
  out->path = arena_array(j->arena, const char *, p->n_params);
  out->elements = arena_array(j->arena, int64_t, p->n_params);
  for (uint32_t i = 0; i < p->n_params; i++) {
    out->path[i] = arena_printf(j->arena, "%s", p->params[i].path);
    out->elements[i] = p->params[i].elements;
  }
}

/* Runs the job. If `precision` is NULL, it has its own, and also runs its own step. */
static ampc_status run_job(const Job *j, const TestRun *run, const char *precision, JobResult *out)
{
  Options plain = test_job_options(j->arena, run, j->path, precision, NULL);
  Built own = {.run = run, .c = compile_create(&plain)}, apart = {.run = run};
  ampc_status status =
      compile_job(own.c) ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "%s was refused", j->path);
  if (!status && !precision) status = run_steps(j, &own, own_steps, out);
  if (!status) {
    Options halves = test_job_options(j->arena, run, j->path, precision, own.c->program);
    apart.c = compile_create(&halves);
    status = compile_job(apart.c) ? run_steps(j, &apart, plain_steps, out)
                                  : ampc_fail(AMPC_BAD_FILE, "%s was refused", j->path);
  }
  if (!status) describe(j, apart.c->program, out);
  if (apart.c) built_close(&apart);
  built_close(&own);
  return status;
}

static ampc_status check_job(const Job *j, TestRun *run)
{
  TestRun cpu = test_on_cpu(run);
  JobResult got = {0}, want = {0}, wide;
  ampc_status status = run_job(j, run, NULL, &got);
  if (!status) status = run_job(j, &cpu, NULL, &want);
  wide = want;
  if (!status && strcmp(want.precision, "f32") != 0) status = run_job(j, &cpu, "f32", &wide);
  if (status) return status;
  test_report(run, OP_minimize, PROOF_twin, AMPC_F32, got.waits ? INFINITY : 0,
              arena_printf(j->arena, "%s: the host waited %lld times in %d steps", j->path,
                           (long long)got.waits, BLIND_STEPS));
  job_compare(j->arena, run, j->path, &got, &want, &wide);
  return AMPC_OK;
}

ampc_status suite_jobs(Arena *a, TestRun *run)
{
  ampc_status status = AMPC_OK;
  (void)a;
  for (uint32_t i = 0; i < run->n_jobs && !status && test_on_gpu(run); i++) {
    Arena *arena = arena_create();
    const char *path = run->jobs[i], *slash = strrchr(path, '/');
    Job j = {.arena = arena, .path = path};
    j.folder = slash ? arena_strndup(arena, path, (size_t)(slash - path + 1)) : ".";
    status = check_job(&j, run);
    arena_destroy(arena);
  }
  return status;
}
