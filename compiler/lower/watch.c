/* Handles options.watch, from `amp repl`: a value of a train or eval block that becomes an
 * additional output, so that a prompt can show it. The text is a name, the path of a layer, or an
 * expression over the names of the block. */
#include "watch.h"
#include "elaborate.h"
#include <ctype.h>

/* True for a name or a path of names: "logits", "fc1", "net.blocks.0.conv". */
static bool is_path(const char *s)
{
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  while (isalnum((unsigned char)*s) || *s == '_' || *s == '.') s++;
  return *s == 0;
}

/* True in the first variant of a block, which yields the value; other variants do not. */
bool watch_is_on(const Lower *l)
{
  return l->c->options.watch && l->run && l->run->first == l->run->block;
}

/* True if the watched text is an expression. It is evaluated at the end of the block, with the
 * weights from before the step. So no update may run earlier. */
bool watch_stops_updates(const Lower *l)
{
  return watch_is_on(l) && !is_path(l->c->options.watch);
}

void watch_value(Lower *l, const char *name, Datum v)
{
  if (watch_is_on(l) && strcmp(l->c->options.watch, name) == 0) l->watched = v;
}

/* Records the call of a layer if options.watch is "fc1" or "net.fc1". The last call wins. */
void watch_call(Lower *l, const Instance *m, Datum v)
{
  if (!watch_is_on(l) || !m->path) return;
  watch_value(l, m->path, v);
  watch_value(l, m->layer, v);
}
