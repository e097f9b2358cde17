/* Pass layout. Needs the differentiated graph; gives every node a layout. No op of this version
 * prefers channels last, so all stay row-major and no relayout nodes are needed: the check below is
 * what later ones build on. */
#include "passes/passes.h"
#include <assert.h>

bool pass_layout(Compile *c)
{
  for (uint32_t id = 1; id < c->graph->nodes.n; id++)
    assert(c->graph->nodes.at[id].layout == LAYOUT_row_major);
  return true;
}
