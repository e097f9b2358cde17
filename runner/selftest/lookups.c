/* Suite: indices that a job computes. The first element that names no row is noted, with its place
 * and what it is, and stays noted; what fits is not. */
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
  ampc_status status = ampc_write(b->rt, (ampc_ref){AMPC_INPUT, b->c->program->sources[0].offset},
                                  ids, LOOKUPS * sizeof *ids);
  if (!status) status = built_step(b);
  if (!status) status = ampc_get_state(b->rt, &state);
  if (!status) *out = state.outside;
  return status;
}

/* 3 to 10 name a row. */
static ampc_status run_bodies(TestRun *run, Built *b)
{
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
  test_check(run, OP_check_index, AMPC_I64, !none.check, "an index that fits is noted");
  test_check(run, OP_check_index, AMPC_I64, good, "the first element that names no row");
  test_check(run, OP_check_index, AMPC_I64, memcmp(&first, &later, sizeof first) == 0,
             "what is noted stays");
  return AMPC_OK;
}

/* Fused and not. */
ampc_status suite_lookups(Arena *a, TestRun *run)
{
  (void)a;
  ampc_status status = AMPC_OK;
  if (!test_wanted(run, OP_check_index)) return status;
  for (int optimize = 0; !status && optimize <= 2; optimize += 2) {
    Options options = test_options(run, optimize);
    Built b = {.run = run, .c = compile_create(&options)};
    if (!compile_text(b.c, "selftest.amp", job, strlen(job)))
      status = ampc_fail(AMPC_RUN_FAILED, "the job of lookups was refused");
    if (!status) status = built_start(&b);
    if (!status) status = ampc_init_params(b.rt, 3);
    if (!status) status = run_bodies(run, &b);
    built_close(&b);
  }
  return status;
}
