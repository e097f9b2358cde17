/* Compares what two devices computed in a job. The devices compute in the same types, but sum in
 * different orders.
 *
 * Note [bounds of jobs]
 * A sum near the middle between two 16-bit numbers is rounded up in one order and down in another.
 * So a few elements of the first layer differ by one unit in the last place. In the next layers
 * these differences change many more roundings: after a few layers the roundings of two runs have
 * nothing in common. Then the gradients of the runs differ from each other about as much as each of
 * them differs from that in f32. The cpu has both types, so this distance is known for each
 * parameter and each job, whatever the depth: it is the unit, `noise`.
 * Of two independent errors of length `noise` the difference has the length sqrt(2) * noise, and
 * more only if a parameter has few elements. The bound is 4 * noise.
 * The noise has no preferred direction, so it hardly changes the length of a gradient: by
 * noise / sqrt(m), if it consists of m independent numbers. A gradient of n elements is a sum of
 * products of two vectors, so m is at least about sqrt(n). The bound is 2 * noise / n^(1/4). It
 * detects a wrong factor where the difference cannot.
 * Two runs in f32 differ, too: if a value is so near 0 that relu passes it in one order only, an
 * element of the gradient is missing. One of 2^14 elements of a layer is 2^-7 of its length. This
 * is the least noise. A gradient that is 0 without rounding, as that of a bias before a batch norm,
 * consists of the errors of sums that are as large as those of other parameters. So the noise is
 * at least 2^-20 of the length of the whole gradient. */
#include "jobs.h"
#include <float.h>
#include <math.h>
#include <string.h>

double job_norm(const float *x, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sqrt(sum);
}

double job_distance(const float *x, const float *y, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += pow((double)x[i] - (double)y[i], 2);
  return sqrt(sum);
}

/* Compares the loss of a step, from 0. `steps`: "own" or "plain". The loss is a mean of samples, so
 * its error is below that of one rounding of the type; f32 has 2^-20, because a loss is a sum of
 * many numbers. A plain step lowers the loss by JOB_DROP. Noise in the gradient turns its
 * direction, so the loss changes by the square of the relative noise: a tenth of the step is
 * permitted. */
static void compare_loss(Arena *a, TestRun *run, const char *job, const JobResult *want, int step,
                         const char *steps, double got)
{
  const char *p = want->precision;
  double rounding = strcmp(p, "f32") == 0 ? 0x1p-20 : strcmp(p, "bf16") == 0 ? 0x1p-8 : 0x1p-11;
  double bound = (rounding + step * JOB_DROP / 10) * fabs(want->loss[step]);
  test_report(run, OP_minimize, PROOF_twin, AMPC_F32,
              fabs(got - want->loss[step]) / (bound + DBL_MIN),
              arena_printf(a, "%s, %s: loss %d of %s steps is %.7g, on the cpu %.7g", job, p,
                           step + 1, steps, got, want->loss[step]));
}

/* Compares the gradient and the first update of a parameter. `whole`: the length of the gradient of
 * all parameters. The update of most optimizers depends
 * on signs (Note [plain steps]), so only its length is compared; if the gradient is noise, not even
 * this. It is the difference of two weights, which are rounded. */
static void compare_param(Arena *a, TestRun *run, const char *job, uint32_t i, double whole,
                          const JobResult *got, const JobResult *want, const JobResult *wide)
{
  int64_t n = want->elements[i];
  const float *g = got->gradient[i], *h = want->gradient[i];
  double length = job_norm(h, n), change = fabs(job_norm(g, n) - length);
  if (!isfinite(length)) {
    test_report(run, OP_minimize, PROOF_twin, AMPC_F32, isfinite(job_norm(g, n)) ? INFINITY : 0,
                arena_printf(a, "%s, %s: the gradient of %s overflows on the cpu", job,
                             want->precision, want->path[i]));
    return;
  }
  double difference = job_distance(g, h, n), noise = job_distance(h, wide->gradient[i], n);
  noise = fmax(noise, fmax(0x1p-7 * length, 0x1p-20 * whole)) + DBL_MIN;
  double share = 2 / pow((double)n, 0.25); /* of the noise that changes a length */
  test_report(run, OP_minimize, PROOF_twin, AMPC_F32,
              number_worse(difference / (4 * noise), change / (share * noise)),
              arena_printf(a, "%s, %s: gradient of %s: length %.6g, difference %.3g, noise %.3g",
                           job, want->precision, want->path[i], length, difference, noise));
  if (4 * noise > length) return;
  double moved = want->moved[i], bound = share * (noise / length * moved + want->blur[i]);
  test_report(run, OP_minimize, PROOF_twin, AMPC_F32,
              fabs(got->moved[i] - moved) / (bound + DBL_MIN),
              arena_printf(a, "%s, %s: the first update moves %s by %.7g, on the cpu by %.7g", job,
                           want->precision, want->path[i], got->moved[i], moved));
}

void job_compare(Arena *a, TestRun *run, const char *job, const JobResult *got,
                 const JobResult *want, const JobResult *wide)
{
  double square = 0;
  compare_loss(a, run, job, want, 0, "own", got->own_loss);
  for (int i = 0; i < JOB_STEPS; i++) compare_loss(a, run, job, want, i, "plain", got->loss[i]);
  for (uint32_t i = 0; i < want->n_params; i++) {
    double length = want->gradient[i] ? job_norm(want->gradient[i], want->elements[i]) : 0;
    if (isfinite(length)) square += length * length;
  }
  for (uint32_t i = 0; i < want->n_params; i++)
    if (want->gradient[i]) compare_param(a, run, job, i, sqrt(square), got, want, wide);
}
