/* CSV files (RFC 4180), plain or gzipped: a line for each sample, fields between `sep`s, numbers. A
 * field may stand in quotes, "" within them is one. `column` (a line each) is a name of the header
 * line, or with `number` a count from 0. `scalar`: one column, a number a sample; else a vector.
 * `header` 0: the first line is a sample, too. All of the file is read when it is opened. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "args.h"
#include "header.h"
#include "runtime/base/convert.h"
#include "runtime/plan/number.h"
#include "stream.h"

enum {
  MOST_COLUMNS = 4096, /* that are asked for */
  MOST_FIELD = 4096,   /* bytes */
  MOST_FIELDS = 1 << 20,
  PIECE = 1 << 16,
  SHOWN_NAMES = 200 /* bytes */
};

/* What the arguments ask for. */
typedef struct Wanted {
  ampc_header is;
  char sep;
  bool header, numbers;
  int64_t n;
} Wanted;

typedef struct Csv {
  Stream stream;
  const char *args;
  Wanted wanted;
  int64_t *place;      /* of each wanted column, in a line; -1: not found yet */
  int32_t *column;     /* of each field, the other way round; -1: not wanted */
  int64_t mapped;      /* entries of column; fields behind them are not wanted */
  int64_t fields;      /* in the first line; each line has as many */
  int64_t line, begun; /* of the file, from 1; that in which the record begins */
  int64_t samples;
  int field_size;
  bool quoted;
  char field[MOST_FIELD + 1];
  char names[SHOWN_NAMES];     /* of the header line, as far as they are told */
  const ampc_program *program; /* NULL: numbers are not read, only counted */
  char *values;
  int64_t room; /* samples for which there is room in values */
  char buffer[PIECE];
  int64_t at, end; /* in the buffer */
} Csv;

struct ampc_reader {
  char *values;
  int64_t sample_bytes;
};

/* ---- arguments ---- */

static bool column_number(const char *at, int n, int64_t *out)
{
  char text[24];
  snprintf(text, sizeof text, "%.*s", n, at);
  return ampc_read_count(text, 0, MOST_FIELDS, out);
}

static ampc_status read_arguments(const char *args, Wanted *w)
{
  char text[8];
  int n;
  *w = (Wanted){.sep = ',',
                .header = args_integer(args, "header") != 0,
                .numbers = args_integer(args, "number") != 0};
  for (const char *at = args_next(args, "column", NULL, &n); at;
       at = args_next(args, "column", at, &n))
    w->n++;
  if (w->n < 1 || w->n > MOST_COLUMNS)
    return ampc_fail(AMPC_BAD_USAGE, "csv of %lld columns; 1 to %d are read", (long long)w->n,
                     MOST_COLUMNS);
  if (!w->numbers && !w->header)
    return ampc_fail(AMPC_BAD_USAGE, "without a header line columns of csv are numbers, from 0 on");
  for (const char *at = args_next(args, "column", NULL, &n); at && w->numbers;
       at = args_next(args, "column", at, &n)) {
    int64_t number;
    if (!column_number(at, n, &number))
      return ampc_fail(AMPC_BAD_USAGE, "csv has no column %.*s; they count from 0", n, at);
  }
  if (!args_text(args, "sep", text, sizeof text) || strlen(text) != 1 || strchr("\"\r", text[0]))
    return ampc_fail(AMPC_BAD_USAGE, "`sep` of csv is one character, such as \",\" or \"\\t\"");
  w->sep = text[0];
  args_text(args, "dtype", text, sizeof text);
  w->is.dtype = strcmp(text, "f32") == 0   ? AMPC_F32
                : strcmp(text, "i64") == 0 ? AMPC_I64
                                           : AMPC_I32;
  if (w->is.dtype == AMPC_I32 && strcmp(text, "i32") != 0)
    return ampc_fail(AMPC_BAD_USAGE, "csv reads f32, i32 and i64, not %s", text);
  if (!args_integer(args, "scalar")) {
    w->is.rank = 1;
    w->is.dim[0] = w->n;
  }
  return AMPC_OK;
}

static ampc_status csv_known(const char *args, ampc_header *out)
{
  Wanted w;
  ampc_status status = read_arguments(args, &w);
  *out = w.is;
  return status;
}

/* ---- fields ---- */

static ampc_status bad(const Csv *c, const char *what)
{
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld: %s", c->stream.path, (long long)c->begun, what);
}

/* The next byte, or -1 at the end of the file. */
static ampc_status next_byte(Csv *c, int *out)
{
  *out = -1;
  if (c->at == c->end) {
    ampc_status status = stream_read(&c->stream, c->buffer, PIECE, &c->end);
    c->at = 0;
    if (status || !c->end) return status;
  }
  *out = (unsigned char)c->buffer[c->at++];
  return AMPC_OK;
}

static ampc_status peek_byte(Csv *c, int *out)
{
  ampc_status status = next_byte(c, out);
  if (*out >= 0) c->at--;
  return status;
}

static ampc_status add_byte(Csv *c, int byte)
{
  if (c->field_size == MOST_FIELD) return bad(c, "a field of more than 4096 bytes");
  c->field[c->field_size++] = (char)byte;
  return AMPC_OK;
}

/* Behind the opening quote, up to the closing one. */
static ampc_status read_quoted(Csv *c)
{
  int byte, more;
  c->quoted = true;
  for (;;) {
    ampc_status status = next_byte(c, &byte);
    if (status) return status;
    if (byte < 0) return bad(c, "a quote is not closed");
    c->line += byte == '\n';
    if (byte == '"') {
      status = peek_byte(c, &more);
      if (status || more != '"') return status;
      c->at++;
    }
    status = add_byte(c, byte);
    if (status) return status;
  }
}

/* Up to what ends it: *out_end is `sep`, a newline, or -1 for the end of the file. */
static ampc_status read_field(Csv *c, int *out_end)
{
  c->field_size = 0;
  c->quoted = false;
  for (;;) {
    int byte;
    ampc_status status = next_byte(c, &byte);
    if (!status && byte == '\r') continue; /* of a line that ends in \r\n */
    if (status || byte < 0 || byte == '\n' || byte == c->wanted.sep) {
      c->line += byte == '\n';
      c->field[c->field_size] = 0;
      *out_end = byte;
      return status;
    }
    if (c->quoted) return bad(c, "something follows a closing quote");
    status = byte == '"' && c->field_size == 0 ? read_quoted(c) : add_byte(c, byte);
    if (status) return status;
  }
}

/* ---- lines ---- */

/* A name of the header, for the columns that are asked for by it. */
static ampc_status name_column(Csv *c, int64_t field)
{
  int n;
  int64_t i = 0;
  size_t used = strlen(c->names);
  snprintf(c->names + used, sizeof c->names - used, "%s%s", used ? ", " : "", c->field);
  for (const char *at = args_next(c->args, "column", NULL, &n); at;
       at = args_next(c->args, "column", at, &n), i++) {
    if (n != c->field_size || memcmp(at, c->field, (size_t)n) != 0) continue;
    if (c->place[i] >= 0)
      return ampc_fail(AMPC_BAD_FILE, "%s has two columns `%s`: ask for one by its number",
                       c->stream.path, c->field);
    c->place[i] = field;
  }
  return AMPC_OK;
}

static bool read_number(Csv *c, double *real, int64_t *whole)
{
  char *from = c->field, *end = from + c->field_size;
  while (*from == ' ') from++;
  while (end > from && end[-1] == ' ') *--end = 0;
  if (*from == '+') from++;
  if (strlen(from) != (size_t)(end - from)) return false;
  if (c->wanted.is.dtype != AMPC_F32) {
    bool good = ampc_read_whole(from, whole);
    return good && (c->wanted.is.dtype == AMPC_I64 || *whole == (int32_t)*whole);
  }
  *real = strcasecmp(from, "nan") == 0    ? (double)NAN
          : strcasecmp(from, "inf") == 0  ? (double)INFINITY
          : strcasecmp(from, "-inf") == 0 ? -(double)INFINITY
                                          : 0;
  return *real != 0 || ampc_read_real(from, real);
}

/* The field, of the column that was asked for as number `column`, is none that can be stored. */
static ampc_status no_number(const Csv *c, int64_t column)
{
  int n = 0;
  const char *at = args_next(c->args, "column", NULL, &n);
  for (int64_t i = 0; i < column && at; i++) at = args_next(c->args, "column", at, &n);
  if (!c->field_size)
    return ampc_fail(AMPC_BAD_FILE, "%s, line %lld, column %.*s: the field is empty%s",
                     c->stream.path, (long long)c->begun, at ? n : 0, at,
                     c->wanted.is.dtype == AMPC_F32 ? "; `nan` stands for what is not known" : "");
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld, column %.*s: `%.40s` is no %s", c->stream.path,
                   (long long)c->begun, at ? n : 0, at, c->field,
                   c->wanted.is.dtype == AMPC_F32   ? "number"
                   : c->wanted.is.dtype == AMPC_I32 ? "whole number of 32 bits; dtype=f32 reads it"
                                                    : "whole number; dtype=f32 reads it");
}

/* The field as a number at its place in values. */
static ampc_status store_field(Csv *c, int64_t column)
{
  double real = 0;
  int64_t whole = 0, i = c->samples * c->wanted.n + column;
  if (!read_number(c, &real, &whole)) return no_number(c, column);
  if (c->wanted.is.dtype == AMPC_I64) {
    ((int64_t *)(void *)c->values)[i] = whole;
  } else if (c->wanted.is.dtype == AMPC_I32) {
    ((int32_t *)(void *)c->values)[i] = (int32_t)whole;
  } else {
    number_store(AMPC_F32, c->program->real64, c->values, i, real);
  }
  return AMPC_OK;
}

static ampc_status make_room(Csv *c)
{
  if (!c->program || c->samples < c->room) return AMPC_OK;
  int64_t room = c->room ? 2 * c->room : 256;
  int64_t size = ampc_element_size(c->program, c->wanted.is.dtype) * c->wanted.n;
  char *more = realloc(c->values, (size_t)(room * size));
  if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->stream.path);
  c->values = more;
  c->room = room;
  return AMPC_OK;
}

/* One field of the header line or of a sample. */
static ampc_status take_field(Csv *c, int64_t field, bool header)
{
  ampc_status status = AMPC_OK;
  if (header) return c->wanted.numbers ? AMPC_OK : name_column(c, field);
  if (c->program && field < c->mapped && c->column[field] >= 0)
    status = store_field(c, c->column[field]);
  return status;
}

/* *out_fields 0: an empty line, which is passed over, or with *out_end -1 the end. */
static ampc_status read_line(Csv *c, bool header, int64_t *out_fields, int *out_end)
{
  ampc_status status = AMPC_OK;
  *out_fields = 0;
  c->begun = c->line;
  do {
    status = read_field(c, out_end);
    bool nothing = !*out_fields && !c->field_size && !c->quoted && *out_end != c->wanted.sep;
    if (!status && nothing) return AMPC_OK;
    if (!status) status = take_field(c, *out_fields, header);
    ++*out_fields;
  } while (!status && *out_end == c->wanted.sep);
  return status;
}

/* Once the places of all columns are known. */
static ampc_status map_columns(Csv *c)
{
  for (int64_t i = 0; i < c->wanted.n; i++)
    if (c->place[i] >= c->mapped) c->mapped = c->place[i] + 1;
  c->column = malloc((size_t)(c->mapped + 1) * sizeof *c->column);
  if (!c->column) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->stream.path);
  for (int64_t i = 0; i < c->mapped; i++) c->column[i] = -1;
  for (int64_t i = 0; i < c->wanted.n; i++) {
    int64_t place = c->place[i];
    if (place < 0) continue;
    if (c->column[place] >= 0)
      return ampc_fail(AMPC_BAD_USAGE, "column %lld of csv is asked for twice", (long long)place);
    c->column[place] = (int32_t)i;
  }
  return AMPC_OK;
}

/* What was asked for is there. */
static ampc_status check_columns(Csv *c)
{
  int n;
  int64_t i = 0;
  for (const char *at = args_next(c->args, "column", NULL, &n); at;
       at = args_next(c->args, "column", at, &n), i++)
    if (c->place[i] < 0 || c->place[i] >= c->fields)
      return c->wanted.numbers
                 ? ampc_fail(AMPC_BAD_FILE,
                             "%s has no column %.*s: its first line has %lld fields, which count "
                             "from 0",
                             c->stream.path, n, at, (long long)c->fields)
                 : ampc_fail(AMPC_BAD_FILE,
                             "%s has no column `%.*s`: with `sep` \"%s\" its first line has %lld "
                             "fields: %s",
                             c->stream.path, n, at,
                             c->wanted.sep == '\t' ? "\\t" : (char[]){c->wanted.sep, 0},
                             (long long)c->fields, c->names);
  return AMPC_OK;
}

/* Spreadsheets begin UTF-8 with a mark. */
static ampc_status skip_mark(Csv *c)
{
  int byte;
  ampc_status status = peek_byte(c, &byte);
  if (!status && c->end >= 3 && memcmp(c->buffer, "\xef\xbb\xbf", 3) == 0) c->at = 3;
  return status;
}

static ampc_status read_lines(Csv *c)
{
  int64_t fields;
  int end = 0;
  char why[80];
  bool first = true;
  ampc_status status = skip_mark(c);
  if (!status && c->wanted.numbers) status = map_columns(c);
  while (!status && end >= 0) {
    bool header = first && c->wanted.header;
    status = make_room(c);
    if (!status) status = read_line(c, header, &fields, &end);
    if (status || !fields) continue;
    if (first) {
      c->fields = fields;
      status = check_columns(c);
      if (!status && !c->wanted.numbers) status = map_columns(c);
    } else if (fields != c->fields) {
      snprintf(why, sizeof why, "%lld fields, the first line has %lld", (long long)fields,
               (long long)c->fields);
      status = bad(c, why);
    }
    first = false;
    c->samples += !header;
  }
  if (!status && !c->samples)
    status = ampc_fail(AMPC_BAD_FILE, "%s is empty: it has no line of numbers", c->stream.path);
  return status;
}

/* ---- the row of the table ---- */

/* Reads the file, and with `p` its numbers. The caller frees *out, also after a failure. */
static ampc_status csv_read(const char *path, const char *args, const ampc_program *p, Csv **out)
{
  Csv *c = *out = calloc(1, sizeof *c);
  if (!c) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  c->args = args;
  c->program = p;
  c->line = 1;
  ampc_status status = read_arguments(args, &c->wanted);
  if (status) return status;
  c->place = malloc((size_t)c->wanted.n * sizeof *c->place);
  if (!c->place) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  int64_t i = 0;
  int n;
  for (const char *at = args_next(args, "column", NULL, &n); at;
       at = args_next(args, "column", at, &n), i++) {
    c->place[i] = -1;
    if (c->wanted.numbers) column_number(at, n, &c->place[i]); /* read_arguments has checked it */
  }
  status = stream_open(path, "a CSV file", &c->stream);
  if (status) return status;
  status = read_lines(c);
  stream_close(&c->stream);
  return status;
}

static void csv_free(Csv *c)
{
  if (c) {
    free(c->place);
    free(c->column);
    free(c->values);
  }
  free(c);
}

static ampc_status csv_probe(const char *path, const char *args, ampc_header *out)
{
  Csv *c;
  ampc_status status = csv_read(path, args, NULL, &c);
  if (!status) {
    *out = c->wanted.is;
    out->samples = c->samples;
  }
  csv_free(c);
  return status;
}

static void csv_close(ampc_reader *r)
{
  if (r) free(r->values);
  free(r);
}

static ampc_status csv_open(const ampc_program *p, const ampc_source *desc, const char *path,
                            uint64_t seed, ampc_reader **out, int64_t *out_samples)
{
  (void)seed;
  Csv *c;
  *out = NULL;
  ampc_status status = csv_read(path, desc->args, p, &c);
  ampc_reader *r = status ? NULL : calloc(1, sizeof *r);
  if (!status && !r) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  if (!status) {
    ampc_header is = c->wanted.is;
    is.samples = c->samples;
    status = header_check(&is, path, desc);
    *r = (ampc_reader){c->values, c->wanted.n * ampc_element_size(p, is.dtype)};
    *out_samples = c->samples;
    c->values = NULL;
  }
  csv_free(c);
  if (status) {
    csv_close(r);
  } else {
    *out = r;
  }
  return status;
}

static ampc_status csv_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to)
{
  (void)epoch;
  memcpy(to, r->values + first * r->sample_bytes, (size_t)(n * r->sample_bytes));
  return AMPC_OK;
}

const ampc_format ampc_format_csv = {
    .kind = AMPC_SOURCE_CSV,
    .name = "csv",
    .types = {AMPC_F32, AMPC_I32, AMPC_I64},
    .n_types = 3,
    .known = csv_known,
    .probe = csv_probe,
    .open = csv_open,
    .copy = csv_copy,
    .close = csv_close,
};
