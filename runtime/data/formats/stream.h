/* The bytes of a data file from its beginning to its end, whether it is gzipped or not. */
#pragma once
#include <zlib.h>
#include "ampc_plan.h"

typedef struct DataFile {
  const char *path;
  const char *expected; /* the expected contents, for messages: "an IDX file" */
  bool by_name; /* contents that are not gzipped may begin with any bytes, so only a name that ends
                   in .gz says that the file is gzipped. bytes_open() obeys it; stream_open() takes
                   every file that begins like gzip as gzipped */
} DataFile;

typedef struct Stream {
  gzFile file;
  const char *path;   /* the caller owns it */
  int64_t size, most; /* bytes of the file; most bytes that it can have unpacked */
} Stream;

/* Opens a regular file for reading without zlib. */
ampc_status stream_open_file(const DataFile *f, int *out_fd, int64_t *out_size);

/* Opens a regular file for reading through zlib. */
ampc_status stream_open(const DataFile *f, Stream *out);
void stream_close(Stream *s);

/* Reads up to n bytes; *out_read is less than n only at the end of the file. To check the checksum
 * of a gzipped file, read once more at its end. */
ampc_status stream_read(Stream *s, void *to, int64_t n, int64_t *out_read);
