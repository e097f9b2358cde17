/* Inputs that the language does not have, but that mean a command or an expression: help, exit(),
 * print(x), ?relu, a command without its colon, the end of a layer's path, a setting, and values of
 * the train block, which only :show can print. */
#include "commands.h"
#include <ctype.h>
#include <string.h>

/* Returns the text without brackets and quotes around it. */
static const char *bare(Arena *arena, const char *text)
{
  size_t n = strlen(text);
  for (; n >= 2 && strchr("(\"'", *text) && strchr(")\"'", text[n - 1]); n -= 2) text++;
  return arena_strndup(arena, text, n);
}

/* Returns the name of a layer or parameter as the language writes it, net.h[0] for `h.0`, if the
 * text is the end of its path. *ambiguous: the names of all that end like it; or NULL. */
static const char *whole_path(Repl *r, const char *text, const char **ambiguous)
{
  const char *name = layer_find(r, text, ambiguous);
  return name ? layer_expression(r->arena, name) : NULL;
}

/* Returns what a word of another prompt means; NULL: the text is none. */
static const char *foreign(Repl *r, const char *text, size_t n, const char *rest)
{
  bool call = *rest == '(' && text[strlen(text) - 1] == ')';
  if (call && is_name(text, n, "print")) {
    const char *all, *inner = bare(r->arena, rest);
    const char *meant = value_compiles(r, rest) ? rest : whole_path(r, inner, &all);
    return meant ? meant : arena_printf(r->arena, ":show %s", inner);
  }
  if (call && (is_name(text, n, "help") || is_name(text, n, "type")))
    return arena_printf(r->arena, ":%.*s %s", (int)n, text, bare(r->arena, rest));
  bool quits = is_name(text, n, "exit") || is_name(text, n, "quit");
  return quits && (call || !*rest) ? ":quit" : NULL;
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

/* Returns ":set opt.lr=0.1" for `opt.lr=0.1`, ":set lr" for `lr`; NULL: no setting ends so, or
 * several, *ambiguous. `lr=0.1` assigns a variable of the language. */
static const char *setting(Repl *r, const char *text, const char **ambiguous)
{
  const NameVec *known = r->latest ? &r->latest->c->settings : NULL;
  size_t n = strcspn(text, " \t=");
  const char *rest = text + n + strspn(text + n, " \t"), *end = arena_strndup(r->arena, text, n);
  bool assigns = *rest == '=' && rest[1] != '=' && strchr(end, '.');
  size_t path = 0;
  while (in_name(text[path]) || text[path] == '.') path++;
  if (!known || path < n || (*rest && !assigns)) return NULL;
  bool is_key = path_end(r->arena, known, end, ambiguous);
  return is_key || (assigns && !*ambiguous) ? arena_printf(r->arena, ":set %s", text) : NULL;
}

/* Returns what the text means if it is no part of the language. NULL: not known; or, with
 * *ambiguous, the end of several names. */
static const char *other_meaning(Repl *r, const char *text, const char **ambiguous)
{
  size_t n = name_size(text);
  const char *rest = text + n + strspn(text + n, " \t"), *meant = question(r, text);
  *ambiguous = NULL;
  if (!meant && command_is_said(text, rest)) meant = arena_printf(r->arena, ":%s", text);
  if (!meant) meant = foreign(r, text, n, rest);
  if (!meant) meant = setting(r, text, ambiguous);
  return meant || *ambiguous ? meant : whole_path(r, text, ambiguous);
}

const char *input_meaning(Repl *r, const char *text)
{
  const char *ambiguous, *meant = other_meaning(r, text, &ambiguous);
  if ((!meant && !ambiguous && strpbrk(text, "{\n")) || value_compiles(r, text)) return text;
  if (meant) return meant;
  Compiled *p = program_hides_data(r, text) ? NULL : value_watched(r, text);
  compiled_drop(p);
  if (p) return arena_printf(r->arena, ":show %s", text);
  if (!ambiguous) return text;
  repl_error(r, "%s is ambiguous: %s", text, ambiguous);
  return NULL;
}
