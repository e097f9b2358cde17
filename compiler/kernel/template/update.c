/* Prints the formula of an optimizer, a column of optimizers.def, at two words of the frames.
 * $constants: the lets that are the same for all weights, before the loop. $formula: the other
 * statements, for each weight. The frames declare lr, weight_decay, w and g. */
#include "template.h"
#include "compiler/base/names.h"
#include "compiler/graph/optimizers.h"
#include <stdlib.h>

typedef struct Update {
  const Template *t;
  const Optimizer *optimizer;
  const ParamGroup *group;
  const OpCode *code;
  bool live[MAX_STATEMENTS];   /* the kernel needs the statement */
  bool varies[MAX_STATEMENTS]; /* its value differs between weights */
  uint32_t printed;            /* statements so far */
} Update;

/* ---- which branches and statements are printed ---- */

static uint32_t moment_of(const char *name)
{
  uint32_t i = 0;
  while (i < MAX_MOMENTS && !same_name(moment_names[i], name)) i++;
  return i;
}

static bool is_kept(const Update *u, const char *moment)
{
  return u->group->moments >> moment_of(moment) & 1;
}

/* Returns 1 or 0 if the condition is a flag or kept(m), which are known; else -1. */
static int known(const Update *u, const Formula *f)
{
  if (f->kind == FORMULA_call && same_name(f->name, "kept")) return is_kept(u, f->in[0]->name);
  const OptimizerInfo *row = optimizer_of(u->optimizer);
  for (uint32_t i = 0; f->kind == FORMULA_name && i < row->n_words; i++)
    if (same_name(row->word[i], f->name))
      return optimizer_holds(u->optimizer, u->group, f->name, strlen(f->name));
  return -1;
}

/* Returns the branch that the known conditions select. */
static const Formula *standing(const void *frame, const Formula *f)
{
  int holds;
  while (f->kind == FORMULA_choose && (holds = known(frame, f->in[0])) >= 0)
    f = f->in[holds ? 1 : 2];
  return f;
}

static bool mentions(const Update *u, const Formula *f, const char *name)
{
  f = standing(u, f);
  bool does = f->kind == FORMULA_name && same_name(f->name, name);
  for (uint32_t i = 0; i < f->n; i++) does = does || mentions(u, f->in[i], name);
  return does;
}

/* True if a statement that is printed reads the name. */
static bool is_read(const Update *u, const char *name)
{
  bool is = false;
  for (uint32_t i = 0; i < u->code->n_statements; i++)
    is = is || (u->live[i] && mentions(u, u->code->statements[i].value, name));
  return is;
}

/* True if the value differs between weights. */
static bool differs(const Update *u, const Formula *f, uint32_t statement)
{
  bool does = mentions(u, f, "g") || mentions(u, f, "w");
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) does = does || mentions(u, f, moment_names[i]);
  for (uint32_t i = 0; i < statement; i++)
    does = does || (u->varies[i] && mentions(u, f, u->code->statements[i].name));
  return does;
}

static Update update_of(const Template *t)
{
  Update u = {.t = t, .optimizer = own_optimizer(t), .group = own_group(t)};
  u.code = &optimizer_of(u.optimizer)->formula;
  for (uint32_t i = u.code->n_statements; i-- > 0;) {
    const CodeStatement *s = &u.code->statements[i];
    bool is_moment = s->kind == STATEMENT_set && moment_of(s->name) < MAX_MOMENTS;
    u.live[i] = is_moment                  ? is_kept(&u, s->name)
                : s->kind == STATEMENT_let ? is_read(&u, s->name)
                                           : true;
  }
  for (uint32_t i = 0; i < u.code->n_statements; i++) {
    const CodeStatement *s = &u.code->statements[i];
    u.varies[i] = s->kind == STATEMENT_set || differs(&u, s->value, i);
  }
  return u;
}

/* ---- printing ---- */

/* Returns a name as C: a moment is m_at[j] before its statement, and m after it. */
static const char *name_text(const Update *u, const char *name)
{
  bool is_moment = moment_of(name) < MAX_MOMENTS;
  if (is_moment && !is_kept(u, name))
    kernel_bug(u->t->k, u->t->k->group->anchor, "its formula reads a moment that it does not keep");
  for (uint32_t i = 0; i < u->printed; i++)
    is_moment = is_moment && !same_name(u->code->statements[i].name, name);
  if (!is_moment) return name;
  return arena_printf(u->t->k->c->arena, "%s_at[j]", name);
}

static const char *word(const void *frame, const Formula *f)
{
  const Update *u = frame;
  if (f->kind == FORMULA_number) return real_text(u->t->k, strtod(f->name, NULL));
  if (f->kind == FORMULA_call) return arena_printf(u->t->k->c->arena, "ampc_%s", f->name);
  return name_text(u, f->name);
}

static const char *text_of(const Update *u, const Formula *f)
{
  return formula_text(u->t->k->c->arena, &(FormulaTexts){u, word, standing}, f);
}

static void put_let(const Update *u, const CodeStatement *s)
{
  FormulaKind kind = standing(u, s->value)->kind;
  bool compares = kind >= FORMULA_at_most && kind <= FORMULA_unequal;
  EMIT_STATEMENT(u->t->k->p, "const %s %s = %s;\n", compares ? "int" : "real", s->name,
                 text_of(u, s->value));
}

/* Declares the settings that the formula reads, except those that the frame declares. */
static void put_settings(const Update *u)
{
  const OpSignature *sig = &u->t->op->signature;
  Text line = text_new(u->t->k->c->arena);
  for (uint32_t i = 0; i < sig->n_inputs; i++) {
    const char *name = sig->input[i].name;
    if (same_name(name, "lr") || same_name(name, "weight_decay") || !is_read(u, name)) continue;
    text_printf(&line, "%s%s = %s", line.n ? ", " : "", name, input_text(u->t, i));
  }
  if (line.n) EMIT_WRAPPED(u->t->k->p, "    ", "const real %s;\n", line.at);
}

const char *put_constants(Template *t)
{
  Update u = update_of(t);
  put_settings(&u);
  if (is_read(&u, "t")) EMIT(t->k->p, "const real t = (real)optimizer->taken;\n");
  for (uint32_t i = 0; i < u.code->n_statements; i++)
    if (u.live[i] && !u.varies[i]) put_let(&u, &u.code->statements[i]);
  return NULL;
}

/* Prints w = w - x as `w -= x`. */
static void put_weight(const Update *u, const Formula *f)
{
  f = standing(u, f);
  bool falls =
      f->kind == FORMULA_sub && f->in[0]->kind == FORMULA_name && same_name(f->in[0]->name, "w");
  EMIT_STATEMENT(u->t->k->p, "w %s= %s;\n", falls ? "-" : "", text_of(u, falls ? f->in[1] : f));
}

const char *put_formula(Template *t)
{
  Update u = update_of(t);
  for (; u.printed < u.code->n_statements; u.printed++) {
    const CodeStatement *s = &u.code->statements[u.printed];
    if (!u.live[u.printed] || !u.varies[u.printed]) continue;
    if (same_name(s->name, "w"))
      put_weight(&u, s->value);
    else
      put_let(&u, s);
  }
  for (uint32_t i = 0; i < MAX_MOMENTS; i++)
    if (u.group->moments >> i & 1)
      EMIT(t->k->p, "%s_at[j] = %s;\n", moment_names[i], moment_names[i]);
  return NULL;
}

bool formula_reads(const Template *t, const char *argument)
{
  Update u = update_of(t);
  size_t n = strlen(argument);
  if (n > 3 && strcmp(argument + n - 3, "_at") == 0)
    argument = arena_strndup(t->k->c->arena, argument, n - 3);
  return is_read(&u, argument);
}
