/* Times training steps of a job as `amp train` runs them, without reading data or compiling: a few
 * batches are read first and used in turn.
 *
 *   bench_steps [OPTION]... FOLDER WARM-UP TIMED JOB [SETTING=VALUE]...
 *
 * Writes to FOLDER what another framework needs to run the same steps: the weights before the first
 * step (start.safetensors) and the batches (batches.bin: for each batch the bytes of its sources).
 * Prints one line: milliseconds of a step (median, minimum), loss of the first and the last step.
 *   --device cuda      the device to compile for and to run on (default: cpu)
 *   -D NAME=VALUE      a const of the job
 *   --compile sm_90    only compiles the kernels for this GPU into the cache, without one. FOLDER,
 *                      WARM-UP and TIMED are not used
 *   --json             prints an object instead of the line. Groups of TIMED steps run without
 *                      waiting between steps, as in a training. The object also has the time of
 *                      compiling and the memory. A loss that is not finite is null
 *   --commands FILE    also writes name and microseconds of every command of the step, for
 *                      `amp inspect --gpu NAME --measured FILE`. Each command runs TIMED times in a
 *                      row, so operands that fit are in caches */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ampc_metrics.h"
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "common/file.h"

enum { BATCHES = 8, MOST_SETTINGS = 16, GROUPS = 5, ROUNDS = 5 };

typedef struct Wanted {                         /* the command line */
  const char *device, *commands, *architecture; /* architecture: of --compile */
  bool json;
  Assignment consts[MOST_SETTINGS], settings[MOST_SETTINGS];
  uint32_t n_consts, n_settings;
} Wanted;

typedef struct Bench {
  Compile *c;
  const ampc_program *program;
  const ampc_block *block;
  uint32_t index; /* of the first train block */
  ampc_runtime *rt;
  char *batch[BATCHES]; /* bytes of INPUT from `lowest` on */
  int64_t lowest;       /* where the block's sources begin in INPUT */
  int64_t bytes;        /* bytes of the block's sources in INPUT */
  int next;             /* number of batches used so far */
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

static Assignment assignment(char *text)
{
  char *equals = strchr(text, '=');
  if (!equals) die("expected NAME=VALUE");
  *equals = 0;
  return (Assignment){text, equals + 1};
}

static Compile *compile(Wanted *w, const char *job)
{
  static char target[AMPC_TARGET_ROOM];
  if (!w->architecture) must(ampc_device_target(w->device, target));
  Options options = {.input = job,
                     .target = w->architecture ? w->architecture : target,
                     .optimize = 2,
                     .error_limit = 20,
                     .settings = w->settings,
                     .n_settings = w->n_settings,
                     .consts = w->consts,
                     .n_consts = w->n_consts};
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

static void find_sources(Bench *b)
{
  int64_t end = 0;
  b->lowest = INT64_MAX;
  for (uint32_t k = 0; k < b->block->n_sources; k++) {
    const ampc_source *s = &b->program->sources[b->block->first_source + k];
    if (s->offset < b->lowest) b->lowest = s->offset;
    if (s->offset + source_bytes(b, s) > end) end = s->offset + source_bytes(b, s);
  }
  b->bytes = end - b->lowest;
}

/* Reads the first full batches in the order of an epoch. */
static void read_batches(Bench *b, FILE *copy)
{
  ampc_batches *batches;
  must(ampc_data.open(b->program, b->index, ".", 1, &batches));
  find_sources(b);
  for (int i = 0; i < BATCHES; i++) {
    const void *base;
    int64_t samples;
    ampc_data_position at;
    must(ampc_data.next(batches, &base, &samples, &at));
    if (samples != b->block->batch) die("too few samples for the batches");
    if (!(b->batch[i] = calloc(1, (size_t)b->bytes))) die("out of memory");
    for (uint32_t k = 0; k < b->block->n_sources; k++) {
      const ampc_source *s = &b->program->sources[b->block->first_source + k];
      int64_t from = s->offset - b->lowest;
      size_t size = (size_t)source_bytes(b, s);
      memcpy(b->batch[i] + from, (const char *)base + from, size);
      if (fwrite(b->batch[i] + from, 1, size, copy) != size) die("cannot write the batches");
    }
  }
  ampc_data.close(batches);
}

/* Writes the start. batches.bin gets its name when it is complete, so it never exists in part. */
static void write_start(Bench *b, const char *folder)
{
  char path[4096], begun[sizeof path + 4];
  snprintf(path, sizeof path, "%s/start.safetensors", folder);
  must(ampc_checkpoint_save(b->rt, path, (ampc_data_position){0, 0, b->index}));
  snprintf(path, sizeof path, "%s/batches.bin", folder);
  snprintf(begun, sizeof begun, "%s.new", path);
  FILE *copy = fopen(begun, "wb");
  if (!copy) die("cannot write the batches");
  read_batches(b, copy);
  if (fclose(copy) != 0 || rename(begun, path) != 0) die("cannot write the batches");
}

/* Returns the batches that were read, in turn. It is `next` of a data interface. */
static ampc_status next_batch(ampc_batches *from, const void **base, int64_t *samples,
                              ampc_data_position *at)
{
  Bench *b = (Bench *)(void *)from;
  *base = b->batch[b->next++ % BATCHES];
  *samples = b->block->batch;
  *at = (ampc_data_position){0};
  return AMPC_OK;
}

/* Copies a batch in and starts the step on it, as `amp train` does. */
static void begin_step(Bench *b)
{
  static const ampc_data_interface kept = {.next = next_batch};
  int64_t samples;
  must(ampc_run_batch(b->rt, &kept, (ampc_batches *)(void *)b, b->index, 0, &samples));
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

static double step(Bench *b)
{
  double begin = now();
  begin_step(b);
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
    double taken = step(b);
    if (i == 0) first = loss(b);
    if (i >= warm) ms[i - warm] = taken;
  }
  qsort(ms, (size_t)timed, sizeof *ms, ascending);
  printf("%.3f %.3f %.5f %.5f\n", ms[timed / 2], ms[0], (double)first, (double)loss(b));
  free(ms);
}

/* Returns the milliseconds of a step. As in a training, the host waits only at a group's end. */
static double group(Bench *b, int n)
{
  double begin = now();
  for (int i = 0; i < n; i++) begin_step(b);
  must(ampc_wait(b->rt));
  return (now() - begin) / n;
}

/* Returns the loss as JSON, which cannot represent numbers that are not finite. */
static const char *loss_text(float x, char room[32])
{
  snprintf(room, 32, "%.6f", (double)x);
  return isfinite(x) ? room : "null";
}

/* Measures and prints JSON. `begin`: when compiling began. The program is ready after the first
 * step, in which libraries select algorithms and graphs are recorded. */
static void run_json(Bench *b, int warm, int timed, double begin)
{
  double ms[GROUPS];
  char first[32], last[32];
  step(b);
  double ready = now() - begin;
  const char *first_loss = loss_text(loss(b), first);
  if (warm > 1) group(b, warm - 1);
  for (int i = 0; i < GROUPS; i++) ms[i] = group(b, timed);
  qsort(ms, GROUPS, sizeof *ms, ascending);
  printf(
      "{\"step_ms\": %.5f, \"least_ms\": %.5f, \"samples_per_second\": %.0f, \"first_loss\": %s, "
      "\"last_loss\": %s, \"ready_seconds\": %.3f, \"memory_bytes\": %lld, \"device\": \"%s\"}\n",
      ms[GROUPS / 2], ms[0], (double)b->block->batch / ms[GROUPS / 2] * 1e3, first_loss,
      loss_text(loss(b), last), ready / 1e3, (long long)ampc_memory_of(b->rt).total,
      ampc_device_name(b->rt));
}

/* ---- single commands ---- */

/* Returns a program with a block for each command, which repeats the command. The first block is
 * the whole step: it computes the values that the commands read. */
static ampc_program repeating(const Bench *b, int times)
{
  Arena *arena = b->c->arena;
  ampc_program p = *b->program;
  const ampc_step *whole = &b->block->variant[0];
  uint32_t n = whole->n_commands;
  ampc_block *blocks = arena_array(arena, ampc_block, n + 1);
  for (uint32_t i = 0; i <= n; i++) {
    blocks[i] = *b->block;
    blocks[i].n_variants = 1;
    if (i == 0) continue;
    ampc_command *repeat = arena_new(arena, ampc_command);
    repeat->kind = AMPC_REPEAT;
    repeat->label = whole->commands[i - 1].label;
    repeat->as.repeat.count = times;
    repeat->as.repeat.commands = &whole->commands[i - 1];
    repeat->as.repeat.n_commands = 1;
    blocks[i].variant[0].commands = repeat;
    blocks[i].variant[0].n_commands = 1;
  }
  p.blocks = blocks;
  p.n_blocks = n + 1;
  return p;
}

static double repeated(ampc_runtime *rt, uint32_t block, int times)
{
  double least = 0;
  for (int i = 0; i <= ROUNDS; i++) { /* the first round records */
    double begin = now();
    must(ampc_run_step(rt, block, 0));
    must(ampc_wait(rt));
    double us = (now() - begin) * 1e3 / times;
    if (i == 1 || (i > 1 && us < least)) least = us;
  }
  return least;
}

static void write_commands(Bench *b, const char *device, const char *path, int times)
{
  ampc_program p = repeating(b, times);
  ampc_runtime *rt;
  FILE *out = fopen(path, "w");
  if (!out) die("cannot write the times of commands");
  must(ampc_create(&p, device, &rt));
  must(ampc_init_params(rt, 1));
  must(ampc_write(rt, (ampc_ref){AMPC_INPUT, b->lowest}, b->batch[0], b->bytes));
  must(ampc_run_step(rt, 0, 0));
  for (uint32_t i = 1; i < p.n_blocks; i++)
    fprintf(out, "%s\t%.3f\n", p.blocks[i].variant[0].commands->label, repeated(rt, i, times));
  ampc_free(rt);
  if (fclose(out) != 0) die("cannot write the times of commands");
}

/* ---- the command line ---- */

static int read_options(Wanted *w, int argc, char **argv)
{
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      w->json = true;
    } else if (i + 1 == argc) {
      die("an option without its value");
    } else if (strcmp(argv[i], "--device") == 0) {
      w->device = argv[++i];
    } else if (strcmp(argv[i], "--commands") == 0) {
      w->commands = argv[++i];
    } else if (strcmp(argv[i], "--compile") == 0) {
      w->architecture = argv[++i];
    } else if (strcmp(argv[i], "-D") == 0 && w->n_consts < MOST_SETTINGS) {
      w->consts[w->n_consts++] = assignment(argv[++i]);
    } else {
      die("unknown option");
    }
  }
  for (int k = i + 4; k < argc; k++) {
    if (w->n_settings == MOST_SETTINGS) die("too many settings");
    w->settings[w->n_settings++] = assignment(argv[k]);
  }
  return i;
}

static void measure(Wanted *w, Bench *b, const char *folder, int warm, int timed, double begin)
{
  must(ampc_create(b->program, w->device, &b->rt));
  must(ampc_init_params(b->rt, 1));
  must(ampc_clear_metrics(b->rt, b->index));
  double compiled = now() - begin;
  write_start(b, folder);
  if (w->json)
    run_json(b, warm, timed, now() - compiled);
  else
    run(b, warm, timed);
  if (w->commands) write_commands(b, w->device, w->commands, timed);
  for (int i = 0; i < BATCHES; i++) free(b->batch[i]);
  ampc_free(b->rt);
}

int main(int argc, char **argv)
{
  Wanted w = {.device = "cpu"};
  int at = read_options(&w, argc, argv);
  if (argc < at + 4)
    die("usage: bench_steps [OPTION]... FOLDER WARM-UP TIMED JOB [SETTING=VALUE]...");
  int warm = atoi(argv[at + 1]), timed = atoi(argv[at + 2]);
  if (warm < 1 || timed < 1) die("at least one step of warm-up and one that is timed");
  double begin = now();
  Bench b = {.c = compile(&w, argv[at + 3])};
  Jit *jit = NULL;
  must(jit_load(b.c, &jit));
  b.program = b.c->program;
  find_block(&b);
  if (!w.architecture) measure(&w, &b, argv[at], warm, timed, begin);
  jit_unload(jit);
  compile_destroy(b.c);
  return file_end_stdout("bench_steps", 0);
}
