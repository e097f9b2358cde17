/* Note [what may be replaced]
 * Every output is passed to file_guard before it replaces a file. file_open_input registers each
 * file that is read as an input. No output replaces an input, under any name: files are compared by
 * device and inode. FileKind.over names the exceptions: a run may save to the checkpoint from which
 * it continues, and `amp repl` may overwrite the job that it has open. A file that is no input is
 * replaced if it is empty or begins with the bytes of the output's kind; with --force, in any case.
 * For option -o of ampc, compiler/cli/replace.h has the rule.
 *
 * A command keeps its inputs until it ends. A program with the C API may read a file and write it
 * later, for instance to save a training where it was opened. There a file is an input only while
 * it is open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/file.h"

/* Safetensors: the size of the header, below 4 GiB, then JSON. */
const FileKind file_checkpoint = {"checkpoint", 4, "\0\0\0\0{", 5, FILE_CHECKPOINT};
const FileKind file_weights = {"safetensors file", 4, "\0\0\0\0{", 5, FILE_NO_ROLE};
const FileKind file_npy = {"NPY file", 0, "\x93NUMPY", 6, FILE_NO_ROLE};
const FileKind file_png = {"PNG picture", 0, "\x89PNG\r\n\x1a\n", 8, FILE_NO_ROLE};
const FileKind file_probe = {"JSON of amp probe", 0, "{\n \"job\":", 9, FILE_NO_ROLE};
const FileKind file_profile = {"JSON of amp profile", 0, "{\n \"profile\":", 13, FILE_NO_ROLE};
const FileKind file_tune = {"JSON of amp tune", 0, "{\n \"tune\":", 10, FILE_NO_ROLE};
const FileKind file_run = {"run.json of --log-dir", 0, "{\n \"run\":", 9, FILE_LOG};
const FileKind file_precision = {"precision of amp tune", 0, "# amp tune:", 11, FILE_NO_ROLE};
const FileKind file_trace = {"trace of amp profile", 0, "{\"traceEvents\":", 15, FILE_NO_ROLE};
const FileKind file_page = {"page of amp report", 16, "<!-- a page of amp report -->", 29,
                            FILE_NO_ROLE};
/* It belongs to the safetensors file beside it, which is replaced, too. */
const FileKind file_adapter_config = {"JSON file", 0, "{", 1, FILE_NO_ROLE};
/* No bytes identify this kind, so without --force it replaces only an empty file. */
const FileKind file_lines = {"list of names that amp infer wrote", 0, NULL, 0, FILE_NO_ROLE};
/* A job that `amp repl` writes. This kind matches every file, and may replace the open job. */
const FileKind file_job = {"job", 0, "", 0, FILE_JOB};

enum { HEAD = 64 /* bytes; `at` + `n` of every FileKind is smaller */ };

static const char *const roles[] = {[FILE_JOB] = "the job",
                                    [FILE_IMPORT] = "an imported file",
                                    [FILE_DATA] = "data",
                                    [FILE_WEIGHTS] = "weights",
                                    [FILE_PROMPT] = "the prompt",
                                    [FILE_CHECKPOINT] = "the checkpoint",
                                    [FILE_LOG] = "the log of a run",
                                    [FILE_CLASSES] = "the names of the classes"};

typedef struct Identity {
  dev_t device;
  ino_t inode;
} Identity;

typedef struct Input {
  struct Input *next;
  Identity is;
  FileRole role;
  uint32_t readers; /* how often it is registered */
  bool folder;      /* a folder with files and folders of files */
  Identity *within; /* its files, sorted; NULL until they are needed */
  size_t n, room;
  char path[];
} Input;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Input *inputs;
static bool forced, keeps_inputs;

void file_force(bool force)
{
  forced = force;
}

void file_keep_inputs(void)
{
  keeps_inputs = true;
}

static Identity identity(const struct stat *info)
{
  return (Identity){info->st_dev, info->st_ino};
}

static int compare_files(const void *a, const void *b)
{
  const Identity *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* ---- inputs ---- */

/* Returns the entry of a registered path, or NULL. The path may lead to another file by now. */
static Input *noted(FileRole role, const char *path)
{
  Input *i = inputs;
  while (i && (i->role != role || strcmp(i->path, path) != 0)) i = i->next;
  return i;
}

static Input *add_input(FileRole role, const char *path)
{
  Input *i = calloc(1, sizeof *i + strlen(path) + 1);
  if (!i) return NULL;
  strcpy(i->path, path);
  i->role = role;
  i->next = inputs;
  return inputs = i;
}

ampc_status file_note_input(FileRole role, const char *path)
{
  struct stat info;
  if (role == FILE_NO_ROLE || stat(path, &info) != 0 ||
      !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
    return AMPC_OK;
  pthread_mutex_lock(&lock);
  Input *i = noted(role, path);
  if (!i) i = add_input(role, path);
  if (i) {
    free(i->within);
    i->within = NULL;
    i->is = identity(&info);
    i->folder = S_ISDIR(info.st_mode);
    i->readers++;
  }
  pthread_mutex_unlock(&lock);
  return i ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
}

void file_end_input(FileRole role, const char *path)
{
  pthread_mutex_lock(&lock);
  Input *i = keeps_inputs ? NULL : noted(role, path);
  if (i && --i->readers == 0) {
    Input **at = &inputs;
    while (*at != i) at = &(*at)->next;
    *at = i->next;
    free(i->within);
    free(i);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- files in folders ---- */

static bool add_within(Input *to, const struct stat *info)
{
  if (to->n == to->room) {
    size_t room = to->room ? 2 * to->room : 256;
    Identity *more = realloc(to->within, room * sizeof *more);
    if (!more) return false;
    to->within = more;
    to->room = room;
  }
  to->within[to->n++] = identity(info);
  return true;
}

/* Lists the files of a folder and of folders in it, up to `depth` deep. Skips folders that cannot
 * be read, because they cannot be inputs either. */
static bool list_within(Input *to, int fd, int depth)
{
  DIR *d = fdopendir(fd);
  bool good = true;
  for (struct dirent *e; d && good && (e = readdir(d));) {
    struct stat info;
    if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &info, 0) != 0) continue;
    if (S_ISREG(info.st_mode)) good = add_within(to, &info);
    if (!S_ISDIR(info.st_mode) || !depth) continue;
    int inner = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inner >= 0) good = list_within(to, inner, depth - 1);
  }
  if (d)
    closedir(d);
  else
    close(fd);
  return good;
}

static ampc_status is_within(Input *i, const Identity *file, bool *out)
{
  int fd = i->within ? -1 : open(i->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  *out = false;
  if (fd >= 0) {
    i->n = i->room = 0;
    if (!list_within(i, fd, 1)) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", i->path);
    if (i->n) qsort(i->within, i->n, sizeof *i->within, compare_files);
  }
  *out = i->n && bsearch(file, i->within, i->n, sizeof *i->within, compare_files);
  return AMPC_OK;
}

/* ---- the rule ---- */

static ampc_status refuse_input(const char *path, const Input *i)
{
  static const char cure[] = "give the output another name";
  if (i->folder)
    return ampc_fail(AMPC_BAD_USAGE, "cannot write %s: this command reads it, as %s in %s; %s",
                     path, roles[i->role], i->path, cure);
  if (strcmp(path, i->path) == 0)
    return ampc_fail(AMPC_BAD_USAGE, "cannot write %s: this command reads it, as %s; %s", path,
                     roles[i->role], cure);
  return ampc_fail(AMPC_BAD_USAGE, "cannot write %s: it is %s, %s that this command reads; %s",
                   path, i->path, roles[i->role], cure);
}

/* Refuses an output that is an input. If an input was removed, a new file may have its inode
 * number; so file_is_same also checks that the input still exists. */
static ampc_status guard_inputs(const char *path, const struct stat *at, const FileKind *kind,
                                bool look_into_folders)
{
  Identity file = identity(at);
  ampc_status status = AMPC_OK;
  pthread_mutex_lock(&lock);
  for (Input *i = inputs; i && !status; i = i->next) {
    bool same = !i->folder && compare_files(&i->is, &file) == 0 && file_is_same(path, i->path);
    if (kind && i->role == kind->over) continue;
    if (i->folder && look_into_folders) status = is_within(i, &file, &same);
    if (same) status = refuse_input(path, i);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Sets *out to whether the file at `path` begins like files of this kind. */
static ampc_status read_kind(const char *path, const FileKind *kind, bool *out)
{
  char head[HEAD];
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
  int error = errno;
  if (fd >= 0) close(fd);
  *out = n >= (ssize_t)(kind->at + kind->n) && kind->begins &&
         memcmp(head + kind->at, kind->begins, kind->n) == 0;
  if (n >= 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "cannot read %s to see which kind of file would be replaced: %s",
                   path, strerror(error));
}

/* Whether an output may replace a picture of an input folder. A file that begins like another kind
 * of file is not a picture, so folders are not searched for it. */
static bool may_be_picture(const FileKind *kind, bool own)
{
  return !own || !kind->n || kind == &file_png;
}

ampc_status file_guard(const char *path, const FileKind *kind)
{
  struct stat at;
  bool own = false;
  if (stat(path, &at) != 0 || !S_ISREG(at.st_mode)) return AMPC_OK;
  bool kept = kind && at.st_size && !forced; /* it may be replaced only if it is of this kind */
  ampc_status status = kept ? read_kind(path, kind, &own) : AMPC_OK;
  ampc_status input = guard_inputs(path, &at, kind, may_be_picture(kind, own));
  if (input || status) return input ? input : status;
  if (!kept || own) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "cannot write %s: the existing file is no %s; give another name, remove the "
                   "file, or overwrite it with --force",
                   path, kind->name);
}
