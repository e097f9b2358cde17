/* Finds visible names. Scopes are those of compiler/lower: a function, block or module body has one
 * scope; methods also see the names of their module's body. */
#include "names.h"

/* ---- statements ---- */

/* The tree's height is at most MAX_HEIGHT, so recursion is safe. */
void names_walk(const Block *b, void (*visit)(void *data, const Stmt *st), void *data)
{
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *st = b->at[i];
    visit(data, st);
    switch (st->kind) {
    case STMT_if:
      names_walk(&st->as.branch.then, visit, data);
      names_walk(&st->as.branch.other, visit, data);
      break;
    case STMT_for:
      names_walk(&st->as.loop.body, visit, data);
      break;
    case STMT_scan:
      names_walk(&st->as.scan.body, visit, data);
      break;
    case STMT_autocast:
    case STMT_no_grad:
      names_walk(&st->as.region.body, visit, data);
      break;
    case STMT_every:
      names_walk(&st->as.every.body, visit, data);
      break;
    case STMT_def:
      names_walk(&st->as.def.body, visit, data);
      break;
    default:
      break;
    }
  }
}

const Block *names_body(const Decl *d)
{
  switch (d->kind) {
  case DECL_def:
  case DECL_data:
  case DECL_infer:
  case DECL_body:
    return &d->as.function.body;
  case DECL_module:
    return &d->as.module.body;
  case DECL_op:
    return &d->as.op.body;
  case DECL_train:
  case DECL_eval:
    return &d->as.run.body;
  default:
    return NULL;
  }
}

const ParamList *names_params(const Decl *d)
{
  switch (d->kind) {
  case DECL_def:
  case DECL_data:
  case DECL_infer:
    return &d->as.function.params;
  case DECL_module:
    return &d->as.module.params;
  case DECL_op:
    return &d->as.op.params;
  default:
    return NULL;
  }
}

typedef struct Finder {
  Arena *arena;
  uint32_t offset, level;
  bool members; /* names of a module's body, all of whose statements run before a method */
  VisibleNames *out;
} Finder;

static void add(Finder *f, VisibleName n)
{
  n.level = f->level;
  if (f->members) n.from = 0;
  vec_push(f->arena, f->out, n);
}

static void add_name(Finder *f, const Name *name, uint32_t from)
{
  add(f, (VisibleName){.text = name->text, .span = name->span, .from = from});
}

static void add_list(Finder *f, const NameList *names, uint32_t from)
{
  for (uint32_t i = 0; i < names->n; i++) add_name(f, &names->at[i], from);
}

/* Adds parameters, and the sizes that their types name: N and C of `x: float[N, C]`. */
static void add_params(Finder *f, const ParamList *params)
{
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    add_name(f, &p->name, 0);
    for (uint32_t k = 0; k < p->type.n_dims; k++) {
      const Expr *size = p->type.dims[k];
      if (size && size->kind == EXPR_name)
        add(f, (VisibleName){.text = size->as.name, .span = size->span});
    }
  }
}

/* Adds the names that a statement binds. */
static void add_bound(void *data, const Stmt *st)
{
  Finder *f = data;
  if (st->kind == STMT_for) add_list(f, &st->as.loop.names, st->as.loop.body.span.start);
  if (st->kind == STMT_scan) add_name(f, &st->as.scan.name, st->as.scan.body.span.start);
  if (st->kind == STMT_emit) add_name(f, &st->as.named.name, st->span.end);
  if (st->kind != STMT_assign) return;
  const ExprList *targets = &st->as.assign.targets, *values = &st->as.assign.values;
  for (uint32_t i = 0; i < targets->n; i++) {
    const Expr *t = targets->at[i], *value = targets->n == values->n ? values->at[i] : NULL;
    if (t->kind == EXPR_name)
      add(f, (VisibleName){t->as.name, t->span, st->span.end, .value = value});
  }
}

/* Adds the names of a body, with its methods, but without the names in these. */
static void add_body(Finder *f, const Block *body)
{
  for (uint32_t i = 0; i < body->n; i++) {
    Stmt *st = body->at[i];
    const Function *def = &st->as.def;
    if (st->kind == STMT_def)
      add(f, (VisibleName){.text = def->name.text, .span = def->name.span, .method = def});
    else
      names_walk(&(Block){.at = &st, .n = 1}, add_bound, f);
  }
}

static bool contains(Span span, uint32_t offset)
{
  return offset >= span.start && offset <= span.end;
}

/* Adds the names of the method around the offset, then those of its module. */
static void add_module(Finder *f, const ParamList *params, const Block *body)
{
  for (uint32_t i = 0; i < body->n; i++) {
    const Stmt *st = body->at[i];
    if (st->kind != STMT_def || !contains(st->span, f->offset)) continue;
    add_params(f, &st->as.def.params);
    add_body(f, &st->as.def.body);
    f->level++;
    f->members = true;
  }
  add_body(f, body);
  f->members = false;
  add_params(f, params);
}

/* Adds the names of the declaration around the offset. */
static void add_inside(Finder *f, const Decl *d)
{
  const Block *body = names_body(d);
  if (d->kind == DECL_op) add_params(f, &d->as.op.outputs);
  if (d->kind == DECL_train || d->kind == DECL_eval)
    add_list(f, &d->as.run.names, body->span.start);
  if (body && names_params(d))
    add_module(f, names_params(d), body);
  else if (body)
    add_body(f, body);
}

/* ---- files ---- */

static void add_declared(Finder *f, const Ast *ast)
{
  for (uint32_t i = 0; i < ast->n; i++) {
    const Name *name = ast_decl_name(ast->at[i]);
    if (name) add(f, (VisibleName){.text = name->text, .span = name->span, .decl = ast->at[i]});
  }
}

void names_visible(const Query *q, VisibleNames *out)
{
  Finder f = {.arena = q->a->arena, .offset = q->offset, .out = out};
  for (uint32_t i = 0; i < q->ast->n; i++)
    if (contains(q->ast->at[i]->span, q->offset)) add_inside(&f, q->ast->at[i]);
  f.level++;
  add_declared(&f, q->ast);
  f.level++;
  for (uint32_t i = 0; i < q->a->c->imports.n; i++)
    if (q->a->c->imports.at[i]->ast != q->ast) add_declared(&f, q->a->c->imports.at[i]->ast);
}

/* Whether `a` is a better meaning of a name at the offset than `b`. */
static bool is_better(const VisibleName *a, const VisibleName *b, uint32_t offset)
{
  if (contains(b->span, offset)) return false;
  if (contains(a->span, offset)) return true;
  if (a->level != b->level) return a->level < b->level;
  return a->from <= offset && a->from >= b->from;
}

/* Returns the best meaning of a name at the offset; NULL if it is not in the list. */
static const VisibleName *find_in(const VisibleNames *names, const char *name, uint32_t offset)
{
  const VisibleName *best = NULL;
  for (uint32_t i = 0; i < names->n; i++) {
    const VisibleName *n = &names->at[i];
    if (same_name(n->text, name) && (!best || is_better(n, best, offset))) best = n;
  }
  return best;
}

const VisibleName *names_find(const Query *q, const char *name)
{
  VisibleNames names = {0};
  names_visible(q, &names);
  return find_in(&names, name, q->offset);
}

/* ---- members ---- */

/* Returns the module that an expression makes, or the modules of a list: the declaration of Block
 * for `[Block(c) for i in range(n)]`. NULL: none of the files'. */
static const Decl *module_made(const Query *q, const Expr *e)
{
  if (e && e->kind == EXPR_comp) e = e->as.comp.value;
  if (e && e->kind == EXPR_list && e->as.args.n) e = e->as.args.at[0].value;
  const VisibleName *n = *called_name(e) ? names_find(q, called_name(e)) : NULL;
  return n && n->decl && n->decl->kind == DECL_module ? n->decl : NULL;
}

static const Decl *module_of(const Query *q, const VisibleName *n)
{
  if (!n) return NULL;
  return module_made(q,
                     n->decl && n->decl->kind == DECL_model ? n->decl->as.object.value : n->value);
}

static void list_members(const Query *q, const Decl *module, VisibleNames *out)
{
  Finder f = {.arena = q->a->arena, .members = true, .out = out};
  add_body(&f, &module->as.module.body);
  add_params(&f, &module->as.module.params);
}

/* Returns the text behind `[0]` or `[i][1]`. */
static const char *behind_brackets(const char *p)
{
  int depth = 0;
  if (*p != '[') return p;
  for (; *p && (depth || *p == '['); p++) depth += (*p == '[') - (*p == ']');
  return p;
}

bool names_members(const Query *q, const char *path, VisibleNames *out)
{
  Arena *arena = q->a->arena;
  size_t n = name_size(path);
  const Decl *module = n ? module_of(q, names_find(q, arena_strndup(arena, path, n))) : NULL;
  while (module) {
    path = behind_brackets(path + n);
    VisibleNames members = {0};
    list_members(q, module, &members);
    if (!*path) {
      *out = members;
      return true;
    }
    if (*path != '.') return false; /* a call: the result is a tensor */
    n = name_size(++path);
    module = module_of(q, find_in(&members, arena_strndup(arena, path, n), UINT32_MAX));
  }
  return false;
}

const char *names_path(const Query *q, uint32_t *end)
{
  const char *text = q->source->text;
  uint32_t to = *end - q->source->base;
  if (!to || text[to - 1] != '.') return NULL;
  uint32_t from = --to;
  for (uint32_t depth = 0; from; from--) {
    char c = text[from - 1];
    if (c == ']' || c == ')') depth++;
    if (c == '[' || c == '(') {
      if (!depth) break;
      depth--;
    } else if (!depth && c != ']' && c != ')' && c != '.' && !in_name(c)) {
      break;
    }
  }
  *end = q->source->base + from;
  return arena_strndup(q->a->arena, text + from, to - from);
}

const VisibleName *names_meant(const Query *q, const char *name, Span span)
{
  const char *path = names_path(q, &span.start);
  VisibleNames members = {0};
  if (!path) return names_find(q, name);
  return names_members(q, path, &members) ? find_in(&members, name, UINT32_MAX) : NULL;
}
