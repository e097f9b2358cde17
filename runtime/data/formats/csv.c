/* CSV files (fields.h): one line per sample, fields separated by `sep`. `column` (a line each) is a
 * name in the header line or, with `number`, an index from 0. `scalar`: one column, so a sample is
 * a number; otherwise it is a vector. `header` 0: the first line is a sample, too. `skip`: lines in
 * front of all that. `labels`: the column has names of classes, of which `class` (a line each)
 * lists all. `missing`: the number for a missing value. Opening reads the whole file. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "args.h"
#include "classes.h"
#include "header.h"
#include "runtime/base/convert.h"
#include "common/number.h"
#include "fields.h"
#include "window.h"

enum {
  MOST_COLUMNS = 4096, /* columns that a job can request */
  MOST_FIELDS = 1 << 20,
  SHOWN_NAMES = 200, /* bytes */
  NUMBER_TEXT = 64   /* bytes */
};

typedef struct Number { /* a field: `whole` for integers, else `real` */
  double real;
  int64_t whole;
} Number;

/* What the arguments request. */
typedef struct Wanted {
  ampc_header is;
  char sep;
  bool header, numbers, labels;
  int64_t n, skip;
  Window window;
  char missing[NUMBER_TEXT]; /* "": no argument `missing` */
  Number substitute;         /* its value */
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
  bool at_header, names_are_numbers; /* all fields of the header line are numbers */
  bool has_numbers;                  /* some are */
  Classes classes;
  bool lists;                  /* collects the classes of the file */
  char names[SHOWN_NAMES];     /* names in the header line, for messages */
  const ampc_program *program; /* NULL: samples are only counted */
  char *values;
  int64_t room; /* samples that fit into values */
} Csv;

struct ampc_reader {
  char *values;
  int64_t sample_bytes, step; /* step: bytes from one sample to the next */
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

/* Reads a decimal number, also `.5` and `5.`, or an infinity or nan. A number that is too large
 * becomes infinite. */
static bool read_real(const char *from, double *out)
{
  char *end;
  const char *word = from + (*from == '-' || *from == '+');
  bool named = strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0 ||
               strcasecmp(word, "nan") == 0;
  if (!named && from[strspn(from, "0123456789.eE+-")]) return false; /* strtod reads 0x10 */
  *out = strtod(from, &end);
  return end != from && !*end;
}

/* Reads a number of the column's type. */
static bool read_number(const char *from, ampc_dtype type, Number *out)
{
  if (type == AMPC_F32) return read_real(from, &out->real);
  if (*from == '+' && from[1] != '-') from++;
  bool good = ampc_read_whole(from, &out->whole);
  return good && (type == AMPC_I64 || out->whole == (int32_t)out->whole);
}

static ampc_status read_type(const char *args, ampc_dtype *out)
{
  char text[8] = "";
  args_text(args, "dtype", text, sizeof text);
  *out = strcmp(text, "f32") == 0 ? AMPC_F32 : strcmp(text, "i64") == 0 ? AMPC_I64 : AMPC_I32;
  if (*out != AMPC_I32 || strcmp(text, "i32") == 0) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "csv reads f32, i32 and i64, not %s", text);
}

/* Reads `missing`, a number that the column's type has, and `skip`. */
static ampc_status read_rest(const char *args, Wanted *w)
{
  w->skip = args_integer(args, "skip");
  if (w->labels && !args_integer(args, "scalar"))
    return ampc_fail(AMPC_BAD_USAGE,
                     "`classes` reads one column: csv(path, \"name\", classes=true)");
  args_text(args, "missing", w->missing, sizeof w->missing);
  if (!*w->missing) return AMPC_OK;
  bool good = read_number(w->missing, w->is.dtype, &w->substitute);
  if (w->labels) good = read_number(w->missing, AMPC_I64, &w->substitute);
  if (w->labels) w->substitute.real = (double)w->substitute.whole;
  if (good) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "`missing` of csv is %s, expected a %snumber", w->missing,
                   w->labels || w->is.dtype != AMPC_F32 ? "whole " : "");
}

static ampc_status read_arguments(const char *args, Wanted *w)
{
  char text[8];
  int n;
  *w = (Wanted){.sep = ',',
                .header = args_integer(args, "header") != 0,
                .numbers = args_integer(args, "number") != 0,
                .labels = args_integer(args, "labels") != 0};
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
  status = window_read(args, &w->window);
  if (!status) status = read_type(args, &w->is.dtype);
  return status ? status : read_rest(args, w);
}

/* ---- fields ---- */

/* Removes spaces around the field. */
static void trim(Fields *in)
{
  char *from = in->text, *end = from + in->size;
  while (*from == ' ') from++;
  while (end > from && end[-1] == ' ') end--;
  memmove(in->text, from, (size_t)(end - from));
  in->size = (int)(end - from);
  in->text[in->size] = 0;
}

/* Whether the field is the name `at` of n bytes; spaces around it do not count. */
static bool is_name(const Fields *in, const char *at, int n)
{
  for (; n > 0 && *at == ' '; at++) n--;
  while (n > 0 && at[n - 1] == ' ') n--;
  return n == in->size && memcmp(at, in->text, (size_t)n) == 0;
}

/* Assigns a field of the header line to the columns that are requested by its name. */
static ampc_status name_column(Csv *c, int64_t field)
{
  int n;
  int64_t i = 0;
  size_t used = strlen(c->names);
  snprintf(c->names + used, sizeof c->names - used, "%s%s", used ? ", " : "", c->in.text);
  for (const char *at = args_next(c->args, "column", NULL, &n); at;
       at = args_next(c->args, "column", at, &n), i++) {
    if (!is_name(&c->in, at, n)) continue;
    if (c->place[i] >= 0)
      return ampc_fail(AMPC_BAD_FILE, "%s has two columns `%s`: select one by its number",
                       c->in.stream.path, c->in.text);
    c->place[i] = field;
  }
  return AMPC_OK;
}

/* Whether a text stands for a missing value: those that pandas.read_csv recognizes. */
static bool is_missing(const char *text)
{
  static const char *const words[] = {"",         "#N/A", "#N/A N/A", "#NA",    "-1.#IND",
                                      "-1.#QNAN", "-NaN", "-nan",     "1.#IND", "1.#QNAN",
                                      "<NA>",     "N/A",  "NA",       "NULL",   "NaN",
                                      "None",     "n/a",  "nan",      "null"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(text, words[i]) == 0) return true;
  return false;
}

/* Fails with a message that begins with file, line and column of the field. */
static ampc_status bad_field(const Csv *c, int64_t column, const char *what, const char *cure)
{
  int n = 0;
  const char *at = args_next(c->args, "column", NULL, &n);
  for (int64_t i = 0; i < column && at; i++) at = args_next(c->args, "column", at, &n);
  const char *text = c->in.text;
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld, column %.*s: %s%.40s%s%s", c->in.stream.path,
                   (long long)c->in.begun, at ? n : 0, at ? at : "", *text ? "`" : "the field",
                   text, *text ? what : " is empty", cure);
}

/* Writes what may help if the first line may have a single field, with another separator in it;
 * else "". */
static const char *separator_help(const Csv *c, char to[40])
{
  const char *at = c->fields <= 1 ? strpbrk(c->in.text, ";\t|,") : NULL;
  *to = 0;
  if (at && *at != c->wanted.sep)
    snprintf(to, 40, "; is the separator `sep=\"%s\"`?", *at == '\t' ? "\\t" : (char[]){*at, 0});
  return to;
}

/* Reports a field that is no number of the column's type. */
static ampc_status no_number(const Csv *c, int64_t column)
{
  Number n;
  ampc_dtype type = c->wanted.is.dtype;
  const char *whole = type == AMPC_I32 ? "` is no whole number of 32 bits" : "` is no whole number";
  if (type != AMPC_F32 && read_number(c->in.text, AMPC_I64, &n))
    return bad_field(c, column, whole, "; dtype=i64 reads it");
  if (type != AMPC_F32 && read_number(c->in.text, AMPC_F32, &n))
    return bad_field(c, column, whole, "; dtype=f32 reads it");
  char help[40];
  separator_help(c, help);
  bool name = isalpha((unsigned char)*c->in.text) || *c->in.text & 0x80; /* UTF-8 */
  return bad_field(c, column, type == AMPC_F32 ? "` is no number" : whole,
                   *help  ? help
                   : name ? "; to read a column of names, call csv for it alone, with classes=true"
                          : "");
}

/* Reads the number of a class. If the classes are collected, adds the class. */
static ampc_status read_class(Csv *c, int64_t column, Number *out)
{
  const ClassName *class = classes_find(&c->classes, c->in.text);
  if (class) {
    *out = (Number){(double)class->number, class->number};
    return AMPC_OK;
  }
  if (c->lists) {
    ampc_status status = classes_add(&c->classes, c->in.text, -1);
    return status == AMPC_BAD_FILE ? fields_bad(&c->in, ampc_last_error()) : status;
  }
  char what[80];
  snprintf(what, sizeof what, "` is none of the %lld classes", (long long)c->classes.n);
  return bad_field(c, column, what, "; list it in `classes`, or compile again with classes=true");
}

/* Reads the field as a number, or as the number of its class. */
static ampc_status read_value(Csv *c, int64_t column, Number *out)
{
  const Wanted *w = &c->wanted;
  trim(&c->in);
  if (strlen(c->in.text) != (size_t)c->in.size)
    return bad_field(c, column, "` contains the byte 0", "");
  bool number = !w->labels && read_number(c->in.text, w->is.dtype, out) && !isnan(out->real);
  if (number) return AMPC_OK;
  bool named = w->labels && classes_find(&c->classes, c->in.text);
  if (!named && is_missing(c->in.text)) {
    *out = w->substitute;
    if (*w->missing) return AMPC_OK;
    return bad_field(c, column, "` is a missing value",
                     w->labels                 ? "; missing=-100 reads it as -100"
                     : w->is.dtype == AMPC_F32 ? "; missing=0.0 reads it as 0.0"
                                               : "; missing=-1 reads it as -1");
  }
  return w->labels ? read_class(c, column, out) : no_number(c, column);
}

/* Stores the field as a number in values. */
static ampc_status store_field(Csv *c, int64_t column)
{
  Number number = {0};
  int64_t i = c->samples * c->wanted.n + column;
  ampc_status status = read_value(c, column, &number);
  if (status || c->lists) return status;
  if (c->wanted.is.dtype == AMPC_I64) {
    ((int64_t *)(void *)c->values)[i] = number.whole;
  } else if (c->wanted.is.dtype == AMPC_I32) {
    ((int32_t *)(void *)c->values)[i] = (int32_t)number.whole;
  } else {
    number_store(AMPC_F32, c->program->real64, c->values, i, number.real);
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
  if (c->at_header) {
    Number n;
    trim(&c->in);
    bool number = read_number(c->in.text, AMPC_F32, &n);
    c->names_are_numbers = (!field || c->names_are_numbers) && number;
    c->has_numbers |= number;
    return c->wanted.numbers ? AMPC_OK : name_column(c, field);
  }
  if ((c->program || c->lists) && field < c->mapped && c->column[field] >= 0)
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

static const char skips[] = "; skip=1 leaves out one line at the beginning";

/* Reports a requested column that the first line lacks. */
static ampc_status no_column(const Csv *c, const char *at, int n)
{
  char help[40];
  const char *s = c->fields == 1 ? "" : "s", *cure = *separator_help(c, help) ? help : skips;
  if (c->wanted.numbers)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has no column %.*s: its first line has %lld field%s, which count from 0%s",
                     c->in.stream.path, n, at, (long long)c->fields, s, cure);
  return ampc_fail(
      AMPC_BAD_FILE,
      "%s has no column `%.*s`: with `sep` \"%s\" its first line has %lld field%s: "
      "%s%s%s",
      c->in.stream.path, n, at, c->wanted.sep == '\t' ? "\\t" : (char[]){c->wanted.sep, 0},
      (long long)c->fields, s, c->names, cure,
      c->has_numbers ? "; without a header line: header=false and column numbers" : "");
}

/* Checks that the requested columns exist. */
static ampc_status check_columns(Csv *c)
{
  int n;
  int64_t i = 0;
  for (const char *at = args_next(c->args, "column", NULL, &n); at;
       at = args_next(c->args, "column", at, &n), i++)
    if (c->place[i] < 0 || c->place[i] >= c->fields) return no_column(c, at, n);
  return AMPC_OK;
}

/* Checks that the line has as many fields as the first line. */
static ampc_status end_line(Csv *c, int64_t fields)
{
  char why[200];
  if (c->fields == fields) return AMPC_OK;
  if (c->fields) {
    snprintf(why, sizeof why, "%lld field%s, the first line has %lld%s", (long long)fields,
             fields == 1 ? "" : "s", (long long)c->fields, c->samples ? "" : skips);
    return fields_bad(&c->in, why);
  }
  c->fields = fields;
  ampc_status status = check_columns(c);
  if (!status && c->at_header && c->wanted.numbers && c->names_are_numbers)
    status = fields_bad(&c->in, "instead of names this line has numbers; header=false reads them");
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

/* Reads the file; if `p` is given, also the numbers in it, and if `lists`, the names of its
 * classes. If `path` is NULL, reads only the arguments. The caller frees *out, also after a
 * failure. */
static ampc_status csv_read(const char *path, const char *args, const ampc_program *p, bool lists,
                            Csv **out)
{
  Csv *c = *out = calloc(1, sizeof *c);
  if (!c) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  c->args = args;
  c->program = p;
  c->lists = lists;
  ampc_status status = read_arguments(args, &c->wanted);
  if (!status) status = classes_read(args, &c->classes);
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
  status = fields_open(path, c->wanted.sep, c->wanted.skip, &c->in);
  if (status) return status;
  status = read_lines(c);
  stream_close(&c->in.stream);
  return status;
}

/* Sets *out to the header of the samples: lines, or windows of lines. */
static ampc_status csv_header(const Csv *c, const char *path, ampc_header *out)
{
  *out = c->wanted.is;
  out->samples = c->samples;
  return window_apply(c->wanted.window, path, out);
}

static void csv_free(Csv *c)
{
  if (c) {
    free(c->place);
    free(c->column);
    free(c->values);
    classes_free(&c->classes);
  }
  free(c);
}

static ampc_status csv_probe(const ampc_format *f, const char *path, const char *args,
                             ampc_header *out)
{
  (void)f;
  Csv *c;
  ampc_status status = csv_read(path, args, NULL, false, &c);
  if (!status) status = csv_header(c, path, out);
  csv_free(c);
  return status;
}

static ampc_status csv_classes(const char *path, const char *args, char **out)
{
  Csv *c = NULL;
  *out = NULL;
  if (!args_integer(args, "labels") || args_integer(args, "listed")) return AMPC_OK;
  ampc_status status = csv_read(path, args, NULL, true, &c);
  if (!status && !(*out = classes_lines(&c->classes)))
    status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
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
  ampc_status status = csv_read(o->path, o->desc->args, o->program, false, &c);
  ampc_reader *r = status ? NULL : calloc(1, sizeof *r);
  if (!status && !r) status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", o->path);
  if (!status) {
    ampc_header is;
    const Window w = c->wanted.window;
    int64_t line = c->wanted.n * ampc_element_size(o->program, c->wanted.is.dtype);
    status = csv_header(c, o->path, &is);
    if (!status) status = header_check(&is, o->path, o->desc);
    *r = (ampc_reader){c->values, w.rows ? w.rows * line : line, w.rows ? w.stride * line : line};
    *out_samples = is.samples;
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
  for (int64_t i = 0; i < n; i++)
    memcpy((char *)to + i * r->sample_bytes, r->values + (first + i) * r->step,
           (size_t)r->sample_bytes);
  return AMPC_OK;
}

const ampc_format ampc_format_csv = {
    .kind = AMPC_SOURCE_CSV,
    .name = "csv",
    .types = {AMPC_F32, AMPC_I32, AMPC_I64},
    .n_types = 3,
    .known = true,
    .probe = csv_probe,
    .classes = csv_classes,
    .open = csv_open,
    .copy = csv_copy,
    .close = csv_close,
};
