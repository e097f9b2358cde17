/* Named ranges for NVIDIA's tools, such as Nsight Systems (NVTX). */
#pragma once

typedef struct Nvtx {
  int (*push)(const char *name); /* begins a range of this thread */
  int (*pop)(void);              /* ends the innermost range */
} Nvtx;

/* Returns NULL if no tool watches this process. */
const Nvtx *nvtx_open(void);
