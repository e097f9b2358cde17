/* Signals as requests that the training loop looks at between steps: Ctrl-C (SIGINT), SIGTERM and
 * SIGHUP to end, SIGUSR1 to save. What was ignored before, as under nohup, stays ignored. */
#pragma once
#include <stdbool.h>

void interrupt_catch(void);     /* a second signal ends the process at once */
bool interrupt_requested(void); /* since interrupt_catch */
bool interrupt_take_save(void); /* has a save been asked for since the last call? */
void interrupt_restore(void);
