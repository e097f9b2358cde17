/* Shared by the files of amp import. All memory is in one arena.
 *
 * Note [expressions]
 * The nodes of an ONNX graph become steps. A step's text is an expression of the language with
 * references: "$12" is value 12, "#5" is member 5. So "relu(#5($12))" calls a layer. A reference
 * is replaced when the step is printed, since names depend on the module that contains it. */
#pragma once
#include "compiler/syntax/ast.h"
#include "runner/onnx/file.h"
#include "name_map.h"

/* Note [sizes]
 * The compiler elaborates each step when it is made, at two choices of the sizes that the model
 * leaves open: those that the job will have, and others (ask.c). A size that both have is a number.
 * Other sizes are expressions, such as "$3.size(0)". */
enum { CHOICES = 2, READ_RANK = 6 };

/* A number of a small integer tensor: n, or an expression such as "$3.size(0)". */
typedef struct Item {
  int64_t n;        /* at the first choice of the sizes */
  int64_t other;    /* of an expression: at the second one */
  const char *text; /* NULL: the number is n */
} Item;

typedef struct Shape {
  uint32_t rank;
  int64_t dim[CHOICES][READ_RANK];
} Shape;

/* A size that the model leaves open. */
typedef struct Size {
  const char *key; /* the name in the file, or "x_1" */
  int64_t at[CHOICES];
  bool given; /* by the user */
} Size;

typedef enum ValueKind {
  VALUE_tensor,  /* an argument, or the result of a step */
  VALUE_weight,  /* a tensor of the file */
  VALUE_number,  /* a float constant: `number` in all elements. `item` is its shape */
  VALUE_items,   /* a small integer tensor whose numbers are known when a job compiles */
  VALUE_parts,   /* a sequence of tensors: `part` */
  VALUE_uniform, /* random numbers in [0, 1), from here on with the shape `item` */
  VALUE_chosen,  /* whether such a number is below `number` */
  VALUE_kept,    /* the same as 0 or 1 / number */
  VALUE_unread   /* the result of a node that amp import cannot read */
} ValueKind;

enum { MOST_ITEMS = 64, MOST_LITERAL = 16 }; /* elements that are computed here; written as code */
#define MOST_SIZE ((int64_t)1 << 31)         /* of an axis */

/* What a tensor of the file is taken for: kinds.c. */
typedef enum TensorKind { TENSOR_trains, TENSOR_buffer, TENSOR_constant } TensorKind;

typedef struct Value {
  const char *name;
  ValueKind kind;
  int32_t type;                         /* of ONNX; 0: unknown */
  uint32_t id;                          /* index in Reader.values */
  const Onnx__TensorShapeProto *stated; /* of an argument: the shape in the file */
  const Shape *shape;                   /* NULL: it is no tensor, or not read */
  const OnnxTensor *tensor;             /* of a weight */
  TensorKind tensor_kind;               /* of a weight */
  struct Value *viewed;    /* it has the elements of this value in the same order; NULL: none */
  struct Value *turned;    /* the weight is this one, transposed; else NULL */
  const OnnxNode *maker;   /* the node whose result it is; NULL: none */
  uint32_t step;           /* index + 1 of the step that computes it; 0: none */
  bool argument;           /* of the graph */
  bool slopes;             /* a weight: each number belongs to a channel of an image */
  VEC(uint32_t) users;     /* steps that refer to it */
  uint32_t readers;        /* nodes and results of the graph that need it */
  const OnnxNode *bias_of; /* a product: this node Add belongs to the layer; else NULL */
  uint32_t member;         /* of a weight: index + 1 in Reader.members; 0: none yet */
  const char *role;        /* "weight" of that member; NULL: the member is the tensor */
  double number;
  Item *item;           /* n items; of a number: its sizes */
  const char *printed;  /* items: how they are printed; NULL: as a list */
  const uint32_t *part; /* n values */
  uint32_t n;
} Value;

/* A module around a node. */
typedef struct Scope {
  const char *key;        /* its path; a second call of the same module has another key */
  const char *path;       /* "layer1.0"; "": the whole net */
  const char *class_name; /* "BasicBlock"; NULL: unknown */
  bool library;           /* it is a layer of PyTorch */
} Scope;
typedef VEC(Scope) Scopes;

typedef struct Step {
  const char *text;    /* Note [expressions]; several results: a list */
  const uint32_t *out; /* n_out values */
  uint32_t n_out;
  Scopes scopes;        /* the modules around it */
  uint32_t *use, n_use; /* values that the text refers to */
  bool needed;          /* for some result */
  struct Call *call;    /* that contains it, as entry `place` */
  uint32_t place;
} Step;

/* A layer, parameter or buffer of the job. */
typedef struct Member {
  const char *path; /* "layer1.0.conv1" */
  const char *text; /* "Conv2d(3, 64, 7, stride=2)" */
  const struct Value
      *tie;        /* the weight of another member, which is also this layer's; NULL: none */
  uint32_t stored; /* index of its first tensor in Reader.stored */
} Member;

/* A tensor of the weights' file. */
typedef struct Stored {
  uint32_t member;
  const char *role; /* "weight" of that member; NULL: the member is the tensor */
  const char *path; /* "layer1.0.conv1.weight", once the modules are built */
  const OnnxTensor *tensor;
} Stored;

typedef struct Refused { /* an op that amp import cannot read */
  const char *op, *why, *node;
  uint32_t count;
} Refused;

typedef struct Reader {
  Arena *arena;
  const OnnxModel *model;
  const OnnxGraph *graph;
  const char *path, *folder; /* of the file; its external data is in the folder */
  VEC(Value *) arguments, results;
  int64_t opset; /* version of the operators */
  VEC(Value *) values;
  VEC(Step) steps;
  VEC(Member) members;
  VEC(Stored) stored;
  VEC(Refused) refused;
  NameMap names;               /* of values */
  NameMap paths;               /* of members, and of the modules around them */
  NameMap counts;              /* numbers in paths */
  NameMap listed;              /* tensors that PyTorch lists: &listed_parameter .. */
  bool has_list;               /* PyTorch's exporter wrote the list, which may be empty */
  NameMap places;              /* what layers read as their weights */
  NameMap trained;             /* tensors that the user wants to train */
  VEC(const char *) constants; /* tensors of floats that are constants */
  NameMap cells;               /* the tensors of recurrent layers that have been made */
  bool has_paths, paths_asked; /* whether names of nodes are paths, once it is known */
  const OnnxGraph *nodes;      /* the graph of the node at work, which may be a branch of an If */
  const OnnxNode *node;        /* at work: nodes->node[index] */
  size_t index;
  const char *place; /* the path of the module that contains its steps */
  Scopes scopes;     /* scopes_of(), once it has been asked */
  bool dropped;      /* the node at work was refused */
  /* of the node at work: bit i is set if input or attribute i was read */
  uint64_t asked_inputs, asked_attributes;
  int64_t batch;             /* the first size of the first argument if the file fixes it; else 0 */
  bool refused_by_compiler;  /* a node, with these sizes */
  uint32_t guess;            /* the number of the guess of open sizes */
  VEC(Size) sizes;           /* that the model leaves open, except for the batch */
  struct Asked *asked;       /* ask.c */
  VEC(const char *) granted; /* comparisons of sizes: "Equal of $3.size(0) and 1 is false" */
  const char
      *only_first; /* the compiler refuses other sizes, with this message; NULL: it does not */
} Reader;

typedef struct ReadWishes {
  const char *path, *folder; /* of the model; its external data is in the folder */
  const char *train;         /* names of tensors that train in any case; NULL: none */
  const char *const *size;   /* "x=3,224,224": sizes after the first one, of an argument */
  uint32_t n_sizes;
} ReadWishes;

/* graph.c. Reads a model: makes values, steps, members. Nodes that cannot be read are in
 * r->refused. Returns AMPC_BAD_FILE if the graph is damaged: cycles, names without a maker;
 * AMPC_BAD_USAGE for wishes that do not fit. The model is changed: its tensors get raw_data. */
ampc_status read_model(Reader *r, Arena *arena, const OnnxModel *model, const ReadWishes *wishes);

/* ---- sizes.c ---- */

/* What differs in the second choice. It has larger sizes; if a table of positions limits them,
 * smaller ones. */
typedef enum Vary { VARY_more, VARY_less, VARY_batch, VARY_none } Vary;

/* Sets the shapes of the arguments. AMPC_BAD_USAGE: a given size does not fit. */
ampc_status sizes_choose(Reader *r, const char *const *given, uint32_t n, Vary vary);
bool stated_size(const Value *v, size_t axis, int64_t *n); /* false: the file leaves it open */
/* Whether the first axis of an argument counts samples: it has the size of the first argument's, or
 * both are open. */
bool is_batch(const Reader *r, const Value *v);
/* Whether an axis counts samples, because it is such a first axis or has its name. */
bool counts_samples(const Reader *r, const Value *v, size_t axis);
bool sizes_guess_again(const Reader *r); /* whether there is another guess of open sizes */
const char *size_key(Reader *r, const Value *v, size_t axis); /* of an open size: Size.key */
const char *sizes_tried(Reader *r); /* "L=80 instead of 16": of the second choice */
int64_t job_batch(const Reader *r);

/* ---- ask.c ---- */

void ask_begin(Reader *r);
void ask_end(Reader *r);
void ask_tensor(Reader *r, const Value *v); /* its shape and type are known */
void ask_layer(Reader *r, uint32_t member); /* refuses the node if the compiler does */
/* Finds the shapes and types of a step's results, or refuses the node. */
void ask_step(Reader *r, const Step *s);
/* Why a node is refused: an assertion of the prelude begins with the op. */
const char *reason_of(const Reader *r, const char *message);

const Function *ask_function(const Reader *r, const char *name); /* of the prelude; NULL: none */
void ask_enter(Reader *r); /* forgets the variables of functions */
/* Sets a variable of the function to the value of a text, or of `known`, an expression of the
 * function. False after refusing. */
bool ask_bind(Reader *r, const char *name, const char *value, const Expr *known);
/* The text of an expression's value if the job knows it when it compiles, and it is the same at
 * both choices; VARIES if it is not the same; "" of a tensor. NULL after refusing the node. */
const char *ask_value(Reader *r, const Expr *e);
extern const char VARIES[];
/* Finds the number that an expression is. False after refusing. */
bool ask_item(Reader *r, const char *code, Item *out);
const char *ask_source(const Reader *r, uint32_t from, uint32_t end); /* the prelude's text there */

/* ---- read.c: what the functions for ops use ---- */

/* Input i of the node at work; NULL: absent. A node with an input that nothing asks for is refused.
 */
Value *in(Reader *r, size_t i);
Value *value_named(Reader *r, const char *name); /* NULL: no such value */
Value *named(Reader *r, const char *name);       /* makes it, if there is none */
bool is_known(const Value *v);                   /* items that are all numbers */
/* Whether v is one number of the file. */
bool one_number(const Value *v, double *out);
/* Returns item i if it is a number; otherwise refuses the node and returns 0. */
int64_t item_at(Reader *r, const Value *v, size_t i);
/* The size of an axis, which counts from the end if it is negative, as a number. False: unknown. */
bool size_of(const Value *v, int64_t axis, int64_t *out);
Item item_of_size(Reader *r, const Value *v, int64_t axis);
bool is_size(const Value *x, uint32_t axis, Item number); /* at both choices of the sizes */
/* The axis of a tensor, from 0 on. -1: there is no such axis. */
int64_t axis_of(const Value *x, int64_t axis);
int64_t rank_of(const Value *v); /* -1: it is a sequence */
/* Also notes that the attribute is known: a node with others is refused. */
const OnnxAttribute *attribute(Reader *r, const char *name);
int64_t attr_number(Reader *r, const char *name, int64_t missing);
double attr_real(Reader *r, const char *name, double missing);
/* Reads an attribute that is a list of integers. Returns false if it is absent. */
bool attr_list(Reader *r, const char *name, Item **out, uint32_t *n);

/* Text of a value in an expression. */
const char *ref(Reader *r, const Value *v);
const char *text(const Reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *float_text(const Reader *r, double v); /* "0.1" for the nearest f32 */
const char *item_text(const Reader *r, Item i);
const char *list_text(const Reader *r, const Item *at, uint32_t n); /* "1, 2" */
void list_add(Text *list, const char *entry);

/* Results of the node at work. */
Value *result(Reader *r, size_t i);                                /* NULL: nobody needs it */
void give(Reader *r, const char *expression);                      /* one step, one result */
void give_results(Reader *r, const char *expression, uint32_t n);  /* a list of n results */
void give_sequence(Reader *r, const char *expression, uint32_t n); /* one sequence of n tensors */
void give_items(Reader *r, Item *at, uint32_t n, bool scalar);     /* of i64 */
void give_shaped_items(Reader *r, Item *at, const int64_t *dim, uint32_t rank, int32_t type);
void give_number(Reader *r, double number, const Item *shape, uint32_t n);
Shape *fixed_shape(Reader *r, const int64_t *dim, uint32_t rank); /* of any choice of sizes */
/* Makes v a VALUE_number, or a step of a drawn dropout. */
void fill_value(Reader *r, Value *v, ValueKind kind, double number, const Item *shape, uint32_t n);
void give_value(Reader *r, const Value *v);              /* the same value under another name */
void give_value_as(Reader *r, size_t i, const Value *v); /* as result i */
/* Returns a value that has no name in the file, and a step that computes it. */
Value *between(Reader *r, const char *expression);
void refuse(Reader *r, const char *why);

/* Makes v a constant: a number, items or a weight. */
void read_constant(Reader *r, Value *v, const OnnxTensor *t);
bool is_filled(const OnnxTensor *t); /* all elements are the same number */

/* ---- operands.c ---- */

/* The text of a value as a tensor of its whole shape, also if it is a number. */
const char *whole_ref(Reader *r, const Value *v);
/* The text of an operand that is broadcast: a number stands for its tensor if another input has all
 * its axes. */
const char *operand(Reader *r, size_t i);

/* ---- prelude.c ---- */

const char *prelude_text(Reader *r);      /* definitions of functions for ops of ONNX */
void prelude_print(Reader *r, Text *out); /* those that the steps call */

/* ---- tensors.c ---- */

/* Makes raw_data the elements of a tensor, whatever field or file contains them. */
ampc_status tensor_load(Reader *r, OnnxTensor *t);
int64_t tensor_elements(const OnnxTensor *t); /* -1: damaged */
/* Element i of a loaded tensor. */
int64_t tensor_int(const OnnxTensor *t, int64_t i);
double tensor_real(const OnnxTensor *t, int64_t i);
bool onnx_is_float(int32_t type);
const char *type_word(int32_t type); /* "f32"; NULL: a type that jobs lack */
/* *wide: it is AMPC_F32 of doubles. */
ampc_dtype tensor_type(const OnnxTensor *t, bool *wide);
ampc_dtype dtype_of(int32_t type, bool *wide);
int32_t type_of_dtype(ampc_dtype type); /* a type of ONNX */

/* ---- members.c ---- */

/* Makes the layer of the node at work and returns its reference, "#5". weight[i] is its tensor
 * called name[i] ("weight"); NULL: absent. Without a path in the name of weight[0], the layer is
 * called by `stem`. */
const char *layer(Reader *r, const char *stem, const char *constructor, Value *const *weight,
                  const char *const *name, uint32_t n);
/* Whether the tensor is a weight of a layer by its name: "layer1.0.conv1.weight". */
bool names_layer(const Value *v);
/* Returns the text of a weight: "$12", or "$12.t()" if it is a transposed one. Makes its Parameter
 * or Buffer, and the step that reads it, if they are missing. */
const char *weight_ref(Reader *r, Value *v);

/* ---- kinds.c ---- */

/* What a tensor in PyTorch's list is: a parameter, a buffer, a buffer that no state_dict has, a
 * constant of forward(); in the older exporter's, a parameter or a buffer. */
extern char listed_parameter, listed_buffer, listed_temporary, listed_constant, listed_state;
void list_tensors(Reader *r); /* fills r->listed */
bool in_state_dict(const void *listed);
/* Whether the exporter named the tensor, not the net. */
bool is_made_up(Reader *r, const char *name);
/* Whether exporters may store the tensor once for several layers because their numbers are equal,
 * as in a new net. A matrix that several layers have is a tied weight. */
bool stored_once(const OnnxTensor *t);
void find_places(Reader *r); /* fills r->places */
/* The inputs that are weights of a layer: bit i is input i. *stem: what such a layer without a name
 * is called. 0: the op is no layer. */
unsigned weight_inputs(const char *op, const char **stem);
enum { CELL_INPUTS = 14 }; /* of recurrent layers */
/* Whether a value goes to a recurrent layer as its weight, through ops that move elements. */
bool feeds_cells(Reader *r, const char *name);
/* Fills r->trained with names that are separated by commas. */
ampc_status name_trained(Reader *r, const char *names);
/* What the tensor of v is taken for. */
TensorKind kind_of_tensor(Reader *r, const Value *v);

/* ---- scopes.c ---- */

/* Returns the modules around the node at work, from the outermost on, which is the whole net. Each
 * is inside the one before. */
Scopes scopes_of(Reader *r);
const char *scope_path(Reader *r);                      /* the path of the last one */
bool path_within(const char *path, const char *around); /* also if they are equal */
const char *path_parent(Reader *r, const char *path);
/* Makes a path of names that a job may have. */
const char *path_clean(Reader *r, const char *path);
const char *name_clean(Reader *r, const char *name, const char *missing);
