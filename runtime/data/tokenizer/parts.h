/* What a tokenizer consists of. A text passes through these steps:
 *
 *   added tokens      cut out, before and after normalization          added.c
 *   normalizers       one text to another                              normalize.c
 *   pre-tokenizers    cut a text into words                            split.c
 *   model             ids of a word                                    bpe.c unigram.c wordpiece.c
 *   post-processors   ids before and after the text                    json.c
 *   decoders          tokens back to text                              decode.c
 *
 * Each kind of part is a row of a table: its name in the file, its fields, its function. Sequences
 * are resolved when a file is read, so a tokenizer has plain lists of parts. */
#pragma once
#include <jansson.h>
#include "strings.h"
#include "tokenizer.h"

typedef struct Part Part;
typedef struct Pattern Pattern;

typedef void Normalize(const Part *p, const Str *in, Str *out); /* `out` is empty */
/* Cuts `text`, and passes the words on by split_on(t, stage + 1, word). */
typedef ampc_status Split(Tokenizer *t, size_t stage, View text);
typedef void Decode(const Part *p, const Texts *in, Texts *out); /* `out` is empty */
/* `path`: of the part in the file, for messages */
typedef ampc_status Finish(Tokenizer *t, const char *path, Part *p);
typedef ampc_status Encode(Tokenizer *t, View word); /* appends to t->out */

typedef enum FieldKind {
  FIELD_flag,    /* bool; `word` is the value of a missing field */
  FIELD_choice,  /* int: true 1, false 0, null or missing -1 */
  FIELD_text,    /* Span; null or missing if it is optional: at is NULL */
  FIELD_char,    /* Span: one character */
  FIELD_count,   /* int64_t, 0 or more */
  FIELD_word,    /* int: index in words */
  FIELD_pattern, /* Pattern *: {"String": ..} or {"Regex": ..} */
  FIELD_map,     /* Charsmap: in base64 */
  FIELD_json,    /* json_t * */
  FIELD_ignored  /* has no effect on ids and text */
} FieldKind;

typedef struct PartField {
  const char *name;
  FieldKind kind;
  size_t at; /* offset in Part */
  bool optional;
  int word;
  const char *const *words;
} PartField;

#define AT(member) .at = offsetof(Part, member)

typedef struct PartKind {
  const char *type;
  const PartField *fields; /* ends with an empty row; NULL: there are none */
  Finish *finish;          /* called when the fields are read; NULL: nothing is to do */
  Normalize *normalize;
  Split *split;
  Decode *decode;
  Encode *encode;
} PartKind;
extern const PartKind normalizers[], pre_tokenizers[], decoders[], models[]; /* end empty */
extern const PartField byte_level_fields[], metaspace_fields[], replace_fields[];
Finish finish_metaspace;
Normalize replace_matches;

enum { SCHEME_first, SCHEME_never, SCHEME_always };
enum { BEHAVIOR_removed, BEHAVIOR_isolated, BEHAVIOR_previous, BEHAVIOR_next, BEHAVIOR_contiguous };

struct Part {
  const PartKind *kind;
  bool clean, chinese, lowercase, left, right, prefix_space, regex, cut, invert, single, cleanup;
  bool fuse_unk, byte_fallback, ignore_merges;
  int accents, scheme, behavior;
  Span text, content, prefix, suffix, unk;
  int64_t start, stop;
  Pattern *pattern;
  Charsmap map;
  json_t *vocab, *merges, *unk_id, *dropout;
};

typedef struct Parts {
  Part *at;
  size_t n, cap;
} Parts;

typedef struct Added { /* an added token */
  bool single_word, left, right, normalized, special;
} Added;

typedef struct Token {
  Span text;     /* at NULL: the id has no token */
  char *decoded; /* owned; NULL: as `text`. The normalized text of an added token */
  double score;
  Added added;
  uint8_t piece; /* of a .model: its type, PIECE_... */
} Token;

enum {
  PIECE_none,
  PIECE_normal,
  PIECE_unknown,
  PIECE_control,
  PIECE_user,
  PIECE_unused,
  PIECE_byte
};

typedef struct Symbol {  /* of a word that is being merged */
  uint32_t id, at, size; /* size 0: merged into another one */
  int32_t before, after; /* -1: none */
  bool frozen;           /* is never merged */
} Symbol;

typedef struct Merge { /* a pair of symbols that can be merged */
  uint32_t rank, left, id;
} Merge;

typedef struct Best { /* the best way to a place in a word */
  double score;
  uint32_t id, from; /* from NO_ID: no way leads there */
} Best;

typedef struct Slot Slot; /* of the cache of words */

struct Tokenizer {
  char *name;   /* of the file, for messages */
  json_t *root; /* owns the texts of a tokenizer.json */
  char *bytes;  /* owns those of a .model */
  Str held;     /* a text that is being made */
  Parts normalize, split, decode;
  Part model;
  Str *scratch; /* two for each pre-tokenizer */
  Ids before, after;
  bool template; /* they are of a TemplateProcessing, and complete */

  Token *token; /* by id */
  size_t token_cap;
  uint32_t n_tokens, n_known, n_vocabulary; /* n_known: those with a text */
  Trie vocabulary;                          /* tokens of the model */
  Trie added[2];                            /* added tokens; [1]: matched after normalization */
  bool first[2][256];                       /* bytes that they begin with */
  Pattern *word;                            /* a character of words, for `single_word` */
  uint32_t unk;                             /* NO_ID: there is none */
  uint32_t byte_id[256];
  bool pieces;         /* a .model */
  bool cuts_at_blanks; /* no token has a U+2581 after another character: Note [words] */
  double unk_score;
  float user_score;               /* of a .model: score of a user-defined token, for each byte */
  bool dummy_prefix, trim_blanks; /* of a .model */
  Span unk_surface;               /* of a .model: text of an unknown token */
  Trie user;                      /* user-defined tokens of a .model */

  Map merges;          /* left id << 32 | right id -> rank */
  uint32_t *merge_ids; /* what a merge makes */
  uint32_t *ranks;     /* of a .model: rank of a token */
  Slot *cache;

  Ids *out;                  /* of the call that runs */
  const struct Marks *marks; /* of a text of parts: encode_parts.c; else NULL */
  void (*tell)(void *about);
  void *about;
  Str text[2];
  Symbol *symbol;
  Merge *heap;
  Best *best;
  size_t n_symbols, n_heap, symbol_cap, heap_cap, best_cap;
};

/* ---- reading ---- */
ampc_status description_read(Tokenizer *t);                         /* t->root */
ampc_status pieces_read(Tokenizer *t, const char *bytes, size_t n); /* a .model */
/* Makes room for ids below `n`. */
ampc_status tokens_reserve(Tokenizer *t, uint64_t n);
/* Gives `id` its token, and adds it to the vocabulary of the model, unless it is an added token.
 * `path`: its place, for messages. */
ampc_status token_set(Tokenizer *t, const char *path, int64_t id, Span text, bool added);
/* Finds what the models need of a complete vocabulary. */
ampc_status vocabulary_finish(Tokenizer *t);
ampc_status out_of_memory(const Tokenizer *t);
void forget_failures(Tokenizer *t); /* after a text that failed, the next one may succeed */
enum { SHOWN = 100 };
const char *show_span(char out[SHOWN], Span s); /* for messages */

/* ---- steps ---- */
ampc_status normalize_all(Tokenizer *t, Str *text, Str *other); /* the result is in *text */
void pieces_normalize(Tokenizer *t, View text, Str *out);
ampc_status split_on(Tokenizer *t, size_t stage, View text);
Encode bpe_encode, unigram_encode, wordpiece_encode, wordlevel_encode;
ampc_status bpe_read(Tokenizer *t);                          /* merges */
ampc_status unigram_read(Tokenizer *t);                      /* vocabulary */
size_t word_end(const Tokenizer *t, View text, size_t from); /* Note [words] */
ampc_status put_id(Tokenizer *t, uint32_t id);
ampc_status put_unknown(Tokenizer *t, View text); /* bytes, or the unknown token */
ampc_status no_unknown(const Tokenizer *t, View text);

ampc_status text_check(const char *text, size_t n); /* refuses what is not UTF-8 */

/* Finds added tokens; calls split or normalization for the text between them. */
ampc_status added_read(Tokenizer *t, const json_t *list);
ampc_status added_split(Tokenizer *t, bool normalized, bool plain, View text);

/* A text of parts: its bytes, and which of them are of plain parts. */
typedef struct Marks {
  const char *text, *plain;
  size_t n;
  Ids *ends; /* of special tokens in the text: where each one ends, then the number of ids */
} Marks;
/* Whether a special token at `at` would be text: it has a plain byte, or is no longer a part of the
 * original text. */
bool marks_plain(const Marks *m, const char *at, size_t n);
ampc_status marks_end(const Tokenizer *t, const char *end);

/* ---- bytes as characters (GPT-2) ---- */
void byte_level_add(Str *out, View text);

/* ---- patterns ---- */
/* How a pattern is read: as Oniguruma does, refusing what PCRE2 would read otherwise; as a text; as
 * PCRE2 does. */
#define PATTERN_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
typedef enum PatternKind { PATTERN_foreign, PATTERN_literal, PATTERN_own } PatternKind;
ampc_status pattern_compile(const char *name, const char *path, PatternKind kind, Span text,
                            Pattern **out);
void pattern_free(Pattern *p);
typedef struct Found {
  size_t from, end; /* the match */
  size_t search;    /* where the search goes on */
  size_t last;      /* end of the match before, plus 1; 0: there was none */
} Found;
/* Finds the next match after *f, which begins zeroed. Sets *more to false if there is none. */
ampc_status pattern_next(const Pattern *p, View text, Found *f, bool *more);
