/* Folders that may contain NVIDIA's libraries, in the order of the search. */
#pragma once
#include <stddef.h>

enum { TOOLKIT_PATTERN = 512 };

/* Open the library `file`, such as "libnvrtc.so.13", in the first folder where it can be loaded.
 * NULL: in no folder. */
void *toolkit_open_given(const char *file); /* only in the folder of --cuda-path */
void *toolkit_open_found(const char *file); /* in the loader's folders, then in all other places */

/* Writes what both search, for messages: "the loader (LD_LIBRARY_PATH), /usr/local/cuda*". */
void toolkit_tell_places(char *out, size_t size);
