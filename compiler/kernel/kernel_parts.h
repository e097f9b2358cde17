/* Declarations for the files that print kernels. */
#pragma once
#include "compiler/base/embedded.h"
#include "compiler/command/command.h"
#include "kernel.h"
#include <string.h>

typedef struct Vector { /* adjacent elements that a thread has in registers: name[j] */
  uint32_t argument;
  Index index;      /* of the first element */
  const char *name; /* "x_at" */
  bool stored;      /* the loop stores it */
  bool wide;        /* its elements are real, whatever their type in memory is */
} Vector;

typedef struct Kernel { /* the kernel that is being printed */
  Printer *p;
  Compile *c;
  const Graph *g;
  uint32_t index; /* index of the group */
  const char *name;
  const Command *command;
  const KernelPart *part; /* the command's whole kernel, or one of its parts */
  const Group *group;     /* the nodes of `part` */
  KernelArgs args;        /* those of `part` */
  const char **arg_names; /* unique in this kernel */
  const char *index_type; /* "int", or "long long" if int may be too small */
  bool is_part;           /* a part of a launch; the launch's other text is already printed */
  bool looks_ahead;       /* values are computed for a guess and not stored */
  bool by_vectors;        /* its loops process several elements at once, with index j */
  bool *stored;           /* node of the group -> an earlier loop has stored it */
  VEC(Vector) vectors;    /* vectors of the loop that is being printed and of the loops around it */
} Kernel;

Kernel kernel_of(Printer *p, uint32_t group);
/* Returns the node that decides how the group is printed: the anchor, or any elementwise node.
 * kernel_template() returns the access pattern of that node. */
const Node *kernel_main_node(const Kernel *k);
OpTemplate kernel_template(const Kernel *k);

/* ---- the comment above: head.c ---- */

const char *kernel_nodes_text(const Kernel *k);  /* returns "%14 add, %15 relu" */
const Node *kernel_walked_node(const Kernel *k); /* returns the node whose shape it walks */
const char *kernel_parts_text(const Kernel *k);  /* returns "2 parts, side by side" */
void put_library_line(const Kernel *k);          /* names a library that may run */
void put_head(const Kernel *k);

/* ---- texts: names.c ---- */

void name_arguments(Kernel *k);
/* Returns "const f16 *__restrict__ x, real *__restrict__ y". */
const char *argument_list(const Kernel *k);
/* Returns "from_f16"; "" for a type that needs no conversion. */
const char *conversion_name(const Kernel *k, const char *what, DType d);
const char *element_type(const KernelArg *a); /* returns "f16", "float", "ampc_state" */
bool argument_is_number(const KernelArg *a);  /* true if it is not a pointer */
/* Returns the index of the argument that holds v's bytes; args.n if no argument does. */
uint32_t argument_of(const Kernel *k, Value v);
/* Returns the index of the argument that holds v's bytes; calls kernel_bug() if no argument
 * does. */
uint32_t pointer_of(const Kernel *k, Value v);
const char *pointer_name(const Kernel *k, Value v);
/* Calls ir_bug() with the message that the kernel cannot be printed because of node v. */
_Noreturn void kernel_bug(const Kernel *k, Value v, const char *what);
Value value_of(const Kernel *k, const Node *n);
/* Returns the number of v in the kernel's text: its id or, in a text without names, a number that
 * is the same in equal kernels. */
uint32_t value_number(const Kernel *k, Value v);
uint32_t stream_argument(const Kernel *k, const Node *n); /* returns the index of n's stream */
/* True if the kernel writes another value over v, element by element. */
bool argument_is_reused(const Kernel *k, Value v);
const char *real_text(const Kernel *k, double v); /* returns "R(0.5)", "-ampc_inf()" */
/* Returns the type of a variable that holds such an element: "real", "int". */
const char *local_type(DType d);

/* ---- index arithmetic: index.c ---- */

const char *index_text(const Kernel *k, const Index *x); /* returns "r % 32 * 512 + c" */

/* ---- vectors: vector.c ---- */

/* Returns the index at which a result is stored; `index` is the one of a result without gaps, "i".
 * It differs if rows have gaps, "row * 104 + c" (Note [pitch]), or if vectors do not
 * divide the row, "(i + j)" (Note [odd rows]). */
const Index *result_index(const Kernel *k, uint32_t argument, const Index *index);
/* Prints "VECTOR_LOAD(8, f16, x_at, x + i);", only once. */
void put_vector(Kernel *k, const char *width, uint32_t argument, const Index *index);
/* Prints VECTOR_ROOM for a result, unless it reuses the bytes of a vector that is already there;
 * With `adds`, the result adds to memory and needs VECTOR_LOAD. */
void put_result_vector(Kernel *k, bool adds, const char *width, uint32_t argument,
                       const Index *index);
/* Returns the vector that begins there, or NULL. */
Vector *find_vector(const Kernel *k, uint32_t argument, const Index *index);
/* Prints VECTOR_STORE, for one vector or for the results among the vectors from `first` on. */
void store_vector(const Kernel *k, const Vector *v);
void store_vectors(const Kernel *k, uint32_t first);
/* Prints VECTOR_LOCAL for the random numbers of n, if n draws, and the call that draws them: a call
 * gives four. */
void put_drawn_vector(Kernel *k, const Node *n, uint32_t width, const Index *index);
/* Returns "stream_at" if the loop has drawn a vector from this stream, else NULL. */
const char *drawn_vector(const Kernel *k, uint32_t argument);

/* ---- expressions: code.c ---- */

typedef struct Operand {
  const char *text; /* NULL: absent */
  bool real;        /* its C type is real; else an integer */
  bool literal;     /* it is this integer */
  int64_t number;
} Operand;

typedef struct CodeScope { /* the texts that replace the words of an op's code */
  const Kernel *k;
  const Node *n;
  const Operand *element;         /* $0 ... */
  const char *const *row_value;   /* @1 ...; NULL outside of row programs */
  const char *index;              /* $i */
  const char *column;             /* $c */
  int64_t length;                 /* $n */
  const char *length_text;        /* $n if it is not a constant; else NULL */
  const char *const *locals;      /* names of a row program; the last one is NULL */
  const char *const *local_texts; /* their names in the kernel */
  const char *local_suffix;       /* "[j]" if locals are arrays */
  bool integers;                  /* arithmetic of integers: ampc_max becomes ampc_max_int */
  bool halves;                    /* 16-bit operand and result: ampc_tanh becomes ampc_tanh_16 */
} CodeScope;
const char *code_text(const CodeScope *s, const Formula *f);
/* Returns the key of n's random numbers: "state->seed, state->body, stream". */
const char *key_text(const Kernel *k, const Node *n);
/* Returns which number of its stream the element at `index` has: Draws. */
const char *drawn_number(const Kernel *k, const Node *n, const char *index);
/* Returns "x[i]"; for a vector that begins at `index` "x_at[j]". */
const char *element_place(const Kernel *k, uint32_t argument, const Index *index);
/* Returns the element at `index` of input k as an operand: a load with its conversion, or a
 * literal. */
Operand load_operand(const Kernel *k, Value in, const Index *index);
Operand as_real(const Kernel *k, Operand o);
/* Returns the value of a map node, before it is rounded; prints the lets of its code. `in`:
 * operands as loaded, one for each input. */
const char *node_expression(const Kernel *k, const Node *n, const Operand *in, const Index *index);
/* needs_rounding: true if n computes a value that may not fit its 16-bit type exactly. rounded:
 * "round_f16(x)", the value rounded to its type. stored: "to_f16(x)", the bits in memory. */
bool needs_rounding(const Kernel *k, const Node *n);
const char *rounded(const Kernel *k, DType d, const char *expression);
const char *stored(const Kernel *k, DType d, const char *expression);
/* Returns `expression` as element_place() stores it. `is_rounded`: it is a result of rounded(). */
const char *stored_at(const Kernel *k, uint32_t argument, const Index *index, DType d,
                      const char *expression, bool is_rounded);

/* ---- elementwise nodes: chain.c ---- */

typedef struct Load { /* an operand in memory */
  Value value;        /* as the node names it: an alias has its own shape */
  Index index;        /* of the element */
  uint32_t uses;
  bool named; /* it has a variable */
  Operand text;
} Load;
typedef struct Chain { /* the nodes and loads of one loop */
  Kernel *k;
  VEC(Value) nodes; /* nodes in execution order */
  VEC(Load) loads;
  const struct Chain *around; /* its loads are printed before and in scope: of rows; or NULL */
} Chain;

void chain_begin(Chain *ch, Kernel *k);
/* Returns what node v of the group reads. */
const NodeAccess *access_of(const Kernel *k, Value v);
/* Declares that node v is computed here. Its operands are loaded unless they are computed here too.
 * Row ops register their loads themselves. */
void chain_add(Chain *ch, Value v);
/* Declares that the element at `index` of v is read `times` times. Call it after chain_add of all
 * nodes that may compute v. */
void chain_use(Chain *ch, Value v, Index index, uint32_t times);
void chain_put_loads(Chain *ch); /* prints loads that are not printed yet */
/* Returns a value that is computed here or declared by chain_use(); an absent operand for value
 * 0. */
Operand chain_operand(const Chain *ch, Value v, Index index);
void chain_put_node(Chain *ch, Value v, Index index);
/* Prints "const real t15 = ..;" for node v, and its store if it has bytes. */
void put_value(const Kernel *k, Value v, const char *expression, const Index *index);

/* fold.c: Returns a template line without arithmetic that changes nothing (x * 1 - 0). */
const char *fold_line(const Kernel *k, const char *line);

/* ---- kernels of several parts: launch.c ---- */

typedef struct Launch Launch;
/* Prints the functions that parts share, before the kernel. */
const Launch *put_functions(const Kernel *k);
void put_parts(const Launch *l); /* prints the parts, inside the kernel */

/* ---- frames ---- */

void put_body(Kernel *k); /* kernel.c: calls one of the emitters below if there are elements */

void emit_map(Kernel *k); /* map.c: elementwise groups and moves */
void emit_cat(Kernel *k); /* move.c */
void emit_flip(Kernel *k);
void emit_shifted(Kernel *k);
void emit_filled(Kernel *k); /* slice_backward and pad */
/* Returns element `index` of an input of a move, as it is stored. */
const char *moved_element(const Kernel *k, uint32_t input, const char *index);
void emit_picked(Kernel *k); /* pick.c: index_select and gather */
void emit_row(Kernel *k);    /* row.c: row ops */
void emit_own(Kernel *k);    /* own.c: an op of the job */
const char *own_argument_list(const Kernel *k);
const char *own_argument_name(const Kernel *k, const KernelArg *a);
void emit_file(Kernel *k);                        /* file.c: templates/<op>.cu */
const EmbeddedFile *kernel_file(const Kernel *k); /* the template of an op with a file */
bool template_uses(Kernel *k, const char *name);  /* true if its text names this argument */
/* columns.c: Prints im2col.cu or conv_whole*.cu. */
void emit_columns(Kernel *k, const ampc_conv *asked);

/* ---- helpers: helpers.c ---- */

/* Prints the prelude, the types, and the helpers that `kernels` and other helpers use. */
void emit_helpers(Printer *p, const Text *kernels);
