/* Applies options of the command line that change the job: -D NAME=VALUE replaces a const, and
 * --set object.key=value replaces a setting. Values are written as in the language. */
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
  default:
    return "another value";
  }
}

/* Reads the value of `text`, which replaces `like`; returns false after a message. Strings need no
 * quotes on a command line, and an int can replace a float. Any other value must have the kind of
 * `like`: `-D WIDTH=wide` is a mistake. */
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
  *out = eval(l, scope_new(l, NULL, l->job, NULL), e);
  if (d_is(*out, D_error)) return false;
  if (like.kind == D_float && out->kind == D_int) *out = d_float((double)out->as.integer);
  bool free_kind = like.kind == D_none || like.kind == D_absent;
  bool number = like.kind == D_schedule && d_is_number(*out);
  if (free_kind || number || out->kind == like.kind) return true;
  return refuse(l, E207, (Span){0, 0}, "%s: the old value is %s, so the new one must be %s, got %s",
                option, kind_name(like), kind_name(like), d_kind_text(l, *out));
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

/* Returns the text that --set gives for a key. Code that accepts a --set calls this function, which
 * makes the key known. At the end of the pass, all other keys of --set are mistakes. If a key is
 * given several times, the last one wins. */
const char *setting_override(Lower *l, const char *key)
{
  const Options *o = &l->c->options;
  const char *value = NULL;
  if (!is_known(l, key)) vec_push(l->arena, &l->c->settings, arena_strdup(l->arena, key));
  for (uint32_t i = 0; i < o->n_settings; i++)
    if (strcmp(o->settings[i].key, key) == 0) value = o->settings[i].value;
  return value;
}

/* Replaces *value, and the place that messages about it show, if --set names its key. Returns false
 * after a message if the text is wrong. */
bool setting_value(Lower *l, const char *key, Datum *value, Span *span)
{
  const char *text = setting_override(l, key);
  if (!text) return true;
  return option_value(l, arena_printf(l->arena, "--set %s=%s", key, text), text, *value, value,
                      span);
}

/* Reports unknown keys of --set at the end of the pass, when every key is known. */
void check_settings(Lower *l)
{
  const Options *o = &l->c->options;
  for (uint32_t i = 0; i < o->n_settings; i++) {
    const char *key = o->settings[i].key;
    if (o->for_many_jobs || is_known(l, key)) continue;
    fail(l, E207, (Span){0, 0}, "--set %s=%s: the job has no such setting", key,
         o->settings[i].value);
    diag_help_names(l->c, key, l->c->settings.at, l->c->settings.n);
  }
}
