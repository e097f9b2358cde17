/* Opens the layer library. Note [library] explains when it is parsed. The defs of optimizers and of
 * most schedules are made from their tables.
 *
 * A mistake in the library is a bug in ampc, so the first compile aborts the program, even if the
 * job does not use the name. */
#include "interpret.h"
#include "compiler/base/embedded.h"
#include "runtime/plan/formats.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---- */

/* Note [library]
 * A declaration of the library begins a line with `def` or `module`, and ends where the next one
 * begins. Only their names are read when a job is compiled. A declaration is parsed at its first
 * use: most jobs use a few of the hundreds. `amp`'s list of built-ins parses all public ones. */
static void add_declaration(Lower *l, const char *file, const char *name, Span text)
{
  OpKind op;
  if (file_find(l->library, name)) library_broken(file, "declares twice: ", name);
  /* such a def would silently hide the op from every job */
  if (op_lookup(name, &op)) library_broken(file, "hides the op of the same name: ", name);
  vec_push(l->arena, &l->library->globals, (Global){.name = name, .text = text});
}

static size_t word_size(const char *line)
{
  return strncmp(line, "def ", 4) == 0 ? 4 : strncmp(line, "module ", 7) == 0 ? 7 : 0;
}

/* Adds the declarations of one file of compiler/layers. */
static void add_layers(Lower *l, const char *file, const char *text, size_t size)
{
  uint32_t base = diag_add_source(l->c, file, text, (uint32_t)size, true);
  uint32_t first = l->library->globals.n;
  const char *end = text + size;
  for (const char *s = text; s < end; s += strcspn(s, "\n") + 1) {
    const char *name = s + word_size(s);
    uint32_t at = base + (uint32_t)(s - text), n = l->library->globals.n;
    if (name == s) continue;
    if (n > first) l->library->globals.at[n - 1].text.end = at;
    add_declaration(l, file, arena_strndup(l->arena, name, name_size(name)),
                    (Span){at, base + (uint32_t)size});
  }
}

const Decl *global_decl(Lower *l, Global *g)
{
  Ast one = {0};
  if (g->decl) return g->decl;
  if (!ast_parse_part(l->c, g->text, &one) || one.n != 1)
    library_broken(diag_place(l->c, g->text).source->path, "does not parse: ", g->name);
  return g->decl = one.at[0];
}

/* Checks that the library has a def for each data format, without which no job could use it. */
static void check_formats(Lower *l)
{
  for (ampc_source_kind kind = 0; kind < AMPC_SOURCE_ARGUMENT; kind++) {
    const char *name = ampc_format_of(kind)->name;
    if (!file_find(l->library, name))
      library_broken("sources.amp", "has no def of the data format ", name);
  }
}

/* Opens the files of compiler/layers as one file scope. These share the names that begin with `_`,
 * and their order does not matter. */
void open_library(Lower *l)
{
  l->library = file_open(l, arena_new(l->arena, Ast), true);
  for (const EmbeddedFile *f = embedded_files; f->name; f++) {
    size_t n = strlen(f->name);
    if (n > 4 && strcmp(f->name + n - 4, ".amp") == 0) add_layers(l, f->name, f->text, f->size);
  }
  Text defs = table_defs(l->arena);
  add_layers(l, "of the tables", defs.at, defs.n);
  check_formats(l);
}
