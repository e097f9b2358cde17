/* The words of templates/<file>.cu, and the state of the template that is being printed. */
#pragma once
#include "compiler/base/embedded.h"
#include "compiler/command/walk.h"
#include "compiler/graph/param_parts.h"
#include "runtime/plan/conv_columns.h"
#include "compiler/kernel/kernel_parts.h"

/* The shape [outer, length, inner]: Note [along] in along.c */
typedef struct Along {
  int64_t outer, length, inner, ordered;
} Along;

typedef struct Pick {
  long long outer, size, inner; /* x is [outer, size, inner] */
  long long places;             /* elements of the index along the axis */
  long long channels, taps;     /* of weighted sums: lines of x that share an index, terms */
  /* how the sums are divided. tile: columns of a tile. A part has `rows` adjacent rows (CPU), or
   * every step-th row (GPU). */
  long long parts, tiles, tile, rows, step;
} Pick;

typedef struct Template {
  Kernel *k;
  const Node *n;
  const OpInfo *op;         /* op of n; NULL: a template of a convolution */
  int64_t count;            /* elements that the kernel walks */
  ImageDims image, results; /* ops of images: sizes of the images, and of the windows on them */
  WindowWalk windows;       /* ops of windows */
  TileWalk walk;            /* ops of tiles */
  Along along;              /* ops along an axis */
  Pick pick;                /* ops with an index */
  ParamParts parts;         /* ops of a group of parameters */
  Chain chain;              /* the elementwise nodes of the input whose element i is available */
  const ampc_conv *conv;    /* the convolution whose columns these are, else NULL */
  ampc_conv_kind asked;     /* the planned kind; conv has a gradient of images as FORWARD, of dy */
  ConvColumns columns;      /* the columns of `conv` */
} Template;

/* ---- lines: lines.c ---- */

typedef struct TemplateLine {
  const char *file;       /* "metric.cu" */
  uint32_t number;        /* counted from 1 */
  const char *text, *end; /* without its '\n' */
  /* the line `$lines name` that inserts this line, or NULL; its marks also apply here */
  const struct TemplateLine *in;
  int indent; /* columns by which it is moved */
} TemplateLine;
typedef struct TemplateLines {
  TemplateLine **at;
  uint32_t n, cap;
  Arena *arena;
  const EmbeddedFile *own;
} TemplateLines;
extern const char template_shared[]; /* "update.cu" */
/* Adds the lines of the op, whose file is `own`, or the lines of the template of a convolution. */
void template_read(TemplateLines *out, const EmbeddedFile *own);
const EmbeddedFile *template_file(const OpInfo *op);
const EmbeddedFile *template_tensor_file(const OpInfo *op); /* for tensor cores */
const EmbeddedFile *template_step_file(const OpInfo *op);   /* for one query */
const char *template_begin(const EmbeddedFile *file); /* returns the text after its first comment */

typedef struct Mark { /* @word or @!word */
  const char *word;
  size_t n;
  bool wanted;
} Mark;
bool mark_next(const char **s, Mark *out);       /* reads the next mark of a line's beginning */
const char *line_text(const TemplateLine *line); /* returns the text after the marks */
/* True if the line uses the name, as an identifier or as a word ($out); for lr_at also as $lr. */
bool line_uses(const TemplateLine *line, const char *name);
_Noreturn void template_broken(const TemplateLine *line, const char *word, size_t n,
                               const char *what);

/* ---- words: words.c ---- */

/* True if @word holds: a row of the table is true, an input is given, an attribute is not 0, or the
 * group has a flag. */
bool word_holds(Template *t, const char *word, size_t n);
/* Returns the text for $word: a row, an input or an attribute; NULL if it has printed the line. */
const char *word_text(Template *t, const char *word, size_t n);
/* Ends the program with a message that names the line, if the file has a word that is unknown for
 * templates of t's op, or of convolutions. */
void template_check(Arena *a, Template t, const EmbeddedFile *file);

/* ---- what rows of the table ask ---- */

int64_t store_inner(const Template *t);
const char *number_text(const Template *t, int64_t v);
const char *input_text(const Template *t, uint32_t i);
const char *attr_text(const Template *t, uint32_t i);
const Optimizer *own_optimizer(const Template *t);
const ParamGroup *own_group(const Template *t);

bool has_attr(const OpInfo *op, const char *name);

/* file.c */
void put_template(Template *t, const EmbeddedFile *file);
bool is_first_group(const Template *t);
bool has_any_sign(const Template *t, uint32_t moment);
bool has_space(const Template *t, ampc_space space);
bool has_role(const Template *t, ArgRole role);
const char *put_parameters(Template *t);
int64_t partials_of(const Template *t);
int64_t part_size(const Template *t);

/* update.c */
const char *put_constants(Template *t); /* the formula of an optimizer: before the loop, in it */
const char *put_formula(Template *t);
/* True if the formula reads the setting whose argument has this name: "beta1_at". */
bool formula_reads(const Template *t, const char *argument);

/* windows.c */
Value windows_result(const Template *t, bool argmax);
const char *windows_type(const Template *t, bool argmax);
int64_t windows_reach(const Template *t, const char *kernel, const char *dil, const char *stride);
const char *put_operands(Template *t, uint32_t input);
const char *put_values(Template *t);
const char *windows_value(const Kernel *k, const Chain *ch, uint32_t input); /* returns element j */

/* along.c */
Along along_of(const Kernel *k, const Node *n);
int64_t threads_of_row(Along a);
int64_t padded_length(int64_t length);

/* pick.c */
bool is_pick(const OpInfo *op);
Pick pick_of(const Kernel *k, const Node *n);

/* attention.c */
/* True if the mask has numbers, or bools */
bool attention_mask_is(const Template *t, bool numbers);
bool attention_gives(const Template *t, int64_t of);
const char *attention_stored(const Template *t); /* the type of the results */
const char *attention_out(const Template *t, int64_t of);
Access attention_place(const Template *t, uint32_t input);
int64_t attention_group(const Template *t);
const char *attention_head(const Template *t, uint32_t input);
const char *attention_mask_place(const Template *t);
const char *attention_key_feature(const Template *t);
int64_t attention_key_row(const Template *t);
const char *attention_key_text(const Template *t, const char *key);
const char *attention_from(const Template *t, uint32_t input);
bool attention_guards(const Template *t);
bool attention_is_whole(const Template *t);
const char *attention_pair_type(const Template *t);
bool attention_draws_in_fours(const Template *t);
const char *attention_least(const Template *t);
int64_t attention_vector(const Template *t, uint32_t input);

/* columns.c */
enum { COLUMNS_FILES = 3 };
extern const char *const columns_file[COLUMNS_FILES];
bool is_strided(const Template *t);
const char *columns_type(ampc_dtype type);
const char *whole_arguments(const Template *t);
const char *columns_arguments(const Template *t);
const char *channel_text(const Template *t);
int64_t whole_row(const ampc_conv *d);
int64_t whole_pixels(const ampc_conv *d);
const char *sizes_text(const Template *t, const int64_t *size);
int64_t axis_size(const Template *t, const int64_t *size, uint32_t axis);
const char *seen_text(const Template *t, uint32_t axis);
