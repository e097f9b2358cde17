/* The width of printed lines. */
#pragma once

/* Returns the columns of the terminal at `fd`: $COLUMNS, else what the terminal reports, else 80.
 * Returns 0 if `fd` is not a terminal, so that a program that reads the output gets whole lines. */
int terminal_columns(int fd);

/* Returns the columns of text on stdout: $COLUMNS, else the terminal's width, else 100. */
int line_columns(void);
