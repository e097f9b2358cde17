/* The predicted time of a command, without its kernel text: Note [predicted] in predict.c. */
#pragma once
#include "count.h"
#include "load.h"

typedef enum CostPart {                /* what the time of a step is for */
                        PART_products, /* and convolutions */
                        PART_tiles,    /* attention, by a kernel or a library */
                        PART_casts,    /* commands that only cast */
                        PART_state,    /* gradient norms, updates, the scaler */
                        PART_kernels,
                        PART_launches, /* the time between kernels */
                        PART_COUNT
} CostPart;
extern const char *const cost_part_names[]; /* "products" */

typedef struct Prediction { /* of all launches of a command in a step */
  CommandCount count;       /* includes FLOPs of tiles */
  CostPart part;
  double us;           /* without launch_us */
  double launch_us;    /* the time between kernels */
  bool product;        /* a product, a convolution, or tiles: the rest is set */
  ProductLoad load;    /* of one launch */
  double busy;         /* fraction of the multiprocessors with a tile; 1: all */
  const char *against; /* why tensor cores do not compute it, or not at full rate; or NULL. On a
                          processor: why 16 bits are not faster than f32 */
  double aligned_us;   /* `us` if rows were aligned */
} Prediction;

/* For a group with a command, after all passes. `nodes`: as in command_count; or NULL. */
Prediction predict_command(Compile *c, const Gpu *gpu, uint32_t group, NodeCount *nodes);
/* Adds up the microseconds of all commands of a block, for each CostPart. */
void predict_block(Compile *c, const Gpu *gpu, uint16_t block, double parts[PART_COUNT]);
