/* The library's threads: it has its own, which must not compete with the pool's. */
#pragma once
#include <oneapi/dnnl/dnnl_version.h>
#if DNNL_VERSION_MAJOR != 2
#  error "ampc needs oneDNN 2.x; the functions of other versions differ"
#endif

/* OpenMP's interface, which the library is built on. Its header comes with some compilers only. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int n);

/* Around calls of the library: it uses no thread but the caller's, and the caller's setting is kept
 * for others. Primitives must be made and run between the two. See Note [library threads]. */
static inline int dnn_enter(void)
{
  int before = omp_get_max_threads();
  omp_set_num_threads(1);
  return before;
}

static inline void dnn_leave(int before)
{
  omp_set_num_threads(before);
}
