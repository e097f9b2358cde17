/* Quantized weights: codes, scales and values of bitsandbytes (NF4) and of LLM.int8()'s formula,
 * and values that quantize to the same bytes again.
 *
 *   test_packed packed.safetensors */
#include "fixture.h"
#include "runtime/plan/types.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, COLUMNS = 80, N = ROWS * COLUMNS, MATRICES = 400 };

static const char text[] = "model net = Linear(80, 24, bias=false) { freeze(\"**\"); "
                           "store(%s, \"weight\") }\n"
                           "infer f(x: f32[2, 80]) { return net(x) }\n";

static void read_bytes(Job *job, const ampc_param *q, uint8_t *codes, float *scales)
{
  ampc_packed p = ampc_packed_of(q->packing, ROWS, COLUMNS);
  test_must(ampc_read(job->rt, (ampc_ref){AMPC_BUFFER, q->offset}, codes, p.codes), "codes");
  test_must(ampc_read(job->rt, (ampc_ref){AMPC_BUFFER, q->offset + p.scales}, scales,
                      N / p.block * (int64_t)sizeof *scales),
            "scales");
}

static void compare(const char *type, const char *what, const Tensor *want, int64_t i, double got)
{
  if (want->at[i] != got)
    test_fail("%s %s %lld: %.9g instead of %.9g", type, what, (long long)i, got, want->at[i]);
}

/* Writes matrices of many magnitudes, and writes what is read. */
static void write_again(Job *job, const ampc_param *q)
{
  float x[N], first[N], second[N], scales[N], again[N];
  uint8_t codes[N], same[N];
  for (int m = 0; m < MATRICES; m++) {
    for (int i = 0; i < N; i++)
      x[i] = ldexpf((float)rand() / (float)RAND_MAX - 0.5F, m % 250 - 140 + rand() % (1 + m % 9));
    test_must(ampc_write_param(job->rt, q, AMPC_BUFFER, x), "write");
    read_bytes(job, q, codes, scales);
    test_must(ampc_read_param(job->rt, q, AMPC_BUFFER, first), "read");
    test_must(ampc_write_param(job->rt, q, AMPC_BUFFER, first), "write again");
    read_bytes(job, q, same, again);
    test_must(ampc_read_param(job->rt, q, AMPC_BUFFER, second), "read again");
    ampc_packed p = ampc_packed_of(q->packing, ROWS, COLUMNS);
    if (memcmp(codes, same, (size_t)p.codes) != 0 ||
        memcmp(scales, again, (size_t)(N / p.block) * sizeof *scales) != 0 ||
        memcmp(first, second, sizeof first) != 0)
      test_fail("matrix %d changes when it is written again", m);
  }
  x[7] = NAN;
  if (ampc_write_param(job->rt, q, AMPC_BUFFER, x) != AMPC_BAD_FILE) test_fail("NaN is accepted");
  x[7] = INFINITY;
  if (ampc_write_param(job->rt, q, AMPC_BUFFER, x) != AMPC_BAD_FILE) test_fail("inf is accepted");
}

static void check(const Fixture *f, const char *type)
{
  char job_text[sizeof text + 8];
  snprintf(job_text, sizeof job_text, text, type);
  Job job = job_open("packed", job_text);
  const ampc_param *q = &job.program->params[0];
  const Tensor *codes = fixture_get(f, "%s.codes", type);
  const Tensor *scales = fixture_get(f, "%s.scales", type);
  const Tensor *values = fixture_get(f, "%s.values", type);
  uint8_t got[N];
  float scale[N];
  double value[N];
  job_write_param(&job, q, fixture_get(f, "w")->at);
  read_bytes(&job, q, got, scale);
  job_read_param(&job, q, AMPC_BUFFER, value);
  for (int64_t i = 0; i < codes->n; i++) compare(type, "code", codes, i, got[i]);
  for (int64_t i = 0; i < scales->n; i++) compare(type, "scale", scales, i, (double)scale[i]);
  for (int64_t i = 0; i < N; i++) compare(type, "value", values, i, value[i]);
  write_again(&job, q);
  printf("%s: %lld codes, %lld scales\n", type, (long long)codes->n, (long long)scales->n);
  job_close(&job);
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_packed packed.safetensors");
  Fixture *f = fixture_open(argv[1]);
  check(f, "nf4");
  check(f, "int8");
  fixture_close(f);
  return 0;
}
