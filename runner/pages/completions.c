/* Completions for bash, zsh and fish: verbs, options, values of options that have a list, files of
 * jobs. */
#include "pages.h"
#include "runner/runner.h"
#include <string.h>

static void put_list(Text *out, const char *const *words)
{
  for (int i = 0; words[i]; i++) text_printf(out, "%s%s", i ? " " : "", words[i]);
}

static void put_word(Text *out, const OptionRow *row, const char *word)
{
  (void)row;
  text_printf(out, " %s", word);
}

/* ---- bash ---- */

/* readline makes three words of --emit=c. `prev` is "--emit" before a word of its own, and
 * "--emit=" after an equals sign. */
static const char bash_functions[] =
    "# Made from the tables of options.\n"
    "_ampc_begin() {\n"
    "  cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} COMPREPLY=()\n"
    "  if [[ $cur == = ]]; then cur='' prev=$prev=\n"
    "  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}=; fi\n"
    "}\n"
    "_ampc_words() {\n"
    "  mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$cur\")\n"
    "  [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
    "}\n"
    "_ampc_files() {\n"
    "  compopt -o filenames\n"
    "  mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"; [[ $1 == / ]] || compgen -f -X \"$1\" -- "
    "\"$cur\")\n"
    "}\n"
    "_ampc_options() { if [[ $cur == -* ]]; then _ampc_words \"$@\"; else _ampc_files '!*.amp'; "
    "fi; }\n";

static void bash_begin(Text *out, const char *program)
{
  text_printf(out, "%s_%s() {\n  local cur prev\n  _ampc_begin\n", bash_functions, program);
  if (strcmp(program, "amp") != 0) return;
  text_puts(out, "  if ((COMP_CWORD == 1)); then\n    _ampc_words --help --version");
  for (const Verb *v = verbs; v->name; v++) text_printf(out, " %s", v->name);
  text_puts(out, "\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n");
}

static void bash_pattern(Text *out, const OptionRow *row, const char *word)
{
  const char *bar = out->at[out->n - 1] == ' ' ? "" : "|";
  if (!row->bare) text_printf(out, "%s%s|", bar, word);
  text_printf(out, "%s%s=", row->bare ? bar : "", word);
}

static void bash_put(Text *out, const char *verb, const char *help, const OptionTable *table)
{
  (void)help;
  if (verb) text_printf(out, "  %s)\n", verb);
  text_puts(out, "  case $prev in\n");
  EACH_ROW(row, table)
  {
    ValueKind kind = value_kind(row);
    if (kind == VALUE_none || row->shown) continue;
    text_puts(out, "  ");
    each_spelling(row, out, bash_pattern);
    text_puts(out, ") ");
    if (kind == VALUE_words) text_puts(out, "_ampc_words ");
    if (kind == VALUE_words) put_list(out, value_words(row));
    if (kind == VALUE_file) text_puts(out, "_ampc_files ''");
    if (kind == VALUE_folder) text_puts(out, "_ampc_files /");
    text_puts(out, " ;;\n");
  }
  text_puts(out, "  *) _ampc_options --help");
  EACH_ROW(row, table) each_spelling(row, out, put_word);
  text_puts(out, verb ? " ;;\n  esac ;;\n" : " ;;\n  esac\n");
}

static void bash_end(Text *out, const char *program)
{
  if (strcmp(program, "amp") == 0) text_puts(out, "  esac\n");
  text_printf(out, "}\ncomplete -F _%s %s\n", program, program);
}

/* ---- zsh ---- */

static void zsh_quoted(Text *out, const char *text)
{
  for (; *text; text++) {
    if (strchr("[]:\\", *text)) text_puts(out, "\\");
    text_add(out, text, 1);
    if (*text == '\'') text_puts(out, "\\''"); /* ends the string, and begins another one */
  }
}

static void zsh_begin(Text *out, const char *program)
{
  text_printf(out, "#compdef %s\n# Made from the tables of options.\n", program);
  if (strcmp(program, "amp") != 0) return;
  text_puts(out, "if ((CURRENT == 2)); then\n  local -a verbs=(");
  for (const Verb *v = verbs; v->name; v++) {
    text_printf(out, "\n    '%s:", v->name);
    zsh_quoted(out, v->help);
    text_puts(out, "'");
  }
  text_puts(out, ")\n  _describe verb verbs\n  return\nfi\nshift words\n((CURRENT--))\n"
                 "case $words[1] in\n");
}

static void zsh_option(Text *out, const OptionRow *row, const char *word)
{
  ValueKind kind = row->shown ? VALUE_none : value_kind(row);
  bool name = word[1] == '-';
  text_printf(out, " \\\n  '*%s%s[", word,
              kind == VALUE_none ? ""
              : row->bare        ? "=-"
              : name             ? "="
                                 : "+");
  zsh_quoted(out, row->help);
  text_puts(out, "]");
  if (kind != VALUE_none) text_puts(out, row->bare ? "::" : ":");
  if (kind != VALUE_none) zsh_quoted(out, row->value);
  if (kind == VALUE_words) {
    text_puts(out, ":(");
    put_list(out, value_words(row));
    text_puts(out, ")");
  }
  if (kind == VALUE_file) text_puts(out, ":_files");
  if (kind == VALUE_folder) text_puts(out, ":_files -/");
  if (kind == VALUE_other) text_puts(out, ": ");
  text_puts(out, "'");
}

static void zsh_put(Text *out, const char *verb, const char *help, const OptionTable *table)
{
  (void)help;
  if (verb) text_printf(out, "%s)\n", verb);
  text_puts(out, "_arguments -s '--help[print the options]' '*:job:_files -g \"*.amp\"'");
  EACH_ROW(row, table) each_spelling(row, out, zsh_option);
  text_puts(out, verb ? " ;;\n" : "\n");
}

static void zsh_end(Text *out, const char *program)
{
  if (strcmp(program, "amp") == 0) text_puts(out, "esac\n");
}

/* ---- fish ---- */

static void fish_quoted(Text *out, const char *text)
{
  text_puts(out, "'");
  put_escaped(out, text, "'\\");
  text_puts(out, "'\n");
}

static void fish_begin(Text *out, const char *program)
{
  bool has_verbs = strcmp(program, "amp") == 0;
  text_printf(out, "# Made from the tables of options.\ncomplete -c %s -f\n", program);
  text_printf(out, "complete -c %s%s -k -a '(__fish_complete_suffix .amp)'\n", program,
              has_verbs ? " -n 'not __fish_use_subcommand'" : "");
}

static void fish_put(Text *out, const char *verb, const char *help, const OptionTable *table)
{
  if (verb) text_printf(out, "complete -c amp -n __fish_use_subcommand -a %s -d ", verb);
  if (verb) fish_quoted(out, help);
  EACH_ROW(row, table)
  {
    ValueKind kind = value_kind(row);
    text_printf(out, "complete -c %s", verb ? "amp" : "ampc");
    if (verb) text_printf(out, " -n '__fish_seen_subcommand_from %s'", verb);
    if (row->name) text_printf(out, " -l %s", row->name);
    if (row->letter) text_printf(out, " -s %c", row->letter);
    if (kind == VALUE_words && !row->bare) {
      text_puts(out, " -x -a '");
      put_list(out, value_words(row));
      text_puts(out, "'");
    }
    if (kind == VALUE_file) text_puts(out, " -r -F");
    if (kind == VALUE_folder) text_puts(out, " -x -a '(__fish_complete_directories)'");
    if (kind == VALUE_other) text_puts(out, " -x");
    text_puts(out, " -d ");
    fish_quoted(out, row->help);
  }
}

static void fish_end(Text *out, const char *program)
{
  text_printf(out, "complete -c %s -l help -d 'print the options'\n", program);
}

const Shell shells[SHELLS] = {
    {"bash-completion/completions", "@", bash_begin, bash_put, bash_end},
    {"zsh/site-functions", "_@", zsh_begin, zsh_put, zsh_end},
    {"fish/vendor_completions.d", "@.fish", fish_begin, fish_put, fish_end},
};
