/* CSV files (RFC 4180), plain or gzipped: fields between separators, lines of them. A field may
 * stand in quotes, "" within them is one. */
#pragma once
#include "stream.h"

enum { MOST_FIELD = 4 << 20 /* bytes */, FIELDS_PIECE = 1 << 16 };

/* What has been read last. */
typedef struct Fields {
  Stream stream;
  char sep;
  bool quoted;         /* the field stood in quotes */
  int64_t line, begun; /* of the file, from 1; that in which the line of fields begins */
  int size;
  int64_t at, end; /* in the buffer */
  char buffer[FIELDS_PIECE];
  char text[MOST_FIELD + 1]; /* of the field; ends with a zero */
} Fields;

ampc_status fields_open(const char *path, char sep, Fields *out);

/* The next line; `take` is called for each of its fields. *out_fields 0: an empty line, or with
 * *out_ended the end of the file. */
typedef ampc_status FieldTake(void *context, int64_t field);
ampc_status fields_line(Fields *f, FieldTake *take, void *context, int64_t *out_fields,
                        bool *out_ended);

/* AMPC_BAD_FILE: what is wrong with the line. */
ampc_status fields_bad(const Fields *f, const char *what);
