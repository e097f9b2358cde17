/* Finds visible names. Scopes are those of compiler/lower: a function, block or module body has one
 * scope; methods also see the names of their module's body. */
#include "names.h"
#include "compiler/syntax/ast_forms.h"
#include "compiler/syntax/lex_words.h"

/* ---- parts of the tree ---- */

/* The tree's height is at most MAX_HEIGHT, so recursion is safe. */
void names_walk(const Block *b, void (*visit)(void *data, const Stmt *st), void *data)
{
  for (uint32_t i = 0; i < b->n; i++) {
    const Stmt *st = b->at[i];
    visit(data, st);
    for (const Part *p = stmt_forms[st->kind].part; p->kind; p++) {
      if (p->kind == PART_block) names_walk(part_of(st, p), visit, data);
      if (p->kind == PART_function)
        names_walk(&((const Function *)part_of(st, p))->body, visit, data);
    }
  }
}

static const void *find_part(const Decl *d, PartKind kind, const char *label)
{
  for (const Part *p = decl_forms[d->kind].part; p->kind; p++)
    if (p->kind == kind && strcmp(p->label, label) == 0) return part_of(d, p);
  return NULL;
}

const Block *names_body(const Decl *d)
{
  const Function *f = find_part(d, PART_function, "");
  return f ? &f->body : find_part(d, PART_block, "body");
}

static const ParamList *params_of(const Decl *d)
{
  const Function *f = find_part(d, PART_function, "");
  return f ? &f->params : find_part(d, PART_params, "param");
}

const ParamList *names_params(const VisibleName *n)
{
  return n->method ? &n->method->params : n->decl ? params_of(n->decl) : NULL;
}

typedef struct Finder {
  Arena *arena;
  uint32_t offset;
  int level;
  const void *scope;
  const Decl *within; /* of that scope; or NULL */
  bool members;       /* names of a module's body, all of whose statements run before a method */
  VisibleNames *out;
} Finder;

static void add(Finder *f, VisibleName n)
{
  n.level = f->level;
  n.scope = f->scope;
  n.within = f->within;
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
    add(f, (VisibleName){.text = p->name.text, .span = p->name.span, .param = true});
    for (uint32_t k = 0; p->type.tensor && k < p->type.n_dims; k++) {
      const Expr *size = p->type.dims[k];
      if (size && size->kind == EXPR_name)
        add(f, (VisibleName){.text = size->as.name, .span = size->span, .size = true});
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

/* ---- names of [value for names in list] ---- */

static void add_loops(Finder *f, const Form *form, const void *node);

static void add_loops_of(Finder *f, const Expr *e)
{
  if (!e || !contains(e->span, f->offset)) return;
  if (e->kind == EXPR_comp && !contains(e->as.comp.iter->span, f->offset)) {
    f->level--;
    f->scope = e;
    add_list(f, &e->as.comp.names, 0);
  }
  add_loops(f, &expr_forms[e->kind], e);
}

/* Adds the names of all such loops around the offset, of which the innermost has the least level.
 */
static void add_loops(Finder *f, const Form *form, const void *node)
{
  for (const Part *p = form->part; p->kind; p++) {
    const void *at = part_of(node, p);
    if (p->kind == PART_expr) add_loops_of(f, *(Expr *const *)at);
    for (uint32_t i = 0; p->kind == PART_exprs && i < ((const ExprList *)at)->n; i++)
      add_loops_of(f, ((const ExprList *)at)->at[i]);
    for (uint32_t i = 0; p->kind == PART_args && i < ((const ArgList *)at)->n; i++)
      add_loops_of(f, ((const ArgList *)at)->at[i].value);
    for (uint32_t i = 0; p->kind == PART_subs && i < ((const SubList *)at)->n; i++) {
      const Sub *s = &((const SubList *)at)->at[i];
      add_loops_of(f, s->index);
      add_loops_of(f, s->start);
      add_loops_of(f, s->stop);
      add_loops_of(f, s->step);
    }
  }
}

static void add_loops_in(void *data, const Stmt *st)
{
  if (contains(st->span, ((Finder *)data)->offset)) add_loops(data, &stmt_forms[st->kind], st);
}

/* ---- names of declarations ---- */

/* Adds the names of the method around the offset, then those of its module. */
static void add_module(Finder *f, const Decl *module, const ParamList *params, const Block *body)
{
  for (uint32_t i = 0; i < body->n; i++) {
    const Stmt *st = body->at[i];
    if (st->kind != STMT_def || !contains(st->span, f->offset)) continue;
    f->scope = &st->as.def;
    f->within = NULL;
    add_params(f, &st->as.def.params);
    add_body(f, &st->as.def.body);
    f->scope = f->within = module;
    f->level++;
    f->members = true;
  }
  add_body(f, body);
  f->members = false;
  add_params(f, params);
}

/* Adds the names of the declaration around the offset. The source of a train block is outside. */
static void add_inside(Finder *f, const Decl *d)
{
  const Block *body = names_body(d);
  bool run = d->kind == DECL_train || d->kind == DECL_eval;
  add_loops(f, &decl_forms[d->kind], d);
  if (body) names_walk(body, add_loops_in, f);
  f->level = 0;
  f->scope = f->within = d;
  if (d->kind == DECL_op) add_params(f, &d->as.op.outputs);
  if (run && contains(d->as.run.source->span, f->offset)) return;
  if (run) add_list(f, &d->as.run.names, body->span.start);
  if (body && params_of(d))
    add_module(f, d, params_of(d), body);
  else if (body)
    add_body(f, body);
}

/* ---- files ---- */

static void add_declared(Finder *f, const Ast *ast)
{
  f->scope = ast;
  f->within = NULL;
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

/* True for a name that a size in a type refers to, instead of binding it. */
static bool gives_size(const VisibleName *n)
{
  return n->param || (n->decl && (n->decl->kind == DECL_const || n->decl->kind == DECL_dim));
}

/* Whether `a` is a better meaning of a name at the offset than `b`. */
static bool is_better(const VisibleName *a, const VisibleName *b, uint32_t offset)
{
  if (a->size != b->size && gives_size(a->size ? b : a)) return b->size;
  if (contains(b->span, offset)) return false;
  if (contains(a->span, offset)) return true;
  bool bound = a->from <= offset;
  if (a->level != b->level && bound == (b->from <= offset)) return a->level < b->level;
  return bound && (a->level != b->level || a->from >= b->from);
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

const VisibleName *names_found(const Query *q, const char *name)
{
  VisibleNames names = {0};
  names_visible(q, &names);
  return find_in(&names, name, q->offset);
}

/* ---- members ---- */

const char *names_class(const Query *q, const VisibleName *n)
{
  const Expr *e = n->decl && n->decl->kind == DECL_model ? n->decl->as.object.value : n->value;
  if (e && e->kind == EXPR_comp) e = e->as.comp.value;
  if (e && e->kind == EXPR_list && e->as.args.n) e = e->as.args.at[0].value;
  if (*called_name(e)) return called_name(e);
  DescribedVec values = {0};
  meanings_at(q->a->c, n->span, &values); /* the name of a loop, for example */
  bool module = values.n == 1 && strncmp(values.at[0].text, "a module ", 9) == 0;
  return module ? values.at[0].text + 9 : "";
}

bool names_members(const Query *q, const VisibleName *n, VisibleNames *out)
{
  const VisibleName *class = *names_class(q, n) ? names_found(q, names_class(q, n)) : NULL;
  if (!class || !class->decl || class->decl->kind != DECL_module) return false;
  Finder f = {.arena = q->a->arena,
              .members = true,
              .scope = class->decl,
              .within = class->decl,
              .out = out};
  add_body(&f, &class->decl->as.module.body);
  add_params(&f, &class->decl->as.module.params);
  return true;
}

const Token *names_base(const Query *q, const Token *dot)
{
  int depth = 0;
  while (dot-- > q->tokens.at) {
    depth += kind_closes(dot->kind) - kind_opens(dot->kind);
    if (!depth && !kind_opens(dot->kind)) return dot->kind == TOK_NAME ? dot : NULL;
  }
  return NULL;
}

/* Returns the token behind `[0]` or `[i][1]`. */
static const Token *behind_brackets(const Token *t, const Token *end)
{
  int depth = 0;
  for (; t < end && (depth || t->kind == '['); t++)
    depth += kind_opens(t->kind) - kind_closes(t->kind);
  return t;
}

static bool is_member(const Query *q, const Token *name)
{
  return name > q->tokens.at && name[-1].kind == '.';
}

const VisibleName *names_meant(const Query *q, const Token *name)
{
  const Token *t = name;
  while (t && is_member(q, t)) t = names_base(q, t - 1);
  const VisibleName *n = t ? names_found(q, t->as.name) : NULL;
  while (n && t < name) {
    VisibleNames members = {0};
    t = behind_brackets(t + 1, name);
    if (t->kind != '.' || !names_members(q, n, &members)) return NULL; /* a call: a tensor */
    n = find_in(&members, (++t)->as.name, UINT32_MAX);
  }
  return n;
}

const VisibleName *names_owner(const Query *q, const Token *dot)
{
  const Token *name = names_base(q, dot);
  return name && behind_brackets(name + 1, dot) == dot ? names_meant(q, name) : NULL;
}

const VisibleName *names_called(const Query *q, const VisibleName *n)
{
  VisibleNames members = {0};
  if (!n || names_params(n)) return n;
  return names_members(q, n, &members) ? find_in(&members, "forward", UINT32_MAX) : NULL;
}
