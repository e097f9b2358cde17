/* Draws the next token of a text from the logits of a language model. The settings have the meaning
 * of those of transformers and llama.cpp, and are applied in the order of transformers:
 *
 *   1. repetition penalty R: the logit x of each token that the text contains becomes x / R if it
 *      is positive, else x * R. The prompt counts. A token that is there several times counts once.
 *   2. temperature T: x / T. With T = 0 the largest logit, the first of equal ones, gets
 *      probability 1, and the next steps are left out.
 *   3. top-k K: logits below the K-th largest get probability 0. Logits that equal it are kept, as
 *      with a bound from torch.topk. The others get softmax(x / T).
 *   4. top-p P: the smallest set of most probable tokens whose probabilities have at least the sum
 *      P is kept, of equal tokens the first ones. At least one token is kept.
 *   5. min-p M: tokens less probable than M times the most probable one get probability 0.
 *
 * At the end the probabilities are divided by their sum. */
#pragma once
#include <stdint.h>

typedef struct Sampling {
  double temperature;
  uint32_t top_k; /* 0: all */
  double top_p;   /* 1: all */
  double min_p;   /* 0: all */
  double repetition_penalty;
} Sampling;

/* Draws with the model's own probabilities. */
#define SAMPLING_DEFAULT                                                                           \
  {                                                                                                \
    .temperature = 1, .top_p = 1, .repetition_penalty = 1                                          \
  }

/* Draws the token that follows the `length` tokens of `text`, given the logits x of all n tokens,
 * which it overwrites. u is a random number in [0, 1). Returns -1 if nothing can be drawn, because
 * a logit is NaN or positive infinity or all are negative infinity. `scratch` has room for n
 * numbers. */
int64_t sample_token(const Sampling *s, double *x, int64_t n, const int64_t *text, int64_t length,
                     double u, double *scratch);

/* The two halves of sample_token. The first one replaces the logits x by probabilities. It returns
 * 0, or -1 if nothing can be drawn. The second one returns the first token at which the cumulative
 * probability exceeds u. */
int sample_weights(const Sampling *s, double *x, int64_t n, const int64_t *text, int64_t length,
                   double *scratch);
int64_t sample_pick(const double *probability, int64_t n, double u);
