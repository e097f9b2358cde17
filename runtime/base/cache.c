/* The cache folder and the files in it; see cache.h. */
#include "cache.h"
#include "interrupt.h"
#include "common/shown.h"
#include "cache_prune.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct Seal { /* the last bytes of a file */
  char magic[8];
  XXH128_canonical_t sum; /* of all bytes before it, seeded with the file's name, so that a renamed
                             file does not match */
} Seal;
static const char magic[8] = {'a', 'm', 'p', 'c', 'j', 'i', 't', '2'};

/* ---- the folder ---- */

static bool folder_name(char out[PATH_MAX])
{
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n;
  if (base && base[0] == '/') { /* the XDG standard says to ignore relative paths */
    n = snprintf(out, PATH_MAX, "%s/ampc", base);
  } else {
    const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
    if (user) home = user->pw_dir;
    if (!home || home[0] != '/') return false;
    n = snprintf(out, PATH_MAX, "%s/.cache/ampc", home);
  }
  return n < PATH_MAX;
}

static void make_folders(char *path)
{
  for (char *p = path + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(path, 0700); /* if this fails, so does the mkdir of the complete path */
    *p = '/';
  }
  mkdir(path, 0700);
}

/* Returns NULL, or the reason why the folder cannot be used. */
static const char *folder_trouble(const char *path)
{
  struct stat at;
  if (lstat(path, &at) != 0) return strerror(errno);
  if (!S_ISDIR(at.st_mode)) return "it is not a folder";
  if (at.st_uid != geteuid()) return "it belongs to another user";
  if (at.st_mode & (S_IWGRP | S_IWOTH)) return "other users may write to it";
  if (access(path, R_OK | W_OK | X_OK) != 0) return strerror(errno);
  return NULL;
}

/* Returns NULL, or why no file can be written there. A file system may be full or read-only. */
static const char *write_trouble(const Cache *cache)
{
  char probe[CACHE_PATH];
  interrupt_hold();
  bool good = cache_begin(cache, probe) == AMPC_OK;
  if (good) unlink(probe);
  interrupt_release();
  return good ? NULL : strerror(errno);
}

/* For a temporary cache. /dev/shm is in memory, so it may have space when all disks are full. */
static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};
enum { PLACES = sizeof places / sizeof *places };

static ampc_status open_temporary(Cache *out, const char *why)
{
  static atomic_bool said;
  char shown[2 * CACHE_PATH];
  if (!atomic_exchange(&said, true))
    fprintf(stderr, "note: nothing is cached in %s: %s\n",
            ampc_show(shown, sizeof shown, out->folder, ""), why);
  out->temporary = true;
  while (out->tried < PLACES) {
    snprintf(out->folder, sizeof out->folder, "%s/amp-kernels-XXXXXX", places[out->tried++]);
    if (mkdtemp(out->folder)) return AMPC_OK;
  }
  return ampc_fail(
      AMPC_RUN_FAILED,
      "cannot store the kernels: neither the cache nor /tmp, /var/tmp or /dev/shm is writable");
}

bool cache_elsewhere(Cache *cache, const char *why)
{
  if (cache->temporary) rmdir(cache->folder);
  return open_temporary(cache, why) == AMPC_OK;
}

ampc_status cache_open(Cache *out)
{
  *out = (Cache){0};
  if (!folder_name(out->folder)) {
    strcpy(out->folder, "~/.cache/ampc");
    return open_temporary(out, "there is no home folder");
  }
  make_folders(out->folder);
  const char *why = folder_trouble(out->folder);
  if (!why) why = write_trouble(out);
  return why ? open_temporary(out, why) : AMPC_OK;
}

void cache_close(const Cache *cache)
{
  if (cache->temporary) rmdir(cache->folder);
}

/* ---- files ---- */

void cache_key(const char *text, size_t size, const char *identity, char key[33])
{
  XXH3_state_t *state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, text, size);
  XXH3_128bits_update(state, "", 1);
  XXH3_128bits_update(state, identity, strlen(identity));
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(state));
  XXH3_freeState(state);
  for (size_t i = 0; i < sizeof sum.digest; i++) snprintf(key + 2 * i, 3, "%02x", sum.digest[i]);
}

void cache_path(const Cache *cache, const char *key, const char *kind, char path[CACHE_PATH])
{
  snprintf(path, CACHE_PATH, "%s/%s.%s", cache->folder, key, kind);
}

ampc_status cache_begin(const Cache *cache, char temporary[CACHE_PATH])
{
  snprintf(temporary, CACHE_PATH, "%s/new.XXXXXX", cache->folder);
  int fd = mkostemp(temporary, O_CLOEXEC);
  if (fd < 0)
    return ampc_fail(AMPC_RUN_FAILED, "cannot write in %s: %s", cache->folder, strerror(errno));
  close(fd);
  return AMPC_OK;
}

static bool sum_of(int fd, size_t size, const char *path, XXH128_canonical_t *out)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return false;
  XXH64_hash_t seed = XXH3_64bits(name, strlen(name));
  XXH128_canonicalFromHash(out, XXH3_128bits_withSeed(bytes, size, seed));
  munmap(bytes, size);
  return true;
}

/* Returns the size without the seal. -1: the file is not the cache's, or it is damaged. */
static off_t whole_size(int fd, const char *path)
{
  struct stat at;
  Seal seal;
  XXH128_canonical_t sum;
  if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode) || at.st_uid != geteuid() ||
      at.st_mode & (S_IWGRP | S_IWOTH) || at.st_size <= (off_t)sizeof seal)
    return -1;
  off_t size = at.st_size - (off_t)sizeof seal;
  if (pread(fd, &seal, sizeof seal, size) != (ssize_t)sizeof seal) return -1;
  bool good = memcmp(seal.magic, magic, sizeof magic) == 0 &&
              sum_of(fd, (size_t)size, path, &sum) && memcmp(&seal.sum, &sum, sizeof sum) == 0;
  return good ? size : -1;
}

static void mark_used(int fd)
{
  futimens(fd, (struct timespec[]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}});
}

/* O_NONBLOCK: if the path is a pipe, opening it does not wait for a writer. */
bool cache_has(const char *path)
{
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  bool whole = whole_size(fd, path) >= 0;
  if (whole) mark_used(fd);
  close(fd);
  return whole;
}

bool cache_read(const char *path, char **out, size_t *out_size)
{
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  off_t size = fd >= 0 ? whole_size(fd, path) : -1;
  *out = size >= 0 ? malloc((size_t)size + 1) : NULL;
  bool good = *out && pread(fd, *out, (size_t)size, 0) == size;
  if (good) mark_used(fd);
  if (fd >= 0) close(fd);
  if (good) {
    (*out)[size] = 0;
    *out_size = (size_t)size;
  } else {
    free(*out);
    *out = NULL;
  }
  return good;
}

static bool seal_file(const char *temporary, const char *path)
{
  int fd = open(temporary, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat at;
  Seal seal;
  memcpy(seal.magic, magic, sizeof magic);
  bool good = fstat(fd, &at) == 0 && at.st_size > 0 &&
              sum_of(fd, (size_t)at.st_size, path, &seal.sum) && fchmod(fd, 0700) == 0 &&
              pwrite(fd, &seal, sizeof seal, at.st_size) == (ssize_t)sizeof seal;
  return close(fd) == 0 && good;
}

ampc_status cache_keep(const char *temporary, const char *path)
{
  if (seal_file(temporary, path) && rename(temporary, path) == 0) {
    cache_prune(path);
    return AMPC_OK;
  }
  ampc_status status = ampc_fail(AMPC_RUN_FAILED, "cannot write %s: %s", path, strerror(errno));
  unlink(temporary);
  return status;
}

static ampc_status write_entry(const Cache *cache, const char *path, const char *bytes, size_t size)
{
  char temporary[CACHE_PATH];
  ampc_status status = cache_begin(cache, temporary);
  if (status) return status;
  FILE *f = fopen(temporary, "wb");
  bool good = f && fwrite(bytes, 1, size, f) == size;
  if (f && fclose(f) != 0) good = false;
  if (good) return cache_keep(temporary, path);
  status = ampc_fail(AMPC_RUN_FAILED, "cannot write %s: %s", temporary, strerror(errno));
  unlink(temporary);
  return status;
}

ampc_status cache_write(const Cache *cache, const char *path, const char *bytes, size_t size)
{
  interrupt_hold(); /* the file has a temporary name until it is complete */
  ampc_status status = write_entry(cache, path, bytes, size);
  interrupt_release();
  return status;
}
