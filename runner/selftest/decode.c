/* Suite: a decoder computes what its infer block computes. The block runs at once, its decoder
 * token by token after a prompt, and for three texts at once: attention with a window and rotary
 * positions, a convolution, a scan. */
#include "graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 40, PROMPT = 9, WORDS = 24 };

static const char job[] =
    "dim S(max=40)\n"
    "module Net {\n"
    "  embed = Embedding(24, 16); qkv = Linear(16, 48); conv = Conv1d(16, 16, 3, padding=2)\n"
    "  gate = Parameter([16]); head = Linear(16, 24)\n"
    "  def heads(x) { return x.unflatten(2, [2, 8]).transpose(1, 2) }\n"
    "  def forward(ids) {\n"
    "    x = embed(ids); q, k, v = qkv(x).chunk(3, dim=2)\n"
    "    y = scaled_dot_product_attention(rotary_embedding(heads(q)), rotary_embedding(heads(k)),\n"
    "        heads(v), is_causal=true, window=7)\n"
    "    x = x + y.transpose(1, 2).flatten(2)\n"
    "    x = x + conv(x.transpose(1, 2))[:, :, :ids.size(1)].transpose(1, 2)\n"
    "    h = zeros([1, 16])\n"
    "    scan t in range(ids.size(1)) carry h {\n"
    "      h = sigmoid(gate) * h + x[:, t]\n"
    "      emit states = h\n"
    "    }\n"
    "    return head(states.transpose(0, 1))\n"
    "  }\n"
    "}\n"
    "model net = Net() { init(\"**\", normal_(std=0.3)) }\n"
    "infer next(ids: i64[1, S]) -> f32[1, S, 24] { return net(ids) }\n";

static float block_logits[TOKENS * WORDS];

static void fill_tokens(int64_t token[TOKENS])
{
  for (int64_t i = 0; i < TOKENS; i++) token[i] = (i * 7 + i * i) % WORDS;
}

static ampc_status run_block(Arena *a, TestRun *run, Built *b)
{
  int64_t token[TOKENS];
  (void)a, (void)run;
  fill_tokens(token);
  return ampc_infer(b->rt, 0, (const void *const[]){token}, (void *const[]){block_logits});
}

/* Returns the larger of `worst` and the error in units of 256 ulps of the largest logit: products
 * of one row may sum in another order than those of many. */
static double text_error(double worst, const float *got, const float *want)
{
  float most = 0;
  for (int i = 0; i < WORDS; i++) most = fmaxf(most, fabsf(want[i]));
  const double bound = 256 * number_ulp(AMPC_F32, (double)most);
  for (int i = 0; i < WORDS; i++)
    worst = number_worse(worst, fabs((double)got[i] - (double)want[i]) / bound);
  return worst;
}

static ampc_status run_decoder(Arena *a, TestRun *run, Built *b)
{
  float logits[WORDS];
  int64_t token[TOKENS];
  double worst = 0;
  ampc_sequence *s = NULL;
  (void)a;
  fill_tokens(token);
  ampc_status status = ampc_sequence_begin(b->rt, &s);
  for (int64_t done = 0, n = PROMPT; done < TOKENS && !status; done += n, n = 1) {
    status = ampc_sequence_next(s, token + done, n, logits);
    worst = text_error(worst, logits, block_logits + (done + n - 1) * WORDS);
  }
  ampc_sequence_end(s);
  if (!status) test_report(run, OP_store, PROOF_forward, AMPC_F32, worst, "logits token by token");
  return status;
}

/* Texts of different lengths take their steps together. */
static ampc_status run_together(Arena *a, TestRun *run, Built *b)
{
  enum { TEXTS = 3 };
  float logits[TEXTS][WORDS];
  int64_t token[TOKENS];
  double worst = 0;
  ampc_sequence *s[TEXTS] = {NULL};
  ampc_status status = AMPC_OK;
  (void)a;
  fill_tokens(token);
  for (int i = 0; i < TEXTS && !status; i++) {
    status = ampc_sequence_begin(b->rt, &s[i]);
    if (!status) status = ampc_sequence_next(s[i], token, PROMPT + i, logits[i]);
  }
  for (int at = PROMPT; at + TEXTS <= TOKENS && !status; at++) {
    status = ampc_sequences_next(s, TEXTS, token + at,
                                 (void *const[TEXTS]){logits[0], logits[1], logits[2]});
    for (int i = 0; i < TEXTS; i++)
      worst = text_error(worst, logits[i], block_logits + (at + i) * WORDS);
  }
  for (int i = 0; i < TEXTS; i++) ampc_sequence_end(s[i]);
  if (!status) test_report(run, OP_store, PROOF_forward, AMPC_F32, worst, "logits of three texts");
  return status;
}

ampc_status suite_decode(Arena *a, TestRun *run)
{
  static const OpKind ops[] = {OP_store};
  if (!test_wants_any(run, ops, 1)) return AMPC_OK;
  const BuiltJob whole = {.name = "the job of texts", .text = job, .test = run_block};
  const BuiltJob steps = {
      .name = "the decoder of texts", .text = job, .test = run_decoder, .decode = "next"};
  ampc_status status = built_job_twice(a, run, &whole);
  const BuiltJob texts = {
      .name = "three texts at once", .text = job, .test = run_together, .decode = "next"};
  if (!status) status = built_job_twice(a, run, &steps);
  return status ? status : built_job_twice(a, run, &texts);
}
