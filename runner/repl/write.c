/* :write writes the program of the session to one file for `amp train` and `ampc`. The job's text
 * is kept, with its comments. A typed declaration replaces the one of the same name in the text, or
 * is appended. Values of -D, --set, :const, :precision and :set replace those in the text. A few
 * values have no place in the text (a const of an import, a setting of a group); for them, the
 * command that :write prints has an option. The text is compiled before it is written, and must be
 * the same program as the session's. */
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

typedef struct Change { /* `text` replaces the span; an empty span: inserts before it */
  Span span;
  const char *text;
} Change;

typedef struct Writing {
  Repl *r;
  Compile *c; /* contains the tree of the whole session */
  VEC(Change) changes;
  Text behind; /* text to append at the end */
  Assignments consts, settings;
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
    if (c->span.end > c->span.start) continue;
    text_add(out, text + (at - span.start), 1); /* an insertion: skip its place */
    at++;
  }
  text_add(out, text + (at - span.start), span.end - at);
}

static void change(Writing *w, Span span, const char *text)
{
  vec_push(w->c->arena, &w->changes, (Change){span, text});
}

/* Returns the end of a value with the brackets around it, which its span does not include. Their
 * number is counted between `from` and the value. */
static uint32_t end_of_value(const Compile *c, uint32_t from, const Expr *value)
{
  const Source *source = diag_place(c, value->span).source;
  const char *text = source->text;
  uint32_t at = from - source->base, open = 0;
  while (at < value->span.start - source->base) {
    open += text[at] == '(';
    at += text[at] == '#' ? (uint32_t)strcspn(text + at, "\n") : 1;
  }
  for (at = value->span.end - source->base; open && text[at]; at++) {
    if (text[at] == '#') at += (uint32_t)strcspn(text + at, "\n");
    open -= text[at] == ')';
  }
  return source->base + at;
}

/* Returns the end of the last argument of a list that begins at `before`. */
static uint32_t end_of_list(const Compile *c, uint32_t before, const ArgList *list)
{
  const Arg *last = &list->at[list->n - 1];
  uint32_t from = last->key.text ? last->key.span.end
                  : list->n > 1  ? last[-1].value->span.end
                                 : before;
  return end_of_value(c, from, last->value);
}

/* Inserts key=value at the end of a list. `first`: the text before the first insertion. */
static void add_to_list(Writing *w, uint32_t at, const char *first, const char *key,
                        const char *value)
{
  Arena *arena = w->c->arena;
  for (uint32_t i = 0; i < w->changes.n; i++) {
    Change *c = &w->changes.at[i];
    if (c->span.start != at || c->span.end != at) continue;
    c->text = arena_printf(arena, "%s, %s=%s", c->text, key, value);
    return;
  }
  change(w, (Span){at, at}, arena_printf(arena, "%s%s=%s", first, key, value));
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

static const Expr *find_argument(const ArgList *list, const char *key, size_t n)
{
  for (uint32_t i = 0; i < list->n; i++) {
    const char *own = list->at[i].key.text;
    if (own && strlen(own) == n && strncmp(own, key, n) == 0) return list->at[i].value;
  }
  return NULL;
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

static bool set_precision(Writing *w, const char *value)
{
  for (uint32_t i = 0; i < w->c->ast->n; i++)
    if (w->c->ast->at[i]->kind == DECL_precision) {
      change(w, w->c->ast->at[i]->as.object.value->span, value);
      return true;
    }
  text_printf(&w->behind, "precision %s\n", value);
  return true;
}

/* Sets a key such as `batch` in the `with` of a block. A block without `with` gets one. */
static void set_option(Writing *w, const Decl *d, const char *key, const char *value)
{
  const ArgList *with = &d->as.run.with;
  const Expr *old = find_argument(with, key, strlen(key));
  bool text = strcmp(key, "save") == 0 || strcmp(key, "name") == 0 || strcmp(key, "resume") == 0;
  const char *given = literal(w, text, value);
  const NameList *names = &d->as.run.names;
  uint32_t before = names->n ? names->at[names->n - 1].span.end : d->span.start;
  if (old)
    change(w, old->span, given);
  else if (with->n)
    add_to_list(w, end_of_list(w->c, before, with), ", ", key, given);
  else
    add_to_list(w, end_of_value(w->c, before, d->as.run.source), " with ", key, given);
}

/* Sets a key of block `owner`: "train", "train2", ..: by pass lower's numbers, whatever the
 * name=. */
static bool set_block(Writing *w, const char *owner, const char *key, const char *value)
{
  uint32_t seen[2] = {0, 0};
  for (uint32_t i = 0; i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    char name[32];
    if (d->kind != DECL_train && d->kind != DECL_eval) continue;
    bool train = d->kind == DECL_train;
    uint32_t number = ++seen[train];
    snprintf(name, sizeof name, number > 1 ? "%s%u" : "%s", train ? "train" : "eval", number);
    if (strcmp(name, owner) != 0) continue;
    set_option(w, d, key, value);
    return true;
  }
  return false;
}

/* Returns the position of a call's first argument. */
static uint32_t start_of_arguments(const Compile *c, const Expr *call)
{
  Span callee = call->as.call.callee->span;
  return callee.end + (uint32_t)strcspn(source_at(c, (Span){callee.end, callee.end}), "(") + 1;
}

/* Returns the argument named by the first `n` letters of `key`. By position only the learning rate
 * can be found: it is the second argument of every optimizer, after the model. */
static const Expr *argument_of(const ArgList *args, const char *key, size_t n, bool top)
{
  const Expr *value = find_argument(args, key, n);
  bool second = args->n > 1 && !args->at[1].key.text && !args->at[1].star;
  bool is_lr = n == 2 && strncmp(key, "lr", n) == 0;
  return !value && top && second && is_lr ? args->at[1].value : value;
}

/* Adds an argument to an optimizer whose other arguments have keys. A schedule gets no new
 * argument, because it may have the value by position or under another name. */
static bool add_argument(Writing *w, const Expr *call, const char *key, const char *value)
{
  const ArgList *args = &call->as.call.args;
  if (!args->n || (args->n > 1 && !args->at[1].key.text)) return false;
  add_to_list(w, end_of_list(w->c, start_of_arguments(w->c, call), args), ", ", key, value);
  return true;
}

/* Sets "lr" in `AdamW(net, lr=0.1)`, or "lr.peak" in a schedule that has `peak=`. */
static bool set_argument(Writing *w, const Expr *call, const char *key, const char *value)
{
  for (bool top = true; call->kind == EXPR_call; top = false) {
    size_t n = strcspn(key, ".");
    const Expr *old = argument_of(&call->as.call.args, key, n, top);
    if (!key[n] && old) return change(w, old->span, value), true;
    if (!old) return !key[n] && top && add_argument(w, call, key, value);
    call = old;
    key += n + 1;
  }
  return false;
}

static bool set_optimizer(Writing *w, const char *owner, const char *key, const char *value)
{
  if (strncmp(key, "group", 5) == 0 || strncmp(key, "beta", 4) == 0) return false;
  for (uint32_t i = 0; i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    if (d->kind == DECL_optimizer && strcmp(d->name.text, owner) == 0)
      return set_argument(w, d->as.object.value, key, value);
  }
  return false;
}

static bool set_setting(Writing *w, const char *key, const char *value)
{
  if (strcmp(key, "precision") == 0) return set_precision(w, value);
  const char *dot = strchr(key, '.');
  if (!dot) return false;
  const char *owner = arena_strndup(w->c->arena, key, (size_t)(dot - key));
  return set_block(w, owner, dot + 1, value) || set_optimizer(w, owner, dot + 1, value);
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

/* Puts each value into the text or, if it has no place there, into the command. :set overrides
 * --set. */
static void set_values(Writing *w)
{
  const Options *o = &w->r->options;
  Arena *arena = w->c->arena;
  for (uint32_t i = 0; i < o->n_consts; i++)
    if (is_last(o->consts, o->n_consts, i) && !set_const(w, o->consts[i].key, o->consts[i].value))
      vec_push(arena, &w->consts, o->consts[i]);
  for (uint32_t i = 0; i < o->n_settings; i++) {
    const Assignment *a = &o->settings[i];
    if (!is_last(o->settings, o->n_settings, i) || program_set_of(w->r, a->key)) continue;
    if (is_overruled(w->r, a->key)) continue;
    if (!set_setting(w, a->key, a->value)) vec_push(arena, &w->settings, *a);
  }
  for (uint32_t i = 0; i < w->r->sets.n; i++) {
    const Assignment *a = &w->r->sets.at[i];
    if (!set_setting(w, a->key, a->value)) vec_push(arena, &w->settings, *a);
  }
}

/* Writes the session's --seed. A block's `seed=` overrides manual_seed, so both are set. */
static void set_seed(Writing *w)
{
  const char *seed = arena_printf(w->c->arena, "%llu", (unsigned long long)w->r->seed);
  bool found = false;
  for (uint32_t i = 0; w->r->seed_given && i < w->c->ast->n; i++) {
    const Decl *d = w->c->ast->at[i];
    bool run = d->kind == DECL_train || d->kind == DECL_eval;
    const Expr *old = run ? find_argument(&d->as.run.with, "seed", 4) : NULL;
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
    text_init(&out, c->arena);
    add_text(w, trimmed(c, d->span), &out);
    if (i < file->n)
      change(w, trimmed(c, file->at[i]->span), out.at);
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
           a->shuffle == b->shuffle && a->drop_last == b->drop_last &&
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
  options.settings = w->settings.at;
  options.n_settings = w->settings.n;
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

static void add_option(Text *line, const char *option, const char *key, const char *value)
{
  text_puts(line, option);
  shell_word(line, arena_printf(line->arena, "%s=%s", key, value));
  text_puts(line, " ");
}

/* Prints the command that runs the written file, with the options that it needs. */
static void tell(const Writing *w, const char *path)
{
  const Repl *r = w->r;
  Text line = text_new(w->c->arena);
  for (uint32_t i = 0; i < w->consts.n; i++)
    add_option(&line, "-D ", w->consts.at[i].key, w->consts.at[i].value);
  for (uint32_t i = 0; i < w->settings.n; i++)
    add_option(&line, "--set ", w->settings.at[i].key, w->settings.at[i].value);
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
