/* What expands from ops.def, the one table of ops. */
#pragma once
#include "ir.h"

/* How an op becomes a command of the plan. */
typedef enum OpTemplate {
  TMPL_leaf,  /* nothing to run: parameters, inputs, constants, state */
  TMPL_alias, /* nothing to run: the same bytes under another shape */
  TMPL_map,   /* elementwise with broadcasting; `code` is an expression */
  TMPL_move,  /* out[i] = in[f(i)]; `code` is unused, emit/ knows the index function */
  TMPL_row,   /* reductions along an axis and an expression per element or per row;
                 `code` is a row program, see Note [row programs] in ops.def */
  TMPL_gemm,  /* a matrix product of the vendor library */
  TMPL_conv,  /* a convolution of the vendor library */
  TMPL_file   /* templates/<op name>.cu: a frame of its own */
} OpTemplate;

/* The precision categories of autocast. */
typedef enum OpPrecision {
  PREC_low,     /* inputs are cast to the region's 16-bit type */
  PREC_f32,     /* inputs are cast to f32 */
  PREC_promote, /* inputs are cast to the widest of them */
  PREC_none,    /* computes in the types it meets; mixed ones promote as in PyTorch */
  PREC_fixed    /* the op says itself (cast, comparisons, state): its shape rule set the type */
} OpPrecision;

typedef enum AttrKind {
  ATTR_int,
  ATTR_float,
  ATTR_bool,
  ATTR_axis,
  ATTR_axes,
  ATTR_dtype
} AttrKind;

typedef struct AttrInfo {
  const char *name;
  AttrKind kind;
  bool required;
  Attr value; /* default; ATTR_axes: bit mask, 0 is "none given" */
} AttrInfo;

typedef struct InputInfo {
  const char *name;
  bool optional; /* may be value 0 */
  bool variadic; /* the last one: any number */
} InputInfo;

enum { MAX_SIGNATURE = 8 };

typedef struct OpInfo {
  const char *name;
  const char *signature;              /* see ops.def */
  bool (*shape)(Compile *c, Node *n); /* sets dims and dtype kind of n; reports user mistakes */
  OpPrecision precision;
  /* Adds to the graph what n's inputs' gradients are, given dy; writes a Value (or none) for each
   * input to out_dx. NULL: not differentiable, the gradient is zero. */
  void (*gradient)(Compile *c, Value n, Value dy, Value *out_dx);
  OpTemplate tmpl;
  const char *code;
  const char *doc; /* one line; the source of a formula; "" for internal ops */
} OpInfo;

extern const OpInfo op_info[OP_COUNT];

bool op_lookup(const char *name, OpKind *out); /* language names only: internal ops are not found */

/* A parsed signature. Made at first use, once a process; thread-safe. */
typedef struct OpSignature {
  InputInfo input[MAX_SIGNATURE];
  AttrInfo attr[MAX_ATTR];
  uint32_t n_inputs, n_attrs;
  bool internal; /* not callable from the language */
} OpSignature;
const OpSignature *op_signature(OpKind op);

/* Where the updates of running statistics keep their optimizer: indices of attributes. */
enum { RUNNING_update_optimizer = 3, RUNNING_count_optimizer = 1 };

bool op_is_product(OpKind op); /* a matrix product or convolution: the vendor library runs it */
/* Bit mask of the inputs that are images and which pass layout lays channels last; 0: none. */
uint32_t op_image_inputs(OpKind op);
bool op_is_random(OpKind op);  /* draws numbers, keyed by the node's stream */
bool op_has_effect(OpKind op); /* writes state: never removed, never reordered */

/* The inputs of n that meet in one expression and must have one type: [*first, result). */
uint32_t op_mixed_inputs(const Node *n, uint32_t *first);
/* The type they meet in by ordinary promotion, as torch.result_type. For most ops it is the type of
 * the result too. */
DType op_common_type(Compile *c, const Node *n);

#define AMPC_OP(name, sig, shape, prec, grad, tmpl, code, doc)                                     \
  bool shape_##shape(Compile *c, Node *n);                                                         \
  void grad_##grad(Compile *c, Value n, Value dy, Value *out_dx);
#include "ops.def"
