/* Suite: after patterns of overflows, the loss scale is that of torch.amp.GradScaler, to the bit;
 * with hysteresis it follows the rule in docs/precision.md. A small job trains; a body overflows if
 * its batch contains an infinity. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "runtime/runtime.h"

enum { N = 4 };

typedef struct ScalerRow { /* the scaler's numbers for the patterns after this row */
  double init, growth, backoff;
  int64_t interval, hysteresis;
  double min, max;
} ScalerRow;

typedef struct Pattern {
  const ScalerRow *scaler; /* NULL except in rows that set the scaler */
  const char *steps;       /* one character for each step; x: it overflows */
  const char *changes;
  long long tracker; /* growth counter at the end */
} Pattern;

#define SCALER(init, growth, backoff, interval)                                                    \
  {.scaler = &(const ScalerRow){init, growth, backoff, interval, 1, 0x1p-126, 0x1p126}},
#define PATTERN(steps, changes, tracker) {NULL, steps, changes, tracker},
static const Pattern patterns[] = {
#include "scaler_patterns.def"
    /* hysteresis is reset where the scale is due to grow, not after a single good step */
    {.scaler = &(const ScalerRow){1024, 2, 0.5, 3, 2, 1, 65536}},
    {NULL, "x.x.x", "244000000 443800000", 0},
    {NULL, "x.x...x.x", "244000000 544800000 844000000", 0},
    {NULL, "xxxx", "144000000 243800000 343000000", 0},
    {.scaler = &(const ScalerRow){8, 4, 0.25, 2, 3, 4, 16}}, /* with a minimum and a maximum */
    {NULL, "xxxxx..xx", "240800000 641800000", 0},
    {NULL, "......xx..xxx", "141800000 c40800000", 0},
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

static const char job[] =
    "data numbers() { return synthetic(64, [4]) }\n"
    "module Net { w = Parameter([4]); def forward(x) { return sum(x * w) } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.0)\n"
    "precision f16\n"
    "train x in numbers() with batch=1 { minimize net(x) with opt }\n";

/* Sets the scaler's numbers. Kernels read them from the program: one compile serves all. */
static void set_scaler(Built *b, const ScalerRow *r)
{
  b->c->program->scaler = (ampc_scaler_desc){.on = true,
                                             .dynamic = true,
                                             .init = r->init,
                                             .growth = r->growth,
                                             .backoff = r->backoff,
                                             .min = r->min,
                                             .max = r->max,
                                             .interval = r->interval,
                                             .hysteresis = r->hysteresis};
}

static ampc_status run_step(Built *b, bool overflows, ampc_state *out)
{
  float x[N] = {0x1p-10f, 0, overflows ? INFINITY : 0, 0};
  ampc_status status = built_put(b, 0, x, sizeof x);
  if (!status) status = built_step(b);
  return status ? status : ampc_get_state(b->rt, out);
}

/* Returns the scale after a step: the listed change, or `before`. Moves *at past the change. */
static float changed(const char **at, size_t step, float before)
{
  char digit[2] = {**at, 0};
  float value;
  if (!**at || strtoul(digit, NULL, 16) != step) return before;
  uint32_t bits = (uint32_t)strtoul(*at + 1, (char **)at, 16);
  *at += **at == ' ';
  memcpy(&value, &bits, sizeof value);
  return value;
}

static ampc_status run_pattern(Arena *a, TestRun *run, Built *b, const Pattern *p)
{
  ampc_state state;
  ampc_status status = runtime_reset_state(b->rt, 1);
  if (!status) status = ampc_get_state(b->rt, &state);
  const char *at = p->changes;
  bool good = true;
  for (size_t i = 0; p->steps[i] && !status && good; i++) {
    float want = changed(&at, i, state.scale);
    long long skipped = state.skipped + (p->steps[i] == 'x');
    status = run_step(b, p->steps[i] == 'x', &state);
    good = state.scale == want && state.inv_scale == (float)(1 / (double)want) &&
           state.skipped == skipped;
    if (!status && !good)
      test_check(
          run, OP_scaler_update, AMPC_F32, false,
          arena_printf(a, "%s from %a: scale %a, skipped %lld after step %zu, expected %a, %lld",
                       p->steps, b->c->program->scaler.init, (double)state.scale, state.skipped, i,
                       (double)want, skipped));
  }
  long long growth = state.growth > 0 ? state.growth : 0;
  if (!status && good)
    test_check(run, OP_scaler_update, AMPC_F32, growth == p->tracker && !*at,
               arena_printf(a, "%s from %a: %lld steps without overflow, expected %lld", p->steps,
                            b->c->program->scaler.init, growth, p->tracker));
  return status;
}

ampc_status suite_scaler(Arena *a, TestRun *run)
{
  Built b = {0};
  if (!test_wanted(run, OP_scaler_update)) return AMPC_OK;
  ampc_status status =
      built_job(&b, run, 2, &(BuiltJob){.name = "the job of scalers", .text = job});
  for (int i = 0; i < N_PATTERNS && !status; i++) {
    if (patterns[i].scaler)
      set_scaler(&b, patterns[i].scaler);
    else
      status = run_pattern(a, run, &b, &patterns[i]);
  }
  built_close(&b);
  return status;
}
