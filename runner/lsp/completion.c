/* textDocument/completion: members behind a dot, arguments in a call, settings behind `with`,
 * clauses in the braces of a declaration; else the names and words that may stand there. The client
 * selects those that begin with the typed letters. */
#include "names.h"
#include "context.h"
#include "compiler/help/help.h"
#include <ctype.h>

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
    bool function = !module && names_params(n);
    offer(it, n->text, module ? ITEM_class : function ? ITEM_function : ITEM_variable, NULL, rank);
  }
}

/* Offers functions and layers; without layers if they are called as methods of a tensor. */
static void offer_builtins(Items *it, bool layers)
{
  const Builtins *list = analysis_builtins(it->q->a);
  for (uint32_t i = 0; i < list->n; i++) {
    const Builtin *b = &list->at[i];
    bool layer = isupper((unsigned char)*b->name);
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
static void offer_members(Items *it, const VisibleName *owner)
{
  VisibleNames members = {0};
  if (owner && names_members(it->q, owner, &members)) {
    offer_names(it, &members, 1);
    return;
  }
  if (owner && isupper((unsigned char)*names_class(it->q, owner))) return;
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

/* Offers the names of the arguments of a call. */
static void offer_arguments(Items *it, const Token *callee)
{
  const VisibleName *n = names_called(it->q, names_meant(it->q, callee));
  const Builtin *b = n ? NULL : analysis_builtin(it->q->a, callee->as.name);
  const ParamList *params = n ? names_params(n) : NULL;
  for (uint32_t i = 0; params && i < params->n; i++)
    offer_argument(it, params->at[i].name.text, strlen(params->at[i].name.text));
  if (b && b->signature) offer_signature(it, b->signature);
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

/* True for the head of a declaration whose clauses the reference lists. */
static bool takes_clauses(const char *word)
{
  return strcmp(word, "model") == 0 || strcmp(word, "optimizer") == 0 ||
         strcmp(word, "precision") == 0;
}

static bool is_run(const char *word)
{
  return strcmp(word, "train") == 0 || strcmp(word, "eval") == 0;
}

json_t *answer_completion(Query *q)
{
  Items it = {q, json_array(), json_object()};
  const Context at = context_at(q);
  const Token *typed = at.name && at.name < at.next ? at.name : at.next;
  if (at.code && typed > q->tokens.at && typed[-1].kind == '.') {
    offer_members(&it, names_owner(q, typed - 1));
  } else if (at.code) {
    VisibleNames names = {0};
    names_visible(q, &names);
    if (at.callee) offer_arguments(&it, at.callee);
    if (at.open != '{' && at.with && is_run(at.first)) offer_settings(&it, true);
    if (takes_clauses(at.header)) offer_settings(&it, false);
    offer_names(&it, &names, 2);
    offer_builtins(&it, true);
    offer_words(&it, false);
    if (!at.open) offer_words(&it, true);
  }
  json_decref(it.known);
  return it.list;
}
