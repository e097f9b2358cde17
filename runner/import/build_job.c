/* Builds the definitions of modules, from the innermost ones on. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "modules.h"

typedef VEC(const Form *) FormList;

static void add_text(Modules *m, FormList *to, const char *code)
{
  vec_push(m->arena, to, form_of_text(m->arena, code));
}

/* Adds text that has marks or no numbers. */
static void add_marks(Modules *m, FormList *to, const char *code)
{
  Form *made = arena_new(m->arena, Form);
  made->text = code;
  vec_push(m->arena, to, made);
}

/* ---- layers without weights, in a Sequential ---- */

/* Each has a function of its name in small letters, perhaps with underscores. */
static const char *const layer_names[] = {"ReLU",
                                          "ReLU6",
                                          "Hardswish",
                                          "SiLU",
                                          "GELU",
                                          "Sigmoid",
                                          "Hardsigmoid",
                                          "Tanh",
                                          "ELU",
                                          "SELU",
                                          "CELU",
                                          "Mish",
                                          "LeakyReLU",
                                          "Softplus",
                                          "Softmax",
                                          "LogSoftmax",
                                          "Dropout",
                                          "MaxPool1d",
                                          "MaxPool2d",
                                          "MaxPool3d",
                                          "AvgPool1d",
                                          "AvgPool2d",
                                          "AvgPool3d",
                                          "AdaptiveAvgPool2d",
                                          "AdaptiveMaxPool2d",
                                          "Flatten",
                                          "PixelShuffle"};

static bool is_function_of(const char *layer, const char *code, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (code[i] != '_' && tolower((unsigned char)*layer++) != code[i]) return false;
  return !*layer;
}

/* Returns "MaxPool2d(3, stride=2)" for "max_pool2d($5, 3, stride=2)", or NULL. */
static const char *layer_of_step(Modules *m, const Step *s)
{
  size_t n = strcspn(s->text, "(.");
  const char *rest = s->text + n;
  if (strncmp(rest, "($", 2) != 0 || s->n_use != 1 || s->n_out != 1) {
    if (*s->text != '$' || s->n_use != 1) return NULL; /* "$5.flatten(1)" */
    rest = s->text + 1 + strspn(s->text + 1, "0123456789");
    if (strcmp(rest, ".flatten(1)") == 0) return "Flatten()";
    return NULL;
  }
  rest += 2 + strspn(rest + 2, "0123456789");
  if (*rest == ',') rest += 2;
  size_t length = strlen(rest);
  if (!length || strchr(rest, '(') || strchr(rest, ')') != rest + length - 1) return NULL;
  for (size_t i = 0; i < sizeof layer_names / sizeof *layer_names; i++)
    if (is_function_of(layer_names[i], s->text, n))
      return text(m->r, "%s(%s", layer_names[i], rest);
  return NULL;
}

/* ---- Sequential ---- */

static const Form *finish_call(Modules *m, Call *c);

/* A call that is only a layer without weights; NULL: another one. */
static const char *plain_layer(Modules *m, const Call *inner)
{
  const Entry *only = inner && inner->entries.n == 1 ? &inner->entries.at[0] : NULL;
  return only && only->step ? layer_of_step(m, &m->r->steps.at[only->step - 1]) : NULL;
}

static const Form *chain_element(Modules *m, Call *c, const Entry *e)
{
  const char *layer = plain_layer(m, e->call);
  if (layer) return form_of_text(m->arena, layer);
  const Module *child = entry_child(m, c, e);
  return child->member ? form_of_text(m->arena, child->member->text) : child->form;
}

static void add_element(Modules *m, FormList *to, const char *name, const Form *element)
{
  add_marks(m, to, text(m->r, "%c%s%c", FORM_ITEM, name, FORM_NAME));
  vec_push(m->arena, to, element);
  add_marks(m, to, text(m->r, "%c", FORM_END));
}

/* Positions without a module get Identity. */
static void add_numbered(Modules *m, FormList *to, uint32_t *next, const char *name,
                         const Form *element)
{
  for (; *next < strtoul(name, NULL, 10); ++*next)
    add_element(m, to, "", form_of_text(m->arena, "Identity()"));
  add_element(m, to, "", element);
  ++*next;
}

static bool holds_members(const Module *module)
{
  if (module->member) return true;
  for (uint32_t i = 0; i < module->children.n; i++)
    if (holds_members(module->children.at[i])) return true;
  return false;
}

/* Whether the call runs all modules that have parameters. */
static bool runs_all(Modules *m, const Call *c)
{
  uint32_t held = 0, run = 0;
  for (uint32_t i = 0; i < c->module->children.n; i++)
    held += holds_members(c->module->children.at[i]);
  for (uint32_t i = 0; i < c->entries.n; i++)
    run += holds_members(entry_child(m, c, &c->entries.at[i]));
  return held == run;
}

static bool numbers_rise(Modules *m, const Call *c)
{
  long last = -1;
  for (uint32_t i = 0; i < c->entries.n; i++) {
    const char *name = entry_child(m, c, &c->entries.at[i])->name;
    if (!is_position(name) || atol(name) <= last) return false;
    last = atol(name);
  }
  return true;
}

static const Form *finish_chain(Modules *m, Call *c, bool numbered)
{
  FormList parts = {0};
  uint32_t next = 0;
  add_marks(m, &parts, "Sequential(");
  for (uint32_t i = 0; i < c->entries.n; i++) {
    const Entry *e = &c->entries.at[i];
    const char *name = entry_child(m, c, e)->name;
    const Form *element = chain_element(m, c, e);
    if (numbered)
      add_numbered(m, &parts, &next, name, element);
    else
      add_element(m, &parts, name, element);
  }
  add_marks(m, &parts, ")");
  return form_join(m->arena, parts.at, parts.n);
}

/* Whether a call is a Sequential: a chain that runs all its modules with members. Its modules are
 * numbered ("0", or block_0, block_1, ..), or its class is Sequential. */
static bool is_sequential(Modules *m, const Call *c, bool *numbered)
{
  const Module *module = c->module;
  if (!c->has_members || !call_is_chain(m, c) || !runs_all(m, c)) return false;
  *numbered = numbers_rise(m, c);
  if (*numbered) return true;
  bool counted = c->entries.n > 1; /* block_0, block_1, .. */
  for (uint32_t i = 0; i < c->entries.n; i++) {
    const char *name = entry_child(m, c, &c->entries.at[i])->name;
    if (isdigit((unsigned char)*name)) return false; /* no name of an argument */
    counted = counted && isdigit((unsigned char)name[strlen(name) - 1]);
  }
  return counted ||
         (module->library && module->class_name && strcmp(module->class_name, "Sequential") == 0);
}

/* ---- modules ---- */

static const char *capital(Modules *m, const char *name)
{
  char *s = arena_strdup(m->arena, name);
  *s = (char)toupper((unsigned char)*s);
  return s;
}

/* The class that the file names, or one after the module's name: "Layer1". */
static const char *class_of(Modules *m, const Module *module)
{
  if (module->class_name)
    return text(m->r, module->library ? "%sSteps" : "%s", capital(m, module->class_name));
  while (module->parent && !isalpha((unsigned char)*module->name)) module = module->parent;
  if (isupper((unsigned char)*module->name)) /* a member of this name would hide the class */
    return text(m->r, "%sModule", module->name);
  return *module->name ? capital(m, module->name) : "Net";
}

static const Form *member_form(Modules *m, Module *child);

static const Form *finish_list(Modules *m, Module *list)
{
  FormList parts = {0};
  uint32_t next = 0;
  add_marks(m, &parts, "[");
  for (uint32_t i = 0; i < list->children.n; i++)
    if (holds_members(list->children.at[i]))
      add_numbered(m, &parts, &next, list->children.at[i]->name,
                   member_form(m, list->children.at[i]));
  add_marks(m, &parts, "]");
  return form_join(m->arena, parts.at, parts.n);
}

/* Returns the definition of a module with members and a forward, which may be "". */
static const Form *finish_class(Modules *m, Module *module, const char *forward)
{
  FormList parts = {0};
  for (uint32_t i = 0; i < module->children.n; i++) {
    Module *child = module->children.at[i];
    const Form *form = member_form(m, child);
    if (!form) continue; /* a module without parameters */
    add_marks(m, &parts, text(m->r, "  %s = ", child->name));
    vec_push(m->arena, &parts, form);
    add_marks(m, &parts, "\n");
  }
  for (uint32_t i = 0; i < module->ties.n; i++)
    add_marks(m, &parts, text(m->r, "  %s\n", module->ties.at[i]));
  add_text(m, &parts, forward);
  return form_define(&m->forms, class_of(m, module), module->class_name != NULL, false,
                     form_join(m->arena, parts.at, parts.n));
}

/* Returns the constructor of a member. NULL: it has no parameters, so nobody names it. */
static const Form *member_form(Modules *m, Module *child)
{
  if (child->member) return form_of_text(m->arena, child->member->text);
  if (child->form || !holds_members(child)) return child->form;
  if (child->kind == MODULE_list)
    child->form = finish_list(m, child);
  else
    child->form = finish_class(m, child, "");
  return child->form;
}

/* ---- calls ---- */

static int by_number(const void *a, const void *b)
{
  return atoi((*(Module *const *)a)->name) - atoi((*(Module *const *)b)->name);
}

/* Modules whose parts all have numbers are lists. finish_call() makes one a Sequential if it is
 * called as a chain. */
static void find_lists(Modules *m, Module *module)
{
  bool numbered = module->children.n > 0 && module != m->root && !module->member;
  for (uint32_t i = 0; i < module->children.n; i++) {
    find_lists(m, module->children.at[i]);
    numbered = numbered && is_position(module->children.at[i]->name);
  }
  if (!numbered) return;
  module->kind = MODULE_list;
  qsort(module->children.at, module->children.n, sizeof *module->children.at, by_number);
}

typedef VEC(Entry) EntryList;

static void finish_entry(Modules *m, Call *c, const Entry *e, bool keep_plain, EntryList *to)
{
  Call *inner = e->call;
  bool stays = !inner || (keep_plain && plain_layer(m, inner));
  if (!stays) stays = (inner->has_members || keep_plain) && finish_call(m, inner);
  if (stays) {
    vec_push(m->arena, to, *e);
    return;
  }
  for (uint32_t i = 0; i < inner->entries.n; i++) entry_move(m, &inner->entries.at[i], c);
  for (uint32_t i = 0; i < inner->entries.n; i++)
    finish_entry(m, c, &inner->entries.at[i], keep_plain, to);
}

/* Finishes the calls inside. Calls without parameters become part of this call. So does a second
 * call of a module that does something else than the first one. keep_plain: the call is a chain, so
 * its layers without parameters stay. */
static void finish_inner(Modules *m, Call *c, bool keep_plain)
{
  EntryList all = {0};
  for (uint32_t i = 0; i < c->entries.n; i++)
    finish_entry(m, c, &c->entries.at[i], keep_plain, &all);
  c->entries.at = all.at;
  c->entries.n = all.n;
  c->entries.cap = all.cap;
}

/* Returns the constructor of the call's module. NULL: the call must be dissolved. */
static const Form *finish_call(Modules *m, Call *c)
{
  Module *module = c->module;
  bool numbered = false, second = module->form != NULL;
  call_find_values(m, c);
  bool chain = is_sequential(m, c, &numbered);
  finish_inner(m, c, chain);
  call_find_values(m, c);
  if (chain && !call_is_chain(m, c)) {
    chain = false;
    finish_inner(m, c, false);
    call_find_values(m, c);
  }
  if (chain) {
    const Form *form = finish_chain(m, c, numbered);
    bool named = module->class_name && !module->library && module != m->root;
    if (second) return module->chain && form_equal(module->chain, form) ? module->form : NULL;
    module->kind = MODULE_sequence;
    module->chain = form;
    return module->form =
               named ? form_define(&m->forms, class_of(m, module), true, true, form) : form;
  }
  if (module->kind == MODULE_list) return NULL; /* its parts are called one by one */
  const char *forward = forward_text(m, c);
  bool same = module->forward && strcmp(module->forward, forward) == 0;
  if (second) return same ? module->form : NULL;
  module->forward = forward;
  return module->form = finish_class(m, module, forward);
}

/* ---- ties ---- */

static void add_ties(Modules *m)
{
  for (uint32_t i = 0; i < m->r->members.n; i++) {
    const Member *tied = &m->r->members.at[i];
    if (!tied->tie) continue;
    const Module *to = module_at(m, tied->path),
                 *from = module_at(m, m->r->members.at[tied->tie->member - 1].path);
    const char *all = path_parent(m->r, tied->path);
    while (!path_within(from->path, all)) all = path_parent(m->r, all);
    Module *around = module_at(m, all);
    const char *role = tied->tie->role;
    vec_push(m->arena, &around->ties,
             text(m->r, "%s.weight = %s%s%s", module_name(m, to, around),
                  module_name(m, from, around), role ? "." : "", role ? role : ""));
  }
}

/* ---- names ---- */

/* Words that are no names, or that a module defines. */
bool is_reserved(const char *name)
{
  static const char *const words[] = {
      "def",   "return",   "if",      "else",     "for",    "in",     "scan",  "carry",
      "emit",  "autocast", "no_grad", "minimize", "with",   "metric", "every", "assert",
      "and",   "or",       "not",     "true",     "false",  "none",   "True",  "False",
      "None",  "f16",      "bf16",    "f32",      "i32",    "i64",    "u8",    "bool",
      "float", "int",      "str",     "list",     "forward"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

static void rename_child(Modules *m, const Module *module, Module *child)
{
  const char *name = text(m->r, isdigit((unsigned char)*child->name) ? "_%s" : "%s_", child->name);
  for (uint32_t i = 0; i < module->children.n; i++)
    if (strcmp(module->children.at[i]->name, name) == 0)
      i = UINT32_MAX, name = text(m->r, "%s_", name);
  child->name = name;
}

/* Whether the child has the name of a layer that another child is made of. */
static bool hides_layer(const Module *module, const Module *child)
{
  size_t n = strlen(child->name);
  if (!isupper((unsigned char)*child->name)) return false;
  for (uint32_t i = 0; i < module->children.n; i++) {
    const Module *other = module->children.at[i];
    if (other != child && other->member && strncmp(other->member->text, child->name, n) == 0 &&
        other->member->text[n] == '(')
      return true;
  }
  return false;
}

/* Positions are names only in lists. */
static void fix_names(Modules *m, Module *module, bool positions)
{
  for (uint32_t i = 0; i < module->children.n; i++) {
    Module *child = module->children.at[i];
    bool digit = isdigit((unsigned char)*child->name);
    if (is_reserved(child->name) || (digit && !positions) || hides_layer(module, child))
      rename_child(m, module, child);
  }
}

/* A layer hides a function of its name, so it gets another name in modules that call the function.
 */
static void avoid_functions(Modules *m, const Step *s)
{
  for (const char *at = s->text; *at; at += *at != 0) {
    size_t n = name_size(at);
    bool calls = n && at[n] == '(' && !isdigit((unsigned char)*at);
    const char *word = calls ? arena_strndup(m->arena, at, n) : NULL;
    for (const Call *c = s->call; word && c; c = c->parent) {
      const char *path = c->module->path;
      Module *child = names_get(&m->paths, *path ? text(m->r, "%s.%s", path, word) : word);
      if (child && holds_members(child) && strcmp(child->name, word) == 0)
        rename_child(m, c->module, child);
    }
    at += n;
  }
}

static void fix_all_names(Modules *m, Module *module)
{
  fix_names(m, module, module->kind == MODULE_list || module == m->root);
  for (uint32_t i = 0; i < module->children.n; i++) fix_all_names(m, module->children.at[i]);
}

static void set_paths(Modules *m)
{
  for (uint32_t i = 0; i < m->r->stored.n; i++) {
    Stored *s = &m->r->stored.at[i];
    const char *path = module_path(m, module_at(m, m->r->members.at[s->member].path));
    s->path = s->role ? text(m->r, "%s.%s", path, s->role) : path;
  }
}

const Form *modules_finish(Modules *m)
{
  m->shown = arena_array(m->arena, const char *, m->r->values.n + 1);
  m->left = arena_array(m->arena, uint32_t, m->r->values.n + 1);
  find_lists(m, m->root);
  fix_all_names(m, m->root);
  for (uint32_t i = 0; i < m->r->steps.n; i++)
    if (m->r->steps.at[i].needed) avoid_functions(m, &m->r->steps.at[i]);
  call_find_values(m, m->net);
  bool numbered;
  if (!is_sequential(m, m->net, &numbered)) fix_names(m, m->root, false);
  add_ties(m);
  const Form *net = finish_call(m, m->net);
  set_paths(m);
  return net;
}
