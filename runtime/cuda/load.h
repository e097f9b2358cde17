/* NVIDIA's driver, cuBLASLt and cuDNN, loaded when they are first asked for and kept until the
 * process ends. Which version of a library fits is runtime/plan/toolkit.h's to say. */
#pragma once
#include "cudnn_api.h"
#include "runtime/plan/toolkit.h"

/* Each gives the one table of the process with the functions of its library filled in; false with
 * the reason in `why`. Safe from any thread. */
bool cuda_load_driver(const CudaApi **out, char why[AMPC_WHY_ROOM]); /* and calls cuInit */
bool cuda_load_blas(const CudaApi **out, char why[AMPC_WHY_ROOM]);
bool cuda_load_dnn(const DnnApi **out, char why[AMPC_WHY_ROOM]);
