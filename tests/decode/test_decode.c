/* A decoder computes what its infer block computes. Random tokens go through the block at once, and
 * through the derived program: a prompt, then token by token. The program is compiled for a text
 * that is LONGER tokens longer. With own products all logits must have the same bits. oneDNN may
 * sum a product of one row in another order than one of many rows: then the test prints the largest
 * difference, relative to the largest logit, and it must be below `most`. Three texts of different
 * lengths grow in one call, too. test_decode JOB BLOCK own|MOST TOKENS PROMPT [NAME=VALUE]... */
#include <math.h>
#include "../unit/check.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "runtime/base/convert.h"
#include "ampc_rt.h"

enum { MOST_CONSTS = 32, LONGER = 13, TEXTS = 3 };

typedef struct Program {
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
} Program;

static Options options;
static Assignment consts[MOST_CONSTS];

static Program open_program(int64_t tokens, bool decode)
{
  Program p = {0};
  options.text_from = options.text_to = tokens;
  options.decode = decode;
  p.c = compile_create(&options);
  MUST(compile_job(p.c));
  MUST(jit_load(p.c, &p.jit) == AMPC_OK);
  MUST(ampc_create(p.c->program, "cpu", &p.rt) == AMPC_OK);
  MUST(ampc_init_params(p.rt, 1) == AMPC_OK);
  return p;
}

static void close_program(Program *p)
{
  ampc_free(p->rt);
  jit_unload(p->jit);
  compile_destroy(p->c);
}

/* Returns the logits after each token: [n, v]. */
static double *all_at_once(const Program *p, const int64_t *token, int64_t n, int64_t v)
{
  const ampc_program *q = p->c->program;
  const ampc_source *s = &q->sources[q->blocks[0].first_source];
  const ampc_output_desc *o = &q->outputs[0];
  int64_t elements = ampc_output_elements(o), rows = elements / v;
  int64_t *in = calloc((size_t)s->dim[1], sizeof *in);
  void *out = malloc((size_t)(elements * ampc_element_size(q, o->dtype)));
  double *logits = malloc((size_t)(n * v) * sizeof *logits);
  for (int64_t i = 0; i < n; i++) number_store(s->dtype, q->real64, in, i, (double)token[i]);
  MUST(s->rank == 2 && s->dim[0] == 1 && s->dim[1] >= n);
  MUST(ampc_infer(p->rt, 0, (const void *const[]){in}, (void *const[]){out}) == AMPC_OK);
  for (int64_t i = 0; i < n * v; i++)
    logits[i] = number_load(o->dtype, q->real64, out, rows == 1 ? i % v : i);
  free(in);
  free(out);
  return logits;
}

/* Returns how far the logits of the decoder after token i are from those of the block. */
static double compare(const Program *p, const void *out, const double *want, int64_t v)
{
  const ampc_program *q = p->c->program;
  double most = 0, apart = 0;
  for (int64_t k = 0; k < v; k++) {
    double x = number_load(q->outputs[0].dtype, q->real64, out, k);
    MUST(isfinite(want[k]));
    most = fmax(most, fabs(want[k]));
    apart = fmax(apart, isfinite(x) ? fabs(x - want[k]) : INFINITY);
  }
  return apart / most;
}

/* Texts of different lengths grow together: text i has read `prompt` + i tokens before. Returns how
 * far their logits are from `want`. */
static double together(const Program *p, ampc_sequence **s, const int64_t *token, int64_t prompt,
                       int64_t n, const double *want, int64_t v)
{
  void *out[TEXTS];
  double apart = 0;
  for (int i = 0; i < TEXTS; i++) {
    out[i] = malloc((size_t)v * sizeof(double));
    MUST(ampc_sequence_rewind(s[i], 0) == AMPC_OK);
    MUST(ampc_sequence_next(s[i], token, prompt + i, out[i]) == AMPC_OK);
  }
  for (int64_t at = prompt; at + TEXTS <= n; at++) {
    int64_t next[TEXTS];
    for (int i = 0; i < TEXTS; i++) next[i] = token[at + i];
    MUST(ampc_sequences_next(s, TEXTS, next, out) == AMPC_OK);
    for (int i = 0; i < TEXTS; i++) apart = fmax(apart, compare(p, out[i], want + (at + i) * v, v));
  }
  for (int i = 0; i < TEXTS; i++) free(out[i]);
  return apart;
}

int main(int argc, char **argv)
{
  MUST(argc > 5);
  bool loops = strcmp(argv[3], "own") == 0;
  double bound = loops ? 0 : strtod(argv[3], NULL), apart = 0;
  int64_t n = strtoll(argv[4], NULL, 10), prompt = strtoll(argv[5], NULL, 10);
  options = (Options){.input = argv[1],
                      .target = "cpu",
                      .optimize = 2,
                      .error_limit = 20,
                      .infer_block = argv[2],
                      .no_onednn = loops,
                      .consts = consts};
  for (int i = 6; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    MUST(equals && options.n_consts < MOST_CONSTS);
    *equals = 0;
    consts[options.n_consts++] = (Assignment){argv[i], equals + 1};
  }
  Program block = open_program(n, false), decoder = open_program(n + LONGER, true);
  const ampc_output_desc *o = &decoder.c->program->outputs[0];
  int64_t v = o->dim[o->rank - 1], token[n];
  bool last = block.c->program->outputs[0].rank == 2;
  for (int64_t i = 0; i < n; i++) token[i] = (i * 7919 + i * i * 31) % v;
  double *want = all_at_once(&block, token, n, v);
  void *out = malloc((size_t)v * sizeof(double));
  ampc_sequence *s[TEXTS] = {0};
  for (int i = 0; i < TEXTS; i++) MUST(ampc_sequence_begin(decoder.rt, &s[i]) == AMPC_OK);
  for (int round = 0; round < TEXTS + 1;
       round++) { /* a text that begins anew forgets the one before */
    ampc_sequence *own = s[round < TEXTS ? round : 0];
    MUST(ampc_sequence_rewind(own, 0) == AMPC_OK);
    for (int64_t done = 0, to = prompt; to <= n; done = to++) {
      MUST(ampc_sequence_next(own, token + done, to - done, out) == AMPC_OK);
      if (last && to < n) continue;
      double one = compare(&decoder, out, want + (to - 1) * v, v);
      CHECK_MSG(one <= bound, "%s: token %lld of round %d: %g apart", argv[1], (long long)to - 1,
                round, one);
      apart = fmax(apart, one);
    }
  }
  if (!last) {
    double one = together(&decoder, s, token, prompt, n, want, v);
    CHECK_MSG(one <= bound, "%s: %d texts at once: %g apart", argv[1], TEXTS, one);
    apart = fmax(apart, one);
  }
  for (int i = 0; i < TEXTS; i++) ampc_sequence_end(s[i]);
  printf("%s: %lld tokens, at most %g apart\n", argv[1], (long long)n, apart);
  free(want);
  free(out);
  close_program(&block);
  close_program(&decoder);
  return check_done();
}
