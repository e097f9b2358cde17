/* Reads and writes messages. The other side may send anything: a wrong length, no length, no end.
 */
#include "message.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- bytes ---- */

static bool can_read(const Stream *s, int milliseconds)
{
  struct pollfd p = {.fd = s->in, .events = POLLIN};
  return poll(&p, 1, milliseconds) > 0 && p.revents & POLLIN;
}

/* Makes room for `size` unused bytes in a row. */
static bool make_room(Stream *s, size_t size)
{
  if (s->start) {
    if (s->n > s->start) memmove(s->at, s->at + s->start, s->n - s->start);
    s->n -= s->start;
    s->start = 0;
  }
  if (size <= s->cap) return true;
  char *at = realloc(s->at, size);
  if (!at) return false;
  s->at = at;
  s->cap = size;
  return true;
}

/* Reads once, with room for at least `size` unused bytes. */
static Received read_more(Stream *s, size_t size)
{
  if (!make_room(s, size)) return RECEIVED_end;
  ssize_t n = read(s->in, s->at + s->n, s->cap - s->n);
  if (n < 0 && (errno == EINTR || (errno == EAGAIN && can_read(s, -1)))) return RECEIVED_message;
  if (n <= 0) return RECEIVED_end;
  s->n += (size_t)n;
  return RECEIVED_message;
}

/* ---- headers ---- */

static const char length_header[] = "Content-Length:";

/* Returns the end of the headers in the unused bytes, behind their empty line; 0: not there yet. */
static size_t headers_end(const Stream *s)
{
  for (size_t i = s->start; i + 4 <= s->n; i++)
    if (memcmp(s->at + i, "\r\n\r\n", 4) == 0) return i + 4;
  return 0;
}

/* Reads the length from the headers in [from, to). Returns -1 if there is none, or if it is no
 * number. The last one counts: behind headers without a length, the body of their message comes
 * first. */
static int64_t content_length(const char *from, const char *to)
{
  const size_t n = sizeof length_header - 1;
  const char *p = NULL;
  int64_t length = 0;
  for (; from + n < to; from++)
    if (strncasecmp(from, length_header, n) == 0) p = from + n;
  if (!p) return -1;
  while (*p == ' ') p++;
  if (*p == '\r') return -1;
  for (; *p >= '0' && *p <= '9' && length < INT64_MAX / 100; p++) length = length * 10 + *p - '0';
  return *p == '\r' ? length : -1;
}

/* Waits for complete headers, and sets *length. Bytes that are too many for headers are dropped. */
static Received read_headers(Stream *s, int64_t *length)
{
  size_t end;
  while (!(end = headers_end(s))) {
    Received r = RECEIVED_bad;
    if (s->n - s->start < MAX_HEADERS)
      r = read_more(s, MAX_HEADERS);
    else
      s->start = s->n;
    if (r != RECEIVED_message) return r;
  }
  *length = content_length(s->at + s->start, s->at + end);
  s->start = end;
  return *length < 0 ? RECEIVED_bad : RECEIVED_message;
}

/* ---- messages ---- */

static Received skip_body(Stream *s, int64_t length)
{
  for (;;) {
    int64_t here = (int64_t)(s->n - s->start), used = here < length ? here : length;
    s->start += (size_t)used;
    length -= used;
    if (!length) return RECEIVED_large;
    Received r = read_more(s, MAX_HEADERS);
    if (r != RECEIVED_message) return r;
  }
}

Received message_read(Stream *s, const char **body, size_t *size)
{
  int64_t length;
  Received r = read_headers(s, &length);
  if (r != RECEIVED_message) return r;
  if (length > MAX_MESSAGE) return skip_body(s, length);
  while (s->n - s->start < (size_t)length) {
    r = read_more(s, (size_t)length);
    if (r != RECEIVED_message) return r;
  }
  *body = s->at + s->start;
  *size = (size_t)length;
  s->start += (size_t)length;
  return RECEIVED_message;
}

json_t *message_parse(const char *body, size_t size)
{
  return json_loadb(body, size, JSON_ALLOW_NUL, NULL);
}

bool message_waits(const Stream *s, int milliseconds)
{
  return s->n > s->start || can_read(s, milliseconds);
}

bool message_announced(Stream *s, const char *text)
{
  enum { PART = 1 << 16 };
  while (s->n - s->start < MAX_MESSAGE && can_read(s, 0))
    if (read_more(s, s->n - s->start + PART) != RECEIVED_message) break;
  return s->n > s->start && memmem(s->at + s->start, s->n - s->start, text, strlen(text));
}

static bool write_all(int fd, const char *at, size_t size)
{
  while (size) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

bool message_write(Stream *s, const json_t *message)
{
  char *text = json_dumps(message, JSON_COMPACT), head[64];
  if (!text) return false;
  size_t size = strlen(text);
  snprintf(head, sizeof head, "%s %zu\r\n\r\n", length_header, size);
  bool good = write_all(s->out, head, strlen(head)) && write_all(s->out, text, size);
  free(text);
  return good;
}
