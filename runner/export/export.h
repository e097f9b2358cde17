/* Shared by the files of amp export. */
#pragma once
#include "build.h"
#include "compiler/graph/ir.h"
#include "compiler/syntax/ast.h"

/* Note [sizes]
 * A graph has fixed sizes. So the block is compiled for several choices of the sizes that callers
 * choose: each size changed alone, to another and to a large one, and all changed together. The
 * graphs must have the same nodes; a number that differs between them is computed in the ONNX
 * model, from the sizes of its arguments. */
enum { MAX_VARIANTS = 4 + 2 * AMPC_MAX_SIZES };
typedef struct Sized { /* a number in each of the graphs */
  int64_t at[MAX_VARIANTS];
} Sized;

/* The numbers of some rows of a decoder's state: those that follow `first`, and their end. */
typedef struct Numbered {
  const char *first;
  int64_t size; /* how many in the first variant */
  const char *rows, *end;
} Numbered;

typedef struct Export {
  Arena *arena;
  Compile *c;     /* the first variant; its graph has only the infer block */
  const Graph *g; /* its graph */
  Compile *compiles[MAX_VARIANTS];
  const Graph *graph[MAX_VARIANTS]; /* of all variants: node i is the same op in each */
  uint32_t n_variants, n_sizes;
  const char *size_name[AMPC_MAX_SIZES]; /* sizes that the caller chooses */
  Sized size[AMPC_MAX_SIZES];
  /* names of their values in the model; NULL: not made yet */
  const char *size_value[AMPC_MAX_SIZES];
  const char **state;   /* by parameter: its value for the next node; NULL: no decoder */
  const char **present; /* by parameter: the result */
  Numbered numbered;    /* made last */
  uint32_t n_states;
  OnnxBuild *root, *b; /* the whole model; the graph at work: root, or the body of a loop */
  const char **name;   /* of the value of each node; NULL: not made yet */
  struct Weights *weights;
  bool bf16;           /* some value is bf16 */
  bool draws;          /* the model draws random numbers */
  const char *classes; /* names of the classes as a JSON list, from the file of weights; or NULL */
  bool failed;         /* a message has been printed */
} Export;

/* ---- variants.c ---- */
/* Compiles the variants of a block that `whole` has compiled. Returns false after a message. */
bool variants_compile(Export *e, const Compile *whole, const Function *block);
void variants_end(Export *e);
const char *variants_text(const Export *e, uint32_t variant); /* "BATCH = 7, S = 13" */

/* ---- sizes.c ---- */
/* The node of another graph that corresponds to n */
const Node *sized_twin(const Export *e, const Node *n, uint32_t variant);
Sized sized_dim(const Export *e, const Node *n, uint32_t axis);
Sized sized_attr(const Export *e, const Node *n, const char *name);
Sized sized(int64_t v); /* the same number in all graphs */
bool sized_varies(const Export *e, Sized q);
/* Returns the name of an i64[1] with the number; NULL after a message that names n. */
const char *sized_value(Export *e, const Node *n, Sized q);
/* Returns the name of an i64[count] with the numbers. */
const char *sized_list(Export *e, const Node *n, const Sized *q, uint32_t count);

/* ---- put.c ---- */
/* Appends the nodes of the block. */
bool put_block(Export *e);
const char *in_value(Export *e, const Node *n, uint32_t input);  /* "" if it is absent */
const Node *in_node(const Export *e, const Node *n, uint32_t i); /* NULL if it is absent */
const char *put_cast(Export *e, const char *x, DType from, DType to);
const char *in_as(Export *e, const Node *n, uint32_t input, DType type); /* input in this type */
const char *put_same(Export *e, const Node *n, const char *op);          /* an op that ONNX has */
/* Whether an argument or result has this name. */
bool put_is_public(const Export *e, const char *name);
/* Reports that ONNX cannot say op n. Returns NULL. */
const char *cannot(Export *e, const Node *n, const char *why);

/* ---- state.c ---- */
/* Declare the position and the state of a decoder: Note [state] in state.c. Other blocks have none.
 */
bool state_begin(Export *e);
bool state_end(Export *e);
/* Whether the source of a decoder is its position. */
bool state_is_position(const Export *e, const Node *source);
/* Returns the name of the state in this type. `param`: its leaf. */
const char *state_value(Export *e, const Node *param, DType type);
/* Returns input i of an attention in this type; in a decoder the rows up to the newest position
 * along the axis, as later ones are not written yet. */
const char *state_rows(Export *e, const Node *n, uint32_t i, uint32_t axis, DType type);
/* The causal mask of these rows, bool[T, end]; NULL: the attention is not that of a decoder. */
const char *state_mask(Export *e, const Node *n);

/* ---- weights.c ---- */
/* Loads the weights of a program from a file, or if it is NULL from those that its models load. */
ampc_status weights_open(Export *e, const ampc_program *program, const char *file,
                         const char *data_dir);
void weights_close(Export *e);
void weights_tell(void *to, bool warning, const char *line); /* prints warnings; an ampc_tell */
/* Returns the name of a weight or buffer in this type; NULL after a message. `param`: a leaf, or
 * the values of a quantized weight. */
const char *weight_value(Export *e, const Node *param, DType type);

/* ---- gguf.c ---- */
/* Writes the language model whose infer block this is as a GGUF file. `weights`: NULL: those that
 * the job loads. `type`: f32, f16, bf16 or q8_0, of matrices. Returns the exit status. */
int gguf_export(Compile *c, const Function *block, const char *weights, const char *type,
                const char *out, bool quiet);
