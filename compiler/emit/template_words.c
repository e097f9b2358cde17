/* THE words of templates: the table, what stands for a word, and the check that no template has one
 * that nobody knows, which a process makes once. */
#include "template.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/ranges.h"
#include "runtime/plan/conv_sizes.h"
#include "emit.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

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
#include "template_words.def"
#undef SUBJECT
#undef MARK
#undef TEXT

typedef struct Word {
  const char *name;
  bool (*about)(Template *t);       /* the template has such words */
  bool (*holds)(Template *t);       /* of @name, else NULL */
  const char *(*text)(Template *t); /* of $name; it gives NULL where it has printed the line */
} Word;

static const Word words[] = {
#define SUBJECT(about, condition)
#define MARK(about, word, condition) {#word, about_##about, mark_##about##_##word, NULL},
#define TEXT(about, word, value)     {#word, about_##about, NULL, text_##about##_##word},
#include "template_words.def"
};

/* ---- looking up ---- */

size_t word_length(const char *s, const char *end)
{
  size_t n = 0;
  while (s + n < end && (isalnum((unsigned char)s[n]) || s[n] == '_')) n++;
  return n;
}

static const Word *find(Template *t, bool mark, const char *word, size_t n)
{
  for (const Word *w = words; n && w < words + sizeof words / sizeof *words; w++)
    if (*w->name == *word && is(word, n, w->name) && mark == (w->holds != NULL) && w->about(t))
      return w;
  return NULL;
}

/* Its place; their number: the op has no input, no attribute of that name. */
static uint32_t input_named(const OpInfo *op, const char *word, size_t n)
{
  uint32_t i = 0;
  while (i < op->signature.n_inputs && !is(word, n, op->signature.input[i].name)) i++;
  return i;
}

static uint32_t attr_named(const OpInfo *op, const char *word, size_t n)
{
  uint32_t i = 0;
  while (i < op->signature.n_attrs && !is(word, n, op->signature.attr[i].name)) i++;
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

/* ---- lines ---- */

TemplateLine template_head(const EmbeddedFile *file)
{
  TemplateLine line = {
      .end = strstr(file->text, "*/\n") + 2, .file_end = file->text + file->size, .number = 1};
  for (const char *s = file->text; s < line.end; s++) line.number += *s == '\n';
  return line;
}

bool template_next(TemplateLine *line)
{
  if (line->end + 1 >= line->file_end) return false;
  line->text = line->end + 1;
  line->end = memchr(line->text, '\n', (size_t)(line->file_end - line->text));
  if (!line->end) line->end = line->file_end;
  line->number++;
  return true;
}

/* ---- checking ---- */

/* A flag, or a word of the variant, of some optimizer whose kernel this is. */
static bool is_optimizer_word(const OpInfo *op, const char *word, size_t n)
{
  for (OptimizerKind i = 0; i < OPT_COUNT; i++) {
    const OptimizerInfo *row = optimizer_row(i);
    if (op_row(row->update) != op && (row->measure == OP_COUNT || op_row(row->measure) != op))
      continue;
    for (uint32_t k = 0; k < row->n_words; k++)
      if (is(word, n, row->word[k])) return true;
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

/* A word that the line must not have, behind its sign; NULL: there is none. */
static const char *unknown_word(Template *t, const char *s, const char *end)
{
  while (*s == '@') {
    s += s[1] == '!' ? 2 : 1;
    size_t n = word_length(s, end);
    if (!is_known(t, true, s, n)) return s;
    s += n;
  }
  for (; s < end; s++)
    if (*s == '$' && !is_known(t, false, s + 1, word_length(s + 1, end))) return s + 1;
  return NULL;
}

void template_check(Template t, const EmbeddedFile *file)
{
  for (TemplateLine line = template_head(file); template_next(&line);) {
    const char *word = unknown_word(&t, line.text, line.end);
    if (!word) continue;
    fprintf(stderr, "ampc: templates/%s:%u: `%.*s` is no word of this template, see %s\n",
            file->name, line.number, (int)word_length(word, line.end), word,
            "compiler/emit/template_words.def");
    abort();
  }
}

static void check_all(void)
{
  char name[64];
  for (OpKind i = 0; i < OP_COUNT; i++) {
    snprintf(name, sizeof name, "%s.cu", op_row(i)->name);
    if (op_row(i)->tmpl == TMPL_file)
      template_check((Template){.op = op_row(i)}, embedded_find(name));
  }
  for (uint32_t i = 0; i < COLUMNS_FILES; i++)
    template_check((Template){.columns = {.whole = i > 0}}, embedded_find(columns_file[i]));
}

void templates_check(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, check_all);
}
