/* Fixtures (safetensors files that make_fixtures.py writes), and jobs compiled from a text, for the
 * tests of this folder. If an item is missing or a call fails, every function prints a message and
 * ends the test as failed. */
#pragma once
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"

typedef struct Tensor {
  const char *name;
  ampc_dtype dtype; /* AMPC_I64, or AMPC_F32 for all float types */
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t n;
  double *at;
} Tensor;

typedef struct Fixture Fixture;
Fixture *fixture_open(const char *path);
void fixture_close(Fixture *f);
const Tensor *fixture_find(const Fixture *f, const char *fmt, ...) /* NULL if it is missing */
    __attribute__((format(printf, 2, 3)));
const Tensor *fixture_get(const Fixture *f, const char *fmt, ...) /* it must exist */
    __attribute__((format(printf, 2, 3)));
bool fixture_starts(const Fixture *f, const char *start); /* true if a tensor's name begins with
                                                           * `start` */
const char *fixture_metadata(const Fixture *f, const char *key); /* it must exist */

typedef struct Job { /* compiled for the CPU, with kernels loaded and memory allocated */
  Compile *compile;
  Jit *jit;
  ampc_runtime *rt;
  const ampc_program *program;
} Job;
Job job_open(const char *name, const char *text);
Job job_open_with(const Options *options, const char *text); /* options.input is the job's name */
void job_close(Job *job);
uint32_t job_block(const Job *job, ampc_block_kind kind);
void job_run(Job *job, uint32_t block); /* runs one step and waits */

/* Reads or writes a parameter's f32 values in a space, in row-major order of its shape. */
void job_read_param(Job *job, const ampc_param *p, ampc_space space, double *out);
void job_write_param(Job *job, const ampc_param *p, const double *from); /* p may be a buffer */
void job_write_floats(Job *job, ampc_ref to, const double *from, int64_t n);
void job_write_integers(Job *job, ampc_ref to, const double *from, int64_t n);

void *test_alloc(size_t size);
_Noreturn void test_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void test_must(ampc_status status, const char *what); /* fails unless AMPC_OK */
