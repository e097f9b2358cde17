/* THE words of templates: the table, the text that replaces a word, and the check that templates
 * have no unknown words. A process runs the check once. */
#include "compiler/command/attention.h"
#include "template.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/ranges.h"
#include "runtime/plan/arithmetic.h"
#include "runtime/plan/conv_sizes.h"
#include "compiler/kernel/kernels.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

bool has_attr(const OpInfo *op, const char *name)
{
  uint32_t place;
  return op && attr_find(op, name, &place);
}

/* ---- the table ---- */

#define FUNCTION(type, name, value)                                                                \
  static type name(Template *t)                                                                    \
  {                                                                                                \
    return value;                                                                                  \
  }
#define SUBJECT(about, condition)    FUNCTION(bool, about_##about, condition)
#define MARK(about, word, condition) FUNCTION(bool, mark_##about##_##word, condition)
#define TEXT(about, word, value)     FUNCTION(const char *, text_##about##_##word, value)
#define NUMBER(about, word, value)   TEXT(about, word, number_text(t, value))
#include "words.def"
#undef SUBJECT
#undef MARK
#undef TEXT

typedef struct Word {
  const char *name;
  bool (*about)(Template *t);       /* true if the template has such words */
  bool (*holds)(Template *t);       /* the condition of @name, or NULL */
  const char *(*text)(Template *t); /* for $name, else NULL; returns NULL if it printed the line */
} Word;

static const Word words[] = {
#define SUBJECT(about, condition)
#define MARK(about, word, condition) {#word, about_##about, mark_##about##_##word, NULL},
#define TEXT(about, word, value)     {#word, about_##about, NULL, text_##about##_##word},
#include "words.def"
};

/* ---- looking up ---- */

static const Word *find(Template *t, bool mark, const char *word, size_t n)
{
  for (const Word *w = words; n && w < words + sizeof words / sizeof *words; w++)
    if (*w->name == *word && is_name(word, n, w->name) && mark == (w->holds != NULL) && w->about(t))
      return w;
  return NULL;
}

/* Returns the index of the input of that name, or n_inputs. attr_named() does so for attributes. */
static uint32_t input_named(const OpInfo *op, const char *word, size_t n)
{
  uint32_t i = 0;
  while (i < op->signature.n_inputs && !is_name(word, n, op->signature.input[i].name)) i++;
  return i;
}

static uint32_t attr_named(const OpInfo *op, const char *word, size_t n)
{
  uint32_t i = 0;
  while (i < op->signature.n_attrs && !is_name(word, n, op->signature.attr[i].name)) i++;
  return i;
}

bool word_holds(Template *t, const char *word, size_t n)
{
  const Word *w = find(t, true, word, n);
  if (w) return w->holds(t);
  uint32_t input = input_named(t->op, word, n), attr = attr_named(t->op, word, n);
  if (input < t->op->signature.n_inputs) return t->n->in[input].id != 0;
  if (attr < t->op->signature.n_attrs) return code_stands(t->n, (int)attr);
  return optimizer_holds(own_optimizer(t), own_group(t), word, n);
}

const char *word_text(Template *t, const char *word, size_t n)
{
  const Word *w = find(t, false, word, n);
  if (w) return w->text(t);
  uint32_t input = input_named(t->op, word, n);
  return input < t->op->signature.n_inputs ? input_text(t, input)
                                           : attr_text(t, attr_named(t->op, word, n));
}

/* ---- checking ---- */

/* True if an optimizer that uses this kernel has the word: a flag, or a word of a variant. */
static bool is_optimizer_word(const OpInfo *op, const char *word, size_t n)
{
  for (OptimizerKind i = 0; i < OPT_COUNT; i++) {
    const OptimizerInfo *row = optimizer_row(i);
    if (op_row(row->update) != op && (row->measure == OP_COUNT || op_row(row->measure) != op))
      continue;
    for (uint32_t k = 0; k < row->n_words; k++)
      if (is_name(word, n, row->word[k])) return true;
  }
  return false;
}

static bool is_known(Template *t, bool mark, const char *word, size_t n)
{
  if (find(t, mark, word, n)) return true;
  if (!t->op) return false;
  return input_named(t->op, word, n) < t->op->signature.n_inputs ||
         attr_named(t->op, word, n) < t->op->signature.n_attrs ||
         (mark && is_optimizer_word(t->op, word, n));
}

static void check_word(Template *t, const TemplateLine *line, bool mark, const char *word, size_t n)
{
  if (!is_known(t, mark, word, n))
    template_broken(line, word, n, "word of this template, see compiler/kernel/template/words.def");
}

void template_check(Arena *a, Template t, const EmbeddedFile *file)
{
  TemplateLines lines = {.arena = a};
  template_read(&lines, file);
  for (uint32_t i = 0; i < lines.n; i++) {
    const TemplateLine *line = lines.at[i];
    for (const TemplateLine *l = line; l; l = l->in) {
      const char *s = l->text;
      for (Mark m; mark_next(&s, &m);) check_word(&t, l, true, m.word, m.n);
    }
    for (const char *s = line_text(line); s < line->end; s++)
      if (*s == '$') check_word(&t, line, false, s + 1, name_size(s + 1));
  }
}

static bool text_has(const EmbeddedFile *file, const char *word)
{
  for (const char *s = template_begin(file); (s = strstr(s, word)); s++)
    if (name_size(s - 1) < name_size(s) && name_size(s) == strlen(word)) return true;
  return false;
}

static bool formula_has_word(const OpCode *code, const char *word)
{
  bool has = false;
  for (uint32_t i = 0; i < code->n_statements; i++)
    has = has || formula_mentions(code->statements[i].value, word);
  return has;
}

/* Checks that the formula or a template uses the word, which has no effect otherwise. */
static void check_use(const OptimizerInfo *row, const char *word)
{
  bool used = formula_has_word(&row->formula, word) ||
              text_has(template_file(op_row(row->update)), word) ||
              text_has(embedded_find(template_shared), word);
  if (row->measure != OP_COUNT) used |= text_has(template_file(op_row(row->measure)), word);
  used = used || strcmp(word, MUON_SCALE) == 0; /* passes/orthogonal.c */
  if (!used) optimizer_broken(row->name, "neither formula nor template uses", word);
}

static void check_optimizer(const OptimizerInfo *row)
{
  for (uint32_t i = 0; i < row->n_words; i++) check_use(row, row->word[i]);
  for (uint32_t i = 0; i < row->n_settings; i++) check_use(row, row->setting[i]->name);
}

static void check_all(void)
{
  Arena *a = arena_create();
  for (OpKind i = 0; i < OP_COUNT; i++)
    if (op_row(i)->tmpl == TMPL_file)
      template_check(a, (Template){.op = op_row(i)}, template_file(op_row(i)));
  for (OpKind i = 0; i < OP_COUNT; i++)
    if (op_row(i)->traits & T_tiles)
      template_check(a, (Template){.op = op_row(i)}, template_tensor_file(op_row(i)));
  const OpInfo *attention = op_row(OP_attention);
  template_check(a, (Template){.op = attention}, template_step_file(attention));
  for (uint32_t i = 0; i < COLUMNS_FILES; i++)
    template_check(a, (Template){.columns = {.whole = i > 0}}, embedded_find(columns_file[i]));
  for (OptimizerKind i = 0; i < OPT_COUNT; i++) check_optimizer(optimizer_row(i));
  arena_destroy(a);
}

void templates_check(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, check_all);
}
