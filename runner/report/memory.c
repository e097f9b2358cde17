/* The spaces of the program, and the places and lifetimes of values in WORK over the step. */
#include "report.h"
#include "compiler/cost/memory_report.h"
#include "compiler/passes/memory/use.h"
#include "runtime/plan/types.h"

typedef struct Life { /* lifetime of a value in WORK, in commands of the step */
  int64_t offset, bytes;
  uint32_t from, to;
} Life;

static json_t *spaces_json(const ampc_program *p)
{
  json_t *out = json_array();
  for (int s = 0; s < AMPC_SPACE_COUNT; s++)
    if (p->space_bytes[s])
      json_array_append_new(out, json_pack("[s, I]", ampc_space_purpose(p, (ampc_space)s),
                                           (json_int_t)p->space_bytes[s]));
  return out;
}

/* Returns [offset, bytes, first command, last command, description, type, line]. */
static json_t *life_json(const Report *r, const Life *l, Value v)
{
  Compile *c = r->e.c;
  const Node *n = ir_node(c->graph, v);
  const char *layer = n->layer ? layer_path(c->graph, n->layer) : "";
  const char *what = v.id ? arena_printf(c->arena, "%s%s%s %s", layer, *layer ? " " : "",
                                         explain_name(c, v), ir_type_text(c, n))
                          : "scratch of a library";
  return json_pack("[I, I, I, I, s, s, I]", (json_int_t)l->offset, (json_int_t)l->bytes,
                   (json_int_t)l->from, (json_int_t)l->to, what,
                   v.id ? ir_dtype_name(n->dtype) : "", (json_int_t)(v.id ? node_line(c, v) : 0));
}

static void take_command(const Report *r, uint32_t group, uint32_t at, Life *lives, json_t *out)
{
  WorkUses uses = work_uses(r->e.c, group);
  for (uint32_t i = 0; i < uses.n; i++) {
    const WorkUse *u = &uses.at[i];
    Life *l = &lives[u->value.id];
    if (!u->value.id) { /* scratch is used by this command only */
      json_array_append_new(out, life_json(r, &(Life){u->offset, u->bytes, at, at}, u->value));
      continue;
    }
    if (!l->bytes) *l = (Life){u->offset, u->bytes, at, at};
    if (u->bytes > l->bytes) l->bytes = u->bytes;
    l->to = at;
  }
}

static json_t *lives_json(const Report *r, uint16_t block, uint32_t *out_commands)
{
  const Graph *g = r->e.c->graph;
  Life *lives = arena_array(r->e.c->arena, Life, g->nodes.n);
  json_t *out = json_array();
  uint32_t at = 0;
  for (uint32_t i = 1; i < g->groups.n; i++)
    if (work_has_command(g, i, block)) take_command(r, i, at++, lives, out);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    if (lives[id].bytes) json_array_append_new(out, life_json(r, &lives[id], (Value){id}));
  *out_commands = at;
  return out;
}

json_t *report_memory(const Report *r)
{
  uint32_t commands = 0;
  const ampc_program *p = r->e.c->program;
  json_t *values = r->e.blocks.n ? lives_json(r, r->e.blocks.at[0].block, &commands) : json_array();
  return json_pack("{s:o, s:I, s:I, s:I, s:o}", "spaces", spaces_json(p), "bytes",
                   (json_int_t)memory_of_spaces(p), "work", (json_int_t)p->space_bytes[AMPC_WORK],
                   "commands", (json_int_t)commands, "values", values);
}
