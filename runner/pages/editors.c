/* Files for editors: those of editors/, with lists of the compiler's words in place of `@name@`. */
#include "pages.h"
#include "compiler/help/help.h"
#include "compiler/syntax/lex_words.h"
#include "common/file.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[][2] = {
    /* in editors/, below share/ */
    {"vim/ftdetect/amp.vim", "vim/vimfiles/ftdetect/amp.vim"},
    {"vim/ftplugin/amp.vim", "vim/vimfiles/ftplugin/amp.vim"},
    {"vim/syntax/amp.vim", "vim/vimfiles/syntax/amp.vim"},
    {"vscode/package.json", "ampc/vscode/package.json"},
    {"vscode/language-configuration.json", "ampc/vscode/language-configuration.json"},
    {"vscode/amp.tmLanguage.json", "ampc/vscode/amp.tmLanguage.json"},
};

enum { keywords, constants, types, declarations, layers, functions, version, LISTS };
#define NAME(list) [list] = #list
static const char *const names[LISTS] = {NAME(keywords),     NAME(constants), NAME(types),
                                         NAME(declarations), NAME(layers),    NAME(functions),
                                         NAME(version)};

static void add_word(Text *list, const char *word)
{
  text_printf(list, "%s%s", list->n ? "|" : "", word);
}

/* Sorts the reserved words and the names of the reference into lists, as "def|return|if". */
static void make_lists(Arena *arena, Text *lists)
{
  NameVec entries = {0};
  bool top;
  for (int i = 0; i < LISTS; i++) text_init(&lists[i], arena);
  for (uint32_t i = 0; ast_reserved_word(i, &top); i++) {
    const char *word = ast_reserved_word(i, &top);
    int kind = lex_reserved_kind(word);
    bool constant = ONE_OF(kind, TOK_TRUE, TOK_FALSE, TOK_NONE);
    int list = top ? declarations : kind == TOK_DTYPE ? types : constant ? constants : keywords;
    add_word(&lists[list], word);
  }
  add_word(&lists[version], AMPC_VERSION);
  help_names(arena, &entries);
  for (uint32_t i = 0; i < entries.n; i++) {
    const char *name = entries.at[i];
    bool word = name_size(name) == strlen(name) && strcmp(name, "NAME") != 0; /* "NAME = VALUE" */
    if (!word || lex_reserved_kind(name)) continue;
    add_word(&lists[isupper((unsigned char)*name) ? layers : functions], name);
  }
}

/* Copies a text; replaces "@types@" by the list of that name. */
static void fill(const char *text, const Text *lists, Text *out)
{
  while (*text) {
    size_t n = strcspn(text, "@");
    text_add(out, text, n);
    text += n;
    if (!*text) break;
    const char *name = text + 1, *end = strchr(name, '@');
    size_t size = end ? (size_t)(end - name) : 0;
    const char *value = NULL;
    for (int i = 0; i < LISTS; i++)
      if (strlen(names[i]) == size && strncmp(names[i], name, size) == 0) value = lists[i].at;
    text_puts(out, value ? value : "@");
    text = value ? end + 1 : name;
  }
}

void save_editors(Arena *arena, const char *from, const char *folder)
{
  Text lists[LISTS];
  make_lists(arena, lists);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char *text;
    int64_t size;
    Text out = text_new(arena);
    if (file_read(FILE_NO_ROLE, arena_printf(arena, "%s/%s", from, files[i][0]), &text, &size)) {
      fprintf(stderr, "%s\n", ampc_last_error());
      exit(EXIT_FAILURE);
    }
    fill(text, lists, &out);
    free(text);
    pages_save(&out, folder, files[i][1]);
  }
}
