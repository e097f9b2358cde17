/* Reads and writes ONNX files. */
#include "file.h"
#include <stdlib.h>
#include <string.h>
#include "compiler/base/limits.h"
#include "runtime/plan/types.h"

/* After ir_version (2 bytes): the field producer_name, "ampc" */
const FileKind file_onnx = {"ONNX model of amp export", 2,
                            "\x12\x04"
                            "ampc",
                            6, FILE_NO_ROLE};

/* Levels of nested messages. A model has about 4; each nested If, Loop or Scan adds 3. */
enum { MOST_NESTED = 40 };
/* Memory for a file: its bytes a few times, as empty messages are larger in memory. */
enum { MEMORY_FACTOR = 16, MEMORY_LEAST = 1 << 20 };
/* Tags of fields that onnx.proto has since version 1.16, and the most bytes for their entries */
enum { NODE_METADATA = 9, GRAPH_METADATA = 16, METADATA_MOST = 1 << 24 };

/* ---- nesting ---- */

/* Wire format: a varint `tag << 3 | type`, then a value: 0 a varint, 1 eight bytes, 2 a varint of
 * the length and that many bytes, 5 four bytes. */
typedef struct Wire {
  const uint8_t *at, *end;
} Wire;

static bool read_varint(Wire *w, uint64_t *out)
{
  *out = 0;
  for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
    uint8_t byte = *w->at++;
    *out |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/* Reads the next field. *inner: its bytes if it has a length, else NULL. */
static bool read_field(Wire *w, unsigned *tag, Wire *inner)
{
  uint64_t key, n = 0;
  *inner = (Wire){0};
  if (!read_varint(w, &key)) return false;
  *tag = (unsigned)(key >> 3);
  switch (key & 7) {
  case PROTOBUF_C_WIRE_TYPE_VARINT:
    return read_varint(w, &n);
  case PROTOBUF_C_WIRE_TYPE_64BIT:
    n = 8;
    break;
  case PROTOBUF_C_WIRE_TYPE_32BIT:
    n = 4;
    break;
  case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
    if (!read_varint(w, &n)) return false;
    *inner = (Wire){w->at, w->at};
    break;
  default:
    return false;
  }
  if (n > (uint64_t)(w->end - w->at)) return false;
  w->at += n;
  if (inner->at) inner->end = w->at;
  return true;
}

/* Whether the fields of a message are complete and nest at most `levels` deep. protobuf-c itself
 * reads nested messages by recursion without a limit. */
static bool is_shallow(const ProtobufCMessageDescriptor *type, Wire w, int levels)
{
  while (w.at < w.end) {
    unsigned tag;
    Wire inner;
    if (!read_field(&w, &tag, &inner)) return false;
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(type, tag);
    if (inner.at && f && f->type == PROTOBUF_C_TYPE_MESSAGE &&
        (levels == 0 || !is_shallow(f->descriptor, inner, levels - 1)))
      return false;
  }
  return true;
}

/* ---- reading ---- */

typedef struct Budget {
  Arena *arena;
  size_t left;
} Budget;

static void *budget_alloc(void *budget, size_t size)
{
  Budget *b = budget;
  if (size > b->left) return NULL;
  b->left -= size;
  return arena_alloc(b->arena, size ? size : 1, _Alignof(max_align_t));
}

static void budget_free(void *budget, void *pointer)
{
  (void)budget;
  (void)pointer; /* the arena frees it */
}

ampc_status onnx_parse(Arena *arena, const char *path, const void *bytes, size_t size,
                       OnnxModel **out)
{
  Budget budget = {arena, size * MEMORY_FACTOR + MEMORY_LEAST};
  ProtobufCAllocator memory = {budget_alloc, budget_free, &budget};
  const uint8_t *at = bytes;
  *out = NULL;
  if (size && is_shallow(&onnx__model_proto__descriptor, (Wire){at, at + size}, MOST_NESTED))
    *out = onnx__model_proto__unpack(&memory, size, at);
  if (!*out || !(*out)->graph)
    return ampc_fail(AMPC_BAD_FILE, "%s is not an ONNX model, or it is damaged", path);
  return AMPC_OK;
}

ampc_status onnx_read(Arena *arena, const char *path, OnnxModel **out)
{
  char *bytes;
  int64_t size;
  ampc_status status = file_read(FILE_WEIGHTS, path, &bytes, &size);
  if (!status) {
    status = onnx_parse(arena, path, bytes, (size_t)size, out);
    free(bytes);
  }
  return status;
}

/* Returns the value of a key among the entries that are the unknown field `tag` of a message. */
static const char *find_metadata(Arena *arena, const ProtobufCMessage *m, unsigned tag,
                                 const char *key)
{
  Budget budget = {arena, METADATA_MOST};
  ProtobufCAllocator memory = {budget_alloc, budget_free, &budget};
  for (unsigned i = 0; i < m->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *f = &m->unknown_fields[i];
    Wire w = {f->data, f->data + f->len}; /* a length, then the message */
    uint64_t size;
    if (f->tag != tag || f->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
        !read_varint(&w, &size))
      continue;
    Onnx__StringStringEntryProto *e =
        onnx__string_string_entry_proto__unpack(&memory, (size_t)(w.end - w.at), w.at);
    if (e && e->key && e->value && strcmp(e->key, key) == 0) return e->value;
  }
  return NULL;
}

const char *onnx_metadata(Arena *arena, const OnnxNode *n, const char *key)
{
  return find_metadata(arena, &n->base, NODE_METADATA, key);
}

const char *graph_metadata(Arena *arena, const OnnxGraph *g, const char *key)
{
  return find_metadata(arena, &g->base, GRAPH_METADATA, key);
}

/* ---- writing ---- */

enum { SINK_ROOM = 1 << 16 };

typedef struct Sink {
  ProtobufCBuffer base;
  FileWriter *file;
  ampc_status status; /* of the first write that failed */
  size_t n;
  uint8_t held[SINK_ROOM]; /* n bytes, not written yet: protobuf-c appends a few at a time */
} Sink;

static void sink_flush(Sink *s)
{
  if (!s->status && s->n) s->status = file_add(s->file, s->held, (int64_t)s->n);
  s->n = 0;
}

static void sink_append(ProtobufCBuffer *buffer, size_t n, const uint8_t *bytes)
{
  Sink *s = (Sink *)buffer;
  if (n > SINK_ROOM - s->n) sink_flush(s);
  if (n > SINK_ROOM) {
    if (!s->status) s->status = file_add(s->file, bytes, (int64_t)n);
    return;
  }
  memcpy(s->held + s->n, bytes, n);
  s->n += n;
}

ampc_status onnx_write(const char *path, const OnnxModel *model)
{
  FileWriter file;
  ampc_status status = file_begin(&file, path, &file_onnx);
  if (status) return status;
  Sink sink = {.base = {sink_append}, .file = &file};
  protobuf_c_message_pack_to_buffer(&model->base, &sink.base);
  sink_flush(&sink);
  status = sink.status;
  if (!status) return file_finish(&file, true);
  file_abandon(&file);
  return status;
}
