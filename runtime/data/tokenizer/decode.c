/* Decoders: each makes a list of texts of another one; the last list, joined, is the text. */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

/* ---- bytes as characters ---- */

/* The character that stands for a byte: the byte itself, if it is printable in Latin-1, else one
 * from U+0100 on. */
static uint32_t byte_character(uint8_t b)
{
  if (b <= ' ') return 256u + b;
  if (b >= 0x7f && b <= 0xa0) return 289u + b - 0x7f;
  return b == 0xad ? 323 : b;
}

void byte_level_add(Str *out, View text)
{
  if (out->failed || !grow(&out->at, &out->cap, out->n + 2 * text.n + 1, 1)) {
    out->failed = true;
    return;
  }
  char *to = out->at + out->n;
  for (size_t i = 0; i < text.n; i++) {
    uint32_t c = byte_character((uint8_t)text.at[i]);
    if (c >= 0x80) *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
  }
  *to = 0;
  out->n = (size_t)(to - out->at);
}

/* False: a character stands for no byte. */
static bool byte_level_undo(Str *out, Span token)
{
  size_t size, from = out->n;
  for (size_t i = 0; i < token.n; i += size) {
    int32_t c = char_at(token.at + i, token.n - i, &size);
    int32_t b = c < 256 ? c : c <= 288 ? c - 256 : c <= 322 ? c - 289 + 0x7f : 0xad;
    if (c > 323 || byte_character((uint8_t)b) != (uint32_t)c) {
      out->n = from;
      return false;
    }
    char byte = (char)b;
    str_add(out, &byte, 1);
  }
  return true;
}

/* Adds bytes as text. What is not UTF-8 becomes U+FFFD: one for each byte, or without `each` one
 * for each sequence that breaks off. */
static void add_lossy(Str *out, const char *at, size_t n, bool each)
{
  for (size_t i = 0; i < n;) {
    int size = utf8_step(at + i, n - i);
    if (size > 0)
      str_add(out, at + i, (size_t)size);
    else
      str_add(out, "\ufffd", 3);
    i += size > 0 ? (size_t)size : each ? 1 : (size_t)-size;
  }
}

static void decode_byte_level(const Part *p, const Texts *in, Texts *out)
{
  Str bytes = {0};
  (void)p;
  for (size_t i = 0; i < in->n; i++) {
    Span token = texts_at(in, i);
    if (!byte_level_undo(&bytes, token)) str_span(&bytes, token);
  }
  add_lossy(&out->all, bytes.at, bytes.n, false);
  texts_end(out);
  out->all.failed |= bytes.failed;
  free(bytes.at);
}

/* ---- bytes as tokens ---- */

static int digit_of(char c)
{
  static const char digits[] = "0123456789abcdef";
  const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
  return at ? (int)(at - digits) : -1;
}

/* Returns the byte of a token like <0x0A>, or -1. */
static int byte_of(Span token)
{
  if (token.n != 6 || memcmp(token.at, "<0x", 3) != 0 || token.at[5] != '>') return -1;
  int high = digit_of(token.at[3]), low = digit_of(token.at[4]);
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Ends a run of bytes: as text if it is UTF-8, else as one U+FFFD for each. */
static void end_bytes(Str *bytes, Texts *out)
{
  bool good = true;
  for (size_t i = 0; i < bytes->n && good;) {
    int size = utf8_step(bytes->at + i, bytes->n - i);
    good = size > 0;
    i += good ? (size_t)size : 0;
  }
  if (good && bytes->n) {
    str_add(&out->all, bytes->at, bytes->n);
    texts_end(out);
  }
  for (size_t i = 0; i < bytes->n && !good; i++) {
    str_add(&out->all, "\ufffd", 3);
    texts_end(out);
  }
  str_clear(bytes);
}

static void decode_bytes(const Part *p, const Texts *in, Texts *out)
{
  Str bytes = {0};
  (void)p;
  for (size_t i = 0; i < in->n; i++) {
    Span token = texts_at(in, i);
    int b = byte_of(token);
    if (b >= 0) {
      char byte = (char)b;
      str_add(&bytes, &byte, 1);
      continue;
    }
    end_bytes(&bytes, out);
    str_span(&out->all, token);
    texts_end(out);
  }
  end_bytes(&bytes, out);
  out->all.failed |= bytes.failed;
  free(bytes.at);
}

/* ---- others ---- */

/* Adds `text` with `to` in place of each `from`. */
static void add_replaced(Str *out, Span text, Span from, Span to)
{
  while (text.n) {
    const char *next = memmem(text.at, text.n, from.at, from.n);
    size_t n = next ? (size_t)(next - text.at) : text.n;
    str_add(out, text.at, n);
    if (next) str_span(out, to), n += from.n;
    text.at += n;
    text.n -= n;
  }
}

static void decode_bpe(const Part *p, const Texts *in, Texts *out)
{
  for (size_t i = 0; i < in->n; i++, texts_end(out))
    add_replaced(&out->all, texts_at(in, i), p->suffix, (Span){" ", i + 1 < in->n});
}

/* Removes blanks that WordPiece puts before punctuation. */
static void clean_up(Str *text, Str *other)
{
  static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                         {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                         {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                         {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    str_clear(other);
    Span from = {pairs[i][0], strlen(pairs[i][0])}, to = {pairs[i][1], strlen(pairs[i][1])};
    add_replaced(other, (Span){text->at, text->n}, from, to);
    str_swap(text, other);
  }
}

static void decode_wordpiece(const Part *p, const Texts *in, Texts *out)
{
  Str word = {0}, other = {0};
  for (size_t i = 0; i < in->n; i++, texts_end(out)) {
    Span token = texts_at(in, i);
    bool continues = token.n >= p->prefix.n && memcmp(token.at, p->prefix.at, p->prefix.n) == 0;
    str_clear(&word);
    if (i && !continues) str_add(&word, " ", 1);
    if (i && continues) token.at += p->prefix.n, token.n -= p->prefix.n;
    str_span(&word, token);
    if (p->cleanup) clean_up(&word, &other);
    str_add(&out->all, word.at, word.n);
  }
  out->all.failed |= word.failed || other.failed;
  free(word.at);
  free(other.at);
}

static void decode_metaspace(const Part *p, const Texts *in, Texts *out)
{
  for (size_t i = 0; i < in->n; i++, texts_end(out))
    add_replaced(&out->all, texts_at(in, i), p->text, (Span){" ", i || p->scheme == SCHEME_never});
}

static void decode_replace(const Part *p, const Texts *in, Texts *out)
{
  Str one = {0}, made = {0};
  for (size_t i = 0; i < in->n; i++, texts_end(out)) {
    Span token = texts_at(in, i);
    str_clear(&one);
    str_clear(&made);
    made.most = 64 * token.n + (1 << 20);
    str_span(&one, token);
    p->kind->normalize(p, &one, &made);
    str_add(&out->all, made.at, made.n);
  }
  out->all.failed |= one.failed || made.failed;
  free(one.at);
  free(made.at);
}

static void decode_fuse(const Part *p, const Texts *in, Texts *out)
{
  (void)p;
  str_add(&out->all, in->all.at, in->all.n);
  texts_end(out);
}

static void decode_strip(const Part *p, const Texts *in, Texts *out)
{
  for (size_t i = 0; i < in->n; i++, texts_end(out)) {
    Span s = texts_at(in, i);
    size_t n = p->text.n;
    for (int64_t j = 0; j < p->start && s.n >= n && memcmp(s.at, p->text.at, n) == 0; j++)
      s.at += n, s.n -= n;
    for (int64_t j = 0; j < p->stop && s.n >= n && memcmp(s.at + s.n - n, p->text.at, n) == 0; j++)
      s.n -= n;
    str_span(&out->all, s);
  }
}

static ampc_status finish_bpe_decoder(Tokenizer *t, const char *path, Part *p)
{
  if (p->suffix.n) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s: %s.suffix is empty", t->name, path);
}

static const PartField bpe_decoder_fields[] = {{"suffix", FIELD_text, AT(suffix)}, {0}};
static const PartField wordpiece_decoder_fields[] = {
    {"prefix", FIELD_text, AT(prefix)}, {"cleanup", FIELD_flag, AT(cleanup)}, {0}};
static const PartField strip_decoder_fields[] = {{"content", FIELD_char, AT(text)},
                                                 {"start", FIELD_count, AT(start)},
                                                 {"stop", FIELD_count, AT(stop)},
                                                 {0}};

const PartKind decoders[] = {
    {"BPEDecoder", bpe_decoder_fields, finish_bpe_decoder, .decode = decode_bpe},
    {"ByteLevel", byte_level_fields, .decode = decode_byte_level},
    {"WordPiece", wordpiece_decoder_fields, .decode = decode_wordpiece},
    {"Metaspace", metaspace_fields, finish_metaspace, .decode = decode_metaspace},
    {"Replace", replace_fields, .normalize = replace_matches, .decode = decode_replace},
    {"Fuse", .decode = decode_fuse},
    {"Strip", strip_decoder_fields, .decode = decode_strip},
    {"ByteFallback", .decode = decode_bytes},
    {0}};

/* ---- a list of ids ---- */

/* Decodes tokens as sentencepiece does. */
static void decode_pieces(const Tokenizer *t, const uint32_t *ids, size_t n, bool special, Str *out)
{
  static const Span blank = {"\u2581", 3}, space = {" ", 1};
  bool begins = t->dummy_prefix || t->trim_blanks, seen = false;
  Str bytes = {0};
  for (size_t i = 0; i < n; i++) {
    const Token *token = &t->token[ids[i]];
    Span text = token->text;
    int b = token->piece == PIECE_byte ? byte_of(text) : -1;
    if (b >= 0) {
      char byte = (char)b;
      str_add(&bytes, &byte, 1);
      continue;
    }
    add_lossy(out, bytes.at, bytes.n, true);
    str_clear(&bytes);
    if (seen || out->n) begins = false;
    seen = false;
    if (token->piece == PIECE_control) {
      if (special) str_span(out, text);
      continue;
    }
    if (token->piece == PIECE_unknown) text = t->unk_surface;
    if (begins && token->piece != PIECE_unknown && text.n >= blank.n &&
        memcmp(text.at, blank.at, blank.n) == 0) {
      text.at += blank.n;
      text.n -= blank.n;
      seen = !t->trim_blanks;
    }
    add_replaced(out, text, blank, space);
  }
  add_lossy(out, bytes.at, bytes.n, true);
  out->failed |= bytes.failed;
  free(bytes.at);
}

static void list_tokens(const Tokenizer *t, const uint32_t *ids, size_t n, bool special, Texts *out)
{
  for (size_t i = 0; i < n; i++) {
    const Token *token = &t->token[ids[i]];
    /* the library keeps a special token that normalization has changed */
    if (token->added.special && !token->decoded && !special) continue;
    if (token->decoded)
      str_add(&out->all, token->decoded, strlen(token->decoded));
    else
      str_span(&out->all, token->text);
    texts_end(out);
  }
}

/* What the library does if the file has no decoder. */
static void decode_join(const Part *p, const Texts *in, Texts *out)
{
  (void)p;
  for (size_t i = 0; i < in->n; i++) {
    if (i) str_add(&out->all, " ", 1);
    str_span(&out->all, texts_at(in, i));
  }
}

static void decode_list(const Tokenizer *t, Texts *now, Texts *other)
{
  static const PartKind kind = {.decode = decode_join};
  static const Part join = {.kind = &kind};
  for (size_t i = 0; i < t->decode.n || i == 0; i++) {
    const Part *p = t->decode.n ? &t->decode.at[i] : &join;
    other->n = other->all.n = 0;
    p->kind->decode(p, now, other);
    Texts done = *other;
    *other = *now;
    *now = done;
  }
}

ampc_status tokenizer_decode(Tokenizer *t, const uint32_t *ids, size_t n, bool special, char **out,
                             size_t *out_n)
{
  Texts now = {0}, other = {0};
  for (size_t i = 0; i < n; i++)
    if (ids[i] >= t->n_tokens || !t->token[ids[i]].text.at)
      return ampc_fail(AMPC_BAD_FILE,
                       "id %u at place %zu has no token in %s, which has ids below %u", ids[i], i,
                       t->name, t->n_tokens);
  if (t->pieces)
    decode_pieces(t, ids, n, special, &now.all);
  else {
    list_tokens(t, ids, n, special, &now);
    decode_list(t, &now, &other);
  }
  str_add(&now.all, "", 0);
  free(other.all.at);
  free(other.end);
  free(now.end);
  *out = now.all.at;
  *out_n = now.all.n;
  if (!now.all.failed) return AMPC_OK;
  free(now.all.at);
  return out_of_memory(t);
}

ampc_status tokenizer_bytes(Tokenizer *t, uint32_t id, char **out, size_t *out_n)
{
  Str bytes = {0};
  bool level = false;
  Span text = t->token[id].text;
  int b = byte_of(text);
  char byte = (char)b;
  for (size_t i = 0; i < t->decode.n; i++)
    level |= t->decode.at[i].kind->decode == decode_byte_level;
  if (b >= 0 && (t->model.byte_fallback || t->token[id].piece == PIECE_byte))
    str_add(&bytes, &byte, 1);
  else if (!level || !byte_level_undo(&bytes, text))
    str_span(&bytes, text);
  *out = bytes.at;
  *out_n = bytes.n;
  return bytes.failed ? out_of_memory(t) : AMPC_OK;
}
