/* A language model and a text that grows: a prompt, then tokens that are drawn. */
#pragma once
#include "ampc_rt.h"
#include "sample.h"

typedef struct TextModel {
  const char *what; /* begins messages: "--generate" */
  ampc_runtime *rt;
  const ampc_program *program;
  const ampc_output_desc *result; /* result of the last block; the blocks differ only in length */
  int64_t most;                   /* tokens that the model reads: its context */
  int64_t vocabulary;
  int64_t *token, n, room; /* the text so far, n tokens */
  ampc_sequence *sequence; /* of a decoder; else NULL */
  int64_t first, done;     /* tokens [first, done) are in the sequence */
  void *in, *out;          /* buffers for the argument and the result of a block */
  double *logits, *order;  /* after the last token; room for sampling */
  bool checked;            /* whether later tokens matter, of a block without a decoder */
} TextModel;

/* Checks that the program is an infer block of tokens that returns logits, and begins an empty
 * text. The caller calls text_model_close in any case. */
ampc_status text_model_open(TextModel *m, const char *what, ampc_runtime *rt);
void text_model_close(TextModel *m);
/* True if the program computes each token once. */
bool text_model_is_decoder(const TextModel *m);
/* Appends tokens, and refuses those that the model does not know. */
ampc_status text_model_add(TextModel *m, const int64_t *token, int64_t n);
/* Forgets the text. */
ampc_status text_model_clear(TextModel *m);
/* Computes the logits after the last token. If the text is longer than the context, the model reads
 * only the last tokens. */
ampc_status text_model_read(TextModel *m);
/* The same for up to TEXTS_MOST texts of one decoder. Those with a single new token take one step
 * together; the new tokens of another text, such as a prompt, are read alone. */
enum { TEXTS_MOST = 1024 };
ampc_status text_models_read(TextModel *const *m, uint32_t n);
/* Draws a token from these logits, which it overwrites, and appends it. It is a function of the
 * seed and of `drawn`, the number of tokens drawn before. */
ampc_status text_model_next(TextModel *m, const Sampling *how, uint64_t seed, uint64_t drawn);
