/* Continues each line that is typed, in two ways at once: by the most probable bytes, and by bytes
 * drawn at a temperature.
 *   chat WEIGHTS [TEMPERATURE]
 * ampc makes chat.c and chat.h from chat.amp. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "chat.h"

enum { TEXTS = 2, MOST = 60, VOCABULARY = CHAT_NEXT_VOCABULARY }; /* MOST: bytes of an answer */

/* Draws a byte with the probabilities softmax(logits / temperature); 0: the most probable byte. */
static int64_t choose(const float *logits, double temperature)
{
  double weight[VOCABULARY], sum = 0;
  int64_t best = 0, i = 0;
  for (int k = 1; k < VOCABULARY; k++)
    if (logits[k] > logits[best]) best = k;
  if (temperature <= 0) return best;
  for (int k = 0; k < VOCABULARY; k++)
    sum += weight[k] = exp((double)(logits[k] - logits[best]) / temperature);
  for (double left = sum * rand() / RAND_MAX; i < VOCABULARY - 1 && left >= weight[i]; i++)
    left -= weight[i];
  return i;
}

/* Continues the prompt, with one byte of each text in a step. */
static int answer(struct ampc_sequence *const *text, const double *temperature, const char *prompt)
{
  int64_t byte[CHAT_NEXT_CONTEXT], n = (int64_t)strlen(prompt);
  char line[TEXTS][MOST + 1] = {{0}};
  float logits[TEXTS][VOCABULARY], *to[TEXTS];
  int64_t last[TEXTS];
  for (int64_t i = 0; i < n; i++) byte[i] = (unsigned char)prompt[i];
  for (int k = 0; k < TEXTS; k++) {
    int status = chat_next_rewind(text[k], 0);
    if (!status) status = chat_next_next(text[k], byte, n, to[k] = logits[k]);
    if (status) return status;
  }
  for (int i = 0; i < MOST; i++) {
    for (int k = 0; k < TEXTS; k++)
      line[k][i] = (char)(last[k] = choose(logits[k], temperature[k]));
    int status = chat_next_together(text, TEXTS, last, to);
    if (status) return status;
  }
  for (int k = 0; k < TEXTS; k++)
    printf("%g: %s%.*s\n", temperature[k], prompt, (int)strcspn(line[k], "\n"), line[k]);
  return 0;
}

int main(int argc, char **argv)
{
  if (argc < 2) return fprintf(stderr, "usage: %s WEIGHTS [TEMPERATURE]\n", argv[0]), 2;
  const double temperature[TEXTS] = {0, argc > 2 ? atof(argv[2]) : 0.7};
  struct ampc_runtime *net = NULL;
  struct ampc_sequence *text[TEXTS] = {NULL};
  char prompt[CHAT_NEXT_CONTEXT - MOST + 1]; /* a longer line is several prompts */
  int status = chat_open("auto", argv[1], NULL, &net);
  for (int k = 0; k < TEXTS && !status; k++) status = chat_next_begin(net, &text[k]);
  while (!status && fgets(prompt, sizeof prompt, stdin)) {
    prompt[strcspn(prompt, "\n")] = 0;
    if (*prompt) status = answer(text, temperature, prompt);
  }
  if (status) fprintf(stderr, "%s: %s\n", argv[0], chat_error());
  for (int k = 0; k < TEXTS; k++) chat_next_end(text[k]);
  chat_close(net);
  return status;
}
