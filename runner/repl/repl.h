/* A session of `amp repl`: what its files share.
 *
 * Note [how a session grows]
 * The program is the job's file and, in order, the inputs that were taken; a later declaration
 * takes the place of an earlier one (ast_merge). Each change is a compile of the whole program, a
 * few milliseconds; what costs time is building kernels, and a kernel whose text is known but for
 * the names of its variables is not built again (kernels.c). The running state (weights,
 * moments, counters) lives in a runtime of the last program that ran. When a newer program is to
 * run, a new runtime takes over what has the same path and shape (carry.c). So nothing is
 * built before it is needed, and a change that does not compile changes nothing. */
#pragma once
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "compiler/base/names.h"
#include "runner/jit/jit.h"

typedef struct Compiled { /* a program that compiled; freed with its last user */
  Compile *c;
  uint32_t users;
  Jit *jit; /* on a GPU, from when it was first to run: all its kernels */
} Compiled;

typedef struct Part { /* one text of the program; belongs to the session's arena */
  const char *name, *text;
  uint32_t size;
} Part;

typedef VEC(Part) Parts;
typedef VEC(Assignment) Assignments;

typedef struct Kernels Kernels; /* kernels.c */

typedef struct Feed { /* the open data of a block */
  ampc_batches *batches;
  Compiled *from; /* whose tables it reads */
  uint64_t seed;  /* that it was opened with */
} Feed;

typedef struct Losses { /* of every step trained in this session */
  double *at;           /* malloced */
  size_t n, cap;
} Losses;

enum { INPUT_LIMIT = 1 << 24 }; /* bytes of one input */

typedef struct Repl {
  Arena *arena;             /* texts and settings of the whole session */
  Options given;            /* as the command line had them */
  Options options;          /* as they are now: :const, :precision and the like change them */
  const char *device, *job; /* path of the job, or NULL */
  const char *data_dir;
  bool interactive;  /* stdin and stdout are a terminal */
  bool failed, quit; /* a mistake was told; :quit was said */
  bool seed_given;
  uint64_t seed;
  uint32_t n_inputs; /* so far; the next is called <n_inputs + 1> in messages */

  Part file;            /* the job's; text NULL: there is none */
  Parts declared, said; /* inputs: declarations; statements */
  Assignments sets;     /* settings that are data */

  Compiled *latest; /* NULL: the program does not compile as it stands */
  Compiled *live;   /* what rt runs; NULL before anything ran */
  ampc_runtime *rt;
  Kernels *kernels; /* owned, as are rt and feeds */
  Feed *feeds;      /* one a block of `live` */

  ampc_data_position position; /* of the next step */
  int64_t per_epoch;           /* batches of an epoch when it was set; 0: not known */
  int64_t steps;               /* attempted since the weights were made */
  Losses losses;
  char edits[64]; /* folder of the kernels that are being edited; empty: none */
} Repl;

/* ---- repl.c ---- */
/* A mistake of the user's or of the machine's: one line on stderr; the session goes on. Always
 * false. */
bool repl_error(Repl *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool repl_check(Repl *r, ampc_status status); /* tells ampc_last_error unless it is AMPC_OK */

/* ---- input.c: lines ---- */
typedef struct Input Input;
Input *input_open(Repl *r);
/* The next whole input, valid until the next call; NULL at the end. */
const char *input_next(Input *in, size_t *out_size);
void input_close(Input *in);
bool input_interrupted(void); /* since input_calm */
void input_calm(void);

/* ---- complete.c ---- */
/* What may stand where `text` ends; *out_start is where the word begins that they replace. */
void complete(Repl *r, Arena *arena, const char *text, size_t size, size_t *out_start,
              NameVec *out);

/* ---- program.c ---- */
typedef struct Request {  /* which compile */
  const char *target;     /* NULL: the session's */
  const char *dump_after; /* or NULL */
  const char *watch;      /* or NULL; then train blocks alone are compiled */
  const char *precision;  /* in place of the session's; or NULL */
  const Part *input;      /* statements to add; then blocks and optimizers are left out */
  const Options *infer;   /* its infer_block and infer_inputs, alone; or NULL */
  bool alone;             /* those that were typed before `input` are left out, too */
  bool quiet;             /* messages are not shown */
  bool probe;             /* every step looks at all values */
} Request;
/* NULL after messages. */
Compiled *program_compile(Repl *r, const Request *q);
/* The session's text as one tree, nothing compiled; `file` has the declarations of the job's file
 * alone, source 0. NULL after messages. */
Compile *program_parse(Repl *r, Ast *file);
Compiled *compiled_keep(Compiled *p);
void compiled_drop(Compiled *p); /* NULL is fine */
/* The job's file; typed declarations are dropped. False: it cannot be read, all is as it was. */
bool program_open(Repl *r, const char *path);
bool program_input(Repl *r, const char *text, size_t size);
/* -D and --set of the session; a change that does not compile is taken back. */
bool program_const(Repl *r, const char *name, const char *value);
bool program_setting(Repl *r, const char *key, const char *value);
void program_as_given(Repl *r); /* -D and --set: those of the command line for its job, else none */
Assignment *program_set_of(const Repl *r, const char *key); /* what :set said of it; or NULL */
/* The program as it stands, or NULL after its messages. */
Compiled *program_latest(Repl *r);

/* ---- kernels.c: built kernels, by content ---- */
Kernels *kernels_create(void);
void kernels_free(Kernels *k);
/* Fills in c->program->kernels. Kernels of `running` (may be NULL) stay loaded; others, whose
 * program does not run any more, may go. */
ampc_status kernels_load(Kernels *k, Compile *c, const ampc_program *running);
/* Replaces the text of a kernel of this text (emit_kernel) by that of the file at `path`. False: it
 * does not build. */
bool kernels_edit(Kernels *k, Compile *c, uint32_t kernel, const char *path, const char *text,
                  size_t size);
/* Tells of edited texts that the program has no place for any more, and drops them. */
void kernels_check_edits(Kernels *k, Compile *c);
bool kernels_is_edited(const Kernels *k, Compile *c, uint32_t kernel);

double number_of(const char *value); /* of a value that :set has taken; state.c */

/* ---- live.c ---- */
bool live_ready(Repl *r); /* r->rt runs the latest program; false after a message */
void live_close(Repl *r); /* weights and all */
/* A runtime of another program with the state of the live one. `as`: p's program, perhaps with
 * fewer commands; NULL: as it is. It must outlive the runtime. */
ampc_status live_twin(Repl *r, Compiled *p, const ampc_program *as, ampc_runtime **out);
/* Runs a train block of the twin on the next batch, which stays the next. */
ampc_status live_try_batch(Repl *r, ampc_runtime *twin, uint32_t block, int64_t *out_samples);

/* ---- carry.c: parameters, buffers, optimizer state, counters and scaler of `from` ---- */
ampc_status carry(ampc_runtime *from, ampc_runtime *to, uint32_t *out_kept);
/* What hangs on evaluations; after :set was applied, for it has settings that were lowered. */
ampc_status carry_judged(ampc_runtime *from, ampc_runtime *to);
/* Infer blocks read the averages of weights where an optimizer keeps them, and `to` has no
 * optimizers: it gets them as its weights. `from` NULL: there are none. */
ampc_status carry_averages(ampc_runtime *from, ampc_runtime *to);

/* ---- state.c, resume.c ---- */
bool state_load(Repl *r, const char *path); /* a checkpoint; false after a message */
/* Before the first step: says so where the job names a checkpoint that is there. False after a
 * message: the program cannot run. */
bool resume_remind(Repl *r);

/* ---- train.c ---- */
bool train_steps(Repl *r, int64_t n); /* 0: to the end of the job */
/* The train block of the next step with its data, opened on first use, at that step's batch. */
typedef struct Next {
  uint32_t block;
  ampc_batches *batches;
  int64_t per_epoch, step; /* steps of an epoch; that of the block */
  int64_t n_batches;       /* of an epoch */
} Next;
ampc_status feed_next(Repl *r, uint32_t block, Next *out);
/* The batch that its step begins with; a step has `together` of them, the last of an epoch fewer.
 */
ampc_data_position position_at(const Next *n, int64_t together);
ampc_status feed_at(Repl *r, uint32_t block, ampc_data_position at, ampc_batches **out);
void feeds_move(Repl *r, Compiled *to); /* keeps what the next program reads the same way */
void feeds_close(Repl *r);
/* The train block of the next step; false: there is none. */
bool train_block(const Repl *r, const ampc_program *p, uint32_t *out);

/* ---- print.c: tensors as text ---- */
typedef struct HostTensor {
  ampc_dtype dtype;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK];
  int64_t elements;
  double *at;
  int64_t *whole; /* of i64, which a double does not hold: the same elements, freed with `at` */
} HostTensor;
/* `tensor.at` is to be freed. */
ampc_status tensor_read(ampc_runtime *rt, ampc_ref place, ampc_dtype dtype, uint32_t rank,
                        const int64_t *dim, HostTensor *out);
/* What belongs to a parameter in a space, in the order of its shape. */
ampc_status tensor_read_param(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              HostTensor *out);
void tensor_print(const HostTensor *t); /* values, abbreviated, and the type */
void tensor_print_range(
    const HostTensor *t); /* least, greatest, mean, deviation, what is not finite */

/* ---- plot.c ---- */
void plot_curve(const double *at, size_t n, const char *title);

/* ---- value.c: expressions ---- */
/* The outputs of a block: one, or those of a tuple. */
bool outputs_print(Repl *r, ampc_runtime *rt, uint32_t block, bool range);
bool value_run(Repl *r, Compiled *p);       /* prints what its bodies answer */
bool value_show(Repl *r, const char *text); /* and its range, and why it has its type */

/* ---- lines.c: two texts line by line ---- */
/* What a line is compared by, into `out` of the line's size + 1; and how it is shown. */
typedef void LineKey(const char *line, size_t n, char *out);
/* Lines that differ, as - and +; false: none does. `shown` of lines that match may differ too. */
bool diff_lines(const char *a, const char *b, LineKey *key, LineKey *shown);
