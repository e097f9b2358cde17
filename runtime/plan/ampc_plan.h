/* The plan of a job: a compiled program as plain data.
 *
 * Compiler and runtime share this header and the headers that it includes. The compiler fills an
 * ampc_program. program/ prints it as C (static tables and one step function per block). The
 * JIT passes it in memory, and the runtime executes the command lists. Both ways make the same
 * calls in the same order.
 *
 * Memory is a few flat spaces; every tensor is a byte offset into one of them. */
#ifndef AMPC_PLAN_H
#define AMPC_PLAN_H
#include "ampc_commands.h"
#include "ampc_declared.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct ampc_runtime ampc_runtime;

typedef struct ampc_dim_size { /* a dim of an infer block, and its compiled size */
  const char *name;
  int64_t size;
} ampc_dim_size;

enum {
  AMPC_MAX_SIZES = 8,    /* dims of an infer block */
  AMPC_MAX_PERIODS = 7,  /* different periods of `every` in a block */
  AMPC_MAX_VARIANTS = 16 /* variants of a block */
};

typedef struct ampc_step { /* a block compiled for one batch size and one set of `every` */
  int64_t batch;           /* samples of all members together */
  int64_t share;           /* samples of one member; 0: it has them all */
  bool idle;               /* a member that has none of the samples; `share` is 1 */
  uint32_t fires; /* bit i: the step runs the statements of `every period[i]` of its block */
  const ampc_command *commands; /* NULL in emitted programs */
  uint32_t n_commands;
  void (*run)(ampc_runtime *rt); /* set in emitted programs; NULL in the JIT */
  uint32_t n_parts;              /* of `run`, which runs part ampc_step_part(rt): Note [members] in
                                    ranks/exchange.h. 0 counts as 1 */
} ampc_step;

typedef struct ampc_output_desc { /* a result of an infer block; valid after its step has run */
  const char *name;
  uint32_t block;
  ampc_dtype dtype;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t classes; /* all numbers are proven to be in [0, classes), as those of argmax; or 0 */
  ampc_ref place;
} ampc_output_desc;

/* Which values of a metric are better: MIN, lower ones; MAX, higher ones; NONE: not known. */
typedef enum ampc_mode { AMPC_MODE_NONE, AMPC_MODE_MIN, AMPC_MODE_MAX } ampc_mode;

typedef struct ampc_metric_desc ampc_metric_desc; /* ampc_metrics.h */

typedef enum ampc_block_kind { AMPC_TRAIN, AMPC_EVAL, AMPC_INFER } ampc_block_kind;
typedef struct ampc_block {
  ampc_block_kind kind;
  const char *name;                 /* "train", "eval"; numbered when there are several: "eval2" */
  uint32_t line;                    /* line of the block in the job */
  int64_t batch, epochs, max_steps; /* max_steps: 0: whole epochs */
  int64_t accumulate; /* bodies in a step, 1 or more; the last step of an epoch may have fewer */
  int64_t every, log, save_every; /* 0: not given */
  int64_t early_stop; /* a train block ends after this many evaluations in a row without a better
                         one; 0: never */
  bool shuffle, drop_last;
  uint32_t balance; /* 1 + the source of the block by whose labels an epoch has all classes equally
                       often: order_balance(); 0: none */
  const char *save; /* path, or NULL */
  const char *resume; /* path, or NULL; the same for all blocks that have one */
  const char *call;   /* infer blocks: the name in the job. `name` may also contain sizes. Emitted
                         programs set `call` only if the block has sizes */
  uint32_t n_sizes;
  ampc_dim_size size[AMPC_MAX_SIZES]; /* in the order in which the arguments name the dims. An infer
                                         block is compiled once for each choice of sizes; each
                                         compiled one is an ampc_block. ampc_infer_block finds it */
  int64_t context; /* a block that continues a text, Note [decode]: most positions of the text; else
                      0 */
  bool carries;    /* the same: its state is not only rows by position, so a chunk must be full */
  uint32_t first_source, n_sources; /* in ampc_program.sources */
  uint32_t first_metric, n_metrics; /* in ampc_program.metrics; in STATE: ampc_metric_slots */
  uint32_t n_periods;
  /* periods of `every` statements, increasing. Step s of the run, counted from 1, runs a statement
   * if its period divides s. Each set of periods that occurs has a variant: ampc_variant_at */
  int64_t period[AMPC_MAX_PERIODS];
  uint32_t n_variants; /* variant[0] has the full batch and all `every` statements. First come all
                          variants for the full batch, then, in the same order, the variants for the
                          smaller last batch of an epoch */
  ampc_step variant[AMPC_MAX_VARIANTS];
} ampc_block;

/* An index tensor that the step computes. Its values must be in [0, rows). The device checks them
 * (ampc_outside) if neither the compiler nor the loader can. */
#define AMPC_LABELS_OF "classes of " /* the name of a check of labels begins with it */
typedef struct ampc_check {
  const char *why; /* "rows of embedding, gpt2.amp:50" */
  int64_t rows;
  uint32_t rank; /* rank of the index tensor */
  int64_t dim[AMPC_MAX_RANK];
} ampc_check;

typedef struct ampc_scaler_desc { /* initial values of ampc_state. `on` false: scale 1, no checks */
  bool on, dynamic;
  bool per_optimizer; /* each optimizer has its own scale */
  bool replay;        /* a step that overflows runs again at a lower scale: ampc_run_group */
  double init, growth, backoff, min, max;
  int64_t interval, hysteresis; /* interval: number of steps; hysteresis: number of overflows */
} ampc_scaler_desc;

/* A kernel. CPU: `function` is a thunk of type ampc_cpu_kernel. CUDA: the __global__ function. */
typedef void ampc_cpu_kernel(void *const *args, unsigned block, unsigned n_blocks);
typedef struct ampc_kernel {
  const char *name;
  uint32_t n_args;
  void (*function)(void);
} ampc_kernel;

/* JIT on CUDA: a cubin or PTX with consecutive kernels of the program. */
typedef struct ampc_image {
  const void *bytes;
  uint32_t first, count; /* the image has kernels `first` to `first + count - 1` */
} ampc_image;

/* In an emitted CUDA program, finds the driver's handle of a __global__ function; 0 on success. */
typedef int ampc_find_kernel(void **out, const void *function);

typedef struct ampc_program {
  const char *name;      /* the job's name: "mlp" */
  const char *source;    /* the file name of the path on the command line: "mlp.amp" */
  const char *target;    /* "cpu", "sm_80" */
  const char *precision; /* "f16" */
  const char *config;    /* JSON: model hash, consts, settings; kept in checkpoints */
  const char *classes;   /* names of the classes that the losses distinguish, a line each; NULL: no
                            names. Kept in checkpoints */
  const char *columns;   /* for each column of names that sources read: a line "column=NAME", then a
                            line "class=NAME" for each class, by number; or NULL. Kept, too */
  const char *adapter;   /* JSON: adapter_config.json of PEFT, for the model's LoRA; NULL: it has
                            none. Kept, too */
  uint64_t model_hash;   /* hash of parameter paths, shapes and optimizers; must match to resume */
  uint64_t seed;         /* manual_seed, or 0 */
  bool real64;           /* tests: elements of AMPC_F32 are doubles, except in STATE */
  bool own_products;     /* CPU: loops of ampc compute products and convolutions, not oneDNN */
  ampc_scaler_desc scaler;
  /* types in the spaces: weights of MASTER, moments of MOMENT*. AMPC_F32 or AMPC_BF16, moments also
   * AMPC_U8. The host reads and writes them as f32: ampc_read_param */
  ampc_dtype weights, moments;
  int64_t space_bytes[AMPC_SPACE_COUNT];
  const ampc_param *params;
  /* for each further optimizer of a parameter, the parameter again. `offset` is the place of its
   * gradients and moments for that optimizer, in elements */
  const ampc_param *shares;
  const ampc_load *loads;
  const ampc_alias *aliases;
  const ampc_optimizer_desc *optimizers;
  const ampc_slice *slices; /* of several members */
  const ampc_setting *settings;
  const ampc_plateau *plateaus;
  const ampc_source *sources;
  const ampc_metric_desc *metrics;
  const ampc_output_desc *outputs;
  const ampc_check *checks;
  const ampc_block *blocks;
  const ampc_kernel *kernels; /* JIT: set after the kernels are compiled and loaded */
  uint32_t n_params, n_shares, n_loads, n_aliases, n_optimizers, n_slices, n_settings, n_plateaus,
      n_sources, n_metrics, n_outputs, n_checks;
  uint32_t n_blocks, n_kernels;
  const ampc_image *images; /* CUDA: images or find_kernel; CPU: neither */
  uint32_t n_images;
  ampc_find_kernel *find_kernel;
  const char *processor;          /* emitted for the CPU: AMPC_PROCESSOR in that file; else NULL */
  const int *links;               /* emitted for the CPU with oneDNN: to ampc_onednn; else NULL */
  const struct ampc_texts *texts; /* emitted, with sources of text: to ampc_texts; else NULL */
  uint32_t ranks;                 /* processes for which ampc_process_bytes counts; 0 counts as 1 */
  uint32_t members; /* shares of a batch that train together, in one process or several; 0 counts
                       as 1 */
} ampc_program;

/* Returns the optimizer that keeps averages of the parameter, at its `offset`; NULL: none does. */
const ampc_optimizer_desc *ampc_average_of(const ampc_program *p, const ampc_param *q);

/* Return offsets in STATE, in bytes. If `i` is one past the last element, the result is where the
 * next array begins. The functions take counts because the compiler calls them before it has a
 * program. */
int64_t ampc_state_optimizer(uint32_t i);
int64_t ampc_state_metric(uint32_t n_optimizers, uint32_t i);
int64_t ampc_state_setting(uint32_t n_optimizers, uint32_t n_metrics, uint32_t i);

/* Returns how many structs ampc_metric the first n metrics of the table have in STATE. A metric has
 * one, or one for each of its statistics. `n_metrics` and `i` above count these structs. */
uint32_t ampc_metric_slots(const ampc_metric_desc *metrics, uint32_t n);
/* Which values of a metric are better: as its `mode` says, else by its kind. */
ampc_mode ampc_mode_of(const ampc_metric_desc *metric);

/* Selects the samples of `part=[begin, end]` from a source of n samples: *out_count samples from
 * *out_first on. Two ranges that share a bound neither overlap nor leave a gap. */
void ampc_part(int64_t n, double begin, double end, int64_t *out_first, int64_t *out_count);

/* Whether the members in one process share the space: weights, their copies and averages. */
bool ampc_space_is_shared(ampc_space s);
/* Returns the number of members that each process runs if p->ranks processes share them out. */
int64_t ampc_process_members(const ampc_program *p);
/* Returns the bytes of a space in one process. */
int64_t ampc_process_bytes(const ampc_program *p, ampc_space s);
/* Returns the bytes from one share to the next in a batch that the loader returns: those of the
 * sources of a block, for the largest of `shares` equal shares. */
int64_t ampc_share_bytes(const ampc_program *p, uint32_t block, int64_t shares);

/* Returns 80 for "sm_80"; 0 for a target that is not a GPU. */
int ampc_target_capability(const char *target);

int64_t ampc_element_size(const ampc_program *p, ampc_dtype t); /* bytes; f32 is 8 with real64 */

#ifdef __cplusplus
}
#endif
#endif
