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

#ifdef __cplusplus
}
#endif
#endif
