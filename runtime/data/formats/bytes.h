/* A range of a file's bytes with random access, for any number of threads. */
#pragma once
#include "stream.h"

/* A range that is small or was compressed is held in memory. Otherwise each read calls the system,
 * whose cache is as good. If the file is truncated while it is open, the read fails. */
typedef struct Bytes {
  const char *path; /* the caller owns it */
  uint8_t *held;    /* NULL: the range is in the file, from `at` on */
  int fd;           /* -1: no open file */
  int64_t at, size;
} Bytes;

/* Opens bytes [at, at + size) of the unpacked file; size -1: up to its end. `whole`: the file must
 * end there. */
ampc_status bytes_open(const DataFile *f, int64_t at, int64_t size, bool whole, Bytes *out);
/* Sets *out to the size of the unpacked file. Keeps no bytes in memory. */
ampc_status bytes_count(const DataFile *f, int64_t *out);
void bytes_close(Bytes *b); /* a zeroed struct is fine */

/* Reads bytes [at, at + n) of the range, which must contain them. */
ampc_status bytes_read(const Bytes *b, int64_t at, int64_t n, void *to);
