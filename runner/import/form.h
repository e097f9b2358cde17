/* Text of modules in which numbers are left out, so that modules that differ only in numbers share
 * one definition. All memory is in the arena.
 *
 * Note [forms]
 * The text of a form has marks. FORM_NUMBER stands for its next number. FORM_MODULE stands for a
 * call of a definition: its index and FORM_END follow. The call uses the next Definition.form.n
 * numbers. FORM_OPTION begins an optional number: its name, FORM_NAME, FORM_NUMBER. It is printed
 * as
 * ", name=number" unless the number is the usual one. FORM_ITEM and FORM_END enclose an element of
 * a list; FORM_NAME ends the element's name, which may be empty.
 *
 * Definitions with the same text are one. A number that is the same wherever the definition is used
 * is printed in it. Other numbers are its parameters; numbers that agree everywhere share one. */
#pragma once
#include "name_map.h"

enum { FORM_NUMBER = 1, FORM_MODULE, FORM_OPTION, FORM_ITEM, FORM_NAME, FORM_END };

typedef struct Number {
  const char *text; /* "64" */
  const char *role; /* the name of a parameter for it: "stride" */
} Number;

typedef struct Form {
  const char *text;
  const Number *number;
  uint32_t n;
} Form;

typedef struct Definition {
  const char *name;         /* "BasicBlock" */
  uint32_t index;           /* in Forms.definitions */
  bool is_def;              /* a function that returns a module: no class of its own */
  Form form;                /* of the body; the numbers of its first use */
  VEC(const Number *) uses; /* the numbers of all uses */
  uint32_t *parameter;      /* of each number: index + 1; 0: a constant */
  const char **names;       /* of the n parameters */
  uint32_t n;
} Definition;

typedef struct Forms {
  Arena *arena;
  VEC(Definition *) definitions; /* each uses only earlier ones */
  NameMap bodies, taken;         /* definitions by text; names that are in use */
} Forms;

/* Finds the numbers in code: "Conv2d(3, 64, 7)" has three. */
const Form *form_of_text(Arena *arena, const char *code);
bool form_equal(const Form *a, const Form *b); /* also the numbers */
/* Joins forms: their texts and numbers, one after the other. */
const Form *form_join(Arena *arena, const Form *const *parts, uint32_t n);
/* Returns a call of the definition with this body, which is added if it is new. is_class: the file
 * names the class; definitions of different classes stay apart. is_def: a function. If the name is
 * taken, the printed name gets a number. */
const Form *form_define(Forms *f, const char *name, bool is_class, bool is_def, const Form *body);
/* Prints all definitions. */
void forms_print(Forms *f, Text *out);
/* Prints a form with its own numbers. */
void form_print(Forms *f, const Form *form, Text *out);
