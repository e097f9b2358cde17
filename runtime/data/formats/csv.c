/* CSV files (fields.h): one line per sample, fields separated by `sep`, all numbers. `column` (a
 * line each) is a name in the header line or, with `number`, an index from 0. `scalar`: one column,
 * so a sample is a number; otherwise it is a vector. `header` 0: the first line is a sample, too.
 * Opening reads the whole file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "args.h"
#include "header.h"
#include "runtime/base/convert.h"
#include "runtime/plan/number.h"
#include "fields.h"

enum {
  MOST_COLUMNS = 4096, /* columns that a job can request */
  MOST_FIELDS = 1 << 20,
  SHOWN_NAMES = 200 /* bytes */
};

/* What the arguments request. */
typedef struct Wanted {
  ampc_header is;
  char sep;
  bool header, numbers;
  int64_t n;
} Wanted;

typedef struct Csv {
  Fields in;
  const char *args;
  Wanted wanted;
  int64_t *place;  /* for each requested column, its field; -1: not found yet */
  int32_t *column; /* for each field, its requested column; -1: not requested */
  int64_t mapped;  /* number of entries of `column`: up to the last requested field */
  int64_t fields;  /* fields in the first line; each line has as many */
  int64_t samples;
  bool at_header;
  char names[SHOWN_NAMES];     /* names in the header line, for messages */
  const ampc_program *program; /* NULL: samples are only counted */
  char *values;
  int64_t room; /* samples that fit into values */
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

static ampc_status check_numbers(const char *args)
{
  int n;
  int64_t number;
  for (const char *at = args_next(args, "column", NULL, &n); at;
       at = args_next(args, "column", at, &n))
    if (!column_number(at, n, &number))
      return ampc_fail(AMPC_BAD_USAGE, "csv has no column %.*s; they count from 0", n, at);
  return AMPC_OK;
}

static ampc_status read_type(const char *args, ampc_dtype *out)
{
  char text[8] = "";
  args_text(args, "dtype", text, sizeof text);
  *out = strcmp(text, "f32") == 0 ? AMPC_F32 : strcmp(text, "i64") == 0 ? AMPC_I64 : AMPC_I32;
  if (*out != AMPC_I32 || strcmp(text, "i32") == 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "csv reads f32, i32 and i64, not %s", text);
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
    return ampc_fail(AMPC_BAD_USAGE,
                     "without a header line, columns of csv are numbers that count from 0");
  ampc_status status = w->numbers ? check_numbers(args) : AMPC_OK;
  if (status) return status;
  if (!args_text(args, "sep", text, sizeof text) || strlen(text) != 1 || strchr("\"\r", text[0]))
    return ampc_fail(AMPC_BAD_USAGE, "`sep` of csv is one character, such as \",\" or \"\\t\"");
  w->sep = text[0];
  if (!args_integer(args, "scalar")) {
    w->is.rank = 1;
    w->is.dim[0] = w->n;
  }
  return read_type(args, &w->is.dtype);
}

/* ---- fields ---- */

/* Assigns a field of the header line to the columns that are requested by its name. */
static ampc_status name_column(Csv *c, int64_t field)
{
  int n;
  int64_t i = 0;
  size_t used = strlen(c->names);
  snprintf(c->names + used, sizeof c->names - used, "%s%s", used ? ", " : "", c->in.text);
  for (const char *at = args_next(c->args, "column", NULL, &n); at;
       at = args_next(c->args, "column", at, &n), i++) {
    if (n != c->in.size || memcmp(at, c->in.text, (size_t)n) != 0) continue;
    if (c->place[i] >= 0)
      return ampc_fail(AMPC_BAD_FILE, "%s has two columns `%s`: select one by its number",
                       c->in.stream.path, c->in.text);
    c->place[i] = field;
  }
  return AMPC_OK;
}

static bool read_number(Csv *c, double *real, int64_t *whole)
{
  char *from = c->in.text, *end = from + c->in.size;
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

/* Reports that a field, of requested column number `column`, is not a number to store. */
static ampc_status no_number(const Csv *c, int64_t column)
{
  int n = 0;
  const char *at = args_next(c->args, "column", NULL, &n);
  for (int64_t i = 0; i < column && at; i++) at = args_next(c->args, "column", at, &n);
  if (!c->in.size)
    return ampc_fail(AMPC_BAD_FILE, "%s, line %lld, column %.*s: the field is empty%s",
                     c->in.stream.path, (long long)c->in.begun, at ? n : 0, at,
                     c->wanted.is.dtype == AMPC_F32 ? "; write `nan` for a missing value" : "");
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld, column %.*s: `%.40s` is no %s", c->in.stream.path,
                   (long long)c->in.begun, at ? n : 0, at, c->in.text,
                   c->wanted.is.dtype == AMPC_F32   ? "number"
                   : c->wanted.is.dtype == AMPC_I32 ? "whole number of 32 bits; dtype=f32 reads it"
                                                    : "whole number; dtype=f32 reads it");
}

/* Stores the field as a number in values. */
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
  if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->in.stream.path);
  c->values = more;
  c->room = room;
  return AMPC_OK;
}

/* Processes one field of the header line or of a sample. */
static ampc_status take_field(void *context, int64_t field)
{
  Csv *c = context;
  ampc_status status = AMPC_OK;
  if (c->at_header) return c->wanted.numbers ? AMPC_OK : name_column(c, field);
  if (c->program && field < c->mapped && c->column[field] >= 0)
    status = store_field(c, c->column[field]);
  return status;
}

/* Fills c->column; call it when the fields of all columns are known. */
static ampc_status map_columns(Csv *c)
{
  for (int64_t i = 0; i < c->wanted.n; i++)
    if (c->place[i] >= c->mapped) c->mapped = c->place[i] + 1;
  c->column = malloc((size_t)(c->mapped + 1) * sizeof *c->column);
  if (!c->column) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", c->in.stream.path);
  for (int64_t i = 0; i < c->mapped; i++) c->column[i] = -1;
  for (int64_t i = 0; i < c->wanted.n; i++) {
    int64_t place = c->place[i];
    if (place < 0) continue;
    if (c->column[place] >= 0)
      return ampc_fail(AMPC_BAD_USAGE, "csv lists column %lld twice", (long long)place);
    c->column[place] = (int32_t)i;
  }
  return AMPC_OK;
}

/* Checks that the requested columns exist. */
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
                             c->in.stream.path, n, at, (long long)c->fields)
                 : ampc_fail(AMPC_BAD_FILE,
                             "%s has no column `%.*s`: with `sep` \"%s\" its first line has %lld "
                             "fields: %s",
                             c->in.stream.path, n, at,
                             c->wanted.sep == '\t' ? "\\t" : (char[]){c->wanted.sep, 0},
                             (long long)c->fields, c->names);
  return AMPC_OK;
}

/* Checks that the line has as many fields as the first line. */
static ampc_status end_line(Csv *c, int64_t fields)
{
  char why[80];
  if (c->fields == fields) return AMPC_OK;
  if (c->fields) {
    snprintf(why, sizeof why, "%lld fields, the first line has %lld", (long long)fields,
             (long long)c->fields);
    return fields_bad(&c->in, why);
  }
  c->fields = fields;
  ampc_status status = check_columns(c);
  return status || c->wanted.numbers ? status : map_columns(c);
}

static ampc_status read_lines(Csv *c)
{
  int64_t fields;
  bool ended = false;
  ampc_status status = c->wanted.numbers ? map_columns(c) : AMPC_OK;
  while (!status && !ended) {
    c->at_header = !c->fields && c->wanted.header;
    status = make_room(c);
    if (!status) status = fields_line(&c->in, take_field, c, &fields, &ended);
    if (status || !fields) continue;
    status = end_line(c, fields);
    c->samples += !c->at_header;
  }
  if (!status && !c->samples)
    status = ampc_fail(AMPC_BAD_FILE, "%s is empty: it has no line of numbers", c->in.stream.path);
  return status;
}

/* ---- the row of the table ---- */

/* Reads the file; if `p` is given, also the numbers in it. If `path` is NULL, reads only the
 * arguments. The caller frees *out, also after a failure. */
static ampc_status csv_read(const char *path, const char *args, const ampc_program *p, Csv **out)
{
  Csv *c = *out = calloc(1, sizeof *c);
  if (!c) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  c->args = args;
  c->program = p;
  ampc_status status = read_arguments(args, &c->wanted);
  if (status || !path) return status;
  c->place = malloc((size_t)c->wanted.n * sizeof *c->place);
  if (!c->place) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  int64_t i = 0;
  int n;
  for (const char *at = args_next(args, "column", NULL, &n); at;
       at = args_next(args, "column", at, &n), i++) {
    c->place[i] = -1;
    if (c->wanted.numbers) column_number(at, n, &c->place[i]); /* read_arguments has checked it */
  }
  status = fields_open(path, c->wanted.sep, &c->in);
  if (status) return status;
  status = read_lines(c);
  stream_close(&c->in.stream);
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

static ampc_status csv_probe(const ampc_format *f, const char *path, const char *args,
                             ampc_header *out)
{
  (void)f;
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

static ampc_status csv_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  Csv *c;
  *out = NULL;
  ampc_status status = csv_read(o->path, o->desc->args, o->program, &c);
  ampc_reader *r = status ? NULL : calloc(1, sizeof *r);
  if (!status && !r) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", o->path);
  if (!status) {
    ampc_header is = c->wanted.is;
    is.samples = c->samples;
    status = header_check(&is, o->path, o->desc);
    *r = (ampc_reader){c->values, c->wanted.n * ampc_element_size(o->program, is.dtype)};
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
    .known = true,
    .probe = csv_probe,
    .open = csv_open,
    .copy = csv_copy,
    .close = csv_close,
};
