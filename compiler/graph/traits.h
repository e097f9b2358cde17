/* What rows of the table of ops say in one word: template, class of precision, traits. */
#pragma once

/* How an op becomes a command of the plan. */
typedef enum OpTemplate {
  TMPL_loop,  /* nothing to run itself: begins or ends a loop, or is a slice of its input */
  TMPL_leaf,  /* nothing to run: parameters, inputs, constants, state */
  TMPL_alias, /* nothing to run: the same bytes under another shape */
  TMPL_map,   /* elementwise with broadcasting; `code` is an expression */
  TMPL_move,  /* out[i] = in[f(i)]; `code` is unused, emit/ knows the index function */
  TMPL_row,   /* reductions along an axis and an expression per element or per row;
                 `code` is a row program, see Note [row programs] in ops.def */
  TMPL_gemm,  /* a matrix product of the vendor library */
  TMPL_conv,  /* a convolution of the vendor library */
  TMPL_file,  /* templates/<op name>.cu: a frame of its own; `code` lists its arguments */
  TMPL_own    /* the job's own text, own.h */
} OpTemplate;

typedef enum OpPrecision {
  /* the categories of autocast */
  PREC_low,     /* inputs are cast to the region's 16-bit type */
  PREC_f32,     /* inputs are cast to f32 */
  PREC_promote, /* inputs are cast to the widest of them */
  PREC_none,    /* computes in the types it meets; mixed ones promote as in PyTorch */
  /* the op says its type itself: its shape rule set it */
  PREC_stored, /* that of the storage */
  PREC_asked,  /* as written in the program */
  PREC_fixed,  /* the op gives it */
  PREC_kept,   /* that of its input */
  PREC_state   /* f32: arithmetic of optimizers, scaler, metrics */
} OpPrecision;

/* What passes ask about an op; a row may have several. */
typedef enum OpTrait {
  /* operands and result */
  T_mixes = 1 << 0,     /* all inputs meet in one expression and must have one type */
  T_condition = 1 << 1, /* input 0 is a bool that chooses: it does not mix with the others */
  T_compares = 1 << 2,  /* computes in the type its inputs meet in and gives a bool: lt */
  T_tests = 1 << 3,     /* computes in floats, though it gives a bool: isnan */
  T_as_is = 1 << 4,     /* takes each operand in the type it has */
  T_to_float = 1 << 5,  /* gives a float for integers, as exp does */
  T_copies = 1 << 6,    /* copies a number into its result: where, cast; it must fit */
  T_repeats = 1 << 7,   /* the result is input 0, repeated along some axes */
  T_strided = 1 << 8,   /* a move that is a load with other strides: its readers can do it */
  T_image = 1 << 9, /* input 0 is an image, which pass layout lays channels last; not its weight */
  T_images = 1 << 10,       /* the same for all inputs of three axes and more */
  T_casts = 1ull << 38,     /* nothing but another type */
  T_crosses = 1ull << 39,   /* crosses the border of a loop: Note [loops] in ir.h */
  T_permutes = 1ull << 37,  /* the axes of its input in another order */
  T_epilogue = 1 << 21,     /* the library can do it as it stores a product: relu */
  T_gives_image = 1 << 22,  /* a convolution's gradient: of the images, or its transpose */
  T_gives_weight = 1 << 23, /* a convolution's gradient: of the weight */
  T_squashes = 1 << 24,     /* makes probabilities of logits: softmax, sigmoid */
  T_sums = 1 << 27,   /* adds up, over $n where its code has it: a long one is cut into parts */
  T_picks = 1 << 28,  /* gives one of its inputs' elements, its negative or 0: no new digits */
  T_places = 1 << 29, /* puts its input at a place among zeros: the gradient of a slice */
  /* tangents: rules/tangent.c; elementwise ops need none of these */
  T_linear = 1ull << 33, /* linear in input 0, with which variadic and optional inputs are joined */
  T_bilinear = 1ull << 34, /* linear in input 0 and in input 1; an optional input is added */
  T_keeps_sum = 1 << 11,   /* sums whose f32 result may be kept though the operands have 16 bits */
  /* leaves */
  T_literal = 1 << 12, /* a number: a literal in kernels, without bytes */
  T_varies = 1 << 13,  /* read from state that updates change: loss_scale, counters */
  /* nodes that nobody reads */
  T_kept = 1 << 14,         /* stays in the graph though nobody reads it */
  T_effect = 1 << 15,       /* writes state: never removed; see passes/order.c */
  T_adds = 1 << 16,         /* an effect that only adds to what is read later */
  T_running = 1 << 17,      /* updates running statistics, if the optimizer makes its step */
  T_assigns = 1ull << 32,   /* such an update that is made whether a loss needs its input or not */
  T_state_inputs = 1 << 18, /* its settings and values are f32 whatever the program computes in */
  /* geometry */
  T_one_block = 1 << 19, /* its kernel has one block, which joins what many have left */
  T_partials = 1 << 20,  /* each block leaves a result: their number is dim[0] */
  T_ends_body = 1 << 25, /* an effect that moves the scale and the counters on */
  T_along = 1 << 30, /* its template walks rows along `dim`: Note [along] in emit/kernel_along.c */
  T_windows = 1 << 26,          /* its template reads images by windows, as vectors of channels */
  T_totals = 1ull << 35,        /* its template adds up: in f32, with T_along in f64 */
  T_rounds_number = 1ull << 36, /* a number input is rounded to the tensor's type first */
  T_tiles = 1u << 31 /* its template multiplies in tiles operands of four axes with any strides */
} OpTrait;
