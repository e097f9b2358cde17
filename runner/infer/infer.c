/* amp infer: compiles one infer block of a job alone and runs it over data. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "generate.h"
#include "runner/jit/jit.h"
#include "runner/runner.h"
#include "runner/job/memory.h"
#include "runner/job/options.h"
#include "runtime/outside.h"
#include "common/number.h"
#include "runtime/state/safetensors.h"

/* ---- the command line ---- */

void infer_split(Arena *arena, const char *value, const char **name, const char **file)
{
  const char *equals = strchr(value, '=');
  bool named = equals && strcspn(value, "/.") > (size_t)(equals - value);
  const char *dot = named ? NULL : equals; /* f.0=FILE: results of a tuple */
  named = named || (dot && !memchr(value, '/', (size_t)(dot - value)));
  *name = named ? arena_strndup(arena, value, (size_t)(equals - value)) : NULL;
  *file = named ? equals + 1 : value;
}

static int read_input(const OptionGiven *given)
{
  InferCommand *cmd = given->into;
  uint32_t n = cmd->n_inputs++;
  cmd->inputs = arena_grow(given->arena, cmd->inputs, n * sizeof *cmd->inputs,
                           (n + 1) * sizeof *cmd->inputs, _Alignof(InferInput));
  infer_split(given->arena, given->value, &cmd->inputs[n].name, &cmd->inputs[n].file);
  return OPTIONS_GO_ON;
}

static int read_output(const OptionGiven *given)
{
  InferCommand *cmd = given->into;
  bool png = strcmp(given->row->name, "png") == 0;
  uint32_t n = cmd->n_outputs++;
  cmd->outputs = arena_grow(given->arena, cmd->outputs, n * sizeof *cmd->outputs,
                            (n + 1) * sizeof *cmd->outputs, _Alignof(InferOutput));
  cmd->outputs[n].png = png;
  infer_split(given->arena, given->value, &cmd->outputs[n].name, &cmd->outputs[n].file);
  return OPTIONS_GO_ON;
}

/* Reads a range: "-1,1". */
static int read_range(const OptionGiven *given)
{
  InferCommand *cmd = given->into;
  char *end;
  cmd->low = strtod(given->value, &end);
  bool good = end > given->value && *end == ',';
  const char *high = end + 1;
  if (good) cmd->high = strtod(high, &end);
  good = good && end > high && !*end && isfinite(cmd->low) && isfinite(cmd->high);
  if (!good)
    return usage_error(given->program, "--range %s: expected two numbers, as --range=-1,1",
                       given->value);
  if (!isfinite(cmd->high - cmd->low))
    return usage_error(
        given->program,
        "--range %s: the difference of the two numbers is larger than the largest double",
        given->value);
  if (cmd->low >= cmd->high)
    return usage_error(given->program,
                       "--range %s: the number for black comes first and must be the smaller one: "
                       "%g is not less than %g",
                       given->value, cmd->low, cmd->high);
  cmd->ranged = true;
  return OPTIONS_GO_ON;
}

static int read_stop(const OptionGiven *given)
{
  InferCommand *cmd = given->into;
  uint32_t n = cmd->n_stops++;
  if (!*given->value) return option_wrong(given, "expected a text of at least one byte");
  cmd->stop = arena_grow(given->arena, cmd->stop, n * sizeof *cmd->stop,
                         (n + 1) * sizeof *cmd->stop, _Alignof(const char *));
  cmd->stop[n] = given->value;
  return OPTIONS_GO_ON;
}

#define FIELD(name) .field = offsetof(InferCommand, name)

const OptionRow block_options[] = {
    {"block", 0, "NAME", "the infer block; needed if the job has several", .kind = OPTION_text,
     FIELD(block)},
    {"weights", 0, "FILE", "a checkpoint, or a safetensors or PyTorch file with the job's names",
     .also = "resume", .kind = OPTION_text, FIELD(weights)},
    {0}};

static const OptionRow infer_options[] = {
    {"input", 0, "FILE",
     "a file for the argument of the block (.npy, idx, ...), or its number; NAME=FILE if the block "
     "has several",
     .kind = OPTION_call, .read = read_input, .without = "generate"},
    {"data", 0, "CALL",
     "data from a data block of the job, such as 'faces(\"test\")', or from any source",
     .kind = OPTION_text, FIELD(data), .without = "input generate"},
    {"output", 0, "FILE", "write results as .npy; NAME=FILE if there are several (default: text)",
     .kind = OPTION_call, .read = read_output, .without = "generate"},
    {"png", 0, "FILE",
     "write a grid of pictures, or one file each if FILE is a folder or ends in /",
     .kind = OPTION_call, .read = read_output, .without = "generate"},
    {"range", 0, "LOW,HIGH", "the numbers that are drawn black and white (default 0,1)",
     .kind = OPTION_call, .read = read_range, .with = "png"},
    {"columns", 0, "N", "pictures side by side in a grid (default 8)", .kind = OPTION_number,
     FIELD(columns), .least = 1, .with = "png"},
    {"names", 0, "FILE", "write the names of the samples, the paths of pictures, one per line",
     .kind = OPTION_text, FIELD(names), .without = "generate"},
    {"top", 0, "K", "print the K largest numbers of each sample, with their classes",
     .kind = OPTION_number, FIELD(top), .least = 1, .without = "generate"},
    {"classes", 0, "FILE",
     "names of the classes, one per line (without --top, prints the 5 largest numbers)",
     .kind = OPTION_text, FIELD(classes), .without = "generate"},
    {"generate", 0, "N", "continue a prompt with N tokens of a language model",
     .kind = OPTION_number, FIELD(generate), .least = 1},
    {"prompt", 0, "TEXT", "the beginning of the text", .kind = OPTION_text, FIELD(prompt),
     .with = "generate", .without = "prompt-file"},
    {"prompt-file", 0, "FILE", "a file with the beginning: bytes, or tokens of 16 bits (.bin)",
     .kind = OPTION_text, FIELD(prompt_file), .with = "generate"},
    {"prompts", 0, "FILE",
     "continue each prompt of a file, .jsonl or one per line, and print a line of JSON for each",
     .kind = OPTION_text, FIELD(prompts), .with = "generate",
     .without = "prompt prompt-file no-cache"},
    {"batch", 0, "B", "texts that grow at a time (default 8)", .kind = OPTION_number, FIELD(batch),
     .least = 1, .with = "prompts"},
    {"no-cache", 0, NULL, "compute each token from all tokens before it", .kind = OPTION_flag,
     FIELD(no_cache), .with = "generate"},
    {"chat", 0, NULL,
     "the prompt is a question: print its answer, by the template of the job's jsonl",
     .kind = OPTION_flag, FIELD(chat), .with = "generate"},
    {0}};

const OptionRow text_options[] = {
    {"tokenizer", 0, "FILE",
     "text is for this tokenizer.json or .model (default: that of the job's text or "
     "jsonl)",
     .kind = OPTION_text, FIELD(tokenizer), .with = "generate"},
    {"template", 0, "TEXT", prompt_templates, .kind = OPTION_text, FIELD(template), .with = "chat"},
    {"temperature", 0, "T",
     "below 1 favours probable tokens; 0 always takes the most probable one (default 1)",
     .kind = OPTION_real, FIELD(sampling.temperature), .domain = AMPC_NOT_NEGATIVE,
     .expected = "0 or more", .with = "generate"},
    {"top-k", 0, "K", "draw among the K most probable tokens (default: all)", .kind = OPTION_number,
     FIELD(sampling.top_k), .least = 1, .with = "generate"},
    {"top-p", 0, "P",
     "draw among the smallest set of most probable tokens that sum to P or more (default 1: all)",
     .kind = OPTION_real, FIELD(sampling.top_p), .domain = AMPC_UNIT, .with = "generate"},
    {"min-p", 0, "P",
     "draw among tokens at least P times as probable as the most probable one (default 0: all)",
     .kind = OPTION_real, FIELD(sampling.min_p), .domain = AMPC_UNIT, .with = "generate"},
    {"repetition-penalty", 0, "R",
     "above 1 makes tokens of the prompt and of the text so far less probable (default 1)",
     .kind = OPTION_real, FIELD(sampling.repetition_penalty), .domain = AMPC_POSITIVE,
     .with = "generate"},
    {"stop", 0, "TEXT", "end before this text or at this special token; may be given several times",
     .kind = OPTION_call, .read = read_stop, .with = "generate"},
    {0}};

static const OptionRow output_options[] = {
    {"quiet", 'q', NULL, "print results only", .kind = OPTION_flag, FIELD(quiet)},
    {NULL, 'v', NULL, "print how many bytes of memory each purpose needs", .kind = OPTION_flag,
     FIELD(verbose)},
    {0}};

const OptionTable infer_verb = {
    .program = "amp infer",
    .usage = "[options] job.amp",
    .about = "Runs an infer block of a job over data.",
    .groups = (const OptionGroup[]){{block_options, 0},
                                    {infer_options, 0},
                                    {text_options, 0},
                                    {output_options, 0},
                                    {fresh_options, offsetof(InferCommand, train)},
                                    {job_options, offsetof(InferCommand, compile)},
                                    {memory_options, offsetof(InferCommand, compile)},
                                    {NULL, 0}},
    .notes = "exit status: 0 done; 1 errors in the program; 2 bad usage; 3 a file is missing or "
             "unreadable; 4 the C compiler failed; 5 the run failed"};

int text_options_check(const InferCommand *cmd)
{
  const Sampling *s = &cmd->sampling;
  if (s->temperature == 0 && (s->top_k || s->top_p < 1 || s->min_p > 0))
    fprintf(stderr,
            "warning:%s%s%s: no effect with --temperature 0, which always takes the most "
            "probable token\n",
            s->top_k ? " --top-k" : "", s->top_p < 1 ? " --top-p" : "",
            s->min_p > 0 ? " --min-p" : "");
  return 0;
}

static bool read_command_line(const InferVerb *verb, Arena *arena, int argc, char **argv,
                              InferCommand *cmd, int *status)
{
  Operands jobs = {argv, argc};
  *cmd = (InferCommand){.compile = options_default(),
                        .what = verb->what,
                        .train = {.device = "auto"},
                        .sampling = SAMPLING_DEFAULT};
  if (!options_read(verb->table, arena, &jobs, cmd, status)) return false;
  *status = options_count_jobs(verb->table, &jobs, 1, 1);
  if (!*status) *status = verb->check(cmd);
  if (*status) return false;
  cmd->compile.input = jobs.at[0];
  cmd->compile.quiet = cmd->quiet;
  cmd->train.data_dir =
      cmd->compile.data_dir ? cmd->compile.data_dir : folder_of(arena, cmd->compile.input);
  return true;
}

/* ---- the run ---- */

static void tell(void *to, bool warning, const char *line)
{
  const InferCommand *cmd = to;
  if (warning || !cmd->quiet) fprintf(stderr, "%s%s\n", warning ? "warning: " : "", line);
}

ampc_status infer_run(ampc_runtime *rt, const InferCommand *cmd)
{
  const ampc_program *p = ampc_program_of(rt);
  bool reads = p->blocks[0].n_sources > 0;
  ampc_batches *data = NULL;
  InferWriter *writer = NULL;
  ampc_status status = reads ? ampc_data.open(p, 0, cmd->train.data_dir, p->seed, &data) : AMPC_OK;
  int64_t n = status ? 0 : reads ? ampc_data.per_epoch(data) : 1;
  if (!status) status = infer_write_begin(rt, cmd, data, n, &writer);
  for (int64_t i = 0; i < n && !status; i++) {
    int64_t samples = 1;
    status = reads ? ampc_run_batch(rt, &ampc_data, data, 0, i, &samples) : ampc_run_step(rt, 0, 0);
    if (!status) status = ampc_wait(rt);
    if (!status) status = outside_take(rt);
    if (!status) status = infer_write_batch(writer, samples);
  }
  if (writer) status = infer_write_end(writer, status);
  if (data) ampc_data.close(data);
  return status;
}

static ampc_status run_program(const InferVerb *verb, Compile *c, InferCommand *cmd)
{
  Jit *jit = NULL;
  ampc_runtime *rt = NULL;
  ampc_status status = memory_admit(c, cmd->train.device, cmd->quiet, cmd->verbose);
  if (status == AMPC_OK) status = jit_load(c, &jit);
  if (status == AMPC_OK && cmd->train.seed_given) c->program->seed = cmd->train.seed;
  if (status == AMPC_OK)
    status = ampc_infer_open(c->program, cmd->train.device, cmd->weights, cmd->train.data_dir, tell,
                             cmd, &rt);
  if (status == AMPC_OK) status = verb->run(rt, cmd);
  if (status != AMPC_OK && *ampc_last_error())
    fprintf(stderr, "%s: error: %s\n", status == AMPC_BAD_USAGE ? verb->table->program : "amp",
            ampc_last_error());
  ampc_free(rt);
  jit_unload(jit);
  return status;
}

/* Sets the prompt or the inputs of the block. */
static ampc_status begin_infer(InferCommand *cmd, Compile *c, const Function *block)
{
  if (cmd->generate) return generate_begin(cmd, c, block);
  return infer_choose_inputs(c, cmd, block) ? AMPC_OK : AMPC_BAD_USAGE;
}

static ampc_status run_infer(ampc_runtime *rt, const InferCommand *cmd)
{
  return cmd->generate ? generate_run(rt, cmd) : infer_run(rt, cmd);
}

static int compile_and_run(const InferVerb *verb, Compile *c, InferCommand *cmd)
{
  if (!compile_parse_job(c)) return c->cannot_read ? AMPC_BAD_FILE : 1;
  const Function *block = infer_choose_block(c, cmd->block);
  ampc_status status = block ? verb->begin(cmd, c, block) : AMPC_BAD_USAGE;
  if (status == AMPC_BAD_USAGE) return usage_error(verb->table->program, "%s", ampc_last_error());
  if (status) {
    fprintf(stderr, "%s: error: %s\n", verb->table->program, ampc_last_error());
    return (int)status;
  }
  c->options.infer_block = block->name.text;
  if (!compile_parsed(c)) return c->cannot_read ? AMPC_BAD_FILE : 1;
  return (int)run_program(verb, c, cmd);
}

/* Reads the names of classes that a checkpoint keeps. A file that cannot be read has none; opening
 * it for its weights then says why. */
static void read_names(Arena *arena, InferCommand *cmd)
{
  TensorFile f = {.fd = -1};
  if (!cmd->weights || tensor_file_read_any(cmd->weights, &f) != AMPC_OK) return;
  const char *classes = tensor_file_get(&f, "ampc.classes"),
             *columns = tensor_file_get(&f, "ampc.columns");
  if (classes) cmd->known_classes = arena_strdup(arena, classes);
  if (columns) cmd->compile.columns = arena_strdup(arena, columns);
  tensor_file_free(&f);
}

int infer_verb_main(const InferVerb *verb, int argc, char **argv)
{
  Arena *arena = arena_create();
  InferCommand cmd;
  int status;
  char target[AMPC_TARGET_ROOM];
  bool good = read_command_line(verb, arena, argc, argv, &cmd, &status);
  if (good && (status = (int)ampc_device_target(cmd.train.device, target)) != 0) {
    fprintf(stderr, "%s: error: %s\n", verb->table->program, ampc_last_error());
  } else if (good) {
    cmd.compile.target = target;
    read_names(arena, &cmd);
    Compile *c = compile_create(&cmd.compile);
    status = compile_and_run(verb, c, &cmd);
    prompt_close(&cmd);
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}

int infer_main(int argc, char **argv)
{
  const InferVerb verb = {&infer_verb, "--generate", generate_check, begin_infer, run_infer};
  return infer_verb_main(&verb, argc, argv);
}
