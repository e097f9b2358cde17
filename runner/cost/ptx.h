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
  FAMILY_any, /* in a row of the table: any type */
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
  PIPE_xu, /* reciprocals, exponentials, conversions of 64 bits */
  PIPE_f64,
  PIPE_lsu, /* loads, stores, shuffles */
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
                       FORM_vote, /* a result for a whole warp */
                       FORM_barrier,
                       FORM_fence,
                       FORM_jump
} PtxForm;

typedef enum PtxSpace { SPACE_global, SPACE_shared, SPACE_param, SPACE_const } PtxSpace;
typedef enum PtxCompare { /* relations of two operands, a bit each; nan: one operand is NaN */
                          COMPARE_lt = 1,
                          COMPARE_eq = 2,
                          COMPARE_gt = 4,
                          COMPARE_nan = 8,
                          COMPARE_num = COMPARE_lt | COMPARE_eq | COMPARE_gt
} PtxCompare;
typedef enum PtxJoin { JOIN_none, JOIN_and, JOIN_or, JOIN_xor } PtxJoin;

typedef enum PtxOperandKind {
  OPERAND_none,
  OPERAND_register, /* at */
  OPERAND_number,   /* bits, in the width of the instruction's type */
  OPERAND_special,  /* at: SPECIAL_*; depends on thread or block */
} PtxOperandKind;
typedef enum PtxSpecial {
  SPECIAL_tid,
  SPECIAL_ntid,
  SPECIAL_ctaid,
  SPECIAL_nctaid,
  SPECIAL_lane,
  SPECIAL_warp,
  SPECIAL_zero, /* y and z: launches have one dimension */
  SPECIAL_one
} PtxSpecial;

typedef struct PtxOperand {
  PtxOperandKind kind;
  bool negated; /* a predicate */
  uint32_t at;
  uint64_t bits;
} PtxOperand;

enum { PTX_VECTOR = 8 };

typedef struct PtxInstruction {
  PtxOp op;
  PtxType type, from; /* from: source type of cvt and set, type of an address */
  PtxPipe pipe;
  uint8_t slots;      /* machine instructions; 0: none */
  uint16_t latency;   /* cycles until the result can be used; loads: see WalkLaunch */
  uint8_t n_to, n_in; /* results and operands */
  bool leads;         /* it is the first of a basic block */
  /* one byte each, set by modifiers: see the table in ptx_op.c */
  bool constant;    /* ld.global.nc: need not wait for stores */
  bool approximate; /* .approx, .full */
  uint8_t space;    /* PtxSpace */
  uint8_t compare;  /* PtxCompare: the relations that make it true */
  uint8_t join;     /* PtxJoin */
  char mode;        /* cvt: n, z, m, p rounds to an integer; shf: l, r; vote: all, ballot */
  PtxOperand guard; /* kind none: always */
  PtxOperand to[PTX_VECTOR], in[PTX_VECTOR];
  int64_t offset;   /* of an address, added to in[0] */
  uint32_t target;  /* bra: index of an instruction */
  const char *name; /* "add.rn.f32" */
} PtxInstruction;

typedef struct PtxKernel {
  const char *name;
  PtxInstruction *at;
  uint32_t n, n_registers;
  uint32_t n_params;        /* all are pointers */
  uint32_t shared;          /* bytes of shared memory, with all variables of the text before it */
  uint32_t counts;          /* index of the first atomic operation; n: none */
  const uint8_t *constants; /* constant memory from PTX_CONST_BASE on; in the arena */
  uint32_t n_constants;     /* bytes */
} PtxKernel;

typedef struct PtxText {
  VEC(PtxKernel) kernels;
} PtxText;

/* Parses all kernels of a text. False: *why names the text that is not understood. */
bool ptx_read(Arena *arena, const char *text, PtxText *out, const char **why);
const PtxKernel *ptx_find(const PtxText *p, const char *name); /* NULL: no such kernel */

PtxForm ptx_form(PtxOp op);
uint32_t ptx_type_bytes(PtxType t);
PtxFamily ptx_type_family(PtxType t);
