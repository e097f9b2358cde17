/* Keeps what ampc_use_data_threads() has set, for the loader. */
#include "data_threads.h"
#include <stdatomic.h>
#include "ampc_rt.h"

static atomic_int threads;

void ampc_use_data_threads(int64_t n)
{
  atomic_store(&threads, n < AMPC_MOST_DATA_THREADS ? (int)n : AMPC_MOST_DATA_THREADS);
}

int data_threads(void)
{
  return atomic_load(&threads);
}
