/* NVIDIA's driver, cuBLASLt, cuDNN and NCCL: loaded at first use, kept until the process ends.
 * common/toolkit.h decides which version of a library fits. */
#pragma once
#include "cudnn_api.h"
#include "nccl_api.h"
#include "common/toolkit.h"

/* Load a library and set *out to the process's only table of its functions. They return false with
 * the reason in `why`. Any thread may call them. */
bool cuda_load_driver(const CudaApi **out, char why[AMPC_WHY_ROOM]); /* also calls cuInit */
bool cuda_load_blas(const CudaApi **out, char why[AMPC_WHY_ROOM]);
bool cuda_load_dnn(const DnnApi **out, char why[AMPC_WHY_ROOM]);
bool cuda_load_nccl(const NcclApi **out, char why[AMPC_WHY_ROOM]);
