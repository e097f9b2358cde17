/* Reads safetensors files and runs jobs on the CPU, for the tests of this folder. */
#include "fixture.h"
#include "runtime/base/convert.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Fixture {
  json_t *header;
  Tensor *tensors;
  size_t n;
};

_Noreturn void test_fail(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "FAIL: ");
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "\n");
  va_end(ap);
  exit(1);
}

void test_must(ampc_status status, const char *what)
{
  if (status != AMPC_OK) test_fail("%s: %s", what, ampc_last_error());
}

void *test_alloc(size_t size)
{
  void *p = calloc(1, size ? size : 1);
  if (!p) test_fail("out of memory");
  return p;
}

/* ---- safetensors ---- */

static char *read_file(const char *path, size_t *out_size)
{
  FILE *f = fopen(path, "rb");
  if (!f) test_fail("cannot open %s", path);
  fseek(f, 0, SEEK_END);
  size_t size = (size_t)ftell(f);
  rewind(f);
  char *bytes = test_alloc(size);
  if (fread(bytes, 1, size, f) != size) test_fail("cannot read %s", path);
  fclose(f);
  *out_size = size;
  return bytes;
}

/* Returns an element in double, the type in which tensors are compared. */
static double element(const char *type, const char *at, int64_t i)
{
  double f64;
  float f32;
  int64_t i64;
  if (!strcmp(type, "F64")) return memcpy(&f64, at + 8 * i, 8), f64;
  if (!strcmp(type, "F32")) return memcpy(&f32, at + 4 * i, 4), (double)f32;
  if (!strcmp(type, "I64")) return memcpy(&i64, at + 8 * i, 8), (double)i64;
  if (!strcmp(type, "F16")) return convert_widen(AMPC_F16, at + 2 * i, &f32, 1), (double)f32;
  if (!strcmp(type, "BF16")) return f32 = 0, memcpy((char *)&f32 + 2, at + 2 * i, 2), (double)f32;
  test_fail("fixture has a tensor of type %s", type);
}

static void read_tensor(Tensor *t, const char *name, json_t *entry, const char *data)
{
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  json_t *shape = json_object_get(entry, "shape");
  size_t begin =
      (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
  t->name = name;
  t->dtype = strcmp(type, "I64") ? AMPC_F32 : AMPC_I64;
  t->rank = (uint32_t)json_array_size(shape);
  t->n = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    t->n *= t->dim[i] = json_integer_value(json_array_get(shape, i));
  t->at = test_alloc((size_t)t->n * sizeof *t->at);
  for (int64_t i = 0; i < t->n; i++) t->at[i] = element(type, data + begin, i);
}

/* Opens a file: a u64 header size, a JSON header with the offsets of each tensor, then the bytes of
 * the tensors. All tensors are read at once, because the files are small. */
Fixture *fixture_open(const char *path)
{
  size_t size, header_size;
  char *bytes = read_file(path, &size);
  uint64_t stored;
  memcpy(&stored, bytes, 8);
  header_size = (size_t)stored;
  Fixture *f = test_alloc(sizeof *f);
  f->header = json_loadb(bytes + 8, header_size, 0, NULL);
  if (!f->header) test_fail("%s is no safetensors file", path);
  f->tensors = test_alloc(json_object_size(f->header) * sizeof *f->tensors);
  const char *name;
  json_t *entry;
  json_object_foreach(f->header, name, entry)
  {
    if (strcmp(name, "__metadata__"))
      read_tensor(&f->tensors[f->n++], name, entry, bytes + 8 + header_size);
  }
  free(bytes);
  return f;
}

void fixture_close(Fixture *f)
{
  for (size_t i = 0; i < f->n; i++) free(f->tensors[i].at);
  free(f->tensors);
  json_decref(f->header);
  free(f);
}

static const Tensor *find(const Fixture *f, const char *name)
{
  for (size_t i = 0; i < f->n; i++)
    if (!strcmp(f->tensors[i].name, name)) return &f->tensors[i];
  return NULL;
}

const Tensor *fixture_find(const Fixture *f, const char *fmt, ...)
{
  char name[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(name, sizeof name, fmt, ap);
  va_end(ap);
  return find(f, name);
}

const Tensor *fixture_get(const Fixture *f, const char *fmt, ...)
{
  char name[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(name, sizeof name, fmt, ap);
  va_end(ap);
  const Tensor *t = find(f, name);
  if (!t) test_fail("the fixture lacks %s", name);
  return t;
}

bool fixture_starts(const Fixture *f, const char *start)
{
  for (size_t i = 0; i < f->n; i++)
    if (!strncmp(f->tensors[i].name, start, strlen(start))) return true;
  return false;
}

const char *fixture_metadata(const Fixture *f, const char *key)
{
  const char *text =
      json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
  if (!text) test_fail("the fixture lacks metadata %s", key);
  return text;
}

/* ---- jobs ---- */

/* Compiles a job from a text. Diagnostics show `name` in place of a file name. */
Job job_open(const char *name, const char *text)
{
  Options options = {.input = name, .target = "cpu", .optimize = 2, .error_limit = 20};
  return job_open_with(&options, text);
}

Job job_open_with(const Options *options, const char *text)
{
  const char *name = options->input;
  Job job = {.compile = compile_create(options)};
  if (!compile_text(job.compile, name, text, strlen(text)))
    test_fail("%s does not compile:\n%s", name, text);
  test_must(jit_load(job.compile, &job.jit), name);
  job.program = job.compile->program;
  test_must(ampc_create(job.program, "cpu", &job.rt), name);
  return job;
}

void job_close(Job *job)
{
  ampc_free(job->rt);
  jit_unload(job->jit);
  compile_destroy(job->compile);
}

uint32_t job_block(const Job *job, ampc_block_kind kind)
{
  for (uint32_t i = 0; i < job->program->n_blocks; i++)
    if (job->program->blocks[i].kind == kind) return i;
  test_fail("%s lacks a block", job->program->name);
}

void job_run(Job *job, uint32_t block)
{
  test_must(ampc_run_step(job->rt, block, 0), "step");
  test_must(ampc_wait(job->rt), "step");
}

/* ---- f32 values, which are doubles with options.real64 ---- */

static void *encode(const Job *job, const double *from, int64_t n, int64_t *bytes)
{
  bool wide = job->program->real64;
  *bytes = n * (int64_t)(wide ? sizeof(double) : sizeof(float));
  void *host = test_alloc((size_t)*bytes);
  for (int64_t i = 0; i < n; i++) {
    if (wide)
      ((double *)host)[i] = from[i];
    else
      ((float *)host)[i] = (float)from[i];
  }
  return host;
}

void job_read_param(Job *job, const ampc_param *p, ampc_space space, double *out)
{
  bool wide = job->program->real64;
  void *host = test_alloc((size_t)p->elements * sizeof(double));
  test_must(ampc_read_param(job->rt, p, space, host), "read");
  for (int64_t i = 0; i < p->elements; i++)
    out[i] = wide ? ((double *)host)[i] : (double)((float *)host)[i];
  free(host);
}

void job_write_param(Job *job, const ampc_param *p, const double *from)
{
  int64_t bytes;
  void *host = encode(job, from, p->elements, &bytes);
  ampc_space space = p->buffer ? AMPC_BUFFER : AMPC_MASTER;
  test_must(ampc_write_param(job->rt, p, space, host), "write");
  free(host);
}

void job_write_floats(Job *job, ampc_ref to, const double *from, int64_t n)
{
  int64_t bytes;
  void *host = encode(job, from, n, &bytes);
  test_must(ampc_write(job->rt, to, host, bytes), "write");
  free(host);
}

void job_write_integers(Job *job, ampc_ref to, const double *from, int64_t n)
{
  int64_t *host = test_alloc((size_t)n * sizeof *host);
  for (int64_t i = 0; i < n; i++) host[i] = (int64_t)from[i];
  test_must(ampc_write(job->rt, to, host, n * (int64_t)sizeof *host), "write");
  free(host);
}
