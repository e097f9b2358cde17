#include "processors.h"
#include <sched.h>
#include <stdlib.h>

unsigned ampc_processors(void)
{
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const char *text = getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0; /* "4,2" gives 4; anything else no limit */
  if (wanted > 0 && wanted < cores) return (unsigned)wanted;
  return (unsigned)cores;
}
