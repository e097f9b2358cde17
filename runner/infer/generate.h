/* amp infer --generate: a language model continues a text. */
#pragma once
#include "infer.h"
#include "text_model.h"
#include "text_out.h"

/* Checks the options of --generate. Returns 0, or exit status 2 after a message. */
int generate_check(InferCommand *cmd);
/* Reads the prompt into cmd->text, and tells the compiler which lengths the text will have. `block`
 * is the infer block that will continue the text. */
ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block);
/* Draws and prints tokens after those of `m`: at most `most`, and until a stop string, the token
 * cmd->text.stop or Ctrl-C. *drawn counts all tokens of the run, for the random numbers. With
 * `timed`, prints how long that took. */
ampc_status generate_tokens(TextModel *m, TextOut *w, const InferCommand *cmd, int64_t most,
                            bool timed, uint64_t *drawn);
/* Writes the text to standard output, token after token. */
ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd);
