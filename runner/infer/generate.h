/* amp infer --generate: a language model continues a text. */
#pragma once
#include "infer.h"

/* Checks the options of --generate. Returns 0, or exit status 2 after a message. */
int generate_check(const InferCommand *cmd);
/* Reads the prompt into cmd->text, and tells the compiler which lengths the text will have. `block`
 * is the infer block that will continue the text. */
ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block);
/* Writes the text to standard output, token after token. */
ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd);
