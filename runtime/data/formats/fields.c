/* Fields of CSV files. */
#include "fields.h"
#include <string.h>

ampc_status fields_bad(const Fields *f, const char *what)
{
  return ampc_fail(AMPC_BAD_FILE, "%s, line %lld: %s", f->stream.path, (long long)f->begun, what);
}

/* Reads the next byte; -1 at the end of the file. */
static ampc_status next_byte(Fields *f, int *out)
{
  *out = -1;
  if (f->at == f->end) {
    ampc_status status = stream_read(&f->stream, f->buffer, FIELDS_PIECE, &f->end);
    f->at = 0;
    if (status || !f->end) return status;
  }
  *out = (unsigned char)f->buffer[f->at++];
  return AMPC_OK;
}

static ampc_status peek_byte(Fields *f, int *out)
{
  ampc_status status = next_byte(f, out);
  if (*out >= 0) f->at--;
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
    f->line += byte == '\n';
    if (byte == '"') {
      status = peek_byte(f, &more);
      if (status || more != '"') return status;
      f->at++;
    }
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
    ampc_status status = next_byte(f, &byte);
    if (!status && byte == '\r') continue; /* a line may end in \r\n */
    if (status || byte < 0 || byte == '\n' || byte == f->sep) {
      f->line += byte == '\n';
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
  while (f->line <= lines && byte >= 0 && !status) {
    status = next_byte(f, &byte);
    f->line += byte == '\n';
  }
  return status;
}

/* Also skips the byte order mark with which spreadsheets begin UTF-8 files. */
ampc_status fields_open(const char *path, char sep, int64_t skip, Fields *out)
{
  int byte;
  out->sep = sep;
  out->line = 1;
  ampc_status status = stream_open(&(DataFile){path, "a CSV file", false}, &out->stream);
  if (status) return status;
  status = peek_byte(out, &byte);
  if (!status && out->end >= 3 && memcmp(out->buffer, "\xef\xbb\xbf", 3) == 0) out->at = 3;
  if (!status) status = skip_lines(out, skip);
  if (status) stream_close(&out->stream);
  return status;
}
