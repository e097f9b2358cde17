/* A line on the terminal while kernels are compiled, if that takes more than a second. */
#pragma once
#include <stdint.h>

void notice_begin(uint32_t kernels);
/* Called often while compilers run, by any thread; `built`: kernels that are ready since the last
 * call. Prints only between notice_begin and notice_end. */
void notice_tick(uint32_t built);
void notice_end(void); /* removes the line */
