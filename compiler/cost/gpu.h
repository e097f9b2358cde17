/* THE table of GPUs as data, and how long a product of a vendor's library takes at least. */
#pragma once
#include "ampc_plan.h"
#include "compiler/base/arena.h"

typedef struct Gpu {
  const char *name, *model, *arch;
  int multiprocessors, mhz, threads, blocks, shared_kb, registers;
  int lanes_f32, lanes_int, lanes_xu, lanes_f64; /* results a cycle and multiprocessor */
  double dram_peak, dram;                        /* GB/s */
  double l2_mb, l2, l1_kb;
  double tensor16, tensor_tf32; /* TFLOP/s */
  int latency_shared, latency_l1, latency_l2, latency_dram;
  double node;           /* us */
  const struct Cpu *cpu; /* it is none but this machine's processor (cpu.h); NULL: a GPU */
} Gpu;

const Gpu *gpu_find(const char *name); /* NULL: not known */
const char *gpu_names(Arena *arena);   /* "h200, h100, ..." */

typedef enum Bound { BOUND_dram, BOUND_l2, BOUND_issue, BOUND_latency, BOUND_tensor } Bound;
extern const char *const bound_names[];

typedef struct Cost {
  Bound bound;
  double us;                                   /* predicted, without the node */
  double dram_us, l2_us, issue_us, latency_us; /* what each would take alone */
  double tensor_us;                            /* of a product: its arithmetic */
  double l2_bytes;                             /* between L1 and L2 */
  double in_flight;                            /* threads at a time */
  double roof_us; /* what the bytes of the operands, and of a product its arithmetic, take */
} Cost;
/* Sets what is slowest of what the resources take alone, and so `us`. */
void cost_choose(Cost *c);

typedef struct ProductLoad { /* of a library */
  double m, n, k, batch;
  double bytes;
  ampc_dtype type; /* of what is multiplied */
  bool tf32;       /* f32 by tensor cores */
  bool aligned;    /* rows begin at multiples of 16 bytes */
} ProductLoad;
Cost gpu_product_cost(const Gpu *g, const ProductLoad *p);
/* Tensor cores of this GPU take the type. */
bool gpu_has_tensor(const Gpu *g, const ProductLoad *p);
