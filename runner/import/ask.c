/* Asks the compiler for the shapes and types of steps: Note [sizes]. The compiler elaborates the
 * text of each step, in which $12 is v12 and #5 is m5. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "compiler/diag/diag.h"
#include "compiler/lower/interpret/stepwise.h"
#include "compiler/syntax/source.h"
#include "read.h"
#include "runtime/plan/types.h"

const char VARIES[] = "?";

typedef struct Asked {
  Compile *c[CHOICES];
  Stepwise *s[CHOICES];
  NameMap functions; /* of the prelude */
  const char *text;  /* of the prelude, which begins at `base` of all sources */
  uint32_t base;
} Asked;

/* onnx_X_Y is the function of both ops, as sizes_X_Y. */
static void note_function(Reader *r, const char *name, Function *f)
{
  int prefix = strncmp(name, "onnx_", 5) == 0 ? 5 : strncmp(name, "sizes_", 6) == 0 ? 6 : 0;
  *names_at(&r->asked->functions, name) = f;
  for (const char *word = name + prefix; prefix && *word;) {
    int n = (int)strcspn(word, "_");
    *names_at(&r->asked->functions, text(r, "%.*s%.*s", prefix, name, n, word)) = f;
    word += n + (word[n] == '_');
  }
}

void ask_begin(Reader *r)
{
  Options options = options_default();
  options.target = "cpu";
  options.input = "";
  options.keep_messages = true;
  r->asked = arena_new(r->arena, Asked);
  for (int i = 0; i < CHOICES; i++) {
    r->asked->c[i] = compile_create(&options);
    r->asked->s[i] = stepwise_begin(r->asked->c[i], prelude_text(r));
    assert(r->asked->s[i]); /* else the prelude has mistakes */
  }
  const Ast *all = r->asked->c[0]->ast;
  const Source *prelude = diag_place(r->asked->c[0], all->at[0]->span).source;
  r->asked->text = prelude->text;
  r->asked->base = prelude->base;
  r->asked->functions.arena = r->arena;
  for (uint32_t i = 0; i < all->n; i++)
    note_function(r, all->at[i]->name.text, &all->at[i]->as.function);
}

void ask_end(Reader *r)
{
  for (int i = 0; i < CHOICES && r->asked; i++) compile_destroy(r->asked->c[i]);
}

/* The latest error of a compile. */
static const char *latest_error(const Reader *r, int i)
{
  uint32_t n;
  const Message *at = diag_kept(r->asked->c[i], &n);
  while (n-- > 0)
    if (at[n].severity == SEVERITY_error) return arena_strdup(r->arena, at[n].text);
  return "";
}

const char *reason_of(const Reader *r, const char *message)
{
  const char *op = r->node->op_type;
  size_t n = strlen(op);
  bool own = strncmp(message, op, n) == 0 && message[n] == ' ';
  if (strncmp(message, "a list is needed", 16) == 0) return "with more than one result";
  return own ? message + n + 1 : text(r, "because %s", message);
}

/* After a message at a choice of the sizes. The node is refused if it is the first one. `made`: the
 * layer that is made; NULL: none. */
static bool refused_at(Reader *r, int choice, const char *made)
{
  if (choice && !r->only_first) r->only_first = latest_error(r, choice);
  if (choice) return false;
  r->refused_by_compiler = true;
  const char *why = latest_error(r, 0);
  return refuse(r, made ? text(r, "as %s: %s", made, why) : reason_of(r, why)), true;
}

/* Elaborates a line. False after refusing. */
static bool ask(Reader *r, const char *line, const char *made)
{
  bool good = true;
  for (int i = 0; i < CHOICES && good; i++)
    good = stepwise_line(r->asked->s[i], line) || !refused_at(r, i, made);
  return good;
}

void ask_tensor(Reader *r, const Value *v)
{
  bool wide;
  const Shape *shape = v->shape;
  for (int i = 0; i < CHOICES; i++)
    stepwise_tensor(r->asked->s[i], text(r, "v%u", v->id), dtype_of(v->type, &wide), shape->dim[i],
                    shape->rank);
}

void ask_layer(Reader *r, uint32_t member)
{
  const char *made = r->members.at[member].text;
  ask(r, text(r, "model m%u = %s", member, made), made);
}

/* The shape and type of a result, which the compiler has elaborated. */
static void read_known(Reader *r, Value *v)
{
  const char *name = text(r, "v%u", v->id);
  Shape *shape = arena_new(r->arena, Shape);
  for (int i = 0; i < CHOICES; i++) {
    Known k = stepwise_known(r->asked->s[i], name);
    if (!k.tensor && i == 0) return;
    if (i == 0) *shape = (Shape){.rank = k.rank};
    if (!k.tensor || k.rank != shape->rank) { /* the first choice alone counts: r->only_first */
      memcpy(shape->dim[i], shape->dim[0], sizeof *shape->dim);
      continue;
    }
    memcpy(shape->dim[i], k.dim, k.rank * sizeof *k.dim);
    if (!ampc_is_float(k.dtype) || !onnx_is_float(v->type)) v->type = type_of_dtype(k.dtype);
  }
  v->shape = shape;
}

/* Text in the names that the compiler knows: $12 is v12. */
static const char *asked_text(const Reader *r, const char *text)
{
  char *all = arena_strdup(r->arena, text);
  for (char *at = all; (at = strpbrk(at, "$#")); at++) *at = *at == '$' ? 'v' : 'm';
  return all;
}

void ask_step(Reader *r, const Step *s)
{
  const char *last = strrchr(s->text, '\n'), *results = last ? last + 1 : s->text, *names = "";
  for (uint32_t i = 0; i < s->n_out; i++)
    names = text(r, "%s%s$%u", names, i ? ", " : "", s->out[i]);
  const char *line = text(r, "%.*s%s = %s", (int)(results - s->text), s->text, names, results);
  bool good = ask(r, asked_text(r, line), NULL);
  for (uint32_t i = 0; i < s->n_out && good; i++) read_known(r, r->values.at[s->out[i]]);
}

const Function *ask_function(const Reader *r, const char *name)
{
  return names_get(&r->asked->functions, name);
}

void ask_enter(Reader *r)
{
  for (int i = 0; i < CHOICES; i++) stepwise_enter(r->asked->s[i]);
}

bool ask_bind(Reader *r, const char *name, const char *value, const Expr *known)
{
  bool good = true;
  for (int i = 0; i < CHOICES && good; i++)
    good = (known ? stepwise_bind_known(r->asked->s[i], name, known)
                  : stepwise_bind(r->asked->s[i], name, asked_text(r, value))) ||
           !refused_at(r, i, NULL);
  return good;
}

const char *ask_source(const Reader *r, uint32_t from, uint32_t end)
{
  return arena_strndup(r->arena, r->asked->text + (from - r->asked->base), end - from);
}

const char *ask_value(Reader *r, const Expr *e)
{
  const char *value[CHOICES];
  for (int i = 0; i < CHOICES; i++) {
    value[i] = stepwise_value(r->asked->s[i], e);
    if (!value[i] && refused_at(r, i, NULL)) return NULL;
  }
  return !value[1] || strcmp(value[0], value[1]) == 0 ? value[0] : VARIES;
}

bool ask_item(Reader *r, const char *code, Item *out)
{
  static const Expr name = {.kind = EXPR_name, .as.name = "item"};
  int64_t n[CHOICES] = {0};
  if (!ask_bind(r, "item", code, NULL)) return false;
  for (int i = 0; i < CHOICES; i++) {
    const char *value = stepwise_value(r->asked->s[i], &name);
    n[i] = !value ? n[0] : *value == 't' ? 1 : strtoll(value, NULL, 10);
  }
  *out = n[0] == n[1] ? (Item){.n = n[0]} : (Item){n[0], n[1], code};
  return true;
}
