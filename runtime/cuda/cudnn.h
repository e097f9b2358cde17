/* cuDNN in this process: found, started, and what it needs to know of a GPU. */
#pragma once
#include "cuda_device.h"
#include "cudnn_plan.h"

struct DnnLibrary {
  Shared shared; /* by all devices of a GPU */
  DnnMachine machine;
  char identity[256]; /* of cuDNN and the GPU, as far as plans depend on them */
};

/* NULL with the reason in `why`: none is found, it is too old, it does not start, or it is not
 * wanted. */
DnnLibrary *dnn_open(CudaDevice *d, char why[AMPC_WHY_ROOM]);
void dnn_close(DnnLibrary *l); /* the last user frees the handle; NULL is fine */

/* For a GPU that is not here, of this compute capability (90 for 9.0): plans can be made and not be
 * run. False: out->api is NULL. dnn_machine_free in any case. */
bool dnn_machine_of(int capability, DnnMachine *out, char why[AMPC_WHY_ROOM]);
void dnn_machine_free(DnnMachine *m);
