/* The next token of a text, drawn from what a language model says of it. */
#pragma once
#include <stdint.h>

typedef struct Sampling {
  double temperature; /* 0: the likeliest token */
  uint32_t top_k;     /* 0: all */
} Sampling;

/* x: n logits, which become the probabilities that sample_pick draws by: those of softmax(x /
 * temperature), where all below the top_k-th largest are 0 and those that equal it are not, as
 * where torch.topk gives the bound. With temperature 0 the largest has 1, the first of equal ones.
 * -1: there is none that could be drawn, since a logit is NaN or positive infinity or all are
 * negative infinity; else 0. `order` is room for n numbers. */
int sample_weights(double *x, int64_t n, Sampling s, double *order);

/* The first token at which the sum of the probabilities is above u, which is from [0, 1). */
int64_t sample_pick(const double *probability, int64_t n, double u);
