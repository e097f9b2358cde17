/* Prints a text token by token: numbers, bytes, or the text of a tokenizer. */
#pragma once
#include <stdio.h>
#include "runtime/data/tokenizer/tokenizer.h"

typedef struct TextOut {
  FILE *to;
  Tokenizer *tokenizer; /* NULL: tokens are bytes, or numbers */
  bool numbers;         /* tokens are printed as numbers */
  bool terminal;        /* control characters are escaped */
  bool line;            /* the text ends with the end of a line */
  int64_t first;        /* with a tokenizer: earlier tokens, the question of a chat, are no text */
  int64_t shown;        /* bytes of the text, or numbers, that have been printed; at first 0 */
} TextOut;

/* Prints what is new of the text of all `n` tokens. At its end, bytes of a character that is not
 * whole yet wait, unless `end`: the text is complete. */
ampc_status text_out_put(TextOut *w, const int64_t *token, int64_t n, bool end);
