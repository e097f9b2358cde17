/* textDocument/rename and prepareRename. A rename changes every place of a name, or is refused: an
 * answer that is a string says why. The edited job is compiled, and must be the same but for the
 * name. */
#include "edits.h"
#include "references.h"
#include "compiler/graph/ir.h"
#include "compiler/syntax/lex_words.h"
#include <ctype.h>
#include <fnmatch.h>
#include <unistd.h>

typedef struct Rename {
  const Query *q;
  const VisibleName *target;
  const char *name; /* the new one */
  Spans places;
} Rename;

/* Returns "lib.amp:12". */
static const char *line_text(const Query *q, Span span)
{
  Place place = diag_place(q->a->c, span);
  return arena_printf(q->a->arena, "%s:%u", file_name(place.source->shown), place.line);
}

#define WHY(q, ...) arena_printf((q)->a->arena, __VA_ARGS__)

/* ---- the old name ---- */

/* Returns why the name of an infer block or a metric stays; NULL: the token is neither. */
static const char *why_fixed(const Query *q, const Token *t)
{
  const char *word = t > q->tokens.at && t[-1].kind == TOK_NAME ? t[-1].as.name : "";
  bool metric = strcmp(word, "metric") == 0;
  if (!metric && strcmp(word, "infer") != 0) return NULL;
  return WHY(q, "commands and files refer to %s by its name, so `%s` is not renamed",
             metric ? "a metric" : "an infer block", t->as.name);
}

/* Returns why the name around the place cannot be renamed; NULL: it can. */
static const char *why_not(const Query *q, const VisibleName *target, const Token *t)
{
  if (diag_error_count(q->a->c) || diag_error_count(q->a->found))
    return WHY(q, "%s has errors: correct them first", file_name(q->a->options.input));
  if (!t) return "there is no name here";
  const char *fixed = why_fixed(q, t);
  if (fixed) return fixed;
  if (!target) return WHY(q, "`%s` is no name that this job declares", t->as.name);
  if (target->method && same_name(target->text, "forward"))
    return "a call of a module runs its `forward`, so this name is fixed";
  if (names_within(target, DECL_op)) return WHY(q, "the text of an op may use `%s`", target->text);
  return NULL;
}

/* ---- places ---- */

/* Returns why not all places are known, or can be changed; NULL: they are. */
static const char *why_no_place(Rename *r)
{
  const Query *q = r->q;
  Spans unclear = {0};
  references_find(q, r->target, true, &r->places, &unclear);
  if (unclear.n)
    return WHY(q, "%s: it is not known whether this `%s` is the same name",
               line_text(q, unclear.at[0]), r->target->text);
  for (uint32_t i = 0; i < r->places.n; i++) {
    const Source *s = diag_place(q->a->c, r->places.at[i]).source;
    if (access(s->path, F_OK) == 0 && access(s->path, W_OK) != 0)
      return WHY(q, "%s cannot be written", s->shown);
  }
  return NULL;
}

/* True for the string of `balance="y"`, which names a variable of the block. */
static bool is_balance(const Query *q, const VisibleName *n, const Token *t)
{
  const char *text = q->source->text + (t->span.start - q->source->base);
  return names_within(n, DECL_train) && t->span.start > n->within->span.start &&
         t->span.end < n->within->span.end && t[-1].kind == '=' && t[-2].kind == TOK_NAME &&
         strcmp(t[-2].as.name, "balance") == 0 &&
         is_name(text + 1, t->span.end - t->span.start - 2, n->text);
}

/* Paths contain names of members and models, so patterns such as "**.ln_*.weight" may select the
 * old name, or the new one. */
static const char *why_text(const Rename *r, const Query *q, const Token *t)
{
  const VisibleName *n = r->target;
  const char *p = q->source->text + (t->span.start - q->source->base);
  const char *end = p + (t->span.end - t->span.start);
  bool model = n->decl && (n->decl->kind == DECL_model || n->decl->kind == DECL_optimizer);
  if (is_balance(q, n, t))
    return WHY(q, "%s: balance=\"%s\" names this variable, and texts are not renamed",
               line_text(q, t->span), n->text);
  for (size_t size; p < end && (model || names_within(n, DECL_module)); p += size + !size) {
    for (size = 0; in_name(p[size]) || p[size] == '*';) size++;
    const char *part = arena_strndup(q->a->arena, p, size);
    if (fnmatch(part, n->text, 0) != fnmatch(part, r->name, 0))
      return WHY(q, "%s: \"%s\" may select `%s` or `%s` by its path, and texts are not renamed",
                 line_text(q, t->span), part, n->text, r->name);
  }
  return NULL;
}

/* ---- the new name ---- */

static const char *why_bad_name(const Query *q, const char *name)
{
  size_t n = strlen(name);
  bool plain = n && name_size(name) == n && !isdigit((unsigned char)*name);
  if (!plain || strcmp(name, "_") == 0) return WHY(q, "`%s` is not a name", name);
  if (lex_reserved_kind(name) || lex_is_top_word(name))
    return WHY(q, "`%s` is a word of the language", name);
  if (analysis_builtin(q->a, name)) return WHY(q, "`%s` is a function of the language", name);
  return NULL;
}

/* The new name may have no meaning at a place of the old one, and the old one none where the new
 * one stands: one would capture the other. */
static const char *why_captured(const Rename *r, Query *q, const Token *t, bool is_place)
{
  q->offset = t->span.start;
  const VisibleName *n = names_found(q, is_place ? r->name : r->target->text);
  if (is_place) return n ? WHY(q, "`%s` is declared in %s", r->name, line_text(q, n->span)) : NULL;
  bool member = t > q->tokens.at && t[-1].kind == '.';
  if (!n || n->scope != r->target->scope || member) return NULL;
  return WHY(q, "%s uses `%s`, which would get another meaning", line_text(q, t->span), r->name);
}

/* Returns why the new name or a text collides; NULL: none does. */
static const char *why_collides(const Rename *r)
{
  const char *why = NULL;
  uint32_t next = 0; /* place */
  for (uint32_t i = 0; i < r->q->a->c->sources.n; i++) {
    Query q = *r->q;
    if (!query_look(&q, &r->q->a->c->sources.at[i])) continue;
    for (const Token *t = q.tokens.at; t < q.tokens.at + q.tokens.n && !why; t++) {
      bool place = next < r->places.n && r->places.at[next].start == t->span.start;
      next += place;
      if (t->kind == TOK_STRING) why = why_text(r, &q, t);
      if (place || (t->kind == TOK_NAME && same_name(t->as.name, r->name)))
        why = why_captured(r, &q, t, place);
    }
  }
  return why;
}

/* ---- the result ---- */

/* Returns the graph without places and columns, in which the old name has become the new one, also
 * as the end of a metric's name: `loss_opt`. */
static const char *graph_text(const Rename *r, Compile *c)
{
  Text all = text_new(c->arena), out = text_new(r->q->a->arena);
  const size_t old = strlen(r->target->text);
  ir_print(c, &all, true);
  for (const char *p = all.at; *p;) {
    size_t n = name_size(p), skip = n ? n : 1;
    bool named = n >= old && is_name(p + n - old, old, r->target->text);
    if (named && (n == old || p[n - old - 1] == '_'))
      text_printf(&out, "%.*s%s", (int)(n - old), p, r->name);
    else if (isdigit((unsigned char)*p) && p[n] == ':')
      skip += 1 + name_size(p + n + 1);
    else if (*p != ' ')
      text_add(&out, p, skip);
    p += skip;
  }
  return out.at;
}

static bool same_job(const Rename *r, const Edits *edits)
{
  Compile *c = edits_compile(r->q->a, r->q->a->c, edits, r->q->a->c->options);
  bool same = !diag_error_count(c) && strcmp(graph_text(r, r->q->a->c), graph_text(r, c)) == 0;
  compile_destroy(c);
  return same;
}

json_t *answer_rename(Query *q)
{
  const Token *t;
  Rename r = {
      q, references_target(q, &t), json_string_value(json_object_get(q->params, "newName")), {0}};
  Edits edits = {0};
  const char *why = why_not(q, r.target, t);
  if (!why) why = why_bad_name(q, r.name);
  if (!why) why = why_no_place(&r);
  if (!why && !same_name(r.name, r.target->text)) why = why_collides(&r);
  for (uint32_t i = 0; i < r.places.n; i++)
    vec_push(q->a->arena, &edits, (Edit){r.places.at[i], r.name});
  if (!why && !same_job(&r, &edits))
    why = WHY(q, "the job would change if `%s` became `%s`", r.target->text, r.name);
  return why ? analysis_text(q->a, why) : edits_json(q->a, q->a->c, &edits);
}

json_t *answer_prepare(Query *q)
{
  const Token *t;
  const VisibleName *target = references_target(q, &t);
  const char *why = why_not(q, target, t);
  if (why) return analysis_text(q->a, why);
  return json_pack("{s:o, s:s}", "range", text_range(q->a->c, t->span, q->a->utf8), "placeholder",
                   target->text);
}
