/* Arguments of sources as text. */
#include "args.h"
#include <stdlib.h>
#include <string.h>
#include "common/number.h"

enum { NUMBER_ROOM = 64 };

const char *args_next(const char *args, const char *name, const char *after, int *out_size)
{
  size_t length = strlen(name);
  const char *line = after ? strchr(after, '\n') : args;
  if (after && line) line++;
  for (; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    if (strncmp(line, name, length) != 0 || line[length] != '=') continue;
    const char *value = line + length + 1;
    *out_size = (int)strcspn(value, "\n");
    return value;
  }
  return NULL;
}

bool args_text(const char *args, const char *name, char *to, int size)
{
  int n;
  const char *value = args_next(args, name, NULL, &n);
  if (!value || n >= size) return false;
  memcpy(to, value, (size_t)n);
  to[n] = 0;
  return true;
}

int64_t args_integer(const char *args, const char *name)
{
  char text[NUMBER_ROOM];
  int64_t n;
  return args_text(args, name, text, sizeof text) && ampc_read_whole(text, &n) ? n : 0;
}
