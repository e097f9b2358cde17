/* amp import: writes an ONNX model as a job and its weights, or a folder of Hugging Face as a job.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "compiler/cli/options.h"
#include "compiler/diag/diag.h"
#include "compiler/driver.h"
#include "job.h"
#include "runner/folder/folder.h"
#include "runner/job/json.h"
#include "runner/job/options.h"
#include "runner/runner.h"
#include "common/shown.h"
#include "runtime/state/safetensors.h"

typedef struct ImportCommand {
  const char *model, *out, *weights, *train, *freeze;
  VEC(const char *) sizes;
  bool force, quiet;
} ImportCommand;

static int read_size(const OptionGiven *given)
{
  ImportCommand *cmd = given->into;
  vec_push(given->arena, &cmd->sizes, given->value);
  return OPTIONS_GO_ON;
}

#define FIELD(name) .field = offsetof(ImportCommand, name)
static const OptionRow import_options[] = {
    {NULL, 'o', "FILE", "the job to write", .kind = OPTION_text, FIELD(out)},
    {"weights", 0, "FILE", "the weights to write (default: as -o, with .safetensors)",
     .kind = OPTION_text, FIELD(weights)},
    {"size", 0, "INPUT=SIZES",
     "sizes of an input after its first one, where the model leaves them open, as x=3,224,224",
     .kind = OPTION_call, .read = read_size},
    {"train", 0, "NAMES", "tensors of the model that train, although they were taken for constants",
     .kind = OPTION_text, FIELD(train)},
    {"freeze", 0, "PATTERNS", "parameters of the job that do not train, as 'features.**,norm.*'",
     .kind = OPTION_text, FIELD(freeze)},
    {"force", 0, NULL,
     "overwrite an existing job and files of other kinds, but never the model or its tensors",
     .kind = OPTION_flag, FIELD(force)},
    {"quiet", 'q', NULL, "print warnings only", .kind = OPTION_flag, FIELD(quiet)},
    {0}};

const OptionTable import_verb = {
    .program = "amp import",
    .usage = "[options] MODEL -o net.amp",
    .about =
        "Writes a model as a job that trains it. MODEL is an ONNX file, whose weights go into a "
        "file beside the job; a folder of Hugging Face; or a GGUF file.",
    .groups = (const OptionGroup[]){{import_options, 0}, {NULL, 0}},
    .notes = "--weights, --size, --train and --freeze are for ONNX.\n"
             "exit status: 0 done; 1 the model has ops that jobs do not have, or the job does not "
             "compile; 2 bad usage; 3 a file is missing, unreadable or damaged"};

static bool read_command_line(Arena *arena, int argc, char **argv, ImportCommand *cmd, int *status)
{
  Operands files = {argv, argc};
  *cmd = (ImportCommand){0};
  if (!options_read(&import_verb, arena, &files, cmd, status)) return false;
  *status = 0;
  if (files.n != 1)
    *status = usage_error("amp import", "expected one model, got %d files", files.n);
  else if (!cmd->out)
    *status = usage_error("amp import", "expected -o FILE, the job to write");
  else if (folder_is_model(files.at[0]) &&
           (cmd->weights || cmd->sizes.n || cmd->train || cmd->freeze))
    *status =
        usage_error("amp import", "--weights, --size, --train and --freeze are for ONNX models");
  if (*status) return false;
  cmd->model = files.at[0];
  size_t n = strlen(cmd->out);
  if (n > 4 && strcmp(cmd->out + n - 4, ".amp") == 0) n -= 4;
  if (!cmd->weights) cmd->weights = arena_printf(arena, "%.*s.safetensors", (int)n, cmd->out);
  file_force(cmd->force);
  return true;
}

/* ---- messages ---- */

static void warn(const char *message)
{
  fprintf(stderr, "amp import: warning: %s\n", message);
}

/* The sizes that were guessed: "H=224, W=224"; "": none. */
static const char *guessed_sizes(Reader *r)
{
  const char *all = "";
  for (uint32_t i = 0; i < r->sizes.n; i++)
    if (!r->sizes.at[i].given)
      all = text(r, "%s%s%s=%lld", all, *all ? ", " : "",
                 arena_shown(r->arena, r->sizes.at[i].key, ""), (long long)r->sizes.at[i].at[0]);
  return all;
}

static int report_refused(Reader *r)
{
  char op[100], why[200], node[200];
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->refused.n; i++) n += r->refused.at[i].count;
  fprintf(stderr, "amp import: error: %u node%s that jobs cannot express; nothing was written\n", n,
          n == 1 ? "" : "s");
  for (uint32_t i = 0; i < r->refused.n; i++) {
    const Refused *f = &r->refused.at[i];
    fprintf(stderr, "  %s%s%s: %u node%s, the first is %s\n", ampc_show(op, sizeof op, f->op, ""),
            *f->why ? " " : "", ampc_show(why, sizeof why, f->why, ""), f->count,
            f->count == 1 ? "" : "s",
            ampc_show(node, sizeof node, *f->node ? f->node : "without a name", ""));
  }
  const char *guessed = guessed_sizes(r);
  if (r->refused_by_compiler && *guessed)
    fprintf(stderr, "sizes that the model leaves open were guessed (%s): give yours with --size\n",
            guessed);
  else if (r->refused_by_compiler && r->sizes.n)
    fprintf(stderr, "if the sizes do not fit the net, change --size\n");
  return 1;
}

/* What holds for the sizes of the job, and perhaps not for others. */
static void warn_of_sizes(Reader *r)
{
  for (uint32_t i = 0; i < r->granted.n; i++)
    warn(arena_printf(r->arena, "taken for granted, whatever the sizes are: %s", r->granted.at[i]));
  if (r->only_first) warn(r->only_first);
}

/* PyTorch's exporter changes a net for inference unless it is told not to. */
static void warn_of_export(Reader *r)
{
  bool folded = false;
  for (size_t i = 0; i < r->graph->n_node; i++) {
    const char *rule =
        onnx_metadata(r->arena, r->graph->node[i], "pkg.onnxscript.rewriter.rule_name");
    folded = folded || (rule && strstr(rule, "BatchNorm"));
  }
  if (folded)
    warn("batch norms were folded into convolutions when the model was exported, so training "
         "cannot use them; export with net.train() and optimize=False");
  if (r->batch)
    warn(arena_printf(r->arena,
                      "the model was exported with batches of %lld; if the job refuses another "
                      "BATCH, export with dynamic_shapes (dynamic_axes with dynamo=False)",
                      (long long)r->batch));
}

/* Adds a name to a list of at most three. */
static void add_name(Arena *arena, const char **list, uint32_t *n, const char *name)
{
  char shown[200];
  if (++*n > 4) return;
  *list = arena_printf(arena, "%s%s%s", *list, *n > 1 ? ", " : "",
                       *n == 4 ? ".." : ampc_show(shown, sizeof shown, name, ""));
}

static bool is_counter(const char *path)
{
  const char *dot = strrchr(path, '.');
  return dot && strcmp(dot, ".num_batches_tracked") == 0;
}

static bool is_statistic(const char *role)
{
  return role && strncmp(role, "running_", 8) == 0;
}

/* Compares the names of the weights with those that PyTorch lists. */
static void warn_of_names(Reader *r)
{
  NameMap stored = {.arena = r->arena};
  const char *less = "", *more = "";
  uint32_t n_less = 0, n_more = 0;
  for (uint32_t i = 0; i < r->stored.n; i++) {
    const char *path = r->stored.at[i].path;
    const void *listed = names_get(&r->listed, path);
    *names_at(&stored, path) = r;
    if (!is_counter(path) && !in_state_dict(listed)) add_name(r->arena, &more, &n_more, path);
  }
  for (uint32_t i = 0; i < r->members.n; i++)
    if (r->members.at[i].tie)
      *names_at(&stored, arena_printf(r->arena, "%s.weight", r->members.at[i].path)) = r;
  for (uint32_t i = 0; i < r->listed.entries.n; i++) {
    const NameEntry *e = &r->listed.entries.at[i];
    if (in_state_dict(e->value) && !is_counter(e->name) && !names_get(&stored, e->name))
      add_name(r->arena, &less, &n_less, e->name);
  }
  if (!r->listed.entries.n || !(n_less + n_more)) return;
  warn(arena_printf(r->arena,
                    "the names differ from the net's state_dict, so load_state_dict needs "
                    "strict=False: %u missing%s%s%s, %u more%s%s%s",
                    n_less, n_less ? " (" : "", less, n_less ? ")" : "", n_more, n_more ? " (" : "",
                    more, n_more ? ")" : ""));
}

/* ---- weights ---- */

static ampc_status write_weights(const Reader *r, const ImportCommand *cmd)
{
  TensorFile file = {.fd = -1};
  TensorWriter to;
  int64_t begin;
  bool good = tensor_file_set(&file, "format", "pt");
  for (uint32_t i = 0; i < r->stored.n && good; i++) {
    const OnnxTensor *t = r->stored.at[i].tensor;
    bool wide;
    TensorType type = {.dtype = tensor_type(t, &wide), .rank = (uint32_t)t->n_dims, .dim = t->dims};
    type.real64 = wide;
    good = tensor_file_add(&file, r->stored.at[i].path, &type, &begin);
  }
  ampc_status status = good ? tensor_write_begin(&to, &file, cmd->weights, &file_weights)
                            : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status) {
    for (uint32_t i = 0; i < r->stored.n && !status; i++)
      status = tensor_write(&to, r->stored.at[i].tensor->raw_data.data,
                            (int64_t)r->stored.at[i].tensor->raw_data.len);
    if (status)
      tensor_write_abandon(&to);
    else
      status = tensor_write_end(&to);
  }
  tensor_file_free(&file);
  return status;
}

/* ---- the whole ---- */

/* The weights' path as the job names it: relative to the job's folder. */
static const char *weights_in_job(Arena *arena, const ImportCommand *cmd)
{
  const char *folder = folder_of(arena, cmd->out), *of = folder_of(arena, cmd->weights);
  size_t n = strlen(folder);
  if (strcmp(folder, of) == 0) return file_name(cmd->weights);
  if (strcmp(folder, ".") == 0 && *cmd->weights != '/') return cmd->weights;
  if (strncmp(cmd->weights, folder, n) == 0 && cmd->weights[n] == '/') return cmd->weights + n + 1;
  char *whole = realpath(of, NULL);
  const char *path = whole ? arena_printf(arena, "%s/%s", whole, file_name(cmd->weights)) : NULL;
  free(whole);
  return path ? path : cmd->weights;
}

/* A job that exists may have been edited. */
static ampc_status check_job(const ImportCommand *cmd)
{
  if (strcmp(cmd->out, cmd->weights) == 0)
    return ampc_fail(AMPC_BAD_USAGE, "the job and the weights need two names, not %s", cmd->out);
  if (!cmd->force && access(cmd->out, F_OK) == 0)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s exists and may have been edited; give another name, or overwrite it with "
                     "--force",
                     cmd->out);
  return file_check_writable(cmd->out, &file_job);
}

/* Compiles the job, so that no job is written that does not compile. NULL: it is good; otherwise
 * the first error. print: prints all messages. */
static const char *first_error(Arena *arena, const ImportCommand *cmd, const char *job, bool print)
{
  Options options = options_default();
  options.target = "cpu";
  options.input = cmd->out;
  options.keep_messages = !print;
  Compile *c = compile_create(&options);
  const char *error = compile_text(c, cmd->out, job, strlen(job)) ? NULL : "";
  uint32_t n;
  const Message *at = error ? diag_kept(c, &n) : NULL;
  for (uint32_t i = 0; at && i < n && !*error; i++)
    if (at[i].severity == SEVERITY_error) error = arena_strdup(arena, at[i].text);
  compile_destroy(c);
  return error;
}

/* Returns the job, without its train block if only that does not compile; NULL: a message has been
 * printed. */
static const char *choose_job(Reader *r, const ImportCommand *cmd, const JobText *job)
{
  Arena *arena = r->arena;
  const char *guessed = guessed_sizes(r);
  const char *error = first_error(arena, cmd, job->whole, false);
  if (!error) return job->whole;
  if (!job->why && !first_error(arena, cmd, job->untrained, false)) {
    warn(arena_printf(arena, "the guessed train block does not compile, so the job has none: %s",
                      error));
    return job->untrained;
  }
  first_error(arena, cmd, job->whole, true);
  fprintf(stderr, "amp import: the job does not compile, so nothing was written; %s\n",
          *guessed
              ? arena_printf(
                    arena,
                    "sizes that the model leaves open were guessed (%s): give yours with --size",
                    guessed)
          : cmd->freeze || cmd->sizes.n ? "change --size or --freeze"
                                        : "please report this with the model");
  return NULL;
}

/* ---- what was taken for what ---- */

typedef struct Names {
  const char *list;
  uint32_t n;
} Names;

static const char *names_text(Arena *arena, const Names *of, const char *one, const char *several)
{
  return arena_printf(arena, "%u %s%s%s", of->n, of->n == 1 ? one : several, of->n ? ": " : "",
                      of->list);
}

static void report_tensors(Reader *r, const ImportCommand *cmd)
{
  Names trains = {"", 0}, buffers = {"", 0}, constants = {"", 0};
  for (uint32_t i = 0; i < r->stored.n; i++) {
    const Stored *s = &r->stored.at[i];
    bool buffer =
        strncmp(r->members.at[s->member].text, "Buffer(", 7) == 0 || is_statistic(s->role);
    Names *to = buffer ? &buffers : &trains;
    if (!is_counter(s->path)) add_name(r->arena, &to->list, &to->n, s->path);
  }
  for (uint32_t i = 0; i < r->constants.n; i++)
    add_name(r->arena, &constants.list, &constants.n, r->constants.at[i]);
  printf("%s: %s; %s; %s\n", cmd->weights,
         names_text(r->arena, &trains, "tensor trains", "tensors train"),
         names_text(r->arena, &buffers, "buffer", "buffers"),
         names_text(r->arena, &constants, "constant", "constants"));
}

/* Returns an exit status; 1: a message has been printed. */
static int import_model(Arena *arena, const ImportCommand *cmd)
{
  OnnxModel *model;
  Reader r;
  JobText job;
  const ReadWishes read = {cmd->model, folder_of(arena, cmd->model), cmd->train, cmd->sizes.at,
                           cmd->sizes.n};
  ampc_status status = onnx_read(arena, cmd->model, &model);
  if (!status) status = read_model(&r, arena, model, &read);
  if (!status) status = file_check_writable(cmd->weights, &file_weights);
  if (!status) status = check_job(cmd);
  if (status) return (int)status;
  if (r.refused.n) return report_refused(&r);
  warn_of_export(&r);
  warn_of_sizes(&r);
  const JobWishes wishes = {file_name(cmd->model), weights_in_job(arena, cmd), cmd->freeze};
  job_text(&r, &wishes, &job);
  warn_of_names(&r);
  const char *text = choose_job(&r, cmd, &job);
  if (!text) return 1;
  status = write_weights(&r, cmd);
  if (!status) status = file_write(cmd->out, &file_job, text, (int64_t)strlen(text));
  if (status || cmd->quiet) return (int)status;
  printf("%s: %zu nodes, opset %lld\n", cmd->out, model->graph->n_node, (long long)r.opset);
  if (job.why) printf("%s: no train block: %s\n", cmd->out, job.why);
  report_tensors(&r, cmd);
  return AMPC_OK;
}

/* The tokenizer of a GGUF file becomes files beside the job. */
static ampc_status write_tokenizer(Arena *arena, const ImportCommand *cmd, Folder *f, bool check)
{
  static const FileKind kinds[] = {{"tokenizer that amp import wrote", 0,
                                    "{\"version\":\"1.0\",\"truncation\":null", 34, FILE_NO_ROLE},
                                   {"tokenizer_config that amp import wrote", 0,
                                    "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"", 44,
                                    FILE_NO_ROLE}};
  static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
  json_t **values[] = {&f->tokenizer, &f->tokenizer_config};
  ampc_status status = AMPC_OK;
  for (int i = 0; i < 2 && !status; i++) {
    const char *path = arena_printf(arena, "%s/%s", folder_of(arena, cmd->out), names[i]);
    json_t *value = *values[i];
    if (!value) continue;
    if (!check) *values[i] = NULL;
    status = check ? file_check_writable(path, &kinds[i])
                   : json_save(value, path, &kinds[i], JSON_COMPACT);
  }
  return status;
}

/* Writes a folder of Hugging Face, or a GGUF file, as a job. Its weights stay where they are.
 * Returns as import_model. */
static int import_folder(Arena *arena, const ImportCommand *cmd)
{
  Folder f = {0};
  ampc_status status = check_job(cmd);
  if (!status) status = folder_open(arena, cmd->model, folder_of(arena, cmd->out), &f);
  if (!status) status = write_tokenizer(arena, cmd, &f, true);
  const char *job = status ? "" : folder_job(&f);
  bool broken = !status && first_error(arena, cmd, job, true);
  if (broken) fputs("amp import: the job does not compile, so nothing was written\n", stderr);
  if (!status && !broken && !cmd->quiet) {
    printf("%s: %s%s\n", cmd->out, f.model, f.tokenizer ? ", with tokenizer.json beside" : "");
    if (*f.absent) printf("%s has no %s\n", cmd->model, f.absent);
  }
  if (!status && !broken) status = file_write(cmd->out, &file_job, job, (int64_t)strlen(job));
  if (!status && !broken) status = write_tokenizer(arena, cmd, &f, false);
  folder_close(&f);
  return broken ? 1 : (int)status;
}

int import_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  ImportCommand cmd;
  int status;
  if (read_command_line(arena, argc, argv, &cmd, &status)) {
    status = folder_is_model(cmd.model) ? import_folder(arena, &cmd) : import_model(arena, &cmd);
    if (status > 1) fprintf(stderr, "amp import: error: %s\n", ampc_last_error());
  }
  arena_destroy(arena);
  return status;
}
