/* Finds the modules of a net, their calls, and the order of what they do. */
#include "modules.h"
#include <stdlib.h>
#include <string.h>

/* ---- the tree of modules ---- */

Module *module_at(Modules *m, const char *path)
{
  if (!*path) return m->root;
  Module *made = names_get(&m->paths, path);
  if (made) return made;
  Module *parent = module_at(m, path_parent(m->r, path));
  const char *dot = strrchr(path, '.');
  made = arena_new(m->arena, Module);
  *made = (Module){.name = dot ? dot + 1 : path, .path = path, .parent = parent};
  vec_push(m->arena, &parent->children, made);
  *names_at(&m->paths, path) = made;
  return made;
}

bool is_position(const char *name)
{
  size_t n = strlen(name);
  return n > 0 && n < 4 && strspn(name, "0123456789") == n && (n == 1 || *name != '0');
}

const char *module_path(Modules *m, const Module *module)
{
  if (!module->parent || !module->parent->parent) return module->name;
  return text(m->r, "%s.%s", module_path(m, module->parent), module->name);
}

const char *module_name(Modules *m, const Module *to, const Module *from)
{
  if (to->parent == from || !to->parent) return to->name;
  const char *around = module_name(m, to->parent, from);
  return text(m->r, is_position(to->name) ? "%s[%s]" : "%s.%s", around, to->name);
}

/* ---- calls ---- */

static bool within(const Modules *m, const Call *around, uint32_t value)
{
  uint32_t step = m->r->values.at[value]->step;
  const Call *c = step ? m->r->steps.at[step - 1].call : NULL;
  while (c && c != around) c = c->parent;
  return c != NULL;
}

/* Whether the step begins another call of the module: it is the layer that the call began with, for
 * other values than those that the call has computed. */
static bool begins_again(const Modules *m, const Call *c, const Step *s)
{
  bool again = c->begins && *s->text == '#' && strtoul(s->text + 1, NULL, 10) + 1 == c->begins;
  for (uint32_t i = 0; again && i < s->n_use; i++) again = !within(m, c, s->use[i]);
  return again;
}

/* Returns the latest call of a module inside another call, or a new one. */
static Call *call_inside(Modules *m, Call *around, const Scope *s, const Step *step)
{
  void **latest = names_at(&m->calls, text(m->r, "%p %s", (void *)around, s->key));
  if (*latest && !begins_again(m, *latest, step)) return *latest;
  Call *made = arena_new(m->arena, Call);
  Module *module = module_at(m, s->path);
  *made = (Call){.module = module, .parent = around, .place = around->entries.n};
  if (!module->class_name) module->class_name = s->class_name;
  module->library = module->library || s->library;
  vec_push(m->arena, &around->entries, (Entry){.call = made});
  *latest = made;
  return made;
}

/* A module that is a layer by itself is no call: its step belongs to the module around it. */
static void place_step(Modules *m, uint32_t id)
{
  Step *s = &m->r->steps.at[id];
  Call *c = m->net;
  for (uint32_t i = 1; i < s->scopes.n; i++) {
    const Module *module = module_at(m, s->scopes.at[i].path);
    if (module->member) break;
    c = call_inside(m, c, &s->scopes.at[i], s);
    if (!c->begins && *s->text == '#') c->begins = (uint32_t)strtoul(s->text + 1, NULL, 10) + 1;
  }
  s->call = c;
  s->place = c->entries.n;
  vec_push(m->arena, &c->entries, (Entry){.step = id + 1});
}

/* Finds the values that a step refers to. */
static void read_references(Modules *m, Step *s)
{
  VEC(uint32_t) use = {0};
  for (const char *at = s->text; (at = strchr(at, '$')); at++)
    vec_push(m->arena, &use, (uint32_t)strtoul(at + 1, NULL, 10));
  s->use = use.at;
  s->n_use = use.n;
}

/* Drops steps that no result needs. */
static void find_needed(Modules *m)
{
  Reader *r = m->r;
  bool *needed = arena_array(m->arena, bool, r->values.n + 1);
  for (uint32_t i = 0; i < r->results.n; i++) needed[r->results.at[i]->id] = true;
  for (uint32_t i = r->steps.n; i-- > 0;) {
    Step *s = &r->steps.at[i];
    for (uint32_t k = 0; k < s->n_out; k++) s->needed = s->needed || needed[s->out[k]];
    if (!s->needed) continue;
    read_references(m, s);
    for (uint32_t k = 0; k < s->n_use; k++) needed[s->use[k]] = true;
  }
}

/* Registers the step with the values that it needs, and with the calls around it. */
static void note_uses(Modules *m, uint32_t id)
{
  const Step *s = &m->r->steps.at[id];
  for (uint32_t i = 0; i < s->n_use; i++)
    vec_push(m->arena, &m->r->values.at[s->use[i]]->users, id);
  for (Call *c = s->call; c && strchr(s->text, '#'); c = c->parent) c->has_members = true;
}

/* ---- what depends on what ---- */

/* Sets where each entry stands. */
static void number_entries(Modules *m, Call *c)
{
  for (uint32_t i = 0; i < c->entries.n; i++) {
    const Entry *e = &c->entries.at[i];
    *(e->step ? &m->r->steps.at[e->step - 1].place : &e->call->place) = i;
  }
}

/* The entry of `around` that contains the step of a value. -1: it is made elsewhere. */
static int64_t entry_of(const Modules *m, const Call *around, uint32_t value)
{
  uint32_t step = m->r->values.at[value]->step;
  if (!step) return -1;
  const Step *s = &m->r->steps.at[step - 1];
  const Call *c = s->call, *inside = NULL;
  for (; c && c != around; c = c->parent) inside = c;
  if (!c) return -1;
  return inside ? inside->place : s->place;
}

typedef void VisitStep(void *context, const Step *s);

static void each_step(const Modules *m, const Entry *e, VisitStep *visit, void *context)
{
  if (e->step) {
    visit(context, &m->r->steps.at[e->step - 1]);
    return;
  }
  for (uint32_t i = 0; i < e->call->entries.n; i++)
    each_step(m, &e->call->entries.at[i], visit, context);
}

typedef struct Waiting { /* counts the entries that an entry needs */
  const Modules *m;
  const Call *around;
  const bool *done;
  uint32_t self, n;
} Waiting;

static void count_waiting(void *context, const Step *s)
{
  Waiting *w = context;
  for (uint32_t i = 0; i < s->n_use; i++) {
    int64_t from = entry_of(w->m, w->around, s->use[i]);
    w->n += from >= 0 && from != w->self && !w->done[from];
  }
}

void entry_move(Modules *m, const Entry *e, Call *to)
{
  if (e->step)
    m->r->steps.at[e->step - 1].call = to;
  else
    e->call->parent = to;
}

/* Replaces the entry that calls a module by the entries of that call. */
static void call_dissolve(Modules *m, Call *around, uint32_t entry)
{
  Call *inner = around->entries.at[entry].call;
  VEC(Entry) all = {0};
  for (uint32_t i = 0; i < around->entries.n; i++) {
    if (i != entry) {
      vec_push(m->arena, &all, around->entries.at[i]);
      continue;
    }
    for (uint32_t k = 0; k < inner->entries.n; k++) {
      const Entry *e = &inner->entries.at[k];
      vec_push(m->arena, &all, *e);
      entry_move(m, e, around);
    }
  }
  around->entries.at = all.at;
  around->entries.n = all.n;
  around->entries.cap = all.cap;
  number_entries(m, around);
}

/* Sorts the entries so that each comes after those that it needs. If calls need each other's
 * results, one of them is dissolved: its module is called in parts. */
static void sort_entries(Modules *m, Call *c)
{
  uint32_t n = c->entries.n, placed = 0, first = 0; /* all before `first` are done */
  bool *done = arena_array(m->arena, bool, n + 1);
  Entry *sorted = arena_array(m->arena, Entry, n + 1);
  while (placed < n) {
    uint32_t next = n, first_call = n;
    while (done[first]) first++;
    for (uint32_t i = first; i < n && next == n; i++) {
      if (done[i]) continue;
      Waiting w = {m, c, done, i, 0};
      each_step(m, &c->entries.at[i], count_waiting, &w);
      if (w.n == 0)
        next = i;
      else if (first_call == n && c->entries.at[i].call)
        first_call = i;
    }
    if (next == n) {
      call_dissolve(m, c, first_call);
      sort_entries(m, c);
      return;
    }
    done[next] = true;
    sorted[placed++] = c->entries.at[next];
  }
  if (n) memcpy(c->entries.at, sorted, n * sizeof *sorted);
  number_entries(m, c);
  for (uint32_t i = 0; i < c->entries.n; i++)
    if (c->entries.at[i].call) sort_entries(m, c->entries.at[i].call);
}

/* ---- arguments and results ---- */

typedef struct Boundary {
  Modules *m;
  Call *c;
} Boundary;

static void add_argument(void *context, const Step *s)
{
  Boundary *b = context;
  for (uint32_t i = 0; i < s->n_use; i++) {
    bool known = within(b->m, b->c, s->use[i]);
    for (uint32_t k = 0; k < b->c->in.n; k++) known = known || b->c->in.at[k] == s->use[i];
    if (!known) vec_push(b->m->arena, &b->c->in, s->use[i]);
  }
}

static bool needed_outside(const Modules *m, const Call *c, uint32_t value)
{
  const Reader *r = m->r;
  const Value *v = r->values.at[value];
  for (uint32_t i = 0; i < r->results.n; i++)
    if (r->results.at[i] == v) return true;
  for (uint32_t i = 0; i < v->users.n; i++) {
    const Call *at = r->steps.at[v->users.at[i]].call;
    while (at && at != c) at = at->parent;
    if (!at) return true;
  }
  return false;
}

static void add_results(void *context, const Step *s)
{
  Boundary *b = context;
  for (uint32_t i = 0; i < s->n_out; i++)
    if (needed_outside(b->m, b->c, s->out[i])) vec_push(b->m->arena, &b->c->out, s->out[i]);
}

void call_find_values(Modules *m, Call *c)
{
  Boundary b = {m, c};
  c->in.n = c->out.n = 0;
  if (c == m->net) { /* those of the model, in its order */
    const Reader *r = m->r;
    for (uint32_t i = 0; i < r->arguments.n; i++)
      vec_push(m->arena, &c->in, r->arguments.at[i]->id);
    for (uint32_t i = 0; i < r->results.n; i++) vec_push(m->arena, &c->out, r->results.at[i]->id);
    return;
  }
  for (uint32_t i = 0; i < c->entries.n; i++) {
    each_step(m, &c->entries.at[i], add_argument, &b);
    each_step(m, &c->entries.at[i], add_results, &b);
  }
}

/* ---- chains ---- */

Module *entry_child(Modules *m, const Call *c, const Entry *e)
{
  const Module *at = NULL;
  if (e->call)
    at = e->call->module;
  else if (strchr(m->r->steps.at[e->step - 1].text, '#')) {
    const Step *s = &m->r->steps.at[e->step - 1];
    at = module_at(m, m->r->members.at[strtoul(strchr(s->text, '#') + 1, NULL, 10)].path);
  }
  while (at && at->parent != c->module) at = at->parent;
  return (Module *)(uintptr_t)at;
}

/* The only argument and result of an entry. */
static bool one_to_one(Modules *m, const Entry *e, uint32_t *from, uint32_t *to)
{
  if (e->call) {
    call_find_values(m, e->call);
    if (e->call->in.n != 1 || e->call->out.n != 1) return false;
    *from = e->call->in.at[0];
    *to = e->call->out.at[0];
    return true;
  }
  const Step *s = &m->r->steps.at[e->step - 1];
  /* only a call of the layer: "#5($12)" */
  size_t n = s->text[0] == '#' ? 1 + strspn(s->text + 1, "0123456789") : 0;
  if (!n || s->text[n] != '(' || s->text[n + 1] != '$' || s->n_use != 1 || s->n_out != 1)
    return false;
  *from = s->use[0];
  *to = s->out[0];
  return s->text[n + 2 + strspn(s->text + n + 2, "0123456789")] == ')' &&
         s->text[strlen(s->text) - 1] == ')';
}

bool call_is_chain(Modules *m, const Call *c)
{
  uint32_t last = 0;
  m->stamp++;
  for (uint32_t i = 0; i < c->entries.n; i++) {
    uint32_t from, to;
    Module *child = entry_child(m, c, &c->entries.at[i]);
    if (!child || child->stamp == m->stamp) return false; /* a child runs once */
    child->stamp = m->stamp;
    if (!one_to_one(m, &c->entries.at[i], &from, &to) || (i && from != last)) return false;
    last = to;
  }
  return c->entries.n > 0 && c->out.n == 1 && c->out.at[0] == last && c->in.n == 1;
}

/* ---- all ---- */

void modules_build(Modules *m, Reader *r)
{
  *m = (Modules){.arena = r->arena,
                 .r = r,
                 .paths = {.arena = r->arena},
                 .calls = {.arena = r->arena},
                 .forms = {.arena = r->arena, .bodies.arena = r->arena, .taken.arena = r->arena}};
  m->root = arena_new(m->arena, Module);
  *m->root = (Module){.name = "", .path = ""};
  m->net = arena_new(m->arena, Call);
  *m->net = (Call){.module = m->root};
  for (uint32_t i = 0; i < r->members.n; i++) {
    Module *made = module_at(m, r->members.at[i].path);
    made->member = &r->members.at[i];
    made->kind = MODULE_member;
  }
  find_needed(m);
  for (uint32_t i = 0; i < r->steps.n; i++) {
    const Scope *root = &r->steps.at[i].scopes.at[0];
    if (!*root->path && !m->root->class_name) m->root->class_name = root->class_name;
    if (!r->steps.at[i].needed) continue;
    place_step(m, i);
    note_uses(m, i);
  }
  sort_entries(m, m->net);
}
