/* The vectors of a frame's loop: adjacent elements that are loaded and stored at once; see
 * VECTOR_LOAD in templates/. */
#include "kernel_parts.h"
#include <string.h>

Vector *find_vector(const Kernel *k, uint32_t argument, const Index *index)
{
  for (uint32_t i = 0; i < k->vectors.n; i++)
    if (k->vectors.at[i].argument == argument && index_equal(&k->vectors.at[i].index, index))
      return &k->vectors.at[i];
  return NULL;
}

/* Returns "x_at"; for a second place of the argument "x_2_at". No argument has such a name. */
static const char *vector_name(const Kernel *k, uint32_t argument)
{
  const char *name = arena_printf(k->c->arena, "%s_at", k->arg_names[argument]);
  uint32_t places = 1;
  for (uint32_t i = 0; i < k->vectors.n; i++) {
    if (strcmp(k->vectors.at[i].name, name) != 0) continue;
    name = arena_printf(k->c->arena, "%s_%u_at", k->arg_names[argument], ++places);
    i = UINT32_MAX; /* start again */
  }
  return name;
}

const char *drawn_vector(const Kernel *k, uint32_t argument)
{
  for (uint32_t i = 0; i < k->vectors.n; i++)
    if (k->vectors.at[i].argument == argument) return k->vectors.at[i].name;
  return NULL;
}

void put_drawn_vector(Kernel *k, const Node *n, uint32_t width, const Index *index)
{
  const Draws *d = &n->draws;
  bool aligned = d->each % 4 == 0 && d->skip % 4 == 0 && d->span % width == 0;
  if (width == 1 || !op_draws(n) || !aligned) return;
  uint32_t argument = stream_argument(k, n);
  if (drawn_vector(k, argument)) return;
  Vector v = {.argument = argument, .index = *index, .name = vector_name(k, argument)};
  vec_push(k->c->arena, &k->vectors, v);
  EMIT(k->p, "VECTOR_LOCAL(%u, real, %s);\n", width, v.name);
  EMIT(k->p, "ampc_%ss(%s, %s, %s, VECTOR_WIDTH(%u));\n", op_of(n)->code.random, v.name,
       key_text(k, n), drawn_number(k, n, index_text(k, index)), width);
}

/* True if the vectors of an argument have elements of type real: Note [wide vectors] in cpu.h. A
 * move that is alone in its kernel copies bytes. */
static bool is_wide(const Kernel *k, uint32_t argument)
{
  bool copies = k->group->n == 1 && op_of(ir_node(k->g, k->group->nodes[0]))->tmpl == TMPL_move;
  return is_cpu_target(k->c) && k->args.at[argument].type == AMPC_F16 && !copies;
}

static void put(Kernel *k, bool loads, const char *width, uint32_t argument, const Index *index)
{
  if (find_vector(k, argument, index)) return;
  Vector v = {.argument = argument,
              .index = *index,
              .name = vector_name(k, argument),
              .wide = is_wide(k, argument)};
  vec_push(k->c->arena, &k->vectors, v);
  static const char *const macros[2][2] = {{"VECTOR_ROOM", "VECTOR_LOAD"},
                                           {"WIDE_ROOM", "WIDE_LOAD"}};
  EMIT(k->p, "%s(%s, %s, %s, %s + %s);\n", macros[v.wide][loads], width,
       element_type(&k->args.at[argument]), v.name, k->arg_names[argument], index_text(k, index));
}

const Index *result_index(const Kernel *k, uint32_t argument, const Index *index)
{
  const KernelArg *a = argument < k->args.n ? &k->args.at[argument] : NULL;
  bool pitched = a && a->value.id && ir_node(k->g, a->value)->pitch;
  const KernelAccess *access = k->part->access;
  if (!access || !index_is(index, VAR_i)) return index;
  return pitched ? &access->pitched : &access->dense;
}

void put_vector(Kernel *k, const char *width, uint32_t argument, const Index *index)
{
  if (argument < k->args.n) put(k, true, width, argument, index);
}

void put_result_vector(Kernel *k, bool adds, const char *width, uint32_t argument,
                       const Index *index)
{
  if (argument == k->args.n) return;
  index = result_index(k, argument, index);
  put(k, adds, width, argument, index);
  find_vector(k, argument, index)->stored = true;
}

void store_vector(const Kernel *k, const Vector *v)
{
  EMIT(k->p, "%s(%s + %s, %s);\n", v->wide ? "WIDE_STORE" : "VECTOR_STORE",
       k->arg_names[v->argument], index_text(k, &v->index), v->name);
}

void store_vectors(const Kernel *k, uint32_t first)
{
  for (uint32_t i = first; i < k->vectors.n; i++)
    if (k->vectors.at[i].stored) store_vector(k, &k->vectors.at[i]);
}
