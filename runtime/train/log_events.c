/* TensorBoard's event files, as far as scalars need them.
 *
 * A file is a sequence of TFRecord frames: length (8 bytes), its checksum, the bytes, their
 * checksum. All numbers are little-endian. A checksum is a CRC-32C, rotated and offset, because a
 * CRC over data that contain CRCs is weak. The bytes are a protobuf Event: wall_time (1, double),
 * step (2), file_version (3), summary (5) with value (1) of tag (1) and simple_value (2, float),
 * session_log (7) with status (1). Formats: tensorflow/core/util/event.proto,
 * core/framework/summary.proto, core/lib/io/record_writer.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "log.h"

/* ---- checksums ---- */

/* Computes CRC-32C: polynomial 0x1edc6f41, as in iSCSI. */
static uint32_t crc32c(const void *bytes, size_t n)
{
  enum { REFLECTED = (int)0x82f63b78u };
  const unsigned char *p = bytes;
  uint32_t crc = ~0u;
  for (size_t i = 0; i < n; i++) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? (uint32_t)REFLECTED : 0);
  }
  return ~crc;
}

/* Returns the masked checksum that TFRecord expects. */
static uint32_t masked(const void *bytes, size_t n)
{
  uint32_t crc = crc32c(bytes, n);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- protobuf ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

enum { EVENT_ROOM = 128 }; /* bytes of an event without its tag, at most */

typedef struct Buffer {
  unsigned char *at; /* large enough for all that is written */
  size_t n;
} Buffer;

/* Writes seven bits per byte, the lowest first. The top bit says that more bytes follow. */
static void put_varint(Buffer *b, uint64_t v)
{
  for (; v >= 0x80; v >>= 7) b->at[b->n++] = (unsigned char)(v | 0x80);
  b->at[b->n++] = (unsigned char)v;
}

static void put_fixed(Buffer *b, uint64_t v, int bytes)
{
  for (int i = 0; i < bytes; i++) b->at[b->n++] = (unsigned char)(v >> 8 * i);
}

static void put_key(Buffer *b, unsigned field, unsigned wire)
{
  put_varint(b, field << 3 | wire);
}

static void put_bytes(Buffer *b, unsigned field, const void *bytes, size_t n)
{
  put_key(b, field, BYTES);
  put_varint(b, n);
  memcpy(b->at + b->n, bytes, n);
  b->n += n;
}

static void begin_event(Buffer *b, int64_t step)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double wall = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  uint64_t bits;
  memcpy(&bits, &wall, sizeof bits);
  b->n = 0;
  put_key(b, 1, FIXED64);
  put_fixed(b, bits, 8);
  if (!step) return; /* an absent field means 0 */
  put_key(b, 2, VARINT);
  put_varint(b, (uint64_t)step);
}

/* ---- the file ---- */

/* Writes each frame with one call, so that a reader finds whole frames. Only the last frame of a
 * killed process may be incomplete. */
static bool write_frame(Events *e, const Buffer *event)
{
  Buffer frame = {malloc(event->n + 16), 0};
  if (!frame.at) return false;
  put_fixed(&frame, event->n, 8);
  put_fixed(&frame, masked(frame.at, 8), 4);
  memcpy(frame.at + frame.n, event->at, event->n);
  frame.n += event->n;
  put_fixed(&frame, masked(event->at, event->n), 4);
  bool good = true;
  for (size_t done = 0; good && done < frame.n;) {
    ssize_t n = write(e->fd, frame.at + done, frame.n - done);
    good = n >= 0 || errno == EINTR;
    if (n > 0) done += (size_t)n;
  }
  free(frame.at);
  return good;
}

static bool begin_file(Events *e, int64_t step)
{
  static const char version[] = "brain.Event:2";
  unsigned char memory[2][EVENT_ROOM];
  Buffer b = {memory[0], 0}, session = {memory[1], 0};
  begin_event(&b, 0);
  put_bytes(&b, 3, version, sizeof version - 1);
  bool good = write_frame(e, &b);
  if (!good || !step) return good;
  put_key(&session, 1, VARINT);
  put_varint(&session, 1); /* START: readers discard events of this step and later ones */
  begin_event(&b, step + 1);
  put_bytes(&b, 7, session.at, session.n);
  return write_frame(e, &b);
}

bool events_open(Events *e, const char *folder, int64_t step)
{
  char host[65] = "localhost", path[PATH_MAX];
  gethostname(host, sizeof host - 1);
  for (char *c = host; *c; c++)
    if (*c == '/') *c = '-';
  int n = snprintf(path, sizeof path, "%s/events.out.tfevents.%lld.%s.%d", folder,
                   (long long)time(NULL), host, (int)getpid());
  errno = n < PATH_MAX ? 0 : ENAMETOOLONG;
  e->fd = errno ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return e->fd >= 0 && begin_file(e, step);
}

bool events_scalar(Events *e, int64_t step, const char *tag, double value)
{
  size_t n = strlen(tag), room = n + EVENT_ROOM;
  unsigned char *memory = malloc(3 * room);
  if (!memory) return false;
  Buffer b = {memory, 0}, summary = {memory + room, 0}, item = {memory + 2 * room, 0};
  float v = (float)value;
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  put_bytes(&item, 1, tag, n);
  put_key(&item, 2, FIXED32);
  put_fixed(&item, bits, 4);
  put_bytes(&summary, 1, item.at, item.n);
  begin_event(&b, step);
  put_bytes(&b, 5, summary.at, summary.n);
  bool good = write_frame(e, &b);
  free(memory);
  return good;
}

bool events_close(Events *e)
{
  int fd = e->fd;
  e->fd = -1;
  return fd < 0 || close(fd) == 0;
}
