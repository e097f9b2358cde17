/* :set, :const and :precision. */
#include "commands.h"
#include "compiler/base/table.h"
#include "common/number.h"
#include "common/terminal.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

/* Splits "KEY = VALUE" or "KEY VALUE" into two texts in the session's arena. *value is empty
 * without a value. */
static void split(Repl *r, const char *arg, const char **key, const char **value)
{
  size_t n = strcspn(arg, " \t=");
  const char *rest = arg + n + strspn(arg + n, " \t");
  if (*rest == '=') rest += 1 + strspn(rest + 1, " \t");
  *key = arena_strndup(r->arena, arg, n);
  *value = arena_strdup(r->arena, rest);
}

double number_of(const char *value)
{
  double number = 0;
  ampc_read_real(value, &number);
  return number;
}

bool setting_index(const ampc_program *p, const char *key, uint32_t *out)
{
  for (*out = 0; *out < p->n_settings; ++*out)
    if (strcmp(p->settings[*out].name, key) == 0) return true;
  return false;
}

/* Returns the settings below `key`, separated by commas. */
static const char *list_below(Repl *r, const char *key)
{
  const NameVec *known = &r->latest->c->settings;
  size_t n = strlen(key);
  Text all = text_new(r->arena);
  for (uint32_t i = 0; i < known->n; i++)
    if (strncmp(known->at[i], key, n) == 0 && known->at[i][n] == '.')
      text_printf(&all, "%s%s", all.n ? ", " : "", known->at[i]);
  return all.at;
}

/* Returns the whole name in the session's arena, because a new program drops the old one's names.
 * NULL after a message. */
static const char *find_setting(Repl *r, const char *key)
{
  const NameVec *known = &r->latest->c->settings;
  const char *all, *found = path_end(r->arena, known, key, &all), *below = list_below(r, key);
  NameVec names = {0}; /* and their last words */
  for (uint32_t i = 0; i < known->n; i++) {
    const char *dot = strrchr(known->at[i], '.');
    vec_push(r->arena, &names, known->at[i]);
    if (dot) vec_push(r->arena, &names, dot + 1);
  }
  const char *near = diag_nearest(key, names.at, names.n);
  if (found) return arena_strdup(r->arena, found);
  if (all)
    repl_error(r, "%s is ambiguous: %s", key, all);
  else if (*below)
    repl_error(r, "the settings of %s are %s", key, below);
  else if (near)
    repl_error(r, "the program has no setting %s; did you mean %s?", key, near);
  else
    repl_error(r, "the program has no setting %s; :set lists them", key);
  return NULL;
}

/* A number in device memory is read from there while its program runs. Before, it is the number
 * with which the program will start. */
const char *setting_text(const Repl *r, Arena *arena, const char *key)
{
  uint32_t i;
  const ampc_program *p = r->latest->c->program;
  const Options *o = &r->options;
  const Assignment *set = program_set_of(r, key);
  if (setting_index(p, key, &i)) {
    float value = (float)(set ? number_of(set->value) : p->settings[i].value);
    if (r->live == r->latest && runtime_read_setting(r->rt, i, &value)) return NULL;
    return arena_printf(arena, "%.7g", (double)value);
  }
  if (strcmp(key, "precision") == 0) return p->precision;
  for (i = 0; i < o->n_settings; i++)
    if (strcmp(o->settings[i].key, key) == 0) return o->settings[i].value;
  return NULL;
}

/* Lists the settings whose values are known here, and names the others: the job's text has their
 * values. */
static bool list_settings(Repl *r)
{
  const NameVec *known = &r->latest->c->settings;
  Text others = text_new(r->arena), wrapped = text_new(r->arena);
  for (uint32_t i = 0; i < known->n; i++) {
    const char *value = setting_text(r, r->arena, known->at[i]);
    if (value)
      printf("%-24s %s\n", known->at[i], value);
    else
      text_printf(&others, " %s", known->at[i]);
  }
  if (!others.n) return true;
  text_wrap(&wrapped,
            arena_printf(r->arena, "others, which compile the program again:%s", others.at), 2,
            line_columns());
  puts(wrapped.at);
  return true;
}

/* Answers `:set opt.lr=` and `:set opt.lr`. */
static bool explain_setting(Repl *r, const char *key)
{
  uint32_t i;
  const char *value = setting_text(r, r->arena, key), *below = list_below(r, key);
  const ampc_program *p = r->latest->c->program;
  printf("%s is %s; ", key, value ? value : "as in the job");
  if (setting_index(p, key, &i))
    printf("it takes %s\n", ampc_domain_text(p->settings[i].domain));
  else
    puts("a new value compiles the program again");
  if (*below) printf("it has the settings %s\n", below);
  return true;
}

/* Returns the number that `RATE * 2` has in the job; the text itself if it has none; NULL after a
 * message. */
static const char *number_of_text(Repl *r, const char *text)
{
  double number;
  if (ampc_read_real(text, &number)) return text;
  Part part = {"<set>", text, (uint32_t)strlen(text)};
  Compiled *p = program_compile(r, &(Request){.input = &part, .alone = true});
  if (!p) return NULL;
  const char *answer = p->c->answer ? p->c->answer : "";
  if (strncmp(answer, "float ", 6) == 0 || strncmp(answer, "int ", 4) == 0)
    text = arena_strdup(r->arena, strchr(answer, ' ') + 1);
  compiled_drop(p);
  return text;
}

static bool set_data(Repl *r, uint32_t setting, const char *value)
{
  const ampc_setting *s = &r->latest->c->program->settings[setting];
  value = number_of_text(r, value);
  if (!value) return false;
  Past before = past_of(r, arena_printf(r->arena, ":set %s=%s", s->name, value));
  double number;
  if (!ampc_read_real(value, &number) || !ampc_in_domain(s->domain, number))
    return repl_error(r, ":set %s: %s, expected %s", s->name, value, ampc_domain_text(s->domain));
  const char *key = arena_strdup(r->arena, s->name);
  if (r->live == r->latest) {
    before.key = key;
    if (!repl_check(r, runtime_read_setting(r->rt, setting, &before.value)) ||
        !repl_check(r, ampc_set(r->rt, key, number)))
      return false;
  }
  vec_push(r->arena, &r->pasts, before);
  Assignment *set = program_set_of(r, key); /* for the next program */
  if (set)
    set->value = value;
  else
    vec_push(r->arena, &r->sets, (Assignment){key, value});
  return true;
}

/* Runs :set. A setting that kernels read from STATE is written there, without compiling. Any other
 * setting (a batch size, a number in place of a schedule) compiles the program again. */
bool command_set(Repl *r, const char *arg)
{
  const char *given, *key, *value;
  uint32_t setting;
  if (!program_latest(r)) return false;
  if (!*arg) return list_settings(r);
  split(r, arg, &given, &value);
  if (!*given) return repl_error(r, ":set %s: expected KEY=VALUE", arg);
  key = find_setting(r, given);
  if (!key) return false;
  if (!*value) return explain_setting(r, key);
  if (setting_index(r->latest->c->program, key, &setting)) {
    if (!set_data(r, setting, value)) return false;
    const char *now = setting_text(r, r->arena, key);
    printf("%s is %s\n", key, now ? now : value);
    return true;
  }
  if (!program_setting(r, key, value)) return false;
  printf("%s is part of the program, which was compiled again\n", key);
  return true;
}

/* Runs :const. A new value compiles the program again, and is undone if that fails. */
bool command_const(Repl *r, const char *arg)
{
  const char *name, *value;
  if (!*arg) {
    if (!r->options.n_consts) puts("no const has been replaced");
    for (uint32_t i = 0; i < r->options.n_consts; i++)
      printf("%-24s %s\n", r->options.consts[i].key, r->options.consts[i].value);
    return true;
  }
  split(r, arg, &name, &value);
  if (!*name || !*value) return repl_error(r, ":const %s: expected NAME=VALUE", arg);
  return program_const(r, name, value);
}

/* Runs :precision. Another precision is another program; the f32 masters of weights are kept. */
bool command_precision(Repl *r, const char *arg)
{
  if (*arg) return program_setting(r, "precision", arg);
  Compiled *p = program_latest(r);
  if (p) printf("%s\n", p->c->program->precision);
  return p != NULL;
}
