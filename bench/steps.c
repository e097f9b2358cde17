/* Times training steps of a job as `amp train` runs them, without reading data or compiling: a few
 * batches are read first and used in turn.
 *
 *   bench_steps FOLDER WARM-UP TIMED JOB [SETTING=VALUE]...
 *
 * Leaves in FOLDER what another framework needs to do the same: the weights as they were before the
 * first step (start.safetensors) and the batches (batches.bin: of each batch the sources' bytes).
 * Prints one line: milliseconds of a step (median, least), loss of the first and of the last step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "runtime/plan/file.h"

enum { BATCHES = 8, MOST_SETTINGS = 8 };

typedef struct Bench {
  Compile *c;
  const ampc_program *program;
  const ampc_block *block;
  uint32_t index; /* of the block, the first that trains */
  ampc_runtime *rt;
  char *batch[BATCHES]; /* as INPUT has them */
  int64_t bytes;        /* that a batch covers of INPUT */
} Bench;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static _Noreturn void die(const char *what)
{
  fprintf(stderr, "bench_steps: %s\n", what);
  exit(1);
}

static void must(ampc_status status)
{
  if (status) die(ampc_last_error());
}

static Compile *compile(int argc, char **argv)
{
  static Assignment settings[MOST_SETTINGS];
  Options options = {
      .input = argv[0], .target = "cpu", .optimize = 2, .error_limit = 20, .settings = settings};
  for (int i = 1; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals || options.n_settings == MOST_SETTINGS) die("expected SETTING=VALUE");
    *equals = 0;
    settings[options.n_settings++] = (Assignment){argv[i], equals + 1};
  }
  Compile *c = compile_create(&options);
  if (!compile_job(c)) exit(1);
  return c;
}

static void find_block(Bench *b)
{
  while (b->index < b->program->n_blocks && b->program->blocks[b->index].kind != AMPC_TRAIN)
    b->index++;
  if (b->index == b->program->n_blocks) die("the job has no train block");
  b->block = &b->program->blocks[b->index];
}

static int64_t source_bytes(const Bench *b, const ampc_source *s)
{
  int64_t bytes = b->block->batch * ampc_element_size(b->program, s->dtype);
  for (uint32_t k = 0; k < s->rank; k++) bytes *= s->dim[k];
  return bytes;
}

/* The first full batches in the order of an epoch. */
static void read_batches(Bench *b, FILE *copy)
{
  ampc_batches *batches;
  must(ampc_data.open(b->program, b->index, ".", 1, &batches));
  for (uint32_t k = 0; k < b->block->n_sources; k++) {
    const ampc_source *s = &b->program->sources[b->block->first_source + k];
    if (s->offset + source_bytes(b, s) > b->bytes) b->bytes = s->offset + source_bytes(b, s);
  }
  for (int i = 0; i < BATCHES; i++) {
    const void *base;
    int64_t samples;
    ampc_data_position at;
    must(ampc_data.next(batches, &base, &samples, &at));
    if (samples != b->block->batch) die("too few samples for the batches");
    if (!(b->batch[i] = calloc(1, (size_t)b->bytes))) die("out of memory");
    for (uint32_t k = 0; k < b->block->n_sources; k++) {
      const ampc_source *s = &b->program->sources[b->block->first_source + k];
      size_t size = (size_t)source_bytes(b, s);
      memcpy(b->batch[i] + s->offset, (const char *)base + s->offset, size);
      if (fwrite(b->batch[i] + s->offset, 1, size, copy) != size) die("cannot write the batches");
    }
  }
  ampc_data.close(batches);
}

static void write_start(Bench *b, const char *folder)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/start.safetensors", folder);
  must(ampc_checkpoint_save(b->rt, path, (ampc_data_position){0, 0, b->index}));
  snprintf(path, sizeof path, "%s/batches.bin", folder);
  FILE *copy = fopen(path, "wb");
  if (!copy) die("cannot write the batches");
  read_batches(b, copy);
  if (fclose(copy) != 0) die("cannot write the batches");
}

static float loss(Bench *b)
{
  for (uint32_t i = 0; i < b->block->n_metrics; i++) {
    ampc_metric m;
    if (!b->program->metrics[b->block->first_metric + i].is_loss) continue;
    must(ampc_get_metric(b->rt, b->block->first_metric + i, &m));
    return m.last;
  }
  die("the job has no loss");
}

static double step(Bench *b, int number)
{
  double begin = now();
  must(ampc_write(b->rt, (ampc_ref){AMPC_INPUT, 0}, b->batch[number % BATCHES], b->bytes));
  must(ampc_run_step(b->rt, b->index, 0));
  must(ampc_wait(b->rt));
  return now() - begin;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void run(Bench *b, int warm, int timed)
{
  double *ms = calloc((size_t)timed, sizeof *ms);
  if (!ms) die("out of memory");
  float first = 0;
  for (int i = 0; i < warm + timed; i++) {
    double taken = step(b, i);
    if (i == 0) first = loss(b);
    if (i >= warm) ms[i - warm] = taken;
  }
  qsort(ms, (size_t)timed, sizeof *ms, ascending);
  printf("%.3f %.3f %.5f %.5f\n", ms[timed / 2], ms[0], (double)first, (double)loss(b));
  free(ms);
}

int main(int argc, char **argv)
{
  if (argc < 5) die("usage: bench_steps FOLDER WARM-UP TIMED JOB [SETTING=VALUE]...");
  int warm = atoi(argv[2]), timed = atoi(argv[3]);
  if (warm < 1 || timed < 1) die("at least one step of warm-up and one that is timed");
  Bench b = {.c = compile(argc - 4, argv + 4)};
  Jit *jit = NULL;
  must(jit_load(b.c, &jit));
  b.program = b.c->program;
  find_block(&b);
  must(ampc_create(b.program, "cpu", &b.rt));
  must(ampc_init_params(b.rt, 1));
  must(ampc_clear_metrics(b.rt, b.index));
  write_start(&b, argv[1]);
  run(&b, warm, timed);
  for (int i = 0; i < BATCHES; i++) free(b.batch[i]);
  ampc_free(b.rt);
  jit_unload(jit);
  compile_destroy(b.c);
  return file_end_stdout("bench_steps", 0);
}
