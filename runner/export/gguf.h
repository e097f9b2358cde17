/* amp export --gguf. */
#pragma once
#include "compiler/base/compile.h"
#include "compiler/syntax/ast.h"

/* Writes the language model whose infer block this is as a GGUF file. `weights`: NULL: those that
 * the job loads. `type`: f32, f16, bf16 or q8_0, of matrices. Returns the exit status. */
int gguf_export(Compile *c, const Function *block, const char *weights, const char *type,
                const char *out, bool quiet);
