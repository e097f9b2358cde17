/* NCCL with prototypes of our own, like cuda_api.h; nccl.def lists the functions. */
#pragma once
#include "cuda_api.h"

typedef int NcclResult, NcclType, NcclSum;
typedef struct ncclComm *NcclComm;
typedef struct NcclId {
  char bytes[128];
} NcclId;
typedef struct NcclConfig NcclConfig; /* of any version */
/* The configuration of NCCL 2.14, which was the first. Later versions read it, too: they take the
 * default for everything that it lacks. The last two numbers are what a user may set. */
typedef struct NcclFirstConfig {
  size_t size;
  unsigned magic, version;
  int blocking, padding; /* padding: NCCL 2.17 has a field here */
} NcclFirstConfig;

enum { NCCL_API_MAGIC_NUMBER = (int)0xcafebeef, NCCL_CONFIG_VERSION = 21400 };
enum { /* NcclResult, those that the code distinguishes */
       ncclSuccess = 0,
       ncclInvalidArgument = 4,
       ncclInvalidUsage = 5,
       ncclRemoteError = 6,
       ncclInProgress = 7
};
enum { ncclInt8 = 0, ncclFloat32 = 7 }; /* NcclType */
enum { ncclSum = 0 };                   /* NcclSum */

typedef struct NcclApi {
#define CUDA_API(result, name, parameters) result(*name) parameters;
#include "nccl.def"
} NcclApi;
