/* Applies options of the command line that change the job: -D NAME=VALUE replaces a const, and
 * --set object.key=value, or a line `object.key = value` of the job, replaces a setting. Values are
 * written as in the language. */
#include "elaborate.h"
#include "evaluate.h"

/* Parses the text after `=` as a const in a source of its own. So messages about it look like any
 * other, with the option as the file name. */
static Expr *parse_value(Lower *l, const char *option, const char *text)
{
  const char *source = arena_printf(l->arena, "const value = %s\n", text);
  uint32_t base = diag_add_source(l->c, option, source, (uint32_t)strlen(source), false);
  Ast ast = {0};
  if (!ast_parse(l->c, base, &ast)) return NULL;
  if (ast.n == 1 && ast.at[0]->kind == DECL_const) return ast.at[0]->as.constant.value;
  fail(l, E207, (Span){0, 0}, "%s: expected one value, on one line", option);
  return NULL;
}

/* Returns the kind of the replaced value, for a message. */
static const char *kind_name(Datum d)
{
  switch ((DatumKind)d.kind) {
  case D_bool:
    return "bool";
  case D_int:
    return "int";
  case D_float:
    return "float";
  case D_str:
    return "str";
  case D_list:
    return "list";
  case D_dtype:
    return "a type";
  case D_schedule:
    return "a schedule";
  default:
    return "another value";
  }
}

/* Evaluates a value that replaces `like`; `what` and `place`: for a message. An int can replace a
 * float. Any other value must have the kind of `like`: `-D WIDTH=wide` is a mistake. */
static bool new_value(Lower *l, const char *what, Span place, const Expr *e, Datum like, Datum *out)
{
  *out = eval(l, scope_new(l, NULL, l->job, NULL), e);
  if (d_is(*out, D_error)) return false;
  if (like.kind == D_float && out->kind == D_int) *out = d_float((double)out->as.integer);
  bool free_kind = like.kind == D_none || like.kind == D_absent;
  bool number = like.kind == D_schedule && d_is_number(*out);
  if (free_kind || number || out->kind == like.kind) return true;
  return refuse(l, E207, place, "%s: the old value is %s, so the new one must be %s, got %s", what,
                kind_name(like), kind_name(like), d_kind_text(l, *out));
}

/* Reads the value of an option. Strings need no quotes on a command line. */
static bool option_value(Lower *l, const char *option, const char *text, Datum like, Datum *out,
                         Span *span)
{
  if (like.kind == D_str && text[0] != '"') {
    *out = d_str(text);
    *span = (Span){0, 0};
    return true;
  }
  const Expr *e = parse_value(l, option, text);
  if (!e) return false;
  *span = e->span;
  return new_value(l, option, (Span){0, 0}, e, like, out);
}

/* ---- consts ---- */

/* Applies -D, which replaces consts of the job and its imports, never consts of the library. */
bool const_override(Lower *l, File *f, const Decl *decl, Datum *value)
{
  const Options *o = &l->c->options;
  const char *name = decl->name.text;
  for (uint32_t i = 0; i < o->n_consts && !f->builtin; i++) {
    if (strcmp(o->consts[i].key, name) != 0) continue;
    const char *option = arena_printf(l->arena, "-D %s=%s", name, o->consts[i].value);
    Datum given;
    Span span;
    if (!option_value(l, option, o->consts[i].value, *value, &given, &span)) return false;
    *value = given;
  }
  return true;
}

/* True if a file has a const of that name. Else collects all names for the suggestion. */
static bool is_const(Lower *l, const char *name, NameVec *names)
{
  for (uint32_t i = 0; i < l->files.n; i++) {
    const File *f = l->files.at[i];
    for (uint32_t k = 0; k < f->globals.n && !f->builtin; k++) {
      const Global *g = &f->globals.at[k];
      if (g->decl->kind != DECL_const) continue;
      if (strcmp(g->name, name) == 0) return true;
      vec_push(l->arena, names, g->name);
    }
  }
  return false;
}

/* Checks -D before anything is evaluated, so that a message about a misspelt name comes first. */
void check_consts(Lower *l)
{
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_consts; i++) {
    NameVec names = {0};
    if (o->for_many_jobs || is_const(l, o->consts[i].key, &names)) continue;
    fail(l, E207, (Span){0, 0}, "-D %s=%s: no such const", o->consts[i].key, o->consts[i].value);
    diag_help_names(l->c, o->consts[i].key, names.at, names.n);
  }
}

/* ---- settings ---- */

static bool is_known(Lower *l, const char *key)
{
  const NameVec *known = &l->c->settings;
  return name_find(l->arena, &l->known_index, known->at, known->n, sizeof *known->at, key) !=
         NO_NAME;
}

/* Returns the line of the job that sets a key, `opt.lr = 0.01`; NULL: none. */
static const Decl *line_of_setting(const Lower *l, const char *key)
{
  const Ast *ast = l->job->ast;
  for (uint32_t i = 0; i < ast->n; i++)
    if (ast->at[i]->kind == DECL_setting && strcmp(ast->at[i]->name.text, key) == 0)
      return ast->at[i];
  return NULL;
}

/* Returns the text that --set gives for a key, or for an end of it, as `lr` of opt.lr; NULL: none.
 * If a key is given several times, the last one wins. check_settings() reports an end of several
 * keys. */
static const char *text_of_setting(const Lower *l, const char *key)
{
  const Options *o = &l->c->options;
  for (uint32_t i = o->n_settings; i-- > 0;)
    if (path_ends(key, o->settings[i].key)) return o->settings[i].value;
  return NULL;
}

static void make_known(Lower *l, const char *key)
{
  if (!is_known(l, key)) vec_push(l->arena, &l->c->settings, arena_strdup(l->arena, key));
}

/* Whether --set or a line of the job sets a key. Code that accepts a key calls this function or the
 * next ones, which make the key known. At the end of the pass, all other keys are mistakes. */
bool setting_given(Lower *l, const char *key)
{
  make_known(l, key);
  return text_of_setting(l, key) || line_of_setting(l, key);
}

/* Returns the text of --set for a key that no line can set, such as `precision`, which has a
 * declaration. */
const char *setting_text_given(Lower *l, const char *key)
{
  make_known(l, key);
  return text_of_setting(l, key);
}

/* Replaces *value, and the place that messages about it show, if --set names its key, else if a
 * line of the job does. Returns false after a message if the new value is wrong. */
bool setting_value(Lower *l, const char *key, Datum *value, Span *span)
{
  make_known(l, key);
  const char *text = text_of_setting(l, key);
  const Decl *d = line_of_setting(l, key);
  if (text)
    return option_value(l, arena_printf(l->arena, "--set %s=%s", key, text), text, *value, value,
                        span);
  if (!d) return true;
  *span = d->as.value->span;
  return new_value(l, key, *span, d->as.value, *value, value);
}

/* Helps with the setting that has a similar name, or a similar last part: `lrr` for opt.lr. */
static void help_setting(Lower *l, const char *key)
{
  const NameVec *known = &l->c->settings;
  const char **ends = arena_array(l->arena, const char *, known->n + 1);
  for (uint32_t i = 0; i < known->n; i++) {
    const char *dot = strrchr(known->at[i], '.');
    ends[i] = dot ? dot + 1 : known->at[i];
  }
  const char *near = diag_nearest(key, known->at, known->n);
  const char *end = near ? NULL : diag_nearest(key, ends, known->n);
  for (uint32_t i = 0; end && !near; i++)
    if (ends[i] == end) near = known->at[i];
  const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
  if (strcmp(last, "clip_norm") == 0 || strcmp(last, "skip_above") == 0)
    diag_help(l->c, "write `%s=..` in the optimizer; then --set changes it", last);
  else if (near)
    diag_help(l->c, "did you mean `%s`?", near);
  else
    diag_help(l->c, "`:set` at the prompt, `amp repl %s`, lists the settings",
              file_name(l->c->options.input));
}

static void check_line(Lower *l, const Decl *d)
{
  const char *key = d->name.text;
  const Decl *first = line_of_setting(l, key);
  if (!*key) return; /* dropped by ast_merge */
  if (first != d) {
    fail(l, E210, d->name.span, "`%s` is set twice", key);
    diag_note(l->c, first->name.span, "the first one is here");
  } else if (!is_known(l, key) && !l->c->options.infer_block) { /* which knows no optimizer */
    const char *second = strchr(key, '.') + 1;                  /* torch.backends.cudnn.benchmark */
    if (foreign_said(l, arena_strndup(l->arena, second, strcspn(second, ".")), d->name.span))
      return;
    fail(l, E207, d->name.span, "the job has no setting `%s`", key);
    help_setting(l, key);
  }
}

/* Reports a --set that names no setting, or several. */
static void check_given(Lower *l, const Assignment *given)
{
  const NameVec *known = &l->c->settings;
  NameVec meant = {0};
  for (uint32_t i = 0; i < known->n; i++)
    if (path_ends(known->at[i], given->key)) vec_push(l->arena, &meant, known->at[i]);
  if (meant.n == 1 || is_known(l, given->key)) return;
  fail(l, E207, (Span){0, 0}, "--set %s=%s: the job has %s", given->key, given->value,
       meant.n ? "several such settings" : "no such setting");
  if (!meant.n && foreign_help(l, arena_printf(l->arena, "%s=", given->key))) return;
  if (meant.n)
    diag_help_names(l->c, "", meant.at, meant.n);
  else
    help_setting(l, given->key);
}

/* Reports unknown keys at the end of the pass, when every key is known. With options.watch they are
 * not, because the job lacks its eval and infer blocks. */
void check_settings(Lower *l)
{
  const Options *o = &l->c->options;
  if (o->watch) return;
  for (uint32_t i = 0; i < o->n_settings && !o->for_many_jobs; i++) check_given(l, &o->settings[i]);
  for (uint32_t i = 0; i < l->job->ast->n; i++)
    if (l->job->ast->at[i]->kind == DECL_setting) check_line(l, l->job->ast->at[i]);
}
