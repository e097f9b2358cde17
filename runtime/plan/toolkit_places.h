/* Folders that may contain NVIDIA's libraries, in the order of the search. */
#pragma once
#include <stddef.h>

enum { TOOLKIT_PATTERN = 512 };

/* Opens the library in the first folder where it can be loaded; NULL: there is none. `file`:
 * "libnvrtc.so.13" */
void *toolkit_open_given(const char *file); /* only in the folder of --cuda-path */
void *toolkit_open_found(const char *file); /* in the loader's folders, then in all other places */

/* The places that both search, for messages: "the loader (LD_LIBRARY_PATH), /usr/local/cuda*". */
void toolkit_tell_places(char *out, size_t size);
