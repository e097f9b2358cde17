/* Reading and writing files, for all of ampc's programs.
 *
 * Links are followed: the file that they lead to is replaced, in its own folder, and keeps its
 * permissions. Anything but a regular file (/dev/stdout, a pipe, /dev/null) is never replaced. */
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

/* A kind of output. Its files have the `n` bytes `begins` from byte `at` on. */
typedef struct FileKind {
  const char *name;
  size_t at;
  const char *begins; /* NULL: this kind has no such bytes */
  size_t n;
  FileRole over; /* it may replace inputs of this role */
} FileKind;
extern const FileKind file_checkpoint, file_weights, file_npy, file_png, file_probe, file_profile,
    file_tune, file_run, file_precision, file_trace, file_page, file_lines, file_job,
    file_adapter_config;

/* Registers that this process reads `path`: a file, or a folder with files or folders of files.
 * file_open_input does it, too. Fails only if memory runs out. */
ampc_status file_note_input(FileRole role, const char *path);
/* Says that this process is one command, so an input stays an input until the process ends. In a
 * program with the C API, a file is an input only from file_open_input to file_close_input. */
void file_keep_inputs(void);
void file_end_input(FileRole role, const char *path);
/* Refuses `path` if it is an input or a file of another kind; `kind` NULL: if it is an input. */
ampc_status file_guard(const char *path, const FileKind *kind);
/* Sets --force: if true, file_guard allows files of other kinds. */
void file_force(bool force);

/* ---- writing ---- */

/* A file that is written in parts and gets its name when it is complete. At any moment `path` is
 * either the old file or the new one. */
typedef struct FileWriter {
  char *path; /* path of the replaced file, links followed */
  char *name; /* temporary name of the new file; NULL: it has none */
  int fd;     /* -1: nothing is open */
  const FileKind *kind;
} FileWriter;

/* Begins a new file for `path`. Also removes the temporary files that killed writers of `path` left
 * in its folder. Fails if `path` exists and is not a regular file, or if file_guard refuses it;
 * then file_abandon is not needed. */
ampc_status file_begin(FileWriter *w, const char *path, const FileKind *kind);
ampc_status file_add(FileWriter *w, const void *bytes, int64_t size);
/* Overwrites bytes that were added before. */
ampc_status file_put(FileWriter *w, int64_t at, const void *bytes, int64_t size);
/* Replaces the old file by the new one, unless it has become an input since file_begin. `durable`:
 * the result survives a power failure. If the call fails, the old file is unchanged, unless only
 * the sync of its folder failed. */
ampc_status file_finish(FileWriter *w, bool durable);
void file_abandon(FileWriter *w); /* does nothing after file_finish */

/* Writes a whole file: replaces a regular file as above, writes to anything else directly. */
ampc_status file_write(const char *path, const FileKind *kind, const void *bytes, int64_t size);
/* Makes `to` another name (hard link) of the file that `from` leads to, and replaces the file `to`.
 * Returns false and sets errno on failure: not all file systems have hard links. */
bool file_link(const char *from, const char *to);
/* Returns the status that file_begin would return; leaves no file. */
ampc_status file_check_writable(const char *path, const FileKind *kind);

/* ---- reading ---- */

/* Opens a file to read it, and registers it as an input. Does not wait for a pipe without a writer.
 * `flags`: 0 or O_NOFOLLOW. Returns -1 and sets errno on failure. Each file that a user names is
 * opened here; FILE_NO_ROLE: the file is an output that this process also reads. */
int file_open_input(FileRole role, const char *path, int flags);
void file_close_input(FileRole role, const char *path, int fd);

/* Read a whole file as file_open_input does. The caller frees *out, which is NUL-terminated.
 * file_read reads only regular files. file_read_any also reads pipes, devices and, as /dev/stdin, a
 * socket, up to `most` bytes; returns NULL or why it failed. */
ampc_status file_read(FileRole role, const char *path, char **out, int64_t *out_size);
const char *file_read_any(FileRole role, const char *path, int64_t most, char **out,
                          int64_t *out_size);

/* Reads exactly `n` bytes at `at` of an open file. */
ampc_status file_read_at(const char *path, int fd, int64_t at, int64_t n, void *to);

/* ---- names ---- */

/* Whether writing to `path` writes directly, instead of replacing a file: the path is a device, a
 * pipe, or a name in /proc of an open file. */
bool file_is_special(const char *path);
/* Whether both names lead to one regular file. */
bool file_is_same(const char *a, const char *b);
/* Returns `path` with links followed; the last link may be broken. The caller frees the result;
 * NULL: see errno. */
char *file_target(const char *path);
/* Returns the folder of a path or "."; the caller frees it. NULL: out of memory. */
char *file_folder(const char *path);
/* Returns `path` in `folder`, or `path` alone if it is absolute. A folder NULL, "" or "." is the
 * current one. The caller frees the result; NULL: out of memory. */
char *file_join(const char *folder, const char *path);

/* Ends a program: flushes stdout and returns `status`. If `status` is 0 and stdout could not be
 * written, prints a message on stderr and returns AMPC_BAD_FILE. */
int file_end_stdout(const char *program, int status);
