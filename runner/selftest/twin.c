/* Suite: the results of a GPU compared with those of the cpu from the same kernel text. Elementwise
 * kernels and moves must produce the same bits: they use ampc's own math functions, and no
 * multiply-add is contracted. Row sums and products are added in another order, so they may differ
 * by twice the bound. */
#include "graph.h"
#include <math.h>

static bool must_be_equal(OpKind op)
{
  OpTemplate t = op_row(op)->tmpl;
  return t == TMPL_map || t == TMPL_move || t == TMPL_alias;
}

/* Returns the error in units of the bound. Two sums on different sides of a rounding boundary of a
 * 16-bit type become neighbours, so one ulp of that type is added to the bound. */
static double apart(DType d, double ulps, double gpu, double cpu, double scale)
{
  if (number_same(gpu, cpu)) return 0;
  if (!dtype_is_float(d) || isnan(gpu) || isnan(cpu)) return INFINITY;
  double unit = ulps * number_ulp(AMPC_F32, scale);
  if (d != AMPC_F32) unit += number_ulp(d, cpu);
  double error = fabs(gpu - cpu) / unit;
  return isnan(error) ? INFINITY : error;
}

static double twin_error(const Case *gpu, const Case *cpu)
{
  if (gpu->got.dtype != cpu->got.dtype || gpu->got.n != cpu->got.n) return -1;
  if (must_be_equal(gpu->test->op)) return tensor_same_bits(&gpu->got, &cpu->got) ? 0 : INFINITY;
  double worst = 0, ulps = 2 * case_ulps(gpu);
  for (int64_t i = 0; i < gpu->got.n; i++)
    worst = fmax(worst, apart(gpu->got.dtype, ulps, gpu->got.at[i], cpu->got.at[i], gpu->scale[i]));
  return worst;
}

ampc_status suite_twin(Arena *a, TestRun *run)
{
  CaseList gpu = {0}, cpu = {0};
  if (!test_on_gpu(run) || run->edit) return AMPC_OK;
  cases_make(a, run, &gpu);
  if (gpu.n == 0) return AMPC_OK;
  for (uint32_t i = 0; i < gpu.n; i++) vec_push(a, &cpu, gpu.at[i]);
  TestRun other = test_on_cpu(run);
  ampc_status status = cases_run(a, run, false, 2, &gpu);
  if (!status) status = cases_run(a, &other, false, 2, &cpu);
  for (uint32_t i = 0; !status && i < gpu.n; i++) {
    const Case *t = &gpu.at[i];
    test_report(
        run, t->test->op, PROOF_twin, t->type, twin_error(t, &cpu.at[i]),
        arena_printf(a, "%s %s: %s against cpu", ampc_dtype_name(t->type), t->words, run->target));
  }
  return status;
}
