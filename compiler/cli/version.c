/* --version of both programs: lines for people and reports of bugs. */
#include "options.h"
#include "compiler/base/target.h"
#include <stdio.h>

/* The definitions come from CMake. */
int print_version(const char *program)
{
  printf("%s " AMPC_VERSION "\nbuilt by %s\nseveral processes: %s\ndefaults: --target=%s, "
         "--march=%s\n",
         program, AMPC_BUILT_BY, AMPC_BUILT_RANKS, target_of("sm_80")->option, target_marches[0]);
  return 0;
}
