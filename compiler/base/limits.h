/* The limits of a program. docs/grammar.md documents them, together with limits of tensors and
 * counts, which are defined where they are checked. The limits keep the cost of a compile linear in
 * the size of the text, and keep every recursion well within the C stack. A program that exceeds a
 * limit gets an error that names the limit. */
#pragma once

enum {
  /* ---- the text ---- */
  MAX_SOURCE = 1 << 24,    /* bytes of a file */
  MAX_TOKENS = 1 << 20,    /* of all files together; each takes 100 bytes, and syntax tree nodes */
  MAX_OPEN_BRACKETS = 200, /* nested; MAX_HEIGHT and this one bound recursion over the tree */
  MAX_HEIGHT = 500,        /* of an expression or of nested statements, `else if` included */

  /* ---- what the program unrolls to ---- */
  MAX_DEPTH = 200,       /* of calls: more is taken for an endless recursion */
  MAX_STACK = 2000,      /* nested expressions and statements, through calls */
  MAX_WORK = 2000000,    /* statements, calls, arguments, parameters: more takes too long */
  ELEMENTS_PER_WORK = 4, /* this many expressions or created list elements count as one unit */
  NODE_WORK = 4,         /* an operation on tensors counts as this many units */
  BYTES_PER_WORK = 64,   /* this many bytes of a str count as one unit */
  MAX_LIST = 1 << 20,    /* values in a list, nested ones included; bytes of a str */
  MAX_NESTING = 100,     /* lists within lists */
  MAX_BLOCKS = 1024,     /* train, eval, infer; each variant of a block counts */
  MAX_OUTPUTS = 8192,    /* values that infer blocks return; each needs a kernel or a copy */
  MAX_ERRORS = 1000      /* the compile stops after this many errors */
};
