/* `ampc --explain`: what each node is, why, and what it costs; what that comes to, in words. */
#pragma once
#include "compiler/cost/predict.h"
#include "compiler/driver.h"

typedef struct ExplainCast { /* a cast in front of a node, or behind it */
  Value value;
  DType from, to;
  int64_t bytes; /* moved because of it; 0: done in a register, or as its reader loads */
} ExplainCast;
typedef VEC(ExplainCast) ExplainCasts;

typedef struct ExplainNode {
  Value value;
  Place place;         /* source NULL: no line of the user's asked for it */
  const char *path;    /* "h.0.attn.c_attn"; "opt"; "": no layer made it */
  const char *command; /* of the plan; NULL: it has none of its own */
  const char *reason;  /* the rule, region or pin that gave it its type */
  ExplainCasts before, after;
  int64_t cast_bytes; /* of a cast: as in ExplainCast */
  bool weight_cast;   /* a cast of a parameter that is made in each step */
  NodeCount count;
  DType flops_type;       /* of what is multiplied, added */
  double us;              /* its part of what the command takes, launches too */
  const Prediction *made; /* of what multiplies; else NULL */
} ExplainNode;

typedef struct ExplainSize { /* a size for which rows are not aligned */
  int64_t size, padded;      /* elements */
  DType type;
  Value value;  /* the first node */
  double saves; /* us a step, with the padded one */
} ExplainSize;

typedef struct ExplainSource { /* a value that is cast */
  Value value;
  uint32_t casts;
  int64_t bytes;
  double us;
} ExplainSource;

typedef struct ExplainBlock {
  uint16_t block;
  VEC(ExplainNode) nodes;     /* all but numbers, in the order of the graph */
  VEC(ExplainSize) sizes;     /* the dearest first; those that matter: Note [what matters] */
  VEC(ExplainSource) sources; /* likewise */
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
  blocks;              /* the step (the first train block, else the first) stands first; no
                          variants */
  const char *against; /* the precision that the step is compared with: "f32"; NULL: the job
                          does not compile in it */
  double parts[PART_COUNT], against_us; /* of the step in that precision */
  VEC(const char *) answer;             /* sentences */
} Explanation;

/* ---- explain.c ---- */
/* Of a job that has passed all passes, in a file. Warnings are given beside. False: some are
 * errors, by -Werror. */
bool explain_job(Compile *c, const Gpu *gpu, bool json, Text *out);
/* The job of c, a file, once more in another precision. NULL: it is none in that. */
Compile *explain_compile_against(const Compile *c, const char *precision);

/* ---- gather.c ---- */
/* The precision that a job's step is compared with: f32, or what f32 would gain by. */
const char *explain_against(const Compile *c, const Gpu *gpu);
/* Of a job that has passed all passes; texts lie in its arena. `other`: the same job in that
 * precision, which is read only now; or NULL. */
void explain_gather(Compile *c, const Gpu *gpu, Compile *other, Explanation *out);

/* ---- answer.c ---- */
/* What a reader would ask, as sentences. */
void explain_answer(Explanation *e);
const char *explain_name(const Compile *c, Value v); /* of a variable or parameter, or the op */

/* ---- warn.c ---- */
/* W409, W410, by diag_warning. */
void explain_warn(Explanation *e);

/* ---- text.c, json.c ---- */
/* Views and what stays as it is stored say nothing that their users do not. */
bool explain_is_shown(const Compile *c, const ExplainNode *n);
void explain_text(const Explanation *e, Text *out); /* as options.view says */
/* The nodes of a line of the job, for the prompt; 0: all. False: there are none. */
bool explain_line(const Explanation *e, uint32_t line, Text *out);
void explain_json(const Explanation *e, Text *out);
