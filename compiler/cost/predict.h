/* Predicts the time of a command without its kernel text: Note [predicted] in predict.c. */
#pragma once
#include "count.h"
#include "load.h"

/* The kinds of commands among which the time of a step is divided. */
typedef enum CostPart {
  PART_products, /* matrix products and convolutions */
  PART_tiles,    /* attention, by a kernel or a library */
  PART_casts,    /* commands that only cast */
  PART_state,    /* gradient norms, updates, the scaler */
  PART_kernels,
  PART_launches, /* the time between kernels */
  PART_COUNT
} CostPart;
extern const char *const cost_part_names[]; /* "products" */

/* The prediction for all launches of a command in a step. */
typedef struct Prediction {
  CommandCount count; /* also counts FLOPs of attention */
  CostPart part;
  double launch_us; /* the time between kernels */
  double launches;  /* kernels, of the library or ampc's own */
  double bytes;     /* of operands, each once, and of columns of a convolution */
  Cost cost;        /* without launch_us; on a CPU and by the quick model often only `us` */
  const char *own;  /* why no library computes it, or which one computes attention; or NULL */
  bool product;     /* a product, a convolution or attention: the fields below are set */
  ProductLoad load; /* the product of one launch */
  double busy;      /* fraction of the multiprocessors that have a tile */
  /* NULL, or why tensor cores do not run at full rate; on a CPU: why 16 bits are not faster */
  const char *against;
  double aligned_us; /* cost.us if rows were aligned */
} Prediction;

/* A model of ampc's own kernels on a GPU, in place of the quick one of predict.c. The functions get
 * the prediction of one launch and set its `cost`; also `bytes` and `launches`, if the kernel needs
 * more. They return false if they fail; the model has the reason in its `context`. */
typedef struct KernelModel {
  bool no_library; /* ampc's own kernels replace cuDNN's */
  void *context;
  bool (*kernel)(void *context, Prediction *p);
  bool (*conv)(void *context, const ampc_conv *d, Prediction *p);
} KernelModel;

/* Returns the kind of a command, which depends on no GPU. */
CostPart predict_part(Compile *c, uint32_t group);
/* Predicts a group with a command, after all passes. `nodes`: as in command_count(), or NULL. */
Prediction predict_command(Compile *c, const Gpu *gpu, uint32_t group, NodeCount *nodes);
/* The same with a model; NULL: the quick one. The caller sets p->count. False: the model failed. */
bool predict_with(Compile *c, const Gpu *gpu, uint32_t group, const KernelModel *model,
                  Prediction *p);
/* Adds up the microseconds of all commands of a block, for each CostPart. */
void predict_block(Compile *c, const Gpu *gpu, uint16_t block, double parts[PART_COUNT]);
