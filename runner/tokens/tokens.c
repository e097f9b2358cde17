/* amp tokens: texts to ids in a file, as the source tokens() reads them; back; or shown as tokens.
 * A text is a file, or with --lines a line. Its tokens depend on all of it, so it is in memory. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/bytes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/shown.h"
#include "compiler/cli/option_table.h"
#include "runner/runner.h"
#include "runtime/data/tokenizer/tokenizer.h"

/* ---- the command line ---- */

typedef struct TokensCommand {
  const char *tokenizer, *out, *separator;
  int format; /* 1 + index in formats; 0: as the vocabulary needs */
  bool decode, show, lines, bare, plain, force, quiet;
} TokensCommand;

static const char *const formats[] = {"u16", "i32", NULL};
static const size_t sizes[] = {2, 4}; /* bytes of a token */

#define FIELD(name) .field = offsetof(TokensCommand, name)
static const OptionRow tokens_options[] = {
    {"tokenizer", 0, "FILE", "a tokenizer.json, or a .model of sentencepiece", .kind = OPTION_text,
     FIELD(tokenizer)},
    {NULL, 'o', "FILE", "the file to write: ids, or with --decode text", .kind = OPTION_text,
     FIELD(out)},
    {"decode", 0, NULL, "write the text of the ids in a file that amp tokens wrote",
     .kind = OPTION_flag, FIELD(decode)},
    {"show", 0, NULL, "print the tokens of the texts", .kind = OPTION_flag, FIELD(show),
     .without = "decode"},
    {"lines", 0, NULL, "each line is a text of its own, without its end", .kind = OPTION_flag,
     FIELD(lines), .without = "decode"},
    {"separator", 0, "TOKEN", "a token after each text, such as <|endoftext|>", .kind = OPTION_text,
     FIELD(separator), .without = "decode"},
    {"no-special", 0, NULL,
     "do not add special tokens around a text, such as <s>; with --decode, leave out all",
     .kind = OPTION_flag, FIELD(bare)},
    {"plain", 0, NULL,
     "special tokens in the texts are text like any other; use it for text from strangers",
     .kind = OPTION_flag, FIELD(plain), .without = "decode"},
    {"format", 0, "TYPE",
     "type of the ids: u16 or i32 (default: u16 if all ids of the tokenizer fit, else i32)",
     .kind = OPTION_choice, FIELD(format), .words = formats},
    {"force", 0, NULL,
     "also overwrite a file that is not empty, but never an input of this command",
     .kind = OPTION_flag, FIELD(force)},
    {"quiet", 'q', NULL, "print warnings only", .kind = OPTION_flag, FIELD(quiet)},
    {0}};

const OptionTable tokens_verb = {
    .program = "amp tokens",
    .usage = "--tokenizer FILE [options] TEXT... -o DATA\n"
             "       amp tokens --tokenizer FILE --decode DATA [-o TEXT]\n"
             "       amp tokens --tokenizer FILE --show TEXT...",
    .about =
        "Writes the ids of the tokens of texts, as the source tokens() of a job reads them. The "
        "ids are those of Hugging Face's tokenizers, for a .model those of sentencepiece. Each "
        "TEXT is a file of UTF-8; - is stdin.",
    .groups = (const OptionGroup[]){{tokens_options, 0}, {NULL, 0}},
    .notes =
        "exit status: 0 done; 2 bad usage; 3 a file is missing or unreadable, or a text has no "
        "tokens; 130 interrupted"};

static bool check_usage(const TokensCommand *cmd, const Operands *files, int *status)
{
  const char *why = !cmd->tokenizer               ? "expected --tokenizer FILE"
                    : !files->n                   ? "no file was given"
                    : cmd->decode && files->n > 1 ? "--decode takes one file"
                    : !cmd->decode && !cmd->show == !cmd->out
                        ? "expected -o FILE to write ids, or --show to print tokens"
                        : NULL;
  if (why) *status = usage_error("amp tokens", "%s", why);
  return !why;
}

/* ---- output ---- */

/* Nothing in the files tells that amp tokens wrote them, so only an empty file is replaced. */
static const FileKind file_tokens = {"empty file", 0, NULL, 0, FILE_NO_ROLE};

typedef struct Writing {
  const TokensCommand *cmd;
  Tokenizer *tokenizer;
  FileWriter file;
  int format;
  uint32_t separator;
  Ids ids;
  char *bytes; /* of ids, to be written */
  size_t room;
  int64_t texts, tokens;
  double begun, told; /* told 0: there is no line of progress */
  bool watched;
} Writing;

static void tell_progress(void *writing)
{
  Writing *w = writing;
  double now = seconds_now(), tokens = (double)w->tokens + (double)w->ids.n;
  char all[AMPC_BYTES_ROOM], each[AMPC_BYTES_ROOM];
  if (now - w->told < 0.2 || now - w->begun < 1) return;
  w->told = now;
  fprintf(stderr, "\r%lld texts done, %s tokens, %s a second\x1b[K", (long long)w->texts,
          ampc_scaled_text((int64_t)tokens, "", all),
          ampc_scaled_text((int64_t)(tokens / (now - w->begun)), "", each));
}

static ampc_status write_ids(Writing *w)
{
  size_t size = sizes[w->format];
  if (w->ids.n > w->room / 4) {
    char *more = realloc(w->bytes, w->ids.n * 4);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", w->cmd->out);
    w->bytes = more;
    w->room = w->ids.n * 4;
  }
  for (size_t i = 0; i < w->ids.n; i++)
    for (size_t j = 0; j < size; j++) w->bytes[i * size + j] = (char)(w->ids.at[i] >> 8 * j);
  return file_add(&w->file, w->bytes, (int64_t)(w->ids.n * size));
}

/* Prints tokens with two colours in turn, or with a | between them. Tokens end at their line. */
static ampc_status show_ids(const Writing *w)
{
  const char *no = getenv("NO_COLOR");
  bool colors = isatty(STDOUT_FILENO) && !(no && *no), first = true;
  char escape[AMPC_ESCAPE_ROOM], *bytes;
  size_t n;
  for (size_t i = 0; i < w->ids.n; i++) {
    ampc_status status = tokenizer_bytes(w->tokenizer, w->ids.at[i], &bytes, &n);
    if (status) return status;
    if (colors)
      printf("\x1b[%dm", i % 2 ? 44 : 45);
    else if (!first)
      putchar('|');
    for (size_t j = 0, size; j < n; j += size) {
      size = ampc_character(bytes + j, n - j, escape);
      if (*escape)
        fputs(escape, stdout);
      else
        fwrite(bytes + j, 1, size, stdout);
    }
    if (colors) fputs("\x1b[0m", stdout);
    first = n && bytes[n - 1] == '\n';
    if (first) putchar('\n');
    free(bytes);
  }
  if (!first) putchar('\n');
  return AMPC_OK;
}

static ampc_status put_text(Writing *w, const char *text, size_t n)
{
  w->ids.n = 0;
  if (w->watched && w->texts % 1024 == 0) tell_progress(w);
  ampc_status status =
      tokenizer_encode(w->tokenizer, text, n, !w->cmd->bare, w->cmd->plain, &w->ids);
  if (!status && w->cmd->separator) status = tokenizer_append(&w->ids, w->separator);
  if (status) return status;
  w->texts++;
  w->tokens += (int64_t)w->ids.n;
  return w->cmd->out ? write_ids(w) : show_ids(w);
}

/* Names the text in the last message: its file, and with --lines its line. */
static ampc_status failed_text(const char *path, int64_t line, ampc_status status)
{
  if (!line) return ampc_fail(status, "%s: %s", path, ampc_last_error());
  return ampc_fail(status, "%s:%lld: %s", path, (long long)line, ampc_last_error());
}

static ampc_status put_lines(Writing *w, const char *path, const char *text, size_t n)
{
  ampc_status status = AMPC_OK;
  for (int64_t line = 1; n && !status; line++) {
    const char *end = memchr(text, '\n', n);
    size_t size = end ? (size_t)(end - text) : n, used = size + (end != NULL);
    status = put_text(w, text, size && text[size - 1] == '\r' ? size - 1 : size);
    if (status) return failed_text(path, line, status);
    text += used;
    n -= used;
  }
  return status;
}

static ampc_status put_file(Writing *w, const char *path)
{
  char *text;
  int64_t n;
  bool input = strcmp(path, "-") == 0;
  const char *why = file_read_any(FILE_DATA, input ? "/dev/stdin" : path, INT64_MAX - 1, &text, &n);
  if (why) return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", path, why);
  ampc_status status =
      w->cmd->lines ? put_lines(w, path, text, (size_t)n) : put_text(w, text, (size_t)n);
  free(text);
  return status && !w->cmd->lines ? failed_text(path, 0, status) : status;
}

static void tell_result(const Writing *w)
{
  const char *name = formats[w->format];
  if (w->cmd->quiet || !w->cmd->out) return;
  printf("%s: %lld tokens of %lld text%s; in a job: tokens(\"%s\", format=\"%s\", length=...)\n",
         w->cmd->out, (long long)w->tokens, (long long)w->texts, w->texts == 1 ? "" : "s",
         w->cmd->out, name);
}

static ampc_status put_files(Writing *w, const Operands *files)
{
  w->watched = isatty(STDERR_FILENO) && !w->cmd->quiet && w->cmd->out;
  if (w->watched) tokenizer_watch(w->tokenizer, tell_progress, w);
  ampc_status status = w->cmd->out ? file_begin(&w->file, w->cmd->out, &file_tokens) : AMPC_OK;
  if (status) return status;
  for (int i = 0; i < files->n && !status; i++) status = put_file(w, files->at[i]);
  if (w->told) fputs("\r\x1b[K", stderr);
  if (!status && w->cmd->out) status = file_finish(&w->file, true);
  if (w->cmd->out) file_abandon(&w->file);
  if (!status) tell_result(w);
  return status;
}

/* ---- back to text ---- */

static ampc_status decode_file(Writing *w, const char *path)
{
  char *bytes, *text = NULL;
  int64_t n;
  size_t size = sizes[w->format], n_text = 0;
  ampc_status status = file_read(FILE_DATA, path, &bytes, &n);
  if (status) return status;
  if (n % (int64_t)size)
    status = ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes, which are not whole ids of %zu bytes",
                       path, (long long)n, size);
  size_t count = (size_t)n / size;
  w->ids.at = status ? NULL : calloc(count + 1, sizeof *w->ids.at);
  if (!status && !w->ids.at) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  for (size_t i = 0; i < count * size && !status; i++)
    w->ids.at[i / size] |= (uint32_t)(uint8_t)bytes[i] << 8 * (i % size);
  free(bytes);
  if (!status)
    status = tokenizer_decode(w->tokenizer, w->ids.at, count, !w->cmd->bare, &text, &n_text);
  if (status) return status;
  if (w->cmd->out)
    status = file_write(w->cmd->out, &file_tokens, text, (int64_t)n_text);
  else
    fwrite(text, 1, n_text, stdout);
  free(text);
  return status;
}

/* ---- the verb ---- */

static ampc_status prepare(Writing *w, const TokensCommand *cmd)
{
  ampc_status status = tokenizer_open(cmd->tokenizer, &w->tokenizer);
  if (status) return status;
  uint32_t n = tokenizer_size(w->tokenizer);
  w->format = cmd->format ? cmd->format - 1 : n > 1 << 16;
  if (w->format == 0 && n > 1 << 16)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--format=u16 holds ids below 65536, but %s has ids up to %u; "
                     "leave it out",
                     cmd->tokenizer, n - 1);
  if (!cmd->separator) return AMPC_OK;
  w->separator = tokenizer_id(w->tokenizer, cmd->separator, strlen(cmd->separator));
  if (w->separator != UINT32_MAX) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "--separator: %s has no token %s", cmd->tokenizer,
                   cmd->separator);
}

int tokens_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  Operands files = {argv, argc};
  TokensCommand cmd = {0};
  Writing w = {.cmd = &cmd, .begun = seconds_now()};
  int status;
  if (options_read(&tokens_verb, arena, &files, &cmd, &status) &&
      check_usage(&cmd, &files, &status)) {
    file_force(cmd.force);
    status = (int)prepare(&w, &cmd);
    if (!status) status = (int)(cmd.decode ? decode_file(&w, files.at[0]) : put_files(&w, &files));
    if (status == AMPC_BAD_USAGE)
      usage_error("amp tokens", "%s", ampc_last_error());
    else if (status)
      fprintf(stderr, "amp tokens: error: %s\n", ampc_last_error());
  }
  tokenizer_close(w.tokenizer);
  free(w.ids.at);
  free(w.bytes);
  arena_destroy(arena);
  return status;
}
