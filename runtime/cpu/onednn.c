/* What links oneDNN to a program that uses it. The other objects of libampcrt.a refer to oneDNN by
 * weak symbols only, so that a program may do without: ampc --no-onednn. */
#include "ampc_rt.h"
#include <oneapi/dnnl/dnnl.h>
#include "dnn.h"

const int ampc_onednn = DNNL_VERSION_MAJOR;

typedef void Function(void);
__attribute__((used)) static Function *const needed[] = {(Function *)dnnl_engine_create,
                                                         (Function *)omp_get_max_threads};
