/* amp infer --generate: a language model continues a text. */
#pragma once
#include "infer.h"
#include "text_model.h"
#include "text_out.h"

/* Checks the options of --generate. Returns 0, or exit status 2 after a message. */
int generate_check(const InferCommand *cmd);
/* Reads the prompt, or all prompts, into cmd->text, and tells the compiler which lengths the text
 * will have. `block` is the infer block that will continue the text. */
ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block);
/* Refuses a prompt that does not fit the model, and says if the text will be longer than the
 * context. */
ampc_status generate_check_model(const TextModel *m, const InferCommand *cmd);

typedef struct Growing { /* a text that a model continues */
  TextModel *m;
  const InferCommand *cmd;
  TextOut out;     /* the caller sets `to`, `terminal`, `line` and `first` */
  int64_t most;    /* tokens that may be drawn */
  uint64_t drawn;  /* number of the next draw, for the random numbers */
  int64_t tokens;  /* drawn so far */
  bool ended, cut; /* cut: neither a stop string nor the token cmd->text.stop ended the text */
} Growing;
/* Prints the tokens that the text has. */
ampc_status generate_start(Growing *g);
/* Draws a token from the logits that text_model_read has computed, and prints it. */
ampc_status generate_draw(Growing *g);

/* Prints the text of `m` from token `first` on. Then draws and prints at most `most` tokens, until
 * a stop string, the token cmd->text.stop or Ctrl-C. *cut: neither of the first two ended the text.
 * *drawn counts all tokens of the run, for the random numbers. With `timed`, prints how long that
 * took. */
ampc_status generate_tokens(TextModel *m, const InferCommand *cmd, int64_t first, int64_t most,
                            bool timed, uint64_t *drawn, bool *cut);
/* Writes the text to standard output, token after token. */
ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd);

/* ---- prompts.c, batch.c: --prompts ---- */
/* Reads all prompts of the file into cmd->text.each. Sets cmd->text.n to the length of the longest
 * one. */
ampc_status prompts_read(InferCommand *cmd, Compile *c);
/* Continues all prompts, and writes a line of JSON for each. */
ampc_status batch_run(ampc_runtime *rt, const InferCommand *cmd);
