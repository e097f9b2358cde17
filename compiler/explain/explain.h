/* `ampc --explain`: what each node is, why, and what it costs; and the conclusions in words. */
#pragma once
#include "compiler/cost/predict.h"
#include "compiler/driver.h"

typedef struct ExplainCast { /* a cast before or after a node */
  Value value;
  DType from, to;
  int64_t bytes; /* moved by the cast; 0: it happens in a register or when its reader loads */
} ExplainCast;
typedef VEC(ExplainCast) ExplainCasts;

typedef struct ExplainNode {
  Value value;
  Place place;         /* source NULL: no line of the user's text */
  const char *path;    /* "h.0.attn.c_attn"; "opt"; "": no layer */
  const char *command; /* in the plan; NULL: the node has no command */
  const char *reason;  /* the rule, region or pin that decided its type */
  ExplainCasts before, after;
  int64_t cast_bytes; /* if the node is a cast: as in ExplainCast */
  bool weight_cast;   /* a cast of a parameter that is repeated in each step */
  NodeCount count;
  DType flops_type;       /* of its operands */
  double us;              /* its share of the command's time, launch included */
  const Prediction *made; /* of a product, convolution or attention; else NULL */
} ExplainNode;

typedef struct ExplainSize { /* a size whose rows are not aligned */
  int64_t size, padded;      /* elements */
  DType type;
  Value value;  /* the first node with this size */
  double saves; /* us a step that the padded size saves */
} ExplainSize;

typedef struct ExplainSource { /* a value that is cast */
  Value value;
  uint32_t casts;
  int64_t bytes;
  double us;
} ExplainSource;

typedef struct ExplainBlock {
  uint16_t block;
  VEC(ExplainNode) nodes;     /* all except literals, in graph order */
  VEC(ExplainSize) sizes;     /* most expensive first; only those of Note [what matters] */
  VEC(ExplainSource) sources; /* the same order and limit */
  uint32_t weight_casts, commands;
  int64_t cast_bytes, read, written, flops;
  int64_t flops_by_type[AMPC_DTYPE_COUNT];
  double us_by_type[AMPC_DTYPE_COUNT]; /* by the type of the result */
  double parts[PART_COUNT], us, cast_us;
} ExplainBlock;

typedef struct Explanation {
  Compile *c;
  const Gpu *gpu;
  VEC(ExplainBlock)
  blocks;              /* first the step: the first train block, else the first block; then the
                          others, without variants */
  const char *against; /* the precision that the step is compared with: "f32"; NULL: the job
                          does not compile in it */
  double parts[PART_COUNT], against_us; /* of the step in that precision */
  VEC(const char *) answer;             /* sentences */
} Explanation;

/* ---- explain.c ---- */
/* For a job in a file, after all passes. Also reports warnings. Returns false if -Werror makes one
 * an error. */
bool explain_job(Compile *c, const Gpu *gpu, bool json, Text *out);
/* Compiles the job of c, a file, in another precision. NULL: it has errors in that precision. */
Compile *explain_compile_against(const Compile *c, const char *precision);

/* ---- gather.c ---- */
/* The precision to compare with: f32; for an f32 job bf16, or f16 on a GPU without bf16. */
const char *explain_against(const Compile *c, const Gpu *gpu);
/* For a job after all passes. Texts are allocated in its arena. `other`: the same job in that
 * precision, which is read only during the call; or NULL. */
void explain_gather(Compile *c, const Gpu *gpu, Compile *other, Explanation *out);

/* ---- answer.c ---- */
/* Answers the usual questions in sentences. */
void explain_answer(Explanation *e);
const char *explain_name(const Compile *c, Value v); /* the name of a variable or parameter, else of
                                                        the op */

/* ---- warn.c ---- */
/* Reports W409 and W410 with diag_warning. */
void explain_warn(Explanation *e);

/* ---- text.c, json.c ---- */
/* False for leaves and views: their users already say everything. */
bool explain_is_shown(const Compile *c, const ExplainNode *n);
void explain_text(const Explanation *e, Text *out); /* with options.view */
/* Prints the nodes of a line of the job, for the prompt; line 0: all nodes. False: none. */
bool explain_line(const Explanation *e, uint32_t line, Text *out);
void explain_json(const Explanation *e, Text *out);
