/* Runs the CUDA text of kernels thread by thread and compares with their CPU text (lockstep.h):
 *   simt_check selftest [options of amp selftest]   every op in every type
 *   simt_check runtime                          the runtime's kernels (../ptx/runtime.c)
 *   simt_check [-D NAME=VALUE] [--set KEY=VALUE] [-O0|-O1|-O2] job.amp...   all blocks of jobs
 *   simt_check --decode BLOCK job.amp...        the decoder of an infer block
 * `--ptx sm_75,sm_90` before all other arguments executes the PTX of NVRTC instead (../ptx).
 * `--tell`, the first argument, checks nothing and prints what would be checked (lockstep_tell);
 * `--tell-too` prints the same and checks it.
 * `--mutate FROM=>TO` plants a fault in the CUDA text. A fault that is found gives exit status 5.
 */
#include "compiler/base/compile.h"
#include "compiler/driver.h"
#include "lockstep.h"
#include "runner/runner.h"
#include "runner/selftest/run.h"
#include "tests/ptx/image.h"
#include "tests/ptx/runtime.h"
#include "tests/ptx/warp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN_STEPS = 3, SKIPPED = 77 };

static bool only_tells; /* --tell */

static unsigned next_random(unsigned *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void put_number(char *at, const ampc_source *s, unsigned random)
{
  int64_t limit = s->limit > 0 ? s->limit : 5, whole = (int64_t)random % limit;
  float number = (float)random / (1 << 22) - 2;
  switch (s->dtype) {
  case AMPC_F32:
    memcpy(at, &number, sizeof number);
    break;
  case AMPC_F16:
  case AMPC_BF16: { /* 0.5 to 2, with both signs */
    unsigned bits = s->dtype == AMPC_F16 ? 0x3800 | (random & 0x87ff) : 0x3f00 | (random & 0x80ff);
    memcpy(at, &bits, 2);
    break;
  }
  default:
    memcpy(at, &whole, (size_t)ampc_dtype_size(s->dtype));
  }
}

static ampc_status write_inputs(ampc_runtime *rt, const ampc_program *p, const ampc_block *b,
                                const ampc_step *step, unsigned seed)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *s = &p->sources[b->first_source + i];
    int64_t n = step->batch > 0 ? step->batch : 1, size = ampc_dtype_size(s->dtype);
    for (uint32_t d = 0; d < s->rank; d++) n *= s->dim[d];
    char *bytes = malloc((size_t)(n * size) + 8);
    if (!bytes) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
    for (int64_t e = 0; e < n; e++) put_number(bytes + e * size, s, next_random(&seed));
    status = ampc_write(rt, (ampc_ref){AMPC_INPUT, s->offset}, bytes, n * size);
    free(bytes);
  }
  return status;
}

/* Makes a gradient infinite, so that the updates must be skipped. */
static ampc_status spoil_gradient(ampc_runtime *rt, const ampc_program *p)
{
  float inf = INFINITY;
  if (p->space_bytes[AMPC_GRAD] == 0) return AMPC_OK;
  return ampc_write(rt, (ampc_ref){AMPC_GRAD, 0}, &inf, sizeof inf);
}

static ampc_status run_variant(ampc_runtime *rt, const ampc_program *p, uint32_t block,
                               uint32_t variant)
{
  const ampc_block *b = &p->blocks[block];
  int steps = b->kind == AMPC_TRAIN ? TRAIN_STEPS : 1;
  ampc_status status = AMPC_OK;
  for (int i = 0; i < steps && !status; i++) {
    status = write_inputs(rt, p, b, &b->variant[variant], (unsigned)i + 1);
    if (!status && i + 1 == TRAIN_STEPS) status = spoil_gradient(rt, p);
    if (!status) status = ampc_run_step(rt, block, variant);
    if (!status) status = ampc_wait(rt);
  }
  return status;
}

static ampc_status run_job(Compile *c, const TestRun *edits)
{
  Jit *jit;
  ampc_runtime *rt = NULL;
  ampc_status status = jit_load_edited(c, edits->edit, edits->edit_data, &jit);
  if (only_tells) return jit_unload(jit), status;
  if (status) return status;
  const ampc_program *p = c->program;
  status = ampc_create(p, "cpu", &rt);
  if (!status) status = ampc_init_params(rt, 7);
  for (uint32_t b = 0; b < p->n_blocks && !status; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants && !status; v++)
      status = run_variant(rt, p, b, v);
  ampc_free(rt);
  jit_unload(jit);
  return status;
}

/* Appends NAME=VALUE to the list. */
static bool add_assignment(Arena *arena, const char *text, Assignment **list, uint32_t *n)
{
  const char *sign = strchr(text, '=');
  if (!sign) return false;
  Assignment *longer = arena_array(arena, Assignment, *n + 1);
  for (uint32_t i = 0; i < *n; i++) longer[i] = (*list)[i];
  const char *key = arena_printf(arena, "%.*s", (int)(sign - text), text);
  longer[(*n)++] = (Assignment){key, sign + 1};
  *list = longer;
  return true;
}

/* Moves the paths of jobs to the start of argv. *n_jobs: their number. */
static bool read_arguments(Arena *arena, int argc, char **argv, Options *out, TestRun *edits,
                           int *n_jobs)
{
  *n_jobs = 0;
  for (int i = 1; i < argc; i++) {
    const char *word = argv[i];
    if (strcmp(word, "-D") == 0 && i + 1 < argc) {
      if (!add_assignment(arena, argv[++i], &out->consts, &out->n_consts)) return false;
    } else if (strcmp(word, "--set") == 0 && i + 1 < argc) {
      if (!add_assignment(arena, argv[++i], &out->settings, &out->n_settings)) return false;
    } else if (strcmp(word, "--decode") == 0 && i + 1 < argc) {
      out->infer_block = argv[++i];
      out->decode = DECODE_CHUNK;
      out->text_to = INT64_MAX;
    } else if (strcmp(word, "--norms") == 0) {
      out->norms = true;
    } else if (strcmp(word, "--mutate") == 0 && i + 1 < argc) {
      if (!mutation_set(edits, argv[++i])) return false;
    } else if (strncmp(word, "-O", 2) == 0) {
      out->optimize = atoi(word + 2);
    } else if (word[0] == '-') {
      return false;
    } else {
      argv[(*n_jobs)++] = argv[i];
    }
  }
  return *n_jobs > 0;
}

static ampc_status check_job(const Options *options, const TestRun *edits)
{
  Compile *c = compile_create(options);
  ampc_status status = compile_job(c) ? run_job(c, edits) : AMPC_RUN_FAILED;
  if (status) fprintf(stderr, "simt_check: %s: %s\n", options->input, ampc_last_error());
  compile_destroy(c);
  return status;
}

static int check_jobs(int argc, char **argv)
{
  Arena *arena = arena_create();
  Options options = {.target = "cpu", .optimize = 2, .error_limit = 20, .as_cuda = true};
  TestRun edits = {0};
  int n_jobs;
  if (!read_arguments(arena, argc, argv, &options, &edits, &n_jobs)) {
    fprintf(stderr, "usage: simt_check [--ptx sm_90] [-D NAME=VALUE] [--set KEY=VALUE] [-O0] "
                    "[--mutate FROM=>TO] job.amp...\n");
    return 2;
  }
  ampc_status status = AMPC_OK;
  for (int i = 0; i < n_jobs; i++) {
    options.input = argv[i];
    ampc_status of_job = check_job(&options, &edits);
    if (!status) status = of_job;
  }
  if (edits.edit && !edits.edits) {
    fprintf(stderr, "simt_check: the text has no such place\n");
    status = AMPC_RUN_FAILED;
  }
  if (n_jobs > 1) printf("simt: %d jobs\n", n_jobs);
  arena_destroy(arena);
  return (int)status;
}

int main(int argc, char **argv)
{
  only_tells = argc > 1 && strcmp(argv[1], "--tell") == 0;
  if (only_tells || (argc > 1 && strcmp(argv[1], "--tell-too") == 0))
    lockstep_tell(only_tells), argc--, argv++;
  bool ptx = argc > 2 && strcmp(argv[1], "--ptx") == 0;
  if (ptx && !lockstep_use_ptx(argv[2])) return SKIPPED;
  if (ptx) argc -= 2, argv += 2;
  if (argc > 1 && strcmp(argv[1], "runtime") == 0) return ptx_check_runtime(argc - 2, argv + 2);
  bool all_ops = argc > 1 && strcmp(argv[1], "selftest") == 0;
  for (int i = 2; i < argc && all_ops; i++)
    if (strcmp(argv[i], "--brief") == 0) lockstep_skip_wide(); /* a night checks them */
  int status = all_ops ? selftest_main(argc - 1, argv + 1) : check_jobs(argc, argv);
  if (only_tells) return all_ops ? 0 : status; /* ops fail without kernels */
  LockstepTotals t = lockstep_totals();
  printf("simt: %u kernels, %u launches checked (%u more on the CPU alone), %llu blocks, "
         "%llu threads, %u kernels with a fault\n",
         t.kernels, t.checked, t.unchecked, t.blocks, t.threads, t.faults);
  if (ptx)
    printf("ptx: %llu instructions of %u spellings executed; %u kernels with calls, run as text\n",
           ptx_executed(), ptx_spellings(), ptx_calling());
  if (t.checked == 0) fprintf(stderr, "simt: nothing was checked\n");
  if (status) return status;
  return t.faults || t.checked == 0 ? 5 : 0;
}
