/* amp infer --generate: a language model continues a text. */
#pragma once
#include "infer.h"
#include "text_model.h"

/* Checks the options of --generate. Returns 0, or exit status 2 after a message. */
int generate_check(const InferCommand *cmd);
/* Reads the prompt into cmd->text, and tells the compiler which lengths the text will have. `block`
 * is the infer block that will continue the text. */
ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block);
/* Prints the text of `m` from token `first` on. Then draws and prints at most `most` tokens, until
 * a stop string, the token cmd->text.stop or Ctrl-C. *cut: neither of the first two ended the text.
 * *drawn counts all tokens of the run, for the random numbers. With `timed`, prints how long that
 * took. */
ampc_status generate_tokens(TextModel *m, const InferCommand *cmd, int64_t first, int64_t most,
                            bool timed, uint64_t *drawn, bool *cut);
/* Writes the text to standard output, token after token. */
ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd);
