/* Limits oneDNN's own threads, which would compete with the pool's. */
#pragma once
#include <oneapi/dnnl/dnnl_version.h>
#if DNNL_VERSION_MAJOR != 2
#  error "ampc needs oneDNN 2.x; the functions of other versions differ"
#endif

/* OpenMP's functions, which oneDNN uses. Only some compilers come with its header. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int n);

/* Call these around oneDNN calls: then oneDNN uses only the caller's thread. dnn_leave restores the
 * caller's setting. Make and run primitives between the two. See Note [library threads]. */
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
