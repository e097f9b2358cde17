/* Files of text to a file of ids in the cache, at their first use. Its name is a hash of what the
 * ids depend on: the tokenizer, the arguments, names, sizes and times of the files. One process at
 * a time makes files; the others wait, and then find it. */
#include "runtime/data/formats/texts.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "chat.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/file.h"
#include "runtime/base/cache.h"
#include "runtime/base/cache_prune.h"
#include "runtime/data/formats/args.h"
#include "runtime/data/formats/stream.h"
#include "runtime/data/tokenizer/strings.h"

enum {
  TOGETHER = 1 << 16,    /* ids that are written at a time */
  PIECE = 16 << 20,      /* bytes of a text that are tokenized at a time */
  MOST_LINE = 256 << 20, /* bytes of a line */
  AROUND = 2048,         /* bytes on both sides of a cut that decide whether it may be there */
  TRIES = 64,            /* places for a cut that are tried */
  LARGE = 16 << 20       /* bytes of files that are announced */
};

typedef struct Making {
  const char *pattern, *args; /* of the source */
  glob_t files;
  char tokenizer[TEXTS_PATH];
  const char *path; /* of the file that is read */
  int64_t line;     /* 0: its texts are not lines */
  int64_t begin;    /* of the piece in the file */
  Tokenizer *t;
  Chat *chat;   /* NULL: the texts have no template */
  unsigned how; /* ENCODE_before.. */
  bool lines;
  uint32_t separator; /* UINT32_MAX: none */
  FileWriter to;
  Ids ids;
  int64_t *end; /* of records */
  size_t n, cap;
  TextsEnd is; /* tokens: those that are written */
  double begun, told;
  int64_t read; /* bytes */
} Making;

/* ---- ids ---- */

static void tell(void *making)
{
  Making *m = making;
  double now = seconds_now();
  char bytes[AMPC_BYTES_ROOM], tokens[AMPC_BYTES_ROOM];
  if (now - m->told < 0.2 || now - m->begun < 1 || !isatty(STDERR_FILENO)) return;
  m->told = now;
  fprintf(stderr, "\rtokenizing: %s, %s tokens\x1b[K", ampc_bytes_text(m->read, bytes),
          ampc_scaled_text(m->is.tokens + (int64_t)m->ids.n, "", tokens));
}

static ampc_status put_ids(Making *m, size_t least)
{
  int64_t n = (int64_t)m->ids.n;
  if (m->ids.n < least) return AMPC_OK;
  tell(m);
  m->is.tokens += n;
  m->ids.n = 0;
  return file_add(&m->to, m->ids.at, n * (int64_t)sizeof *m->ids.at);
}

static ampc_status put_record(Making *m, const char *text, size_t n)
{
  if (strspn(text, " \t\r") >= n) return AMPC_OK;
  ampc_status status = chat_record(m->chat, text, n, m->args, &m->ids);
  if (status) return status;
  if (!grow(&m->end, &m->cap, m->n + 1, sizeof *m->end))
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->path);
  m->end[m->n++] = m->is.tokens + (int64_t)m->ids.n;
  return put_ids(m, TOGETHER);
}

/* Encodes a text, or a piece of one: without `first` it goes on from the piece before, without
 * `last` another one follows. */
static ampc_status put_text(Making *m, const char *text, size_t n, bool first, bool last)
{
  unsigned how = m->how;
  if (!first) how = (how & ~(unsigned)ENCODE_before) | ENCODE_continued;
  if (!last) how &= ~(unsigned)ENCODE_after;
  ampc_status status = tokenizer_encode_piece(m->t, text, n, how, &m->ids);
  if (!status && last && m->separator != UINT32_MAX)
    status = tokenizer_append(&m->ids, m->separator);
  return status ? status : put_ids(m, TOGETHER);
}

/* ---- cuts ---- */

/* Whether the ids near a place stay the same if the text is cut there. */
static bool may_cut(Making *m, const char *text, size_t n, size_t at)
{
  size_t from = at > AROUND ? at - AROUND : 0, to = n - at > AROUND ? at + AROUND : n;
  while (from && from < at && (text[from] & 0xc0) == 0x80) from++;
  while (to > at && to < n && (text[to] & 0xc0) == 0x80) to--;
  unsigned how = ENCODE_continued | (m->how & ENCODE_plain);
  Ids whole = {0}, parts = {0};
  bool good = !tokenizer_encode_piece(m->t, text + from, to - from, how, &whole) &&
              !tokenizer_encode_piece(m->t, text + from, at - from, how, &parts) &&
              !tokenizer_encode_piece(m->t, text + at, to - at, how, &parts) &&
              whole.n == parts.n && memcmp(whole.at, parts.at, whole.n * sizeof *whole.at) == 0;
  free(whole.at);
  free(parts.at);
  return good;
}

/* Returns the last place where a text may be cut: at the end of a line between two words. 0: there
 * is none. */
static size_t find_cut(Making *m, const char *text, size_t n)
{
  int tries = 0;
  for (size_t at = n - 1; at > 1 && tries < TRIES; at--) {
    bool words = text[at - 1] == '\n' && text[at] > ' ' && text[at - 2] > ' ';
    if (!words) continue;
    if (may_cut(m, text, n, at)) return at;
    tries++;
  }
  return 0;
}

/* ---- files ---- */

typedef struct Input { /* bytes of a file that are not done yet */
  Stream stream;
  char *at;
  size_t n, room;
  bool ended;
} Input;

static ampc_status read_more(Making *m, Input *in)
{
  int64_t got;
  if (!grow(&in->at, &in->room, in->n + PIECE, 1))
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->path);
  ampc_status status = stream_read(&in->stream, in->at + in->n, PIECE, &got);
  in->n += (size_t)got;
  in->ended = got < PIECE;
  m->read += got;
  return status;
}

/* Takes the lines that are whole, and the last one at the end of the file. */
static ampc_status take_lines(Making *m, const Input *in, size_t *done)
{
  ampc_status status = AMPC_OK;
  while (*done < in->n && !status) {
    const char *text = in->at + *done, *end = memchr(text, '\n', in->n - *done);
    if (!end && !in->ended) break;
    size_t n = end ? (size_t)(end - text) : in->n - *done;
    *done += n + (end != NULL);
    m->line++;
    if (n && text[n - 1] == '\r') n--;
    status = m->chat ? put_record(m, text, n) : put_text(m, text, n, true, true);
  }
  if (status || in->n - *done <= MOST_LINE) return status;
  return ampc_fail(AMPC_BAD_FILE, "the line is longer than %d MiB", MOST_LINE >> 20);
}

/* Takes a piece of the text; none if more of the text is needed to cut it. */
static ampc_status take_piece(Making *m, const Input *in, size_t *done)
{
  *done = in->ended ? in->n : find_cut(m, in->at, in->n);
  return *done || in->ended ? put_text(m, in->at, *done, !m->begin, in->ended) : AMPC_OK;
}

/* Names the place in the last message: the file, and the line or where the piece begins. */
static ampc_status failed_at(const Making *m, ampc_status status)
{
  const char *why = ampc_last_error();
  if (status != AMPC_BAD_FILE) return status;
  if (m->line) return ampc_fail(status, "%s:%lld: %s", m->path, (long long)m->line, why);
  if (!m->begin) return ampc_fail(status, "%s: %s", m->path, why);
  return ampc_fail(status, "%s, from byte %lld on: %s", m->path, (long long)m->begin, why);
}

static ampc_status take_file(Making *m, const char *path)
{
  const DataFile file = {path, "a file of text", false};
  Input in = {0};
  m->path = path;
  m->line = m->begin = 0;
  ampc_status status = stream_open(&file, &in.stream);
  if (status) return status;
  while (!status && !in.ended) {
    size_t done = 0;
    status = read_more(m, &in);
    if (status) break;
    status = m->lines ? take_lines(m, &in, &done) : take_piece(m, &in, &done);
    if (status) status = failed_at(m, status);
    m->begin += (int64_t)done;
    in.n -= done;
    memmove(in.at, in.at + done, in.n);
  }
  stream_close(&in.stream);
  free(in.at);
  return status;
}

/* ---- the file of ids ---- */

static ampc_status token_of(const Making *m, const char *name, uint32_t *out)
{
  int n;
  const char *text = args_next(m->args, name, NULL, &n);
  if (!text) return AMPC_OK;
  *out = tokenizer_id(m->t, text, (size_t)n);
  if (*out != UINT32_MAX) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s: the tokenizer has no token %.*s", name, n, text);
}

static ampc_status prepare(Making *m)
{
  int n;
  uint32_t pad = UINT32_MAX;
  const char *at = args_next(m->args, "template", NULL, &n);
  char *template = at ? strndup(at, (size_t)n) : NULL;
  m->lines = at || args_integer(m->args, "lines");
  m->how = (args_integer(m->args, "special") ? ENCODE_before | ENCODE_after : 0) |
           (args_integer(m->args, "plain") ? ENCODE_plain : 0);
  m->separator = UINT32_MAX;
  ampc_status status = token_of(m, "separator", &m->separator);
  if (!status && template) status = chat_open(m->t, m->tokenizer, template, &m->chat);
  free(template);
  if (!status && m->chat) pad = chat_end(m->chat);
  if (!status) status = token_of(m, "pad", &pad);
  if (!status && m->chat && pad == UINT32_MAX)
    status = ampc_fail(AMPC_BAD_USAGE, "the template has no token after an answer, so jsonl needs "
                                       "pad=\"TOKEN\" to fill records up");
  m->is.pad = m->chat ? pad : 0;
  return status;
}

static ampc_status write_ids(Making *m, const char *bytes, size_t n)
{
  ampc_status status = tokenizer_read(m->tokenizer, bytes, n, &m->t);
  if (!status) status = prepare(m);
  if (!status) tokenizer_watch(m->t, tell, m);
  for (size_t i = 0; i < m->files.gl_pathc && !status; i++)
    status = take_file(m, m->files.gl_pathv[i]);
  if (m->told) fputs("\r\x1b[K", stderr);
  if (!status && m->chat && !m->n)
    status = ampc_fail(AMPC_BAD_FILE, "%s has no records", m->pattern);
  if (!status) status = put_ids(m, 1);
  memcpy(m->is.magic, TEXTS_MAGIC, sizeof m->is.magic);
  m->is.records = (int64_t)m->n;
  if (!status) status = file_add(&m->to, m->end, (int64_t)(m->n * sizeof *m->end));
  if (!status) status = file_add(&m->to, &m->is, sizeof m->is);
  chat_close(m->chat);
  tokenizer_close(m->t);
  free(m->ids.at);
  free(m->end);
  return status;
}

static bool is_there(const char *file)
{
  return utimensat(AT_FDCWD, file,
                   (struct timespec[]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}}, 0) == 0;
}

/* Makes the file, unless another process does: then waits for it. */
static ampc_status make_file(Making *m, const char *folder, const char *file, int64_t size,
                             const char *bytes, size_t n)
{
  static const FileKind kind = {"file of ids", 0, NULL, 0, FILE_NO_ROLE};
  char shown[AMPC_BYTES_ROOM];
  ampc_status status = AMPC_OK;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    fprintf(stderr, "note: another process is tokenizing; this one waits\n");
    flock(fd, LOCK_EX);
  }
  if (!is_there(file)) {
    if (size >= LARGE)
      fprintf(stderr, "note: tokenizing %s: %s; later runs use its ids in %s\n", m->pattern,
              ampc_bytes_text(size, shown), folder);
    m->begun = seconds_now();
    status = file_begin(&m->to, file, &kind);
    if (!status) {
      status = write_ids(m, bytes, n);
      if (!status) status = file_finish(&m->to, false);
      file_abandon(&m->to);
    }
    if (!status) cache_prune(file);
  }
  if (fd >= 0) close(fd);
  return status;
}

/* ---- what a source reads ---- */

/* The file of that name, or those that match it as a pattern. */
static ampc_status find_files(const char *path, glob_t *out)
{
  if (access(path, F_OK) == 0) {
    *out = (glob_t){.gl_pathc = 1, .gl_pathv = calloc(2, sizeof *out->gl_pathv)};
    if (out->gl_pathv) out->gl_pathv[0] = strdup(path);
    bool good = out->gl_pathv && out->gl_pathv[0];
    return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  }
  return glob(path, 0, NULL, out) == 0 ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "cannot find %s", path);
}

/* Finds the tokenizer: in the folder in which the source's own path is. */
static ampc_status find_tokenizer(Making *m)
{
  int n = 0, own = 0;
  const char *name = args_next(m->args, "tokenizer", NULL, &n),
             *as = args_next(m->args, "path", NULL, &own);
  size_t size = strlen(m->pattern);
  if (!name || !as || (size_t)own > size) return ampc_fail(AMPC_BAD_USAGE, "no tokenizer is given");
  if (*name != '/' && *as == '/')
    return ampc_fail(AMPC_BAD_USAGE,
                     "the path %s begins with /, so `tokenizer` must begin with / too", m->pattern);
  snprintf(m->tokenizer, TEXTS_PATH, "%.*s%.*s", *name == '/' ? 0 : (int)size - own, m->pattern, n,
           name);
  return AMPC_OK;
}

/* Appends what the ids depend on besides the tokenizer; returns the bytes of all files, or -1. */
static int64_t describe(const Making *m, FILE *to)
{
  static const char apart[] = "length= random= of= path= tokenizer= ";
  int64_t bytes = 0;
  fputs(TEXTS_MAGIC "\n", to);
  for (const char *line = m->args; *line;) {
    size_t n = strcspn(line, "\n");
    char name[16];
    snprintf(name, sizeof name, "%.*s ", (int)strcspn(line, "=") + 1, line);
    if (!strstr(apart, name)) fprintf(to, "%.*s\n", (int)n, line);
    line += n + (line[n] != 0);
  }
  for (size_t i = 0; i < m->files.gl_pathc; i++) {
    struct stat is;
    char *real = realpath(m->files.gl_pathv[i], NULL);
    if (!real || stat(real, &is) != 0) return -1;
    fprintf(to, "%s\n%lld %lld.%ld\n", real, (long long)is.st_size, (long long)is.st_mtim.tv_sec,
            is.st_mtim.tv_nsec);
    bytes += is.st_size;
    free(real);
  }
  return bytes;
}

static ampc_status find_ids(Making *m, bool make, char file[TEXTS_PATH])
{
  char key[33], *identity = NULL, *bytes = NULL;
  size_t size;
  int64_t n, total = -1;
  Cache cache;
  ampc_status status = find_tokenizer(m);
  if (!status) status = file_read(FILE_DATA, m->tokenizer, &bytes, &n);
  if (status) return status;
  FILE *to = open_memstream(&identity, &size);
  if (to) total = describe(m, to);
  if (!to || fclose(to) != 0 || total < 0)
    status = ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", m->pattern, strerror(errno));
  if (!status) status = cache_open(&cache);
  if (!status) {
    cache_key(bytes, (size_t)n, identity, key);
    cache_path(&cache, key, "ids", file);
    cache_close(&cache);
    if (cache.temporary)
      status = ampc_fail(AMPC_BAD_FILE,
                         "%s: no folder for its ids: set XDG_CACHE_HOME to one that "
                         "can be written",
                         m->pattern);
    else if (is_there(file) || !make)
      *file = access(file, F_OK) == 0 ? *file : 0;
    else
      status = make_file(m, cache.folder, file, total, bytes, (size_t)n);
  }
  free(identity);
  free(bytes);
  return status;
}

static ampc_status find(const char *path, const char *args, bool make, char file[TEXTS_PATH],
                        const char **why)
{
  Making m = {.pattern = path, .args = args};
  ampc_status status = find_files(path, &m.files);
  if (!status) status = find_ids(&m, make, file);
  globfree(&m.files);
  *why = ampc_last_error();
  return status;
}

const struct ampc_texts ampc_texts = {find};
