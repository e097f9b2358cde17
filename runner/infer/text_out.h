/* Prints a text token by token: numbers, bytes, or the text of a tokenizer. Stop strings end it. */
#pragma once
#include <stdio.h>
#include "runtime/data/tokenizer/tokenizer.h"

typedef struct TextOut {
  FILE *to;
  Tokenizer *tokenizer; /* NULL: tokens are bytes, or numbers */
  bool numbers;         /* tokens are printed as numbers; then there are no stop strings */
  bool terminal;        /* control characters are escaped */
  bool line;            /* the text ends with the end of a line */
  int64_t first; /* with a tokenizer: the text begins there; later what is printed is left out */
  const char *const *stop;
  uint32_t n_stops;
  /* Set by text_out_put; at first all are 0. */
  bool stopped;            /* a stop string has ended the text */
  bool begun;              /* the prompt has been printed */
  size_t generated, shown; /* where the text after the prompt begins; bytes or numbers printed; both
                              count from token `first` on */
} TextOut;

/* Prints what is new of the text of all `n` tokens. The tokens of the first call are the prompt, in
 * which no stop string is looked for. Later the text ends before the first stop string, and so it
 * does at a special token that is a stop string. What may become a stop string or a whole character
 * waits, unless `end`: the text is complete. */
ampc_status text_out_put(TextOut *w, const int64_t *token, int64_t n, bool end);
