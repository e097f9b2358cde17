/* amp weights: copies the weights of a file to a safetensors file that PyTorch's
 * load_state_dict(strict=True) takes: parameters and buffers, under all names of tied ones. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "compiler/driver.h"
#include "merge.h"
#include "runner/runner.h"
#include "runtime/base/convert.h"
#include "common/bytes.h"
#include "runtime/plan/types.h"
#include "runtime/state/safetensors.h"

enum { PIECE = 1 << 16 /* elements */ };

/* ---- the command line ---- */

typedef struct WeightsCommand {
  int type; /* 1 + index in type_words; 0: as in the file */
  const char *model, *merge, *in, *out;
  bool averages, force, quiet;
} WeightsCommand;

#define WORD(KIND, name, ...)  #name,
#define DTYPE(KIND, name, ...) AMPC_##KIND,
static const char *const type_words[] = {AMPC_FLOATS(WORD) NULL};
static const ampc_dtype types[] = {AMPC_FLOATS(DTYPE)};

#define FIELD(name) .field = offsetof(WeightsCommand, name)
static const OptionRow weights_options[] = {
    {"type", 0, "TYPE", "type of the floats: " AMPC_NARROW_LIST "f32 (default: as in IN)",
     .kind = OPTION_choice, FIELD(type), .words = type_words},
    {"model", 0, "NAME",
     "only the tensors of a model of several: those below NAME, without NAME in their names",
     .kind = OPTION_text, FIELD(model)},
    {"merge", 0, "JOB",
     "IN is a checkpoint or an adapter of JOB: write all weights of JOB, with its LoRA added to "
     "the "
     "weights that it adapts",
     .kind = OPTION_text, FIELD(merge)},
    {"averages", 0, NULL, "write the averages of weights (ema) instead of the weights",
     .kind = OPTION_flag, FIELD(averages)},
    {"force", 0, NULL, "also overwrite a file of another kind, but never IN", .kind = OPTION_flag,
     FIELD(force)},
    {"quiet", 'q', NULL, "print warnings only", .kind = OPTION_flag, FIELD(quiet)},
    {0}};

const OptionTable weights_verb = {
    .program = "amp weights",
    .usage = "[options] IN OUT",
    .about = "Writes the parameters and buffers of IN to the safetensors file OUT, as PyTorch's "
             "load_state_dict(strict=True) takes them. IN is a checkpoint of ampc, a file of "
             "torch.save, a GGUF file or a safetensors file.",
    .groups = (const OptionGroup[]){{weights_options, 0}, {NULL, 0}},
    .notes =
        "exit status: 0 done; 1 errors in JOB; 2 bad usage; 3 a file is missing, unreadable or "
        "damaged"};

/* ---- which tensors ---- */

typedef struct Output { /* a tensor of OUT */
  const char *name;
  const json_t *entry; /* in the header of IN */
} Output;

typedef struct Copying {
  const WeightsCommand *cmd;
  TensorFile in, out;
  json_t *averages; /* name of a weight -> entry of its average */
  Output *at;
  size_t n;
  int64_t numbers;
  void *raw, *made;
} Copying;

static ampc_status no_memory(const Copying *c)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->cmd->in);
}

static bool is_state(const Copying *c, const char *name)
{
  return strncmp(name, "optimizer.", 10) == 0 && tensor_file_get(&c->in, "ampc.version");
}

/* Finds averages in the optimizer state of a checkpoint: "optimizer.opt.ema/fc.weight". */
static ampc_status find_averages(Copying *c)
{
  const char *name;
  json_t *entry;
  c->averages = json_object();
  json_object_foreach(c->in.header, name, entry)
  {
    const char *ema = c->cmd->averages && is_state(c, name) ? strstr(name, ".ema/") : NULL;
    if (ema && json_object_set(c->averages, ema + 5, entry)) return no_memory(c);
  }
  if (!c->cmd->averages || json_object_size(c->averages)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s has no averages of weights: its job has no `ema`",
                   c->cmd->in);
}

/* Adds a tensor unless it belongs to another model. `from`: the name of its values in IN. */
static void add_output(Copying *c, const char *name, const char *from)
{
  const json_t *entry = json_object_get(c->averages, from);
  size_t n = c->cmd->model ? strlen(c->cmd->model) : 0;
  if (n && (strncmp(name, c->cmd->model, n) != 0 || name[n] != '.' || !name[n + 1])) return;
  if (!entry) entry = json_object_get(c->in.header, from);
  if (entry) c->at[c->n++] = (Output){n ? name + n + 1 : name, entry};
}

/* Names the models of IN, or what else its names begin with. */
static ampc_status no_model(const Copying *c)
{
  char list[200] = "";
  const char *name, *last = "";
  json_t *entry;
  json_object_foreach(c->in.header, name, entry)
  {
    size_t n = strcspn(name, "."), used = strlen(list);
    if (is_state(c, name) || strcmp(name, "__metadata__") == 0 ||
        (strncmp(name, last, n) == 0 && last[n] == '.'))
      continue;
    snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "", (int)n, name);
    last = name;
  }
  return ampc_fail(AMPC_BAD_FILE, "%s has no tensor below %s; its names begin with %s", c->cmd->in,
                   c->cmd->model, *list ? list : "nothing");
}

/* Lists weights and buffers, then the further names of tied parameters. */
static ampc_status list_outputs(Copying *c)
{
  static const char tied[] = "ampc.tied.";
  const json_t *metadata = json_object_get(c->in.header, "__metadata__");
  const char *name;
  json_t *value;
  c->at = calloc(json_object_size(c->in.header) + json_object_size(metadata) + 1, sizeof *c->at);
  if (!c->at) return no_memory(c);
  json_object_foreach(c->in.header, name, value)
  {
    if (strcmp(name, "__metadata__") != 0 && !is_state(c, name)) add_output(c, name, name);
  }
  json_object_foreach((json_t *)(uintptr_t)metadata, name, value)
  {
    bool alias = strncmp(name, tied, sizeof tied - 1) == 0 && json_is_string(value);
    if (alias) add_output(c, name + sizeof tied - 1, json_string_value(value));
  }
  return c->n || !c->cmd->model ? AMPC_OK : no_model(c);
}

/* ---- writing ---- */

/* The type that a tensor gets: AMPC_DTYPE_COUNT: it keeps its own. */
static ampc_dtype type_for(const Copying *c, const TensorEntry *e)
{
  return c->cmd->type && ampc_is_float(e->dtype) ? types[c->cmd->type - 1] : AMPC_DTYPE_COUNT;
}

static ampc_status fill_header(Copying *c)
{
  bool good = tensor_file_set(&c->out, "format", "pt");
  for (size_t i = 0; i < c->n && good; i++) {
    TensorEntry e = tensor_entry(c->at[i].entry);
    if (e.unread)
      return ampc_fail(AMPC_BAD_FILE, "%s: tensor %s is made by %s, which is not read", c->cmd->in,
                       c->at[i].name, json_string_value(json_object_get(c->at[i].entry, "dtype")));
    good = tensor_file_add_like(&c->out, c->at[i].name, c->at[i].entry, type_for(c, &e));
    c->numbers += e.elements;
  }
  return good ? AMPC_OK : no_memory(c);
}

/* Converts n elements. Returns how many finite ones became infinite. */
static int64_t convert(const Copying *c, const TensorEntry *e, ampc_dtype to, int64_t n)
{
  int64_t lost = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = number_load(e->dtype, e->wide, c->raw, i);
    number_store(to, false, c->made, i, v);
    lost += isfinite(v) && !isfinite(number_load(to, false, c->made, i));
  }
  return lost;
}

static ampc_status write_tensor(Copying *c, const Output *o, TensorWriter *to)
{
  TensorEntry e = tensor_entry(o->entry);
  ampc_dtype type = type_for(c, &e);
  int64_t lost = 0, size = type == AMPC_DTYPE_COUNT ? e.unit : ampc_size_of(type, false);
  ampc_status status = AMPC_OK;
  for (int64_t at = 0; at < e.elements && !status; at += PIECE) {
    int64_t n = e.elements - at < PIECE ? e.elements - at : PIECE;
    status = tensor_file_load(&c->in, e.begin + at * e.unit, c->raw, n * e.unit);
    if (!status && type != AMPC_DTYPE_COUNT) lost += convert(c, &e, type, n);
    if (!status) status = tensor_write(to, type == AMPC_DTYPE_COUNT ? c->raw : c->made, n * size);
  }
  if (lost && !status)
    fprintf(stderr, "warning: %s: %lld of %lld values are beyond %s (%s) and became infinite\n",
            o->name, (long long)lost, (long long)e.elements, ampc_type_of(type)->name,
            ampc_type_of(type)->greatest_text);
  return status;
}

static ampc_status write_outputs(Copying *c)
{
  TensorWriter to;
  c->raw = malloc(PIECE * sizeof(double));
  c->made = malloc(PIECE * sizeof(double));
  ampc_status status = c->raw && c->made ? fill_header(c) : no_memory(c);
  if (!status) status = tensor_write_begin(&to, &c->out, c->cmd->out, &file_weights);
  if (status) return status;
  for (size_t i = 0; i < c->n && !status; i++) status = write_tensor(c, &c->at[i], &to);
  if (!status) return tensor_write_end(&to);
  tensor_write_abandon(&to);
  return status;
}

static ampc_status copy_weights(const WeightsCommand *cmd)
{
  Copying c = {.cmd = cmd, .out.fd = -1};
  char bytes[AMPC_BYTES_ROOM];
  ampc_status status = tensor_file_read_any(cmd->in, &c.in);
  if (!status) status = find_averages(&c);
  if (!status) status = list_outputs(&c);
  if (!status) status = write_outputs(&c);
  if (!status && !cmd->quiet)
    printf("%s: %zu tensors, %lld numbers, %s\n", cmd->out, c.n, (long long)c.numbers,
           ampc_bytes_text(c.out.size, bytes));
  json_decref(c.averages);
  tensor_file_free(&c.in);
  tensor_file_free(&c.out);
  free(c.at);
  free(c.raw);
  free(c.made);
  return status;
}

static ampc_status merge(const WeightsCommand *cmd)
{
  if (cmd->model || cmd->averages)
    return ampc_fail(AMPC_BAD_USAGE, "--merge writes all weights of the job: leave out --%s",
                     cmd->model ? "model" : "averages");
  Options o = options_default();
  o.input = cmd->merge;
  o.target = "cpu";
  Compile *c = compile_create(&o);
  ampc_status status = merge_adapters(
      c, cmd->in, cmd->out, cmd->type ? types[cmd->type - 1] : AMPC_DTYPE_COUNT, cmd->quiet);
  compile_destroy(c);
  return status;
}

int weights_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  Operands files = {argv, argc};
  WeightsCommand cmd = {0};
  int status;
  bool good = options_read(&weights_verb, arena, &files, &cmd, &status);
  if (good && files.n != 2) {
    status = usage_error("amp weights", "expected IN and OUT, got %d file%s", files.n,
                         files.n == 1 ? "" : "s");
  } else if (good) {
    cmd.in = files.at[0];
    cmd.out = files.at[1];
    file_force(cmd.force);
    status = (int)(cmd.merge ? merge(&cmd) : copy_weights(&cmd));
    if (status == AMPC_BAD_USAGE)
      usage_error("amp weights", "%s", ampc_last_error());
    else if (status && *ampc_last_error())
      fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  }
  arena_destroy(arena);
  return status;
}
