/* Draws the next token of a text from the logits of a language model. */
#pragma once
#include <stdint.h>

typedef struct Sampling {
  double temperature; /* 0: the likeliest token */
  uint32_t top_k;     /* 0: all tokens may be drawn */
} Sampling;

/* Replaces the n logits x by the probabilities for sample_pick: softmax(x / temperature), and 0 for
 * logits below the top_k-th largest. Logits that equal the top_k-th largest are kept, as with a
 * bound from torch.topk. With temperature 0 the largest logit, the first of equal ones, gets
 * probability 1. Returns 0; or -1 if nothing can be drawn, because a logit is NaN or positive
 * infinity or all are negative infinity. `order` is scratch for n numbers. */
int sample_weights(double *x, int64_t n, const Sampling *s, double *order);

/* Returns the first token at which the cumulative probability exceeds u, which is in [0, 1). */
int64_t sample_pick(const double *probability, int64_t n, double u);

/* Draws the token that follows the `length` tokens of `text`, from the logits x of the n tokens,
 * which it overwrites; u is a random number in [0, 1). Returns -1 if nothing can be drawn, as
 * sample_weights. `scratch` has room for n numbers. */
int64_t sample_token(const Sampling *s, double *x, int64_t n, const int64_t *text, int64_t length,
                     double u, double *scratch);
