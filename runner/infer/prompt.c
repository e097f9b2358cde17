/* The prompt of --generate: bytes, token numbers of a file, or text for a tokenizer, which the
 * job's sources of text name. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"
#include "generate.h"
#include "runner/job/options.h"

enum { MOST_PROMPT = 1 << 28 };

/* ---- the tokenizer of the job ---- */

typedef struct JobText { /* what sources of text say */
  const char *tokenizer, *template;
  bool bare;   /* special=false */
  bool unsure; /* two sources differ, or an argument is no text */
} JobText;

/* Returns the text that an argument is: a literal, or a const with one, also of -D. NULL: it is
 * none. */
static const char *text_of(const Compile *c, const Expr *e)
{
  for (uint32_t i = 0; e->kind == EXPR_name && i < c->options.n_consts; i++)
    if (strcmp(c->options.consts[i].key, e->as.name) == 0) return c->options.consts[i].value;
  for (uint32_t i = 0; e->kind == EXPR_name && i < c->ast->n; i++) {
    const Decl *d = c->ast->at[i];
    if (d->kind == DECL_const && strcmp(d->name.text, e->as.name) == 0) e = d->as.constant.value;
  }
  return e->kind == EXPR_string ? e->as.string.text : NULL;
}

static void take_argument(const Compile *c, const Expr *e, const char **to, JobText *out)
{
  const char *text = text_of(c, e);
  out->unsure |= !text || (*to && strcmp(*to, text) != 0);
  *to = text;
}

static void take_call(const Compile *c, const Expr *e, JobText *out)
{
  bool method;
  while ((method = e->kind == EXPR_call && e->as.call.callee->kind == EXPR_attr) ||
         e->kind == EXPR_index)
    e = method ? e->as.call.callee->as.attr.base : e->as.index.base;
  for (uint32_t i = 0; e->kind == EXPR_tuple && i < e->as.args.n; i++)
    take_call(c, e->as.args.at[i].value, out);
  bool chat = strcmp(called_name(e), "jsonl") == 0;
  if (!chat && strcmp(called_name(e), "text") != 0) return;
  for (uint32_t i = 0; i < e->as.call.args.n; i++) {
    const Arg *a = &e->as.call.args.at[i];
    const char *name = a->key.text ? a->key.text : i == 1 ? "tokenizer" : i == 2 ? "template" : "";
    if (strcmp(name, "tokenizer") == 0) take_argument(c, a->value, &out->tokenizer, out);
    if (strcmp(name, "template") == 0 && chat) take_argument(c, a->value, &out->template, out);
    if (strcmp(name, "special") == 0) out->bare |= a->value->kind == EXPR_false;
  }
}

/* Looks through the data blocks of the job, which need not be compiled. */
static JobText find_sources(const Compile *c)
{
  JobText found = {0};
  for (uint32_t i = 0; i < c->ast->n; i++) {
    if (c->ast->at[i]->kind != DECL_data) continue;
    const Block *body = &c->ast->at[i]->as.function.body;
    for (uint32_t k = 0; k < body->n; k++) {
      const Stmt *s = body->at[k];
      const ExprList *list = s->kind == STMT_assign   ? &s->as.assign.values
                             : s->kind == STMT_return ? &s->as.exprs
                                                      : NULL;
      for (uint32_t e = 0; list && e < list->n; e++) take_call(c, list->at[e], &found);
    }
  }
  return found;
}

/* ---- the prompt ---- */

/* Reads the tokens of a file: 16 bits each, little-endian, like the files of a `tokens` source. */
static ampc_status take_tokens(InferCommand *cmd, Compile *c, const char *file, const char *bytes,
                               int64_t n)
{
  PromptText *t = &cmd->text;
  if (n % 2)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes, which are not whole tokens of 2 bytes",
                     file, (long long)n);
  if (cmd->n_stops)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--stop: after the tokens of %s the output is numbers, which contain no text: "
                     "give the prompt as text",
                     file);
  t->numbers = true;
  t->n = n / 2;
  t->at = arena_array(c->arena, int64_t, (size_t)t->n);
  for (int64_t i = 0; i < t->n; i++)
    t->at[i] = (unsigned char)bytes[2 * i] | (unsigned char)bytes[2 * i + 1] << 8;
  return AMPC_OK;
}

/* Refuses a stop string that the text of a tokenizer, which is UTF-8, cannot contain. */
static ampc_status check_stops(InferCommand *cmd)
{
  Ids ids = {0};
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < cmd->n_stops && !status; i++)
    if (tokenizer_encode(cmd->text.tokenizer, cmd->stop[i], strlen(cmd->stop[i]), false, true,
                         &ids))
      status = ampc_fail(AMPC_BAD_USAGE, "--stop %s: %s", cmd->stop[i], ampc_last_error());
  free(ids.at);
  return status;
}

const char prompt_templates[] =
#define TEMPLATE(name, ...) #name ", "
#include "runtime/data/texts/templates.def"
#undef TEMPLATE
    "or a text with {prompt} and {answer}";

/* Returns the template whose marks the text has, a template of transformers, or NULL. */
static const char *known_template(const char *text)
{
  static const struct {
    const char *name, *has, *lacks;
  } marks[] = {{"chatml", "<|im_start|>", "<|im_sep|>"},
               {"llama3", "<|start_header_id|>", NULL},
               {"gemma", "<start_of_turn>", NULL},
               {"mistral", "[INST] ", " [/INST]"}};
  for (size_t i = 0; text && i < sizeof marks / sizeof *marks; i++)
    if (strstr(text, marks[i].has) && !(marks[i].lacks && strstr(text, marks[i].lacks)))
      return marks[i].name;
  return NULL;
}

/* Returns the template of a tokenizer_config.json: one, or that with the name `default` in a list.
 */
static const char *template_of(const json_t *config)
{
  json_t *entry = json_object_get(config, "chat_template"), *one;
  size_t i;
  json_array_foreach(entry, i, one)
  {
    const char *name = json_string_value(json_object_get(one, "name"));
    if (name && strcmp(name, "default") == 0)
      return json_string_value(json_object_get(one, "template"));
  }
  return json_string_value(entry);
}

/* Looks for the template of the model in the first of the two files that may have it, beside the
 * tokenizer. *unknown: the file whose template is none with a name. */
static const char *template_beside(const InferCommand *cmd, Arena *arena, const char *tokenizer,
                                   const char **unknown)
{
  static const char *const files[] = {"chat_template.jinja", "tokenizer_config.json"};
  const char *found = NULL, *folder = folder_of(arena, tokenizer);
  for (int i = 0; i < 2 && !*unknown && !found; i++) {
    char *text;
    int64_t n;
    const char *path = arena_printf(arena, "%s/%s", folder, files[i]);
    if (access(path, F_OK) != 0 || file_read_any(FILE_PROMPT, path, MOST_PROMPT, &text, &n))
      continue;
    json_t *config = i ? json_loads(text, 0, NULL) : NULL;
    const char *template = i ? template_of(config) : text;
    found = known_template(template);
    if (template && !found) *unknown = path;
    json_decref(config);
    free(text);
    if (found && !cmd->quiet) fprintf(stderr, "template %s, as %s has it\n", found, path);
  }
  return found;
}

static ampc_status open_template(InferCommand *cmd, Arena *arena, const char *file,
                                 const char *template, const char *what)
{
  PromptText *t = &cmd->text;
  const char *unknown = NULL;
  if (!template) template = template_beside(cmd, arena, file, &unknown);
  if (!template)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: the job has no jsonl(.., template=\"..\")%s%s: say which template with "
                     "--template: %s",
                     what, unknown ? ", and no template with a name is that of " : "",
                     unknown ? unknown : "", prompt_templates);
  ampc_status status = chat_open(t->tokenizer, file, template, &t->chat);
  if (!status && chat_end(t->chat) != UINT32_MAX) t->stop = chat_end(t->chat);
  return status;
}

ampc_status prompt_open(InferCommand *cmd, Compile *c, const char *what)
{
  PromptText *t = &cmd->text;
  const JobText job = find_sources(c);
  const char *file = cmd->tokenizer, *template = cmd->template ? cmd->template : job.template;
  t->stop = -1;
  t->bare = job.bare;
  if (job.unsure && (!file || (what && !cmd->template)))
    return ampc_fail(AMPC_BAD_USAGE, "the job's sources of text do not name one tokenizer and one "
                                     "template: say which with --tokenizer, --template");
  if (!file && job.tokenizer)
    file = job.tokenizer[0] == '/'
               ? job.tokenizer
               : arena_printf(c->arena, "%s/%s", cmd->train.data_dir, job.tokenizer);
  if (!file && what) return ampc_fail(AMPC_BAD_USAGE, "%s needs --tokenizer FILE", what);
  if (!file) return AMPC_OK;
  ampc_status status = tokenizer_open(file, &t->tokenizer);
  if (!status) status = check_stops(cmd);
  return status || !what ? status : open_template(cmd, c->arena, file, template, what);
}

void prompt_close(InferCommand *cmd)
{
  chat_close(cmd->text.chat);
  tokenizer_close(cmd->text.tokenizer);
}

void prompt_keep(Arena *arena, Ids *ids, int64_t **at, int64_t *count)
{
  *at = arena_array(arena, int64_t, ids->n);
  *count = (int64_t)ids->n;
  for (size_t i = 0; i < ids->n; i++) (*at)[i] = ids->at[i];
  free(ids->at);
}

ampc_status prompt_encode(const PromptText *t, Arena *arena, const char *bytes, size_t n,
                          int64_t **at, int64_t *count)
{
  Ids ids = {0};
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < n && !t->tokenizer && !status; i++)
    status = tokenizer_append(&ids, (unsigned char)bytes[i]);
  if (t->chat)
    status = chat_prompt(t->chat, NULL, bytes, n, &ids);
  else if (t->tokenizer)
    status = tokenizer_encode_piece(t->tokenizer, bytes, n, t->bare ? 0 : ENCODE_before, &ids);
  prompt_keep(arena, &ids, at, count);
  return status;
}

/* Encodes a text by the tokenizer, if there is one. */
static ampc_status take_text(InferCommand *cmd, Compile *c, const char *bytes, int64_t n)
{
  PromptText *t = &cmd->text;
  ampc_status status = prompt_open(cmd, c, cmd->chat ? "--chat" : NULL);
  return status ? status : prompt_encode(t, c->arena, bytes, (size_t)n, &t->at, &t->n);
}

static ampc_status read_prompt(InferCommand *cmd, Compile *c)
{
  const char *file = cmd->prompt_file;
  cmd->text.stop = -1;
  if (cmd->prompts) return prompts_read(cmd, c);
  if (!file) return take_text(cmd, c, cmd->prompt, (int64_t)strlen(cmd->prompt));
  char *bytes;
  int64_t n;
  size_t length = strlen(file);
  const char *why = file_read_any(FILE_PROMPT, file, MOST_PROMPT, &bytes, &n);
  if (why) return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", file, why);
  bool tokens = length > 4 && strcmp(file + length - 4, ".bin") == 0;
  ampc_status status = tokens ? take_tokens(cmd, c, file, bytes, n) : take_text(cmd, c, bytes, n);
  free(bytes);
  if (!status && !cmd->text.n)
    status =
        ampc_fail(AMPC_BAD_FILE, "%s is empty; give at least one token to continue from", file);
  return status;
}

static bool length_is_dim(const Compile *c, const Function *block)
{
  const TypeExpr *t = &block->params.at[0].type;
  const Expr *e = t->n_dims == 2 ? t->dims[1] : NULL;
  for (uint32_t i = 0; e && e->kind == EXPR_name && i < c->ast->n; i++) {
    const Decl *d = c->ast->at[i];
    if (d->kind == DECL_dim && strcmp(d->name.text, e->as.name) == 0) return true;
  }
  return false;
}

ampc_status prompt_need_dim(const Compile *c, const Function *block)
{
  if (length_is_dim(c, block)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE,
                   "the length of the text that infer `%s` takes is no dim, so its tokens cannot "
                   "be computed one by one: declare `dim S(max=1024)`, and write `infer "
                   "%s(%s: i64[1, S])`",
                   block->name.text, block->name.text, block->params.at[0].name.text);
}

ampc_status prompt_check_block(const InferCommand *cmd, const Function *block)
{
  if (block->params.n == 1) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE,
                   "%s: infer `%s` has %u arguments; expected one, the tokens of a text: "
                   "i64[1, S]",
                   cmd->what, block->name.text, block->params.n);
}

ampc_status generate_begin(InferCommand *cmd, Compile *c, const Function *block)
{
  ampc_status status = prompt_check_block(cmd, block);
  if (!status && cmd->prompts) status = prompt_need_dim(c, block);
  if (!status) status = read_prompt(cmd, c);
  c->options.decode = !cmd->no_cache && length_is_dim(c, block);
  c->options.text_from = cmd->text.n;
  c->options.text_to = cmd->text.n + cmd->generate - 1; /* the block does not read the last token */
  return status;
}
