/* See merge.h. The job says which layers have adapters, and where its `load` finds their weights.
 * Its kernels are not compiled. */
#include "merge.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/bytes.h"
#include "compiler/driver.h"
#include "runner/job/options.h"
#include "runtime/base/convert.h"
#include "runtime/state/safetensors.h"

typedef struct Merge {
  ampc_program program;
  ampc_runtime *rt;
  json_t *config; /* adapter_config.json */
  ampc_dtype type;
  const char *out;
  uint32_t merged;
} Merge;

static void tell(void *to, bool warning, const char *line)
{
  if (warning || !*(const bool *)to) fprintf(stderr, "%s%s\n", warning ? "warning: " : "", line);
}

static ampc_dtype type_of(const Merge *m, const ampc_param *q)
{
  return m->type != AMPC_DTYPE_COUNT && ampc_is_float(q->dtype) ? m->type : q->dtype;
}

/* ---- values ---- */

/* Reads a parameter as doubles. The caller frees them; NULL after a failure. */
static double *read_values(const Merge *m, const ampc_param *q)
{
  void *raw = malloc((size_t)(q->elements * ampc_size_of(q->dtype, false)) + 1);
  double *values = malloc((size_t)q->elements * sizeof *values + 1);
  ampc_status status = raw && values
                           ? ampc_read_param(m->rt, q, q->buffer ? AMPC_BUFFER : AMPC_MASTER, raw)
                           : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", q->path);
  for (int64_t i = 0; i < q->elements && !status; i++)
    values[i] = number_load(q->dtype, false, raw, i);
  free(raw);
  if (!status) return values;
  free(values);
  return NULL;
}

/* Finds a matrix of the adapter of the layer whose weight is q. */
static const ampc_param *find_matrix(const Merge *m, const ampc_param *q, const char *name)
{
  static const char weight[] = "weight";
  size_t n = strlen(q->path);
  if (n < sizeof weight || strcmp(q->path + n - (sizeof weight - 1), weight) != 0) return NULL;
  n -= sizeof weight - 1;
  for (uint32_t i = 0; i < m->program.n_params; i++) {
    const ampc_param *p = &m->program.params[i];
    if (p->adapts && strncmp(p->path, q->path, n) == 0 && strcmp(p->path + n, name) == 0) return p;
  }
  return NULL;
}

/* The number that `pattern` of the config has for the layer, else its `general` one. */
static double number_of(const Merge *m, const char *pattern, const char *general, const char *path,
                        size_t n)
{
  const json_t *own = json_object_getn(json_object_get(m->config, pattern), path, n);
  return json_number_value(own ? own : json_object_get(m->config, general));
}

/* Adds scaling * B A, with the scaling of PEFT: alpha / r, or alpha / sqrt(r). */
static ampc_status add_product(const Merge *m, const ampc_param *q, const ampc_param *a,
                               const ampc_param *b, double *values)
{
  size_t n = strlen(q->path) - strlen(".weight");
  int64_t rows = q->dim[0], columns = q->dim[1], rank = a->dim[0];
  double r = number_of(m, "rank_pattern", "r", q->path, n);
  bool root = json_is_true(json_object_get(m->config, "use_rslora"));
  double scaling = number_of(m, "alpha_pattern", "lora_alpha", q->path, n) / (root ? sqrt(r) : r);
  double *down = read_values(m, a), *up = down ? read_values(m, b) : NULL;
  for (int64_t i = 0; i < rows && up; i++)
    for (int64_t k = 0; k < rank; k++) {
      double factor = scaling * up[i * rank + k];
      for (int64_t j = 0; j < columns; j++)
        values[i * columns + j] += factor * down[k * columns + j];
    }
  ampc_status status = up ? AMPC_OK : AMPC_RUN_FAILED;
  free(down);
  free(up);
  return status;
}

static bool is_tied(const Merge *m, const ampc_param *q)
{
  for (uint32_t i = 0; i < m->program.n_aliases; i++)
    if (&m->program.params[m->program.aliases[i].param] == q) return true;
  return false;
}

static ampc_status write_param(Merge *m, const ampc_param *q, TensorWriter *to)
{
  const ampc_param *a = find_matrix(m, q, "lora_A.weight"), *b = find_matrix(m, q, "lora_B.weight");
  ampc_dtype type = type_of(m, q);
  double *values = read_values(m, q);
  char *made = malloc((size_t)(q->elements * ampc_size_of(type, false)) + 1);
  ampc_status status = values && made ? AMPC_OK : AMPC_RUN_FAILED;
  if (!status && a && b && is_tied(m, q))
    status =
        ampc_fail(AMPC_BAD_USAGE,
                  "%s: the weight is tied to another layer, which its adapter must not change; "
                  "keep the adapter in a file of its own",
                  q->path);
  if (!status && a && b) {
    status = add_product(m, q, a, b, values);
    m->merged++;
  }
  for (int64_t i = 0; i < q->elements && !status; i++)
    number_store(type, false, made, i, values[i]);
  if (!status) status = tensor_write(to, made, q->elements * ampc_size_of(type, false));
  free(values);
  free(made);
  return status;
}

/* ---- the file ---- */

static const ampc_param *param_at(const Merge *m, uint32_t i, const char **name)
{
  const ampc_program *p = &m->program;
  if (i < p->n_params) {
    *name = p->params[i].path;
    return &p->params[i];
  }
  *name = p->aliases[i - p->n_params].path;
  return &p->params[p->aliases[i - p->n_params].param];
}

/* Refuses adapters of layers that have no weight of their own, such as those of weight_norm. */
static ampc_status check_layers(const Merge *m)
{
  static const char ending[] = ".lora_A.weight";
  for (uint32_t i = 0; i < m->program.n_params; i++) {
    const ampc_param *q = &m->program.params[i];
    size_t n = strlen(q->path), size = sizeof ending - 1;
    bool found = !q->adapts || n < size || strcmp(q->path + n - size, ending) != 0;
    for (uint32_t k = 0; k < m->program.n_params && !found; k++)
      found = find_matrix(m, &m->program.params[k], "lora_A.weight") == q;
    if (!found)
      return ampc_fail(AMPC_BAD_USAGE,
                       "%.*s: the layer computes its weight, so nothing can be added to it",
                       (int)(n - size), q->path);
  }
  return AMPC_OK;
}

static ampc_status write_all(Merge *m)
{
  TensorFile f = {.fd = -1};
  TensorWriter to;
  const char *name;
  uint32_t n = m->program.n_params + m->program.n_aliases;
  bool good = tensor_file_set(&f, "format", "pt");
  for (uint32_t i = 0; i < n && good; i++) {
    const ampc_param *q = param_at(m, i, &name);
    TensorType t = {type_of(m, q), false, q->rank, q->dim};
    int64_t begin;
    if (!q->adapts) good = tensor_file_add(&f, name, &t, &begin);
  }
  ampc_status status = good ? tensor_write_begin(&to, &f, m->out, &file_weights)
                            : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->out);
  for (uint32_t i = 0; i < n && !status; i++) {
    const ampc_param *q = param_at(m, i, &name);
    if (!q->adapts) status = write_param(m, q, &to);
    if (status) tensor_write_abandon(&to);
  }
  if (!status) status = tensor_write_end(&to);
  tensor_file_free(&f);
  return status;
}

ampc_status merge_adapters(Compile *c, const char *in, const char *out, ampc_dtype type, bool quiet)
{
  c->options.whole_weights = true; /* adapters are added to the weights of the file */
  if (!compile_job(c)) return c->cannot_read ? AMPC_BAD_FILE : 1;
  Merge m = {.program = *c->program, .type = type, .out = out};
  if (!m.program.adapter)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--merge %s: it needs a job with one model, whose adapters are all LoRA",
                     c->options.input);
  m.program.n_kernels = 0;
  m.config = json_loads(m.program.adapter, 0, NULL);
  ampc_status status = ampc_infer_open(&m.program, "cpu", in, folder_of(c->arena, c->options.input),
                                       tell, &quiet, &m.rt);
  if (!status) status = check_layers(&m);
  if (!status) status = write_all(&m);
  if (!status && !quiet) printf("%s: adapters of %u layers are merged\n", out, m.merged);
  ampc_free(m.rt);
  json_decref(m.config);
  return status;
}
