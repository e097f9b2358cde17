/* Suite: indices that a job computes. The runtime records the first element that is not the index
 * of a row, with its position and value, and keeps that record. It records nothing if all indices
 * are valid. */
#include "graph.h"
#include <string.h>

enum { N = 4, L = 35, LOOKUPS = N * L };

static const char job[] =
    "data numbers() { return synthetic(64, [35], dtype=i64, low=0, high=99) }\n"
    "module Net { w = Parameter([8, 3]); def forward(ids) { return embedding(ids - 3, w) } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.1)\n"
    "train ids in numbers() with batch=4 { minimize net(ids).mean() with opt }\n";

static ampc_status run_body(Built *b, const int64_t *ids, ampc_outside *out)
{
  ampc_state state;
  ampc_status status = built_put(b, 0, ids, LOOKUPS * sizeof *ids);
  if (!status) status = built_step(b);
  if (!status) status = ampc_get_state(b->rt, &state);
  if (!status) *out = state.outside;
  return status;
}

/* Runs bodies. Ids from 3 to 10 are valid: the job subtracts 3, and the table has 8 rows. */
static ampc_status run_bodies(Arena *a, TestRun *run, Built *b)
{
  (void)a;
  int64_t ids[LOOKUPS];
  ampc_outside none, first, later;
  for (int i = 0; i < LOOKUPS; i++) ids[i] = 3 + i % 8;
  ampc_status status = run_body(b, ids, &none);
  ids[LOOKUPS - 1] = 11;
  ids[37] = 2;
  ids[41] = 99;
  if (!status) status = run_body(b, ids, &first);
  ids[5] = 11;
  if (!status) status = run_body(b, ids, &later);
  if (status) return status;
  bool good = first.check == 1 && first.at == 37 && first.value == -1 && first.step == 2;
  test_check(run, OP_check_index, AMPC_I64, !none.check, "valid indices leave no record");
  test_check(run, OP_check_index, AMPC_I64, good, "the first index that is no row is recorded");
  test_check(run, OP_check_index, AMPC_I64, memcmp(&first, &later, sizeof first) == 0,
             "the record stays");
  return AMPC_OK;
}

ampc_status suite_lookups(Arena *a, TestRun *run)
{
  if (!test_wanted(run, OP_check_index)) return AMPC_OK;
  return built_job_twice(
      a, run, &(BuiltJob){.name = "the job of lookups", .text = job, .test = run_bodies});
}
