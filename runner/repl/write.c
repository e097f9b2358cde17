/* :write writes the program of the session to one file for `amp train` and `ampc`. The job's text
 * is kept, with its comments. A typed declaration replaces the one of the same name in the text, or
 * is appended. Values of -D, :const and :precision replace those in the text; each setting of --set
 * and :set becomes a line at the end, `opt.lr = 0.01`. A const of an import has no place in the
 * text; for it, the command that :write prints has an option. The text is compiled before it is
 * written, and must be the same program as the session's. */
#include "commands.h"
#include "runner/job/options.h"
#include "compiler/cli/build_line.h"
#include "compiler/base/user_text.h"
#include "common/file.h"
#include "runtime/plan/formats.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Change { /* `text` replaces the span */
  Span span;
  const char *text;
} Change;

typedef struct Writing {
  Repl *r;
  Compile *c; /* contains the tree of the whole session */
  VEC(Change) changes;
  Text behind; /* text to append at the end */
  Assignments consts;
} Writing;

/* ---- text ---- */

static const char *source_at(const Compile *c, Span span)
{
  Place place = diag_place(c, span);
  return place.source->text + (span.start - place.source->base);
}

/* Returns the span of a declaration without the final newline. */
static Span trimmed(const Compile *c, Span span)
{
  const char *text = source_at(c, span);
  while (span.end > span.start && isspace((unsigned char)text[span.end - span.start - 1]))
    span.end--;
  return span;
}

/* Returns the span with the comment and the newline that follow it. */
static Span with_comment(const Compile *c, Span span)
{
  const char *text = source_at(c, span);
  size_t n = span.end - span.start, blank = strspn(text + n, " \t");
  if (text[n + blank] == '#') blank += strcspn(text + n + blank, "\n");
  if (text[n + blank] == '\n') span.end += (uint32_t)blank + 1;
  return span;
}

/* Returns the first change that begins in [from, end); NULL: no change. */
static const Change *next_change(const Writing *w, uint32_t from, uint32_t end)
{
  const Change *found = NULL;
  for (uint32_t i = 0; i < w->changes.n; i++) {
    const Change *c = &w->changes.at[i];
    if (c->span.start < from || c->span.start >= end) continue;
    if (!found || c->span.start < found->span.start) found = c;
  }
  return found;
}

/* Adds the text of a span with all changes in it. */
static void add_text(Writing *w, Span span, Text *out)
{
  const char *text = source_at(w->c, span);
  uint32_t at = span.start;
  for (const Change *c; (c = next_change(w, at, span.end));) {
    text_add(out, text + (at - span.start), c->span.start - at);
    text_puts(out, c->text);
    at = c->span.end;
  }
  text_add(out, text + (at - span.start), span.end - at);
}

static void change(Writing *w, Span span, const char *text)
{
  vec_push(w->c->arena, &w->changes, (Change){span, text});
}

/* ---- values ---- */

/* Returns the value, with quotes if it is a string, which needs none at the prompt. */
static const char *literal(const Writing *w, bool is_text, const char *value)
{
  return is_text && value[0] != '"' ? string_literal(w->c->arena, value) : value;
}

/* Whether the value of a const is a string; its expression may be "a" + "b". */
static bool is_text_const(Repl *r, const char *name)
{
  Part part = {"<const>", name, (uint32_t)strlen(name)};
  Compiled *p = program_compile(r, &(Request){.input = &part, .alone = true, .quiet = true});
  bool text = p && p->c->answer && strncmp(p->c->answer, "str ", 4) == 0;
  compiled_drop(p);
  return text;
}

static bool set_const(Writing *w, const char *key, const char *value)
{
  for (uint32_t i = 0; i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    if (d->kind != DECL_const || strcmp(d->name.text, key) != 0) continue;
    change(w, d->as.constant.value->span, literal(w, is_text_const(w->r, key), value));
    return true;
  }
  return false;
}

static void set_precision(Writing *w, const char *value)
{
  for (uint32_t i = 0; i < w->c->ast->n; i++)
    if (w->c->ast->at[i]->kind == DECL_precision) {
      change(w, w->c->ast->at[i]->as.object.value->span, value);
      return;
    }
  text_printf(&w->behind, "precision %s\n", value);
}

static bool is_text_setting(const char *key)
{
  static const char *const names[] = {"save", "resume", "name", "exchange"};
  const char *dot = strrchr(key, '.');
  for (size_t i = 0; dot && i < sizeof names / sizeof *names; i++)
    if (strcmp(dot + 1, names[i]) == 0) return true;
  return false;
}

/* Changes the line of a setting; if the text has none, appends it. */
static void set_setting(Writing *w, const char *key, const char *value)
{
  const char *given = literal(w, is_text_setting(key), value);
  if (strcmp(key, "precision") == 0) {
    set_precision(w, value);
    return;
  }
  for (uint32_t i = 0; i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    if (d->kind != DECL_setting || strcmp(d->name.text, key) != 0) continue;
    change(w, d->as.value->span, given);
    return;
  }
  text_printf(&w->behind, "%s = %s\n", key, given);
}

/* Whether this value of a key applies: the last of several values does. */
static bool is_last(const Assignment *at, uint32_t n, uint32_t i)
{
  for (uint32_t k = i + 1; k < n; k++)
    if (strcmp(at[k].key, at[i].key) == 0) return false;
  return true;
}

/* Whether the session's --seed overrides this seed of a block (set_seed). */
static bool is_overruled(const Repl *r, const char *key)
{
  const char *dot = strchr(key, '.');
  return r->seed_given && dot && strcmp(dot, ".seed") == 0;
}

/* Puts each value into the text; a const of an import, into the command. :set overrides --set. */
static void set_values(Writing *w)
{
  const Options *o = &w->r->options;
  for (uint32_t i = 0; i < o->n_consts; i++)
    if (is_last(o->consts, o->n_consts, i) && !set_const(w, o->consts[i].key, o->consts[i].value))
      vec_push(w->c->arena, &w->consts, o->consts[i]);
  for (uint32_t i = 0; i < o->n_settings; i++) {
    const Assignment *a = &o->settings[i];
    if (!is_last(o->settings, o->n_settings, i) || program_set_of(w->r, a->key)) continue;
    if (is_overruled(w->r, a->key)) continue;
    set_setting(w, a->key, a->value);
  }
  for (uint32_t i = 0; i < w->r->sets.n; i++)
    set_setting(w, w->r->sets.at[i].key, w->r->sets.at[i].value);
}

/* Returns the value of a block's `seed=`; NULL: it has none. */
static const Expr *seed_of(const Decl *d)
{
  const ArgList *with = &d->as.run.with;
  for (uint32_t i = 0; i < with->n && (d->kind == DECL_train || d->kind == DECL_eval); i++)
    if (strcmp(with->at[i].key.text, "seed") == 0) return with->at[i].value;
  return NULL;
}

/* Writes the session's --seed. A block's `seed=` overrides manual_seed, so both are set. */
static void set_seed(Writing *w)
{
  const char *seed = arena_printf(w->c->arena, "%llu", (unsigned long long)w->r->seed);
  bool found = false;
  for (uint32_t i = 0; w->r->seed_given && i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    const Expr *old = seed_of(d);
    if (old) change(w, old->span, seed);
    if (d->kind != DECL_expr || d->as.value->kind != EXPR_call) continue;
    change(w, trimmed(w->c, d->span), arena_printf(w->c->arena, "manual_seed(%s)", seed));
    found = true;
  }
  if (w->r->seed_given && !found) text_printf(&w->behind, "manual_seed(%s)\n", seed);
}

/* ---- the whole text ---- */

/* Returns the whole text. A declaration of the session with an index below file->n has replaced the
 * file's declaration of that index (ast_merge); later declarations are appended. */
static const char *whole_text(Writing *w, const Ast *file)
{
  Compile *c = w->c;
  Text out;
  for (uint32_t i = 0; i < c->ast->n; i++) {
    const Decl *d = c->ast->at[i];
    if (i < file->n && d == file->at[i]) continue;
    out = text_new(c->arena);
    bool dropped = d->kind == DECL_setting && !*d->name.text;
    if (!dropped) add_text(w, trimmed(c, d->span), &out);
    Span replaced = i < file->n ? trimmed(c, file->at[i]->span) : (Span){0};
    if (i < file->n)
      change(w, dropped ? with_comment(c, replaced) : replaced, out.at);
    else
      text_printf(&w->behind, "%s\n", out.at);
  }
  text_init(&out, c->arena);
  const Part *f = &w->r->file;
  if (f->text) add_text(w, (Span){c->sources.at[0].base, c->sources.at[0].base + f->size}, &out);
  if (out.n && out.at[out.n - 1] != '\n') text_puts(&out, "\n");
  text_puts(&out, w->behind.at);
  return out.at;
}

/* ---- is it the same program? ---- */

static bool same_blocks(const ampc_program *p, const ampc_program *q)
{
  bool same = p->n_blocks == q->n_blocks;
  for (uint32_t i = 0; same && i < p->n_blocks; i++) {
    const ampc_block *a = &p->blocks[i], *b = &q->blocks[i];
    same = a->kind == b->kind && strcmp(a->name, b->name) == 0 && a->batch == b->batch &&
           a->epochs == b->epochs && a->max_steps == b->max_steps && a->every == b->every &&
           a->shuffle == b->shuffle && a->drop_last == b->drop_last && a->balance == b->balance &&
           a->n_sources == b->n_sources && a->n_metrics == b->n_metrics;
  }
  return same;
}

static bool same_params(const ampc_program *p, const ampc_program *q)
{
  bool same = p->n_params == q->n_params && p->n_shares == q->n_shares;
  for (uint32_t i = 0; same && i < p->n_shares; i++)
    same = strcmp(p->shares[i].path, q->shares[i].path) == 0 &&
           p->shares[i].optimizer == q->shares[i].optimizer;
  for (uint32_t i = 0; same && i < p->n_params; i++) {
    const ampc_param *a = &p->params[i], *b = &q->params[i];
    same = strcmp(a->path, b->path) == 0 && a->rank == b->rank && a->optimizer == b->optimizer &&
           memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0 && a->init.kind == b->init.kind &&
           a->init.a == b->init.a && a->init.b == b->init.b;
  }
  return same;
}

/* Compares settings, with the values of :set. */
static bool same_settings(const Repl *r, const ampc_program *p, const ampc_program *q)
{
  bool same = p->n_settings == q->n_settings;
  for (uint32_t i = 0; same && i < p->n_settings; i++) {
    const Assignment *set = program_set_of(r, p->settings[i].name);
    double value = set ? number_of(set->value) : p->settings[i].value;
    same = strcmp(p->settings[i].name, q->settings[i].name) == 0 &&
           (float)value == (float)q->settings[i].value;
  }
  return same;
}

/* Compiles the text under its new name and compares the program with the session's. */
static bool check_text(Writing *w, const char *path, const char *text)
{
  Repl *r = w->r;
  const ampc_program *p = r->latest->c->program, *q;
  Options options = r->options;
  options.input = path;
  options.consts = w->consts.at;
  options.n_consts = w->consts.n;
  options.n_settings = 0;
  Compile *c = compile_create(&options);
  bool good = compile_text(c, path, text, strlen(text));
  if (!good) repl_error(r, "%s was not written: the program does not compile as a file", path);
  q = c->program;
  const char *what = !good ? NULL
                     : strcmp(p->precision, q->precision) || p->n_kernels != q->n_kernels
                         ? "kernels"
                     : !same_params(p, q)                             ? "parameters"
                     : !same_blocks(p, q)                             ? "blocks"
                     : !same_settings(r, p, q)                        ? "settings"
                     : q->seed != (r->seed_given ? r->seed : p->seed) ? "seed"
                                                                      : NULL;
  if (what)
    good = repl_error(r, "%s was not written: compiled from the file, the %s would differ", path,
                      what);
  compile_destroy(c);
  return good;
}

/* ---- the command ---- */

/* Whether the program reads files by a path relative to the job's folder. */
static bool has_relative_data(const ampc_program *p)
{
  for (uint32_t i = 0; i < p->n_sources; i++) {
    const ampc_format *format = ampc_format_of(p->sources[i].kind);
    if (format && format->probe && p->sources[i].path[0] != '/') return true;
  }
  return false;
}

/* Prints the command that runs the written file, with the options that it needs. */
static void tell(const Writing *w, const char *path)
{
  const Repl *r = w->r;
  Text line = text_new(w->c->arena);
  for (uint32_t i = 0; i < w->consts.n; i++) {
    const Assignment *a = &w->consts.at[i];
    text_puts(&line, "-D ");
    shell_word(&line, arena_printf(line.arena, "%s=%s", a->key, a->value));
    text_puts(&line, " ");
  }
  for (uint32_t i = 0; i < r->options.n_include_dirs; i++) {
    text_puts(&line, "-I ");
    shell_word(&line, r->options.include_dirs[i]);
    text_puts(&line, " ");
  }
  if (strcmp(folder_of(w->c->arena, path), r->data_dir) != 0 &&
      has_relative_data(r->latest->c->program)) {
    text_puts(&line, "--data-dir ");
    shell_word(&line, r->data_dir);
    text_puts(&line, " ");
  }
  shell_word(&line, arena_printf(w->c->arena, "%s%s", path[0] == '-' ? "./" : "", path));
  printf("wrote %s: amp train %s\n", arena_shown(w->c->arena, path, ""), line.at);
  if (r->said.n)
    printf("%u statement%s of the session %s not part of a program and remain%s outside\n",
           r->said.n, r->said.n == 1 ? "" : "s", r->said.n == 1 ? "is" : "are",
           r->said.n == 1 ? "s" : "");
}

static bool write_program(Writing *w, const Ast *file, const char *path)
{
  set_values(w);
  set_seed(w);
  const char *text = whole_text(w, file);

  if (!check_text(w, path, text) ||
      !repl_check(w->r, file_write(path, &file_job, text, (int64_t)strlen(text))))
    return false;
  tell(w, path);
  return true;
}

/* Runs `:write FILE`; `:write! FILE` overwrites an existing file. */
bool command_write(Repl *r, const char *arg)
{
  bool over = *arg == '!';
  if (over) arg += 1 + strspn(arg + 1, " \t");
  if (!*arg) return repl_error(r, ":write needs a file");
  if (!over && access(arg, F_OK) == 0)
    return repl_error(r, "%s exists; :write! %s overwrites it", arg, arg);
  if (!program_latest(r)) return false;
  Ast file;
  Writing w = {.r = r, .c = program_parse(r, &file)};
  if (!w.c) return false;
  text_init(&w.behind, w.c->arena);
  bool good = write_program(&w, &file, arg);
  compile_destroy(w.c);
  return good;
}
