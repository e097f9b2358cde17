/* Reads command lines by their tables, and prints --help from them. getopt_long splits the words:
 * "--name value", "--name=value", abbreviated names, -abc, options after operands, "--". */
#include "option_table.h"
#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "compiler/base/table.h"
#include "compiler/diag/diag.h"
#include "common/shown.h"
#include "compiler/cost/memory_report.h"
#include "common/terminal.h"

/* NAMED: getopt_long's value for the first option with a name; smaller values are letters.
 * LEFT_WIDTH: the left column of --help; a longer option gets a line of its own. */
enum { MOST_OPTIONS = 64, NAMED = 256, LEFT_WIDTH = 24 };

typedef struct Reader {
  const OptionTable *table;
  Arena *arena;
  char *base;                         /* the struct of the whole command line */
  const OptionRow *row[MOST_OPTIONS]; /* rows of all groups; the last one is --help */
  void *into[MOST_OPTIONS];           /* the struct that each row fills */
  bool given[MOST_OPTIONS];           /* true if the command line contains it */
  uint32_t n;
  struct option named[MOST_OPTIONS + 1]; /* `val` is NAMED + index in `row` */
  char letters[2 * MOST_OPTIONS + 2];    /* in getopt's syntax: ":o:q" */
} Reader;

/* Every table has this row after its own rows. */
static const OptionRow help_row = {
    "help", 'h', NULL, "print this help and exit", .shown = "--help", .kind = OPTION_call};

/* ---- messages ---- */

int usage_error(const char *program, const char *fmt, ...)
{
  char text[4096], shown[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ampc_show(shown, sizeof shown, text, "");
  fprintf(stderr, "%s: error: %s\ntry '%s --help'\n", program, shown, program);
  return OPTIONS_BAD_USAGE;
}

int option_wrong(const OptionGiven *given, const char *fmt, ...)
{
  const OptionRow *row = given->row;
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(given->arena, fmt, ap);
  va_end(ap);
  const char *option = given->by_letter ? arena_printf(given->arena, "-%c", row->letter)
                                        : arena_printf(given->arena, "--%s", row->name);
  return usage_error(given->program, "%s%s%s: %s", option, given->between, given->value, text);
}

/* Returns the words as "ast, graph or plan". */
static const char *list_words(Arena *arena, const char *const *words)
{
  Text text = text_new(arena);
  for (uint32_t i = 0; words[i]; i++)
    text_printf(&text, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
  return text.at;
}

/* Whether `amp import` reads the file. */
static bool is_model(const char *path)
{
  const char *dot = strrchr(path, '.');
  return dot && (strcmp(dot, ".gguf") == 0 || strcmp(dot, ".onnx") == 0);
}

int options_count_jobs(const OptionTable *table, const Operands *jobs, int least, int most)
{
  if (jobs->n < least) return usage_error(table->program, "no job was given");
  if (jobs->n > most) return usage_error(table->program, "more than one job: %s", jobs->at[most]);
  for (int i = 0; i < jobs->n; i++)
    if (is_model(jobs->at[i]))
      return usage_error(table->program,
                         "%s is a model of another program: 'amp import %s -o net.amp' writes a "
                         "job, then '%s net.amp' works",
                         jobs->at[i], jobs->at[i], table->program);
  return 0;
}

/* ---- --help ---- */

/* Returns the left column of --help: "  --emit KIND", "  -o FILE", "  -q, --quiet". */
static const char *shown_as(Arena *arena, const OptionRow *row)
{
  if (row->shown) return arena_printf(arena, "  %s", row->shown);
  Text text = text_new(arena);
  text_puts(&text, "  ");
  if (row->letter) text_printf(&text, "-%c%s", row->letter, row->name ? ", " : "");
  if (row->name) text_printf(&text, "--%s", row->name);
  if (row->value) text_printf(&text, row->bare ? "[=%s]" : " %s", row->value);
  return text.at;
}

static int widest(const Reader *r)
{
  size_t most = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    size_t size = strlen(shown_as(r->arena, r->row[i]));
    if (size > most && size <= 2 + LEFT_WIDTH) most = size;
  }
  return (int)most;
}

static void put_words(Text *out, const char *words)
{
  if (!words) return;
  text_puts(out, "\n");
  text_wrap(out, words, 0, line_columns());
  text_puts(out, "\n");
}

/* Prints --help and returns 0. A blank line separates groups. */
static int print_help(const Reader *r)
{
  const OptionTable *t = r->table;
  int left = widest(r) + 2;
  Text out = text_new(r->arena);
  text_printf(&out, "usage: %s %s\n", t->program, t->usage);
  put_words(&out, t->about);
  for (uint32_t i = 0; i < r->n; i++) {
    const OptionRow *row = r->row[i];
    if (i == 0 || (row != r->row[i - 1] + 1 && row != &help_row)) text_puts(&out, "\n");
    text_entry(&out, shown_as(r->arena, row), row->help, left);
  }
  put_words(&out, t->notes);
  fwrite(out.at, 1, out.n, stdout);
  return 0;
}

/* ---- values ---- */

static bool read_number(const OptionGiven *given, uint32_t *out, const char **expected)
{
  int64_t n, least = given->row->least;
  char range[AMPC_RANGE_ROOM];
  *expected = arena_strdup(given->arena, ampc_range_text(range, least, INT_MAX));
  if (!ampc_read_count(given->value, least, INT_MAX, &n)) return false;
  *out = (uint32_t)n;
  return true;
}

static bool read_word(const char *text, const char *const *words, int *out)
{
  for (int i = 0; words[i]; i++) {
    if (strcmp(text, words[i]) != 0) continue;
    *out = i + 1;
    return true;
  }
  return false;
}

/* Stores the value in the field. If it is invalid, returns false and sets *expected. */
static bool fill(const OptionGiven *given, const char **expected)
{
  const OptionRow *row = given->row;
  void *field = (char *)given->into + row->field;
  switch (row->kind) {
  case OPTION_flag:
    return *(bool *)field = true;
  case OPTION_text:
    *(const char **)field = given->value;
    return true;
  case OPTION_number:
    return read_number(given, field, expected);
  case OPTION_real:
    *expected = ampc_domain_text(row->domain);
    return ampc_read_real(given->value, field) && ampc_in_domain(row->domain, *(double *)field);
  case OPTION_size:
    *expected = "a size such as 4G, 512MB or 1000000";
    return memory_read_size(given->value, field);
  case OPTION_choice:
    *expected = list_words(given->arena, row->words);
    return read_word(given->value ? given->value : row->words[0], row->words, field);
  default:
    assert(!"an option without a field");
    return false;
  }
}

static int take(const OptionGiven *given)
{
  const OptionRow *row = given->row;
  const char *expected = NULL;
  if (row->kind == OPTION_call) return row->read(given);
  if (fill(given, &expected)) return OPTIONS_GO_ON;
  return option_wrong(given, "expected %s", row->expected ? row->expected : expected);
}

/* ---- reading the words ---- */

/* Adds the row, and its letter and name for getopt. */
static void add_row(Reader *r, const OptionRow *row, void *into)
{
  assert(r->n < MOST_OPTIONS);
  int takes = row->bare ? optional_argument : row->value ? required_argument : no_argument;
  const char *names[] = {row->name, row->also};
  for (int i = 0; i < 2 && names[i]; i++) {
    struct option *end = r->named;
    while (end->name) end++;
    assert(end < r->named + MOST_OPTIONS);
    *end = (struct option){names[i], takes, NULL, NAMED + (int)r->n};
  }
  if (row->letter) {
    char *end = r->letters + strlen(r->letters);
    *end++ = row->letter;
    if (takes == required_argument) *end = ':';
  }
  r->row[r->n] = row;
  r->into[r->n++] = into;
}

static void gather(Reader *r)
{
  r->letters[0] = ':'; /* report a missing value as ':', not as '?' */
  for (const OptionGroup *g = r->table->groups; g->rows; g++)
    for (const OptionRow *row = g->rows; row->name || row->letter; row++)
      add_row(r, row, r->base + g->into);
  add_row(r, &help_row, NULL);
}

static uint32_t index_of(const Reader *r, int option)
{
  if (option >= NAMED) return (uint32_t)(option - NAMED);
  uint32_t i = 0;
  while (r->row[i]->letter != option) i++; /* getopt accepts no other letters */
  return i;
}

/* Options of other programs, and what one types here if the command has that option. */
static const char *const habits[][2] = {
    {"lr", "set lr="},
    {"learning-rate", "set lr="},
    {"weight-decay", "set weight_decay="},
    {"epochs", "set train.epochs="},
    {"batch", "set train.batch="},
    {"batch-size", "set train.batch="},
    {"precision", "set precision="},
    {"weights", "resume "},
    {"workers", "data-threads "},
    {"num-workers", "data-threads "},
    {"gpu", "device cuda or --device cuda:1"},
    {"cuda", "device cuda"},
    {"cpu", "device cpu"},
};

/* Returns what to type instead of another program's option, with the value `given`, or NULL. */
static const char *habit_cure(const Reader *r, const char *name, const char *given)
{
  char *plain = arena_strndup(r->arena, name, strlen(name));
  for (char *s = plain; (s = strchr(s, '_'));) *s = '-';
  if (strncmp(given, "fp", 2) == 0) given = arena_printf(r->arena, "f%s", given + 2); /* fp16 */
  for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
    const char *cure = habits[i][1];
    size_t n = strcspn(cure, " ");
    if (strcmp(habits[i][0], plain) != 0) continue;
    for (uint32_t k = 0; k < r->n; k++)
      if (r->row[k]->name && strlen(r->row[k]->name) == n && strncmp(r->row[k]->name, cure, n) == 0)
        return arena_printf(r->arena, "--%s%s", cure,
                            strchr(" =", cure[strlen(cure) - 1]) ? given : "");
  }
  return NULL;
}

/* Reports an unknown name, an ambiguous abbreviation, or a value for an option that takes none. */
static int unknown_option(const Reader *r, char **argv)
{
  const char *program = r->table->program, *word = argv[optind - 1], *names[MOST_OPTIONS];
  if (optopt >= NAMED)
    return usage_error(program, "--%s takes no value", r->row[optopt - NAMED]->name);
  if (optopt) return usage_error(program, "no option -%c", optopt);
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->row[i]->name) names[n++] = r->row[i]->name;
  const char *name = arena_strndup(r->arena, word + 2, strcspn(word + 2, "="));
  const char *equals = strchr(word, '='), *next = argv[optind];
  const char *given = equals ? equals + 1 : next && *next != '-' ? next : "VALUE";
  const char *cure = habit_cure(r, name, given);
  if (cure) return usage_error(program, "no option --%s; type %s", name, cure);
  const char *near = diag_nearest(name, names, n);
  if (!near) return usage_error(program, "no option %s", word);
  return usage_error(program, "no option %s; did you mean --%s?", word, near);
}

/* Handles a result of getopt_long, an option or one of two errors. Returns as OptionRead. */
static int read_option(Reader *r, int option, char **argv)
{
  if (option == ':') return usage_error(r->table->program, "%s needs a value", argv[optind - 1]);
  if (option == '?') return unknown_option(r, argv);
  uint32_t i = index_of(r, option);
  if (r->row[i] == &help_row) return print_help(r);
  r->given[i] = true;
  bool by_letter = option < NAMED;
  const char *between = !optarg ? "" : optarg == argv[optind - 1] ? " " : by_letter ? "" : "=";
  return take(&(OptionGiven){r->arena, r->table->program, r->row[i], r->into[i], optarg, by_letter,
                             between});
}

/* Returns the first of these options that was given, or NULL. `known`: or that the table has. */
static const char *first_of(const Reader *r, const char *names, bool known)
{
  for (const char *s = names; s && *s; s += strspn(s, " ")) {
    const char *name = arena_strndup(r->arena, s, strcspn(s, " "));
    for (uint32_t i = 0; i < r->n; i++)
      if ((known || r->given[i]) && r->row[i]->name && strcmp(r->row[i]->name, name) == 0)
        return name;
    s += strlen(name);
  }
  return NULL;
}

/* Contradicting options are errors: a guess would hide a slip. */
static int check_given(const Reader *r)
{
  const char *program = r->table->program;
  for (uint32_t i = 0; i < r->n; i++) {
    const OptionRow *row = r->row[i];
    if (!r->given[i]) continue;
    const char *other = first_of(r, row->without, false);
    if (other) return usage_error(program, "--%s cannot be combined with --%s", row->name, other);
    if (row->with && first_of(r, row->with, true) && !first_of(r, row->with, false))
      return usage_error(program, "--%s needs --%s", row->name, row->with);
  }
  return 0;
}

bool options_read(const OptionTable *table, Arena *arena, Operands *words, void *into, int *status)
{
  Reader r = {.table = table, .arena = arena, .base = into};
  gather(&r);
  opterr = 0; /* getopt prints no messages */
  optind = 0; /* restarts getopt, which may have read another command line before */
  for (int option; (option = getopt_long(words->n, words->at, r.letters, r.named, NULL)) != -1;) {
    *status = read_option(&r, option, words->at);
    if (*status != OPTIONS_GO_ON) return false;
  }
  *words = (Operands){words->at + optind, words->n - optind};
  *status = check_given(&r);
  return *status == 0;
}
