/* Suite: whole jobs, `amp selftest --device cuda job.amp ...`. The first train block takes a few
 * steps on the GPU and on the cpu, from equal weights and batches. The losses must agree. */
#include "graph.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* few steps: rounding alone makes two trainings diverge; results of blind steps are not read */
enum { JOB_STEPS = 3, BLIND_STEPS = 10 };

typedef struct Losses {
  double at[JOB_STEPS];
  char precision[8];
  int64_t waits; /* waits for the GPU in blind steps */
} Losses;

/* Returns the largest permitted difference of two losses. The devices sum products in different
 * orders, which 16-bit roundings make visible, and each step starts from the weights of the last
 * one. `f32` is the cpu's loss of the same step in f32: its distance from `loss` shows how far
 * rounding alone moves this net. */
static double job_bound(const char *precision, double loss, double f32)
{
  if (strcmp(precision, "f32") == 0) return 1e-4 * fabs(loss);
  double least = strcmp(precision, "bf16") == 0 ? 1e-2 : 2e-3;
  return fmax(least * fabs(loss), fabs(loss - f32));
}

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
static ampc_status blind_steps(Built *b, uint32_t block, ampc_batches *batches, Losses *out)
{
  ampc_status status = AMPC_OK;
  int64_t before = ampc_waits(b->rt);
  for (int i = 0; i < BLIND_STEPS && !status; i++) status = one_step(b->rt, block, batches, NULL);
  out->waits = ampc_waits(b->rt) - before;
  return status ? status : ampc_wait(b->rt);
}

/* Runs a few steps. Seeds are fixed, so both devices have the same weights and the same batches. */
static ampc_status run_steps(Built *b, const char *data_dir, Losses *out)
{
  const ampc_program *p = b->c->program;
  ampc_batches *batches = NULL;
  uint32_t block;
  snprintf(out->precision, sizeof out->precision, "%s", p->precision);
  ampc_status status = train_block_of(p, &block);
  if (!status) status = built_start(b);
  if (!status) status = ampc_init_params(b->rt, 1);
  if (!status) status = ampc_data.open(p, block, data_dir, 1, &batches);
  for (int i = 0; i < JOB_STEPS && !status; i++)
    status = one_step(b->rt, block, batches, &out->at[i]);
  if (!status && test_on_gpu(b->run)) status = blind_steps(b, block, batches, out);
  if (batches) ampc_data.close(batches);
  return status;
}

/* Compiles and runs the job. If `precision` is NULL, it has the precision of its own text. */
static ampc_status run_job(Arena *a, const TestRun *run, const char *path, const char *precision,
                           Losses *out)
{
  Assignment set = {"precision", precision};
  const char *slash = strrchr(path, '/');
  const char *folder = slash ? arena_strndup(a, path, (size_t)(slash - path + 1)) : ".";
  Options options = test_options(run, 2);
  options.input = path;
  options.settings = &set;
  options.n_settings = precision != NULL;
  Built b = {.run = run, .c = compile_create(&options)};
  ampc_status status = compile_job(b.c) ? run_steps(&b, folder, out)
                                        : ampc_fail(AMPC_BAD_FILE, "%s was refused", path);
  built_close(&b);
  return status;
}

ampc_status suite_jobs(Arena *a, TestRun *run)
{
  TestRun cpu = test_on_cpu(run);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < run->n_jobs && !status && test_on_gpu(run); i++) {
    Losses got, want = {0}, wide;
    status = run_job(a, run, run->jobs[i], NULL, &got);
    if (!status) status = run_job(a, &cpu, run->jobs[i], NULL, &want);
    wide = want;
    if (!status && strcmp(want.precision, "f32") != 0)
      status = run_job(a, &cpu, run->jobs[i], "f32", &wide);
    if (!status)
      test_report(run, OP_minimize, PROOF_twin, AMPC_F32, got.waits ? INFINITY : 0,
                  arena_printf(a, "%s: the host waited %lld times in %d steps", run->jobs[i],
                               (long long)got.waits, BLIND_STEPS));
    for (int k = 0; k < JOB_STEPS && !status; k++) {
      double bound = job_bound(want.precision, want.at[k], wide.at[k]);
      double error = fabs(got.at[k] - want.at[k]) / bound;
      test_report(run, OP_minimize, PROOF_twin, AMPC_F32, error,
                  arena_printf(a, "%s, %s: loss %d is %.7g, on the cpu %.7g", run->jobs[i],
                               want.precision, k + 1, got.at[k], want.at[k]));
    }
  }
  return status;
}
