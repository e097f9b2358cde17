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

enum {
  PIECE = 16 << 20,      /* bytes of a text that are tokenized at a time */
  MOST_LINE = 256 << 20, /* bytes of a line */
  AROUND = 2048,         /* bytes on both sides of a cut that decide whether it may be there */
  TRIES = 64,            /* places for a cut that are tried */
  LARGE = 16 << 20       /* bytes of files that are announced */
};

typedef struct Making {
  const char *args, *path; /* path: of the file that is read */
  int64_t line;
  Tokenizer *t;
  Chat *chat;   /* NULL: the texts have no template */
  unsigned how; /* ENCODE_before.. */
  bool lines;
  uint32_t separator; /* UINT32_MAX: none */
  FILE *to;
  Ids ids;
  int64_t *end; /* of records */
  size_t n, cap;
  TextsEnd is;
  double begun, told;
  int64_t read; /* bytes */
} Making;

static bool flag(const char *args, const char *name)
{
  return args_integer(args, name) != 0;
}

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

static ampc_status put_ids(Making *m)
{
  size_t n = m->ids.n;
  m->is.tokens += (int64_t)n;
  m->ids.n = 0;
  tell(m);
  if (fwrite(m->ids.at, sizeof *m->ids.at, n, m->to) == n) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "cannot write its ids: %s; XDG_CACHE_HOME names another folder",
                   strerror(errno));
}

static ampc_status put_record(Making *m, const char *text, size_t n)
{
  if (strspn(text, " \t\r") >= n) return AMPC_OK;
  ampc_status status = chat_record(m->chat, text, n, m->args, &m->ids);
  if (!status) status = put_ids(m);
  if (status) return status;
  if (m->n == m->cap) {
    size_t cap = m->cap ? 2 * m->cap : 1024;
    int64_t *more = realloc(m->end, cap * sizeof *more);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->path);
    m->end = more;
    m->cap = cap;
  }
  m->end[m->n++] = m->is.tokens;
  return AMPC_OK;
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
  return status ? status : put_ids(m);
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
  int64_t begin; /* of these bytes in the file */
  bool ended;
} Input;

static ampc_status read_more(Making *m, Input *in)
{
  int64_t got;
  if (in->room - in->n < PIECE) {
    size_t room = in->room ? 2 * in->room : 2 * PIECE;
    char *more = realloc(in->at, room);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", m->path);
    in->at = more;
    in->room = room;
  }
  ampc_status status = stream_read(&in->stream, in->at + in->n, PIECE, &got);
  in->n += (size_t)got;
  in->ended = got < PIECE;
  m->read += got;
  return status;
}

/* Takes the lines that are whole, and the last one at the end of the file. */
static ampc_status take_lines(Making *m, Input *in)
{
  size_t done = 0;
  ampc_status status = AMPC_OK;
  while (done < in->n && !status) {
    const char *text = in->at + done, *end = memchr(text, '\n', in->n - done);
    if (!end && !in->ended) break;
    size_t n = end ? (size_t)(end - text) : in->n - done;
    done += n + (end != NULL);
    m->line++;
    if (n && text[n - 1] == '\r') n--;
    status = m->chat ? put_record(m, text, n) : put_text(m, text, n, true, true);
  }
  in->n -= done;
  memmove(in->at, in->at + done, in->n);
  if (!status && in->n > MOST_LINE)
    status = ampc_fail(AMPC_BAD_FILE, "the line is longer than %d MiB", MOST_LINE >> 20);
  return status;
}

static ampc_status take_piece(Making *m, Input *in, bool *begun)
{
  size_t n = in->ended ? in->n : find_cut(m, in->at, in->n);
  if (!n && !in->ended) return AMPC_OK; /* more of the text is needed */
  ampc_status status = put_text(m, in->at, n, !*begun, in->ended);
  if (status) return status;
  *begun = true;
  in->begin += (int64_t)n;
  in->n -= n;
  memmove(in->at, in->at + n, in->n);
  return AMPC_OK;
}

/* Names the place in the last message: the file, and the line or where the piece begins. */
static ampc_status failed(const Making *m, const Input *in, ampc_status status)
{
  const char *why = ampc_last_error();
  if (status != AMPC_BAD_FILE) return status;
  if (m->line) return ampc_fail(status, "%s:%lld: %s", m->path, (long long)m->line, why);
  if (!in->begin) return ampc_fail(status, "%s: %s", m->path, why);
  return ampc_fail(status, "%s, from byte %lld on: %s", m->path, (long long)in->begin, why);
}

static ampc_status take_file(Making *m, const char *path)
{
  const DataFile file = {path, "a file of text", false};
  Input in = {0};
  bool begun = false;
  m->path = path;
  m->line = 0;
  ampc_status status = stream_open(&file, &in.stream);
  if (status) return status;
  while (!status && !in.ended) {
    status = read_more(m, &in);
    if (status) break;
    status = m->lines ? take_lines(m, &in) : take_piece(m, &in, &begun);
    if (status) status = failed(m, &in, status);
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

static ampc_status prepare(Making *m, const char *tokenizer)
{
  int n;
  uint32_t pad = UINT32_MAX;
  const char *at = args_next(m->args, "template", NULL, &n);
  char *template = at ? strndup(at, (size_t)n) : NULL;
  m->lines = at || flag(m->args, "lines");
  m->how = (flag(m->args, "special") ? ENCODE_before | ENCODE_after : 0) |
           (flag(m->args, "plain") ? ENCODE_plain : 0);
  m->separator = UINT32_MAX;
  ampc_status status = token_of(m, "separator", &m->separator);
  if (!status && template) status = chat_open(m->t, tokenizer, template, &m->chat);
  free(template);
  if (!status && m->chat) pad = chat_end(m->chat);
  if (!status) status = token_of(m, "pad", &pad);
  if (!status && m->chat && pad == UINT32_MAX)
    status = ampc_fail(AMPC_BAD_USAGE, "the template has no token after an answer, so jsonl needs "
                                       "pad=\"TOKEN\" to fill records up");
  m->is.pad = m->chat ? pad : 0;
  return status;
}

static ampc_status put_end(Making *m)
{
  memcpy(m->is.magic, TEXTS_MAGIC, sizeof m->is.magic);
  m->is.records = (int64_t)m->n;
  if (m->chat && !m->n) return ampc_fail(AMPC_BAD_FILE, "%s has no records", m->path);
  bool good = fwrite(m->end, sizeof *m->end, m->n, m->to) == m->n &&
              fwrite(&m->is, sizeof m->is, 1, m->to) == 1 && fflush(m->to) == 0;
  return good ? AMPC_OK
              : ampc_fail(AMPC_BAD_FILE,
                          "cannot write its ids: %s; XDG_CACHE_HOME names another folder",
                          strerror(errno));
}

static ampc_status write_ids(Making *m, const glob_t *files, const char *tokenizer,
                             const char *bytes, size_t n)
{
  ampc_status status = tokenizer_read(tokenizer, bytes, n, &m->t);
  if (!status) status = prepare(m, tokenizer);
  if (!status) tokenizer_watch(m->t, tell, m);
  for (size_t i = 0; i < files->gl_pathc && !status; i++) status = take_file(m, files->gl_pathv[i]);
  if (m->told) fputs("\r\x1b[K", stderr);
  if (!status) status = put_end(m);
  chat_close(m->chat);
  tokenizer_close(m->t);
  free(m->ids.at);
  free(m->end);
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

/* Writes the path of the tokenizer: in the folder in which the source's own path is. */
static ampc_status tokenizer_path(const char *path, const char *args, char out[TEXTS_PATH])
{
  int n, own;
  const char *name = args_next(args, "tokenizer", NULL, &n),
             *as = args_next(args, "path", NULL, &own);
  size_t size = strlen(path);
  if (!name || !as || (size_t)own > size) return ampc_fail(AMPC_BAD_USAGE, "no tokenizer is given");
  size_t folder = *name == '/' ? 0 : size - (size_t)own;
  if (*name != '/' && *as == '/')
    return ampc_fail(AMPC_BAD_USAGE,
                     "the path %s begins with /, so `tokenizer` must begin with / too", path);
  int written = snprintf(out, TEXTS_PATH, "%.*s%.*s", (int)folder, path, n, name);
  return written < TEXTS_PATH ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "%s is too long", name);
}

/* Appends what the ids depend on besides the tokenizer; returns the bytes of all files, or -1. */
static int64_t describe(FILE *to, const glob_t *files, const char *args)
{
  static const char *const apart[] = {"length=", "random=", "of=", "path=", "tokenizer="};
  int64_t bytes = 0;
  fputs(TEXTS_MAGIC "\n", to);
  for (const char *line = args; *line;) {
    size_t n = strcspn(line, "\n"), i = 0;
    while (i < 5 && strncmp(line, apart[i], strlen(apart[i])) != 0) i++;
    if (i == 5) fprintf(to, "%.*s\n", (int)n, line);
    line += n + (line[n] != 0);
  }
  for (size_t i = 0; i < files->gl_pathc; i++) {
    struct stat is;
    char *real = realpath(files->gl_pathv[i], NULL);
    if (!real || stat(real, &is) != 0) return -1;
    fprintf(to, "%s\n%lld %lld.%ld\n", real, (long long)is.st_size, (long long)is.st_mtim.tv_sec,
            is.st_mtim.tv_nsec);
    bytes += is.st_size;
    free(real);
  }
  return bytes;
}

static bool is_there(const char *file)
{
  return utimensat(AT_FDCWD, file,
                   (struct timespec[]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}}, 0) == 0;
}

static ampc_status make_file(Making *m, const Cache *cache, const char *file, const glob_t *files,
                             const char *tokenizer, const char *bytes, size_t n)
{
  char temporary[CACHE_PATH];
  ampc_status status = cache_begin(cache, temporary);
  if (status) return status;
  m->to = fopen(temporary, "wb");
  status = m->to ? write_ids(m, files, tokenizer, bytes, n)
                 : ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", temporary, strerror(errno));
  if (m->to && fclose(m->to) != 0 && !status)
    status = ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", temporary, strerror(errno));
  if (!status && rename(temporary, file) != 0)
    status = ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", file, strerror(errno));
  if (status)
    unlink(temporary);
  else
    cache_prune(file);
  return status;
}

/* Makes the file, unless another process does: then waits for it. */
static ampc_status make_once(const char *path, const char *args, const Cache *cache,
                             const char *file, const glob_t *files, int64_t size,
                             const char *tokenizer, const char *bytes, size_t n)
{
  Making m = {.args = args, .path = path, .begun = seconds_now()};
  char shown[AMPC_BYTES_ROOM];
  int fd = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    fprintf(stderr, "note: another process is tokenizing; this one waits\n");
    flock(fd, LOCK_EX);
  }
  ampc_status status = AMPC_OK;
  if (!is_there(file)) {
    if (size >= LARGE)
      fprintf(stderr, "note: tokenizing %s: %s; later runs use its ids in %s\n", path,
              ampc_bytes_text(size, shown), cache->folder);
    status = make_file(&m, cache, file, files, tokenizer, bytes, n);
  }
  if (fd >= 0) close(fd);
  return status;
}

static ampc_status find_ids(const char *path, const char *args, bool make, const glob_t *files,
                            char file[TEXTS_PATH])
{
  char tokenizer[TEXTS_PATH], key[33], *identity = NULL, *bytes;
  size_t size;
  int64_t n, total = -1;
  Cache cache;
  ampc_status status = tokenizer_path(path, args, tokenizer);
  if (!status) status = file_read(FILE_DATA, tokenizer, &bytes, &n);
  if (status) return status;
  FILE *to = open_memstream(&identity, &size);
  if (to) total = describe(to, files, args);
  if (!to || fclose(to) != 0 || total < 0)
    status = ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", path, strerror(errno));
  if (!status) {
    cache_key(bytes, (size_t)n, identity, key);
    status = cache_open(&cache);
  }
  if (!status && cache.temporary)
    status = ampc_fail(AMPC_BAD_FILE,
                       "no folder for the ids of %s: set XDG_CACHE_HOME to one that "
                       "can be written",
                       path);
  if (!status) {
    cache_path(&cache, key, "ids", file);
    bool there = is_there(file);
    if (!there && !make) *file = 0;
    if (!there && make)
      status = make_once(path, args, &cache, file, files, total, tokenizer, bytes, (size_t)n);
    cache_close(&cache);
  }
  free(identity);
  free(bytes);
  return status;
}

static ampc_status find(const char *path, const char *args, bool make, char file[TEXTS_PATH],
                        const char **why)
{
  glob_t files = {0};
  ampc_status status = find_files(path, &files);
  if (!status) status = find_ids(path, args, make, &files, file);
  globfree(&files);
  *why = ampc_last_error();
  return status;
}

const struct ampc_texts ampc_texts = {find};
