/* Command lines as tables. A row is an option. Rows that end with an empty one are a group, which
 * several programs or verbs can share. An OptionTable is the command line of one verb. Parsing,
 * --help and the messages about wrong usage all use the table.
 *
 *   static const OptionRow output[] = {
 *       {"library", 0, NULL, "no main()", .kind = OPTION_flag, .field = offsetof(...)},
 *       {NULL, 'o', "FILE", "output", .kind = OPTION_text, .field = offsetof(...)},
 *       {0}}; */
#pragma once
#include "compiler/base/arena.h"

/* What the option stores in the field of its row. */
typedef enum OptionKind {
  OPTION_flag,   /* bool: true */
  OPTION_text,   /* const char *: the word itself, not copied from argv */
  OPTION_number, /* uint32_t, at least row->least */
  OPTION_size,   /* int64_t: bytes, written as "4G" */
  OPTION_choice, /* int: 1 + index in row->words; 0 stays if the option is not given */
  OPTION_call    /* row->read does everything */
} OptionKind;

typedef struct OptionRow OptionRow;

typedef struct OptionGiven { /* an option on a command line */
  Arena *arena;
  const char *program; /* "amp train" */
  const OptionRow *row;
  void *into;          /* the struct that contains row->field */
  const char *value;   /* NULL: the row takes none */
  bool by_letter;      /* written with its letter, -O2 */
  const char *between; /* between option and value: "=", " ", or "" as in -O2 */
} OptionGiven;

/* An OptionRead returns the exit status if the program is to end, else OPTIONS_GO_ON. */
enum { OPTIONS_GO_ON = -1, OPTIONS_BAD_USAGE = 2 };
typedef int OptionRead(const OptionGiven *given);

struct OptionRow {
  const char *name;  /* without the dashes; NULL: only a letter */
  char letter;       /* 0: only a name */
  const char *value; /* the value in --help; NULL: takes none */
  const char *help;
  /* The following fields depend on the kind. */
  const char *shown; /* left column of --help; NULL: made from name, letter and value */
  OptionKind kind;
  size_t field;             /* offset */
  uint32_t least;           /* OPTION_number */
  const char *const *words; /* NULL-terminated */
  bool bare;            /* OPTION_choice: without a value, the first word; a value needs the = */
  const char *expected; /* for the message: "a line number"; NULL: it follows from the kind */
  OptionRead *read;
  const char *with;    /* option names, separated by blanks: one of these is required, */
  const char *without; /* and all of these are errors */
};

typedef struct OptionGroup {
  const OptionRow *rows;
  size_t into; /* offset of the struct that the rows fill, within that of the whole command line */
} OptionGroup;

typedef struct OptionTable {
  const char *program;       /* begins each message: "ampc", "amp train" */
  const char *usage;         /* the rest of the usage line; more lines for other ways to call it */
  const char *about;         /* printed before the options; NULL: nothing */
  const OptionGroup *groups; /* in the order of --help; rows NULL: the end */
  const char *notes;         /* printed after the options; NULL: nothing */
} OptionTable;

typedef struct Operands { /* the words that are not options, in order: part of argv */
  char **at;
  int n;
} Operands;

/* Reads *words, which are argv, into the struct `into`. Reorders argv and sets *words to its
 * operands. Every table has --help in addition to its rows. Returns false if the program is to exit
 * with *status: 0 after options like --help, 2 after a message about wrong usage. */
bool options_read(const OptionTable *table, Arena *arena, Operands *words, void *into, int *status);

/* Checks the number of jobs. Returns 0, or 2 after a message. */
int options_count_jobs(const OptionTable *table, const Operands *jobs, int least, int most);

/* For OptionRead: prints "PROGRAM: error: --name=value: text", with the option as written. Returns
 * 2. */
int option_wrong(const OptionGiven *given, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints to stderr "PROGRAM: error: text" and how to get --help. Returns 2. */
int usage_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
