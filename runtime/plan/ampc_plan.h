/* The plan of a job: all that a compiled program is, as plain data.
 *
 * The one header that compiler and runtime share. The compiler fills an ampc_program; emit/ prints
 * it as C (static tables and one step function a block), the JIT hands it over in memory and the
 * runtime walks the command lists. Both ways make the same calls in the same order.
 *
 * Memory is a few flat spaces; every tensor is a byte offset into one of them. */
#ifndef AMPC_PLAN_H
#define AMPC_PLAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- what failed ---- */

/* Also the exit statuses of programs. */
typedef enum ampc_status {
  AMPC_OK = 0,
  AMPC_BAD_USAGE = 2,   /* options, names */
  AMPC_BAD_FILE = 3,    /* missing, unreadable, truncated, of another model, damaged */
  AMPC_NO_COMPILER = 4, /* cc, nvcc or NVRTC failed */
  AMPC_RUN_FAILED = 5,  /* device, memory, non-finite loss */
  AMPC_INTERRUPTED = 130
} ampc_status;

const char *ampc_last_error(void); /* per thread; never NULL */
ampc_status ampc_fail(ampc_status status, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* sets ampc_last_error, returns status */
ampc_status ampc_fail_log(ampc_status status, const char *log); /* the same with lines of a log */

/* ---- values and where they lie ---- */

typedef enum ampc_dtype {
  AMPC_F32, /* IEEE binary32; double under Note [real64] of the compiler's ir.h */
  AMPC_F16, /* IEEE binary16 */
  AMPC_BF16,
  AMPC_I32,
  AMPC_I64,
  AMPC_U8,
  AMPC_BOOL, /* one byte, 0 or 1 */
  AMPC_DTYPE_COUNT
} ampc_dtype;

enum { AMPC_MAX_RANK = 6 };

enum {
  AMPC_CPU_ALIGN = 64,     /* bytes, of places in WORK and INPUT: a cache line, any vector */
  AMPC_CUDA_ALIGN = 256,   /* bytes, likewise: whole memory transactions, cuBLASLt's fast kernels */
  AMPC_PARAM_ALIGN = 64,   /* elements, of a parameter in the flat spaces from MASTER to MOMENT2 */
  AMPC_BUFFER_ALIGN = 256, /* bytes, of a buffer */
};

typedef enum ampc_space {
  AMPC_NONE,  /* no memory: `offset` is a number; 0 for an operand that is absent: a null pointer */
  AMPC_STATE, /* ampc_state.h */
  AMPC_MASTER,  /* f32 weights, parameter after parameter, each aligned; padding is zero */
  AMPC_COPY16,  /* f16 working copies: element e of MASTER at e here */
  AMPC_COPYBF,  /* bf16 working copies, likewise */
  AMPC_GRAD,    /* f32 gradients, element for element as MASTER; zero when a step begins */
  AMPC_MOMENT1, /* optimizer state, likewise (momentum buffer; Adam's m) */
  AMPC_MOMENT2, /* Adam's v */
  AMPC_MOMENT3, /* the greatest v of amsgrad; the mean of gradients of a centered RMSprop */
  AMPC_EMA,     /* f32 averages of the weights, likewise: what eval and infer blocks read */
  AMPC_BUFFER,  /* f32 and integer state that is not trained (running statistics) */
  AMPC_KEPT,    /* where a step has several bodies: BUFFER as it was before the first of them */
  AMPC_INPUT,   /* the batch of the current step */
  AMPC_WORK,    /* everything else, placed by lifetime */
  AMPC_SPACE_COUNT
} ampc_space;

typedef struct ampc_ref {
  ampc_space space;
  int64_t offset; /* bytes */
} ampc_ref;

/* ---- commands ---- */

/* Where a command finds an operand. In iteration t of the AMPC_REPEAT around the command, the
 * innermost one, that is t * stride bytes further: a slice of a sequence, say. */
typedef struct ampc_operand {
  ampc_ref at;
  int64_t stride; /* bytes; 0: the same place in every iteration */
} ampc_operand;

typedef struct ampc_launch {
  uint32_t kernel;      /* index into ampc_program.kernels */
  uint32_t grid, block; /* CUDA geometry. On the CPU `grid` is the number of threads that share
                           the work (a block there has one thread) and `block` is 1. */
  uint32_t n_args;
  const ampc_operand *args; /* pointers, and the numbers in which launches of one kernel differ;
                               sizes are literals in its text */
  const struct ampc_attention *library; /* NULL, or what the kernel computes: a device whose library
                                           can do it, too, asks that instead */
} ampc_launch;

/* C = A B (+ C) (+ bias), row-major, `batch` times with the given strides (elements).
 * A is [m, k], stored [k, m] if trans_a; B is [k, n], stored [n, k] if trans_b; C is [m, n].
 * Products are summed in f32 and rounded once, after the bias, to c_type. */
typedef struct ampc_gemm {
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
  bool trans_a, trans_b;
  bool accumulate; /* beta = 1: C is read and added to; c_type is then f32 */
  bool tf32;       /* f32 operands are rounded to 10 mantissa bits first */
  bool has_bias;   /* one value a column, of bias_type */
  bool relu;       /* negative results become 0, after the bias; NaN stays */
  ampc_dtype a_type, b_type, c_type, bias_type;
  int64_t workspace; /* bytes; on the CPU room for f32 copies of 16-bit operands and result, on
                        CUDA what cuBLASLt may use */
  uint32_t line;     /* of the job's text, for messages; 0: none */
} ampc_gemm;

/* A convolution (cross-correlation) over 1 to 3 spatial dimensions, or one of its gradients. Images
 * lie channels last, x as [n, in.., c] and y as [n, out.., k], and so do weights: [k, kernel..,
 * c / groups]. Along each dimension, out = (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1.
 *   forward   y   = x * w (+ bias[k])
 *   data      x   = gradient of x from y's
 *   weight    w (+)= gradient of w from x and y's; f32 when accumulate
 * Products are summed in f32 and rounded once, after the bias, to the result's type. */
enum { AMPC_MAX_SPATIAL = 3 };
typedef enum ampc_conv_kind { AMPC_CONV_FORWARD, AMPC_CONV_DATA, AMPC_CONV_WEIGHT } ampc_conv_kind;
typedef struct ampc_conv {
  ampc_conv_kind kind;
  int64_t n, c, k, groups;
  uint32_t spatial; /* dimensions: the arrays have so many entries, the last for the width */
  int64_t in[AMPC_MAX_SPATIAL], kernel[AMPC_MAX_SPATIAL], out[AMPC_MAX_SPATIAL];
  int64_t stride[AMPC_MAX_SPATIAL], pad[AMPC_MAX_SPATIAL], dilation[AMPC_MAX_SPATIAL];
  bool accumulate, tf32, has_bias;
  ampc_dtype x_type, w_type, y_type, bias_type; /* whichever of them is the result counts too */
  int64_t workspace;                            /* bytes; on CUDA 0: the device has its own */
  uint32_t columns, grid, block;                /* CUDA: the kernel that turns images into columns
                                                   or does it all: conv_columns.h; grid 0: none */
  uint32_t line;                                /* of the job's text, for messages; 0: none */
} ampc_conv;

/* Attention, y = drop(softmax(scale q k^T)) v for each image and head, or the gradients of q, k and
 * v.
 * q is [n, l, heads, d], k [n, s, heads, d], v [n, s, heads, e] and y [n, l, heads, e], all of one
 * type; `sums`, [n, l, heads], f32: of each query the logarithm of the sum of its weights before
 * they are divided by it. Causal: query i sees the keys up to i. A query that sees no key has 0 as
 * its result. Dropout keeps weight i, row-major
 * of [n, heads, l, s], where the number i that `stream` draws is not below p (ampc_uniform of
 * templates/device.cuh), and divides what it keeps by 1 - p.
 *   forward    y and sums of q, k and v
 *   backward   dq, dk and dv of q, k, v, y, sums and dy
 * Products are summed in f32; weights and gradients of scores are rounded to `type` before they
 * are multiplied, results when they are written. */
typedef struct ampc_attention_operand {
  uint32_t argument; /* of the launch, from 1; 0: nobody wants it */
  int64_t first;     /* the element of that argument that is the operand's first one */
  int64_t stride[3]; /* elements, from an image, row, head to the next; the last axis is dense */
} ampc_attention_operand;
typedef struct ampc_attention_mask { /* bools: may a query see a key? */
  uint32_t argument;                 /* as above */
  int64_t first, stride[4];          /* along [n, heads, l, s]; 0: the same for all */
} ampc_attention_mask;
typedef struct ampc_attention {
  bool backward, causal;
  int64_t n, l, s, heads, d, e;
  ampc_attention_operand q, k, v, y, sums;
  ampc_attention_operand dy, dq, dk, dv; /* backward */
  ampc_attention_mask mask;
  double scale, p;        /* p 0: no dropout */
  uint32_t state, stream; /* arguments of the launch, as above: STATE, and a number */
  ampc_dtype type;
  uint32_t line; /* of the job's text, for messages; 0: none */
} ampc_attention;

typedef enum ampc_command_kind {
  AMPC_LAUNCH_KERNEL,
  AMPC_GEMM,
  AMPC_CONV,
  AMPC_COPY,
  AMPC_FILL,
  AMPC_REPEAT,    /* a list of commands, `count` times in a row; what it carries from one iteration
                     to the next lies where no stride moves it */
  AMPC_ALL_REDUCE /* the sum over all devices of the program's world, in place on each of them */
} ampc_command_kind;

typedef struct ampc_command {
  ampc_command_kind kind;
  const char *label; /* "fc1_gelu", "fc2_linear": as in the emitted text */
  uint32_t line;     /* of the job's text, for messages and profiles; 0: none */
  union {
    ampc_launch launch;
    struct {
      ampc_conv desc;
      ampc_operand x, w, bias, y, workspace;
    } conv;
    struct {
      ampc_gemm desc;
      ampc_operand a, b, bias, c, workspace;
    } gemm;
    struct {
      ampc_operand to, from;
      int64_t bytes;
    } copy;
    struct {
      ampc_operand to;
      uint8_t value;
      int64_t bytes;
    } fill;
    struct {
      int64_t count; /* at least 1 */
      const struct ampc_command *commands;
      uint32_t n_commands;
    } repeat;
    struct {
      ampc_operand at;
      ampc_dtype type;
      int64_t count; /* elements */
    } all_reduce;
  } as;
} ampc_command;

/* ---- what a job consists of ---- */

typedef enum ampc_init_kind {
  AMPC_INIT_CONSTANT,
  AMPC_INIT_UNIFORM,
  AMPC_INIT_NORMAL,
  AMPC_INIT_TRUNC_NORMAL,
  AMPC_INIT_EYE,
  AMPC_INIT_DIRAC,
  AMPC_INIT_ORTHOGONAL,
  AMPC_INIT_PADDED /* normal, and 0 in one row of [rows, columns] */
} ampc_init_kind;
typedef struct ampc_init {
  ampc_init_kind kind;
  double a, b;      /* the constant; low and high; mean and std; groups; gain; of PADDED
                       the row */
  double low, high; /* of TRUNC_NORMAL */
} ampc_init;

typedef struct ampc_param {
  const char *path; /* PyTorch state_dict path: "fc1.weight" */
  bool buffer;      /* lies in BUFFER, not in MASTER; no gradient */
  int optimizer;    /* index of the first that updates it, or -1: frozen or in no optimizer */
  ampc_dtype dtype; /* f32 except for buffers */
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t elements;
  int64_t offset; /* in elements of MASTER (and GRAD, MOMENT*, COPY*); in bytes of BUFFER */
  ampc_init init;
  bool copy16, copybf; /* steps read it as f16, as bf16: a 16-bit copy of it */
  bool channels_last;  /* a convolution's weight: `dim` is [k, c, kernel..], which is how files and
                          people see it, but in every space it lies as [k, kernel.., c]. Read and
                          written by ampc_read_param and ampc_write_param */
} ampc_param;

typedef struct ampc_alias { /* a further name of a tied parameter */
  const char *path;
  uint32_t param; /* index into ampc_program.params */
} ampc_alias;

/* A `load` clause of a model: start values from a safetensors file, or from the shards that an
 * index file names. pattern.h explains patterns; those of `transpose` and `missing` are of the
 * model's names, those of `rename` and `unused` of the file's, once `strip` is taken off. */
typedef struct ampc_load {
  const char *path;           /* as in the job; relative to the data directory */
  const char *model, *prefix; /* "net"; "net." where paths begin with it: a job of several models */
  const char *strip;          /* what names of the file may begin with; "" */
  const char *const *patterns; /* pairs of rename, then transpose, missing, unused */
  uint32_t n_rename, n_transpose, n_missing, n_unused;
  uint32_t line; /* of the clause in the job */
} ampc_load;

typedef struct ampc_optimizer_desc {
  const char *name, *kind; /* "opt", "AdamW" */
  int64_t first, count;    /* its range of GRAD and MOMENT*, in elements: parameters are ordered by
                              optimizer; but for shares, it is that of MASTER */
  bool uses_moment1, uses_moment2, uses_moment3, uses_ema;
  uint32_t updates; /* at most so many in a step; 0 and 1: one */
} ampc_optimizer_desc;

/* Which numbers a setting takes, as f32; number.h tells and checks.
 *   FRACTION   0 or more and below 1: beta of a moving average
 *   SHRINKING  above 0 and below 1
 *   SCALE      a loss scale: its inverse is a number, too
 *   UNIT       from 0 to 1, both of them: a probability, a share
 *   BOUND      of a range that may be open: infinity, too */
#define AMPC_DOMAINS(ROW)                                                                          \
  ROW(FINITE)                                                                                      \
  ROW(NOT_NEGATIVE)                                                                                \
  ROW(POSITIVE)                                                                                    \
  ROW(ABOVE_ONE)                                                                                   \
  ROW(FRACTION)                                                                                    \
  ROW(SHRINKING)                                                                                   \
  ROW(SCALE)                                                                                       \
  ROW(UNIT)                                                                                        \
  ROW(BOUND)

typedef enum ampc_domain {
#define AMPC_DOMAIN(DOMAIN) AMPC_##DOMAIN,
  AMPC_DOMAINS(AMPC_DOMAIN)
#undef AMPC_DOMAIN
      AMPC_DOMAIN_COUNT
} ampc_domain;

typedef struct ampc_setting { /* a number that kernels read from STATE: "opt.lr", "opt.lr.peak" */
  const char *name;
  double value;
  ampc_domain domain;
  uint64_t steps_of; /* not 0: how many steps these blocks take in all (bit i: block i), which
                        `value` is by the job, and the run sets before its first step */
  int64_t every;     /* above 1: of these steps it counts each so-manieth, as updates in `every` */
} ampc_setting;

typedef struct ampc_plateau { /* a setting that a run lowers when a metric gets no better */
  uint32_t setting, metric;   /* a metric of an eval block */
  bool highest, absolute; /* better is higher; by `threshold` itself, not by a part of the best */
  int64_t patience, cooldown; /* evaluations */
  double factor, threshold;
  double least, eps; /* where it stays; no less than this is worth a change */
} ampc_plateau;

/* The formats of data, a row each: the kind of source, and the name that its `def` has in
 * compiler/layers/sources.amp and its table ampc_format_NAME in runtime/data/formats/NAME.c. */
#define AMPC_FORMATS(ROW)                                                                          \
  ROW(IDX, idx)                                                                                    \
  ROW(SYNTHETIC, synthetic)                                                                        \
  ROW(NPY, npy)                                                                                    \
  ROW(NPZ, npz)                                                                                    \
  ROW(SAFETENSORS, safetensors)                                                                    \
  ROW(CSV, csv)                                                                                    \
  ROW(RAW, raw)                                                                                    \
  ROW(TOKENS, tokens)                                                                              \
  ROW(CIFAR10, cifar10)                                                                            \
  ROW(IMAGES, images)

/* ARGUMENT: an input of an infer block, written by the caller (ampc_write to INPUT) */
typedef enum ampc_source_kind {
#define AMPC_FORMAT_KIND(KIND, name) AMPC_SOURCE_##KIND,
  AMPC_FORMATS(AMPC_FORMAT_KIND)
#undef AMPC_FORMAT_KIND
      AMPC_SOURCE_ARGUMENT
} ampc_source_kind;
typedef struct ampc_source {
  ampc_source_kind kind;
  const char *path;            /* as in the job; relative to the data directory */
  const char *args;            /* what its format alone understands, lines "name=value"; or NULL */
  ampc_dtype dtype;            /* of its elements in INPUT: what the format makes of the file's */
  uint32_t rank;               /* of one sample */
  int64_t dim[AMPC_MAX_RANK];  /* of one sample */
  int64_t samples;             /* in the whole file; 0: not known at compile time */
  double part_begin, part_end; /* fraction of the samples used: 0 and 1; see ampc_part */
  int64_t limit;               /* integer values must lie in [0, limit); 0: anything goes */
  int64_t ignored;             /* or be this one; 0: none but those */
  const char *limit_why;       /* "classes of cross_entropy, mlp.amp:14"; NULL with limit 0 */
  int64_t offset;              /* bytes, of the batch [batch, dim...] in INPUT */
  double low, high;            /* synthetic: bounds, or both 0: standard normal */
  uint64_t stream;             /* of the random numbers of a format that draws some */
} ampc_source;

typedef struct ampc_runtime ampc_runtime;

typedef struct ampc_dim_size { /* a dim of an infer block, and the size that it is compiled for */
  const char *name;
  int64_t size;
} ampc_dim_size;

enum {
  AMPC_MAX_SIZES = 8,    /* dims of an infer block */
  AMPC_MAX_PERIODS = 7,  /* different numbers of `every` in a block */
  AMPC_MAX_VARIANTS = 16 /* of a block */
};

typedef struct ampc_step { /* a block compiled for one batch size and one choice of `every` */
  int64_t batch;
  uint32_t fires;               /* bit i: it has what stands in `every period[i]` of its block */
  const ampc_command *commands; /* NULL in emitted programs */
  uint32_t n_commands;
  void (*run)(ampc_runtime *rt); /* emitted programs; NULL in the JIT */
} ampc_step;

typedef struct ampc_output_desc { /* a result of an infer block; valid after its step has run */
  const char *name;
  uint32_t block;
  ampc_dtype dtype;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  ampc_ref place;
} ampc_output_desc;

/* What a metric is made of its statistics, which are sums over all samples; runtime/metric.c has
 * the formulas. Of counts there are three a class, `right`, `predicted` and `true`, class after
 * class of each, or those of a matrix [true, predicted]; and behind them how many labels were no
 * class. */
#define AMPC_METRICS(ROW)                                                                          \
  ROW(MEAN, mean)             /* of a number, by samples; it has no statistics */                  \
  ROW(PERPLEXITY, perplexity) /* sum of the losses, their number */                                \
  ROW(PEARSON, pearson)       /* number of elements; sums of x, y, x^2, y^2, x y */                \
  ROW(AUC, auc)               /* from here on counts; of both classes in bins of scores */         \
  ROW(F1_MACRO, f1_macro)                                                                          \
  ROW(F1_MICRO, f1_micro)                                                                          \
  ROW(F1_WEIGHTED, f1_weighted)                                                                    \
  ROW(F1_BINARY, f1_binary)                                                                        \
  ROW(IOU_MACRO, iou_macro)                                                                        \
  ROW(IOU_MICRO, iou_micro)                                                                        \
  ROW(IOU_WEIGHTED, iou_weighted)                                                                  \
  ROW(IOU_BINARY, iou_binary)                                                                      \
  ROW(MATTHEWS, matthews)                                                                          \
  ROW(CONFUSION, confusion) /* a matrix, and no single number */

typedef enum ampc_metric_kind {
#define AMPC_METRIC_KIND(KIND, name) AMPC_METRIC_##KIND,
  AMPC_METRICS(AMPC_METRIC_KIND)
#undef AMPC_METRIC_KIND
      AMPC_METRIC_KIND_COUNT
} ampc_metric_kind;

typedef struct ampc_metric_desc {
  const char *name;
  bool is_loss; /* the value that `minimize` minimizes */
  ampc_metric_kind kind;
  uint32_t statistics; /* how many; 0: none, a mean */
} ampc_metric_desc;

typedef enum ampc_block_kind { AMPC_TRAIN, AMPC_EVAL, AMPC_INFER } ampc_block_kind;
typedef struct ampc_block {
  ampc_block_kind kind;
  const char *name;                 /* "train", "eval"; numbered when there are several: "eval2" */
  uint32_t line;                    /* of the block in the job */
  int64_t batch, epochs, max_steps; /* max_steps 0: whole epochs */
  int64_t accumulate;               /* bodies of a step, 1 or more; the last one of an epoch may
                                       have fewer */
  int64_t every, log, save_every;   /* 0: not given */
  int64_t early_stop;               /* evaluations in a row without a better one after which a train
                                       block ends; 0: never */
  bool shuffle, drop_last;
  const char *save;   /* path or NULL */
  const char *resume; /* likewise; blocks that have one have the same */
  const char *call;   /* of an infer block: its name in the job; with sizes, `name` may have more.
                         Emitted where it has sizes */
  uint32_t n_sizes;
  ampc_dim_size size[AMPC_MAX_SIZES]; /* in the order in which the arguments name them. A block of
                                     the job is here once for each choice: ampc_infer_block */
  uint32_t first_source, n_sources;   /* in ampc_program.sources */
  uint32_t first_metric, n_metrics;   /* in ampc_program.metrics: their places: ampc_metric_slots */
  uint32_t n_periods;
  int64_t period[AMPC_MAX_PERIODS]; /* rising: step s of the run, from 1, fires those that divide
                                       s. Each choice that comes is a variant: ampc_variant_at */
  uint32_t n_variants;              /* variant[0] is the whole batch with all that fires; behind
                                       those of the whole batch stand those of the last, smaller one
                                       of an epoch, in the same order */
  ampc_step variant[AMPC_MAX_VARIANTS];
} ampc_block;

/* An index that the step computes: its values must lie in [0, rows). The device looks
 * (ampc_outside), where nothing said so when the job was compiled and no data could be looked at.
 */
typedef struct ampc_check {
  const char *why; /* "rows of embedding, gpt2.amp:50" */
  int64_t rows;
  uint32_t rank; /* of the index */
  int64_t dim[AMPC_MAX_RANK];
} ampc_check;

typedef struct ampc_scaler_desc { /* start values of ampc_state; `on` false: scale 1, no checks */
  bool on, dynamic;
  bool per_optimizer; /* each has a scale of its own */
  bool replay;        /* a step that overflows is run again at the lower scale: ampc_run_group */
  double init, growth, backoff, min, max;
  int64_t interval, hysteresis; /* steps; overflows */
} ampc_scaler_desc;

/* A kernel. CPU: `function` is a thunk of type ampc_cpu_kernel. CUDA: the __global__ function. */
typedef void ampc_cpu_kernel(void *const *args, unsigned block, unsigned n_blocks);
typedef struct ampc_kernel {
  const char *name;
  uint32_t n_args;
  void (*function)(void);
} ampc_kernel;

/* JIT on CUDA: a cubin or PTX with some of the program's kernels, in their order. */
typedef struct ampc_image {
  const void *bytes;
  uint32_t first, count; /* kernels */
} ampc_image;

/* Emitted CUDA programs: the driver's handle of a __global__ function; 0 on success. */
typedef int ampc_find_kernel(void **out, const void *function);

typedef struct ampc_program {
  const char *name;      /* of the job: "mlp" */
  const char *source;    /* path as given on the command line's last part: "mlp.amp" */
  const char *target;    /* "cpu", "sm_80" */
  const char *precision; /* "f16" */
  const char *config;    /* JSON: model hash, consts, settings; kept in checkpoints */
  uint64_t model_hash;   /* of parameter paths, shapes and optimizers: must match to resume */
  uint64_t seed;         /* manual_seed, or 0 */
  bool real64;           /* tests: elements of AMPC_F32 are doubles, but for those of STATE */
  ampc_scaler_desc scaler;
  int64_t space_bytes[AMPC_SPACE_COUNT];
  const ampc_param *params;
  const ampc_param *shares; /* a parameter again, for each further optimizer that updates it: that
                               one's gradients and moments, to which `offset` counts elements */
  const ampc_load *loads;
  const ampc_alias *aliases;
  const ampc_optimizer_desc *optimizers;
  const ampc_setting *settings;
  const ampc_plateau *plateaus;
  const ampc_source *sources;
  const ampc_metric_desc *metrics;
  const ampc_output_desc *outputs;
  const ampc_check *checks;
  const ampc_block *blocks;
  const ampc_kernel *kernels; /* JIT: filled in after the kernels are compiled and loaded */
  uint32_t n_params, n_shares, n_loads, n_aliases, n_optimizers, n_settings, n_plateaus, n_sources,
      n_metrics, n_outputs, n_checks;
  uint32_t n_blocks, n_kernels;
  const ampc_image *images; /* CUDA: images, or find_kernel; on the CPU neither */
  uint32_t n_images;
  ampc_find_kernel *find_kernel;
  uint32_t world; /* devices that run this program together; 0 and 1: one alone */
} ampc_program;

/* The optimizer that keeps averages of the parameter, which lie at its `offset`; NULL: none does.
 */
const ampc_optimizer_desc *ampc_average_of(const ampc_program *p, const ampc_param *q);

/* Offsets within STATE, in bytes; `i` one past the last gives where the next kind begins. They take
 * counts because the compiler asks before it has a program. */
int64_t ampc_state_optimizer(uint32_t i);
int64_t ampc_state_metric(uint32_t n_optimizers, uint32_t i);
int64_t ampc_state_setting(uint32_t n_optimizers, uint32_t n_metrics, uint32_t i);

/* A metric with statistics has an ampc_metric for each of them, one behind the other: how many the
 * first n of the table have in all. The counts of metrics above are of these. */
uint32_t ampc_metric_slots(const ampc_metric_desc *metrics, uint32_t n);

/* The next multiple, or n itself. */
int64_t ampc_round_up(int64_t n, int64_t multiple);

/* Samples of `part=[begin, end]` of n: from *out_first on, *out_count. Ranges that meet at a
 * fraction neither overlap nor leave a gap. */
void ampc_part(int64_t n, double begin, double end, int64_t *out_first, int64_t *out_count);

/* 80 for "sm_80"; 0: not a GPU's. */
int ampc_target_capability(const char *target);

/* Bytes that a product needs in ampc_gemm.workspace on the CPU; 0 for plain f32. */
int64_t ampc_gemm_workspace_cpu(const ampc_gemm *g, bool real64);
int64_t ampc_conv_workspace_cpu(const ampc_conv *d, bool real64);
/* On CUDA, where `capability` is 90 for sm_90; that of a convolution lies beside WORK, and is the
 * most that it may need, by cuDNN or by our own kernels. */
int64_t ampc_gemm_workspace_cuda(int capability);
int64_t ampc_conv_workspace_cuda(const ampc_conv *d, bool real64, int capability);

int64_t ampc_element_size(const ampc_program *p, ampc_dtype t); /* bytes; f32 is 8 with real64 */
int64_t ampc_dtype_size(ampc_dtype t);                          /* bytes */
const char *ampc_dtype_name(ampc_dtype t);                      /* "f32", ... */

#ifdef __cplusplus
}
#endif
#endif
