/* options.watch, from `amp repl`: a value of a train or eval block that becomes an output too, so
 * that a prompt can look at it. The text is a name, the path of a layer, or an expression over the
 * block's names. */
#include "watch.h"
#include "elaborate.h"
#include <ctype.h>

/* A name or a path of names: "logits", "fc1", "net.blocks.0.conv". */
static bool is_path(const char *s)
{
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  while (isalnum((unsigned char)*s) || *s == '_' || *s == '.') s++;
  return *s == 0;
}

/* The block that runs gives its value: not the smaller last batch of another. */
bool watch_is_on(const Lower *l)
{
  return l->c->options.watch && l->run && l->run->first == l->run->block;
}

/* An expression is worked out where the block ends, with the weights that the step began with: so
 * nothing may update them before. */
bool watch_stops_updates(const Lower *l)
{
  return watch_is_on(l) && !is_path(l->c->options.watch);
}

void watch_value(Lower *l, const char *name, Datum v)
{
  if (watch_is_on(l) && strcmp(l->c->options.watch, name) == 0) l->watched = v;
}

/* "fc1" or "net.fc1": the last call in the block counts. */
void watch_call(Lower *l, const Instance *m, Datum v)
{
  if (!watch_is_on(l) || !m->path) return;
  watch_value(l, m->path, v);
  watch_value(l, m->layer, v);
}
