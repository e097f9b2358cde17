/* The language server, without its command line. */
#pragma once
#include "compiler/base/compile.h"

/* Serves a client until it says `exit` or goes. Returns the exit status: 0 after `shutdown`, else
 * 1. */
int lsp_serve(const Options *options, int in, int out);
