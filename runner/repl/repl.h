/* A session of `amp repl`: the types and functions that its files share.
 *
 * Note [how a session grows]
 * The program consists of the job's file and the accepted inputs, in order. A later declaration
 * replaces an earlier one (ast_merge). Each change compiles the whole program, which takes a few
 * milliseconds. Building kernels takes longer, so a kernel is not built again if its text is known
 * except for the names of its variables (kernels.c).
 *
 * The running state (weights, moments, counters) is in the runtime of the last program that ran.
 * Before a newer program runs, a new runtime copies the state that has the same path and shape
 * (runtime/state/saved.h). Kernels are therefore built only when they are needed, and a change that
 * does not compile has no effect. */
#pragma once
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "compiler/base/names.h"
#include "runner/jit/jit.h"
#include "runner/job/input.h"
#include "runtime/train/run.h"

typedef struct Compiled { /* a compiled program; freed with its last user */
  Compile *c;
  uint32_t users;
  Jit *jit; /* on a GPU: all its kernels; NULL before it first runs */
} Compiled;

typedef struct Part { /* one text of the program; stored in the session's arena */
  const char *name, *text;
  uint32_t size;
} Part;

typedef VEC(Part) Parts;
typedef VEC(Assignment) Assignments;

typedef struct Kernels Kernels; /* kernels.c */

typedef struct Feed { /* the open data of a block */
  ampc_batches *batches;
  Compiled *from; /* the program whose tables it reads */
  uint64_t seed;  /* the seed with which `batches` was opened */
} Feed;

typedef struct Losses { /* the loss of every step trained in this session */
  double *at;           /* allocated with malloc */
  size_t n, cap;
} Losses;

enum { INPUT_LIMIT = 1 << 24 }; /* bytes of one input */

typedef struct Past { /* what the session had before a change; :undo restores it */
  const char *change; /* for people: "<3> module Net() {" */
  Options options;
  Assignments sets;
  uint32_t declared, said; /* numbers of inputs */
  const char *key; /* a setting in device memory whose number changed; NULL: none, or not running */
  float value;     /* its number before */
} Past;

typedef struct Repl {
  Arena *arena;             /* texts and settings of the whole session */
  Options given;            /* options from the command line */
  Options options;          /* current: :const, :precision and :set change them */
  const char *device, *job; /* path of the job, or NULL */
  const char *data_dir;
  bool interactive;  /* stdin and stdout are a terminal */
  bool failed, quit; /* failed: an error was printed; quit: :quit was given */
  bool seed_given;
  uint64_t seed;
  uint32_t n_inputs; /* number of inputs so far; messages name the next one <n_inputs + 1> */

  Part file;            /* the job's file; text NULL: no job */
  Parts declared, said; /* accepted inputs: declared: declarations; said: statements */
  Assignments sets;     /* values of :set for settings in device memory */
  VEC(Past) pasts;      /* one per change of the program, the latest last */

  Compiled *latest; /* NULL: not compiled, or it has errors */
  Compiled *live;   /* the program of rt; NULL before the first run */
  ampc_runtime *rt;
  Kernels *kernels; /* owned, like rt and feeds */
  Feed *feeds;      /* one per block of `live` */

  ampc_data_position position; /* position of the next step */
  int64_t per_epoch;           /* batches of an epoch when `position` was set; 0: unknown */
  int64_t steps;               /* steps attempted since the weights were initialized */
  Losses losses;
  char edits[64]; /* folder of edited kernels; empty: no folder yet */
} Repl;

/* ---- repl.c ---- */
/* Prints an error on stderr; the session continues. Always returns false. */
bool repl_error(Repl *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool repl_check(Repl *r, ampc_status status); /* prints ampc_last_error unless AMPC_OK */

/* ---- complete.c ---- */
/* A function of InputStyle; its context is the session. */
void complete(void *repl, Arena *arena, const char *text, size_t size, size_t *out_start,
              NameVec *out);

/* ---- program.c ---- */
typedef struct Request {  /* what to compile, and how */
  const char *target;     /* NULL: the session's target */
  const char *dump_after; /* or NULL */
  const char *watch;      /* value to output; only train blocks are compiled; or NULL */
  const char *precision;  /* replaces the session's precision; or NULL */
  const Part *input;      /* statements to add; blocks and optimizers are left out; or NULL */
  const Options *infer;   /* with infer_block and infer_inputs: only that block; or NULL */
  bool alone;             /* statements before `input` are left out, too */
  bool quiet;             /* prints no messages */
  bool probe;             /* every step has probes */
} Request;
/* Compiles a program; NULL after messages. */
Compiled *program_compile(Repl *r, const Request *q);
/* Compiles the program of the session with probes: a CompileProbed whose context is the session. */
Compile *program_compile_probed(void *repl, const char *precision);
/* Parses the session's texts into one tree, without compiling it. `file` gets only the declarations
 * of the job's file, source 0. NULL after messages. */
Compile *program_parse(Repl *r, Ast *file);
Compiled *compiled_keep(Compiled *p);
void compiled_drop(Compiled *p); /* NULL is allowed */
/* Reads the job's file; `keep`: typed declarations stay. False: the file cannot be read or has
 * errors of syntax, and nothing has changed. */
bool program_open(Repl *r, const char *path, bool keep);
bool program_input(Repl *r, const char *text, size_t size);
/* Whether a variable of the session hides data of the next batch that the expression names: `x`. */
bool program_hides_data(Repl *r, const char *text);
/* Change -D and --set of the session. A change that does not compile is undone. */
bool program_const(Repl *r, const char *name, const char *value);
bool program_setting(Repl *r, const char *key, const char *value);
void program_as_given(Repl *r); /* resets -D and --set to the command line's values */
Assignment *program_set_of(const Repl *r, const char *key); /* the :set of key, or NULL */
/* Returns the current program, compiled if necessary; NULL after messages. */
Compiled *program_latest(Repl *r);

/* Makes the next program_latest compile. */
void program_forget(Repl *r);

/* ---- undo.c ---- */
/* Returns the state before a change, with copies of all that the change may write to. The caller
 * adds it to r->pasts, or restores it if the change is refused. */
Assignment *assignments_copy(Arena *arena, const Assignment *from, uint32_t n);
Past past_of(Repl *r, const char *change);
void past_restore(Repl *r, const Past *past);
const char *input_shown(Repl *r, const Part *input); /* "<3> module Net() { ..", for messages */

/* ---- kernels.c: built kernels, by content ---- */
Kernels *kernels_create(void);
void kernels_free(Kernels *k);
/* Fills in c->program->kernels. Kernels of `running` (may be NULL) stay loaded; others may be
 * unloaded. */
ampc_status kernels_load(Kernels *k, Compile *c, const ampc_program *running);
/* Replaces the emitted text of a kernel by `text`, which was read from the file at `path`. False:
 * it does not build. */
bool kernels_edit(Kernels *k, Compile *c, uint32_t kernel, const char *path, const char *text,
                  size_t size);
/* Drops edited texts whose kernel the program no longer emits, with a message for each. */
void kernels_check_edits(Kernels *k, Compile *c);
bool kernels_is_edited(const Kernels *k, Compile *c, uint32_t kernel);

double number_of(const char *value); /* state.c: the number in an accepted value of :set */

/* ---- live.c ---- */
bool live_ready(Repl *r); /* makes r->rt run the latest program; false after a message */
void live_close(Repl *r); /* drops weights and all other state */
/* Makes a twin: a second runtime, of program p, with the state of the live one. `as`: a copy of p's
 * program with fewer commands, which must outlive the runtime; NULL: p's program. */
ampc_status live_twin(Repl *r, Compiled *p, const ampc_program *as, ampc_runtime **out);
/* Runs a train block of the twin on the next batch, without advancing the session. */
ampc_status live_try_batch(Repl *r, ampc_runtime *twin, uint32_t block, int64_t *out_samples);

/* ---- state.c, resume.c ---- */
bool state_load(Repl *r, const char *path); /* loads a checkpoint; false after a message */
/* Prints a reminder, before the first step, if the checkpoint of the job's resume= exists. False
 * after a message: the program cannot run. */
bool resume_remind(Repl *r);

/* ---- train.c ---- */
bool train_steps(Repl *r, int64_t n); /* 0: to the end of the job */
/* Reads a number of steps: 100, 1_000, 1e6, 10k or 2M. False after a message. */
bool steps_read(Repl *r, const char *arg, int64_t most, int64_t *out);
/* Finds the train block of the next step; false: no train block is left. */
bool train_block(const Repl *r, const ampc_program *p, uint32_t *out);

/* ---- feed.c ---- */
/* Opens the data of a block of the live program, at any position. A function of RunCalls. */
ampc_status feed_open(void *repl, uint32_t block, ampc_batches **out);
/* Opens a run of the live program on `rt`, which has its state. The run reads the session's data
 * and stands where the session stands. run_step moves the data, but not the session. Call run_close
 * also after a failure. */
ampc_status feed_run(Repl *r, ampc_runtime *rt, Run *out);
void feeds_move(Repl *r, Compiled *to); /* keeps data that the next program reads the same way */
void feeds_close(Repl *r);
/* ---- print.c: tensors as text ---- */
typedef struct HostTensor {
  ampc_dtype dtype;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t elements;
  double *at;
  int64_t *whole; /* i64: the exact elements; freed with `at` */
} HostTensor;
/* Reads a tensor. The caller frees out->at. */
ampc_status tensor_read(ampc_runtime *rt, ampc_ref place, ampc_dtype dtype, uint32_t rank,
                        const int64_t *dim, HostTensor *out);
/* Reads a parameter's values from a space, in the order of its shape. */
ampc_status tensor_read_param(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              HostTensor *out);
void tensor_print(const HostTensor *t); /* values, abbreviated, and type */
/* Prints minimum, maximum, mean, deviation and the number of elements that are not finite. */
void tensor_print_range(const HostTensor *t);
typedef enum Look {
  LOOK_value,
  LOOK_range,
  LOOK_data,   /* of data: a picture if the shape is one of several images */
  LOOK_sample, /* of one sample: a picture if the shape is one of an image */
  LOOK_picture,
  LOOK_bars
} Look;
/* Prints a tensor: values, from LOOK_range on with their range, or a picture, or a histogram. False
 * after a message. */
Look look_of_data(const char *text); /* LOOK_sample for x[3], else LOOK_data */
bool tensor_look(Repl *r, const HostTensor *t, Look look);

/* ---- show.c ---- */

/* Whether the text is or begins with data of a train block: image, image[3]. */
bool is_data(const Repl *r, const char *text);

/* ---- picture.c ---- */
/* Draws images: [h, w], [c, h, w], [h, w, c], or several of these along a first axis. Returns false
 * if t has no such shape. `likely`: only if it has the shape that images of data usually have. */
bool picture_draw(const HostTensor *t, bool likely);

/* ---- value.c: expressions ---- */
/* Prints the outputs of a block: one value, or the values of a tuple. */
bool outputs_print(Repl *r, ampc_runtime *rt, uint32_t block, Look look);
/* Prints a value that is known at compile time. False after a message: it cannot be drawn. */
bool answer_print(Repl *r, const Compile *c, Look look);
bool value_run(Repl *r, Compiled *p); /* runs p and prints its values */
/* Compiles, to pass precision, a value that a train block computes; NULL, silently: none does. */
Compiled *value_watched(Repl *r, const char *text);
bool value_compiles(Repl *r, const char *text); /* whether it is an expression or a statement */
void value_tell(Repl *r, const char *name);     /* prints "x: f32[3]" */
/* LOOK_range and LOOK_data also print the reason of the type. */
bool value_show(Repl *r, const char *text, Look look);

/* ---- layers.c ---- */
/* Returns the name that is `end`, else the only one that ends with it, at a component:
 * net.fc1.weight for fc1.weight. NULL: none; or several, which *all lists; else *all is NULL. */
const char *path_end(Arena *arena, const NameVec *names, const char *end, const char **all);
/* Does so with the layers and parameters of the latest program: "net.fc1", "net.fc1.weight". */
const char *layer_find(Repl *r, const char *end, const char **all);
/* Returns the name as an expression: net.h[0].weight for net.h.0.weight. */
const char *layer_expression(Arena *arena, const char *name);
/* Prints a layer and the layers in it: type, result, parameters. */
bool layers_print(Repl *r, const char *layer);

/* ---- settings.c ---- */
/* Finds a setting that kernels read from STATE; other settings change the program. */
bool setting_index(const ampc_program *p, const char *key, uint32_t *out);
/* Returns the current value of a key; NULL: only the job's text has it. */
const char *setting_text(const Repl *r, Arena *arena, const char *key);

/* ---- lines.c: two texts line by line ---- */
/* Writes a key of a line to `out`, which has the line's size + 1 bytes. */
typedef void LineKey(const char *line, size_t n, char *out);
/* Prints lines that differ, as - and +. Lines match by `key`; a matching pair is printed if its
 * `shown` keys differ. False: no line was printed. */
bool diff_lines(const char *a, const char *b, LineKey *key, LineKey *shown);
