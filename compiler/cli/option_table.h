/* Command lines as tables. A row is an option. A list of rows that ends with an empty row is a
 * group, which several programs or verbs can share. An OptionTable is the command line of one verb.
 * Parsing, --help and the messages about wrong usage all use the table.
 *
 *   static const OptionRow output[] = {
 *       {"library", 0, NULL, "no main()", .kind = OPTION_flag, .field = offsetof(...)},
 *       {NULL, 'o', "FILE", "output", .kind = OPTION_text, .field = offsetof(...)},
 *       {0}}; */
#pragma once
#include "compiler/base/arena.h"
#include "common/number.h"

/* The type of the row's field, and what the option stores there. */
typedef enum OptionKind {
  OPTION_flag,   /* bool: true */
  OPTION_text,   /* const char *: the word itself, not copied from argv */
  OPTION_number, /* uint32_t, at least row->least */
  OPTION_real,   /* double, in row->domain */
  OPTION_size,   /* int64_t: bytes, written as "4G" */
  OPTION_choice, /* int: 1 + index in row->words; 0: the option is not given */
  OPTION_call    /* row->read does everything */
} OptionKind;

typedef struct OptionRow OptionRow;

/* An option on a command line. */
typedef struct OptionGiven {
  Arena *arena;
  const char *program; /* "amp train" */
  const OptionRow *row;
  void *into;          /* the struct that contains row->field */
  const char *value;   /* NULL: the option takes no value */
  bool by_letter;      /* the user wrote the letter: -O2 */
  const char *between; /* the text between option and value: "=", " ", or "" as in -O2 */
} OptionGiven;

/* Handles an option. Returns the exit status if the program is to exit, else OPTIONS_GO_ON. */
enum { OPTIONS_GO_ON = -1, OPTIONS_BAD_USAGE = 2 };
typedef int OptionRead(const OptionGiven *given);

struct OptionRow {
  const char *name;  /* without the dashes; NULL: the option has only a letter */
  char letter;       /* 0: the option has only a name */
  const char *value; /* name of the value in --help; NULL: the option takes no value */
  const char *help;
  const char *also; /* another name, which --help does not list, and the one of train_options.def;
                       NULL: none */
  /* The following fields depend on the kind. */
  const char *shown; /* left column of --help; NULL: name, letter and value */
  OptionKind kind;
  size_t field;             /* offset of the field */
  uint32_t least;           /* OPTION_number: smallest value */
  ampc_domain domain;       /* OPTION_real: the numbers that are allowed */
  const char *const *words; /* OPTION_choice: the words, ending with NULL; OPTION_call: as well,
                               for completion */
  bool bare;                /* OPTION_choice: no value means the first word; a value needs the = */
  const char *expected;     /* for messages: "a line number"; NULL: a text for the kind */
  OptionRead *read;
  const char *with;    /* names of options, separated by spaces: one of these is required, if the
                          table has any of them */
  const char *without; /* names of options, separated by spaces: each of these is an error */
};

typedef struct OptionGroup {
  const OptionRow *rows;
  size_t into; /* offset of the struct that the rows fill, in the struct of the command line */
} OptionGroup;

typedef struct OptionTable {
  const char *program;       /* the start of each message: "ampc", "amp train" */
  const char *usage;         /* rest of the usage line; further lines: other ways to call it */
  const char *about;         /* text before the options; NULL: no text */
  const OptionGroup *groups; /* in the order of --help; a group with rows NULL ends the list */
  const char *notes;         /* text after the options; NULL: no text */
} OptionTable;

/* The words that are not options, in order; `at` points into argv. */
typedef struct Operands {
  char **at;
  int n;
} Operands;

/* Reads *words, which are argv, into the struct `into`. Reorders argv and sets *words to its
 * operands. Every table has --help in addition to its rows. Returns false if the program is to exit
 * with *status: 0 after options like --help, 2 after a message about wrong usage. */
bool options_read(const OptionTable *table, Arena *arena, Operands *words, void *into, int *status);

/* Checks the number of jobs. Returns 0, or 2 after a message. */
int options_count_jobs(const OptionTable *table, const Operands *jobs, int least, int most);

/* For OptionRead: prints "PROGRAM: error: --name=value: text", as the user wrote it. Returns 2. */
int option_wrong(const OptionGiven *given, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "PROGRAM: error: text" and how to get --help to stderr. Returns 2. */
int usage_error(const char *program, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
