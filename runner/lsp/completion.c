/* textDocument/completion: members behind a dot, arguments in a call, settings behind `with`,
 * clauses in the braces of a declaration; else the names and words that may stand there. The client
 * selects those that begin with the typed letters. */
#include "names.h"
#include "context.h"
#include "compiler/help/help.h"

/* Kinds of items in the protocol. */
enum {
  ITEM_function = 3,
  ITEM_variable = 6,
  ITEM_class = 7,
  ITEM_property = 10,
  ITEM_keyword = 14
};

typedef struct Items {
  Query *q;
  json_t *list;
  json_t *known; /* {label: true} */
} Items;

/* Adds an item; each label once. Nearer groups come first: the client sorts by rank. */
static void offer(Items *it, const char *label, int kind, const char *detail, int rank)
{
  if (!*label || json_object_get(it->known, label)) return;
  json_object_set_new(it->known, label, json_true());
  json_t *item = json_pack("{s:s, s:i, s:o}", "label", label, "kind", kind, "sortText",
                           json_sprintf("%d%s", rank, label));
  if (detail) json_object_set_new(item, "detail", analysis_text(it->q->a, detail));
  json_array_append_new(it->list, item);
}

static void offer_names(Items *it, const VisibleNames *names, int rank)
{
  for (uint32_t i = 0; i < names->n; i++) {
    const VisibleName *n = &names->at[i];
    bool module = n->decl && n->decl->kind == DECL_module;
    bool function = n->method || (n->decl && !module && names_params(n->decl));
    offer(it, n->text, module ? ITEM_class : function ? ITEM_function : ITEM_variable, NULL, rank);
  }
}

/* Offers functions and layers; without layers if they are called as methods of a tensor. */
static void offer_builtins(Items *it, bool layers)
{
  const Builtins *list = analysis_builtins(it->q->a);
  for (uint32_t i = 0; i < list->n; i++) {
    const Builtin *b = &list->at[i];
    bool layer = *b->name >= 'A' && *b->name <= 'Z';
    if (layers || !layer) offer(it, b->name, layer ? ITEM_class : ITEM_function, b->signature, 5);
  }
}

static void offer_words(Items *it, bool top)
{
  bool is_top;
  for (uint32_t i = 0; ast_reserved_word(i, &is_top); i++)
    if (is_top == top) offer(it, ast_reserved_word(i, &is_top), ITEM_keyword, NULL, 4);
}

/* ---- contexts ---- */

/* Offers the members of a module, else what can be called as a method of a tensor. The members of
 * built-in layers are not in the files. */
static void offer_members(Items *it, const char *path)
{
  VisibleNames members = {0};
  const VisibleName *n = names_find(it->q, path);
  char first = n ? *called_name(n->value) : 0;
  if (first >= 'A' && first <= 'Z' && analysis_builtin(it->q->a, called_name(n->value))) return;
  if (names_members(it->q, path, &members)) {
    offer_names(it, &members, 1);
    return;
  }
  offer(it, "shape", ITEM_property, NULL, 1);
  offer(it, "dtype", ITEM_property, NULL, 1);
  offer_builtins(it, false);
}

static void offer_argument(Items *it, const char *name, size_t size)
{
  if (!size || name[0] == '_') return;
  offer(it, arena_printf(it->q->a->arena, "%.*s=", (int)size, name), ITEM_property, NULL, 0);
}

/* Offers the arguments of a signature: "Linear(in_features: int, bias: bool = true)". */
static void offer_signature(Items *it, const char *signature)
{
  const char *p = strchr(signature, '(');
  int depth = 1;
  for (bool begins = true; p && *++p && depth;) {
    if (*p == ')' || *p == ']') depth--;
    if (begins && in_name(*p)) {
      offer_argument(it, p, name_size(p));
      begins = false;
    }
    if (*p == ',' && depth == 1) begins = true;
    if (*p == '(' || *p == '[') depth++;
  }
}

/* Offers the names of the arguments of the call around the place. */
static void offer_arguments(Items *it, const Context *at)
{
  const char *name = context_callee(it->q, at);
  const VisibleName *n = *name ? names_find(it->q, name) : NULL;
  const Builtin *b = *name ? analysis_builtin(it->q->a, name) : NULL;
  const ParamList *params = NULL;
  if (n && n->method) params = &n->method->params;
  if (n && n->decl) params = names_params(n->decl);
  for (uint32_t i = 0; params && i < params->n; i++)
    offer_argument(it, params->at[i].name.text, strlen(params->at[i].name.text));
  if (!n && b && b->signature) offer_signature(it, b->signature);
}

/* Offers entries of the chapter about settings: settings are "batch = N", clauses "group(..)". */
static void offer_settings(Items *it, bool settings)
{
  HelpEntries entries = {0};
  help_chapter(it->q->a->arena, "settings.md", &entries);
  for (uint32_t i = 0; i < entries.n; i++) {
    const HelpEntry *e = &entries.at[i];
    if ((strstr(e->heading, " = ") != NULL) == settings)
      offer(it, settings ? arena_printf(it->q->a->arena, "%s=", e->name) : e->name, ITEM_property,
            e->heading, 0);
  }
}

/* True if the place is behind `with` in the head of a train or eval block. */
static bool behind_with(const Query *q, const Context *at)
{
  const char *word = context_word(q, at->statement), *text = q->source->text;
  if (strcmp(word, "train") != 0 && strcmp(word, "eval") != 0) return false;
  uint32_t end = q->offset - q->source->base;
  for (uint32_t i = at->statement; i + 6 <= end; i++)
    if (memcmp(text + i, " with ", 6) == 0) return true;
  return false;
}

static bool takes_clauses(const Query *q, const Context *at)
{
  const char *word = context_word(q, at->header);
  return at->open == '{' && (strcmp(word, "model") == 0 || strcmp(word, "optimizer") == 0 ||
                             strcmp(word, "precision") == 0);
}

json_t *answer_completion(Query *q)
{
  Items it = {q, json_array(), json_object()};
  const Context at = context_at(q);
  uint32_t start = q->offset;
  while (start > q->source->base && in_name(q->source->text[start - q->source->base - 1])) start--;
  const char *path = at.code ? names_path(q, &start) : NULL;
  if (path) {
    offer_members(&it, path);
  } else if (at.code) {
    VisibleNames names = {0};
    names_visible(q, &names);
    if (at.open == '(') offer_arguments(&it, &at);
    if (at.open != '{' && behind_with(q, &at)) offer_settings(&it, true);
    if (takes_clauses(q, &at)) offer_settings(&it, false);
    offer_names(&it, &names, 2);
    offer_builtins(&it, true);
    offer_words(&it, false);
    if (!at.open) offer_words(&it, true);
  }
  json_decref(it.known);
  return it.list;
}
