/* Tokenizers: text to ids and back, with the ids of Hugging Face's `tokenizers` library for a
 * tokenizer.json, and those of sentencepiece for its .model.
 *
 * A function that can fail returns a status, and ampc_last_error() has the message. A Tokenizer
 * keeps buffers, so one thread at a time may use it; several Tokenizers are independent. */
#pragma once
#include "ampc_plan.h"

typedef struct Tokenizer Tokenizer;

/* Ids are below this number. A file with a higher one is refused. */
enum { TOKENIZER_MOST_IDS = 1 << 22 };

/* Reads a tokenizer from a file, or from its `n` bytes; `name` is for messages. A file that begins
 * with { is a tokenizer.json, any other one a .model. The caller calls tokenizer_close(*out). A
 * file with a part or a field that is not known is refused. `truncation` and `padding` of a
 * tokenizer.json are ignored: they are about batches, not about texts. */
ampc_status tokenizer_open(const char *path, Tokenizer **out);
ampc_status tokenizer_read(const char *name, const char *bytes, size_t n, Tokenizer **out);
void tokenizer_close(Tokenizer *t); /* NULL is fine */

/* Returns the highest id plus 1. Some ids below it may have no token. */
uint32_t tokenizer_size(const Tokenizer *t);
/* Returns the id of a token, as the file has it, or UINT32_MAX. */
uint32_t tokenizer_id(const Tokenizer *t, const char *token, size_t n);

typedef struct Ids { /* a list that grows; a zeroed one is empty. The caller frees `at` */
  uint32_t *at;
  size_t n, cap;
} Ids;
ampc_status tokenizer_append(Ids *ids, uint32_t id); /* fails only if memory runs out */

/* Appends the ids of a text of `n` bytes to `out`. `special`: add what the file adds around a text,
 * such as <s>. `plain`: a special token in the text (<|endoftext|>) is text like any other. Text
 * that is not UTF-8 is refused with AMPC_BAD_FILE, and the message has the place. It takes memory
 * of a few times the text, and about 50 bytes for each byte of the longest word. */
ampc_status tokenizer_encode(Tokenizer *t, const char *text, size_t n, bool special, bool plain,
                             Ids *out);
/* The same for a piece of a text. `how` says what is added, whether special tokens are text, and
 * that the text goes on from another piece. */
enum { ENCODE_before = 1, ENCODE_after = 2, ENCODE_plain = 4, ENCODE_continued = 8 };
ampc_status tokenizer_encode_piece(Tokenizer *t, const char *text, size_t n, unsigned how,
                                   Ids *out);

typedef struct TextPart {
  const char *at; /* UTF-8 */
  size_t n;
  bool plain;   /* special tokens that it contains, or shares with other parts, are text */
  bool placed;  /* `first` is wanted */
  size_t first; /* set: index in `out` of the first id that differs if the text ends before it */
} TextPart;
/* Encodes the text that the parts form together. Adds nothing around it. */
ampc_status tokenizer_encode_parts(Tokenizer *t, TextPart *parts, size_t n, Ids *out);
/* Calls `tell` after about each million ids of a text. */
void tokenizer_watch(Tokenizer *t, void (*tell)(void *about), void *about);
/* Sets *out to the text of `n` ids, NUL-terminated; the caller frees it. `special`: special tokens
 * are part of the text. Bytes that are not UTF-8 become U+FFFD. Refuses ids that have no token. */
ampc_status tokenizer_decode(Tokenizer *t, const uint32_t *ids, size_t n, bool special, char **out,
                             size_t *out_n);
/* Sets *out to the bytes that the token stands for, often not whole UTF-8; the caller frees it. */
ampc_status tokenizer_bytes(Tokenizer *t, uint32_t id, char **out, size_t *out_n);
