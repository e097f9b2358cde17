/* The limits of a program. docs/grammar.md documents them, together with limits of tensors and
 * counts; the code that checks a limit of the latter also defines it. The limits keep the cost of a
 * compile linear in the size of the text, and keep every recursion well within the C stack. A
 * program that exceeds a limit gets an error that names the limit. */
#pragma once

enum {
  /* ---- the text ---- */
  MAX_SOURCE = 1 << 24,    /* bytes of a file */
  MAX_TOKENS = 1 << 20,    /* tokens of all files; each takes 100 bytes, and nodes of the tree */
  MAX_OPEN_BRACKETS = 200, /* nested brackets; with MAX_HEIGHT, bounds recursion over the tree */
  MAX_HEIGHT = 500,        /* levels of an expression or of nested statements and `else if` */

  /* ---- what the program unrolls to ---- */
  MAX_DEPTH = 200,       /* nested calls: more count as an endless recursion */
  MAX_STACK = 2000,      /* nested expressions and statements, across calls */
  MAX_WORK = 2000000,    /* statements, calls, arguments, parameters: more takes too long */
  ELEMENTS_PER_WORK = 4, /* number of expressions or created list elements in a unit of work */
  NODE_WORK = 4,         /* units of work of an operation on tensors */
  BYTES_PER_WORK = 64,   /* bytes of a str in a unit of work */
  MAX_LIST = 1 << 20,    /* values in a list and the lists in it; bytes of a str */
  MAX_NESTING = 100,     /* lists within lists */
  MAX_BLOCKS = 1024,     /* train, eval and infer blocks; each variant counts */
  MAX_OUTPUTS = 8192,    /* values that infer blocks return; each needs a kernel or a copy */
  MAX_ERRORS = 1000      /* the compile stops after this many errors */
};
