/* Messages of the protocol on a stream: headers, an empty line, and JSON of Content-Length bytes.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer messages are refused: a source has at most 16 MiB, which JSON may escape. */
enum { MAX_MESSAGE = 64 << 20 /* bytes */, MAX_HEADERS = 4096 /* bytes */ };

/* A stream of messages in both directions. Zeroed except for the descriptors, it is ready; free
 * `at` at the end. */
typedef struct Stream {
  int in, out;
  char *at; /* bytes that were read: [start, n) are not used yet */
  size_t start, n, cap;
} Stream;

typedef enum Received {
  RECEIVED_message,
  RECEIVED_end,   /* the stream has ended, perhaps within a message, or cannot be read */
  RECEIVED_bad,   /* no headers, or without a valid Content-Length; the next read looks for the next
                     ones */
  RECEIVED_large, /* a message of more than MAX_MESSAGE bytes, which was skipped */
} Received;

/* Waits for a message. Sets *body to its *size bytes, which stay valid until the next call that
 * reads. */
Received message_read(Stream *s, const char **body, size_t *size);
/* Parses a body. Texts may contain NUL. NULL: it is no JSON. */
json_t *message_parse(const char *body, size_t size);
/* Waits until a message has begun to arrive; returns false if none does within the milliseconds. */
bool message_waits(const Stream *s, int milliseconds);
/* True if the text is among the bytes that have arrived and are not used yet. */
bool message_announced(Stream *s, const char *text);
/* Writes a message. Returns false if the other side has gone or memory runs out. */
bool message_write(Stream *s, const json_t *message);
