#include "common/processors.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned ampc_processors(void)
{
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const char *text = getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0; /* "4,2" gives 4; anything else no limit */
  if (wanted > 0 && wanted < cores) return (unsigned)wanted;
  return (unsigned)cores;
}

void ampc_processors_get(unsigned char out[AMPC_PROCESSORS / 8])
{
  cpu_set_t set;
  memset(out, 0, AMPC_PROCESSORS / 8);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (unsigned i = 0; i < AMPC_PROCESSORS; i++)
    if (CPU_ISSET(i, &set)) out[i / 8] |= (unsigned char)(1u << i % 8);
}

/* ---- a part of the processors ---- */

typedef struct Processor {
  unsigned number; /* these are numbers of the kernel */
  int socket, core;
} Processor;

/* Returns the kernel's number of what a processor is part of; 0 if it is unknown. */
static int topology(unsigned processor, const char *what)
{
  char path[128];
  int number = 0;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/%s", processor, what);
  FILE *f = fopen(path, "r");
  if (f && fscanf(f, "%d", &number) != 1) number = 0;
  if (f) fclose(f);
  return number;
}

static int compare(const void *a, const void *b)
{
  const Processor *x = a, *y = b;
  if (x->socket != y->socket) return x->socket < y->socket ? -1 : 1;
  if (x->core != y->core) return x->core < y->core ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

void ampc_processors_take(unsigned index, unsigned count)
{
  Processor all[CPU_SETSIZE];
  cpu_set_t set, part;
  unsigned n = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (unsigned i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &set))
      all[n++] = (Processor){i, topology(i, "physical_package_id"), topology(i, "core_id")};
  qsort(all, n, sizeof *all, compare);
  unsigned begin = index * n / count, end = (index + 1) * n / count;
  CPU_ZERO(&part);
  for (unsigned i = begin; i < n && (i < end || i == begin); i++) CPU_SET(all[i].number, &part);
  sched_setaffinity(0, sizeof part, &part);
}
