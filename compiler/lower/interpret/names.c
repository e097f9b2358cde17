/* Finds names: declarations of files, in the order of lookup: locals, members, module parameters,
 * this file, its imports, built-ins. */
#include "interpret.h"
#include "compiler/lower/block/infer.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/optimizer/optimizer.h"
#include "compiler/lower/own/own.h"
#include "common/number.h"
#include <math.h>

/* ---- files ---- */

/* Opens a file, identified by its tree. A file that is imported twice or in a cycle opens once. */
File *file_open(Lower *l, const Ast *ast, bool builtin)
{
  for (uint32_t i = 0; i < l->files.n; i++)
    if (l->files.at[i]->ast == ast) return l->files.at[i];
  File *f = arena_new(l->arena, File);
  f->arena = l->arena;
  f->ast = ast;
  f->builtin = builtin;
  vec_push(l->arena, &l->files, f);
  return f;
}

Global *file_find(File *f, const char *name)
{
  uint32_t i = name_find(f->arena, &f->index, f->globals.at, f->globals.n, sizeof(Global), name);
  return i == NO_NAME ? NULL : &f->globals.at[i];
}

/* Enters all declarations before any is evaluated, so a def may call a later one. Models and
 * optimizers of imported files are skipped: such a file may also be a job. */
void file_add_globals(Lower *l, File *f, bool job)
{
  for (uint32_t i = 0; i < f->ast->n; i++) {
    const Decl *d = f->ast->at[i];
    const Name *name = ast_decl_name(d);
    if (!name || (!job && (d->kind == DECL_model || d->kind == DECL_optimizer))) continue;
    Global *old = file_find(f, name->text);
    if (old) {
      fail(l, E210, name->span, "`%s` is declared twice", name->text);
      diag_note(l->c, ast_decl_name(old->decl)->span, "the first one is here");
      continue;
    }
    vec_push(l->arena, &f->globals, (Global){name->text, d, d->span, GLOBAL_new, d_of(D_error)});
  }
}

static Datum declared_function(Lower *l, File *f, const Decl *d)
{
  Callable *call = arena_new(l->arena, Callable);
  *call = (Callable){&d->as.function, f, NULL, d->kind == DECL_data};
  return (Datum){.kind = D_function, .as.function = call};
}

/* Reports `module Net(Base)`: a parameter without type and default that is the name of a module. */
static bool inherits(Lower *l, File *f, const Decl *d)
{
  const ParamList *params = &d->as.module.params;
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    if (p->type.name || p->value) continue;
    const Global *base = file_find(f, p->name.text);
    if (!base) base = file_find(l->library, p->name.text);
    bool root = strcmp(p->name.text, "Module") == 0;
    if (!root && (!base || base->decl->kind != DECL_module)) continue;
    fail(l, E210, p->name.span, "modules do not inherit: `%s` is a parameter here", p->name.text);
    if (root)
      diag_help(l->c, "write `module %s`", d->name.text);
    else
      diag_help(l->c, "write `module %s { base = %s(..) ... }`: a module contains others",
                d->name.text, p->name.text);
    return true;
  }
  return false;
}

static Datum declared_class(Lower *l, File *f, const Decl *d)
{
  if (!f->builtin && inherits(l, f, d)) return d_of(D_error);
  Class *class = arena_new(l->arena, Class);
  *class = (Class){d->name.text, d, f};
  return (Datum){.kind = D_class, .as.class = class};
}

/* Evaluates `const WIDTH: int = 512`. The type is checked before -D replaces the value. */
static Datum declared_const(Lower *l, File *f, const Decl *d)
{
  Scope *s = scope_new(l, NULL, f, NULL);
  Datum v = eval(l, s, d->as.constant.value);
  if (!d_is(v, D_error) && d->as.constant.type.name &&
      !check_type(l, s, &d->as.constant.type, &v, d->as.constant.value->span,
                  (Typed){d->name.text, NULL}))
    return d_of(D_error);
  if (d_is_tensor(v) && v.kind != D_schedule)
    return fail(l, E210, d->as.constant.value->span, "a const is a compile-time value, got %s",
                d_text(l, v));
  return const_override(l, f, d, &v) ? v : d_of(D_error);
}

/* Returns the value of a declaration. Functions and data blocks keep their tree and run when they
 * are called; models and optimizers are made here. */
static Datum declare(Lower *l, File *f, const Decl *d)
{
  switch (d->kind) {
  case DECL_const:
    return declared_const(l, f, d);
  case DECL_dim:
    return declare_dim(l, f, d);
  case DECL_op:
    return declare_own(l, f, d);
  case DECL_module:
    return declared_class(l, f, d);
  case DECL_model:
    return declare_model(l, f, d);
  case DECL_optimizer:
    return (Datum){.kind = D_optimizer, .as.optimizer = declare_optimizer(l, f, d)};
  default:
    return declared_function(l, f, d);
  }
}

/* Evaluates a declaration at its first use. The state finds cycles: with `const A = B` and `const B
 * = A`, this function is called for A while A is busy. declare() may open files and so reallocate
 * `globals`; so the entry is looked up again by its index. */
Datum global_value(Lower *l, File *f, Global *g)
{
  if (g->state == GLOBAL_done) return g->value;
  const Decl *d = global_decl(l, g);
  if (g->state == GLOBAL_busy)
    return fail(l, E210, d->span, "the definition of `%s` uses itself", g->name);
  if (l->global_depth == MAX_DEPTH)
    return fail(l, E210, d->span, "more than %d declarations depend on one another", MAX_DEPTH);
  g->state = GLOBAL_busy;
  uint32_t index = (uint32_t)(g - f->globals.at);
  l->global_depth++;
  Datum v = declare(l, f, d);
  l->global_depth--;
  g = &f->globals.at[index];
  g->state = GLOBAL_done;
  return g->value = v;
}

/* ---- built-ins ---- */

/* Finds an op that only the library can call, as _name, such as channel_means. */
static bool internal_op(const char *name, OpKind *out)
{
  for (uint32_t i = 0; i < OP_COUNT; i++)
    if (strcmp(op_row(i)->name, name) == 0 && op_row((OpKind)i)->signature.internal) {
      *out = (OpKind)i;
      return true;
    }
  return false;
}

/* Returns steps_per_epoch, for schedules. It is known when the block in which the optimizer trains
 * is known. The last batch of an epoch counts if it is kept. */
static int64_t epoch_steps(const Lower *l)
{
  return ampc_groups(l->g->blocks.at[l->run->first].batches, l->settings_of->accumulate);
}

static Datum step_count(Lower *l, const char *name, Span span)
{
  if (!l->settings_of || !l->run)
    return fail(l, E210, span, "`%s` is known in the settings of an optimizer only", name);
  const BlockInfo *b = &l->g->blocks.at[l->run->block];
  l->steps_asked = true;
  if (strcmp(name, "total_steps") == 0 && b->max_steps) return d_int(b->max_steps);
  if (!l->run->samples) {
    fail(l, E604, span, "`%s` is unknown, since the number of samples is unknown", name);
    diag_help(l->c, "pass `samples=` to the source");
    return d_of(D_error);
  }
  return d_int(strcmp(name, "total_steps") == 0 ? epoch_steps(l) * b->epochs : epoch_steps(l));
}

/* Returns `step` or `epoch`. They change with each step, so they are nodes, not numbers. In the
 * settings of an optimizer they are schedules, from which each block makes nodes. */
static Datum counter(Lower *l, OpKind op, Span span)
{
  if (l->settings_of) return counting_schedule(l, op);
  if (!l->run) return fail(l, E210, span, "`%s` has a value in a block only", op_row(op)->name);
  return append(l, span, op, NULL, 0, NULL);
}

/* Returns the value of names that are neither functions nor modules; D_absent if unknown. */
static Datum builtin_value(Lower *l, const char *name, Span span)
{
  static const char *const words[] = {"off", "low", "promote", "tf32", "f64", "int8", "nf4"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i], name) == 0) return d_word(words[i]);
  if (strcmp(name, "pi") == 0) return d_float(M_PI);
  if (strcmp(name, "inf") == 0) return d_float(INFINITY);
  if (strcmp(name, "nan") == 0) return d_float(NAN);
  if (strcmp(name, "training") == 0) return d_bool(l->training);
  if (strcmp(name, "step") == 0) return counter(l, OP_step, span);
  if (strcmp(name, "epoch") == 0) return counter(l, OP_epoch, span);
  if (strcmp(name, "steps_per_epoch") == 0 || strcmp(name, "total_steps") == 0)
    return step_count(l, name, span);
  return d_of(D_absent);
}

/* Reports `file`, which has no value; own_text.c handles it where it is allowed. */
static Datum text_of_op(Lower *l, Span span)
{
  fail(l, E210, span, "`file` stands in an `op`, as the text of its `cuda` or `host`");
  return d_of(D_error);
}

/* Searches functions of the compiler, then ops. Returns D_absent if none has the name. */
static Datum find_function(const char *name)
{
  OpKind op;
  bool internal = name[0] == '_';
  const Native *native = native_find(name + internal, internal);
  if (native) return (Datum){.kind = D_native, .as.native = native};
  if (internal ? internal_op(name + 1, &op) : op_lookup(name, &op))
    return (Datum){.kind = D_op, .as.op = op};
  return d_of(D_absent);
}

/* The same, but searches for each name only once: the tables are long. */
static Datum builtin_function(Lower *l, const char *name)
{
  uint32_t i = name_find(l->arena, &l->functions_index, l->functions.at, l->functions.n,
                         sizeof *l->functions.at, name);
  if (i != NO_NAME) return l->functions.at[i].value;
  Datum found = find_function(name);
  vec_push(l->arena, &l->functions, (BuiltinFunction){name, found});
  return found;
}

/* Finds a built-in: searches the library first, since a def may wrap an op with a similar name.
 * Only the library can use names with `_`. */
static Datum lookup_builtin(Lower *l, File *from, const char *name, Span span)
{
  if (name[0] != '_' || from->builtin) {
    Global *g = file_find(l->library, name);
    if (g) return global_value(l, l->library, g);
    Datum function = builtin_function(l, name);
    if (!d_is(function, D_absent)) return function;
  }
  if (strcmp(name, class_sequential.name) == 0)
    return (Datum){.kind = D_class, .as.class = &class_sequential};
  if (strcmp(name, "file") == 0) return text_of_op(l, span);
  return builtin_value(l, name, span);
}

/* Reports a name that two imports declare: the order of imports must not decide. */
static bool stands_again(Lower *l, const File *f, uint32_t first, const Global *g, Span span)
{
  for (uint32_t i = first + 1; i < f->imports.n; i++) {
    const Global *other = file_find(f->imports.at[i], g->name);
    if (!other || other->decl == g->decl) continue;
    fail(l, E210, span, "`%s` is declared in two imports, %s and %s", g->name,
         diag_place(l->c, g->decl->span).source->path,
         diag_place(l->c, other->decl->span).source->path);
    diag_note(l->c, g->decl->span, "one");
    diag_note(l->c, other->decl->span, "the other one");
    diag_help(l->c, "declare it in this file, or give one of them another name");
    return true;
  }
  return false;
}

/* Finds a global name. Names of the file hide names of its imports, and these hide built-ins. */
Datum lookup_global(Lower *l, File *f, const char *name, Span span)
{
  Global *g = file_find(f, name);
  if (g) return global_value(l, f, g);
  for (uint32_t i = 0; i < f->imports.n; i++) {
    if (!(g = file_find(f->imports.at[i], name))) continue;
    if (stands_again(l, f, i, g, span)) return d_of(D_error);
    return global_value(l, f->imports.at[i], g);
  }
  return lookup_builtin(l, f, name, span);
}

/* ---- unknown names ---- */

/* Adds a file's names for suggestions, except names with `_`, which only the library can use. */
static void add_file_names(Lower *l, NameVec *out, const File *f)
{
  for (uint32_t i = 0; i < f->globals.n; i++)
    if (f->globals.at[i].name[0] != '_') vec_push(l->arena, out, f->globals.at[i].name);
}

void visible_functions(Lower *l, NameVec *out)
{
  for (uint32_t i = 0; i < OP_COUNT; i++)
    if (!op_row((OpKind)i)->signature.internal) vec_push(l->arena, out, op_row(i)->name);
  add_file_names(l, out, l->library);
  native_names(l, out);
}

/* Returns the name visible from `s` with the nearest spelling to `name`; NULL if none is near. */
static const char *nearest_name(Lower *l, Scope *s, const char *name)
{
  NameVec names = {0};
  for (Scope *p = s; p; p = p->parent)
    for (uint32_t i = 0; i < p->names.n; i++) vec_push(l->arena, &names, p->names.at[i].name);
  add_file_names(l, &names, s->file);
  for (uint32_t i = 0; i < s->file->imports.n; i++)
    add_file_names(l, &names, s->file->imports.at[i]);
  visible_functions(l, &names);
  vec_push(l->arena, &names, class_sequential.name);
  vec_push(l->arena, &names, "training");
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++) vec_push(l->arena, &names, ir_dtype_name((DType)i));
  return diag_nearest(name, names.at, names.n);
}

/* Reports a name that is defined elsewhere, but not here: E206. */
static Datum missing_name(Lower *l, const Missing *m, Span span)
{
  if (m->ended) {
    bool loop = strcmp(m->why, "`scan`") == 0;
    fail(l, E206, span, "`%s` is not defined outside of %s", m->name, m->why);
    diag_note(l->c, m->span, "it is defined here, only for the %s",
              loop ? "iteration that computes it" : "steps in which this statement runs");
    diag_help(l->c, loop ? "carry the value, or `emit` it"
                         : "define it outside of the braces if every step needs it");
  } else {
    fail(l, E206, span, "`%s` is not defined when %s", m->name, m->why);
    diag_note(l->c, m->span, "it is defined in the other branch");
    diag_help(l->c, "assign it in both branches");
  }
  return d_of(D_error);
}

/* Reports an unknown name. A name may be unknown because its `if` took the other branch: `if bias {
 * b = ... }` with bias=false, and then a use of b. That message points at the branch. A name that
 * an `every` defines also gets its own message. */
static Datum unknown_name(Lower *l, Scope *s, const char *name, Span span)
{
  for (Scope *p = s; p; p = p->parent) {
    const Missing *m = scope_missing(p, name);
    if (m) return missing_name(l, m, span);
  }
  if (strcmp(name, "self") == 0) {
    fail(l, E203, span, "there is no `self`");
    diag_help(l->c, "members are used by name: `fc1(x)`");
    return d_of(D_error);
  }
  if (strcmp(name, "print") == 0 && print_said(l, s, span)) return d_of(D_error);
  if (foreign_said(l, name, span)) return d_of(D_error);
  if (!nearest_name(l, s, name) && foreign_base_said(l, name, span)) return d_of(D_error);
  fail(l, E201, span, "unknown name `%s`", name);
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_hints; i++) {
    if (strcmp(o->hints[i].name, name) != 0) continue;
    diag_help(l->c, "%s", o->hints[i].text);
    return d_of(D_error);
  }
  const char *near = diag_is_muted(l->c) ? NULL : nearest_name(l, s, name);
  if (near) diag_help(l->c, "did you mean `%s`?", near);
  return d_of(D_error);
}

/* Searches local variables, then the module's members and parameters (parents of a method's scope),
 * then the file. */
Datum lookup_quiet(Lower *l, Scope *s, const char *name, Span span)
{
  for (Scope *p = s; p; p = p->parent) {
    Binding *b = scope_find(p, name);
    if (b) return binding_value(l, b, span);
  }
  return lookup_global(l, s->file, name, span);
}

Datum lookup(Lower *l, Scope *s, const char *name, Span span)
{
  Datum v = lookup_quiet(l, s, name, span);
  if (d_is(v, D_dim)) return dim_misplaced(l, v.as.dim, span);
  return d_is(v, D_absent) ? unknown_name(l, s, name, span) : v;
}
