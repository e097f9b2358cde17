/* Reads inputs of a prompt: from the line editor on a terminal, else from stdin. Ctrl-C drops the
 * typed text. While a command runs, Ctrl-C sets a flag that the command checks. */
#pragma once
#include "compiler/base/names.h"

typedef struct InputStyle {
  char prompt[8], more[8]; /* before the first line of an input, and before its other ones */
  const char *history;     /* name of the file that keeps the inputs of a terminal */
  /* True if the next line belongs to the input, too. NULL: an input is a line. */
  bool (*open)(const char *text, size_t size);
  /* Lists the words that may complete the end of `text`. *start: beginning of the word that they
   * replace. NULL: Tab completes nothing. */
  void (*complete)(void *context, Arena *arena, const char *text, size_t size, size_t *start,
                   NameVec *out);
  void *context;
} InputStyle;

typedef struct Input Input;
/* `terminal`: stdin and stdout are one. */
Input *input_open(const InputStyle *style, bool terminal);
/* Returns the next input, valid until the next call; NULL at the end. */
const char *input_next(Input *in, size_t *out_size);
void input_close(Input *in);
bool input_interrupted(void); /* Ctrl-C was typed since input_calm */
void input_calm(void);
