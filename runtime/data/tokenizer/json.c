/* Reads a tokenizer.json. What is not in a table of parts or fields is refused by its place in the
 * file: `pre_tokenizer.pretokenizers[1].type: "Foo" is not known`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "parts.h"

enum { DEPTH = 16 /* of sequences in sequences */, MOST_PARTS = 64, PATH = 200 };

static ampc_status bad(const Tokenizer *t, const char *path, const char *field, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: %s%s%s %s", t->name, path, *field ? "." : "", field, why);
}

static ampc_status unknown(const Tokenizer *t, const char *path, const char *field,
                           const char *word)
{
  char shown[80], name[80];
  ampc_show(name, sizeof name, field, "");
  if (!word) return bad(t, path, name, "is not known");
  return ampc_fail(AMPC_BAD_FILE, "%s: %s.%s: \"%s\" is not known", t->name, path, name,
                   ampc_show(shown, sizeof shown, word, ""));
}

/* ---- fields ---- */

static Span span_of(const json_t *text)
{
  return (Span){json_string_value(text), json_string_length(text)};
}

static ampc_status read_pattern(Tokenizer *t, const char *path, const PartField *f, const json_t *v,
                                Pattern **to)
{
  const json_t *text = json_object_get(v, "String"), *regex = json_object_get(v, "Regex");
  char place[PATH];
  snprintf(place, sizeof place, "%s.%s", path, f->name);
  if (json_object_size(v) != 1 || !(json_is_string(text) || json_is_string(regex)))
    return bad(t, path, f->name, "is neither {\"String\": text} nor {\"Regex\": text}");
  return pattern_compile(t->name, place, text ? PATTERN_literal : PATTERN_foreign,
                         span_of(text ? text : regex), to);
}

static int base64_value(char c)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

static ampc_status read_map(const Tokenizer *t, const char *path, const PartField *f, Span text,
                            Charsmap *to)
{
  char *bytes = malloc(text.n + 1);
  size_t n = 0;
  uint32_t bits = 0, count = 0;
  if (!bytes) return out_of_memory(t);
  while (text.n && text.at[text.n - 1] == '=') text.n--;
  bool good = true;
  for (size_t i = 0; i < text.n && good; i++) {
    int value = base64_value(text.at[i]);
    good = value >= 0;
    bits = bits << 6 | (uint32_t)value;
    count += 6;
    if (count < 8) continue;
    bytes[n++] = (char)(bits >> (count -= 8));
  }
  good &= charsmap_read(to, bytes, n);
  return good ? AMPC_OK : bad(t, path, f->name, "is damaged");
}

static ampc_status read_word(const Tokenizer *t, const char *path, const PartField *f,
                             const json_t *v, int *to)
{
  if (!json_is_string(v)) return bad(t, path, f->name, "is not a text");
  for (int i = 0; f->words[i]; i++)
    if (strcmp(f->words[i], json_string_value(v)) == 0) {
      *to = i;
      return AMPC_OK;
    }
  return unknown(t, path, f->name, json_string_value(v));
}

static ampc_status read_text(const Tokenizer *t, const char *path, const PartField *f,
                             const json_t *v, Span *to)
{
  size_t size = 0;
  if (!json_is_string(v)) return bad(t, path, f->name, "is not a text");
  *to = span_of(v);
  if (f->kind == FIELD_text) return AMPC_OK;
  if (to->n) char_at(to->at, to->n, &size);
  return size && size == to->n ? AMPC_OK : bad(t, path, f->name, "is not one character");
}

/* Sets a field that the file does not have, or that is null there. */
static ampc_status read_missing(const Tokenizer *t, const char *path, const PartField *f, void *to)
{
  if (!f->optional) return bad(t, path, f->name, "is missing");
  if (f->kind == FIELD_flag) *(bool *)to = f->word;
  if (f->kind == FIELD_choice) *(int *)to = -1;
  if (f->kind == FIELD_word) *(int *)to = f->word;
  if (f->kind == FIELD_count) *(int64_t *)to = f->word;
  return AMPC_OK;
}

static ampc_status read_count(const Tokenizer *t, const char *path, const PartField *f,
                              const json_t *v, int64_t *to)
{
  *to = json_integer_value(v);
  if (json_is_integer(v) && *to >= 0) return AMPC_OK;
  return bad(t, path, f->name, "is not a whole number, 0 or more");
}

static ampc_status read_field(Tokenizer *t, const char *path, const PartField *f, json_t *v,
                              Part *p)
{
  static const char flag[] = "is neither true nor false", text[] = "is not a text";
  void *to = (char *)p + f->at;
  if (!v || json_is_null(v)) return read_missing(t, path, f, to);
  switch (f->kind) {
  case FIELD_flag:
    *(bool *)to = json_is_true(v);
    break;
  case FIELD_choice:
    *(int *)to = json_is_true(v);
    break;
  case FIELD_text:
  case FIELD_char:
    return read_text(t, path, f, v, to);
  case FIELD_count:
    return read_count(t, path, f, v, to);
  case FIELD_word:
    return read_word(t, path, f, v, to);
  case FIELD_pattern:
    return read_pattern(t, path, f, v, to);
  case FIELD_map:
    if (!json_is_string(v)) return bad(t, path, f->name, text);
    return read_map(t, path, f, span_of(v), to);
  case FIELD_json:
    *(json_t **)to = v;
    return AMPC_OK;
  case FIELD_ignored:
    return AMPC_OK;
  }
  return json_is_boolean(v) ? AMPC_OK : bad(t, path, f->name, flag);
}

static ampc_status read_fields(Tokenizer *t, const char *path, json_t *from, Part *p)
{
  static const PartField none[] = {{0}};
  const PartField *fields = p->kind->fields ? p->kind->fields : none;
  ampc_status status = AMPC_OK;
  const char *name;
  json_t *value;
  for (const PartField *f = fields; f->name && !status; f++)
    status = read_field(t, path, f, json_object_get(from, f->name), p);
  json_object_foreach(from, name, value)
  {
    bool known = strcmp(name, "type") == 0;
    for (const PartField *f = fields; f->name; f++) known |= strcmp(f->name, name) == 0;
    if (!known && !status) status = unknown(t, path, name, NULL);
  }
  return !status && p->kind->finish ? p->kind->finish(t, path, p) : status;
}

/* ---- parts ---- */

/* Sets *type to the type of a part; *type NULL: there is none, as the file says by null. */
static ampc_status read_type(const Tokenizer *t, const char *path, const json_t *from,
                             const char **type)
{
  *type = json_string_value(json_object_get(from, "type"));
  if (!from || json_is_null(from) || *type) return AMPC_OK;
  return bad(t, path, json_is_object(from) ? "type" : "", "is not a text");
}

static ampc_status find_kind(const Tokenizer *t, const char *path, const PartKind *table,
                             const char *type, Part *p)
{
  for (p->kind = table; p->kind->type; p->kind++)
    if (strcmp(p->kind->type, type) == 0) return AMPC_OK;
  return unknown(t, path, "type", type);
}

/* A list of parts: `list` is the name of that of a Sequence. */
typedef struct Listing {
  const char *list;
  const PartKind *table;
  Parts *to;
  ampc_status (*each)(Tokenizer *t, const char *path, json_t *from); /* for post-processors */
} Listing;

static ampc_status read_parts(Tokenizer *t, const Listing *l, const char *path, json_t *from,
                              int depth);

static ampc_status read_sequence(Tokenizer *t, const Listing *l, const char *path, json_t *from,
                                 int depth)
{
  char place[PATH];
  size_t i;
  json_t *each, *list = json_object_get(from, l->list);
  ampc_status status = AMPC_OK;
  if (depth == DEPTH) return bad(t, path, "", "is nested too deep");
  if (!json_is_array(list)) return bad(t, path, l->list, "is not a list");
  if (json_object_size(from) != 2) return bad(t, path, "", "has a field that is not known");
  json_array_foreach(list, i, each)
  {
    snprintf(place, sizeof place, "%s.%s[%zu]", path, l->list, i);
    if (!status) status = read_parts(t, l, place, each, depth + 1);
  }
  return status;
}

static ampc_status read_parts(Tokenizer *t, const Listing *l, const char *path, json_t *from,
                              int depth)
{
  const char *type;
  ampc_status status = read_type(t, path, from, &type);
  if (status || !type) return status;
  if (strcmp(type, "Sequence") == 0) return read_sequence(t, l, path, from, depth);
  if (l->each) return l->each(t, path, from);
  if (l->to->n == MOST_PARTS)
    return bad(t, path, "", "is the 65th of its kind; the file has over 64 parts");
  if (!grow(&l->to->at, &l->to->cap, l->to->n + 1, sizeof(Part))) return out_of_memory(t);
  Part *p = &l->to->at[l->to->n++];
  *p = (Part){0};
  status = find_kind(t, path, l->table, type, p);
  return status ? status : read_fields(t, path, from, p);
}

/* ---- post-processors ---- */

/* Inserts an id into those before or after the text. */
static ampc_status insert_id(Tokenizer *t, Ids *side, size_t at, const json_t *number,
                             const char *path)
{
  json_int_t id = json_integer_value(number);
  if (!json_is_integer(number) || id < 0 || id >= t->n_tokens || !t->token[id].text.at)
    return bad(t, path, "", "has an id that is no token");
  if (tokenizer_append(side, 0)) return out_of_memory(t);
  memmove(side->at + at + 1, side->at + at, (side->n - 1 - at) * sizeof *side->at);
  side->at[at] = (uint32_t)id;
  return AMPC_OK;
}

/* Returns the ids of a special token of a template. */
static const json_t *special_ids(const json_t *tokens, const json_t *piece)
{
  const char *name =
      json_string_value(json_object_get(json_object_get(piece, "SpecialToken"), "id"));
  return name ? json_object_get(json_object_get(tokens, name), "ids") : NULL;
}

/* What a template adds is around what earlier post-processors added. */
static ampc_status read_template(Tokenizer *t, const char *path, json_t *from)
{
  static const char once[] = "has not the sequence A once";
  const json_t *single = json_object_get(from, "single"),
               *tokens = json_object_get(from, "special_tokens");
  bool after = false;
  size_t at = 0;
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < json_array_size(single); i++) {
    const json_t *piece = json_array_get(single, i), *ids = special_ids(tokens, piece);
    const char *text = json_string_value(json_object_get(json_object_get(piece, "Sequence"), "id"));
    if (text && (after || strcmp(text, "A") != 0)) return bad(t, path, "single", once);
    if (!text && !json_is_array(ids))
      return bad(t, path, "single", "names a token that special_tokens lacks");
    for (size_t j = 0; j < json_array_size(ids) && !text && !status; j++)
      status = insert_id(t, after ? &t->after : &t->before, after ? t->after.n : at++,
                         json_array_get(ids, j), path);
    if (status) return status;
    after |= text != NULL;
  }
  return after ? AMPC_OK : bad(t, path, "single", once);
}

static ampc_status read_processor(Tokenizer *t, const char *path, json_t *from)
{
  static const char *const known[] = {"ByteLevel", "TemplateProcessing", "BertProcessing",
                                      "RobertaProcessing", NULL};
  static const char *const fields[] = {"type",      "single", "pair",         "special_tokens",
                                       "sep",       "cls",    "trim_offsets", "add_prefix_space",
                                       "use_regex", NULL};
  const char *type = json_string_value(json_object_get(from, "type")), *name;
  json_t *value;
  int kind = 0, field;
  while (known[kind] && strcmp(known[kind], type) != 0) kind++;
  if (!known[kind]) return unknown(t, path, "type", type);
  json_object_foreach(from, name, value)
  {
    for (field = 0; fields[field] && strcmp(fields[field], name) != 0;) field++;
    if (!fields[field]) return unknown(t, path, name, NULL);
  }
  if (kind == 0) return AMPC_OK; /* about offsets */
  if (t->template) return bad(t, path, "", "follows a TemplateProcessing, which must be the last");
  t->template = kind == 1;
  if (t->template) return read_template(t, path, from);
  const json_t *cls = json_object_get(from, "cls"), *sep = json_object_get(from, "sep");
  ampc_status status = insert_id(t, &t->before, 0, json_array_get(cls, 1), path);
  return status ? status : insert_id(t, &t->after, t->after.n, json_array_get(sep, 1), path);
}

/* ---- models ---- */

static ampc_status finish_vocabulary(Tokenizer *t, const char *path, Part *p)
{
  const char *text;
  size_t n;
  json_t *id;
  void *at;
  ampc_status status = tokens_reserve(t, json_object_size(p->vocab));
  if (!json_is_object(p->vocab)) return bad(t, path, "vocab", "is not an object");
  for (at = json_object_iter(p->vocab); at && !status; at = json_object_iter_next(p->vocab, at)) {
    text = json_object_iter_key(at);
    n = json_object_iter_key_len(at);
    id = json_object_iter_value(at);
    if (!json_is_integer(id)) return bad(t, path, "vocab", "has an id that is not a whole number");
    status = token_set(t, "model.vocab", json_integer_value(id), (Span){text, n}, false);
  }
  if (status || !p->unk.at) return status;
  t->unk = trie_find(&t->vocabulary, p->unk);
  return AMPC_OK; /* the library complains only when a text needs it */
}

static ampc_status finish_bpe(Tokenizer *t, const char *path, Part *p)
{
  if (p->vocab && p->dropout && !json_is_null(p->dropout) && json_number_value(p->dropout) != 0)
    return bad(t, path, "dropout", "is not 0, so ids would be random");
  ampc_status status = finish_vocabulary(t, path, p);
  if (!status) status = vocabulary_finish(t);
  return status ? status : bpe_read(t);
}

static ampc_status finish_unigram(Tokenizer *t, const char *path, Part *p)
{
  (void)path, (void)p;
  ampc_status status = unigram_read(t);
  return status ? status : vocabulary_finish(t);
}

#define MODEL_UNK                                                                                  \
  {                                                                                                \
    "unk_token", FIELD_text, AT(unk), .optional = true                                             \
  }
#define VOCAB                                                                                      \
  {                                                                                                \
    "vocab", FIELD_json, AT(vocab)                                                                 \
  }
static const PartField bpe_fields[] = {
    {"dropout", FIELD_json, AT(dropout), .optional = true},
    MODEL_UNK,
    {"continuing_subword_prefix", FIELD_text, AT(prefix), .optional = true},
    {"end_of_word_suffix", FIELD_text, AT(suffix), .optional = true},
    {"fuse_unk", FIELD_flag, AT(fuse_unk), .optional = true},
    {"byte_fallback", FIELD_flag, AT(byte_fallback), .optional = true},
    {"ignore_merges", FIELD_flag, AT(ignore_merges), .optional = true},
    VOCAB,
    {"merges", FIELD_json, AT(merges)},
    {0}};
static const PartField unigram_fields[] = {
    {"unk_id", FIELD_json, AT(unk_id), .optional = true},
    {"byte_fallback", FIELD_flag, AT(byte_fallback), .optional = true},
    VOCAB,
    {0}};
static const PartField wordpiece_fields[] = {MODEL_UNK,
                                             {"continuing_subword_prefix", FIELD_text, AT(prefix)},
                                             {"max_input_chars_per_word", FIELD_count, AT(start)},
                                             VOCAB,
                                             {0}};
static const PartField wordlevel_fields[] = {MODEL_UNK, VOCAB, {0}};

const PartKind models[] = {
    {"BPE", bpe_fields, finish_bpe, .encode = bpe_encode},
    {"Unigram", unigram_fields, finish_unigram, .encode = unigram_encode},
    {"WordPiece", wordpiece_fields, finish_vocabulary, .encode = wordpiece_encode},
    {"WordLevel", wordlevel_fields, finish_vocabulary, .encode = wordlevel_encode},
    {0}};

static ampc_status read_model(Tokenizer *t)
{
  json_t *from = json_object_get(t->root, "model");
  const char *type;
  ampc_status status = read_type(t, "model", from, &type);
  if (!status && !type) status = bad(t, "model", "", "is missing");
  if (!status) status = find_kind(t, "model", models, type, &t->model);
  return status ? status : read_fields(t, "model", from, &t->model);
}

/* ---- the file ---- */

ampc_status description_read(Tokenizer *t)
{
  static const char *const known[] = {
      "version",       "truncation",     "padding", "added_tokens", "normalizer",
      "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
  static const char *const parts[] = {"normalizer", "pre_tokenizer", "decoder", "post_processor"};
  const Listing lists[] = {{"normalizers", normalizers, &t->normalize, NULL},
                           {"pretokenizers", pre_tokenizers, &t->split, NULL},
                           {"decoders", decoders, &t->decode, NULL},
                           {"processors", NULL, NULL, read_processor}};
  const char *name, *version = json_string_value(json_object_get(t->root, "version"));
  json_t *value;
  int field;
  json_object_foreach(t->root, name, value)
  {
    for (field = 0; known[field] && strcmp(known[field], name) != 0;) field++;
    if (!known[field]) return unknown(t, "the file", name, NULL);
  }
  if (!version || strcmp(version, "1.0") != 0) return bad(t, "version", "", "is not \"1.0\"");
  ampc_status status = read_model(t);
  t->n_vocabulary = t->n_known;
  for (size_t i = 0; i < 4 && !status; i++) {
    if (i == 3) status = added_read(t, json_object_get(t->root, "added_tokens"));
    if (!status) status = read_parts(t, &lists[i], parts[i], json_object_get(t->root, parts[i]), 0);
  }
  return status;
}
