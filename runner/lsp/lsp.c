/* amp lsp: the command line of the language server. */
#include "lsp.h"
#include "compiler/cli/options.h"
#include "runner/runner.h"
#include "runtime/plan/formats.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

typedef struct LspCommand {
  Options compile;
  bool stdio;
} LspCommand;

static const OptionRow lsp_options[] = {
    {"stdio", 0, NULL, "read from stdin and write to stdout, as without this option",
     .kind = OPTION_flag, .field = offsetof(LspCommand, stdio)},
    {0}};

const OptionTable lsp_verb = {
    .program = "amp lsp",
    .usage = "[options]",
    .about = "A language server: an editor starts it and talks to it over stdin and stdout, in the "
             "Language Server Protocol 3.17. It reports mistakes while you type, and shows shapes "
             "and types. docs/editors.md says how to set up editors.",
    .groups = (const OptionGroup[]){{lsp_options, 0},
                                    {job_options, offsetof(LspCommand, compile)},
                                    {NULL, 0}},
    .notes = "exit status: 0 after `shutdown` and `exit`, 1 if the editor goes without them"};

int lsp_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  LspCommand cmd = {.compile = options_default()};
  cmd.compile.target = "sm_80"; /* as for ampc; another target changes no mistake and no type */
  Operands operands = {argv, argc};
  int status = 0;
  bool good = options_read(&lsp_verb, arena, &operands, &cmd, &status);
  if (good) status = options_count_jobs(&lsp_verb, &operands, 0, 0);
  ampc_texts_skip();
  signal(SIGPIPE, SIG_IGN); /* an editor or a worker may have gone */
  if (good && !status) status = lsp_serve(&cmd.compile, STDIN_FILENO, STDOUT_FILENO);
  arena_destroy(arena);
  return status;
}
