/* The width of printed lines. */
#pragma once

/* Columns of the terminal at `fd`: $COLUMNS, else what the terminal says, else 80. 0: `fd` is no
 * terminal, so nothing is cut off for a program that reads it. */
int terminal_columns(int fd);

/* Columns of text on stdout: $COLUMNS, else the terminal's, else 100. */
int line_columns(void);
