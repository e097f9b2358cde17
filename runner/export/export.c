/* amp export: writes an infer block as an ONNX model, or its language model as a GGUF file. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "compiler/driver.h"
#include "export.h"
#include "runner/infer/infer.h"
#include "runner/job/options.h"
#include "runner/runner.h"
#include "save.h"

/* Versions of the operators and the format. Before opset 22, Conv and pools have no bf16. */
enum { OPSET = 18, OPSET_BF16 = 22, IR_VERSION = 8, IR_VERSION_BF16 = 10 };

typedef struct ExportCommand {
  Options compile;
  const char *block, *decode, *weights, *out, *gguf;
  int type; /* 1 + index in types; 0: not given */
  bool force, quiet;
} ExportCommand;

static const char *const types[] = {"f16", "f32", "bf16", "q8_0", NULL};

#define FIELD(name) .field = offsetof(ExportCommand, name)
static const OptionRow export_options[] = {
    {NULL, 'o', "FILE", "the ONNX model to write", .kind = OPTION_text, FIELD(out)},
    {"gguf", 0, "FILE",
     "write the GGUF file of a language model instead, for llama.cpp: nets of amp import FOLDER",
     .kind = OPTION_text, FIELD(gguf)},
    {"type", 0, "TYPE",
     "type of the matrices: f32, f16, bf16, q8_0; what has one axis stays f32 (default: f16, as "
     "llama.cpp's converter writes weights of f32)",
     .kind = OPTION_choice, FIELD(type), .words = types, .with = "gguf"},
    {"block", 0, "NAME", "the infer block; needed if the job has several", .kind = OPTION_text,
     FIELD(block)},
    {"decode", 0, "BLOCK",
     "the decoder of this infer block: each call continues a text by any number of tokens, with "
     "what it keeps of the earlier ones as arguments and results",
     .kind = OPTION_text, FIELD(decode), .without = "block gguf"},
    {"weights", 0, "FILE", "a checkpoint, or a safetensors or PyTorch file with the job's names",
     .also = "resume", .kind = OPTION_text, FIELD(weights)},
    {"force", 0, NULL,
     "also overwrite a file that amp export did not write, but never an input of this command",
     .kind = OPTION_flag, FIELD(force)},
    {"quiet", 'q', NULL, "print warnings only", .kind = OPTION_flag, FIELD(quiet)},
    {0}};

const OptionTable export_verb = {
    .program = "amp export",
    .usage = "[options] job.amp -o net.onnx\n       amp export [options] job.amp --gguf net.gguf",
    .about = "Writes an infer block with its weights as an ONNX model, or as a GGUF file.",
    .groups = (const OptionGroup[]){{export_options, 0},
                                    {job_options, offsetof(ExportCommand, compile)},
                                    {NULL, 0}},
    .notes = "exit status: 0 done; 1 errors in the program, or ops that ONNX does not have; 2 bad "
             "usage; 3 a file is missing or unreadable"};

static bool read_command_line(Arena *arena, int argc, char **argv, ExportCommand *cmd, int *status)
{
  Operands jobs = {argv, argc};
  *cmd = (ExportCommand){.compile = options_default()};
  if (!options_read(&export_verb, arena, &jobs, cmd, status)) return false;
  *status = options_count_jobs(&export_verb, &jobs, 1, 1);
  if (!*status && !cmd->out == !cmd->gguf)
    *status =
        usage_error("amp export", "expected -o FILE, the ONNX model to write, or --gguf FILE");
  cmd->compile.input = jobs.at[0];
  cmd->compile.target = "cpu";
  file_force(cmd->force);
  return !*status;
}

/* ---- the model ---- */

static void add_metadata(Arena *a, OnnxModel *m, const char *key, const char *value)
{
  m->n_metadata_props = 1;
  m->metadata_props = arena_array(a, Onnx__StringStringEntryProto *, 1);
  m->metadata_props[0] = onnx_entry(a, key, value);
}

static OnnxModel *make_model(Export *e, const ampc_program *program)
{
  OnnxModel *m = arena_new(e->arena, OnnxModel);
  Onnx__OperatorSetIdProto *ops = arena_new(e->arena, Onnx__OperatorSetIdProto);
  onnx__model_proto__init(m);
  onnx__operator_set_id_proto__init(ops);
  m->has_ir_version = ops->has_version = true;
  m->ir_version = e->bf16 ? IR_VERSION_BF16 : IR_VERSION;
  ops->version = e->bf16 ? OPSET_BF16 : OPSET;
  ops->domain = arena_strdup(e->arena, "");
  m->n_opset_import = 1;
  m->opset_import = arena_array(e->arena, Onnx__OperatorSetIdProto *, 1);
  m->opset_import[0] = ops;
  m->producer_name = arena_strdup(e->arena, "ampc");
  m->producer_version = arena_strdup(e->arena, AMPC_VERSION);
  m->graph = build_end(e->root, program->name);
  if (e->classes) add_metadata(e->arena, m, "classes", e->classes);
  return m;
}

static void report(const Export *e, const ExportCommand *cmd, const OnnxModel *m,
                   const char *beside)
{
  const char *sizes = "";
  if (e->draws)
    fprintf(stderr, "warning: %s draws other random numbers than amp infer\n", cmd->out);
  for (uint32_t i = 0; i < e->n_sizes; i++)
    sizes = arena_printf(e->arena, "%s%s%s", sizes, i ? ", " : ", any ", e->size_name[i]);
  if (e->state)
    sizes = arena_printf(e->arena, "%s, %u tensor%s of state for %lld tokens", sizes, e->n_states,
                         e->n_states == 1 ? "" : "s", (long long)e->g->blocks.at[0].context);
  if (!cmd->quiet)
    printf("%s: %zu operations, opset %lld%s%s%s\n", cmd->out, m->graph->n_node,
           (long long)m->opset_import[0]->version, sizes, beside ? ", tensors in " : "",
           beside ? beside : "");
}

static int export_block(Compile *c, const ExportCommand *cmd, const Function *block)
{
  Export e = {.arena = c->arena};
  ampc_status status = AMPC_OK;
  e.root = e.b = build_begin(e.arena, NULL);
  bool good = variants_compile(&e, c, block);
  if (good) {
    e.name = arena_array(e.arena, const char *, e.g->nodes.n);
    const char *folder =
        c->options.data_dir ? c->options.data_dir : folder_of(e.arena, c->options.input);
    status = weights_open(&e, c->program, cmd->weights, folder);
    good = !status && put_block(&e);
  }
  if (good) {
    build_prune(e.root);
    OnnxModel *m = make_model(&e, c->program);
    const char *beside;
    status = onnx_save(e.arena, cmd->out, m, ONNX_MOST_BYTES, &beside);
    if (!status) report(&e, cmd, m, beside);
  }
  if (status) fprintf(stderr, "amp export: error: %s\n", ampc_last_error());
  weights_close(&e);
  variants_end(&e);
  return status ? (int)status : good ? 0 : 1;
}

static int compile_and_export(Compile *c, const ExportCommand *cmd)
{
  if (!compile_parse_job(c)) return c->cannot_read ? AMPC_BAD_FILE : 1;
  const Function *block = infer_choose_block(c, cmd->decode ? cmd->decode : cmd->block);
  if (!block) return usage_error("amp export", "%s", ampc_last_error());
  c->options.infer_block = block->name.text;
  if (cmd->gguf)
    return gguf_export(c, block, cmd->weights, types[cmd->type ? cmd->type - 1 : 0], cmd->gguf,
                       cmd->quiet);
  if (cmd->decode) { /* one token: variants_compile() takes other numbers */
    c->options.decode = true;
    c->options.decode_new = 1;
    c->options.text_to = INT64_MAX;
  }
  if (!compile_parsed(c)) return c->cannot_read ? AMPC_BAD_FILE : 1;
  return export_block(c, cmd, block);
}

int export_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  ExportCommand cmd;
  int status;
  if (read_command_line(arena, argc, argv, &cmd, &status)) {
    Compile *c = compile_create(&cmd.compile);
    status = compile_and_export(c, &cmd);
    compile_destroy(c);
  }
  arena_destroy(arena);
  return status;
}
