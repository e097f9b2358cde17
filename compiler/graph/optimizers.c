/* The optimizer table: rows from optimizers.def, and look-up by name. A row is checked against its
 * op and its formula; kernel/template/words.c checks that some text uses each word. */
#include "optimizers.h"
#include "compiler/base/names.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OptimizerInfo table[OPT_COUNT] = {
#define ROW(row, op, measure_op, matrix, moment_list, flag_list, always_list, formula)             \
  [OPT_##row] = {.name = #row,                                                                     \
                 .update = OP_##op,                                                                \
                 .measure = measure_op,                                                            \
                 .matrices = matrix,                                                               \
                 .moments_text = moment_list,                                                      \
                 .flags_text = flag_list,                                                          \
                 .always_text = always_list,                                                       \
                 .formula_text = formula,                                                          \
                 .of = OPT_COUNT,                                                                  \
                 .defaults_text = ""},
#define AMPC_OPTIMIZER(row, op, settings, ...) ROW(row, op, OP_COUNT, false, __VA_ARGS__)
#define AMPC_MEASURED(row, op, measure_op, moments, flags, formula)                                \
  ROW(row, op, OP_##measure_op, false, moments, flags, "", formula)
#define AMPC_MATRICES(row, op, measure_op, moments, flags, formula)                                \
  ROW(row, op, OP_##measure_op, true, moments, flags, "", formula)
#define AMPC_VARIANT(row, row_of, defaults, always)                                                \
  [OPT_##                                                                                          \
      row] = {.name = #row, .of = OPT_##row_of, .defaults_text = defaults, .always_text = always},
#include "optimizers.def"
#undef ROW
};
const char *const moment_names[MAX_MOMENTS] = {"m", "v", "u"};
static Arena *memory; /* holds the parsed formulas */
static pthread_once_t parse_once = PTHREAD_ONCE_INIT;

void optimizer_broken(const char *name, const char *what, const char *word)
{
  fprintf(stderr, "ampc: optimizers.def: %s: %s `%s`\n", name, what, word);
  abort();
}

/* ---- lists of words with conditions ---- */

enum { MAX_LIST_TEXT = 96 };

/* Words point into these copies of the columns, which the parser splits in place. */
static char texts[OPT_COUNT][3][MAX_LIST_TEXT];

static uint32_t setting_named(const OptimizerInfo *row, const char *name)
{
  uint32_t i;
  if (optimizer_setting_find(row, name, &i)) return i;
  optimizer_broken(row->name, "its update has no input", name);
}

/* Parses a condition such as "momentum !dampening" or "amsgrad". */
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

typedef void TakeWord(OptimizerInfo *row, char *word, SettingCondition condition);

/* Calls `take` for each word of a list such as "word: condition, word". */
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

static void take_moment(OptimizerInfo *row, char *word, SettingCondition condition)
{
  bool positive = *word == '+';
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) {
    if (strcmp(moment_names[i], word + positive) != 0) continue;
    row->moments |= 1u << i;
    row->never_negative |= (uint32_t)positive << i;
    row->keep[i] = condition;
    return;
  }
  optimizer_broken(row->name, "there is no space for", word);
}

/* Adds a flag. Those that are always true come last, so an argument's index is its bit. */
static void take_word(OptimizerInfo *row, char *word, SettingCondition condition)
{
  if (row->n_words == MAX_WORDS) optimizer_broken(row->name, "more than MAX_WORDS at", word);
  char *value = strchr(word, '=');
  if (value) *value++ = 0;
  row->needs[row->n_words] = condition;
  row->flag_default[row->n_words] = value;
  row->word[row->n_words++] = word;
}

/* ---- arguments ---- */

/* Adds inputs [from, from + n) of an op to the settings. Skips inputs that are settings already. */
static void add_settings(OptimizerInfo *row, OpKind op, uint32_t from, uint32_t n)
{
  const OpSignature *sig = &op_row(op)->signature;
  for (uint32_t i = from, known; i < from + n; i++) {
    if (optimizer_setting_find(row, sig->input[i].name, &known)) continue;
    if (row->n_settings == MAX_SIGNATURE)
      optimizer_broken(row->name, "more than MAX_SIGNATURE settings at", sig->input[i].name);
    row->setting[row->n_settings++] = &sig->input[i];
  }
}

/* True if the last input of the update is a ratio, which is no setting. */
static bool takes_ratio(const OptimizerInfo *row)
{
  return row->measure != OP_COUNT && !row->matrices;
}

/* Lists the settings: `lr`, then the inputs of `measure`, then the other inputs of the update. Of
 * matrices, weight_decay follows `lr`, as in PyTorch. */
static void find_settings(OptimizerInfo *row)
{
  uint32_t first = row->matrices ? 2 : 1;
  add_settings(row, row->update, 0, first);
  if (row->measure != OP_COUNT)
    add_settings(row, row->measure, 0, op_row(row->measure)->signature.n_inputs);
  uint32_t rest = op_row(row->update)->signature.n_inputs - first - takes_ratio(row);
  add_settings(row, row->update, first, rest);
}

/* Returns what follows "NAME=" in a list; NULL if the list does not have it. */
static const char *value_in(const char *list, const char *name)
{
  for (const char *s = list; *s; s += *s == ',') {
    s += strspn(s, " ");
    size_t n = name_size(s);
    if (is_name(s, n, name)) return s + n + 1;
    s += strcspn(s, ",");
  }
  return NULL;
}

static void find_defaults(OptimizerInfo *row)
{
  for (uint32_t i = 0; i < row->n_settings; i++) {
    const char *other = value_in(row->defaults_text, row->setting[i]->name);
    row->setting_default[i] =
        other ? arena_strndup(memory, other, strcspn(other, ", ")) : row->setting[i]->default_text;
  }
}

/* Counts the settings from i on whose names differ only in the last digit: beta1, beta2. */
static uint32_t numbered(const OptimizerInfo *row, uint32_t i)
{
  const char *first = row->setting[i]->name;
  size_t stem = strlen(first) - 1;
  uint32_t n = 0;
  if (!isdigit((unsigned char)first[stem])) return 1;
  for (; i + n < row->n_settings; n++) {
    const char *name = row->setting[i + n]->name;
    if (strlen(name) != stem + 1 || memcmp(name, first, stem) != 0) break;
    if (!isdigit((unsigned char)name[stem])) break;
  }
  return n;
}

/* Returns the name of an argument that is a list: "betas" for "beta1", but "clamp" for the optional
 * "clamp1". Names last as long as the process. */
static const char *list_name(uint32_t kind, uint32_t i, const InputInfo *first)
{
  enum { MAX_NAME = 24 };
  static char names[OPT_COUNT][MAX_SIGNATURE][MAX_NAME];
  snprintf(names[kind][i], MAX_NAME, "%.*s%s", (int)strlen(first->name) - 1, first->name,
           first->optional ? "" : "s");
  return names[kind][i];
}

/* Lists the arguments in the order of the settings, because messages list them in this order. */
static void find_arguments(OptimizerInfo *row)
{
  for (uint32_t i = 0, n; i < row->n_settings; i += n) {
    const char *name = row->setting[i]->name;
    n = numbered(row, i);
    if (n > 1) name = list_name((uint32_t)(row - table), i, row->setting[i]);
    row->argument[row->n_arguments++] = (OptimizerArgument){.name = name,
                                                            .optional = row->setting[i]->optional,
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

/* Checks an op and its first `inputs` inputs, which are the settings. Pass gradient supplies the
 * others. A variadic input cannot be a setting. */
static void check_op(const OptimizerInfo *row, OpKind kind, FileArg walked, uint32_t inputs)
{
  const OpInfo *op = op_row(kind);
  uint32_t place;
  if (op->tmpl != TMPL_file || !op_takes(op, walked))
    optimizer_broken(row->name, "no op of a template that walks the group:", op->name);
  if (!attr_find(op, "optimizer", &place) || !attr_find(op, "group", &place))
    optimizer_broken(row->name, "no attributes `optimizer` and `group` in", op->name);
  for (uint32_t i = 0; i < inputs; i++) {
    const InputInfo *input = &op->signature.input[i];
    ampc_domain domain;
    if (input->variadic) optimizer_broken(row->name, "this input is no setting:", input->name);
    if (!setting_domain(input->name, AMPC_FINITE, &domain))
      optimizer_broken(row->name, "settings.def has no row", input->name);
  }
}

/* Checks a row's ops. The first setting must be `lr`: `optimizer_control` reports it as `lr`. */
static void check_update(OptimizerInfo *row)
{
  const OpSignature *sig = &op_row(row->update)->signature;
  bool measures = row->measure != OP_COUNT, ratio = takes_ratio(row);
  if (sig->n_inputs <= ratio || strcmp(sig->input[0].name, "lr") != 0)
    optimizer_broken(row->name, "the first input is not lr of", op_row(row->update)->name);
  check_op(row, row->update, measures ? FILE_weights : FILE_ranges, sig->n_inputs - ratio);
  if (measures) check_op(row, row->measure, FILE_moments, op_row(row->measure)->signature.n_inputs);
}

/* ---- formulas ---- */

static bool is_result(const char *name, const char *result)
{
  bool is = same_name(name, result);
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) is |= same_name(name, moment_names[i]);
  return is;
}

/* Parses the formula. It must give each moment that the row lists a value, and no other one; and
 * the new weight, or if norms are measured first its change. */
static void parse_formula(OptimizerInfo *row)
{
  const char *names[MAX_CODE_NAMES] = {"g", "t", "w", "change"};
  const char *result = row->measure == OP_COUNT ? "w" : "change";
  uint32_t n = 4;
  for (uint32_t i = 0; i < MAX_MOMENTS; i++) names[n++] = moment_names[i];
  for (uint32_t i = 0; i < row->n_words; i++) names[n++] = row->word[i];
  for (uint32_t i = 0; i < row->n_settings && n < MAX_CODE_NAMES; i++)
    names[n++] = row->setting[i]->name;
  row->formula = update_parse(memory, row->name, row->formula_text, names, n);
  for (uint32_t i = 0; i < MAX_MOMENTS; i++)
    if ((row->moments >> i & 1) != (code_statement(&row->formula, moment_names[i]) != NULL))
      optimizer_broken(row->name, "only the list of moments or only the formula has",
                       moment_names[i]);
  if (!code_statement(&row->formula, result))
    optimizer_broken(row->name, "the formula does not compute", result);
  for (uint32_t i = 0; i < row->formula.n_statements; i++)
    if (row->formula.statements[i].kind == STATEMENT_set &&
        !is_result(row->formula.statements[i].name, result))
      optimizer_broken(row->name,
                       "neither a moment nor the result:", row->formula.statements[i].name);
}

static void free_formulas(void)
{
  arena_destroy(memory);
}

/* A variant has the columns of an earlier row. */
static void take_columns(OptimizerInfo *row, const OptimizerInfo *from)
{
  row->update = from->update;
  row->measure = from->measure;
  row->moments_text = from->moments_text;
  row->flags_text = from->flags_text;
  row->formula_text = from->formula_text;
}

/* The frame of updates needs a decay, which may be 0. */
static void check_decay(const OptimizerInfo *row)
{
  uint32_t i;
  if (!optimizer_setting_find(row, "weight_decay", &i))
    optimizer_broken(row->name, "it has no setting", "weight_decay");
}

/* Parses all rows. The ops of a row are checked first, because the rest relies on them. */
static void parse_all(void)
{
  memory = arena_create();
  atexit(free_formulas);
  for (OptimizerInfo *row = table; row < table + OPT_COUNT; row++) {
    char(*copy)[MAX_LIST_TEXT] = texts[row - table];
    if (row->of != OPT_COUNT) take_columns(row, &table[row->of]);
    check_update(row);
    find_settings(row);
    check_decay(row);
    find_defaults(row);
    parse_list(row, row->flags_text, copy[1], take_word);
    row->n_flags = row->n_words;
    parse_list(row, row->moments_text, copy[0], take_moment);
    parse_list(row, row->always_text, copy[2], take_word);
    find_arguments(row);
    parse_formula(row);
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
  return row->setting[i]->name;
}

bool optimizer_setting_find(const OptimizerInfo *row, const char *name, uint32_t *out)
{
  for (*out = 0; *out < row->n_settings; (*out)++)
    if (strcmp(row->setting[*out]->name, name) == 0) return true;
  return false;
}

int64_t optimizer_slices(const Graph *g, const Optimizer *o)
{
  return g->members > 1 && optimizer_of(o)->measure == OP_COUNT ? g->members : 1;
}

bool optimizer_has_group(const Graph *g, int64_t optimizer, uint32_t group)
{
  bool any = false;
  for (uint32_t i = 0; i < g->params.n; i++)
    any = any || (g->params.at[i].optimizer == optimizer && g->params.at[i].group == group);
  return any;
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
    if (is_name(word, n, row->word[i])) return i >= row->n_flags || (group->flags >> i & 1);
  return false;
}
