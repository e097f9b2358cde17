/* How wide the terminal is that a text goes to. */
#pragma once

/* Characters of a line of the terminal at `fd`: $COLUMNS, else what the terminal says, else 80; 0
 * where `fd` is no terminal, so that nothing is cut that a program reads. */
int terminal_columns(int fd);
