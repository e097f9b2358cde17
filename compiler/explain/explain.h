/* `ampc --explain`: the type and the cost of each node, with reasons; and conclusions in words. */
#pragma once
#include "compiler/cost/predict.h"
#include "compiler/driver.h"
#include "compiler/facts/facts.h"

/* A cast before or after a node. */
typedef struct ExplainCast {
  Value value;
  DType from, to;
  int64_t bytes; /* bytes that the cast moves; 0: a register or the reader's load casts */
} ExplainCast;
typedef VEC(ExplainCast) ExplainCasts;

typedef struct ExplainNode {
  Value value;
  Place place; /* place.source NULL: no line of the user's text */
  /* layer: of the node, or its optimizer, unknown: neither; command: unknown if it has none;
   * predicted_us: the node's portion of the command's time, launch included */
  Facts facts;
  ExplainCasts before, after;
  int64_t cast_bytes; /* if the node is a cast: the bytes that it moves */
  bool weight_cast;   /* a cast of a parameter that runs in each step */
  NodeCount count;
  DType flops_type;       /* the type of its operands */
  ValueBound bound;       /* of a float */
  const Prediction *made; /* prediction of a product, convolution or attention; else NULL */
} ExplainNode;

/* A size whose rows are not aligned. */
typedef struct ExplainSize {
  int64_t size, padded; /* size: elements of a row; padded: the next aligned size */
  DType type;
  Value value;  /* the first node with this size */
  double saves; /* microseconds of a step that the padded size saves */
} ExplainSize;

/* A value that is cast. */
typedef struct ExplainSource {
  Value value;
  uint32_t casts;
  int64_t bytes;
  double us;
} ExplainSource;

typedef struct ExplainBlock {
  uint16_t block;
  VEC(ExplainNode) nodes;     /* all except literals, in graph order */
  VEC(ExplainSize) sizes;     /* most expensive first; filtered by Note [what matters] */
  VEC(ExplainSource) sources; /* most expensive first; filtered by Note [what matters] */
  uint32_t weight_casts, commands;
  int64_t cast_bytes, read, written, flops;
  int64_t flops_by_type[AMPC_DTYPE_COUNT];
  double us_by_type[AMPC_DTYPE_COUNT]; /* indexed by the type of the result */
  double parts[PART_COUNT], us, cast_us;
} ExplainBlock;

typedef struct Explanation {
  Compile *c;
  const Gpu *gpu;
  /* blocks[0] is the step: the first train block, else the first block. Variants are left out. */
  VEC(ExplainBlock) blocks;
  /* the precision to compare the step with: "f32"; NULL: the job does not compile in it */
  const char *against;
  double parts[PART_COUNT], against_us; /* the step's times in precision `against` */
  VEC(const char *) answer;             /* the conclusions as sentences */
} Explanation;

/* ---- explain.c ---- */
/* Explains a job in a file, after all passes. Also reports warnings. Returns false if -Werror makes
 * a warning an error. */
bool explain_job(Compile *c, const Gpu *gpu, bool json, Text *out);
/* Compiles the job of c, a file, in another precision. Returns NULL if it has errors in it. */
Compile *explain_compile_against(const Compile *c, const char *precision);

/* ---- gather.c ---- */
/* Returns the precision to compare with: f32; for an f32 job bf16, or f16 on a GPU without bf16. */
const char *explain_against(const Compile *c, const Gpu *gpu);
/* Fills `out` for a job after all passes. Texts are allocated in the job's arena. `other`: the job
 * in the precision to compare with, which is read only during the call; or NULL. */
void explain_gather(Compile *c, const Gpu *gpu, Compile *other, Explanation *out);

/* ---- answer.c ---- */
/* Adds the conclusions as sentences to e->answer. */
void explain_answer(Explanation *e);
/* Returns the name of the variable or parameter that holds v, else the op's name. */
const char *explain_name(const Compile *c, Value v);

/* ---- warn.c ---- */
/* Reports W409 and W410 with diag_warning. */
void explain_warn(Explanation *e);

/* ---- text.c, json.c ---- */
/* False for leaves and views, because their users show the same facts. */
bool explain_is_shown(const Compile *c, const ExplainNode *n);
void explain_text(const Explanation *e, Text *out); /* uses options.view */
/* Prints the nodes of a line of the job, for `amp repl`; line 0: all nodes. Returns false if the
 * line has no nodes. */
bool explain_line(const Explanation *e, uint32_t line, Text *out);
void explain_json(const Explanation *e, Text *out);
/* Returns a block without its nodes, as `--explain=json` prints it. */
json_t *explain_block_json(const Explanation *e, const ExplainBlock *b);
json_t *explain_answer_json(const Explanation *e);
