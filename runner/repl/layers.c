/* Layers and parameters by name: finds the one that the user means, and prints the layers of a
 * model as a table. */
#include "repl.h"
#include "compiler/base/table.h"
#include "compiler/graph/ir.h"
#include "runtime/plan/types.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

const char *path_end(Arena *arena, const NameVec *names, const char *end, const char **all)
{
  enum { MOST = 8 };
  Text list = text_new(arena);
  const char *found = NULL;
  uint32_t count = 0;
  *all = NULL;
  for (uint32_t i = 0; i < names->n; i++) {
    if (!path_ends(names->at[i], end)) continue;
    found = names->at[i];
    if (strcmp(found, end) == 0) return found;
    if (count++ < MOST) text_printf(&list, "%s%s", list.n ? ", " : "", found);
  }
  if (count > MOST) text_printf(&list, " and %u more", count - MOST);
  if (count > 1) *all = list.at;
  return count == 1 ? found : NULL;
}

/* Lists the layers and parameters of all models, as "net.fc1" and "net.fc1.weight". Paths contain
 * the model only if there are several. */
static void full_names(Compile *c, NameVec *out)
{
  const Graph *g = c->graph;
  bool several = false;
  for (uint32_t i = 0; i < g->layers.n; i++) vec_push(c->arena, out, g->layers.at[i].name);
  for (uint32_t i = 1; i < g->params.n; i++)
    several = several || strcmp(g->params.at[i].model, g->params.at[0].model) != 0;
  for (uint32_t i = 0; i < g->params.n && g->params.at[i].of < 0; i++) {
    const Parameter *p = &g->params.at[i];
    const char *name = several ? p->path : arena_printf(c->arena, "%s.%s", p->model, p->path);
    vec_push(c->arena, out, name);
  }
}

const char *layer_find(Repl *r, const char *end, const char **all)
{
  NameVec names = {0};
  if (r->latest) full_names(r->latest->c, &names);
  return path_end(r->arena, &names, end, all);
}

const char *layer_expression(Arena *arena, const char *name)
{
  Text t = text_new(arena);
  while (*name) {
    size_t n = strcspn(name, ".");
    bool index = isdigit((unsigned char)*name);
    text_printf(&t, index ? "[%.*s]" : t.n ? ".%.*s" : "%.*s", (int)n, name);
    name += n + (name[n] == '.');
  }
  return t.at;
}

/* ---- the table ---- */

/* Whether a path is `layer` or below it. */
static bool is_within(const char *path, const char *layer)
{
  size_t n = strlen(layer);
  return strncmp(path, layer, n) == 0 && (!path[n] || path[n] == '.');
}

/* Returns the type of the layer's last value in the first train block: its result, as a rule. */
static const char *output_type(Compile *c, const char *layer)
{
  const Graph *g = c->graph;
  uint32_t block = 0;
  while (block + 1 < g->blocks.n && g->blocks.at[block].kind != AMPC_TRAIN) block++;
  for (uint32_t i = g->nodes.n; i-- > 1;) {
    const Node *n = &g->nodes.at[i];
    if (n->block == block && n->layer && !n->origin.id && is_within(n->layer, layer))
      return ir_type_text(c, n);
  }
  return "-";
}

/* Adds "weight [128, 784]". */
static void add_param(Text *out, const Parameter *p, const char *name)
{
  char type[AMPC_TYPE_ROOM];
  ampc_type_text(type, p->dtype, p->rank, p->dim);
  text_printf(out, "%s%s %s", out->n ? ", " : "", name, strchr(type, '['));
}

/* Adds the layer and the parameters that belong to no layer below it. */
static void add_layer(Compile *c, const NameVec *names, uint32_t layer, Table *t, int64_t *total)
{
  const Graph *g = c->graph;
  const Layer *m = &g->layers.at[layer];
  Text own = text_new(c->arena);
  int64_t count = 0;
  for (uint32_t i = g->layers.n; i < names->n; i++) {
    const Parameter *p = &g->params.at[i - g->layers.n];
    const char *path = names->at[i];
    bool inner = !is_within(path, m->name) || param_is_state(p);
    for (uint32_t k = layer + 1; k < g->layers.n && !inner; k++)
      inner = is_within(path, names->at[k]) && is_within(names->at[k], m->name);
    if (inner) continue;
    add_param(&own, p, path + strlen(m->name) + 1);
    int64_t elements = 1;
    for (uint32_t k = 0; k < p->rank; k++) elements *= p->dim[k];
    count += elements;
  }
  *total += count;
  TABLE_ROW(t, 0, {m->name}, {m->type}, {output_type(c, m->name)}, {own.n ? own.at : "-"},
            {.amount = count ? (double)count : -1});
}

bool layers_print(Repl *r, const char *layer)
{
  Compiled *p = program_compile(r, &(Request){.dump_after = "precision"});
  if (!p) return false;
  Compile *c = p->c;
  NameVec names = {0};
  int64_t total = 0;
  Table t;
  full_names(c, &names);
  table_open(&t, c->arena, NULL, &r->options.view,
             "layer:key<10|module:!3|output:!2|weights:!4<14|parameters:count");
  for (uint32_t i = 0; i < c->graph->layers.n; i++)
    if (is_within(names.at[i], layer)) add_layer(c, &names, i, &t, &total);
  table_put(&t);
  table_say(&t, 0, "total %lld parameters", (long long)total);
  table_close(&t);
  compiled_drop(p);
  return true;
}
