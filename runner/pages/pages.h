/* Man pages, completions and files for editors, made from the tables of the programs. */
#pragma once
#include "compiler/cli/option_table.h"

enum { SHELLS = 3 };
typedef struct Shell {
  const char *folder, *file; /* below share/; `file` has a place for the program's name */
  void (*begin)(Text *out, const char *program);
  /* One verb, or all of a program without verbs: then `verb` and `help` are NULL. */
  void (*put)(Text *out, const char *verb, const char *help, const OptionTable *table);
  void (*end)(Text *out, const char *program);
} Shell;
extern const Shell shells[SHELLS];

/* What the value of an option is. */
typedef enum ValueKind { VALUE_none, VALUE_words, VALUE_file, VALUE_folder, VALUE_other } ValueKind;
ValueKind value_kind(const OptionRow *row);
const char *const *value_words(const OptionRow *row); /* ends with NULL; NULL: any value */

/* Calls `put` for each spelling of an option, "--quiet" and "-q", or "-O0", "-O1" and "-O2". */
void each_spelling(const OptionRow *row, Text *out,
                   void (*put)(Text *out, const OptionRow *row, const char *word));

/* For loops over all rows of a table. */
#define EACH_ROW(row, table)                                                                       \
  for (const OptionGroup *group = (table)->groups; group->rows; group++)                           \
    for (const OptionRow *row = group->rows; row->name || row->letter; row++)

/* Writes a file below `folder`, or exits after a message. */
void pages_save(const Text *text, const char *folder, const char *name);

/* Writes the files of the folder `from` below `folder`, with lists of words in them. */
void save_editors(Arena *arena, const char *from, const char *folder);

/* Adds text and writes a backslash before each character of `special`. */
void put_escaped(Text *out, const char *text, const char *special);
