/* PTX kernels, parsed so that walk.h can execute them. */
#pragma once
#include "compiler/base/arena.h"

typedef enum PtxType {
  PTX_none,
#define PTX_TYPE(name, bytes, family) PTX_##name,
#include "ptx.def"
} PtxType;

/* Types with the same cost: the second column of PTX_OP. */
typedef enum PtxFamily {
  FAMILY_any, /* only in a PTX_OP: the row holds for any type */
  FAMILY_pred,
  FAMILY_i16, /* 8 and 16 bits, computed in 32 bits */
  FAMILY_i32,
  FAMILY_i64,
  FAMILY_f16, /* f16, bf16 or a pair of either */
  FAMILY_f32,
  FAMILY_f64
} PtxFamily;

/* Units of a multiprocessor. Each has its own rate (Gpu in gpu.h). */
typedef enum PtxPipe {
  PIPE_none, /* no machine instruction */
  PIPE_fma,  /* f32 and packed 16-bit arithmetic */
  PIPE_int,
  PIPE_xu, /* reciprocals, exponentials, conversions of f64 or between i64 and floats */
  PIPE_f64,
  PIPE_lsu,    /* loads, stores, shuffles */
  PIPE_tensor, /* products of matrices of 16-bit numbers; a slot is [16, 16] by [16, 8] */
  PIPE_branch,
  PIPE_COUNT
} PtxPipe;

typedef enum PtxOp {
#define PTX_NAME(name, form, real, whole) PTX_OP_##name,
#include "ptx.def"
  PTX_OP_COUNT
} PtxOp;

typedef enum PtxForm {             /* how an instruction is parsed and executed */
                       FORM_value, /* results, then operands; computed lane by lane */
                       FORM_memory,
                       FORM_shuffle, /* results, then operands, for a whole warp */
                       FORM_matrix,  /* the same, for tensor cores */
                       FORM_vote,    /* a result for a whole warp */
                       FORM_barrier,
                       FORM_fence,
                       FORM_jump
} PtxForm;

typedef enum PtxSpace { SPACE_global, SPACE_shared, SPACE_param, SPACE_const } PtxSpace;
typedef enum PtxCompare { /* relations of two operands, one bit each; nan: one of them is NaN */
                          COMPARE_lt = 1,
                          COMPARE_eq = 2,
                          COMPARE_gt = 4,
                          COMPARE_nan = 8,
                          COMPARE_num = COMPARE_lt | COMPARE_eq | COMPARE_gt
} PtxCompare;
typedef enum PtxJoin { JOIN_none, JOIN_and, JOIN_or, JOIN_xor } PtxJoin;

typedef enum PtxOperandKind {
  OPERAND_none,
  OPERAND_register, /* number `at` */
  OPERAND_number,   /* bits, in the width of the instruction's type */
  OPERAND_special,  /* at: PtxSpecial; the value depends on thread or block */
} PtxOperandKind;
typedef enum PtxSpecial {
  SPECIAL_tid,
  SPECIAL_ntid,
  SPECIAL_ctaid,
  SPECIAL_nctaid,
  SPECIAL_lane,
  SPECIAL_warp,
  SPECIAL_zero, /* index y or z: 0, since launches have one dimension */
  SPECIAL_one
} PtxSpecial;

typedef struct PtxOperand {
  PtxOperandKind kind;
  bool negated; /* a negated predicate: !%p */
  uint32_t at;
  uint64_t bits;
} PtxOperand;

enum { PTX_VECTOR = 10 }; /* the most results or operands */

typedef struct PtxInstruction {
  PtxOp op;
  PtxType type, from; /* from: the second type of the name, such as a cvt's source; else `type` */
  PtxPipe pipe;
  uint8_t slots;      /* number of machine instructions */
  uint16_t latency;   /* cycles until the result can be used; of a memory access: see WalkLaunch */
  uint8_t n_to, n_in; /* number of results, number of operands */
  bool leads;         /* first instruction of a basic block */
  /* the next fields have one byte each; modifiers set them by the table in ptx_op.c */
  bool constant;    /* ld.global.nc, which need not wait for stores */
  bool approximate; /* .approx, .full */
  uint8_t space;    /* PtxSpace */
  uint8_t compare;  /* setp: the PtxCompare relations for which it is true */
  uint8_t join;     /* setp: PtxJoin */
  char mode; /* cvt.r[nzmp]i: n, z, m or p; shf: l or r; vote: a(ll) or b(allot); ldmatrix: t(rans)
              */
  PtxOperand guard; /* predicate; kind none: the instruction always executes */
  PtxOperand to[PTX_VECTOR], in[PTX_VECTOR];
  int64_t offset;   /* bytes that are added to the address in[0] */
  uint32_t target;  /* bra: index of an instruction */
  const char *name; /* "add.rn.f32" */
} PtxInstruction;

typedef struct PtxKernel {
  const char *name;
  PtxInstruction *at;
  uint32_t n, n_registers;
  uint32_t n_params; /* number of parameters, which are all pointers */
  uint32_t shared;   /* bytes of shared memory, including the variables of the file so far */
  /* index of the first atomic operation, which counts blocks; n: no such operation */
  uint32_t counts;
  const uint8_t *constants; /* constant memory from PTX_CONST_BASE on; in the arena */
  uint32_t n_constants;     /* bytes */
} PtxKernel;

typedef struct PtxText {
  VEC(PtxKernel) kernels;
} PtxText;

/* Parses all kernels of a text. False: *why quotes what cannot be parsed. */
bool ptx_read(Arena *arena, const char *text, PtxText *out, const char **why);
const PtxKernel *ptx_find(const PtxText *p, const char *name); /* NULL: no such kernel */

PtxForm ptx_form(PtxOp op);
PtxFamily ptx_type_family(PtxType t);

static inline uint32_t ptx_type_bytes(PtxType t)
{
  static const uint8_t bytes_of[] = {
      0,
#define PTX_TYPE(name, bytes, family) bytes,
#include "ptx.def"
  };
  return bytes_of[t];
}
