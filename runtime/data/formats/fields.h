/* CSV files (RFC 4180), plain or gzipped: lines of fields with separators. A line ends in \n, \r\n
 * or \r. A field may be quoted; "" inside quotes stands for one quote. */
#pragma once
#include "stream.h"

enum { MOST_FIELD = 4 << 20 /* bytes */, FIELDS_PIECE = 1 << 16 };

/* The state of the reader, and the last field that it has read. */
typedef struct Fields {
  Stream stream;
  char sep;
  bool quoted;         /* the field was quoted */
  int64_t line, begun; /* line: current line of the file, from 1. begun: line in which the current
                          record begins: quoted fields may contain newlines */
  int size;
  int64_t at, end; /* range of the buffer that is not read yet */
  char buffer[FIELDS_PIECE];
  char text[MOST_FIELD + 1]; /* the field, NUL-terminated */
} Fields;

/* Opens the file, after its first `skip` lines. */
ampc_status fields_open(const char *path, char sep, int64_t skip, Fields *out);

/* Reads the next line and calls `take` for each of its fields. *out_fields is the number of fields:
 * 0 for an empty line and at the end of the file. *out_ended: the file ends after this line. */
typedef ampc_status FieldTake(void *context, int64_t field);
ampc_status fields_line(Fields *f, FieldTake *take, void *context, int64_t *out_fields,
                        bool *out_ended);

/* Returns AMPC_BAD_FILE; the message begins with the file and `begun`. */
ampc_status fields_bad(const Fields *f, const char *what);
