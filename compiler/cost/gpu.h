/* The table of GPUs in memory, and the predicted time of a vendor library's product. */
#pragma once
#include "ampc_plan.h"
#include "compiler/base/arena.h"

typedef struct Gpu {
  const char *name, *model, *arch;
  int multiprocessors, mhz, threads, blocks, shared_kb, registers;
  int lanes_f32, lanes_int, lanes_xu, lanes_f64; /* of a multiprocessor: results a cycle */
  double dram_peak, dram;                        /* GB/s */
  double l2_mb, l2, l1_kb;
  double tensor16, mma, tensor_tf32; /* TFLOP/s; mma: fraction of tensor16 for mma.sync */
  int latency_shared, latency_l1, latency_l2, latency_dram;
  double node;           /* us */
  const struct Cpu *cpu; /* set only for the processor of this machine (cpu.h); NULL: a GPU */
} Gpu;

const Gpu *gpu_find(const char *name); /* NULL: unknown name */
/* Returns the GPU whose name is in the device's name: "rtx4090" for "NVIDIA GeForce RTX 4090";
 * NULL: the table lacks it. A laptop's GPU of that name is another one. */
const Gpu *gpu_of_device(const char *device);
const char *gpu_names(Arena *arena); /* "h200, h100, ..." */

typedef enum Bound { BOUND_dram, BOUND_l2, BOUND_issue, BOUND_latency, BOUND_tensor } Bound;
extern const char *const bound_names[];

typedef struct Cost {
  Bound bound;
  double us;                                   /* predicted time, without the launch */
  double dram_us, l2_us, issue_us, latency_us; /* time if only this resource limits */
  double tensor_us;                            /* time of a product's arithmetic */
  double l2_bytes;                             /* bytes moved between L1 and L2 */
  double in_flight;                            /* threads that run at a time */
  double roof_us; /* time of the operands' bytes or, if longer, of the arithmetic at peak rate */
} Cost;
/* Finds the slowest resource and sets `bound` and `us`. */
void cost_choose(Cost *c);

typedef enum LoadKind {
  LOAD_product,
  LOAD_convolution,
  LOAD_weight_gradient,
  LOAD_attention
} LoadKind;

/* A matrix product of a vendor library, or a convolution or attention as the equal product. */
typedef struct ProductLoad {
  double m, n, k, batch;
  double bytes;
  ampc_dtype type; /* type of the operands */
  bool tf32;       /* f32 operands run on tensor cores */
  bool aligned;    /* rows start at multiples of 16 bytes, and k is one where it is contiguous */
  LoadKind kind;
} ProductLoad;
/* Returns the TFLOP/s of tensor cores, if they compute the product, or of f32 lanes. `p` NULL: no
 * product. */
double gpu_peak(const Gpu *g, const ProductLoad *p);
Cost gpu_product_cost(const Gpu *g, const ProductLoad *p);
/* True if tensor cores of this GPU support the product's type. */
bool gpu_has_tensor(const Gpu *g, const ProductLoad *p);
