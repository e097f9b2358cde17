/* A range of a file's bytes that can be read anywhere, by any number of threads. */
#pragma once
#include "stream.h"

/* Held in memory when it is small or came out of a compressed file; else each read asks the system,
 * whose cache is as good. Then a file that is cut while it is open is an error of that read. */
typedef struct Bytes {
  const char *path; /* the caller's */
  uint8_t *held;    /* NULL: in the file, from `at` on */
  int fd;           /* -1: none */
  int64_t at, size;
} Bytes;

/* Bytes [at, at + size) of the file as it was before it was gzipped; size -1: up to its end.
 * `whole`: it must end there. */
ampc_status bytes_open(const DataFile *f, int64_t at, int64_t size, bool whole, Bytes *out);
/* As many bytes as bytes_open(.., 0, -1, ..) gives, without keeping them. */
ampc_status bytes_count(const DataFile *f, int64_t *out);
void bytes_close(Bytes *b); /* also one of all zeros */

/* Bytes [at, at + n) of the range, which has them. */
ampc_status bytes_read(const Bytes *b, int64_t at, int64_t n, void *to);
