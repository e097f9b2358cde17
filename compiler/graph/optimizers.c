/* What expands from optimizers.def: rows, looked up by name; their words, checked against the
 * update's row in ops.def and its template. */
#include "optimizers.h"
#include "compiler/base/embedded.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OptimizerInfo table[OPT_COUNT] = {
#define AMPC_OPTIMIZER(row, op, moment_list, flag_list, variant_list)                              \
  [OPT_##row] = {.name = #row,                                                                     \
                 .update = OP_##op,                                                                \
                 .moments_text = moment_list,                                                      \
                 .flags_text = flag_list,                                                          \
                 .variant_text = variant_list},
#include "optimizers.def"
};
static pthread_once_t parse_once = PTHREAD_ONCE_INIT;

void optimizer_broken(const char *name, const char *what, const char *word)
{
  fprintf(stderr, "ampc: optimizers.def: %s: %s `%s`\n", name, what, word);
  abort();
}

/* ---- lists of words with conditions ---- */

enum { MAX_LIST_TEXT = 80 };

/* Words point into these copies of the columns, which are cut up in place. */
static char texts[OPT_COUNT][3][MAX_LIST_TEXT];

static uint32_t setting_named(const OptimizerInfo *row, const char *name)
{
  const OpSignature *sig = &op_row(row->update)->signature;
  for (uint32_t i = 0; i < sig->n_inputs; i++)
    if (strcmp(sig->input[i].name, name) == 0) return i;
  optimizer_broken(row->name, "its update has no input", name);
}

/* "momentum !dampening", "amsgrad" */
static SettingCondition parse_condition(const OptimizerInfo *row, char *text)
{
  SettingCondition c = {0};
  char *rest;
  for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    bool zero = *word == '!';
    uint32_t flag = 0;
    while (flag < row->n_flags && strcmp(row->word[flag], word) != 0) flag++;
    if (flag < row->n_flags) {
      c.flags |= 1u << flag;
      continue;
    }
    *(zero ? &c.zero : &c.nonzero) |= 1u << setting_named(row, word + zero);
  }
  return c;
}

typedef void TakeWord(OptimizerInfo *row, const char *word, SettingCondition condition);

/* "word: condition, word": calls take for each. */
static void parse_list(OptimizerInfo *row, const char *list, char *copy, TakeWord *take)
{
  char *rest;
  if (strlen(list) >= MAX_LIST_TEXT)
    optimizer_broken(row->name, "longer than MAX_LIST_TEXT:", list);
  strcpy(copy, list);
  for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    SettingCondition condition = {0};
    char *colon = strchr(item, ':');
    if (colon) condition = parse_condition(row, colon + 1);
    if (colon) *colon = 0;
    take(row, item + strspn(item, " "), condition);
  }
}

/* Moments are known by the names of their spaces, which templates use. */
static void take_moment(OptimizerInfo *row, const char *word, SettingCondition condition)
{
  static const char *const names[MAX_MOMENTS] = {"moment1", "moment2", "moment3"};
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) {
    if (strcmp(names[i], word) != 0) continue;
    row->moments |= 1u << i;
    row->keep[i] = condition;
    return;
  }
  optimizer_broken(row->name, "there is no space for", word);
}

/* Flags come first and then the variant, so a flag's place among the words is its bit. */
static void take_word(OptimizerInfo *row, const char *word, SettingCondition condition)
{
  if (row->n_words == MAX_WORDS) optimizer_broken(row->name, "more than MAX_WORDS at", word);
  row->needs[row->n_words] = condition;
  row->word[row->n_words++] = word;
}

/* ---- arguments ---- */

/* How many settings from i on differ from it in the last digit only: beta1, beta2. */
static uint32_t numbered(const OpSignature *sig, uint32_t i)
{
  const char *first = sig->input[i].name;
  size_t stem = strlen(first) - 1;
  uint32_t n = 0;
  if (!isdigit((unsigned char)first[stem])) return 1;
  for (; i + n < sig->n_inputs; n++) {
    const char *name = sig->input[i + n].name;
    if (strlen(name) != stem + 1 || memcmp(name, first, stem) != 0) break;
    if (!isdigit((unsigned char)name[stem])) break;
  }
  return n;
}

/* "beta1" as "betas", but "clamp1" as "clamp": what may be absent is one thing. Names live as long
 * as the process. */
static const char *list_name(uint32_t kind, uint32_t i, const InputInfo *first)
{
  enum { MAX_NAME = 24 };
  static char names[OPT_COUNT][MAX_SIGNATURE][MAX_NAME];
  snprintf(names[kind][i], MAX_NAME, "%.*s%s", (int)strlen(first->name) - 1, first->name,
           first->optional ? "" : "s");
  return names[kind][i];
}

/* In the order of the update's inputs, so that messages read as the table does. */
static void find_arguments(OptimizerInfo *row)
{
  const OpSignature *sig = &op_row(row->update)->signature;
  row->n_settings = sig->n_inputs;
  for (uint32_t i = 0, n; i < sig->n_inputs; i += n) {
    const char *name = sig->input[i].name;
    n = numbered(sig, i);
    if (n > 1) name = list_name((uint32_t)(row - table), i, &sig->input[i]);
    row->argument[row->n_arguments++] = (OptimizerArgument){.name = name,
                                                            .optional = sig->input[i].optional,
                                                            .whole = strcmp(name, "ema") == 0,
                                                            .first = i,
                                                            .n = n};
  }
  for (uint32_t i = 0; i < row->n_flags; i++)
    row->argument[row->n_arguments++] =
        (OptimizerArgument){.name = row->word[i], .flag = true, .first = i, .n = 1};
}

/* ---- settings ---- */

bool setting_domain(const char *name, ampc_domain value, ampc_domain *out)
{
  enum { AMPC_VALUE = AMPC_DOMAIN_COUNT };
  static const struct {
    const char *name;
    int domain;
  } settings[] = {
#define AMPC_SETTING(row, domain) {#row, AMPC_##domain},
#include "settings.def"
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    if (strcmp(settings[i].name, name) != 0) continue;
    *out = settings[i].domain == AMPC_VALUE ? value : (ampc_domain)settings[i].domain;
    return true;
  }
  return false;
}

/* ---- checks ---- */

/* Inputs that may be many are no settings; `optimizer_control` shows the first as lr. */
static void check_update(const OptimizerInfo *row)
{
  const OpInfo *op = op_row(row->update);
  uint32_t place;
  bool ranges = false,
       first_is_lr = op->signature.n_inputs && !strcmp(op->signature.input[0].name, "lr");
  for (uint32_t i = 0; i < op->n_file_args; i++) ranges |= op->file_args[i] == FILE_ranges;
  if (op->tmpl != TMPL_file || !ranges)
    optimizer_broken(row->name, "no op of a template with `ranges`:", op->name);
  if (!first_is_lr) optimizer_broken(row->name, "the first input is not lr of", op->name);
  if (!attr_find(op, "optimizer", &place) || !attr_find(op, "group", &place))
    optimizer_broken(row->name, "no attributes `optimizer` and `group` in", op->name);
  for (uint32_t i = 0; i < op->signature.n_inputs; i++) {
    const InputInfo *input = &op->signature.input[i];
    ampc_domain domain;
    if (input->variadic) optimizer_broken(row->name, "this input is no setting:", input->name);
    if (!setting_domain(input->name, AMPC_FINITE, &domain))
      optimizer_broken(row->name, "settings.def has no row", input->name);
  }
}

/* Whether a line of the template is marked @word or @!word. */
static bool is_marked(const char *text, const char *word)
{
  size_t n = strlen(word);
  for (const char *s = text; (s = strstr(s, word)); s += n) {
    bool mark = s > text && (s[-1] == '@' || (s[-1] == '!' && s - 1 > text && s[-2] == '@'));
    if (mark && !isalnum((unsigned char)s[n]) && s[n] != '_') return true;
  }
  return false;
}

/* Words and moments that the template does not use would be passed over in silence; a moment that
 * it uses and no row keeps would be an error of the C compiler. */
static void check_template(const OptimizerInfo *row)
{
  char name[64], moment[] = "moment0";
  snprintf(name, sizeof name, "%s.cu", op_row(row->update)->name);
  const EmbeddedFile *file = embedded_find(name); /* there is one, ops.c has seen to it */
  for (uint32_t i = 0; i < row->n_words; i++)
    if (!is_marked(file->text, row->word[i]))
      optimizer_broken(row->name, "the template has no line that is marked", row->word[i]);
  const OpSignature *sig = &op_row(row->update)->signature;
  for (const OptimizerArgument *a = row->argument; a < row->argument + row->n_arguments; a++)
    if (a->optional && !is_marked(file->text, sig->input[a->first].name))
      optimizer_broken(row->name, "the template has no line that is marked", a->name);
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) {
    moment[sizeof moment - 2] = (char)('1' + i);
    bool used = strstr(file->text, moment) != NULL, kept = row->moments >> i & 1;
    if (used != kept)
      optimizer_broken(row->name,
                       kept ? "the template has no" : "the template has, and the row not,", moment);
  }
}

/* The check of the op's row comes first: the rest relies on it. */
static void parse_all(void)
{
  for (OptimizerInfo *row = table; row < table + OPT_COUNT; row++) {
    char(*copy)[MAX_LIST_TEXT] = texts[row - table];
    check_update(row);
    parse_list(row, row->flags_text, copy[1], take_word);
    row->n_flags = row->n_words;
    parse_list(row, row->moments_text, copy[0], take_moment);
    parse_list(row, row->variant_text, copy[2], take_word);
    find_arguments(row);
    check_template(row);
  }
}

/* ---- rows ---- */

const OptimizerInfo *optimizer_row(OptimizerKind kind)
{
  pthread_once(&parse_once, parse_all);
  return &table[kind];
}

bool optimizer_lookup(const char *name, OptimizerKind *out)
{
  for (*out = 0; *out < OPT_COUNT; (*out)++)
    if (strcmp(table[*out].name, name) == 0) return true;
  return false;
}

const char *optimizer_setting_name(const OptimizerInfo *row, uint32_t i)
{
  return op_row(row->update)->signature.input[i].name;
}

uint32_t optimizer_moments(const Optimizer *o)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->groups.n; i++) kept |= o->groups.at[i].moments;
  return kept;
}

bool optimizer_holds(const Optimizer *o, const ParamGroup *group, const char *word, size_t n)
{
  const OptimizerInfo *row = optimizer_of(o);
  for (uint32_t i = 0; i < row->n_words; i++)
    if (strlen(row->word[i]) == n && memcmp(row->word[i], word, n) == 0)
      return i >= row->n_flags || (group->flags >> i & 1);
  return false;
}
