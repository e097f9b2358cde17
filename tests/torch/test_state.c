/* Names, shapes and default initialization of parameters, compared with PyTorch's state_dict.
 *
 *   test_state state.safetensors */
#include "fixture.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = /* as in make_state of make_fixtures.py */
    "model net = Sequential(Flatten(), Linear(784, 256), ReLU(), LayerNorm(256), Dropout(0.1),\n"
    "                       Sequential(Linear(256, 64, bias=false), GELU()), Linear(64, 10))\n"
    "infer out(x: f32[3, 28, 28]) { return net(x) }\n";

static void check_init(const ampc_param *p, json_t *init)
{
  const char *kind = json_string_value(json_array_get(init, 0));
  double a = json_number_value(json_array_get(init, 1)),
         b = json_number_value(json_array_get(init, 2));
  bool uniform = !strcmp(kind, "uniform");
  if (p->init.kind != (uniform ? AMPC_INIT_UNIFORM : AMPC_INIT_CONSTANT))
    test_fail("%s: PyTorch's initialisation is %s", p->path, kind);
  if (fabs(p->init.a - a) > 1e-12 || (uniform && fabs(p->init.b - b) > 1e-12))
    test_fail("%s: initialised with %.17g, %.17g instead of %.17g, %.17g", p->path, p->init.a,
              p->init.b, a, b);
}

/* Checks that the values that ampc_init_params draws are inside the bounds and come near both. */
static void check_values(Job *job, const ampc_param *p)
{
  double *w = test_alloc((size_t)p->elements * sizeof *w);
  job_read_param(job, p, AMPC_MASTER, w);
  double low = w[0], high = w[0];
  for (int64_t i = 1; i < p->elements; i++) low = fmin(low, w[i]), high = fmax(high, w[i]);
  free(w);
  bool uniform = p->init.kind == AMPC_INIT_UNIFORM;
  double a = p->init.a, b = uniform ? p->init.b : a, slack = 1e-6 * (b - a);
  if (low < a - slack || high > b + slack)
    test_fail("%s: values in [%g, %g], outside [%g, %g]", p->path, low, high, a, b);
  if (uniform && p->elements > 1000 && (low > 0.98 * a || high < 0.98 * b))
    test_fail("%s: values in [%g, %g] do not fill [%g, %g]", p->path, low, high, a, b);
}

static void check_parameter(Job *job, uint32_t i, json_t *row)
{
  const ampc_param *p = &job->program->params[i];
  const char *name = json_string_value(json_object_get(row, "name"));
  json_t *shape = json_object_get(row, "shape");
  if (strcmp(p->path, name)) test_fail("parameter %u is %s, in PyTorch %s", i, p->path, name);
  if (p->rank != json_array_size(shape)) test_fail("%s has rank %u", p->path, p->rank);
  for (uint32_t k = 0; k < p->rank; k++)
    if (p->dim[k] != json_integer_value(json_array_get(shape, k)))
      test_fail("%s: another shape", p->path);
  check_init(p, json_object_get(row, "init"));
  check_values(job, p);
  printf("%s ok\n", p->path);
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_state state.safetensors");
  Fixture *f = fixture_open(argv[1]);
  json_t *rows = json_loads(fixture_metadata(f, "state"), 0, NULL);
  Job job = job_open("state.amp", text);
  test_must(ampc_init_params(job.rt, 1), "init");
  if (job.program->n_params != json_array_size(rows))
    test_fail("%u parameters", job.program->n_params);
  for (uint32_t i = 0; i < job.program->n_params; i++)
    check_parameter(&job, i, json_array_get(rows, i));
  json_decref(rows);
  fixture_close(f);
  job_close(&job);
  return 0;
}
