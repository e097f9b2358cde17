/* Ctrl-C (SIGINT) and SIGTERM as a request that the training loop looks at between steps. */
#pragma once
#include <stdbool.h>

void interrupt_catch(void);     /* a second signal ends the process at once */
bool interrupt_requested(void); /* since interrupt_catch */
void interrupt_restore(void);
