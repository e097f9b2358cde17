/* Fields of CSV files. */
#include "fields.h"
#include <string.h>

ampc_status fields_bad(const Fields *f, const char *what)
{
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld: %s", f->stream.path, (long long)f->begun, what);
}

/* Looks at the next byte; -1 at the end of the file. */
static ampc_status peek_byte(Fields *f, int *out)
{
  *out = -1;
  if (f->at == f->end) {
    ampc_status status = stream_read(&f->stream, f->buffer, FIELDS_PIECE, &f->end);
    f->at = 0;
    if (status || !f->end) return status;
  }
  *out = (unsigned char)f->buffer[f->at];
  return AMPC_OK;
}

static ampc_status next_byte(Fields *f, int *out)
{
  ampc_status status = peek_byte(f, out);
  f->at += *out >= 0;
  return status;
}

/* Reads the next byte outside of quotes. A line ends in \n, \r\n or \r; for each of these *out is
 * one \n. */
static ampc_status next_unquoted(Fields *f, int *out)
{
  int more = -1;
  ampc_status status = next_byte(f, out);
  if (!status && *out == '\r') {
    status = peek_byte(f, &more);
    f->at += more == '\n';
    *out = '\n';
  }
  f->line += *out == '\n';
  return status;
}

static ampc_status add_byte(Fields *f, int byte)
{
  if (f->size == MOST_FIELD) return fields_bad(f, "a field of more than 4 MiB");
  f->text[f->size++] = (char)byte;
  return AMPC_OK;
}

/* Reads from after the opening quote to the closing one. */
static ampc_status read_quoted(Fields *f)
{
  int byte, more;
  f->quoted = true;
  for (;;) {
    ampc_status status = next_byte(f, &byte);
    if (status) return status;
    if (byte < 0) return fields_bad(f, "a quote is not closed");
    status = peek_byte(f, &more);
    f->line += byte == '\n' || (byte == '\r' && more != '\n');
    if (status || (byte == '"' && more != '"')) return status;
    f->at += byte == '"';
    status = add_byte(f, byte);
    if (status) return status;
  }
}

/* Reads a field up to its end: *out_end is `sep`, a newline, or -1 for the end of the file. */
static ampc_status read_field(Fields *f, int *out_end)
{
  f->size = 0;
  f->quoted = false;
  for (;;) {
    int byte;
    ampc_status status = next_unquoted(f, &byte);
    if (status || byte < 0 || byte == '\n' || byte == f->sep) {
      f->text[f->size] = 0;
      *out_end = byte;
      return status;
    }
    if (f->quoted) return fields_bad(f, "characters follow a closing quote");
    status = byte == '"' && f->size == 0 ? read_quoted(f) : add_byte(f, byte);
    if (status) return status;
  }
}

ampc_status fields_line(Fields *f, FieldTake *take, void *context, int64_t *out_fields,
                        bool *out_ended)
{
  int end = -1;
  ampc_status status;
  *out_fields = 0;
  f->begun = f->line;
  do {
    status = read_field(f, &end);
    *out_ended = end < 0;
    bool nothing = !*out_fields && !f->size && !f->quoted && end != f->sep;
    if (!status && nothing) return AMPC_OK;
    if (!status) status = take(context, *out_fields);
    ++*out_fields;
  } while (!status && end == f->sep);
  return status;
}

/* Skips whole lines, whatever they contain: a quote in a comment quotes nothing. */
static ampc_status skip_lines(Fields *f, int64_t lines)
{
  int byte = 0;
  ampc_status status = AMPC_OK;
  while (f->line <= lines && byte >= 0 && !status) status = next_unquoted(f, &byte);
  return status;
}

/* Skips the byte order mark with which spreadsheets begin UTF-8 files. A program may have put lines
 * in front of it. */
static ampc_status skip_mark(Fields *f)
{
  int64_t got, left = f->end - f->at;
  if (left < 3) {
    memmove(f->buffer, f->buffer + f->at, (size_t)left);
    ampc_status status = stream_read(&f->stream, f->buffer + left, FIELDS_PIECE - left, &got);
    if (status) return status;
    f->at = 0;
    f->end = left + got;
  }
  if (f->end - f->at >= 3 && memcmp(f->buffer + f->at, "\xef\xbb\xbf", 3) == 0) f->at += 3;
  return AMPC_OK;
}

ampc_status fields_open(const char *path, char sep, int64_t skip, Fields *out)
{
  out->sep = sep;
  out->line = 1;
  ampc_status status = stream_open(&(DataFile){path, "a CSV file", false}, &out->stream);
  if (status) return status;
  status = skip_lines(out, skip);
  if (!status) status = skip_mark(out);
  if (status) stream_close(&out->stream);
  return status;
}
