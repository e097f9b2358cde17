/* The kernel cache stays within its size limit. The least recently used entries are removed first.
 * The newest entry stays, and so do files that are not entries of the cache. */
#include "runtime/base/cache.h"
#include "runtime/base/cache_prune.h"
#include <fcntl.h>
#include <limits.h>
#include <time.h>
#include "temp.h"

static void make(const char *name, size_t size, int age)
{
  static char bytes[10000];
  struct timespec now;
  temp_write(temp_path(name), bytes, size);
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= age;
  MUST(utimensat(AT_FDCWD, temp_path(name), (struct timespec[]){now, now}, 0) == 0);
}

static bool there(const char *name)
{
  return access(temp_path(name), F_OK) == 0;
}

static void test_order(void)
{
  make("old.so", 1000, 300);
  make("older.txt", 1000, 400);
  make("used.so", 1000, 100);
  make("new.so", 1000, 500); /* just made, so its age does not matter */
  cache_prune_to(temp_path("new.so"), 4000);
  CHECK(there("older.txt"));
  cache_prune_to(temp_path("new.so"), 2999);
  CHECK(!there("older.txt"));
  CHECK(!there("old.so"));
  CHECK(there("used.so"));
  cache_prune_to(temp_path("new.so"), 10);
  CHECK(!there("used.so"));
  CHECK(there("new.so"));
}

static void test_others(void)
{
  make("notes", 5000, 1000);
  make("new.abcdef", 5000, 10);
  make("new.forgot", 5000, 100000);
  make("fresh.ids", 5000, 100000);
  make("stale.ids", 5000, 2700000);
  CHECK(symlink("/bin/true", temp_path("link.so")) == 0);
  cache_prune_to(temp_path("new.so"), 10);
  CHECK(there("notes"));
  CHECK(there("new.abcdef")); /* another process may be writing it */
  CHECK(!there("new.forgot"));
  CHECK(there("link.so"));
  CHECK(there("fresh.ids"));
  CHECK(!there("stale.ids"));
}

/* Checks that a use makes an entry the youngest, even without access times in the file system. */
static void test_use(void)
{
  Cache cache;
  char path[2][CACHE_PATH], temporary[CACHE_PATH], key[33];
  setenv("XDG_CACHE_HOME", temp_folder, 1);
  MUST(cache_open(&cache) == AMPC_OK && !cache.temporary);
  for (int i = 0; i < 2; i++) {
    cache_key("text", (size_t)i, "identity", key);
    cache_path(&cache, key, "so", path[i]);
    MUST(cache_begin(&cache, temporary) == AMPC_OK);
    temp_write(temporary, "bytes", 5);
    MUST(cache_keep(temporary, path[i]) == AMPC_OK);
    struct timespec past = {.tv_sec = 1000 + i};
    MUST(utimensat(AT_FDCWD, path[i], (struct timespec[]){past, past}, 0) == 0);
  }
  CHECK(strcmp(path[0], path[1]) != 0);
  CHECK(cache_has(path[0]));
  cache_prune_to("/nowhere/at.all", 0); /* the folder does not exist: no effect */
  cache_path(&cache, "none", "so", temporary);
  cache_prune_to(temporary, 50);
  CHECK(cache_has(path[0]));
  CHECK(!cache_has(path[1]));
}

int main(void)
{
  temp_open();
  test_order();
  test_others();
  test_use();
  char command[PATH_MAX];
  snprintf(command, sizeof command, "rm -r '%s'", temp_folder);
  CHECK(system(command) == 0);
  return check_done();
}
