/* Memory that runs out where no malloc of ours can see it: in libraries. */
#pragma once
#include <stdbool.h>

enum { CRASH_STACK = 32 << 10 /* bytes; all registers of a processor with AMX take 11 KB */ };

/* Is there too little room for what a library allocates in one go? To be asked before oneDNN makes
 * a kernel: it writes to buffers that it did not get, or throws what nobody catches. */
bool out_of_memory_near(void);

/* From now on a crash where memory has run out ends the process with one sentence and status 5.
 * Any other crash, and a signal that somebody sent, is handled as before. `program` names it in the
 * sentence and must live on. The calling thread gets a stack for handlers. */
void out_of_memory_catch(const char *program);

/* Lets handlers of crashes run on `stack` while this thread lives: its own may have no room left,
 * or be in use for data (Note [signals]). */
void out_of_memory_stack(char stack[CRASH_STACK]);
