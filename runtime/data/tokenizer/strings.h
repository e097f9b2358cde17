/* Memory and characters of tokenizers: texts that grow, maps, tries. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_ID UINT32_MAX /* no id, no node, no rank */

typedef struct Span { /* bytes that somebody else owns */
  const char *at;
  size_t n;
} Span;

typedef struct View { /* a piece of text */
  const char *at;
  size_t n;
  bool begins; /* its first character is the first one of the whole text */
} View;

typedef struct Str { /* text that grows; a zeroed one is empty */
  char *at;
  size_t n, cap;
  bool begins; /* as in View */
  bool failed; /* out of memory, or longer than `most`: it is not complete */
  size_t most; /* 0: any */
} Str;
void str_add(Str *s, const char *at, size_t n);
void str_span(Str *s, Span span);
void str_clear(Str *s);
View str_view(const Str *s);
void str_swap(Str *a, Str *b);
/* Returns a text of at least `n` elements of `size` bytes; NULL: out of memory, `*at` stays. */
bool grow(void *at, size_t *cap, size_t n, size_t size);

typedef struct Texts { /* a list of texts */
  Str all;
  size_t *end; /* where each one ends in `all` */
  size_t n, cap;
} Texts;
void texts_end(Texts *t); /* ends the text that was added to `all` */
Span texts_at(const Texts *t, size_t i);

typedef struct Map { /* numbers to numbers */
  struct MapEntry *at;
  size_t n, cap;
} Map;
bool map_put(Map *m, uint64_t key, uint32_t value); /* false: out of memory */
uint32_t map_get(const Map *m, uint64_t key);       /* NO_ID: it has none */

typedef struct Trie { /* texts to ids */
  Map edges;
  uint32_t *id; /* of a node; node 0 is the root */
  size_t n, cap;
} Trie;
bool trie_add(Trie *t, Span text, uint32_t id);              /* false: out of memory */
uint32_t trie_step(const Trie *t, uint32_t node, char byte); /* NO_ID: there is no such node */
uint32_t trie_find(const Trie *t, Span text);
/* Finds the longest text of the trie that `at` begins with. Returns its bytes, or 0. */
size_t trie_longest(const Trie *t, const char *at, size_t n, uint32_t *id);
void trie_free(Trie *t);

/* ---- characters ---- */
/* Returns the bytes of the character that begins the `n` > 0 bytes, or, if they are not UTF-8,
 * minus the bytes that one U+FFFD replaces. */
int utf8_step(const char *at, size_t n);
int32_t char_at(const char *at, size_t n, size_t *size); /* of valid text */
typedef bool CharTest(int32_t c);
CharTest is_blank, is_punctuation, is_numeric, is_mark, is_nonspacing, is_removed;
void lower_add(Str *out, int32_t c);
enum { FORM_c, FORM_d, FORM_kc, FORM_kd };
void form_add(Str *out, const char *at, size_t n, int form);
/* Returns the bytes of the first grapheme. */
size_t grapheme_size(const char *at, size_t n);

/* ---- sentencepiece's table of replacements ---- */
typedef struct Charsmap {
  char *bytes; /* owned */
  const char *units, *text;
  size_t n_units, n_text;
} Charsmap;
bool charsmap_read(Charsmap *m, char *bytes, size_t n); /* takes `bytes`; false: damaged */
/* Finds what replaces the beginning of `at`: the longest beginning in the table, or the shortest.
 * Returns its bytes; 0: there is none. */
size_t charsmap_find(const Charsmap *m, const char *at, size_t n, bool longest, Span *to);
