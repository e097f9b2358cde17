/* How wide the lines are that people read. */
#pragma once

/* Characters of a line of the terminal at `fd`: $COLUMNS, else what the terminal says, else 80; 0
 * where `fd` is no terminal, so that nothing is cut that a program reads. */
int terminal_columns(int fd);

/* Of a line of text on stdout: $COLUMNS, else the terminal's, else 100. */
int line_columns(void);
