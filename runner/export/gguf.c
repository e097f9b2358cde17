/* amp export --gguf. The file is right if its import gives the net that the job has. So for each
 * architecture, the metadata are made from the job's constants and read by amp import; the block
 * `next` of the job that this gives must have the graph of the job's own block. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ampc_rt.h"
#include "common/file.h"
#include "common/pattern.h"
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "export.h"
#include "runner/folder/folder.h"
#include "runner/job/options.h"
#include "runtime/base/convert.h"
#include "runtime/state/gguf.h"

static const FileKind file_gguf = {"GGUF file", 0, "GGUF", 4, FILE_NO_ROLE};

typedef struct Making {
  Arena *arena;
  Compile *c; /* the whole job */
  const char *out;
  const GgufWritten *type;
  json_t *constants; /* of the job: name -> value */
  const char *architecture;
  Folder folder;
  json_t *meta;
  ampc_program program;
  ampc_runtime *rt;
  const ampc_param **from; /* of each tensor; NULL: rope_freqs.weight */
  GgufTensor *to;
  uint32_t n, wide; /* tensors, and those whose rows are no whole blocks of the type */
} Making;

static ampc_status refuse(const Making *m, const char *why)
{
  return ampc_fail(AMPC_BAD_USAGE, "%s: %s", m->c->options.input, why);
}

static double number_of(const Making *m, const char *name)
{
  return json_number_value(json_object_get(m->constants, name));
}

/* ---- compiles ---- */

/* Options for a job in f32, of which only this block is compiled. `text`: the job; NULL: a file. */
static Options options_for(const Making *m, const char *block, const char *text, OpenText *open)
{
  Options o = m->c->options;
  Assignment *settings = arena_array(m->arena, Assignment, o.n_settings + 1);
  if (o.n_settings && !text) memcpy(settings, o.settings, o.n_settings * sizeof *settings);
  o.n_settings = text ? 0 : o.n_settings;
  settings[o.n_settings++] = (Assignment){"precision", "f32"};
  o.settings = settings;
  o.infer_block = block;
  o.whole_weights = true; /* the file gets the values, not codes */
  o.for_many_jobs = true;
  o.n_dims = 0;
  *open = (OpenText){"llama.cpp.amp", text, text ? (uint32_t)strlen(text) : 0};
  if (!text) return o;
  o.input = open->path;
  o.open = open;
  o.n_open = 1;
  o.n_consts = 0;
  o.silent = true;
  return o;
}

/* Returns the constants of a job that metadata may depend on; NULL after a failure. */
static json_t *read_constants(const Making *m, const char *text)
{
  OpenText open;
  Options o = options_for(m, NULL, text, &open);
  Text list = text_new(m->arena);
  json_t *out = NULL, *values = NULL;
  size_t n = 0;
  o.dump_after = "lower";
  Compile *c = compile_create(&o);
  if (compile_parse_job(c)) {
    for (uint32_t i = 0; i < c->ast->n; i++) {
      const Decl *d = c->ast->at[i];
      if (d->kind == DECL_const && gguf_is_constant(d->name.text))
        text_printf(&list, "%s\"%s\", %s", list.n ? ", " : "[", d->name.text, d->name.text);
      if (d->kind <= DECL_def) c->ast->at[n++] = c->ast->at[i];
    }
    c->ast->n = (uint32_t)n;
    text_puts(&list, list.n ? "]" : "[0]");
    if (compile_add_input(c, "<constants>", list.at, list.n, NULL) && compile_parsed(c) &&
        c->answer)
      values = json_loads(c->answer + strcspn(c->answer, "["), 0, NULL);
  }
  if (values) out = json_object();
  for (size_t i = 0; i + 1 < json_array_size(values); i += 2)
    json_object_set(out, json_string_value(json_array_get(values, i)),
                    json_array_get(values, i + 1));
  json_decref(values);
  compile_destroy(c);
  return out;
}

static bool is_same(const Graph *a, const Graph *b, uint32_t id)
{
  const Node *x = ir_node(a, (Value){id}), *y = ir_node(b, (Value){id});
  bool same = x->op == y->op && x->dtype == y->dtype && x->rank == y->rank && x->n_in == y->n_in;
  for (uint32_t i = 0; same && i < x->rank; i++) same = x->dim[i] == y->dim[i];
  for (uint32_t i = 0; same && i < x->n_in; i++) same = x->in[i].id == y->in[i].id;
  const OpSignature *s = &op_of(x)->signature;
  for (uint32_t i = 0; same && i < s->n_attrs; i++)
    same = s->attr[i].kind == ATTR_float
               ? memcmp(&x->attr[i].f, &y->attr[i].f, sizeof x->attr->f) == 0
               : x->attr[i].i == y->attr[i].i;
  return same;
}

/* Whether the block of the job computes what the architecture does. *out_at: the first node that
 * differs. */
static bool agrees(const Making *m, const Graph *g, const char *text, uint32_t *out_at)
{
  OpenText open;
  Options o = options_for(m, "next", text, &open);
  o.dump_after = "simplify";
  Compile *c = compile_create(&o);
  uint32_t n = g->nodes.n, id = 1;
  bool same = compile_job(c);
  while (same && id < n && id < c->graph->nodes.n && is_same(g, c->graph, id)) id++;
  same = same && id == n && id == c->graph->nodes.n;
  *out_at = id < n ? id : n - 1;
  compile_destroy(c);
  return same;
}

/* ---- which architecture ---- */

/* Names of the constants that differ from those of a job, with both values; "": none. */
static const char *differences(const Making *m, const char *text, uint32_t *count)
{
  json_t *others = read_constants(m, text), *own;
  const char *name, *out = "";
  *count = others ? 0 : UINT32_MAX;
  json_object_foreach(m->constants, name, own)
  {
    const json_t *other = json_object_get(others, name);
    bool number = json_is_number(own) && json_is_number(other);
    bool dropout = strcmp(name, "P") == 0 || strncmp(name, "P_", 2) == 0;
    if (!other || dropout || strcmp(name, "TOKENIZER") == 0 || strcmp(name, "TRANSPOSE") == 0 ||
        (number ? json_number_value(own) == json_number_value(other) : json_equal(own, other)))
      continue;
    char *a = json_dumps(own, JSON_ENCODE_ANY), *b = json_dumps(other, JSON_ENCODE_ANY);
    out =
        arena_printf(m->arena, "%s%s`%s` is %.60s, there %.60s", out, *out ? "; " : "", name, a, b);
    (*count)++;
    free(a);
    free(b);
  }
  json_decref(others);
  return out;
}

/* Names all tensors as the architecture does. Returns the parameter that it does not know. */
static const char *name_tensors(Making *m, const Graph *g, Loading *x)
{
  x->at = arena_array(m->arena, LoadTensor, g->params.n + 1);
  for (; x->n < g->params.n; x->n++) {
    const char *own = g->params.at[x->n].path;
    x->at[x->n].name = gguf_name(m->arena, m->architecture, own);
    if (!x->at[x->n].name) return own;
  }
  return NULL;
}

/* Finds the architecture that computes what the block does. */
static ampc_status find_architecture(Making *m, Compile *small)
{
  const Graph *g = small->graph;
  const char *unknown = "", *known = "", *why = NULL;
  uint32_t fewest = UINT32_MAX;
  for (uint32_t i = 0; i < g->params.n; i++)
    if (g->params.at[i].adapts)
      return refuse(m, "it has adapters: write their sum with the weights by `amp weights --merge "
                       "JOB IN OUT`, then export the job without `adapt`, with --weights OUT");
  for (uint32_t i = 0; (m->architecture = gguf_architecture(m->arena, i)); i++) {
    TensorFile file = {.fd = -1, .header = json_pack("{s:{}}", "__metadata__")};
    Loading x = {.files = &file, .n_files = 1};
    const char *text, *other = name_tensors(m, g, &x), *says;
    uint32_t at, count = UINT32_MAX - 1;
    known = arena_printf(m->arena, "%s %s", known, m->architecture);
    if (other) {
      unknown = other;
      json_decref(file.header);
      continue;
    }
    m->folder = (Folder){.arena = m->arena,
                         .path = m->out,
                         .config = m->c->options.input,
                         .gguf = true,
                         .weights = m->out,
                         .absent = ""};
    ampc_status status = gguf_job(&m->folder, m->architecture, m->constants, &x, &text);
    m->meta = json_incref(json_object_get(file.header, "__metadata__"));
    json_decref(file.header);
    if (!status && agrees(m, g, text, &at)) return AMPC_OK;
    if (status)
      says = arena_strdup(m->arena, ampc_last_error());
    else if (!*(says = differences(m, text, &count)))
      says = arena_printf(m->arena, "line %u",
                          diag_user_place(small, ir_node(g, (Value){at})->span).line);
    if (!status)
      says = arena_printf(m->arena, "llama.cpp's %s computes something else: %s", m->architecture,
                          says);
    if (!why || count < fewest) why = says;
    fewest = count < fewest ? count : fewest;
    folder_close(&m->folder);
    json_decref(m->meta);
    m->folder = (Folder){0};
    m->meta = NULL;
  }
  if (why) return refuse(m, why);
  return refuse(m, arena_printf(m->arena,
                                "no architecture of GGUF has the parameter %s; jobs of `amp import "
                                "FOLDER` can be written if they are language models of:%s",
                                unknown, known));
}

/* ---- tensors ---- */

static void list_tensors(Making *m)
{
  const char *scaling = json_string_value(json_object_get(m->constants, "ROPE_TYPE"));
  m->from = arena_array(m->arena, const ampc_param *, m->program.n_params + 1);
  m->to = arena_array(m->arena, GgufTensor, m->program.n_params + 1);
  for (uint32_t i = 0; i < m->program.n_params; i++) {
    const ampc_param *q = m->from[i] = &m->program.params[i];
    GgufTensor *t = &m->to[m->n++];
    bool turns = false;
    const GgufRule *rule;
    t->name = gguf_name(m->arena, m->architecture, q->path);
    t->rank = q->rank;
    for (uint32_t k = 0; (rule = gguf_rule(m->architecture, k)); k++)
      turns |= rule->change == CHANGE_turn && pattern_matches(rule->pattern, q->path, false);
    for (uint32_t k = 0; k < q->rank; k++) t->dim[k] = q->dim[turns ? q->rank - 1 - k : k];
    if (q->rank < 2 || strcmp(t->name, "position_embd.weight") == 0) continue; /* f32 */
    bool whole = t->dim[1] % gguf_type(m->type->type)->elements == 0;
    t->type = whole ? m->type->type : gguf_written("f16")->type;
    m->wide += !whole;
  }
  if (scaling && strcmp(scaling, "llama3") == 0)
    m->to[m->n++] = (GgufTensor){
        .name = "rope_freqs.weight", .rank = 1, .dim = {(int64_t)number_of(m, "HEAD_DIM") / 2}};
}

/* The divisors of frequencies that Llama 3 has. */
static void fill_frequencies(const Making *m, int64_t n, float *to)
{
  double low = number_of(m, "ROPE_LOW"), high = number_of(m, "ROPE_HIGH");
  for (int64_t i = 0; i < n; i++) {
    double wave = 2 * acos(-1) * pow(number_of(m, "ROPE_THETA"), (double)i / (double)n);
    double share = (number_of(m, "ROPE_CONTEXT") / wave - low) / (high - low);
    share = fmin(fmax(share, 0), 1);
    to[i] = (float)(1 / ((1 - share) / number_of(m, "ROPE_FACTOR") + share));
  }
}

/* The row of the job that is row i of the file. */
static int64_t row_of(const Making *m, GgufChange change, int64_t rows, int64_t i)
{
  int64_t heads = (int64_t)number_of(m, "HEADS"), each = (int64_t)number_of(m, "HEAD_DIM");
  if (change == CHANGE_pairs) return i - i % each + i % 2 * (each / 2) + i % each / 2;
  each = rows / heads / 3; /* i: part, head, feature */
  return (i / each % heads * 3 + i / each / heads) * each + i % each;
}

/* Does to the weights what llama.cpp's converter does, if the job has them otherwise. */
static void change_weights(const Making *m, const ampc_param *q, const GgufRule *rule,
                           const float *from, float *to)
{
  int64_t rows = q->dim[0], columns = q->elements / rows;
  double less = number_of(m, rule->constant) - strtod(rule->code, NULL);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      if (rule->change == CHANGE_turn)
        to[k * rows + i] = from[i * columns + k];
      else if (rule->change == CHANGE_add)
        to[i * columns + k] = (float)((double)from[i * columns + k] + less);
      else
        to[i * columns + k] = from[row_of(m, rule->change, rows, i) * columns + k];
}

/* Whether the job has another value than llama.cpp. */
static bool is_other(const Making *m, const GgufRule *rule)
{
  json_t *code = json_loads(rule->code, JSON_DECODE_ANY, NULL);
  const json_t *own = json_object_get(m->constants, rule->constant);
  bool other = rule->change == CHANGE_turn || (own && code && !json_equal(own, code));
  json_decref(code);
  return other;
}

static ampc_status write_tensor(const Making *m, uint32_t at, FileWriter *file)
{
  const ampc_param *q = m->from[at];
  const GgufRule *rule;
  int64_t n = q ? q->elements : m->to[at].dim[0], lost = 0;
  float *values = malloc((size_t)n * sizeof *values + 1), *made;
  ampc_status status = AMPC_OK;
  if (values && q)
    status = ampc_read_param(m->rt, q, q->buffer ? AMPC_BUFFER : AMPC_MASTER, values);
  if (values && !q) fill_frequencies(m, n, values);
  for (int64_t i = n; i-- > 0 && q && values && q->dtype != AMPC_F32 && !status;)
    values[i] = (float)number_load(q->dtype, false, values, i); /* in place, from the end */
  for (uint32_t i = 0; values && q && !status && (rule = gguf_rule(m->architecture, i)); i++)
    if (*rule->pattern && pattern_matches(rule->pattern, q->path, false) && is_other(m, rule)) {
      made = malloc((size_t)n * sizeof *made + 1);
      if (made) change_weights(m, q, rule, values, made);
      free(values);
      values = made;
    }
  if (!values) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->to[at].name);
  if (!status) status = gguf_write_tensor(file, &m->to[at], values, &lost);
  if (lost && !status)
    fprintf(stderr, "warning: %s: %lld of %lld values are beyond %s and became infinite\n",
            m->to[at].name, (long long)lost, (long long)n, gguf_type(m->to[at].type)->name);
  free(values);
  return status;
}

/* ---- the file ---- */

static ampc_status describe(Making *m, const char *data_dir, bool quiet)
{
  const GgufRule *rule;
  const char *name = json_string_value(json_object_get(m->constants, "TOKENIZER"));
  char *path = name && *name ? file_join(data_dir, name) : NULL;
  json_object_set_new(m->meta, "general.file_type", json_integer(m->type->file_type));
  json_object_set_new(m->meta, "general.name", json_string(m->program.name));
  json_object_set_new(m->meta, "general.alignment", json_integer(GGUF_ALIGNMENT));
  json_object_set_new(m->meta, "general.quantization_version", json_integer(2));
  for (uint32_t i = 0; (rule = gguf_rule(m->architecture, i)); i++)
    if (rule->change == CHANGE_gelu && is_other(m, rule))
      fprintf(
          stderr,
          "warning: llama.cpp computes GELU by tanh, the job does not: results differ slightly\n");
  ampc_status status = AMPC_OK;
  if (path && access(path, F_OK) == 0) {
    status = gguf_add_tokenizer(&m->folder, path, (int64_t)number_of(m, "VOCAB"), m->meta);
  } else {
    json_object_set_new(m->meta, "tokenizer.ggml.model", json_string("none"));
    if (!quiet)
      printf("%s has no tokenizer (%s): llama.cpp takes and gives token numbers only, no text\n",
             m->out, path ? arena_printf(m->arena, "there is no %s", path) : "the job names none");
  }
  free(path);
  return status;
}

static ampc_status write_file(Making *m)
{
  FileWriter file;
  ampc_status status = file_begin(&file, m->out, &file_gguf);
  if (status) return status;
  status = gguf_write_header(&file, m->meta, m->to, m->n);
  for (uint32_t i = 0; i < m->n && !status; i++) status = write_tensor(m, i, &file);
  if (!status) return file_finish(&file, true);
  file_abandon(&file);
  return status;
}

/* Compiles the whole program, for its weights. Kernels are not compiled. */
static ampc_status open_weights(Making *m, const Function *block, const char *weights,
                                const char *data_dir, Compile **out)
{
  OpenText open;
  Options o = options_for(m, block->name.text, NULL, &open);
  *out = compile_create(&o);
  if (!compile_job(*out)) return refuse(m, "it does not compile in f32");
  m->program = *(*out)->program;
  m->program.n_kernels = 0;
  return ampc_infer_open(&m->program, "cpu", weights, data_dir, weights_tell, NULL, &m->rt);
}

int gguf_export(Compile *c, const Function *block, const char *weights, const char *type,
                const char *out, bool quiet)
{
  Making m = {.arena = c->arena, .c = c, .out = out, .type = gguf_written(type)};
  OpenText open;
  Options o = options_for(&m, block->name.text, NULL, &open);
  o.dump_after = "simplify";
  Compile *small = compile_create(&o), *whole = NULL;
  const char *data_dir =
      c->options.data_dir ? c->options.data_dir : folder_of(c->arena, c->options.input);
  bool good = compile_job(small);
  ampc_status status = good ? file_check_writable(out, &file_gguf) : AMPC_OK;
  if (good && !status) m.constants = read_constants(&m, NULL);
  if (good && !status && !m.constants) status = refuse(&m, "its constants cannot be read");
  if (good && !status) status = find_architecture(&m, small);
  if (good && !status) status = open_weights(&m, block, weights, data_dir, &whole);
  if (good && !status) status = describe(&m, data_dir, quiet);
  if (good && !status) list_tensors(&m);
  if (good && !status) status = write_file(&m);
  if (status) fprintf(stderr, "amp export: error: %s\n", ampc_last_error());
  if (good && !status && !quiet)
    printf("%s: %s, %u tensors, %s%s\n", out, m.architecture, m.n, type,
           m.wide ? arena_printf(c->arena, "; f16: %u whose rows are no multiple of 32", m.wide)
                  : "");
  ampc_free(m.rt);
  folder_close(&m.folder);
  json_decref(m.meta);
  json_decref(m.constants);
  compile_destroy(small);
  if (whole) compile_destroy(whole);
  return status ? (int)status : good ? 0 : 1;
}
