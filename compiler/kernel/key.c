/* Finds equal kernels: computes the key of a kernel, and runs pass kernels, after which commands
 * with equal kernels launch the same one.
 *
 * Needs IR_COMMANDS. It runs before plan, whose table has each kernel once. */
#include "key.h"
#include "kernels.h"
#include "kernel.h"
#include <assert.h>

/* ---- keys ---- */

XXH128_hash_t kernel_text_key(Compile *c, uint32_t group)
{
  Arena *scratch = arena_create();
  Text text = emit_bare(c, group, scratch);
  XXH128_hash_t key = XXH3_128bits(text.at, text.n);
  arena_destroy(scratch);
  return key;
}

/* True if kernels with different facts have different texts. This holds if the facts contain
 * indices instead of shapes. */
static bool facts_decide(const Command *k)
{
  bool all = !k->columns;
  for (uint32_t i = 0; i < k->n_parts; i++) all &= k->parts[i].map || k->parts[i].rows;
  return all;
}

XXH128_hash_t kernel_key(Compile *c, uint32_t group)
{
  if (facts_decide(command_of(c->graph, group))) return facts_of(kernel_facts(c), group);
  return kernel_text_key(c, group);
}

/* ---- the pass ---- */

typedef struct Keys { /* a table with open addressing */
  struct {
    XXH128_hash_t key;
    uint32_t group; /* the first group with the key; 0: free */
  } * at;
  uint32_t cap; /* a power of two, more than there are groups */
} Keys;

static Keys keys_create(Arena *a, uint32_t n)
{
  Keys k = {.cap = 1};
  while (k.cap <= 2 * (uint64_t)n) k.cap *= 2;
  k.at = arena_alloc(a, k.cap * sizeof *k.at, _Alignof(XXH128_hash_t));
  return k;
}

/* Returns the first group with this key; `group` itself if it is the first. */
static uint32_t first_with(Keys *k, XXH128_hash_t key, uint32_t group)
{
  uint32_t slot = (uint32_t)key.low64 & (k->cap - 1);
  while (k->at[slot].group && !XXH128_isEqual(k->at[slot].key, key))
    slot = (slot + 1) & (k->cap - 1);
  if (k->at[slot].group) return k->at[slot].group;
  k->at[slot].key = key;
  return k->at[slot].group = group;
}

typedef struct Sharing {
  Compile *c;
  Keys by_facts, by_ops, by_text;
  bool *printed; /* group -> its text is in by_text */
} Sharing;

/* Returns the first group whose kernel has the same text. Only kernels of the same ops are
 * compared, or of any convolutions, so most kernels need not be printed. */
static uint32_t first_with_text(Sharing *s, uint32_t group)
{
  Graph *g = s->c->graph;
  const Group *p = &g->groups.at[group];
  uint64_t ops = 0;
  bool columns = command_of(g, group)->columns;
  for (uint32_t i = 0; i < p->n && !columns; i++) ops = 31 * ops + ir_node(g, p->nodes[i])->op;
  uint32_t like = first_with(&s->by_ops, XXH3_128bits(&ops, sizeof ops), group);
  if (like == group) return group;
  if (!s->printed[like]) first_with(&s->by_text, kernel_text_key(s->c, like), like);
  s->printed[like] = true;
  return first_with(&s->by_text, kernel_text_key(s->c, group), group);
}

/* Returns the first group with the same kernel. */
static uint32_t first_like(Sharing *s, uint32_t group)
{
  Compile *c = s->c;
  uint32_t alike = first_with(&s->by_facts, facts_of(kernel_facts(c), group), group);
  assert(alike == group || XXH128_isEqual(kernel_text_key(c, alike), kernel_text_key(c, group)));
  if (alike != group) return command_of(c->graph, alike)->kernel;
  return facts_decide(command_of(c->graph, group)) ? group : first_with_text(s, group);
}

bool pass_kernels(Compile *c)
{
  Graph *g = c->graph;
  uint32_t *last = arena_array(c->arena, uint32_t, g->groups.n); /* first group -> last one */
  uint32_t n = g->groups.n;
  Sharing s = {c, keys_create(c->arena, n), keys_create(c->arena, n), keys_create(c->arena, n),
               arena_array(c->arena, bool, n)};
  for (uint32_t i = 1; i < g->groups.n; i++) {
    Command *k = &g->commands[i];
    if (!k->kernel_name) continue;
    uint32_t first = first_like(&s, i);
    if (first != i) {
      k->kernel = first;
      k->kernel_name = g->commands[first].kernel_name;
      g->commands[last[first]].sharer = i;
    }
    last[first] = i;
  }
  return true;
}
