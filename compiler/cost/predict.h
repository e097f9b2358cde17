/* How long a command is expected to take, without its text: Note [predicted] in predict.c. */
#pragma once
#include "count.h"
#include "load.h"

typedef enum CostPart {                /* what the time of a step is spent on */
                        PART_products, /* and convolutions */
                        PART_tiles,    /* kernels that multiply, or a library instead of them */
                        PART_casts,    /* commands that do nothing else */
                        PART_state,    /* norms of gradients, updates, the scaler */
                        PART_kernels,
                        PART_launches, /* from one kernel to the next */
                        PART_COUNT
} CostPart;
extern const char *const cost_part_names[]; /* "products" */

typedef struct Prediction { /* of all times that a command runs in a step */
  CommandCount count;       /* flops of tiles, too */
  CostPart part;
  double us;           /* without the launches */
  double launch_us;    /* of these: from one kernel to the next */
  bool product;        /* a product, a convolution, or tiles: what follows is set */
  ProductLoad load;    /* of one launch */
  double busy;         /* the share of the multiprocessors that have a tile; 1: all */
  const char *against; /* why tensor cores do not compute it, or not at full rate; or NULL. On
                          a processor why 16 bits are not faster than f32 */
  double aligned_us;   /* as `us`, if rows were aligned */
} Prediction;

/* After all passes, of a group that is not silent. `nodes`: as of command_count; or NULL. */
Prediction predict_command(Compile *c, const Gpu *gpu, uint32_t group, NodeCount *nodes);
/* Microseconds by part of all commands of a block. */
void predict_block(Compile *c, const Gpu *gpu, uint16_t block, double parts[PART_COUNT]);
