/* cuDNN in this process: loads and starts it, and holds its description of a GPU. */
#pragma once
#include "cuda_device.h"
#include "cudnn_plan.h"

struct DnnLibrary {
  Shared shared; /* shared by all devices of a GPU */
  DnnMachine machine;
  char identity[256]; /* all facts about cuDNN and the GPU that plans depend on */
};

/* Opens cuDNN. Returns NULL, with the reason in `why`, if cuDNN is missing, too old, does not
 * start, or if --no-cudnn was given. */
DnnLibrary *dnn_open(CudaDevice *d, char why[AMPC_WHY_ROOM]);
void dnn_close(DnnLibrary *l); /* the last user frees the handle; NULL is fine */

/* Describes an absent GPU of this compute capability (90 for 9.0). Plans for it can be made but not
 * run. If this fails, returns false and out->api is NULL. Call dnn_machine_free in any case. */
bool dnn_machine_of(int capability, DnnMachine *out, char why[AMPC_WHY_ROOM]);
void dnn_machine_free(DnnMachine *m);
