/* An ONNX graph under construction. All memory is in the arena. */
#pragma once
#include "compiler/graph/node.h"
#include "runner/onnx/file.h"

/* An attribute of a node, see the macros below; name NULL ends a list. */
typedef struct OnnxAttr {
  const char *name;
  Onnx__AttributeProto__AttributeType type;
  int64_t i;
  double f;
  const char *s;
  const int64_t *ints;
  uint32_t n;
  const OnnxGraph *g;
} OnnxAttr;
#define INT(NAME, v)                                                                               \
  {                                                                                                \
    .name = (NAME), .type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, .i = (v)                   \
  }
#define REAL(NAME, v)                                                                              \
  {                                                                                                \
    .name = (NAME), .type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, .f = (v)                 \
  }
#define WORD(NAME, v)                                                                              \
  {                                                                                                \
    .name = (NAME), .type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, .s = (v)                \
  }
#define INTS(NAME, v, N)                                                                           \
  {                                                                                                \
    .name = (NAME), .type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, .ints = (v), .n = (N)     \
  }
#define BODY(NAME, v)                                                                              \
  {                                                                                                \
    .name = (NAME), .type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, .g = (v)                 \
  }
#define WITH(...) ((const OnnxAttr[]){__VA_ARGS__, {0}})
#define NO_ATTRS  NULL

/* Inputs of a node: names of values; "" for an absent one; NULL ends the list. */
#define FROM(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct OnnxBuild {
  Arena *arena;
  const char *scope; /* the module at work: begins the names of nodes and values; may be "" */
  VEC(OnnxNode *) nodes;
  VEC(OnnxTensor *) tensors;
  VEC(OnnxValueInfo *) inputs, outputs;
  uint32_t *count; /* of named values, shared with outer graphs */
} OnnxBuild;

OnnxBuild *build_begin(Arena *arena, OnnxBuild *outer);
/* Returns a name that nothing has: "net.fc1/Gemm_12" for the stem "Gemm" in the scope "net.fc1". */
const char *build_name(OnnxBuild *b, const char *stem);
/* Appends a node and returns the name of its result. */
const char *build_node(OnnxBuild *b, const char *op, const char *const *in, const OnnxAttr *attrs);
/* The same with results that have names: `out` ends with NULL. */
void build_results(OnnxBuild *b, const char *op, const char *const *in, const char *const *out,
                   const OnnxAttr *attrs);
/* Constants */
const char *build_ints(OnnxBuild *b, const int64_t *at, uint32_t n); /* i64[n] */
const char *build_int(OnnxBuild *b, int64_t v);                      /* i64[1] */
const char *build_number(OnnxBuild *b, DType type, double v);        /* type[] */
/* A tensor with the bytes `at`, which must stay until the file is written. */
void build_tensor(OnnxBuild *b, const char *name, DType type, const int64_t *dim, uint32_t rank,
                  const void *at, size_t bytes);
/* Arguments and results. dim_name[i]: the name of a size that the caller chooses; NULL: dim[i].
 * NO_RANK: the shape is not stated, as in the body of a loop. */
enum { NO_RANK = UINT32_MAX };
void build_value(OnnxBuild *b, bool is_input, const char *name, DType type, const int64_t *dim,
                 const char *const *dim_name, uint32_t rank);
/* Removes the nodes and constants that no result needs. */
void build_prune(OnnxBuild *b);
OnnxGraph *build_end(OnnxBuild *b, const char *name);
int32_t onnx_type(DType d);
