/* The runtime that ampc's programs link: devices, memory, the step, checkpoints, the training loop.
 *
 * Functions return 0 (AMPC_OK) or a status. After a failure ampc_last_error() says in one line what
 * failed and what to do (ampc_values.h declares both). The status is AMPC_BAD_USAGE if a required
 * pointer is NULL, or if a block, metric or range does not exist. A function that returns a value
 * instead of a status returns 0, false, NULL or "none" for a NULL argument. Objects are the first
 * arguments, outputs the last ones. The caller of a create function frees the result with the
 * matching free function, which accepts NULL. Only one thread at a time may use a runtime. */
#ifndef AMPC_RT_H
#define AMPC_RT_H
#include "ampc_plan.h"
#include "ampc_state.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Programs that use oneDNN refer to this (ampc_program.links), so that they link it. */
extern const int ampc_onednn;
/* The same for tokenizers (ampc_program.texts), in programs that read text. */
extern const struct ampc_texts ampc_texts;

/* ---- a runtime: one program on one device ---- */

/* Creates a runtime, with all spaces zeroed and STATE filled. Does not initialize weights.
 * `device`: "cpu", "cuda" (the first GPU that is free and can run the program), "cuda:1" (that GPU)
 * or "auto" (cuda if there is a GPU). `program` must outlive the runtime. */
ampc_status ampc_create(const ampc_program *program, const char *device, ampc_runtime **out);
void ampc_free(ampc_runtime *rt);
/* Writes the target for which a program must be compiled to run on `device`: "cpu", or "sm_90" for
 * a GPU. For "auto" it is a GPU's target if there is a GPU. */
enum { AMPC_TARGET_ROOM = 16 };
ampc_status ampc_device_target(const char *device, char out[AMPC_TARGET_ROOM]);
/* Sets whether runtimes that this process creates from now on use cuDNN if it is found (default:
 * true). Without cuDNN the program's own kernels compute the same operations. */
void ampc_use_cudnn(bool use);
/* Sets how many threads decode pictures for each block of data that this process opens from now on.
 * 0: one thread per processor, at most 16. The number changes no result. */
enum { AMPC_MOST_DATA_THREADS = 128 };
void ampc_use_data_threads(int64_t n);
const ampc_program *ampc_program_of(const ampc_runtime *rt);
const char *ampc_device_name(const ampc_runtime *rt); /* "cpu", "cuda:0 NVIDIA H200" */

/* Bytes that a runtime holds on its device. `library` counts what is not in the spaces: scratch
 * space of vendors' libraries and, on a GPU, a second half of INPUT and a copy of STATE. */
typedef struct ampc_memory {
  int64_t space[AMPC_SPACE_COUNT], library, total;
} ampc_memory;
ampc_memory ampc_memory_of(const ampc_runtime *rt);
/* Computes ampc_memory without allocating the spaces. The steps of the program must be command
 * lists, because only ampc_create calls step functions. Kernels need not be loaded. On a GPU
 * `library` includes the most that cuDNN can need. */
ampc_status ampc_plan_memory(const ampc_program *program, const char *device, ampc_memory *out);

ampc_status ampc_init_params(ampc_runtime *rt, uint64_t seed); /* masters, copies, zero moments */
/* Loads initial values from the files of the job's `load` clauses, over the randomly drawn ones.
 * Does nothing if the job has no such clause. Changes nothing if a tensor of a file or a parameter
 * is left unmatched: the error then lists them, in several lines. Calls `tell`, which may be NULL,
 * with a line for each file and a warning for values that a type cannot hold. Paths are relative to
 * data_dir. */
typedef void ampc_tell(void *to, bool warning, const char *line);
ampc_status ampc_load_params(ampc_runtime *rt, const char *data_dir, ampc_tell *tell, void *to);
/* Call it before ampc_checkpoint_load and ampc_load_weights: does the same as ampc_load_params if
 * files of this program lack weights, because it has adapters (ampc_param.given); else nothing. */
ampc_status ampc_load_given(ampc_runtime *rt, const char *data_dir, ampc_tell *tell, void *to);
/* Loads all weights from one file that uses the names of the whole program, such as a checkpoint.
 * The file must contain every weight but those that ampc_load_given loads. */
ampc_status ampc_load_weights(ampc_runtime *rt, const char *path, ampc_tell *tell, void *to);
ampc_status ampc_run_step(ampc_runtime *rt, uint32_t block, uint32_t variant); /* asynchronous */
/* Returns the variant of a block for a batch of that many samples. `step` of the run counts from 1
 * and decides which `every` statements run; with 0, which no step has, all of them run. */
uint32_t ampc_variant_at(const ampc_block *b, int64_t samples, int64_t step);
ampc_status ampc_wait(ampc_runtime *rt); /* blocks until the device is done; reports late errors */
int64_t ampc_waits(const ampc_runtime *rt); /* how often the host has blocked on the device */

/* Copies bytes between host memory and a space. The copy is complete when the call returns. */
ampc_status ampc_read(ampc_runtime *rt, ampc_ref from, void *to, int64_t bytes);
ampc_status ampc_write(ampc_runtime *rt, ampc_ref to, const void *from, int64_t bytes);
/* Copy all elements of a parameter, in the order of its shape and in the type that they have in
 * `space`: its weights, its gradients or one of its moments. A buffer is in BUFFER. */
ampc_status ampc_read_param(ampc_runtime *rt, const ampc_param *param, ampc_space space, void *to);
ampc_status ampc_write_param(ampc_runtime *rt, const ampc_param *param, ampc_space space,
                             const void *from);
/* Recomputes the 16-bit copies. Call it after the host has written MASTER. */
ampc_status ampc_refresh_copies(ampc_runtime *rt);

/* Sets the length of schedules without `steps` of their own, unless ampc_set has set it. steps[b]
 * is the total number of steps that block b takes, including those before a resume. */
ampc_status ampc_set_lengths(ampc_runtime *rt, const int64_t *steps);
ampc_status ampc_set(ampc_runtime *rt, const char *setting, double value); /* "opt.lr" */
ampc_status ampc_get_state(ampc_runtime *rt, ampc_state *out);             /* waits */
/* Gets a metric since the last ampc_clear_metrics: sum / count if count is not 0. Waits. */
ampc_status ampc_get_metric(ampc_runtime *rt, uint32_t metric, ampc_metric *out);
/* Gets the statistics of a metric that has any (ampc_metric_desc.statistics), such as the counts of
 * a confusion matrix [true, predicted] and then the number of labels that are not a class.
 * Waits. */
ampc_status ampc_get_statistics(ampc_runtime *rt, uint32_t metric, double *out);
ampc_status ampc_clear_metrics(ampc_runtime *rt, uint32_t block);

/* ---- what step functions call ---- */

/* These functions return nothing, so an emitted step is a flat list of calls. The runtime keeps the
 * first failure; later calls of the step do nothing, and ampc_run_step or ampc_wait returns it.
 * ampc_create calls each step function once before the spaces hold data: then products,
 * convolutions and attention only prepare the libraries, and all other calls do nothing. */
/* Returns the base address of each space. INPUT moves with each batch, so a step must not keep its
 * address. */
char *const *ampc_spaces(ampc_runtime *rt);
/* Returns the part of a step to run: with several members, a step has parts between exchanges. The
 * member is counted from 0 in the whole program; operands of shared spaces depend on it. */
uint32_t ampc_step_part(const ampc_runtime *rt);
int64_t ampc_step_member(const ampc_runtime *rt);
/* Whether this is the member of the process that changes what its members share. */
bool ampc_step_once(const ampc_runtime *rt);
void ampc_do_launch(ampc_runtime *rt, uint32_t kernel, uint32_t grid, uint32_t block,
                    void *const *args, uint32_t n_args);
/* Keeps a launch for the next ampc_do_attention, which makes it before that of its own kernel, or
 * not at all if the library computes the attention: ampc_launch.deferred. */
void ampc_do_defer(ampc_runtime *rt, uint32_t kernel, uint32_t grid, uint32_t block,
                   void *const *args, uint32_t n_args);
/* Launches the kernel, unless the device's library computes what `desc` describes. */
void ampc_do_attention(ampc_runtime *rt, const ampc_attention *desc, uint32_t kernel, uint32_t grid,
                       uint32_t block, void *const *args, uint32_t n_args);
void ampc_do_gemm(ampc_runtime *rt, const ampc_gemm *desc, const void *a, const void *b,
                  const void *bias, void *c, void *workspace);
void ampc_do_conv(ampc_runtime *rt, const ampc_conv *desc, void *x, void *w, const void *bias,
                  void *y, void *workspace);
void ampc_do_copy(ampc_runtime *rt, void *to, const void *from, int64_t bytes);
void ampc_do_fill(ampc_runtime *rt, void *to, uint8_t value, int64_t bytes);
/* Exchanges a range with the other members: ampc_exchange. */
void ampc_do_exchange(ampc_runtime *rt, ampc_exchange_kind kind, ampc_exchange_mode mode,
                      ampc_dtype type, int64_t count, bool closing, ampc_space space,
                      int64_t offset);

/* AMPC_GEMM(rt, name, description, pointers...). Error messages use `name`. */
ampc_runtime *ampc_called(ampc_runtime *rt, const char *name); /* returns rt */
#define AMPC_GEMM(rt, name, desc, ...) ampc_do_gemm(ampc_called(rt, #name), &desc, __VA_ARGS__)
#define AMPC_CONV(rt, name, desc, ...) ampc_do_conv(ampc_called(rt, #name), &desc, __VA_ARGS__)

/* AMPC_LAUNCH(rt, kernel index, grid, block, arguments...). At least one argument; each is a
 * pointer or AMPC_NUMBER(n) with n below 2^32. */
#define AMPC_LAUNCH(rt, kernel, grid, block, ...)                                                  \
  do {                                                                                             \
    void *args_[] = {__VA_ARGS__};                                                                 \
    ampc_do_launch(rt, kernel, grid, block, args_, (uint32_t)(sizeof args_ / sizeof *args_));      \
  } while (0)
/* AMPC_DEFER(rt, kernel index, grid, block, arguments...) */
#define AMPC_DEFER(rt, kernel, grid, block, ...)                                                   \
  do {                                                                                             \
    void *args_[] = {__VA_ARGS__};                                                                 \
    ampc_do_defer(rt, kernel, grid, block, args_, (uint32_t)(sizeof args_ / sizeof *args_));       \
  } while (0)
/* AMPC_ATTENTION(rt, name, description, kernel index, grid, block, arguments...) */
#define AMPC_ATTENTION(rt, name, desc, kernel, grid, block, ...)                                   \
  do {                                                                                             \
    void *args_[] = {__VA_ARGS__};                                                                 \
    ampc_do_attention(ampc_called(rt, #name), &desc, kernel, grid, block, args_,                   \
                      (uint32_t)(sizeof args_ / sizeof *args_));                                   \
  } while (0)
#define AMPC_NUMBER(n) ((void *)(uintptr_t)(n))

/* ---- data: where batches come from; runtime/data implements it for the sources of a job ---- */
typedef struct ampc_batches ampc_batches; /* the batches of one block, epoch after epoch */
typedef struct ampc_data_position { /* the position of a run in its data; kept in checkpoints */
  int64_t epoch, batch;             /* batch within the epoch, from 0 */
  int64_t block;                    /* train block, by index in the program */
} ampc_data_position;
typedef struct ampc_data_interface {
  /* Opens the sources of a block and checks headers, shapes, counts and limits. One or more threads
   * prepare batches ahead of time. The same seed gives the same order. */
  ampc_status (*open)(const ampc_program *p, uint32_t block, const char *data_dir, uint64_t seed,
                      ampc_batches **out);
  int64_t (*per_epoch)(const ampc_batches *b); /* number of batches, including a smaller last one */
  ampc_status (*seek)(ampc_batches *b, ampc_data_position to); /* next() continues at `to` */
  /* From the first batch on, next() returns only shares [first, end) of each batch; *out_samples
   * still counts all of it. Without a call these are the shares of all members of the program.
   * Share i of n begins at sample i * samples / n. Each is in the layout of INPUT,
   * ampc_share_bytes() after the one before it. The pointer may be NULL. */
  ampc_status (*share)(ampc_batches *b, int64_t first, int64_t end, int64_t shares);
  /* Gets the next batch, valid until the next call, in the layout of INPUT. *out_base corresponds
   * to the lowest offset of the block's sources. *out_samples is smaller for a kept last batch. */
  ampc_status (*next)(ampc_batches *b, const void **out_base, int64_t *out_samples,
                      ampc_data_position *out_position);
  /* Searches for the cause of a loss that is not finite. True: the block's data has a number that
   * is not finite, or is at least `limit` or at most -limit. Then `text` says where: "sample 17 of
   * x.idx holds nan". The pointer may be NULL: unknown. */
  bool (*find_lost)(const ampc_batches *b, double limit, char *text, size_t size);
  /* Searches for a column of the data that is at least `limit` or at most -limit in most samples.
   * True: `text` says which. The pointer may be NULL. */
  bool (*find_column)(const ampc_batches *b, double limit, char *text, size_t size);
  /* Searches for an order of labels with which a net learns badly, or a metric says little: sorted
   * and not shuffled, or all of one class. True: `text` says which. The pointer may be NULL. */
  bool (*find_sorted)(const ampc_batches *b, char *text, size_t size);
  /* Writes the name of a sample of a batch that next() has returned, such as "cats/1.jpg". Samples
   * are counted in the order of the data. Returns false if the sample has only its number. */
  bool (*sample_name)(const ampc_batches *b, int64_t sample, char *text, size_t size);
  /* Computes mean and deviation of each channel, the first axis of a sample, over all samples of
   * source `source` of the block. Needed only if the job has a layer Standardize. */
  ampc_status (*measure)(const ampc_batches *b, uint32_t source, double *mean, double *deviation);
  void (*close)(ampc_batches *b);
} ampc_data_interface;
extern const ampc_data_interface ampc_data;

/* Copies the next batch of a block to INPUT and runs the block's step on it; asynchronous. For a
 * train block `step` is as in ampc_variant_at. In an eval or infer block it is the number of the
 * batch, from 0: each batch draws its own random numbers. */
ampc_status ampc_run_batch(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t *out_samples);
/* Says whether the next body is the first, or the last, of its step, for callers that run the
 * bodies of a train block with `accumulate` one by one. Gradients are summed until the last body.
 * Without this call each body is a step of its own. Asynchronous; writes only changes. */
ampc_status ampc_set_group(ampc_runtime *rt, bool first, bool closes);
/* Runs step `step` of the run, counted from 1, in a train block. The step consists of the next
 * `bodies` batches, and their gradients are summed before the optimizers update anything.
 * *out_samples counts the samples of all these batches. If the scaler has `replay`, the call waits
 * for the step, and runs it again while it overflows and the scale can still be lowered. */
ampc_status ampc_run_group(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t bodies, int64_t *out_samples);

/* ---- a loop of your own: train and eval blocks whose sources are `given` ---- */
/* Creates a runtime, draws the initial weights from `seed` and loads the files of the job's `load`
 * clauses, in data_dir, over them. Fails if the length of a schedule is not known. To begin with
 * trained weights, call ampc_infer_open or ampc_loop_load. */
ampc_status ampc_loop_open(const ampc_program *program, const char *device, uint64_t seed,
                           const char *data_dir, ampc_runtime **out);
/* Runs a block on a batch of `samples` samples: as many as the block has (ampc_block.batch), or its
 * smaller last batch. in[i] holds the elements of source i, in the host's memory; it may be reused
 * when the call returns. A train block runs one step, or one of the `accumulate` bodies of a step.
 * An eval block adds to its metrics. On a GPU the call does not wait for the step. */
ampc_status ampc_loop_run(ampc_runtime *rt, uint32_t block, int64_t samples, const void *const *in);
/* The same with samples in the memory of the runtime's GPU, which earlier work of `stream` (a
 * CUstream or cudaStream_t of the primary context) writes. Later work of the stream waits until the
 * samples are copied. Labels and indices are not checked. On the CPU the samples are in the host's
 * memory. */
ampc_status ampc_loop_run_on(ampc_runtime *rt, uint32_t block, int64_t samples,
                             const void *const *in, void *stream);
/* Gets the values of the block's metrics (ampc_block.n_metrics) since the last call, as means over
 * their samples; NaN without a sample. Then begins new ones. Waits. For a train block it fails
 * (AMPC_RUN_FAILED) after a loss or gradient that was not finite, if the job has no loss scaling:
 * no update follows it. */
ampc_status ampc_loop_metrics(ampc_runtime *rt, uint32_t block, double *out);
/* Saves a checkpoint after a whole step, and continues from one. It counts the batches so far. With
 * the samples that would have come next, training ends with the same bits as without the stop.
 * Values of ampc_set are not in it. */
ampc_status ampc_loop_save(ampc_runtime *rt, const char *path);
ampc_status ampc_loop_load(ampc_runtime *rt, const char *path);

/* ---- infer blocks ---- */
/* Creates a runtime and loads its weights: from the file `weights` (ampc_load_weights) or, if it is
 * NULL, from the files that the program's models load, in data_dir. A program without parameters
 * needs neither. `tell` may be NULL. */
ampc_status ampc_infer_open(const ampc_program *program, const char *device, const char *weights,
                            const char *data_dir, ampc_tell *tell, void *to, ampc_runtime **out);
/* Runs an infer block. in[i] holds the elements of argument i, and out[i] receives those of result
 * i; their sizes are as the block declares them. Returns when the results are in `out`. Each call
 * draws its own random numbers, which are the same in every run of the program. */
ampc_status ampc_infer(ampc_runtime *rt, uint32_t block, const void *const *in, void *const *out);
/* A text that grows, of a program that computes texts token by token (ampc --decode). Each sequence
 * has a cache of ampc_program.space_bytes[AMPC_CACHE] bytes. The first one uses the cache that
 * ampc_create has allocated; on a GPU it is also the fastest one. They end before ampc_free. */
typedef struct ampc_sequence ampc_sequence;
ampc_status ampc_sequence_begin(ampc_runtime *rt, ampc_sequence **out);
/* Appends n tokens, 1 or more. `logits` receives the result of the block for the last token, in its
 * type. The text has at most ampc_block.context tokens. AMPC_BAD_USAGE changes nothing; after
 * another failure, a text of a net with a carried state must be rewound to 0. */
ampc_status ampc_sequence_next(ampc_sequence *s, const int64_t *token, int64_t n, void *logits);
/* Appends one token to each of n different texts of one runtime, in one step: the weights are read
 * once for all of them. The texts may differ in length. logits: for each text, as above. If it
 * fails, no text has changed, except as above. */
ampc_status ampc_sequences_next(ampc_sequence *const *s, uint32_t n, const int64_t *token,
                                void *const *logits);
/* Forgets all tokens but the first n. A net with a carried state, such as an LSTM, can only forget
 * all of them. */
ampc_status ampc_sequence_rewind(ampc_sequence *s, int64_t n);
void ampc_sequence_end(ampc_sequence *s); /* NULL is fine */
/* Finds the infer block `call` of the job that is compiled for these sizes of its dims. Dims are in
 * the order in which the arguments name them (ampc_block.size). If no block has these sizes, the
 * message lists the sizes that exist. */
ampc_status ampc_infer_block(const ampc_program *program, const char *call, const int64_t *sizes,
                             uint32_t *out);
int64_t ampc_output_elements(const ampc_output_desc *output);

/* ---- checkpoints ---- */
/* A checkpoint is one safetensors file: parameters under their paths (f32) and optimizer state. Its
 * metadata has the scaler, counters, data position, config and a checksum of the tensor bytes. It
 * is written to a temporary file in the same folder, synced and renamed, so a reader sees either
 * the old file or the whole new one. */
ampc_status ampc_checkpoint_save(ampc_runtime *rt, const char *path, ampc_data_position at);
/* Writes a safetensors file with parameters and buffers only, tied ones under each of their names:
 * what load_state_dict(strict=True) of PyTorch takes. */
ampc_status ampc_weights_save(ampc_runtime *rt, const char *path);
/* Refuses a damaged file, or one of another model, and then leaves rt unchanged. */
ampc_status ampc_checkpoint_load(ampc_runtime *rt, const char *path, ampc_data_position *out_at);

/* ---- the training loop ---- */
typedef struct ampc_train_options {
  const char *device, *data_dir;
  const char *save, *resume;      /* NULL: the paths of the job, if it has any */
  const char *save_weights;       /* file for the weights at the end; NULL: none */
  int64_t steps, save_every, log; /* 0: as in the job. steps: optimizer steps attempted in total,
                                     including steps before a resume */
  bool seed_given, steps_given;   /* `seed` and `steps` hold even if they are 0 */
  uint64_t seed;
  bool quiet;
  bool eval_only;  /* run the eval blocks once on the resumed weights */
  double max_time; /* seconds; 0: no limit. At the limit the run ends as after its last step */
  int64_t limit_batches, overfit_batches; /* batches an epoch; 0: all. overfit: always the same */
  int64_t early_stop;                     /* evaluations without a better one; 0: as in the job */
  int64_t keep_last, keep_best; /* checkpoints in addition to `save`, with their own names */
  bool json;                    /* one line of JSON per step on stdout, and nothing else there */
  const char *log_dir;          /* folder of metrics.csv, run.json and events; NULL: no logs */
  /* Callbacks of an observer; each may be NULL. after_step: the host has enqueued step `step` of
   * the run, in a train block. The callback waits for whatever it reads, and a status ends the run.
   * If it sets *out_note, that text is printed between lines of progress. lost: a loss or gradient
   * of step `step` is not finite, so no update will follow, and the run ends next. `at` is the
   * position of the step's first batch; `begun` and `saved` are the checkpoints from which the run
   * began and that it wrote last, or NULL. */
  ampc_status (*after_step)(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                            const char **out_note);
  void (*lost)(void *context, ampc_runtime *rt, int64_t step, ampc_data_position at,
               const char *begun, const char *saved);
  void *context;
  bool train_only; /* no evaluations and no checkpoints, even if the job has them */
  bool fresh;      /* begin with initial values, even if the job names a checkpoint to resume */
} ampc_train_options;
/* Runs the job's train blocks with their evals. Prints progress to stderr (a line that is rewritten
 * on a terminal, otherwise plain lines) and results ("eval acc: 0.8731") to stdout. SIGINT, SIGTERM
 * and SIGHUP save and end the run with AMPC_INTERRUPTED. SIGUSR1 saves, and the run continues. A
 * signal that was ignored before stays ignored, and so does SIGXFSZ: the write fails instead. If a
 * log cannot be written, a message says so, training continues, and the final status is
 * AMPC_BAD_FILE. */
ampc_status ampc_train(ampc_runtime *rt, const ampc_data_interface *data,
                       const ampc_train_options *options);

/* Returns the checkpoint that the job names with resume=; NULL if it names none. */
const char *ampc_resume_path(const ampc_program *program);

/* Implements main() of an emitted program. Its options fill an ampc_train_options, in addition to
 * --set and --help. Trains and returns the exit status. */
int ampc_main(int argc, char **argv, const ampc_program *program, const ampc_data_interface *data);

#ifdef __cplusplus
}
#endif
#endif
