/* Completion with Tab: commands and their words, paths of parameters, kernels, passes, settings,
 * files; and keywords, built-ins and names of the program. */
#include "commands.h"
#include "compiler/lower/interpret/describe.h"
#include "compiler/help/help.h"
#include "compiler/graph/ir.h"
#include "compiler/graph/ops.h"
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Wanted {
  Arena *arena;
  const char *word;
  size_t size;
  NameVec *out;
  const char *line; /* the typed text, up to the word */
} Wanted;

/* Adds `text` if it begins with the typed word; each text once. */
static void offer(const Wanted *w, const char *text)
{
  if (!text || strncmp(text, w->word, w->size) != 0) return;
  for (uint32_t i = 0; i < w->out->n; i++)
    if (strcmp(w->out->at[i], text) == 0) return;
  vec_push(w->arena, w->out, arena_strdup(w->arena, text));
}

static void offer_all(const Wanted *w, const char *const *words)
{
  for (; *words; words++) offer(w, *words);
}

/* ---- the words of commands ---- */

static void offer_commands(const Repl *r, const Wanted *w)
{
  (void)r;
  for (uint32_t i = 0; command_name_at(i); i++)
    offer(w, arena_printf(w->arena, ":%s", command_name_at(i)));
}

/* Offers parameters of the latest compiled program; Tab does not compile. */
static void offer_params(const Repl *r, const Wanted *w)
{
  const ampc_program *p = r->latest ? r->latest->c->program : NULL;
  for (uint32_t i = 0; p && i < p->n_params; i++) offer(w, p->params[i].path);
}

/* Offers more for :show: the batch and metrics of train blocks, and layers with parameters. */
static void offer_values(const Repl *r, const Wanted *w)
{
  const Compile *c = r->latest ? r->latest->c : NULL;
  const ampc_program *p = c ? c->program : NULL;
  for (uint32_t i = 0; c && i < c->ast->n; i++) {
    const Decl *d = c->ast->at[i];
    for (uint32_t k = 0; d->kind == DECL_train && k < d->as.run.names.n; k++)
      offer(w, d->as.run.names.at[k].text);
  }
  for (uint32_t i = 0; p && i < p->n_blocks; i++)
    for (uint32_t k = 0; p->blocks[i].kind == AMPC_TRAIN && k < p->blocks[i].n_metrics; k++)
      offer(w, p->metrics[p->blocks[i].first_metric + k].name);
  for (uint32_t i = 0; p && i < p->n_params; i++)
    for (const char *dot = p->params[i].path; (dot = strchr(dot, '.')); dot++)
      offer(w, arena_strndup(w->arena, p->params[i].path, (size_t)(dot - p->params[i].path)));
}

/* Offers kernels and verbs. A verb follows a name, so none is offered before a letter is typed. */
static void offer_kernels(const Repl *r, const Wanted *w)
{
  static const char *const verbs[] = {"edit", "reload", NULL};
  const ampc_program *p = r->latest ? r->latest->c->program : NULL;
  for (uint32_t i = 0; p && i < p->n_kernels; i++) offer(w, p->kernels[i].name);
  if (w->size) offer_all(w, verbs);
}

static void offer_precisions(const Repl *r, const Wanted *w)
{
  static const char *const words[] = {"f32", "tf32", AMPC_NARROW_FLOATS(AMPC_QUOTED) NULL};
  (void)r;
  offer_all(w, words);
}

/* Offers settings; behind `=` the current value. */
static void offer_settings(const Repl *r, const Wanted *w)
{
  if (!r->latest) return;
  const NameVec *known = &r->latest->c->settings;
  const char *blank = strpbrk(w->line, " \t"), *equals = strchr(w->line, '=');
  if (equals && blank) {
    blank += strspn(blank, " \t");
    const char *all, *end = arena_strndup(w->arena, blank, strcspn(blank, " \t="));
    const char *name = path_end(w->arena, known, end, &all);
    if (name && strcmp(name, "precision") == 0)
      offer_precisions(r, w);
    else if (name)
      offer(w, setting_text(r, w->arena, name));
    return;
  }
  for (uint32_t i = 0; i < known->n; i++) offer(w, arena_printf(w->arena, "%s=", known->at[i]));
}

static void offer_passes(const Repl *r, const Wanted *w)
{
  (void)r;
  for (uint32_t i = 0; pass_name(i); i++) offer(w, pass_name(i));
}

/* Offers files. Folders end with a slash, so that the next Tab completes inside them. Pattern
 * characters in the typed name are escaped. */
static void offer_files(const Repl *r, const Wanted *w)
{
  (void)r;
  glob_t found;
  Text pattern = text_new(w->arena);
  for (size_t i = 0; i < w->size; i++)
    text_printf(&pattern, "%s%c", strchr("*?[\\", w->word[i]) ? "\\" : "", w->word[i]);
  text_puts(&pattern, "*");
  if (glob(pattern.at, GLOB_MARK, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) offer(w, found.gl_pathv[i]);
  globfree(&found);
}

static void offer_kinds(const Repl *r, const Wanted *w)
{
  static const char *const kinds[] = {"pass", "ckpt", "precision", NULL};
  (void)r;
  offer_all(w, kinds);
}

static void offer_help(const Repl *r, const Wanted *w)
{
  (void)r;
  for (uint32_t i = 0; command_name_at(i); i++) offer(w, command_name_at(i));
  NameVec names = {0};
  help_names(w->arena, &names);
  for (uint32_t i = 0; i < names.n; i++) offer(w, names.at[i]);
}

/* The arguments of each command. The first row whose name begins with the typed command applies. */
typedef struct Argument {
  const char *command; /* "": any other command */
  void (*offers[4])(const Repl *r, const Wanted *w);
  bool expression; /* the command also takes an expression */
} Argument;
static const Argument arguments[] = {
    {"open", {offer_files}, false},
    {"save", {offer_files}, false},
    {"load", {offer_files}, false},
    {"resume", {offer_files}, false},
    {"write", {offer_files}, false},
    {"set", {offer_settings}, false},
    {"precision", {offer_precisions}, false},
    {"graph", {offer_passes}, false},
    {"kernel", {offer_kernels}, false},
    {"ptx", {offer_kernels}, false},
    {"sass", {offer_kernels}, false},
    {"diff", {offer_kinds, offer_passes, offer_precisions, offer_files}, false},
    {"help", {offer_help}, false},
    {"show", {offer_params, offer_values}, true},
    {"image", {offer_params, offer_values}, true},
    {"hist", {offer_params, offer_values}, true},
    {"params", {offer_params}, false},
    {"grad", {offer_params}, false},
    {"casts", {offer_params}, false},
    {"", {offer_params}, true},
};

static const Argument *argument_of(const char *command)
{
  const Argument *a = arguments;
  size_t n = 0;
  while (isalpha((unsigned char)command[n])) n++;
  while (*a->command && (!n || strncmp(a->command, command, n) != 0)) a++;
  return a;
}

/* Whether the rest of the line is one file name, which may contain blanks. */
static bool takes_file(const char *command)
{
  return argument_of(command)->offers[0] == offer_files;
}

/* Offers arguments. False: the command also takes an expression. */
static bool offer_arguments(const Repl *r, const Wanted *w, const char *command)
{
  const Argument *a = argument_of(command);
  for (int i = 0; i < 4 && a->offers[i]; i++) a->offers[i](r, w);
  return !a->expression;
}

/* ---- the words of the language ---- */

/* Offers keywords and types, built-in functions and modules, and what the program declares. */
static void offer_language(const Repl *r, const Wanted *w)
{
  bool top;
  for (uint32_t i = 0; ast_reserved_word(i, &top); i++) offer(w, ast_reserved_word(i, &top));
  Builtins builtins = {0};
  list_builtins(w->arena, &builtins);
  for (uint32_t i = 0; i < builtins.n; i++) offer(w, builtins.at[i].name);
  for (uint32_t i = 0; r->latest && i < r->latest->c->ast->n; i++) {
    const Name *name = ast_decl_name(r->latest->c->ast->at[i]);
    if (name) offer(w, name->text);
  }
}

/* Offers members of a model: net.fc1.weight is parameter fc1.weight of net. */
static void offer_members(const Repl *r, const Wanted *w)
{
  const char *dot = memchr(w->word, '.', w->size);
  const ampc_program *p = r->latest ? r->latest->c->program : NULL;
  for (uint32_t i = 0; dot && p && i < p->n_params; i++)
    offer(w, arena_printf(w->arena, "%.*s.%s", (int)(dot - w->word), w->word, p->params[i].path));
}

/* Returns where the last word begins. Words of a command are separated by blanks and "=", words of
 * the language by operators and brackets, but not by the dots of a path. A file name may contain
 * all of these. `lead`: number of leading blanks. */
static size_t start_of_word(const char *text, size_t size, size_t lead, bool command)
{
  size_t start = size;
  const char *breaks = command ? " \t=" : " \t()[]{},=+-*/@:;<>";
  while (start > lead + command && !strchr(breaks, text[start - 1])) start--;
  if (command && start == lead + 1) start = lead;
  if (command && start > lead && takes_file(text + lead + 1)) {
    start = lead + strcspn(text + lead, " \t");
    start += strspn(text + start, " \t");
    if (start > size) start = size;
  }
  return start;
}

void complete(void *repl, Arena *arena, const char *text, size_t size, size_t *out_start,
              NameVec *out)
{
  Repl *r = repl;
  size_t lead = strspn(text, " \t");
  bool command = lead < size && text[lead] == ':';
  size_t start = start_of_word(text, size, lead, command);
  const char *word = arena_strndup(arena, text + start, size - start);
  Wanted w = {arena, word, size - start, out, arena_strndup(arena, text + lead, start - lead)};
  *out_start = start;
  if (command && start == lead)
    offer_commands(r, &w);
  else if (!command || !offer_arguments(r, &w, text + lead + 1))
    offer_language(r, &w), offer_members(r, &w);
}
