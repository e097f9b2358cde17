/* A scope has the names that are visible at a point of the program, each with its latest value. */
#include "elaborate.h"
#include "meaning.h"
#include <stdio.h>
#include <stdlib.h>

Scope *scope_new(Lower *l, Scope *parent, File *file, Instance *self)
{
  Scope *s = arena_new(l->arena, Scope);
  s->arena = l->arena;
  s->parent = parent;
  s->file = file;
  s->self = self;
  return s;
}

/* Searches this scope only; lookup_quiet() also searches its parents. */
Binding *scope_find(Scope *s, const char *name)
{
  uint32_t i = name_find(s->arena, &s->names_index, s->names.at, s->names.n, sizeof(Binding), name);
  return i == NO_NAME ? NULL : &s->names.at[i];
}

Missing *scope_missing(Scope *s, const char *name)
{
  uint32_t i =
      name_find(s->arena, &s->missing_index, s->missing.at, s->missing.n, sizeof(Missing), name);
  return i == NO_NAME ? NULL : &s->missing.at[i];
}

/* Binds a name. An assignment rebinds it. Tensors never change: `x = x + 1` makes a new node, and x
 * then names the new node. */
void scope_bind(Lower *l, Scope *s, const char *name, Datum value, Span span)
{
  Binding *b = scope_find(s, name);
  meaning_add_binding(l, s->file, span, value);
  if (b)
    *b = (Binding){.name = name, .value = value, .span = span};
  else
    vec_push(l->arena, &s->names, (Binding){.name = name, .value = value, .span = span});
}

/* Reports a mistake in the library, which is a bug in ampc, since the library is part of ampc. The
 * first compile of any job finds it and aborts. */
void library_broken(const char *file, const char *what, const char *name)
{
  fprintf(stderr, "ampc: compiler/layers/%s: %s%s\n", file, what, name);
  abort();
}
