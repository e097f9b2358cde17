/* amp infer --generate: text that a language model goes on with. */
#pragma once
#include "infer.h"

/* What of the command line does not go with --generate, and what it lacks: 0, or 2 after a message.
 */
int generate_check(const InferCommand *cmd);
/* Reads the prompt into cmd->text, and asks the compile for the sizes that the text will have.
 * `block` is the one that goes on with it. */
ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block);
/* Writes the text to standard output, token after token. */
ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd);
