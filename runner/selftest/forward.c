/* Suite: every op forward, compared with its reference. The result must have the same bits with and
 * without fusion. A run in doubles finds formulas that are only approximately right. */
#include "graph.h"
#include <string.h>

/* Returns the text of a failure: the row as the family's file has it, and the worst element. */
static const char *case_text(Arena *a, const Case *t, const char *how, double error, int64_t at)
{
  const char *name = ampc_dtype_name(t->type);
  if (error < 0)
    return arena_printf(a, "%s %s%s: %s of rank %u, %lld elements; expected %s, %u, %lld", name,
                        t->words, how, ampc_dtype_name(t->got.dtype), t->got.rank,
                        (long long)t->got.n, ampc_dtype_name(t->want.dtype), t->want.rank,
                        (long long)t->want.n);
  return arena_printf(a, "%s %s%s: element %lld is %.9g, expected %.9g", name, t->words, how,
                      (long long)at, t->got.at[at], t->want.at[at]);
}

static void compare_all(Arena *a, TestRun *run, const CaseList *cases, bool real64)
{
  for (uint32_t i = 0; i < cases->n; i++) {
    const Case *t = &cases->at[i];
    int64_t at;
    double error = case_error(t, real64, &at);
    const char *text = case_text(a, t, real64 ? " (real64)" : "", error, at);
    test_report(run, t->test->op, PROOF_forward, t->type, error, text);
  }
}

/* Checks that -O0 computes the same bits. */
static ampc_status compare_unfused(Arena *a, TestRun *run, const CaseList *cases)
{
  CaseList again = {0};
  for (uint32_t i = 0; i < cases->n; i++) vec_push(a, &again, cases->at[i]);
  ampc_status status = cases_run(a, run, false, 0, &again);
  for (uint32_t i = 0; !status && i < cases->n; i++) {
    const Case *t = &cases->at[i];
    if (tensor_same_bits(&t->got, &again.at[i].got)) continue;
    test_check(run, t->test->op, t->type, false,
               arena_printf(a, "%s: -O0 and -O2 differ", t->words));
  }
  return status;
}

/* Compares results in doubles, only of cases without 16-bit types: real64 widens only f32. */
static ampc_status compare_doubles(Arena *a, TestRun *run, const CaseList *cases)
{
  CaseList wide = {0};
  for (uint32_t i = 0; i < cases->n; i++) {
    const Case *t = &cases->at[i];
    bool narrow = ampc_is_narrow(t->want.dtype) || t->tf32;
    for (uint32_t k = 0; k < t->n_in; k++) narrow |= ampc_is_narrow(t->in[k].dtype);
    if (!narrow && t->type == AMPC_F32) vec_push(a, &wide, *t);
  }
  if (wide.n == 0) return AMPC_OK;
  ampc_status status = cases_run(a, run, true, 2, &wide);
  if (status == AMPC_OK) compare_all(a, run, &wide, true);
  return status;
}

ampc_status suite_forward(Arena *a, TestRun *run)
{
  CaseList cases = {0};
  cases_make(a, run, &cases);
  if (cases.n == 0) return AMPC_OK;
  ampc_status status = cases_run(a, run, false, 2, &cases);
  if (status) return status;
  compare_all(a, run, &cases, false);
  /* further runs would not find a mutation that this one has missed */
  if (run->edit || run->brief) return AMPC_OK;
  status = compare_unfused(a, run, &cases);
  return status ? status : compare_doubles(a, run, &cases);
}
