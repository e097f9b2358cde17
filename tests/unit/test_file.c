/* How all programs read and write files: links, permissions, special files, temporary files, pipes
 * without a peer; locks; texts with any bytes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include "check.h"
#include "runtime/base/file_lock.h"
#include "common/file.h"
#include "temp.h"

static void make(const char *name, const char *text)
{
  temp_write(temp_path(name), text, strlen(text));
}

static bool holds(const char *name, const char *text)
{
  size_t n;
  char *bytes = temp_read(temp_path(name), &n);
  bool same = n == strlen(text) && memcmp(bytes, text, n) == 0;
  free(bytes);
  return same;
}

static ampc_status put(const char *name, const char *text)
{
  return file_write(temp_path(name), NULL, text, (int64_t)strlen(text));
}

static mode_t mode_of(const char *name)
{
  struct stat info;
  MUST(stat(temp_path(name), &info) == 0);
  return info.st_mode & 07777;
}

static ino_t inode_of(const char *name)
{
  struct stat info;
  MUST(lstat(temp_path(name), &info) == 0);
  return info.st_ino;
}

/* ---- writing ---- */

static void check_plain(void)
{
  int files = temp_count();
  umask(027);
  CHECK(put("new", "one") == AMPC_OK && holds("new", "one") && mode_of("new") == 0640);
  MUST(chmod(temp_path("new"), 0604) == 0);
  ino_t before = inode_of("new");
  CHECK(put("new", "two") == AMPC_OK && holds("new", "two") && mode_of("new") == 0604);
  CHECK(inode_of("new") != before); /* a new file took the name, so no reader got half of a text */
  umask(022);
  make("new.tmp", "mine");
  CHECK(put("new", "three") == AMPC_OK && holds("new.tmp", "mine"));
  CHECK(temp_count() == files + 2);
  CHECK(put("no/such", "x") == AMPC_BAD_FILE && strstr(ampc_last_error(), "no/such"));
  unlink(temp_path("new.tmp"));
  unlink(temp_path("new"));
}

/* Checks that a link stays a link. Its target is replaced, in the target's folder. */
static void check_links(void)
{
  MUST(mkdir(temp_path("there"), 0700) == 0);
  make("there/target", "old");
  MUST(symlink("there/target", temp_path("link")) == 0 &&
       symlink("link", temp_path("second")) == 0);
  ino_t link = inode_of("link");
  CHECK(put("second", "new") == AMPC_OK && holds("there/target", "new"));
  CHECK(inode_of("link") == link && holds("link", "new"));
  MUST(symlink("there/none", temp_path("dangling")) == 0);
  CHECK(put("dangling", "made") == AMPC_OK && holds("there/none", "made"));
  MUST(symlink("circle", temp_path("circle")) == 0);
  CHECK(put("circle", "x") == AMPC_BAD_FILE && strstr(ampc_last_error(), strerror(ELOOP)));
  CHECK(file_is_same(temp_path("second"), temp_path("there/target")));
  CHECK(!file_is_same(temp_path("second"), temp_path("there/none")));
  static const char *const made[] = {"link",         "second",     "dangling", "circle",
                                     "there/target", "there/none", "there"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) remove(temp_path(made[i]));
}

/* Checks that a special file is written to, not replaced. */
static void check_special(void)
{
  CHECK(file_write("/dev/null", NULL, "x", 1) == AMPC_OK);
  CHECK(file_write("/dev/full", NULL, "x", 1) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "/dev/full") && strstr(ampc_last_error(), strerror(ENOSPC)));
  MUST(mkfifo(temp_path("pipe"), 0600) == 0);
  int reader = open(temp_path("pipe"), O_RDONLY | O_NONBLOCK);
  char got[8] = "";
  CHECK(put("pipe", "text") == AMPC_OK && read(reader, got, sizeof got) == 4 &&
        strcmp(got, "text") == 0);
  close(reader);
  FileWriter w;
  CHECK(file_begin(&w, temp_path("pipe"), NULL) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), "not a regular file"));
  CHECK(file_begin(&w, temp_folder, NULL) == AMPC_BAD_FILE &&
        strstr(ampc_last_error(), "directory"));
  struct stat info;
  CHECK(lstat(temp_path("pipe"), &info) == 0 && S_ISFIFO(info.st_mode));
  unlink(temp_path("pipe"));
}

/* Checks that an open descriptor (/dev/fd/N) is written at its position, even of a regular file. */
static void check_open(void)
{
  char name[64];
  int fd = open(temp_path("open"), O_RDWR | O_CREAT, 0600);
  MUST(fd >= 0 && write(fd, "before ", 7) == 7);
  snprintf(name, sizeof name, "/dev/fd/%d", fd);
  CHECK(file_write(name, NULL, "text", 4) == AMPC_OK && write(fd, " after", 6) == 6);
  CHECK(holds("open", "before text after"));
  CHECK(file_check_writable(name, NULL) == AMPC_BAD_FILE);
  close(fd);
  unlink(temp_path("open"));
}

static void check_parts(void)
{
  int files = temp_count();
  FileWriter w;
  make("whole", "old");
  MUST(file_begin(&w, temp_path("whole"), NULL) == AMPC_OK && file_add(&w, "0123", 4) == AMPC_OK);
  CHECK(holds("whole", "old"));
  file_abandon(&w);
  CHECK(holds("whole", "old") && temp_count() == files + 1);
  MUST(file_begin(&w, temp_path("whole"), NULL) == AMPC_OK && file_add(&w, "0123", 4) == AMPC_OK);
  CHECK(file_put(&w, 1, "xy", 2) == AMPC_OK && file_add(&w, "4", 1) == AMPC_OK);
  CHECK(file_finish(&w, true) == AMPC_OK && holds("whole", "0xy34"));
  file_abandon(&w);
  CHECK(file_check_writable(temp_path("whole"), NULL) == AMPC_OK && holds("whole", "0xy34"));
  CHECK(temp_count() == files + 1);
  CHECK(file_link(temp_path("whole"), temp_path("other")) && holds("other", "0xy34"));
  CHECK(file_link(temp_path("whole"), temp_path("other")) && temp_count() == files + 2);
  MUST(symlink("whole", temp_path("link")) == 0);
  CHECK(file_link(temp_path("link"), temp_path("other")) && inode_of("other") == inode_of("whole"));
  unlink(temp_path("link"));
  unlink(temp_path("other"));
  unlink(temp_path("whole"));
}

/* Checks that an unwritable file is refused before the work that makes its contents. */
static void check_names(void)
{
  char name[NAME_MAX + 2];
  memset(name, 's', sizeof name);
  for (size_t size = 200; size <= NAME_MAX; size += 5) {
    name[size] = 0;
    CHECK(file_check_writable(temp_path(name), NULL) == AMPC_OK);
    CHECK(file_write(temp_path(name), NULL, "text", 4) == AMPC_OK && holds(name, "text"));
    unlink(temp_path(name));
    name[size] = 's';
  }
  name[NAME_MAX + 1] = 0;
  CHECK(file_check_writable(temp_path(name), NULL) == AMPC_BAD_FILE);
  CHECK(strstr(ampc_last_error(), strerror(ENAMETOOLONG)));
  CHECK(file_check_writable("", NULL) == AMPC_BAD_FILE);
}

/* Lets several processes write and one read. The reader gets a complete text each time, and no
 * temporary file stays. */
static void check_together(void)
{
  enum { WRITERS = 4, SIZE = 100000 };
  static char text[SIZE];
  int files = temp_count();
  pid_t child[WRITERS];
  make("shared", "");
  for (int i = 0; i < WRITERS; i++) {
    child[i] = fork();
    MUST(child[i] >= 0);
    memset(text, 'a' + i, sizeof text);
    for (int k = 0; !child[i] && k < 100; k++)
      if (file_write(temp_path("shared"), NULL, text, SIZE)) _exit(1);
    if (!child[i]) _exit(0);
  }
  for (int k = 0; k < 300; k++) {
    char *bytes;
    int64_t n;
    MUST(file_read(FILE_DATA, temp_path("shared"), &bytes, &n) == AMPC_OK);
    CHECK(n == 0 || (n == SIZE && bytes[0] == bytes[SIZE - 1]));
    free(bytes);
  }
  for (int i = 0; i < WRITERS; i++) {
    int status;
    MUST(waitpid(child[i], &status, 0) == child[i]);
    CHECK(status == 0);
  }
  CHECK(temp_count() == files + 1);
  unlink(temp_path("shared"));
}

/* ---- reading ---- */

static bool reads(const char *path, const char *want)
{
  char *bytes;
  int64_t n;
  const char *why = file_read_any(FILE_DATA, path, 1000, &bytes, &n);
  bool good = !why && n == (int64_t)strlen(want) && strcmp(bytes, want) == 0;
  CHECK_MSG(good, "%s: %s", path, why ? why : "another text");
  free(bytes);
  return good;
}

static bool refuses(const char *path, const char *word)
{
  char *bytes;
  int64_t n;
  const char *why = file_read_any(FILE_DATA, path, 1000, &bytes, &n);
  CHECK_MSG(why && strstr(why, word), "%s: %s", path, why ? why : "was read");
  return why != NULL;
}

static void end_child(pid_t child)
{
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

/* Checks a child that holds the pipe from the start and writes the rest after a first read. */
static void check_slow_writer(void)
{
  int fd = open(temp_path("pipe"), O_RDWR);
  pid_t child = fork();
  MUST(fd >= 0 && child >= 0);
  if (child == 0) {
    int unread = 1;
    bool good = write(fd, "slo", 3) == 3;
    while (good && unread) good = ioctl(fd, FIONREAD, &unread) == 0 && usleep(1000) == 0;
    _exit(!good || write(fd, "wly", 3) != 3);
  }
  close(fd);
  CHECK(reads(temp_path("pipe"), "slowly"));
  end_child(child);
}

/* Checks a child that opens the pipe after the reader. Tries again if the child is too late. */
static void check_late_writer(void)
{
  char *bytes = NULL;
  int64_t n = 0;
  const char *why = "nobody";
  for (int tries = 0; tries < 20 && why && strstr(why, "nobody"); tries++) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
      int fd; /* open() fails while there is no reader */
      while ((fd = open(temp_path("pipe"), O_WRONLY | O_NONBLOCK)) < 0) usleep(1000);
      _exit(write(fd, "late", 4) != 4);
    }
    why = file_read_any(FILE_DATA, temp_path("pipe"), 1000, &bytes, &n);
    end_child(child);
  }
  CHECK_MSG(!why && n == 4 && strcmp(bytes, "late") == 0, "a late writer: %s",
            why ? why : "no text");
  free(bytes);
}

/* Checks that a pipe can be read, even if its writer opens it after the reader. */
static void check_pipes(void)
{
  char *bytes;
  int64_t n;
  MUST(mkfifo(temp_path("pipe"), 0600) == 0);
  CHECK(refuses(temp_path("pipe"), "no process writes"));
  CHECK(file_read(FILE_DATA, temp_path("pipe"), &bytes, &n) == AMPC_BAD_FILE && !bytes);
  CHECK(strstr(ampc_last_error(), "not a regular file"));
  check_slow_writer();
  check_late_writer();
  unlink(temp_path("pipe"));
  int ends[2];
  char name[64];
  MUST(pipe(ends) == 0 && write(ends[1], "text", 4) == 4 && close(ends[1]) == 0);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
  CHECK(reads(name, "text") && reads(name, "")); /* the text, then the end of the file */
  close(ends[0]);
}

static void check_reading(void)
{
  make("text", "abc");
  CHECK(reads(temp_path("text"), "abc") && reads("/dev/null", ""));
  CHECK(refuses(temp_path("none"), strerror(ENOENT)));
  CHECK(refuses(temp_folder, strerror(EISDIR)));
  CHECK(refuses("/dev/zero", "more than 1000 bytes"));
  unlink(temp_path("text"));
}

/* ---- locks ---- */

static int try_lock(const char *name)
{
  pid_t child = fork();
  MUST(child >= 0);
  int lock;
  if (child == 0) _exit((int)file_lock(temp_path(name), &lock));
  int status;
  MUST(waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

/* Checks that a lock ends with its process, however that ends, and holds for all names of a
 * file. */
static void check_lock(void)
{
  int lock, again, pipe_ends[2];
  MUST(symlink("saved", temp_path("link")) == 0);
  CHECK(file_lock(temp_path("saved"), &lock) == AMPC_OK && lock >= 0);
  for (int i = 0; i < 20; i++) /* locking again in the same process succeeds */
    CHECK(file_lock(temp_path("saved"), &again) == AMPC_OK && again == -1);
  CHECK(try_lock("saved") == AMPC_BAD_FILE && try_lock("link") == AMPC_BAD_FILE);
  CHECK(try_lock("other") == AMPC_OK);
  close(lock);
  CHECK(try_lock("saved") == AMPC_OK);
  MUST(pipe(pipe_ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    char held = file_lock(temp_path("saved"), &lock) == AMPC_OK;
    if (write(pipe_ends[1], &held, 1) == 1) pause();
    _exit(0);
  }
  char held = 0;
  CHECK(read(pipe_ends[0], &held, 1) == 1 && held);
  CHECK(file_lock(temp_path("saved"), &lock) == AMPC_BAD_FILE);
  char number[32];
  snprintf(number, sizeof number, "process %d,", (int)child);
  CHECK_MSG(strstr(ampc_last_error(), number), "%s", ampc_last_error());
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  CHECK(file_lock(temp_path("saved"), &lock) == AMPC_OK && lock >= 0);
  close(lock);
  unlink(temp_path("link"));
  CHECK(temp_count() == 0); /* no file is left */
}

/* Checks when an input may be replaced: in a program as soon as it is closed, in a command never.
 */
static void check_inputs(void)
{
  FileWriter w;
  const char *path = temp_path("input");
  make("input", "old");
  MUST(file_begin(&w, path, NULL) == AMPC_OK && file_add(&w, "new", 3) == AMPC_OK);
  int fd = file_open_input(FILE_WEIGHTS, path, 0), again = file_open_input(FILE_WEIGHTS, path, 0);
  MUST(fd >= 0 && again >= 0);
  CHECK(file_finish(&w, false) == AMPC_BAD_USAGE && holds("input", "old"));
  file_close_input(FILE_WEIGHTS, path, again);
  CHECK(put("input", "new") == AMPC_BAD_USAGE && strstr(ampc_last_error(), "as weights"));
  file_close_input(FILE_WEIGHTS, path, fd);
  CHECK(put("input", "new") == AMPC_OK && holds("input", "new"));
  file_keep_inputs();
  CHECK(reads(path, "new") && put("input", "newer") == AMPC_BAD_USAGE && holds("input", "new"));
}

int main(void)
{
  temp_open();
  check_plain();
  check_links();
  check_special();
  check_open();
  check_parts();
  check_names();
  check_together();
  check_pipes();
  check_reading();
  check_lock();
  check_inputs();
  temp_close();
  return check_done();
}
