/* Memory that runs out where no malloc of ours can see it: in libraries. */
#pragma once
#include <stdbool.h>

/* Is there too little room for what a library allocates in one go? To be asked before oneDNN makes
 * a kernel: it writes to buffers that it did not get, or throws what nobody catches. */
bool out_of_memory_near(void);

/* From now on a crash where memory has run out ends the process with one sentence and status 5.
 * Any other crash is handled as before. `program` names it in the sentence and must live on. */
void out_of_memory_catch(const char *program);
