/* Command lines as tables. A row is an option; rows that end with an empty one are a group, which
 * several programs or verbs of a program may take; an OptionTable is the command line of one verb.
 * Reading, --help and the messages about wrong usage all come from the table.
 *
 *   static const OptionRow output[] = {
 *       {"library", 0, NULL, "no main()", .kind = OPTION_flag, .field = offsetof(...)},
 *       {NULL, 'o', "FILE", "output", .kind = OPTION_text, .field = offsetof(...)},
 *       {0}};
 */
#pragma once
#include "compiler/base/arena.h"

/* What the option does to the field of its row. */
typedef enum OptionKind {
  OPTION_flag,   /* bool: true */
  OPTION_text,   /* const char *: the word itself, which is the caller's argv */
  OPTION_number, /* uint32_t, row->least or more */
  OPTION_size,   /* int64_t: bytes, written as in "4G" */
  OPTION_choice, /* int: 1 for the first of row->words; so 0 stays where none was given */
  OPTION_call    /* row->read does it all */
} OptionKind;

typedef struct OptionRow OptionRow;

typedef struct OptionGiven { /* an option as it stands on a command line */
  Arena *arena;
  const char *program; /* "amp train" */
  const OptionRow *row;
  void *into;          /* the struct that row->field is an offset in */
  const char *value;   /* NULL: the row takes none */
  bool by_letter;      /* -O2, not a long name */
  const char *between; /* option and value as written: "=", " ", or "" as in -O2 */
} OptionGiven;

/* The exit status when the program ends here, or OPTIONS_GO_ON. */
enum { OPTIONS_GO_ON = -1, OPTIONS_BAD_USAGE = 2 };
typedef int OptionRead(const OptionGiven *given);

struct OptionRow {
  const char *name;  /* without the dashes; NULL: it has a letter only */
  char letter;       /* 0: it has a name only */
  const char *value; /* what --help writes for its value; NULL: takes none */
  const char *help;
  /* From here on as the kind needs it. */
  const char *shown; /* left column of --help, where it is not made from name, letter and value */
  OptionKind kind;
  size_t field; /* offset */
  uint32_t least;
  const char *const *words; /* end with NULL */
  bool bare; /* OPTION_choice: without a value it is the first of the words; a value needs the = */
  const char *expected; /* "a line number"; NULL: the message follows from the kind */
  OptionRead *read;
  const char *with;    /* names of options with blanks between them: it goes with one of these, */
  const char *without; /* and with none of these */
};

typedef struct OptionGroup {
  const OptionRow *rows;
  size_t into; /* offset of the struct that the rows fill, within that of the whole command line */
} OptionGroup;

typedef struct OptionTable {
  const char *program; /* begins every message: "ampc", "amp train" */
  const char *usage;   /* what follows the program in a call; lines for other ways to call it */
  const char *about;   /* below that, before the options; NULL: nothing */
  const OptionGroup *groups; /* in the order of --help; rows NULL ends them */
  const char *notes;         /* after the options; NULL: nothing */
} OptionTable;

typedef struct Operands { /* the words that are no options, in their order: a part of argv */
  char **at;
  int n;
} Operands;

/* Reads *words, which are argv, into the struct `into`; argv is reordered, and *words is then its
 * operands. Every table has --help beside its rows. False when there is nothing left to do: *status
 * is then 0 after --help and the like, 2 after a message about wrong usage. */
bool options_read(const OptionTable *table, Arena *arena, Operands *words, void *into, int *status);

/* Are there as many jobs as the program takes? 0, or 2 after a message. */
int options_count_jobs(const OptionTable *table, const Operands *jobs, int least, int most);

/* For OptionRead: says "PROGRAM: error: --name=value: text", as the option was written. Returns 2.
 */
int option_wrong(const OptionGiven *given, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "program: error: text" and the way to --help to stderr; returns 2. */
int usage_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
