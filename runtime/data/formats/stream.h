/* The bytes of a data file from its beginning to its end, whether it is gzipped or not. */
#pragma once
#include <zlib.h>
#include "ampc_plan.h"

typedef struct DataFile {
  const char *path;
  const char *expected; /* what should be there, for messages: "an IDX file" */
  bool by_name; /* its first bytes may be any: a name that ends in .gz tells that it is gzipped */
} DataFile;

typedef struct Stream {
  gzFile file;
  const char *path;   /* the caller's */
  int64_t size, most; /* bytes of the file; that can come out of one of this size */
} Stream;

/* Opens a regular file, for whoever reads it without a stream. */
ampc_status stream_open_file(const DataFile *f, int *out_fd, int64_t *out_size);

/* The same through zlib. */
ampc_status stream_open(const DataFile *f, Stream *out);
void stream_close(Stream *s);

/* Reads up to n bytes; *out_read is less only at the end of the file. Reading on there has zlib
 * compare the checksum of a gzipped file. */
ampc_status stream_read(Stream *s, void *to, int64_t n, int64_t *out_read);
