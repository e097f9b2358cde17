/* The runtime that ampc's programs link: devices, memory, the step, checkpoints, the training loop.
 *
 * Functions return 0 (AMPC_OK) or a status; ampc_last_error() then says in one line what failed and
 * what to do (both in ampc_plan.h). If a needed pointer is NULL, or a block, metric or range does
 * not exist, the status is AMPC_BAD_USAGE. A function that returns a value instead of a status
 * answers NULL with 0, false, NULL or "none". Objects come first, outputs last. Whoever calls a
 * create function frees with the matching free function; NULL is fine there. One runtime belongs to
 * one thread at a time. */
#ifndef AMPC_RT_H
#define AMPC_RT_H
#include "ampc_plan.h"
#include "ampc_state.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- a runtime: one program on one device ---- */

/* `device`: "cpu", "cuda" (the first GPU that is free and can run it), "cuda:1" (that one) or
 * "auto" (cuda where there is one). `program` must outlive the runtime. Allocates all spaces
 * (zeroed), fills STATE from the program; weights are not yet set. */
ampc_status ampc_create(const ampc_program *program, const char *device, ampc_runtime **out);
void ampc_free(ampc_runtime *rt);
/* The target to compile for, so that the program runs on `device`: "cpu", or "sm_90" for a GPU; for
 * "auto" that of a GPU where there is one. */
enum { AMPC_TARGET_ROOM = 16 };
ampc_status ampc_device_target(const char *device, char out[AMPC_TARGET_ROOM]);
/* Whether runtimes of this process that are made from now on use cuDNN where it is found (they do,
 * unless told otherwise); else the program's own kernels compute what it would. */
void ampc_use_cudnn(bool use);
/* How many threads decode pictures for each block of data that this process opens from now on; 0:
 * as many as there are processors, up to 16. Their number changes no result. */
enum { AMPC_MOST_DATA_THREADS = 128 };
void ampc_use_data_threads(int64_t n);
const ampc_program *ampc_program_of(const ampc_runtime *rt);
const char *ampc_device_name(const ampc_runtime *rt); /* "cpu", "cuda:0 NVIDIA H200" */

/* Bytes that a runtime holds on its device. `library`: what lies beside the spaces: scratch space
 * of vendors' libraries; on a GPU a second half of INPUT and a copy of STATE. */
typedef struct ampc_memory {
  int64_t space[AMPC_SPACE_COUNT], library, total;
} ampc_memory;
ampc_memory ampc_memory_of(const ampc_runtime *rt);
/* The same before anything is allocated, of a program whose steps are command lists: functions are
 * called by ampc_create alone. Kernels need not be loaded. On a GPU `library` has the most that
 * cuDNN can take. */
ampc_status ampc_plan_memory(const ampc_program *program, const char *device, ampc_memory *out);

ampc_status ampc_init_params(ampc_runtime *rt, uint64_t seed); /* masters, copies, zero moments */
/* Start values from the files of `load` clauses, instead of those that were drawn; nothing without
 * such clauses. Nothing changes where a tensor or a parameter is not accounted for: the error then
 * lists them, in several lines. `tell` is called with a line for each file, and with warnings
 * of values that a type does not hold. `tell` may be NULL. Paths are relative to data_dir. */
typedef void ampc_tell(void *to, bool warning, const char *line);
ampc_status ampc_load_params(ampc_runtime *rt, const char *data_dir, ampc_tell *tell, void *to);
/* The same from one file with the names of the whole program, such as a checkpoint: its weights, of
 * which every one must be there. */
ampc_status ampc_load_weights(ampc_runtime *rt, const char *path, ampc_tell *tell, void *to);
ampc_status ampc_run_step(ampc_runtime *rt, uint32_t block, uint32_t variant); /* asynchronous */
/* The variant of a block for a batch of so many samples in step `step` of the run, which is counted
 * from 1 and decides what `every` fires; 0: all of it does, as in no step. */
uint32_t ampc_variant_at(const ampc_block *b, int64_t samples, int64_t step);
ampc_status ampc_wait(ampc_runtime *rt);    /* until the device is done; reports late errors */
int64_t ampc_waits(const ampc_runtime *rt); /* how often the host has stood still for that so far */

/* Bytes between host memory and a space. The copy has happened when the call returns. */
ampc_status ampc_read(ampc_runtime *rt, ampc_ref from, void *to, int64_t bytes);
ampc_status ampc_write(ampc_runtime *rt, ampc_ref to, const void *from, int64_t bytes);
/* A parameter, or what belongs to it in the space of gradients or moments, in the order of its
 * shape; a buffer in BUFFER. All of its elements, in the type in which they lie there. */
ampc_status ampc_read_param(ampc_runtime *rt, const ampc_param *param, ampc_space space, void *to);
ampc_status ampc_write_param(ampc_runtime *rt, const ampc_param *param, ampc_space space,
                             const void *from);
/* After MASTER was written from the host: makes the 16-bit copies anew. */
ampc_status ampc_refresh_copies(ampc_runtime *rt);

/* The length of schedules that have no `steps` of their own: how many steps each block takes in
 * all, those before a resume included; one number a block. What ampc_set has set stays. */
ampc_status ampc_set_lengths(ampc_runtime *rt, const int64_t *steps);
ampc_status ampc_set(ampc_runtime *rt, const char *setting, double value); /* "opt.lr" */
ampc_status ampc_get_state(ampc_runtime *rt, ampc_state *out);             /* waits */
/* A block's metric since the last ampc_clear_metrics: sum / count, where count is not 0. Waits. */
ampc_status ampc_get_metric(ampc_runtime *rt, uint32_t metric, ampc_metric *out);
/* The statistics of a metric that has some (ampc_metric_desc.statistics), such as the counts of a
 * confusion matrix: [true, predicted], and then how many labels were no class. Waits. */
ampc_status ampc_get_statistics(ampc_runtime *rt, uint32_t metric, double *out);
ampc_status ampc_clear_metrics(ampc_runtime *rt, uint32_t block);

/* ---- what step functions call ---- */

/* They return nothing, so that an emitted step is a flat list of calls: the first failure is kept
 * in rt, later calls of the step do nothing, and ampc_run_step or ampc_wait gives the failure.
 * ampc_create calls each step once, before its spaces hold anything: then what libraries
 * compute is prepared, and no call does anything else. */
/* Base address of each space. That of INPUT moves with each batch: no step may keep it. */
char *const *ampc_spaces(ampc_runtime *rt);
void ampc_do_launch(ampc_runtime *rt, uint32_t kernel, uint32_t grid, uint32_t block,
                    void *const *args, uint32_t n_args);
/* Launches the kernel, unless the device's library does what it computes, which `desc` tells. */
void ampc_do_attention(ampc_runtime *rt, const ampc_attention *desc, uint32_t kernel, uint32_t grid,
                       uint32_t block, void *const *args, uint32_t n_args);
void ampc_do_gemm(ampc_runtime *rt, const ampc_gemm *desc, const void *a, const void *b,
                  const void *bias, void *c, void *workspace);
void ampc_do_conv(ampc_runtime *rt, const ampc_conv *desc, void *x, void *w, const void *bias,
                  void *y, void *workspace);
void ampc_do_copy(ampc_runtime *rt, void *to, const void *from, int64_t bytes);
void ampc_do_fill(ampc_runtime *rt, void *to, uint8_t value, int64_t bytes);
void ampc_do_all_reduce(ampc_runtime *rt, void *at, ampc_dtype type, int64_t count);

/* AMPC_GEMM(rt, name, description, pointers...), which is called so where it fails */
ampc_runtime *ampc_called(ampc_runtime *rt, const char *name); /* gives rt back */
#define AMPC_GEMM(rt, name, desc, ...) ampc_do_gemm(ampc_called(rt, #name), &desc, __VA_ARGS__)
#define AMPC_CONV(rt, name, desc, ...) ampc_do_conv(ampc_called(rt, #name), &desc, __VA_ARGS__)

/* AMPC_LAUNCH(rt, kernel index, grid, block, arguments...): at least one, each a pointer or
 * AMPC_NUMBER(n), n below 2^32 */
#define AMPC_LAUNCH(rt, kernel, grid, block, ...)                                                  \
  do {                                                                                             \
    void *args_[] = {__VA_ARGS__};                                                                 \
    ampc_do_launch(rt, kernel, grid, block, args_, (uint32_t)(sizeof args_ / sizeof *args_));      \
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
typedef struct ampc_data_position {       /* where a run stands; kept in checkpoints */
  int64_t epoch, batch;                   /* batch within the epoch, from 0 */
  int64_t block;                          /* train block, by index in the program */
} ampc_data_position;
typedef struct ampc_data_interface {
  /* Opens the sources of a block, checks headers, shapes, counts and limits. A thread prepares
   * batches ahead of time. Same seed, same order. */
  ampc_status (*open)(const ampc_program *p, uint32_t block, const char *data_dir, uint64_t seed,
                      ampc_batches **out);
  int64_t (*per_epoch)(const ampc_batches *b); /* batches, the last smaller one included */
  ampc_status (*seek)(ampc_batches *b, ampc_data_position to); /* next() continues there */
  /* The next batch, valid until the next call: laid out as in INPUT, where *out_base stands for the
   * lowest offset of the block's sources. *out_samples is smaller for a kept last batch. */
  ampc_status (*next)(ampc_batches *b, const void **out_base, int64_t *out_samples,
                      ampc_data_position *out_position);
  /* When a loss was not finite: does the data of the block hold such a number? Then `text` is
   * where: "sample 17 of x.idx holds nan". NULL: nobody can tell. */
  bool (*find_lost)(const ampc_batches *b, char *text, size_t size);
  /* What people call a sample of a batch that next() has given, counted in the order of the data:
   * "cats/1.jpg". False: it has only its number. */
  bool (*sample_name)(const ampc_batches *b, int64_t sample, char *text, size_t size);
  void (*close)(ampc_batches *b);
} ampc_data_interface;
extern const ampc_data_interface ampc_data;

/* Brings the next batch of a block to INPUT and runs the block's step on it; asynchronous. `step`
 * is as for ampc_variant_at; in an eval or infer block, which batch it is, from 0: each draws its
 * own random numbers. */
ampc_status ampc_run_batch(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t *out_samples);
/* For who runs the bodies of a train block with `accumulate` by himself: the next one is the first,
 * the last of a step; gradients are added up until the last. Each body is a step of its own where
 * nobody says otherwise. Asynchronous; writes only what changes. */
ampc_status ampc_set_group(ampc_runtime *rt, bool first, bool closes);
/* Step `step` of the run, from 1, in a train block: its next `bodies` batches, whose gradients are
 * added up before the optimizers update anything. *out_samples are those of all of them. Where the
 * scaler has `replay`, it waits for the step, and runs it again while it overflows at a scale that
 * can be lower. */
ampc_status ampc_run_group(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t bodies, int64_t *out_samples);

/* ---- infer blocks ---- */
/* A runtime with weights: those of the file `weights` (ampc_load_weights), or where it is NULL
 * those that the program's models load, from data_dir. A program without parameters needs none.
 * `tell` may be NULL. */
ampc_status ampc_infer_open(const ampc_program *program, const char *device, const char *weights,
                            const char *data_dir, ampc_tell *tell, void *to, ampc_runtime **out);
/* Runs an infer block whose arguments the caller has: in[i] are the elements of argument i, out[i]
 * gets those of result i, each as large as the block declares them. Returns when they are there.
 * Each call draws its own random numbers, the same in every run of the program. */
ampc_status ampc_infer(ampc_runtime *rt, uint32_t block, const void *const *in, void *const *out);
/* The infer block `call` of the job, compiled for these sizes of its dims, in the order in which
 * its arguments name them (ampc_block.size). Of sizes that it is not compiled for the message lists
 * those that it is. */
ampc_status ampc_infer_block(const ampc_program *program, const char *call, const int64_t *sizes,
                             uint32_t *out);
int64_t ampc_output_elements(const ampc_output_desc *output);

/* ---- checkpoints ---- */
/* One safetensors file: parameters under their paths (f32), optimizer state, and in its metadata
 * scaler, counters, data position, config and a checksum of the tensor bytes. Written to a
 * temporary file in the same folder, synced, renamed: a reader sees the old file or the new one,
 * whole. */
ampc_status ampc_checkpoint_save(ampc_runtime *rt, const char *path, ampc_data_position at);
/* Refuses another model's or a damaged file and then leaves rt as it was. */
ampc_status ampc_checkpoint_load(ampc_runtime *rt, const char *path, ampc_data_position *out_at);

/* ---- the training loop ---- */
typedef struct ampc_train_options {
  const char *device, *data_dir;
  const char *save, *resume;      /* NULL: those of the job, if it has any */
  int64_t steps, save_every, log; /* 0: as in the job. steps: optimizer steps attempted in all,
                                     those before a resume included */
  bool seed_given, steps_given;   /* then a 0 is meant */
  uint64_t seed;
  bool quiet;
  bool eval_only;  /* run the eval blocks once on the resumed weights */
  double max_time; /* seconds; 0: no limit. What is left is done as after the last step */
  int64_t limit_batches, overfit_batches; /* of an epoch; 0: all. overfit: the same in each epoch */
  int64_t early_stop;                     /* evaluations without a better one; 0: the job's */
  int64_t keep_last, keep_best;           /* checkpoints beside `save`, under names of their own */
  bool json;                              /* a line a step on stdout, and nothing else there */
  const char *log_dir;                    /* metrics.csv and TensorBoard events; NULL: none */
  /* For who looks on; NULL each. after_step: step `step` of the run has been asked for, in a train
   * block; what it reads it waits for, and a status ends the run. *out_note, where it is set, is
   * told between lines of progress. lost: no update is to be expected any more, for a loss or
   * gradient of that step is not finite; the run ends next. `at` is where the step's first batch
   * stands. */
  ampc_status (*after_step)(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                            const char **out_note);
  void (*lost)(void *context, ampc_runtime *rt, int64_t step, ampc_data_position at);
  void *context;
  bool train_only; /* no evaluations and no checkpoints, whatever the job says */
} ampc_train_options;
/* Runs the job's train blocks with their evals; prints progress to stderr (a line that is rewritten
 * on a terminal, plain lines otherwise) and results ("eval acc: 0.8731") to stdout. SIGINT, SIGTERM
 * and SIGHUP save and end with AMPC_INTERRUPTED, SIGUSR1 saves and goes on. A signal that was
 * ignored before stays ignored. SIGXFSZ is ignored, too: the write fails. If a log cannot be
 * written, a message tells it, the run goes on, and the status at the end is AMPC_BAD_FILE. */
ampc_status ampc_train(ampc_runtime *rt, const ampc_data_interface *data,
                       const ampc_train_options *options);

/* The checkpoint that the job names with resume=; NULL: none. */
const char *ampc_resume_path(const ampc_program *program);

/* main() of an emitted program. Its options fill an ampc_train_options; beside them it has --set
 * and
 * --help. Trains and returns the exit status. */
int ampc_main(int argc, char **argv, const ampc_program *program, const ampc_data_interface *data);

#ifdef __cplusplus
}
#endif
#endif
