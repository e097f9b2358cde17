/* The program of a session: the job's file and the accepted inputs; see Note [how a session
 * grows]. */
#include "commands.h"
#include "compiler/graph/ir.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Compiled *compiled_keep(Compiled *p)
{
  if (p) p->users++;
  return p;
}

void compiled_drop(Compiled *p)
{
  if (!p || --p->users) return;
  jit_unload(p->jit);
  compile_destroy(p->c);
  free(p);
}

/* Passes the compile to a new program. */
static Compiled *compiled_of(Compile *c)
{
  Compiled *p = malloc(sizeof *p);
  if (!p) arena_out_of_memory();
  *p = (Compiled){.c = c, .users = 1};
  return p;
}

/* ---- one compile ---- */

/* Adds hints for names that statements cannot use alone: data of a train block, layers. */
static void add_hints(const Repl *r, Compile *c)
{
  const Compile *from = r->latest ? r->latest->c : NULL;
  VEC(NameHint) hints = {0};
  for (uint32_t i = 0; from && i < from->graph->layers.n; i++) {
    const char *layer = arena_strdup(c->arena, from->graph->layers.at[i].name);
    const char *dot = strchr(layer, '.');
    if (!dot || strchr(dot + 1, '.')) continue;
    vec_push(c->arena, &hints,
             (NameHint){dot + 1, arena_printf(c->arena, "write `%s`, the layer", layer)});
  }
  for (uint32_t i = 0; from && i < from->ast->n; i++) {
    const Decl *d = from->ast->at[i];
    for (uint32_t k = 0; d->kind == DECL_train && k < d->as.run.names.n; k++) {
      const char *name = arena_strdup(c->arena, d->as.run.names.at[k].text);
      const char *text =
          arena_printf(c->arena, "`%s` is data of the next batch; :show prints it", name);
      vec_push(c->arena, &hints, (NameHint){name, text});
    }
  }
  c->options.hints = hints.at;
  c->options.n_hints = hints.n;
}

/* Begins a compile with the session's options, changed as the request says. */
static Compile *begin(const Repl *r, const Request *q)
{
  Options options = r->options;
  if (q->target) options.target = q->target;
  options.dump_after = q->dump_after;
  options.watch = q->watch;
  options.silent = q->quiet;
  options.probe_every = q->probe;
  if (q->infer) {
    options.infer_block = q->infer->infer_block;
    options.infer_inputs = q->infer->infer_inputs;
    options.n_infer_inputs = q->infer->n_infer_inputs;
    options.decode = q->infer->decode;
    options.text_from = q->infer->text_from;
    options.text_to = q->infer->text_to;
    options.columns = r->live ? r->live->c->program->columns : NULL;
  }
  Compile *c = compile_create(&options);
  if (q->input) add_hints(r, c);
  return c;
}

static bool read_inputs(const Repl *r, Compile *c)
{
  bool good = true;
  for (uint32_t i = 0; i < r->declared.n; i++) {
    const Part *p = &r->declared.at[i];
    good = compile_add_input(c, p->name, p->text, p->size, NULL) && good;
  }
  return good;
}

/* Reads the file and the inputs; reports the mistakes of all, not only of the first. */
static bool read_parts(const Repl *r, Compile *c)
{
  bool good = !r->file.text || compile_add_file(c, r->file.name, r->file.text, r->file.size);
  return read_inputs(r, c) && good;
}

Compile *program_parse(Repl *r, Ast *file)
{
  Compile *c = begin(r, &(Request){0});
  *file = (Ast){0};
  bool good = !r->file.text || compile_add_file(c, r->file.name, r->file.text, r->file.size);
  for (uint32_t i = 0; i < c->ast->n; i++) vec_push(c->arena, file, c->ast->at[i]);
  if (good && read_inputs(r, c)) return c;
  diag_finish(c);
  compile_destroy(c);
  return NULL;
}

/* If only some declarations are compiled (`all` false), leaves out settings other than precision,
 * which would be reported as unknown. `precision`, if given, replaces the session's precision. */
static void choose_settings(Compile *c, const char *precision, bool all)
{
  Options *o = &c->options;
  Assignment *kept = arena_array(c->arena, Assignment, o->n_settings + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_settings; i++) {
    bool is_precision = strcmp(o->settings[i].key, "precision") == 0;
    if (is_precision ? !precision : all) kept[n++] = o->settings[i];
  }
  if (precision) kept[n++] = (Assignment){"precision", precision};
  o->settings = kept;
  o->n_settings = n;
}

/* Whether an expression needs no such declaration. */
static bool is_of_runs(DeclKind kind)
{
  return kind == DECL_train || kind == DECL_eval || kind == DECL_infer || kind == DECL_optimizer ||
         kind == DECL_setting;
}

/* Joins the bodies of all inputs into one, in order. The final value of an earlier input has been
 * printed already and is left out. */
static void join_bodies(Compile *c)
{
  Ast kept = {0};
  VEC(Stmt *) all = {0};
  Decl *last = NULL;
  for (uint32_t i = 0; i < c->ast->n; i++) {
    Decl *d = c->ast->at[i];
    if (d->kind != DECL_body) {
      if (!is_of_runs(d->kind)) vec_push(c->arena, &kept, d);
      continue;
    }
    const Block *body = &d->as.function.body;
    if (last && all.n && all.at[all.n - 1]->kind == STMT_return) all.n--;
    for (uint32_t k = 0; k < body->n; k++) vec_push(c->arena, &all, body->at[k]);
    last = d;
  }
  if (last) {
    last->as.function.body.at = all.at;
    last->as.function.body.n = all.n;
    vec_push(c->arena, &kept, last);
  }
  *c->ast = kept;
}

/* Drops eval and infer blocks. Only train blocks can compute a value that :show watches; compiling
 * the others would cost time. */
static void keep_trains(Compile *c)
{
  Ast kept = {0};
  for (uint32_t i = 0; i < c->ast->n; i++) {
    DeclKind kind = c->ast->at[i]->kind;
    if (kind != DECL_eval && kind != DECL_infer) vec_push(c->arena, &kept, c->ast->at[i]);
  }
  *c->ast = kept;
}

static bool read_statements(const Repl *r, Compile *c, const Request *q)
{
  for (uint32_t i = 0; i < r->said.n && !q->alone; i++) {
    const Part *p = &r->said.at[i];
    if (!compile_add_input(c, p->name, p->text, p->size, NULL)) return false;
  }
  return compile_add_input(c, q->input->name, q->input->text, q->input->size, NULL);
}

static bool compile(const Repl *r, Compile *c, const Request *q)
{
  if (!read_parts(r, c)) return false;
  if (q->input) {
    if (!read_statements(r, c, q)) return false;
    join_bodies(c);
  }
  if (q->watch) keep_trains(c);
  choose_settings(c, q->precision, !q->input && !q->infer);
  return compile_parsed(c);
}

Compiled *program_compile(Repl *r, const Request *q)
{
  fflush(stdout);
  Compile *c = begin(r, q);
  if (compile(r, c, q)) return compiled_of(c);
  diag_finish(c);
  compile_destroy(c);
  r->failed = r->failed || !q->quiet;
  return NULL;
}

Compile *program_compile_probed(void *repl, const char *precision)
{
  const Request q = {.precision = precision, .probe = true, .quiet = true};
  Compile *c = begin(repl, &q);
  if (compile(repl, c, &q)) return c;
  compile_destroy(c);
  return NULL;
}

/* ---- the latest program ---- */

/* Sets the latest program, and takes over the reference. NULL: the next program_latest compiles. */
static void set_latest(Repl *r, Compiled *p)
{
  compiled_drop(r->latest);
  r->latest = p;
}

Compiled *program_latest(Repl *r)
{
  if (!r->latest) set_latest(r, program_compile(r, &(Request){0}));
  return r->latest;
}

/* Whether the file parses. If not, it is rejected, because every later compile would fail. */
static bool parses(Repl *r, const Part *file)
{
  Compile *c = begin(r, &(Request){0});
  bool good = compile_add_file(c, file->name, file->text, file->size);
  diag_finish(c);
  compile_destroy(c);
  return good;
}

void program_forget(Repl *r)
{
  set_latest(r, NULL);
}

bool program_open(Repl *r, const char *path, bool keep)
{
  uint32_t size;
  const char *why, *text = source_read(r->arena, FILE_JOB, path, &size, &why);
  if (!text) return repl_error(r, "cannot read %s: %s", path, why);
  Part file = {arena_strdup(r->arena, path), text, size};
  if (!parses(r, &file)) return repl_error(r, "%s was not opened", path);
  r->file = file;
  if (!keep) r->declared.n = r->pasts.n = 0;
  set_latest(r, NULL);
  program_latest(r); /* reports mistakes, which later inputs may correct */
  return true;
}

/* ---- inputs ---- */

Assignment *program_set_of(const Repl *r, const char *key)
{
  for (uint32_t i = 0; i < r->sets.n; i++)
    if (strcmp(r->sets.at[i].key, key) == 0) return &r->sets.at[i];
  return NULL;
}

/* Drops values of the key `owner` (if itself) and of keys "owner.x" (if parts). */
static void forget(Assignment *at, uint32_t *n, const char *owner, bool itself, bool parts)
{
  size_t size = strlen(owner);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *n; i++) {
    char next = strncmp(at[i].key, owner, size) == 0 ? at[i].key[size] : '?';
    if (!(itself && !next) && !(parts && next == '.')) at[kept++] = at[i];
  }
  *n = kept;
}

/* Drops earlier -D, --set, :const and :set of the names that are declared anew, because these
 * values changed declarations that are now replaced. */
static void forget_overrides(Repl *r, const Ast *ast)
{
  Options *o = &r->options;
  for (uint32_t i = 0; i < ast->n; i++) {
    const Decl *d = ast->at[i];
    const Name *name = ast_decl_name(d);
    const char *owner = d->kind == DECL_precision ? "precision" : name ? name->text : NULL;
    if (!owner) continue;
    if (d->kind == DECL_const) forget(o->consts, &o->n_consts, owner, true, false);
    forget(o->settings, &o->n_settings, owner, true, true);
    if (d->kind == DECL_optimizer) forget(r->sets.at, &r->sets.n, owner, false, true);
  }
}

/* Accepts declarations. One without errors is accepted even if the rest of the program does not fit
 * it yet, because later inputs may change the rest. */
static bool take_declarations(Repl *r, Compile *c, const Part *part, const Ast *ast)
{
  Past before = past_of(r, input_shown(r, part));
  forget_overrides(r, ast);
  c->options.n_consts = r->options.n_consts;
  c->options.n_settings = r->options.n_settings;
  uint32_t base = c->sources.at[c->sources.n - 1].base;
  bool good = compile_parsed(c);
  if (!good && diag_error_within(c, (Span){base, base + part->size})) {
    compile_destroy(c);
    past_restore(r, &before);
    return repl_error(r, "rejected; the program is unchanged");
  }
  vec_push(r->arena, &r->pasts, before);
  vec_push(r->arena, &r->declared, *part);
  set_latest(r, good ? compiled_of(c) : NULL);
  if (good) return true;
  compile_destroy(c);
  return repl_error(r, "accepted, but the rest of the program does not compile with it yet; :undo "
                       "takes it back");
}

static void add_name(Repl *r, const Expr *target, NameVec *names)
{
  if (target->kind == EXPR_name) vec_push(r->arena, names, arena_strdup(r->arena, target->as.name));
}

/* Whether the input assigns: then it becomes part of the program. An input that only returns a
 * value runs once and is forgotten. Adds the assigned names. */
static bool has_effect(Repl *r, const Ast *ast, NameVec *names)
{
  bool any = false;
  for (uint32_t i = 0; i < ast->n; i++)
    for (uint32_t k = 0; k < ast->at[i]->as.function.body.n; k++) {
      const Stmt *st = ast->at[i]->as.function.body.at[k];
      any = any || st->kind != STMT_return;
      for (uint32_t t = 0; st->kind == STMT_assign && t < st->as.assign.targets.n; t++)
        add_name(r, st->as.assign.targets.at[t], names);
      if (st->kind == STMT_augment) add_name(r, st->as.augment.target, names);
    }
  return any;
}

/* Answers an assignment: `x: f32[3]`. Says how to change a setting of the same name. */
static void tell_assigned(Repl *r, const Part *part, const char *name)
{
  const char *all;
  const char *key = r->latest ? path_end(r->arena, &r->latest->c->settings, name, &all) : NULL;
  value_tell(r, name);
  if (!key) return;
  const char *value = strncmp(part->text, name, strlen(name)) == 0 ? part->text + strlen(name) : "";
  bool plain = value[strspn(value, " ")] == '=';
  printf("%s is a variable; to change the setting, type %s%.*s\n", name, key,
         plain ? (int)strcspn(value, ";\n") : 8, plain ? value : " = VALUE");
}

static bool run_statements(Repl *r, const Part *part, bool keep, const NameVec *assigned)
{
  Compiled *p = program_compile(r, &(Request){.input = part});
  bool good = p && value_run(r, p);
  compiled_drop(p);
  if (!good || !keep) return good;
  vec_push(r->arena, &r->pasts, past_of(r, input_shown(r, part)));
  vec_push(r->arena, &r->said, *part);
  for (uint32_t i = 0; i < assigned->n; i++) tell_assigned(r, part, assigned->at[i]);
  return true;
}

/* Whether an expression names data of the next batch; `hidden`: that a variable of the session
 * hides. */
static bool names_data(Repl *r, const char *text, bool hidden)
{
  bool any = false, quoted = false;
  for (const char *at = text; *at && r->latest && !any;) {
    size_t n = name_size(at);
    quoted = quoted != (*at == '"');
    any = n && !quoted && is_data(r, at) &&
          value_compiles(r, arena_strndup(r->arena, at, n)) == hidden;
    at += n ? n : 1;
  }
  return any;
}

bool program_hides_data(Repl *r, const char *text)
{
  return names_data(r, text, true);
}

bool program_input(Repl *r, const char *text, size_t size)
{
  if (size > INPUT_LIMIT)
    return repl_error(r, "the input has %zu bytes; at most %d are read", size, INPUT_LIMIT);
  Part part = {arena_printf(r->arena, "<%u>", ++r->n_inputs), arena_strndup(r->arena, text, size),
               (uint32_t)size};
  fflush(stdout);
  Compile *c = begin(r, &(Request){0});
  Ast ast = {0};
  bool good = read_parts(r, c);
  good = compile_add_input(c, part.name, part.text, part.size, &ast) && good;
  if (!good || !ast.n) {
    diag_finish(c);
    compile_destroy(c);
    r->failed = r->failed || !good;
    return good;
  }
  if (ast.at[0]->kind != DECL_body) return take_declarations(r, c, &part, &ast);
  NameVec assigned = {0};
  bool keep = has_effect(r, &ast, &assigned);
  compile_destroy(c);
  bool wrong = !keep && names_data(r, part.text, false) && !value_compiles(r, part.text);
  if (wrong && !program_hides_data(r, part.text)) return command_show(r, part.text);
  return run_statements(r, &part, keep, &assigned);
}

/* ---- options ---- */

/* Returns a copy in which the key's value is replaced or added. */
static Assignment *with(Arena *arena, const Assignment *old, uint32_t *n, const char *key,
                        const char *value)
{
  Assignment *all = arena_array(arena, Assignment, *n + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < *n; i++)
    if (strcmp(old[i].key, key) != 0) all[count++] = old[i];
  all[count++] = (Assignment){arena_strdup(arena, key), arena_strdup(arena, value)};
  *n = count;
  return all;
}

/* Restores the old options if the program does not compile with the new ones. */
static bool recompile(Repl *r, const Past *before)
{
  Compiled *p = program_compile(r, &(Request){0});
  if (p) {
    vec_push(r->arena, &r->pasts, *before);
    set_latest(r, p);
    return true;
  }
  past_restore(r, before);
  return repl_error(r, "rejected; the program is unchanged");
}

bool program_const(Repl *r, const char *name, const char *value)
{
  Past before = past_of(r, arena_printf(r->arena, ":const %s=%s", name, value));
  Options *o = &r->options;
  o->consts = with(r->arena, o->consts, &o->n_consts, name, value);
  return recompile(r, &before);
}

bool program_setting(Repl *r, const char *key, const char *value)
{
  Past before = past_of(r, arena_printf(r->arena, ":set %s=%s", key, value));
  Options *o = &r->options;
  o->settings = with(r->arena, o->settings, &o->n_settings, key, value);
  return recompile(r, &before);
}

void program_as_given(Repl *r)
{
  Options *g = &r->given, none = {.n_consts = 0};
  if (strcmp(r->options.input, g->input) != 0) g = &none;
  r->options.consts = assignments_copy(r->arena, g->consts, g->n_consts);
  r->options.settings = assignments_copy(r->arena, g->settings, g->n_settings);
  r->options.n_consts = g->n_consts;
  r->options.n_settings = g->n_settings;
}
