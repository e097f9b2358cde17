/* Pass commands: makes a Command for each group, which later code reads instead of the graph.
 *
 * Needs IR_PLACED. Gives IR_COMMANDS and g->commands. It runs after memory, because arguments and
 * texts depend on which operands share bytes. */
#include "compiler/command/command.h"
#include "compiler/passes/memory/use.h"
#include "compiler/passes/passes.h"

bool pass_commands(Compile *c)
{
  c->graph->commands = commands_make(c);
  memory_check(c);
  return true;
}
