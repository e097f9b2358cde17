/* What a job declares: parameters, optimizers and their settings, sources of data. */
#ifndef AMPC_DECLARED_H
#define AMPC_DECLARED_H
#include "ampc_values.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum ampc_init_kind {
  AMPC_INIT_CONSTANT,
  AMPC_INIT_UNIFORM,
  AMPC_INIT_NORMAL,
  AMPC_INIT_TRUNC_NORMAL,
  AMPC_INIT_EYE,
  AMPC_INIT_DIRAC,
  AMPC_INIT_ORTHOGONAL,
  AMPC_INIT_PADDED, /* normal, but one row of [rows, columns] is 0 */
  AMPC_INIT_COPY,   /* the values of another parameter, also if a file has set those */
  /* Computed from the initial values of a weight; a is its distance in the list of parameters. LEFT
   * and RIGHT are estimates of the first singular vectors of the weight as a matrix [axis b, the
   * others], after 15 iterations. */
  AMPC_INIT_NORMS, /* the norm of each slice of axis b; b < 0: of the whole weight */
  AMPC_INIT_LEFT,
  AMPC_INIT_RIGHT
} ampc_init_kind;
typedef struct ampc_init {
  ampc_init_kind kind;
  double a, b; /* by kind: the constant; low, high; mean, std; groups; gain; of PADDED the row; of
                  COPY the index of the other parameter, which is lower */
  double low, high; /* bounds of TRUNC_NORMAL */
} ampc_init;

/* How a frozen matrix is quantized: Note [packed] in runtime/plan/types.h. */
typedef enum ampc_packing { AMPC_UNPACKED, AMPC_INT8, AMPC_NF4 } ampc_packing;

typedef struct ampc_param {
  const char *path; /* PyTorch state_dict path: "fc1.weight" */
  bool buffer;      /* in BUFFER, not in MASTER; no gradient */
  bool fixed;       /* with `buffer`: it is a frozen weight that is stored in 16 bits or fewer */
  ampc_packing packing; /* of a frozen matrix, whose `dtype` is f32: its codes are in BUFFER */
  bool adapts;          /* it belongs to an adapter (the clause `adapt`) */
  bool given;    /* frozen, of a model with adapters, and in a file of `load`: each run reads it
                    there, so checkpoints and files of weights lack it */
  int optimizer; /* index of its first optimizer; -1: frozen, in no optimizer, or no loss reaches it
                  */
  ampc_dtype dtype; /* f32 except for buffers */
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t elements;
  /* offset in elements of MASTER (and GRAD, MOMENT*, COPY*), or in bytes of BUFFER */
  int64_t offset;
  ampc_init init;
  bool copy16, copybf; /* copy16: steps read an f16 copy; copybf: a bf16 copy */
  bool channels_last;  /* a convolution's weight. `dim` is [k, c, kernel..], as in files, but spaces
                          store [k, kernel.., c]. ampc_read_param, ampc_write_param convert */
  uint32_t measured;   /* 0, or 1 + a source: the buffer holds means and deviations of its samples,
                          which a run computes before its first step (statistics.h) */
} ampc_param;

typedef struct ampc_alias { /* another name of a tied parameter */
  const char *path;
  uint32_t param; /* index into ampc_program.params */
} ampc_alias;

/* A `load` clause of a model: initial values from a safetensors file, or from the shards that an
 * index file names. pattern.h explains patterns. `transpose` and `missing` match names of the
 * model; `rename` and `unused` match names of the file without the prefix `strip`. */
typedef struct ampc_load {
  const char *path;           /* as in the job; relative to the data directory */
  const char *model, *prefix; /* model: "net"; prefix: "net." if the job has several models, so that
                                 paths begin with it; else "" */
  const char *strip;          /* a prefix that names of the file may have; or "" */
  const char *const *patterns; /* first the pairs of rename, then transpose, missing, unused */
  uint32_t n_rename, n_transpose, n_missing, n_unused;
  uint32_t line; /* line of the clause in the job; 0: no clause, a file for all of the program */
  bool adapter;  /* the file is of an adapter: it has what is trained, not the frozen weights */
} ampc_load;

typedef struct ampc_optimizer_desc {
  const char *name, *kind; /* name: "opt"; kind: "AdamW" */
  int64_t first, count;    /* range in GRAD and MOMENT*, in elements: parameters are ordered by
                              optimizer. MASTER has the same range, except for shares */
  bool uses_moment1, uses_moment2, uses_moment3, uses_ema;
  uint32_t updates;          /* most updates in one step; 0 counts as 1 */
  uint32_t unsigned_moments; /* bit i: MOMENT(i + 1) is never negative */
} ampc_optimizer_desc;

/* A range of MASTER of which each of several members updates a slice. All in elements. */
typedef struct ampc_slice {
  int64_t first, count;
  int64_t each;   /* elements of one slice; `count`: each member updates all of them */
  int64_t moment; /* where the member's slice begins in MOMENT* */
  bool apart;     /* no step reads MASTER there: each process has only the slices of its members */
} ampc_slice;

/* A domain says which f32 numbers a setting or argument may have. Each row: the domain, its name in
 * the language. number.h describes and checks the domains.
 *   FRACTION   0 or more and below 1: beta of a moving average
 *   SHRINKING  above 0 and below 1
 *   SCALE      a loss scale whose inverse is also a normal float
 *   UNIT       from 0 to 1, inclusive: a probability
 *   BOUND      a bound of a range that may be open: infinity is allowed */
#define AMPC_DOMAINS(ROW)                                                                          \
  ROW(FINITE, finite)                                                                              \
  ROW(NOT_NEGATIVE, not_negative)                                                                  \
  ROW(POSITIVE, positive)                                                                          \
  ROW(ONE_OR_MORE, one_or_more)                                                                    \
  ROW(ABOVE_ONE, above_one)                                                                        \
  ROW(FRACTION, fraction)                                                                          \
  ROW(SHRINKING, shrinking)                                                                        \
  ROW(SCALE, scale)                                                                                \
  ROW(UNIT, unit)                                                                                  \
  ROW(BOUND, bound)

typedef enum ampc_domain {
#define AMPC_DOMAIN(DOMAIN, name) AMPC_##DOMAIN,
  AMPC_DOMAINS(AMPC_DOMAIN)
#undef AMPC_DOMAIN
      AMPC_DOMAIN_COUNT
} ampc_domain;

typedef struct ampc_setting { /* a number that kernels read from STATE: "opt.lr", "opt.lr.peak" */
  const char *name;
  double value;
  ampc_domain domain;
  /* not 0: the value is the total number of steps of these blocks (bit i: block i). `value` has the
   * number by the job; the run sets it before its first step */
  uint64_t steps_of;
  int64_t every; /* above 1: the value counts only every `every`-th of these steps, as updates in
                    `every` do */
} ampc_setting;

typedef struct ampc_plateau { /* a setting that a run lowers when a metric stops improving */
  uint32_t setting, metric;   /* metric: a metric of an eval block */
  bool highest, absolute; /* highest: better is higher. absolute: better by `threshold` itself, not
                             by that fraction of the best */
  int64_t patience, cooldown; /* evaluations */
  double factor, threshold;
  double least, eps; /* least: the lower bound. eps: a smaller change is not made */
} ampc_plateau;

/* The formats of data: kind of source, and name of the format. compiler/layers/sources.amp has a
 * `def` of that name; runtime/data/formats/NAME.c has the table ampc_format_NAME. */
#define AMPC_FORMATS(ROW)                                                                          \
  ROW(IDX, idx)                                                                                    \
  ROW(SYNTHETIC, synthetic)                                                                        \
  ROW(GIVEN, given)                                                                                \
  ROW(NPY, npy)                                                                                    \
  ROW(NPZ, npz)                                                                                    \
  ROW(SAFETENSORS, safetensors)                                                                    \
  ROW(CSV, csv)                                                                                    \
  ROW(RAW, raw)                                                                                    \
  ROW(TOKENS, tokens)                                                                              \
  ROW(TEXT, text)                                                                                  \
  ROW(JSONL, jsonl)                                                                                \
  ROW(CIFAR10, cifar10)                                                                            \
  ROW(IMAGES, images)

/* GIVEN: samples that the calling program gives (ampc_loop_run); `path` is their name. ARGUMENT:
 * an input of an infer block, which the caller writes (ampc_write to INPUT) */
typedef enum ampc_source_kind {
#define AMPC_FORMAT_KIND(KIND, name) AMPC_SOURCE_##KIND,
  AMPC_FORMATS(AMPC_FORMAT_KIND)
#undef AMPC_FORMAT_KIND
      AMPC_SOURCE_ARGUMENT
} ampc_source_kind;
typedef struct ampc_source {
  ampc_source_kind kind;
  const char *path;            /* as in the job; relative to the data directory */
  const char *args;            /* arguments that only its format knows: lines "name=value"; or
                                  NULL */
  ampc_dtype dtype;            /* type of the elements in INPUT, after the format's conversion */
  uint32_t rank;               /* rank of one sample */
  int64_t dim[AMPC_MAX_RANK];  /* shape of one sample */
  int64_t samples;             /* samples in the whole file; 0: not known at compile time */
  double part_begin, part_end; /* fractions of the samples between which they are used (0, 1: all);
                                  see ampc_part */
  bool drawn;                  /* `part` selects from samples in an order that is drawn */
  bool stratify;               /* it has the labels; each part has the same share of each class;
                                  needs `drawn` */
  uint64_t part_seed;          /* seed of the order, with `drawn` */
  int64_t limit;               /* integer values must be in [0, limit); 0: no limit */
  int64_t ignored;             /* this value is allowed in addition; 0: no other value */
  const char *limit_why;       /* "classes of cross_entropy, mlp.amp:14"; NULL with limit 0 */
  int64_t offset;              /* offset in bytes of the batch [batch, dim...] in INPUT */
  double low, high;            /* synthetic: bounds, or both 0: standard normal */
  uint64_t stream;             /* stream of the random numbers, if the format draws any */
} ampc_source;

#ifdef __cplusplus
}
#endif
#endif
