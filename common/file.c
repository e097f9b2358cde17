/* Note [a file or none]
 * New content goes to a file without a name, in the folder of the file that it replaces. When it is
 * complete, it gets a name in that folder and at once replaces the file by a rename. So a process
 * that is killed earlier leaves nothing behind. If a file system has no files without names, the
 * new file gets its name at the start. A leftover file is removed when the same path is written
 * again (sweep). While a file has such a name, its writer holds a lock on it, so a file without a
 * lock has no writer. But another machine may not see the lock. So the name says which machine
 * wrote the file, and files of other machines are removed when they are old. */
#include "common/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define NEW ".new-"
enum {
  DIGITS = 16, /* 8 digits name the machine, 8 are random */
  TAIL = sizeof NEW - 1 + DIGITS,
  MOST_LINKS = 40,
  MOST_TRIES = 100,
  UNFINISHED = 60, /* seconds after which a temporary file counts as abandoned */
  PROC = 0x9fa0    /* the file system /proc, in statfs */
};

static ampc_status cannot_write(const char *path, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", path, why);
}

/* ---- names ---- */

char *file_folder(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

static const char *last_part(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Returns how many bytes of `name` fit into the temporary name: NAME_MAX limits its length. */
static size_t kept_of(const char *name)
{
  size_t size = strlen(name);
  return size + TAIL > NAME_MAX ? NAME_MAX - TAIL : size;
}

bool file_is_same(const char *a, const char *b)
{
  struct stat at_a, at_b;
  return stat(a, &at_a) == 0 && stat(b, &at_b) == 0 && S_ISREG(at_a.st_mode) &&
         at_a.st_dev == at_b.st_dev && at_a.st_ino == at_b.st_ino;
}

/* Returns the path that a link at `path` with the text `to` leads to. */
static char *beside(const char *path, const char *to)
{
  const char *slash = strrchr(path, '/');
  size_t folder = *to == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
  size_t size = folder + strlen(to) + 1;
  char *out = malloc(size);
  if (out) snprintf(out, size, "%.*s%s", (int)folder, path, to);
  return out;
}

/* Whether the link is in /proc: there it is an open file, and its text need not be a path.
 * /dev/stdout leads to such a link. */
static bool is_open_file(const char *link)
{
  struct statfs system;
  int fd = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  bool found = fd >= 0 && fstatfs(fd, &system) == 0 && system.f_type == PROC;
  if (fd >= 0) close(fd);
  return found;
}

char *file_target(const char *path)
{
  char *at = strdup(path), to[PATH_MAX];
  for (int links = 0; at; links++) {
    ssize_t n = readlink(at, to, sizeof to - 1);
    if (n < 0 || is_open_file(at)) return at;
    to[n] = 0;
    char *next = links < MOST_LINKS ? beside(at, to) : NULL;
    free(at);
    at = next;
    if (links == MOST_LINKS) errno = ELOOP;
  }
  return NULL;
}

bool file_is_special(const char *path)
{
  struct stat info;
  char *target = file_target(path);
  bool there = target && lstat(target, &info) == 0;
  free(target);
  return there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* ---- writing ---- */

/* Returns NULL if a new file can replace `target` or be created there; else the reason why not. */
static const char *unreplaceable(const char *target)
{
  struct stat info;
  if (!*target) return strerror(ENOENT);
  if (lstat(target, &info) != 0) return errno == ENOENT ? NULL : strerror(errno);
  return S_ISREG(info.st_mode)   ? NULL
         : S_ISDIR(info.st_mode) ? strerror(EISDIR)
                                 : "not a regular file";
}

static bool write_all(int fd, const char *bytes, int64_t size)
{
  while (size > 0) {
    ssize_t n = write(fd, bytes, (size_t)size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    size -= n;
  }
  return true;
}

/* Returns a number for this boot of this machine: the same in every process until a reboot. */
static uint32_t machine(void)
{
  char id[64];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, id, sizeof id);
  if (fd >= 0) close(fd);
  uint32_t hash = 0x811c9dc5u;
  for (ssize_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)id[i]) * 0x01000193u;
  return hash;
}

/* Locks the new file. Before that, another process may take the file for a leftover and remove it.
 * False: another process has locked or removed it. */
static bool lock_name(const FileWriter *w)
{
  struct stat own, there;
  if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return fstat(w->fd, &own) == 0 && stat(w->name, &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

/* Finds a name in the target's folder that no other file has, even if other processes write to the
 * same path. Links the file `from` to the name or, if `from` is NULL, creates a new file. Returns
 * false and sets errno if that fails. */
static bool take_name(FileWriter *w, const char *from)
{
  size_t kept = (size_t)(last_part(w->path) - w->path) + kept_of(last_part(w->path));
  size_t size = kept + sizeof NEW + DIGITS;
  w->name = malloc(size);
  for (int i = 0; i < MOST_TRIES && w->name; i++) {
    unsigned random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) break;
    snprintf(w->name, size, "%.*s" NEW "%08x%08x", (int)kept, w->path, machine(), random);
    if (from && linkat(AT_FDCWD, from, AT_FDCWD, w->name, AT_SYMLINK_FOLLOW) == 0) return true;
    if (!from) w->fd = open(w->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (!from && w->fd >= 0) {
      if (lock_name(w)) return true;
      close(w->fd);
      w->fd = -1;
    } else if (errno != EEXIST) {
      break;
    }
  }
  int error = errno;
  free(w->name);
  w->name = NULL;
  errno = error;
  return false;
}

static bool name_open_file(FileWriter *w)
{
  char from[64];
  snprintf(from, sizeof from, "/proc/self/fd/%d", w->fd);
  flock(w->fd, LOCK_EX | LOCK_NB); /* if this fails, sweep uses the age */
  return take_name(w, from);
}

/* Opens a file without a name. Returns false if the file system has no such files, or if /proc,
 * which is needed to name them, is missing. */
static bool open_unnamed(FileWriter *w)
{
  char *folder = file_folder(w->path);
  bool proc = access("/proc/self/fd", X_OK) == 0;
  w->fd = folder && proc ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
  free(folder);
  return w->fd >= 0;
}

/* ---- leftover files ---- */

/* Whether `entry` is a part, a file that is being written: NAME.new- followed by 16 digits. */
static bool is_part(const char *entry)
{
  size_t size = strlen(entry);
  const char *end = entry + size - TAIL;
  return size > TAIL && strncmp(end, NEW, sizeof NEW - 1) == 0 &&
         strspn(end + sizeof NEW - 1, "0123456789abcdef") == DIGITS;
}

/* Whether the part `entry` belongs to the file `name` or to a checkpoint that is kept in addition,
 * such as NAME.step400. */
static bool is_part_of(const char *entry, const char *name)
{
  size_t n = kept_of(name);
  return strlen(entry) >= n + TAIL && strncmp(entry, name, n) == 0 && entry[n] == '.';
}

/* Removes a part if no process writes it. A part of this machine has no writer if it is not locked.
 * For parts of other machines, and if locks do not work, the age decides. */
static void remove_left(int folder, const char *entry)
{
  char own[DIGITS / 2 + 1];
  struct stat info;
  int fd = openat(folder, entry, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  bool regular = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  snprintf(own, sizeof own, "%08x", machine());
  bool ours = strncmp(entry + strlen(entry) - DIGITS, own, DIGITS / 2) == 0;
  bool locked = regular && ours && flock(fd, LOCK_EX | LOCK_NB) == 0;
  bool unknown = regular && !locked && (!ours || errno != EWOULDBLOCK);
  if (locked || (unknown && time(NULL) - info.st_mtime > UNFINISHED)) unlinkat(folder, entry, 0);
  if (fd >= 0) close(fd);
}

/* Removes leftover parts. Skips the last folder without any, so that many files are written
 * fast. */
static void sweep(const char *target)
{
  static _Thread_local struct stat clean;
  struct stat at;
  char *folder = file_folder(target);
  DIR *d = folder ? opendir(folder) : NULL;
  if (d && fstat(dirfd(d), &at) == 0 && (at.st_dev != clean.st_dev || at.st_ino != clean.st_ino)) {
    bool any = false;
    for (struct dirent *e; (e = readdir(d));) {
      if (!is_part(e->d_name)) continue;
      any = true;
      if (is_part_of(e->d_name, last_part(target))) remove_left(dirfd(d), e->d_name);
    }
    if (!any) clean = at;
  }
  if (d) closedir(d);
  free(folder);
}

/* ---- writing a file in parts ---- */

ampc_status file_begin(FileWriter *w, const char *path, const FileKind *kind)
{
  *w = (FileWriter){.path = file_target(path), .fd = -1, .kind = kind};
  if (!w->path) return cannot_write(path, strerror(errno));
  const char *why = unreplaceable(w->path);
  ampc_status status = why ? cannot_write(path, why) : file_guard(path, kind);
  if (!status) sweep(w->path);
  if (!status && (open_unnamed(w) || take_name(w, NULL))) return AMPC_OK;
  if (!status) status = cannot_write(path, strerror(errno));
  file_abandon(w);
  return status;
}

static ampc_status failed(FileWriter *w, const char *why)
{
  ampc_status status = cannot_write(w->path, why);
  file_abandon(w);
  return status;
}

ampc_status file_add(FileWriter *w, const void *bytes, int64_t size)
{
  return write_all(w->fd, bytes, size) ? AMPC_OK : failed(w, strerror(errno));
}

ampc_status file_put(FileWriter *w, int64_t at, const void *bytes, int64_t size)
{
  for (int64_t done = 0; done < size;) {
    ssize_t n = pwrite(w->fd, (const char *)bytes + done, (size_t)(size - done), at + done);
    if (n < 0 && errno != EINTR) return failed(w, strerror(errno));
    if (n > 0) done += n;
  }
  return AMPC_OK;
}

/* Gives the new file the permissions of the old one and, if the system allows, its owner. */
static bool take_permissions(const FileWriter *w)
{
  struct stat old, new;
  if (stat(w->path, &old) != 0) return true;
  if (fstat(w->fd, &new) != 0) return false;
  if ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) &&
      fchown(w->fd, old.st_uid, old.st_gid) != 0) {
    /* the user of this process owns the new file instead */
  }
  return fchmod(w->fd, old.st_mode & 0777) == 0;
}

static bool sync_folder(const char *path)
{
  char *folder = file_folder(path);
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  bool done =
      fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* some file systems have no such sync */
  if (fd >= 0) close(fd);
  free(folder);
  return done;
}

/* Moves the file to its place. NULL: done; else the reason of the failure. */
static const char *move(FileWriter *w, bool durable)
{
  bool good =
      take_permissions(w) && (!durable || fsync(w->fd) == 0) && (w->name || name_open_file(w));
  int written = good ? w->fd : -1; /* close() reports lost bytes; the copy keeps the lock */
  if (good) good = (w->fd = fcntl(written, F_DUPFD_CLOEXEC, 0)) >= 0;
  if (written >= 0 && close(written) != 0) good = false;
  const char *why = good ? unreplaceable(w->path) : strerror(errno);
  return why || rename(w->name, w->path) == 0 ? why : strerror(errno);
}

ampc_status file_finish(FileWriter *w, bool durable)
{
  ampc_status status = file_guard(w->path, w->kind);
  const char *why = status ? NULL : move(w, durable);
  if (why) return failed(w, why);
  if (!status) {
    free(w->name);
    w->name = NULL;
    if (durable && !sync_folder(w->path)) status = cannot_write(w->path, strerror(errno));
  }
  file_abandon(w);
  return status;
}

void file_abandon(FileWriter *w)
{
  if (w->fd >= 0) close(w->fd);
  if (w->name) unlink(w->name);
  free(w->name);
  free(w->path);
  *w = (FileWriter){.fd = -1};
}

bool file_link(const char *from, const char *to)
{
  FileWriter w = {.path = strdup(to), .fd = open(from, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (w.fd >= 0) flock(w.fd, LOCK_SH | LOCK_NB);
  bool good = w.path && w.fd >= 0 && take_name(&w, from) && rename(w.name, to) == 0;
  int error = errno;
  file_abandon(&w); /* if `to` was the same file before, rename left the temporary name */
  errno = error;
  return good;
}

ampc_status file_check_writable(const char *path, const FileKind *kind)
{
  FileWriter w;
  ampc_status status = file_begin(&w, path, kind);
  file_abandon(&w);
  return status;
}

/* ---- other than regular files ---- */

/* Opens a device or a pipe to write to it. A file that this process has open is continued: a second
 * open would write from the start on. Returns -1 and sets errno on failure. */
static int open_as_it_is(const char *target)
{
  const char *slash = strrchr(target, '/');
  char *end = NULL;
  long number = slash ? strtol(slash + 1, &end, 10) : -1;
  struct stat here, own;
  if (end && end > slash + 1 && !*end && number >= 0 && number <= INT_MAX && is_open_file(target) &&
      stat(target, &here) == 0 && fstat((int)number, &own) == 0 && here.st_dev == own.st_dev &&
      here.st_ino == own.st_ino)
    return fcntl((int)number, F_DUPFD_CLOEXEC, 0);
  return open(target, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
}

ampc_status file_write(const char *path, const FileKind *kind, const void *bytes, int64_t size)
{
  char *target = file_target(path);
  if (!target) return cannot_write(path, strerror(errno));
  FileWriter w;
  ampc_status status = AMPC_OK;
  if (!unreplaceable(target)) {
    status = file_begin(&w, path, kind);
    if (!status) status = file_add(&w, bytes, size);
    if (!status) status = file_finish(&w, false);
  } else {
    int fd = open_as_it_is(target);
    if (fd < 0 || !write_all(fd, bytes, size)) status = cannot_write(path, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && !status) status = cannot_write(path, strerror(errno));
  }
  free(target);
  return status;
}

/* ---- stdout ---- */

int file_end_stdout(const char *program, int status)
{
  bool lost = ferror(stdout) != 0;
  errno = 0;
  if ((fflush(stdout) == 0 && !lost) || status) return status;
  fprintf(stderr, "%s: error: cannot write to stdout%s%s\n", program, errno ? ": " : "",
          errno ? strerror(errno) : "");
  return AMPC_BAD_FILE;
}
