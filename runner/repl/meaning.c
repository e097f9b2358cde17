/* Inputs that are neither the language nor a command as they stand, but mean one: help, exit(),
 * print(x), ?relu, a command without its colon, and the end of a layer's path. */
#include "commands.h"
#include <ctype.h>
#include <string.h>

/* Words of other prompts, as calls or alone, and what they mean here. */
static const struct {
  const char *word, *command; /* command NULL: print, which needs an argument */
} words[] = {{"help", ":help"}, {"exit", ":quit"}, {"quit", ":quit"}, {"print", NULL}};

/* Returns the text between brackets or quotes that surround all of it. */
static const char *bare(Arena *arena, const char *text)
{
  size_t n = strlen(text);
  bool around = n >= 2 && strchr("(\"'", *text) && *text && strchr(")\"'", text[n - 1]);
  return around ? bare(arena, arena_strndup(arena, text + 1, n - 2)) : text;
}

/* Returns the meaning of print(x): the value of x; NULL: nothing to print. */
static const char *printed(Repl *r, const char *value)
{
  if (!*value) return NULL;
  return value_compiles(r, value) ? value : arena_printf(r->arena, ":show %s", value);
}

/* Returns what a word of another prompt means; NULL: the text is none. */
static const char *foreign(Repl *r, const char *text, size_t n, const char *rest)
{
  bool call = *rest == '(' && text[strlen(text) - 1] == ')';
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!is_name(text, n, words[i].word) || (*rest && !call)) continue;
    if (!words[i].command) return call ? printed(r, bare(r->arena, rest)) : NULL;
    bool quits = strcmp(words[i].command, ":quit") == 0;
    return arena_printf(r->arena, "%s %s", words[i].command, quits ? "" : bare(r->arena, rest));
  }
  return NULL;
}

/* Returns ":help relu" for "?relu" and "relu?"; NULL: the text is neither. */
static const char *question(Repl *r, const char *text)
{
  if (!strchr(text, '?')) return NULL;
  size_t lead = strspn(text, "? "), n = lead + strcspn(text + lead, "?");
  const char *name = arena_strndup(r->arena, text + lead, n - lead);
  bool one = !name[strcspn(name, " \t\n?,")] && !text[n + strspn(text + n, "?")];
  bool asks = one && (*text == '?' || text[n] == '?');
  return asks ? arena_printf(r->arena, ":help %s", name) : NULL;
}

/* Returns the name of a layer or parameter as the language writes it, if the text is the end of its
 * path. *ambiguous: the names of all that end like it; or NULL. */
static const char *whole_path(Repl *r, const char *text, const char **ambiguous)
{
  *ambiguous = NULL;
  if (isdigit((unsigned char)*text)) return NULL;
  for (const char *s = text; *s; s++)
    if (!in_name(*s) && *s != '.') return NULL;
  const char *name = layer_find(r, text, ambiguous);
  return name && strcmp(name, text) != 0 ? layer_expression(r->arena, name) : NULL;
}

const char *input_meaning(Repl *r, const char *text)
{
  size_t n = name_size(text);
  const char *rest = text + n + strspn(text + n, " \t"), *ambiguous, *asked = question(r, text);
  const char *meant = asked                         ? asked
                      : command_is_said(text, rest) ? arena_printf(r->arena, ":%s", text)
                                                    : foreign(r, text, n, rest);
  const char *path = whole_path(r, text, &ambiguous);
  if (meant)
    ambiguous = NULL;
  else
    meant = path;
  if ((!meant && !ambiguous) || value_compiles(r, text)) return text;
  if (meant) return meant;
  repl_error(r, "%s is ambiguous: %s", text, ambiguous);
  return NULL;
}
