/* Files of text as ids. At the first use they are tokenized into a file of the cache. The library
 * that does it is runtime/data/texts. Only programs that read texts link it, because it needs PCRE2
 * and utf8proc: so it is reached through a weak symbol. */
#pragma once
#include <limits.h>
#include "ampc_rt.h"

enum { TEXTS_PATH = PATH_MAX + 80 };
#define TEXTS_MAGIC  "ampcids1"
#define TEXTS_ANSWER (INT32_MIN) /* this bit of an id says that the id is of an answer */

/* A file of ids has these, as i32; then, of records, how many ids there are to the end of each one,
 * as i64; then this. */
typedef struct TextsEnd {
  char magic[8];
  int64_t tokens, records, pad; /* pad: the id that fills a record up */
} TextsEnd;

/* `find` writes the name of the file of ids to `file`, or "" if there is none and `make` is false.
 * After a failure *why is the message. `args` are those of the source. */
struct ampc_texts {
  ampc_status (*find)(const char *path, const char *args, bool make, char file[TEXTS_PATH],
                      const char **why);
};

/* Finds the file of ids of a source, and makes it if there is none. After ampc_texts_skip,
 * out->tokens is -1 instead. `path`: a file, or a pattern whose files are one source. */
ampc_status texts_find(const char *path, const char *args, char file[TEXTS_PATH], TextsEnd *out);
