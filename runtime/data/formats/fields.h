/* CSV files (RFC 4180), plain or gzipped: lines of fields with separators. A field may be quoted;
 * "" inside quotes stands for one quote. */
#pragma once
#include "stream.h"

enum { MOST_FIELD = 4 << 20 /* bytes */, FIELDS_PIECE = 1 << 16 };

/* The state of the reader, with the last field. */
typedef struct Fields {
  Stream stream;
  char sep;
  bool quoted;         /* the field was quoted */
  int64_t line, begun; /* line of the file, from 1; the one in which the fields' line begins */
  int size;
  int64_t at, end; /* in the buffer */
  char buffer[FIELDS_PIECE];
  char text[MOST_FIELD + 1]; /* the field, NUL-terminated */
} Fields;

ampc_status fields_open(const char *path, char sep, Fields *out);

/* Reads the next line and calls `take` for each of its fields. *out_fields 0: an empty line, or
 * with *out_ended the end of the file. */
typedef ampc_status FieldTake(void *context, int64_t field);
ampc_status fields_line(Fields *f, FieldTake *take, void *context, int64_t *out_fields,
                        bool *out_ended);

/* Fails with AMPC_BAD_FILE and a message that begins with the line's number. */
ampc_status fields_bad(const Fields *f, const char *what);
