/* The columns of the op table that hold words: template, precision category, traits. */
#pragma once

/* How an op becomes a command of the plan. */
typedef enum OpTemplate {
  TMPL_loop,     /* no kernel: begins or ends a loop, or is a slice of its input */
  TMPL_leaf,     /* no kernel: parameters, inputs, constants, state */
  TMPL_alias,    /* no kernel: the bytes of its input with another shape */
  TMPL_map,      /* elementwise with broadcasting; `code` is an expression */
  TMPL_move,     /* out[i] = in[f(i)]; `code` is unused, kernel/ contains the index function */
  TMPL_row,      /* reductions along an axis and an expression per element or per row;
                    `code` is a row program, see Note [row programs] in ops.def */
  TMPL_gemm,     /* a matrix product of the vendor library */
  TMPL_conv,     /* a convolution of the vendor library */
  TMPL_file,     /* templates/<op name>.cu: its own kernel text; `code` lists its arguments */
  TMPL_exchange, /* no kernel: members exchange; `code` lists what, as for TMPL_file */
  TMPL_own       /* the job's own text, own.h */
} OpTemplate;

typedef enum OpPrecision {
  /* the categories of autocast */
  PREC_low,     /* inputs are cast to the region's 16-bit type */
  PREC_f32,     /* inputs are cast to f32 */
  PREC_promote, /* inputs are cast to their widest type */
  PREC_none,    /* computes in the types of its inputs; mixed types promote as in PyTorch */
  /* the op determines its type itself: its shape rule sets the type */
  PREC_stored, /* the type of the storage */
  PREC_asked,  /* the type that the program gives */
  PREC_fixed,  /* a type that the op implies */
  PREC_kept,   /* the type of its input */
  PREC_state   /* f32: arithmetic of optimizers, scaler, metrics */
} OpPrecision;

/* Properties of an op that passes query; a row may have several. */
typedef enum OpTrait {
  /* operands and result */
  T_mixes = 1 << 0,      /* all inputs enter one expression, so they must have one type */
  T_condition = 1 << 1,  /* input 0 is a bool that selects; its type does not mix */
  T_compares = 1 << 2,   /* computes in the common type of its inputs and returns a bool: lt */
  T_tests = 1 << 3,      /* computes in floats, but returns a bool: isnan */
  T_as_is = 1 << 4,      /* takes each operand in the type that it has */
  T_to_float = 1 << 5,   /* returns a float for integers, as exp does */
  T_halves = 1ull << 44, /* in 16 bits, calls the functions of templates/maths16.cuh */
  T_copies = 1 << 6,     /* copies a number to its result, so the number must fit: where, cast */
  T_repeats = 1 << 7,    /* the result is input 0, repeated along some axes */
  T_strided = 1 << 8,    /* a move that is a load with other strides, which its readers can do */
  T_image = 1 << 9,      /* input 0 is an image: pass layout makes it channels last */
  T_images = 1 << 10,    /* all inputs of three or more axes are images */
  T_normalizes = 1ull << 40, /* normalizes x, input 0, with the moments in inputs 1 and 2 */
  /* op of batch norm's backward: input 0 is dy, 1 to 3 are inputs 0 to 2 of the T_normalizes op */
  T_norm_back = 1ull << 41,
  T_rectifies = 1ull << 42, /* max(x, 0): positive exactly where x is positive, else 0 */
  T_by_sign = 1ull << 43,   /* uses only whether input 1 is positive */
  T_casts = 1ull << 38,     /* changes only the type */
  T_crosses = 1ull << 39,   /* crosses the border of a loop: Note [loops] in node.h */
  /* element i of the result reads element i / k of an input, which has a k-th of the elements */
  T_blocks = 1ull << 48,
  T_permutes = 1ull << 37, /* reorders the axes of its input */
  T_epilogue = 1 << 21,    /* the library can apply the op when it stores a product: relu */
  /* returns images: gradient of a convolution for its input, transposed convolution */
  T_gives_image = 1 << 22,
  T_gives_weight = 1 << 23, /* returns a weight: gradient of a convolution for its weight */
  T_squashes = 1 << 24,     /* turns logits into probabilities: softmax, sigmoid */
  T_sums = 1 << 27,         /* a sum or mean ($n) over a row; a long row is split into parts */
  /* returns an element of an input, or its negative, or 0: never rounds */
  T_picks = 1 << 28,
  T_places = 1 << 29, /* places its input among zeros: the gradient of a slice */
  /* for tangents, rules/tangent.c; elementwise ops need none of these */
  T_linear = 1ull << 33,     /* linear in input 0 together with variadic and optional inputs */
  T_increasing = 1ull << 45, /* of one input, whose larger values give larger results: exp, sum */
  T_bilinear = 1ull << 34,   /* linear in input 0 and in input 1; an optional input is added */
  T_keeps_sum = 1 << 11,     /* f32 sums of 16-bit operands that may stay f32 */
  /* of settings: its inputs after `step` are the arguments of a def of the layer library */
  T_schedule = 1ull << 47,
  /* leaves */
  T_literal = 1 << 12, /* a number: kernels contain it as a literal, so it has no memory */
  T_varies = 1 << 13,  /* read from state that updates change: loss_scale, counters */
  /* nodes that no other node reads */
  T_kept = 1 << 14,         /* stays in the graph if no node reads it */
  T_effect = 1 << 15,       /* writes state, so it is never removed; see passes/fuse/order.c */
  T_adds = 1 << 16,         /* an effect that only adds to a value that is read later */
  T_running = 1 << 17,      /* updates running statistics, if the optimizer makes its step */
  T_assigns = 1ull << 32,   /* a T_running update that runs even if no loss needs its input */
  T_state_inputs = 1 << 18, /* its inputs (settings, values) are f32 in every region */
  /* geometry */
  T_one_block = 1 << 19, /* its kernel has one block, which combines the results of many */
  T_partials = 1 << 20,  /* each block stores a result; dim[0] is the number of blocks. A scalar: it
                            stores none */
  T_ends_body = 1 << 25, /* an effect that advances the loss scale and the counters */
  T_along =
      1 << 30, /* its template walks rows along `dim`: Note [along] in kernel/template/along.c */
  T_meets = 1ull << 46,  /* threads of its template read or overwrite what others have stored */
  T_windows = 1 << 26,   /* its template reads windows of images, as vectors of channels */
  T_totals = 1ull << 35, /* its template sums: in f32, or in f64 with T_along */
  T_rounds_number = 1ull << 36, /* a number input is first rounded to the type of the tensor */
  T_tiles = 1u << 31            /* its template multiplies 4D operands of any strides in tiles */
} OpTrait;
