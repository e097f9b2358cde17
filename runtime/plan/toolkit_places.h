/* Folders where NVIDIA's libraries may lie, in the order in which they are looked through. */
#pragma once
#include <stddef.h>

enum { TOOLKIT_PATTERN = 512 };

/* A library by its path, from the first folder that has one which loads; NULL: there is none.
 * `file`: "libnvrtc.so.13" */
void *toolkit_open_given(const char *file); /* in the folder of --cuda-path alone */
void *toolkit_open_found(const char *file); /* where the loader looks; then in all other places */

/* Where both have looked, for messages: "--cuda-path /opt/cuda, the loader (LD_LIBRARY_PATH), ..."
 */
void toolkit_tell_places(char *out, size_t size);
