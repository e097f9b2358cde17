/* Every layer and function of cases.def in f32, compared with PyTorch in f64: value, loss,
 * gradients.
 *
 *   test_layers ops.safetensors [CASE...]
 *   test_layers ops.safetensors --errors [CASE...]   and a line "ERRORS case value gradient" for
 * each case
 *
 * Each case becomes a job: its inputs are parameters, its loss is sum(output * g). After the first
 * step of SGD with momentum, the momentum buffer is the gradient; the test reads it there.
 *
 * Bound: |x - truth| <= 4e-6 |truth| + 1e-6 max |truth| of the tensor. The unit roundoff of f32 is
 * 6e-8. The first term allows for the few sequential roundings of each formula (measured: below
 * 1e-6), the second one for cancellation in sums of at most 60 terms. */
#include "ampc_metrics.h"
#include "fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Case {
  const char *name, *members, *output;
} Case;
static const Case cases[] = {
#define CASE(name, members, output, ...) {#name, members, output},
#include "cases.def"
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int failures;

static struct { /* the largest errors of one case, relative to the largest number of the tensor */
  double value, gradient;
} errors;

static const char *compare(const char *name, const char *what, const Tensor *truth,
                           const double *got)
{
  double most = 0, worst = 0;
  for (int64_t i = 0; i < truth->n; i++) most = fmax(most, fabs(truth->at[i]));
  for (int64_t i = 0; i < truth->n; i++) {
    double want = truth->at[i], error = fabs(got[i] - want);
    double relative = most > 0 ? error / most : error, *kept = &errors.value;
    if (strncmp(what, "gradient", 8) == 0) kept = &errors.gradient;
    *kept = fmax(*kept, relative);
    double used = error / (4e-6 * fabs(want) + 1e-6 * most + 1e-300);
    if (error == 0) used = 0;
    if (used <= worst) continue; /* false for a NaN */
    worst = used;
    if (used <= 1) continue;
    printf("  %s: %s[%lld] is %.9g, PyTorch in f64 has %.9g\n", name, what, (long long)i, got[i],
           want);
    failures++;
    return "FAILED";
  }
  return "ok";
}

static void add_dims(Text *text, const Tensor *t, uint32_t first)
{
  text_puts(text, "[");
  for (uint32_t i = first; i < t->rank; i++)
    text_printf(text, "%s%lld", i > first ? ", " : "", (long long)t->dim[i]);
  text_puts(text, "]");
}

/* Writes the job of a case: an infer block for the value and, if there is a gradient, a train block
 * with the loss sum(output * g). Both blocks get the targets. */
static void job_text(Text *text, const Case *k, const Tensor *g, const Tensor *t)
{
  const char *arg = t ? "t" : "";
  text_printf(text, "module M {\n  %s\n  def forward(%s) { return %s }\n}\nmodel net = M()\n",
              k->members, arg, k->output);
  if (t) {
    text_printf(text, "infer out(t: i64");
    add_dims(text, t, 0);
    text_puts(text, ") { return net(t) }\n");
  } else {
    text_puts(text, "infer out() { return net() }\n");
  }
  if (!g) return;
  text_puts(text, "optimizer opt = SGD(net, lr=0.0, momentum=0.9)\n");
  text_printf(text, "data d(split: str) { return synthetic(%lld, ", (long long)g->dim[0]);
  add_dims(text, g, 1);
  text_puts(text, ")");
  if (t)
    text_printf(text, ", synthetic(%lld, [], dtype=i64, low=0, high=10)", (long long)t->dim[0]);
  text_printf(text, " }\ntrain g%s in d(\"train\") with batch=%lld {\n", t ? ", t" : "",
              (long long)g->dim[0]);
  /* t + 0 hides the bounds of `synthetic`, because some labels are the ignored one */
  text_printf(text, "  minimize sum(net(%s) * g) with opt\n}\n", t ? "t + 0" : "");
}

static ampc_ref input_place(const Job *job, uint32_t block, uint32_t i)
{
  const ampc_block *b = &job->program->blocks[block];
  if (i >= b->n_sources) test_fail("block %s has too few sources", b->name);
  return (ampc_ref){AMPC_INPUT, job->program->sources[b->first_source + i].offset};
}

/* Sets inputs, weights and running statistics: all are parameters or buffers of the job. */
static void set_parameters(Job *job, const Fixture *f, const Case *k)
{
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    if (p->dtype == AMPC_I64) continue; /* counts batches, starting at 0 */
    const Tensor *t = fixture_get(f, "%s/%s", k->name, p->path);
    if (t->n != p->elements) test_fail("%s: %s has another size", k->name, p->path);
    job_write_param(job, p, t->at);
  }
  test_must(ampc_refresh_copies(job->rt), "copies");
}

/* Compares type, rank, shape, then the values. */
static void check_output(Job *job, const Fixture *f, const Case *k, const Tensor *t)
{
  uint32_t block = job_block(job, AMPC_INFER);
  if (t) job_write_integers(job, input_place(job, block, 0), t->at, t->n);
  job_run(job, block);
  const Tensor *truth = fixture_get(f, "%s/out", k->name);
  const ampc_output_desc *out = &job->program->outputs[0];
  if (job->program->n_outputs != 1 || out->dtype != truth->dtype || out->rank != truth->rank)
    test_fail("%s: the output has another type or rank", k->name);
  if (memcmp(out->dim, truth->dim, truth->rank * sizeof *out->dim))
    test_fail("%s: the output has another shape", k->name);
  double *got = test_alloc((size_t)truth->n * sizeof *got);
  if (out->dtype == AMPC_I64) {
    int64_t *integers = test_alloc((size_t)truth->n * sizeof *integers);
    test_must(ampc_read(job->rt, out->place, integers, truth->n * 8), "read");
    for (int64_t i = 0; i < truth->n; i++) got[i] = (double)integers[i];
    free(integers);
  } else {
    float *floats = test_alloc((size_t)truth->n * sizeof *floats);
    test_must(ampc_read(job->rt, out->place, floats, truth->n * 4), "read");
    for (int64_t i = 0; i < truth->n; i++) got[i] = (double)floats[i];
    free(floats);
  }
  printf("%-22s output %s", k->name, compare(k->name, "out", truth, got));
  free(got);
}

static void check_loss(Job *job, const Fixture *f, const Case *k, uint32_t block)
{
  const ampc_block *b = &job->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    if (!job->program->metrics[i].is_loss) continue;
    ampc_metric m;
    test_must(ampc_get_metric(job->rt, i, &m), "loss");
    /* sum(output * g) may cancel, so the bound is relative to the outputs */
    const Tensor *loss = fixture_get(f, "%s/loss", k->name),
                 *out = fixture_get(f, "%s/out", k->name);
    double most = fabs(loss->at[0]);
    for (int64_t j = 0; j < out->n; j++) most += fabs(out->at[j]);
    bool good = fabs((double)m.last - loss->at[0]) <= 4e-6 * most;
    printf(", loss %s", good ? "ok" : "FAILED");
    if (!good) {
      printf("  %s: loss is %.9g, PyTorch in f64 has %.9g\n", k->name, (double)m.last, loss->at[0]);
      failures++;
    }
    return;
  }
  test_fail("%s has no loss", k->name);
}

/* Compares running statistics after one step. */
static void check_buffer(Job *job, const Fixture *f, const Case *k, const ampc_param *p)
{
  char what[128];
  snprintf(what, sizeof what, "%s after the step", p->path);
  if (p->dtype == AMPC_I64) {
    int64_t count = 0;
    test_must(ampc_read(job->rt, (ampc_ref){AMPC_BUFFER, p->offset}, &count, sizeof count), "read");
    if (count != 1) test_fail("%s: %s is %lld", k->name, what, (long long)count);
    return;
  }
  double *got = test_alloc((size_t)p->elements * sizeof *got);
  job_read_param(job, p, AMPC_BUFFER, got);
  const Tensor *truth = fixture_get(f, "%s/after/%s", k->name, p->path);
  printf(", %s %s", p->path, compare(k->name, what, truth, got));
  free(got);
}

static void check_gradients(Job *job, const Fixture *f, const Case *k, const Tensor *g,
                            const Tensor *t)
{
  uint32_t block = job_block(job, AMPC_TRAIN);
  job_write_floats(job, input_place(job, block, 0), g->at, g->n);
  if (t) job_write_integers(job, input_place(job, block, 1), t->at, t->n);
  job_run(job, block);
  check_loss(job, f, k, block);
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    if (p->buffer) {
      check_buffer(job, f, k, p);
      continue;
    }
    const Tensor *truth = fixture_get(f, "%s/grad/%s", k->name, p->path);
    double *got = test_alloc((size_t)p->elements * sizeof *got); /* 0: no loss reaches it */
    if (p->optimizer >= 0) job_read_param(job, p, AMPC_MOMENT1, got);
    char what[128];
    snprintf(what, sizeof what, "gradient of %s", p->path);
    printf(", %s %s", p->path, compare(k->name, what, truth, got));
    free(got);
  }
}

static void print_errors(const Case *k, bool differentiated)
{
  printf("ERRORS %s %.0e ", k->name, errors.value);
  if (differentiated)
    printf("%.0e\n", errors.gradient);
  else
    printf("-\n");
}

static void run_case(const Fixture *f, const Case *k)
{
  memset(&errors, 0, sizeof errors);
  const Tensor *g = fixture_find(f, "%s/g", k->name), *t = fixture_find(f, "%s/t", k->name);
  Arena *arena = arena_create();
  Text text;
  text_init(&text, arena);
  job_text(&text, k, g, t);
  Job job = job_open(k->name, text.at);
  set_parameters(&job, f, k);
  check_output(&job, f, k, t);
  if (g) check_gradients(&job, f, k, g, t);
  printf("\n");
  fflush(stdout);
  job_close(&job);
  arena_destroy(arena);
}

/* True if `name` is in a list of words separated by spaces. */
static bool is_word(const char *words, const char *name)
{
  size_t n = strlen(name);
  for (const char *at = words; (at = strstr(at, name)); at += n) {
    bool begins = at == words || at[-1] == ' ', ends = at[n] == ' ' || !at[n];
    if (begins && ends) return true;
  }
  return false;
}

/* Checks that both lists have the same cases; a case that one list lacks would not be tested. */
static void check_list(const Fixture *f)
{
  char *names = strdup(fixture_metadata(f, "cases")), *save = NULL;
  for (uint32_t i = 0; i < N_CASES; i++)
    if (!is_word(names, cases[i].name))
      test_fail(
          "case %s of cases.def has no fixture: run tests/torch/make_fixtures.py, which needs "
          "python3-torch",
          cases[i].name);
  for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
    bool found = false;
    for (uint32_t i = 0; i < N_CASES; i++) found |= !strcmp(cases[i].name, name);
    if (!found)
      test_fail("the fixture has %s, which cases.def lacks: run tests/torch/make_fixtures.py, "
                "which drops it",
                name);
  }
  free(names);
}

int main(int argc, char **argv)
{
  if (argc < 2) test_fail("usage: test_layers ops.safetensors [CASE...]");
  Fixture *f = fixture_open(argv[1]);
  check_list(f);
  uint32_t ran = 0;
  bool shows = argc > 2 && !strcmp(argv[2], "--errors");
  for (uint32_t i = 0; i < N_CASES; i++) {
    bool wanted = argc == 2 + shows;
    for (int j = 2 + shows; j < argc; j++) wanted |= !strcmp(argv[j], cases[i].name);
    if (!wanted) continue;
    run_case(f, &cases[i]);
    if (shows) print_errors(&cases[i], fixture_find(f, "%s/g", cases[i].name));
    ran++;
  }
  fixture_close(f);
  printf("%u cases, %d failures\n", ran, failures);
  return failures || !ran;
}
