/* Files as all our programs read and write them.
 *
 * Links are followed: the file that they lead to is replaced, in its own folder, and keeps its
 * permissions. What is not a regular file (/dev/stdout, a pipe, /dev/null) is never replaced. */
#pragma once
#include "ampc_plan.h"

/* ---- what may be replaced: Note [what may be replaced] ---- */

typedef enum FileRole {
  FILE_JOB,
  FILE_IMPORT,
  FILE_DATA,
  FILE_WEIGHTS,
  FILE_CHECKPOINT,
  FILE_PROMPT,
  FILE_CLASSES,
  FILE_LOG,
  FILE_NO_ROLE
} FileRole;

/* A kind of output. Its files are known by the `n` bytes from byte `at` on. */
typedef struct FileKind {
  const char *name;
  size_t at;
  const char *begins; /* NULL: no bytes tell this kind */
  size_t n;
  FileRole over; /* it may replace inputs of this role */
} FileKind;
extern const FileKind file_checkpoint, file_npy, file_png, file_probe, file_page, file_lines,
    file_job;

/* Notes that this process reads `path`: a file, or a folder with files or folders of files. Fails
 * only if memory runs out. */
ampc_status file_note_input(FileRole role, const char *path);
/* Refuses `path` if it is an input or a file of another kind; `kind` NULL: if it is an input. */
ampc_status file_guard(const char *path, const FileKind *kind);
/* --force: file_guard then allows files of other kinds. */
void file_force(bool force);

/* ---- writing ---- */

/* A file that is written by parts and takes its name when it is whole: at any moment `path` is the
 * old file or the new one. */
typedef struct FileWriter {
  char *path; /* of the file that is replaced, links followed */
  char *name; /* that the new one has meanwhile; NULL: none */
  int fd;     /* -1: nothing is open */
} FileWriter;

/* Removes the files that killed writers of `path` left beside it. Refuses a path that is no regular
 * file or that file_guard refuses. After a failure there is nothing to abandon. */
ampc_status file_begin(FileWriter *w, const char *path, const FileKind *kind);
ampc_status file_add(FileWriter *w, const void *bytes, int64_t size);
/* Over what was added before. */
ampc_status file_put(FileWriter *w, int64_t at, const void *bytes, int64_t size);
/* `durable`: also after a power failure. A failure leaves the old file and nothing else. */
ampc_status file_finish(FileWriter *w, bool durable);
void file_abandon(FileWriter *w); /* also after file_finish, which leaves nothing to do */

/* A text: replaces a regular file as above, goes into anything else as it is. */
ampc_status file_write(const char *path, const FileKind *kind, const void *bytes, int64_t size);
/* A further name (hard link) of the file that `from` leads to; in the place of another file, if
 * there is one. False with errno: not all file systems have such names. */
bool file_link(const char *from, const char *to);
/* Whether file_begin would work; leaves nothing behind. */
ampc_status file_check_writable(const char *path, const FileKind *kind);

/* ---- reading ---- */

/* None waits for a pipe that nobody writes to. What is read is the caller's to free; a zero
 * follows. The first reads regular files only, the second also pipes and devices, up to `most`
 * bytes: NULL, or why it cannot be read. */
ampc_status file_read(const char *path, char **out, int64_t *out_size);
const char *file_read_any(const char *path, int64_t most, char **out, int64_t *out_size);

/* `n` bytes at `at` of an open file, all of them. */
ampc_status file_read_at(const char *path, int fd, int64_t at, int64_t n, void *to);

/* ---- names ---- */

/* Whether something is there that a text goes into and does not replace: a device, a pipe, an open
 * file by its name in /proc. */
bool file_is_special(const char *path);
/* Whether both names lead to one regular file. */
bool file_is_same(const char *a, const char *b);
/* `path` with links followed; the last one may lead to nothing. Malloced; NULL with errno. */
char *file_target(const char *path);
/* The folder that a path names: "." where it names none. Malloced; NULL: out of memory. */
char *file_folder(const char *path);
/* A path that is not absolute, in a folder; NULL, "" and "." are the current one. Malloced; NULL:
 * out of memory. */
char *file_join(const char *folder, const char *path);

/* What was printed is out. Gives `status`, or where that is 0 and stdout could not be written
 * AMPC_BAD_FILE after a message on stderr. The last act of each program. */
int file_end_stdout(const char *program, int status);
