/* The modules of a job, as a tree, and which of them compute floats themselves. */
#include <string.h>
#include "compiler/graph/ops.h"
#include "tune.h"

uint32_t unit_find(const Units *u, const char *path)
{
  for (uint32_t i = 1; path && i < u->n; i++)
    if (strcmp(u->at[i].path, path) == 0) return i;
  return 0;
}

/* Returns the module around the one with this path; 0: a model. */
static uint32_t parent_of(const Units *u, const char *path)
{
  for (uint32_t i = u->n; --i;) {
    size_t n = strlen(u->at[i].path);
    if (strncmp(u->at[i].path, path, n) == 0 && path[n] == '.') return i;
  }
  return 0;
}

/* Whether the precision of the job decides the type of n: no region in the text does. Region 1 is
 * the job's. */
static bool follows_job(const Graph *g, const Node *n)
{
  const Region *r = &g->regions.at[n->region], *job = &g->regions.at[1];
  return r->kind == job->kind && r->label && strcmp(r->label, job->label) == 0;
}

static bool computes(const Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  OpTemplate tmpl = op_of(n)->tmpl;
  if (g->blocks.at[n->block].in_program != tune_block(c->program) || n->origin.id || n->weak)
    return false;
  if (!dtype_is_float(n->dtype) || n->why == WHY_state || n->why == WHY_asked) return false;
  return tmpl != TMPL_leaf && tmpl != TMPL_alias && !op_has(n, T_effect) && follows_job(g, n);
}

Units units_find(Compile *c)
{
  const Graph *g = c->graph;
  Units u = {0};
  vec_push(c->arena, &u, ((Unit){.path = "", .type = "train"}));
  for (uint32_t i = 0; i < g->layers.n; i++) {
    const Layer *l = &g->layers.at[i];
    uint32_t parent = parent_of(&u, l->name);
    vec_push(c->arena, &u, ((Unit){.path = l->name, .type = l->type, .parent = parent}));
  }
  const char *last = NULL;
  uint32_t at = 0;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (!computes(c, n)) continue;
    if (n->layer != last) at = unit_find(&u, last = n->layer);
    Unit *unit = &u.at[at];
    if (!unit->own) unit->line = diag_place(c, diag_user_span(c, n->span)).line;
    unit->own = true;
  }
  return u;
}
