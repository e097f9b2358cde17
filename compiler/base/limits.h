/* The limits of a program: docs/grammar.md tells them to users, with those of tensors and counts,
 * which stand where they are checked. They keep what a compile costs linear in the text, and every
 * recursion far from the end of C's stack. A program beyond one is refused with a message that
 * names it. */
#pragma once

enum {
  /* ---- the text ---- */
  MAX_SOURCE = 1 << 24, /* bytes of a file */
  MAX_TOKENS =
      1 << 20, /* words and signs of all files together: 100 bytes each, and a tree of them */
  MAX_OPEN_BRACKETS =
      200,          /* one within the other; with MAX_HEIGHT what bounds recursion over the tree */
  MAX_HEIGHT = 500, /* of an expression, of statements: one upon the other, `else if` too */

  /* ---- what it unrolls to ---- */
  MAX_DEPTH = 200,       /* of calls: deeper is a recursion without end */
  MAX_STACK = 2000,      /* expressions and statements within one another, through calls */
  MAX_WORK = 2000000,    /* statements, calls, arguments, parameters: nobody waits for more */
  ELEMENTS_PER_WORK = 4, /* expressions, elements of a list that are made: count as one of those */
  NODE_WORK = 4,         /* an operation on tensors: as many of those */
  BYTES_PER_WORK = 64,   /* of a str, likewise */
  MAX_LIST = 1 << 20,    /* values in a list, those of lists in it too; bytes of a str */
  MAX_NESTING = 100,     /* lists within lists */
  MAX_BLOCKS = 1024,     /* train, eval, infer; each variant of one counts */
  MAX_OUTPUTS = 8192,    /* values that infer blocks give; each has a kernel or a copy */
  MAX_ERRORS = 1000      /* mistakes, after which no more are looked for */
};
