/* Kernels of several parts: Note [parts] in ir.h. Parts with equal text, such as the sums of many
 * layers, become one function that each of them calls. */
#include "key.h"
#include "kernel_parts.h"
#include <assert.h>
#include <string.h>

typedef struct Part {
  XXH128_hash_t facts;
  const char *where;    /* "ON_BLOCK(3) ", or empty */
  const char *function; /* NULL: the part has no function */
} Part;

struct Launch {
  const Kernel *k;
  Part *parts;
};

/* ---- names ---- */

/* Returns the launch's name of an argument of one of its parts. */
static const char *name_in(const Kernel *launch, const KernelArg *a)
{
  uint32_t i = same_argument(&launch->args, a);
  if (i == launch->args.n) kernel_bug(launch, a->value, "its launch has no pointer to it");
  return launch->arg_names[i];
}

/* Gives the part the names of the launch: maps, rows and windows print these names. */
static void use_names(const Kernel *launch, Kernel *part)
{
  for (uint32_t i = 0; i < part->args.n; i++)
    part->arg_names[i] = name_in(launch, &part->args.at[i]);
}

/* Declares the template's own names for its arguments as copies of the launch's arguments. */
static void put_own_names(const Kernel *launch, Kernel *part)
{
  for (uint32_t i = 0; i < part->args.n; i++) {
    const KernelArg *a = &part->args.at[i];
    const char *name = name_in(launch, a);
    if (strcmp(name, part->arg_names[i]) == 0 || !template_uses(part, part->arg_names[i])) continue;
    bool read = a->role == ARG_in || a->only_read;
    EMIT(part->p, "%s%s %sconst %s = %s;\n", read ? "const " : "", element_type(a),
         argument_is_number(a) ? "" : "*", part->arg_names[i], name);
  }
}

/* Returns the part as a kernel with its own names. */
static Kernel part_of(const Kernel *launch, uint32_t part)
{
  Kernel k = *launch;
  k.part = &launch->command->parts[part];
  k.group = k.part->group;
  k.is_part = true;
  k.args = k.part->args;
  name_arguments(&k);
  return k;
}

/* ---- where parts run ---- */

static bool is_of_one_block(const Kernel *k, uint32_t part)
{
  return !k->group->in_turn && !is_cpu_target(k->c) && k->command->parts[part].at.grid == 1;
}

/* If each part from `part` on runs in one block, blocks without a part return here. This needs one
 * test instead of one for each part. */
static void put_leave(const Kernel *k, uint32_t part, uint32_t grid)
{
  uint32_t n = k->group->n_parts;
  if (k->group->last < n || (part && is_of_one_block(k, part - 1))) return;
  for (uint32_t i = part; i < n; i++)
    if (!is_of_one_block(k, i)) return;
  if (n - part > 1 && n < grid) EMIT(k->p, "LEAVE_FROM_BLOCK(%u);\n", n);
}

static const char *state_name(const Kernel *k)
{
  uint32_t i = 0;
  while (k->args.at[i].role != ARG_state) i++;
  return k->arg_names[i];
}

static const char *where_of(const Kernel *k, uint32_t part, uint32_t grid)
{
  if (part >= k->group->last) return "ALONE ";
  if (is_of_one_block(k, part)) return arena_printf(k->c->arena, "ON_BLOCK(%u) ", part % grid);
  return "";
}

/* ---- parts that are alike ---- */

/* Prints a function for parts with equal text. ALONE redefines the block's number only in the text
 * after it and not in a function that it calls. So with `alone` the function contains ALONE. */
static void put_function(const Kernel *launch, uint32_t part, const char *name, bool alone)
{
  Kernel k = part_of(launch, part);
  EMIT_WRAPPED(k.p, "// ", "// %s\n", kernel_nodes_text(&k));
  EMIT_WRAPPED(k.p, "    ", "DEVICE void %s(%s)\n", name, argument_list(&k));
  EMIT(k.p, alone ? "{\n  ALONE {\n" : "{\n");
  k.p->indent += 1 + alone;
  put_body(&k);
  k.p->indent -= 1 + alone;
  EMIT(k.p, alone ? "  }\n}\n\n" : "}\n\n");
}

/* Returns the key of a part's text, independent of the names of its arguments. */
#ifndef NDEBUG
static XXH128_hash_t part_key(const Kernel *launch, uint32_t part)
{
  Printer p;
  Kernel own = *launch;
  void *kept = launch->c->blame;
  Text text = text_new(launch->c->arena);
  printer_begin(&p, launch->c, &text);
  p.bare = true;
  own.p = &p;
  put_function(&own, part, "part", false);
  launch->c->blame = kept;
  return XXH3_128bits(text.at, text.n);
}
#endif

static bool are_alike(const Launch *l, uint32_t a, uint32_t b)
{
  const Part *p = &l->parts[a], *q = &l->parts[b];
  if (!XXH128_isEqual(p->facts, q->facts) || !*p->where != !*q->where) return false;
  assert(XXH128_isEqual(part_key(l->k, a), part_key(l->k, b)));
  return true;
}

const Launch *put_functions(const Kernel *k)
{
  const Group *g = k->group;
  Arena *a = k->c->arena;
  KernelFacts *facts = kernel_facts(k->c);
  Launch *l = arena_new(a, Launch);
  *l = (Launch){k, arena_array(a, Part, g->n_parts)};
  uint32_t grid = k->part->at.grid, n = 0;
  for (uint32_t i = 0; i < g->n_parts; i++) {
    Part *part = &l->parts[i];
    *part = (Part){facts_of_part(facts, &k->command->parts[i]), where_of(k, i, grid), NULL};
    for (uint32_t first = 0; first < i && !part->function; first++) {
      Part *like = &l->parts[first];
      if (!are_alike(l, i, first)) continue;
      if (!like->function) {
        const char *name = k->name;
        like->function =
            n++ ? arena_printf(a, "%s_part_%u", name, n) : arena_printf(a, "%s_part", name);
        put_function(k, first, like->function, *like->where);
      }
      part->function = like->function;
    }
  }
  return l;
}

/* ---- the parts ---- */

/* Prints "net_sum_part(part_sums_2, bias_grad); // %580 sum %581 grad_accumulate". The nodes are
 * not separated by commas, because a wide line is broken at commas. */
static void put_call(const Kernel *k, const Part *part)
{
  Text arguments = text_new(k->c->arena);
  Text nodes = text_new(k->c->arena);
  for (uint32_t i = 0; i < k->args.n; i++)
    text_printf(&arguments, "%s%s", i ? ", " : "", k->arg_names[i]);
  for (uint32_t i = 0; i < k->group->n; i++)
    text_printf(&nodes, " %%%u %s", k->group->nodes[i].id,
                op_of(ir_node(k->g, k->group->nodes[i]))->name);
  EMIT_WRAPPED(k->p, "      ", "%s%s(%s); //%s\n", part->where, part->function, arguments.at,
               nodes.at);
}

static void put_part(const Kernel *launch, uint32_t i, const Part *part)
{
  Kernel k = part_of(launch, i);
  bool file = kernel_template(&k) == TMPL_file && !op_has(kernel_main_node(&k), T_windows);
  if (part->function || !file) use_names(launch, &k);
  if (part->function) {
    put_call(&k, part);
    return;
  }
  EMIT_WRAPPED(k.p, "  // ", "%s{ // %s\n", part->where, kernel_nodes_text(&k));
  k.p->indent++;
  if (file) put_own_names(launch, &k);
  put_body(&k);
  k.p->indent--;
  EMIT(k.p, "}\n");
}

void put_parts(const Launch *l)
{
  const Kernel *k = l->k;
  const Group *g = k->group;
  uint32_t grid = k->part->at.grid;
  if (g->in_turn) EMIT(k->p, "FIRST_BLOCK;\n");
  for (uint32_t i = 0; i < g->n_parts; i++) {
    if (i == g->last)
      EMIT(k->p, "LAST_BLOCK(%s);\n", state_name(k));
    else if (g->parts[i].meets)
      EMIT(k->p, "BLOCK_MEETS;\n");
    put_leave(k, i, grid);
    put_part(k, i, &l->parts[i]);
  }
}
