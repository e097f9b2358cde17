/* Note [files of torch.save]
 * An archive has the members FOLDER/data.pkl, FOLDER/byteorder and FOLDER/data/KEY, one for each
 * storage. Before PyTorch 1.6 a file was a sequence of pickles, followed by the storages. Tensors
 * are ranges of storages. Such a range becomes an entry of a header like that of a
 * safetensors file, so that all readers of tensors work for both formats.
 *
 * A tensor whose elements are not in the order of its shape is a view. The offsets of views begin
 * where the file ends; torch_view_load puts their elements into order.
 *
 * All numbers are untrusted: each range is compared with its storage, and each storage with the
 * file, before anything is read. */
#include "torch_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gguf.h"
#include "pickle.h"
#include "runtime/data/formats/zip.h"

enum { NAME_ROOM = 1024, KEY_ROOM = 64, MOST_DICTIONARIES = 1 << 16 };

typedef struct Reading {
  TensorFile *f;
  const PickleItem *object; /* an object of an unknown class instead of a dictionary; or NULL */
  Bytes zip;
  ZipDirectory directory;
  char folder[KEY_ROOM + 1]; /* of the archive, with its slash */
  uint8_t *bytes;            /* of the pickle */
  Pickle pickle;
  json_t *storages; /* of a file from before PyTorch 1.6: key -> [offset, bytes]; else NULL */
} Reading;

static ampc_status no_memory(const Reading *r)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->zip.path);
}

/* ---- members of the archive ---- */

/* Finds a member of the archive's folder. torch.save compresses nothing. */
static ampc_status find_member(const Reading *r, const char *name, ZipMember *out)
{
  char full[sizeof r->folder + KEY_ROOM + 5];
  snprintf(full, sizeof full, "%s%s", r->folder, name);
  ampc_status status = zip_member(&r->zip, &r->directory, full, "", out);
  if (status || !out->deflated) return status;
  return ampc_fail(AMPC_BAD_FILE, "%s has %s compressed; torch.save stores it", r->zip.path, full);
}

/* Finds the folder of the archive, which is named like the file that was saved. */
static ampc_status find_folder(Reading *r)
{
  static const char wanted[] = "/data.pkl";
  const char *name;
  json_t *at;
  json_object_foreach(r->directory.names, name, at)
  {
    const char *slash = strchr(name, '/');
    if (!slash || strcmp(slash, wanted) != 0 || slash - name >= KEY_ROOM) continue;
    snprintf(r->folder, sizeof r->folder, "%.*s/", (int)(slash - name), name);
    return AMPC_OK;
  }
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is no file of torch.save: it is a zip archive without data.pkl",
                   r->zip.path);
}

/* Files of PyTorch before version 2.1 have no member `byteorder`, and are little-endian. */
static ampc_status check_byte_order(const Reading *r)
{
  char name[sizeof r->folder + KEY_ROOM], order[8] = "";
  ZipMember m;
  snprintf(name, sizeof name, "%sbyteorder", r->folder);
  if (!json_object_get(r->directory.names, name)) return AMPC_OK;
  ampc_status status = find_member(r, "byteorder", &m);
  int64_t n = !status && m.size < (int64_t)sizeof order ? m.size : 0;
  if (!status) status = bytes_read(&r->zip, m.at, n, order);
  if (status || strcmp(order, "little") == 0) return status;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s has numbers in the byte order \"%s\"; only \"little\" is read", r->zip.path,
                   order);
}

static ampc_status read_pickle(Reading *r)
{
  ZipMember m;
  ampc_status status = find_member(r, "data.pkl", &m);
  if (status) return status;
  if (m.size > PICKLE_MOST)
    return ampc_fail(AMPC_BAD_FILE, "%s has a pickle of %lld bytes; up to %d are read", r->zip.path,
                     (long long)m.size, PICKLE_MOST);
  r->bytes = malloc((size_t)m.size + 1);
  if (!r->bytes) return no_memory(r);
  status = bytes_read(&r->zip, m.at, m.size, r->bytes);
  return status ? status : pickle_read(r->zip.path, r->bytes, m.size, &r->pickle);
}

static ampc_status read_archive(Reading *r)
{
  ampc_status status = zip_open(&r->zip, &r->directory);
  if (!status) status = find_folder(r);
  if (!status) status = check_byte_order(r);
  return status ? status : read_pickle(r);
}

/* ---- files from before PyTorch 1.6 ---- */

/* Copies the key of a storage to `to`. False: it is no key. */
static bool key_text(const PickleItem *key, char to[KEY_ROOM])
{
  if (!key || key->kind != PICKLE_text || key->number < 1 || key->number > KEY_ROOM / 2)
    return false;
  snprintf(to, KEY_ROOM, "%.*s", (int)key->number, key->text);
  return true;
}

/* Notes the bytes of the elements of each storage, which only the tensors tell. */
static ampc_status note_units(Reading *r)
{
  const Pickle *p = &r->pickle;
  char key[KEY_ROOM];
  for (uint32_t i = 0; i < p->n_items; i++) {
    const PickleItem *item = &p->items[i];
    const PickleItem *type = item->kind == PICKLE_storage ? pickle_element(p, item, 1) : NULL;
    if (!type || !pickle_type(type) || !key_text(pickle_element(p, item, 2), key)) continue;
    json_t *unit = json_integer(stored_type_named(pickle_type(type))->element.size);
    if (json_object_set_new_nocheck(r->storages, key, unit)) return no_memory(r);
  }
  return AMPC_OK;
}

/* Finds the storages, which follow the pickles: the number of elements (8 bytes), the elements. */
static ampc_status find_storages(Reading *r, const Pickle *keys, int64_t at)
{
  const PickleItem *list = &keys->items[keys->root];
  char key[KEY_ROOM] = "";
  ampc_status status = note_units(r);
  for (uint32_t c = list->kind == PICKLE_list ? list->first : 0; c && !status;
       c = keys->cells[c].next) {
    int64_t n = -1, unit = 0;
    if (key_text(&keys->items[keys->cells[c].value], key))
      unit = json_integer_value(json_object_get(r->storages, key));
    if (unit && at <= r->zip.size - 8) status = bytes_read(&r->zip, at, 8, &n);
    at += 8;
    if (status || n < 0 || n > (r->zip.size - at) / unit)
      return status
                 ? status
                 : ampc_fail(AMPC_BAD_FILE, "%s is truncated or damaged: storage %s is not in it",
                             r->zip.path, key);
    json_t *place = json_pack("[I, I]", (json_int_t)at, (json_int_t)(n * unit));
    if (json_object_set_new_nocheck(r->storages, key, place)) status = no_memory(r);
    at += n * unit;
  }
  return status;
}

/* Whether the facts about the machine say that its numbers are big-endian. */
static bool is_big_endian(const Pickle *facts)
{
  static const char wanted[] = "little_endian";
  const PickleItem *dict = &facts->items[facts->root];
  for (uint32_t c = dict->kind == PICKLE_dict ? dict->first : 0; c; c = facts->cells[c].next) {
    const PickleItem *key = &facts->items[facts->cells[c].key];
    const PickleItem *value = &facts->items[facts->cells[c].value];
    if (key->kind == PICKLE_text && key->number == sizeof wanted - 1 &&
        memcmp(key->text, wanted, sizeof wanted - 1) == 0)
      return value->kind == PICKLE_number && value->number == 0;
  }
  return false;
}

/* Reads five pickles: a magic number, a version, facts about the machine, the tensors and the keys
 * of their storages. */
static ampc_status read_old(Reading *r)
{
  static const char magic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  int64_t n = r->zip.size < PICKLE_MOST ? r->zip.size : PICKLE_MOST, at = 0;
  Pickle other[4] = {{0}}, *const all[] = {other, other + 1, other + 2, &r->pickle, other + 3};
  r->bytes = malloc((size_t)n + 1);
  r->storages = json_object();
  if (!r->bytes || !r->storages) return no_memory(r);
  ampc_status status = bytes_read(&r->zip, 0, n, r->bytes);
  if (!status && (n < (int64_t)sizeof magic || memcmp(r->bytes, magic, sizeof magic - 1) != 0))
    status =
        ampc_fail(AMPC_BAD_FILE, "%s is no file of torch.save, but another pickle", r->zip.path);
  for (int i = 0; i < 5 && !status; at += all[i++]->at)
    status = pickle_read(r->zip.path, r->bytes + at, n - at, all[i]);
  if (!status && is_big_endian(&other[2]))
    status = ampc_fail(AMPC_BAD_FILE, "%s has big-endian numbers; only little-endian is read",
                       r->zip.path);
  if (!status) status = find_storages(r, &other[3], at);
  for (int i = 0; i < 4; i++) pickle_free(&other[i]);
  return status;
}

/* ---- tensors ---- */

typedef struct Tensor {
  const char *name, *type; /* type: "F32" */
  int64_t unit;            /* bytes of an element */
  uint32_t rank;
  int64_t dim[TENSOR_AXES], stride[TENSOR_AXES]; /* in elements */
  int64_t elements, span; /* span: elements of the storage from the first one to the last one */
  int64_t at;             /* offset of the first element in the file */
} Tensor;

static ampc_status unfit(const Reading *r, const Tensor *t, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s: tensor %.200s %s", r->zip.path, t->name, why);
}

/* Reads a tuple of numbers, none below 0. */
static bool read_sizes(const Reading *r, const PickleItem *tuple, int64_t *to, uint32_t *out_n)
{
  const PickleItem *e;
  if (!tuple || tuple->kind != PICKLE_tuple) return false;
  for (*out_n = 0; (e = pickle_element(&r->pickle, tuple, *out_n)); to[(*out_n)++] = e->number)
    if (*out_n == TENSOR_AXES || e->kind != PICKLE_number || e->number < 0) return false;
  return true;
}

/* Computes the number of elements and the span. False: one of them exceeds the numbers of C. */
static bool measure(Tensor *t)
{
  int64_t reach;
  t->elements = t->span = 1;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (__builtin_mul_overflow(t->elements, t->dim[i], &t->elements)) return false;
    if (t->dim[i] > 0 && (__builtin_mul_overflow(t->dim[i] - 1, t->stride[i], &reach) ||
                          __builtin_add_overflow(t->span, reach, &t->span)))
      return false;
  }
  if (!t->elements) t->span = 0;
  return true;
}

/* Finds the storage of a tensor, which has `offset` elements before those of the tensor. */
static ampc_status locate(const Reading *r, const PickleItem *storage, int64_t offset, Tensor *t)
{
  char key[KEY_ROOM], name[KEY_ROOM + 5];
  ZipMember m;
  const PickleItem *part = pickle_element(&r->pickle, storage, 5);
  if (!key_text(pickle_element(&r->pickle, storage, 2), key))
    return unfit(r, t, "has a storage without a name");
  if (part && part->kind == PICKLE_tuple)
    return unfit(r, t, "is in a part of a storage, as only PyTorch before 0.4 wrote it");
  snprintf(name, sizeof name, "data/%s", key);
  const json_t *place = json_object_get(r->storages, key);
  m.at = json_integer_value(json_array_get(place, 0));
  m.size = json_integer_value(json_array_get(place, 1));
  ampc_status status = r->storages ? AMPC_OK : find_member(r, name, &m);
  if (status) return status;
  int64_t has = m.size / t->unit;
  t->at = m.at + offset * t->unit;
  if (offset <= has && t->span <= has - offset) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is damaged: tensor %.200s needs elements %lld to %lld of a storage of %lld",
                   r->zip.path, t->name, (long long)offset, (long long)(offset + t->span),
                   (long long)has);
}

static ampc_status read_tensor(const Reading *r, const PickleItem *item, Tensor *t)
{
  const Pickle *p = &r->pickle;
  const PickleItem *storage = pickle_element(p, item, 0), *offset = pickle_element(p, item, 1);
  const PickleItem *type = NULL;
  uint32_t strides = 0;
  if (storage && storage->kind == PICKLE_storage) type = pickle_element(p, storage, 1);
  t->type = type ? pickle_type(type) : NULL;
  if (!t->type || !offset || offset->kind != PICKLE_number || offset->number < 0 ||
      offset->number > r->zip.size)
    return unfit(r, t, "has no storage of a known type");
  t->unit = stored_type_named(t->type)->element.size;
  if (!read_sizes(r, pickle_element(p, item, 2), t->dim, &t->rank) ||
      !read_sizes(r, pickle_element(p, item, 3), t->stride, &strides) || strides != t->rank)
    return unfit(r, t, "has a shape or strides that are not read; up to 8 axes are");
  if (!measure(t)) return unfit(r, t, "is larger than any file");
  ampc_status status = locate(r, storage, offset->number, t);
  if (!status && t->elements > t->span)
    status = unfit(r, t, "repeats elements of its storage (expand); save tensor.contiguous()");
  return status;
}

/* Whether the elements are in the file in the order of the shape. */
static bool is_contiguous(const Tensor *t)
{
  int64_t step = 1;
  for (uint32_t i = t->rank; i-- > 0 && t->elements;) {
    if (t->dim[i] != 1 && t->stride[i] != step) return false;
    step *= t->dim[i];
  }
  return true;
}

/* Adds a view. Returns its offset; -1: out of memory. */
static int64_t add_view(Reading *r, const Tensor *t)
{
  TensorFile *f = r->f;
  const TensorView *last = f->n_views ? &f->views[f->n_views - 1] : NULL;
  TensorView v = {.begin = last ? last->begin + last->bytes : f->size,
                  .bytes = t->elements * t->unit,
                  .at = t->at,
                  .unit = t->unit,
                  .span = t->span,
                  .rank = t->rank};
  TensorView *more =
      v.begin < INT64_MAX - v.bytes ? realloc(f->views, (f->n_views + 1) * sizeof *more) : NULL;
  if (!more) return -1;
  memcpy(v.dim, t->dim, sizeof v.dim);
  memcpy(v.stride, t->stride, sizeof v.stride);
  f->views = more;
  f->views[f->n_views++] = v;
  return v.begin;
}

/* Adds an entry without elements for a tensor of a kind that is not read. Its type is the name of
 * its class, so `unused` may name the tensor, and other uses are refused with that name. */
static ampc_status add_unknown(Reading *r, const char *name, const PickleItem *class)
{
  char type[200];
  pickle_class(&r->pickle, class, type, sizeof type);
  json_t *entry = json_pack("{s:s, s:[], s:[i, i]}", "dtype", type, "shape", "data_offsets", 0, 0);
  return json_object_set_new_nocheck(r->f->header, name, entry) ? no_memory(r) : AMPC_OK;
}

static ampc_status add_tensor(Reading *r, const char *name, const PickleItem *item)
{
  Tensor t = {.name = name};
  const PickleItem *storage = pickle_element(&r->pickle, item, 0), *type = NULL;
  json_t *text = json_string(name);
  json_decref(text);
  if (!text || strcmp(name, "__metadata__") == 0)
    return unfit(r, &t, "has a name that safetensors files cannot have");
  if (item->kind == PICKLE_opaque) return add_unknown(r, name, item);
  if (storage && storage->kind == PICKLE_storage) type = pickle_element(&r->pickle, storage, 1);
  if (type && type->kind == PICKLE_global && !pickle_type(type)) return add_unknown(r, name, type);
  ampc_status status = read_tensor(r, item, &t);
  if (status) return status;
  int64_t begin = is_contiguous(&t) ? t.at : add_view(r, &t);
  if (begin < 0) return no_memory(r);
  json_t *shape = json_array();
  for (uint32_t i = 0; i < t.rank; i++) json_array_append_new(shape, json_integer(t.dim[i]));
  json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", t.type, "shape", shape, "data_offsets",
                            (json_int_t)begin, (json_int_t)(begin + t.elements * t.unit));
  return json_object_set_new_nocheck(r->f->header, name, entry) ? no_memory(r) : AMPC_OK;
}

/* ---- names ---- */

typedef struct Found { /* a dictionary of the pickle */
  uint32_t item, depth;
  char *name; /* "model." if it is below that key */
  bool holds; /* it has tensors itself */
} Found;

typedef struct FoundList {
  Found *at;
  uint32_t n;
} FoundList;

/* Writes the name of an entry to `to`. False: the key is no text or number. */
static bool name_of(const Pickle *p, const PickleCell *cell, const char *before, char *to)
{
  const PickleItem *key = &p->items[cell->key];
  int n = 0;
  if (key->kind == PICKLE_number)
    n = snprintf(to, NAME_ROOM, "%s%lld", before, (long long)key->number);
  if (key->kind == PICKLE_text && key->number < NAME_ROOM &&
      !memchr(key->text, 0, (size_t)key->number))
    n = snprintf(to, NAME_ROOM, "%s%.*s", before, (int)key->number, key->text);
  return n > 0 && n < NAME_ROOM;
}

/* Whether an opaque item stands for a tensor: quantized, sparse or of a later PyTorch. */
static bool is_unknown_tensor(const Pickle *p, const PickleItem *item)
{
  static const char made[] = "._rebuild_"; /* in torch._utils and elsewhere */
  char class[200] = "";
  if (item->kind == PICKLE_opaque) pickle_class(p, item, class, sizeof class);
  return strncmp(class, "torch.", 6) == 0 && strstr(class, made);
}

/* Appends the dictionary of a cell, once, and notes whether `from` holds tensors. */
static ampc_status look_at(Reading *r, FoundList *list, uint32_t from, const PickleCell *cell)
{
  PickleItem *value = &r->pickle.items[cell->value];
  char name[NAME_ROOM + 1];
  if (value->kind == PICKLE_tensor) list->at[from].holds = true;
  if (value->kind == PICKLE_opaque && !r->object) r->object = value;
  if (value->kind != PICKLE_dict || value->seen ||
      !name_of(&r->pickle, cell, list->at[from].name, name))
    return AMPC_OK;
  if (list->n == MOST_DICTIONARIES)
    return ampc_fail(AMPC_BAD_FILE, "%s has more than %d dictionaries; save model.state_dict()",
                     r->zip.path, MOST_DICTIONARIES);
  value->seen = true;
  Found *more = realloc(list->at, (list->n + 1) * sizeof *more);
  if (!more) return no_memory(r);
  list->at = more;
  strcat(name, ".");
  list->at[list->n] = (Found){cell->value, list->at[from].depth + 1, strdup(name), false};
  return list->at[list->n++].name ? AMPC_OK : no_memory(r);
}

/* Finds the dictionaries that hold tensors: that of the file and those in it. If none does, looks
 * deeper. So the state of optimizers, which is deeper, is left out. */
static ampc_status find_dictionaries(Reading *r, FoundList *list)
{
  ampc_status status = AMPC_OK;
  bool any = false;
  for (uint32_t i = 0; i < list->n && !status; i++) {
    uint32_t depth = list->at[i].depth;
    if (any && depth > 1 && depth > list->at[i - 1].depth) {
      while (list->n > i) free(list->at[--list->n].name);
      break;
    }
    const PickleCell *cells = r->pickle.cells;
    for (uint32_t c = r->pickle.items[list->at[i].item].first; c && !status; c = cells[c].next)
      status = look_at(r, list, i, &cells[c]);
    any = any || list->at[i].holds;
  }
  return status;
}

static ampc_status add_tensors(Reading *r, const Found *from, bool alone)
{
  const Pickle *p = &r->pickle;
  char name[NAME_ROOM + 1];
  ampc_status status = AMPC_OK;
  for (uint32_t c = p->items[from->item].first; c && !status; c = p->cells[c].next) {
    const PickleItem *value = &p->items[p->cells[c].value];
    if (value->kind != PICKLE_tensor && !is_unknown_tensor(p, value)) continue;
    if (!name_of(p, &p->cells[c], alone ? "" : from->name, name))
      return ampc_fail(AMPC_BAD_FILE,
                       "%s has a tensor whose name is no text, or longer than %d bytes",
                       r->zip.path, NAME_ROOM - 1);
    status = add_tensor(r, name, value);
  }
  return status;
}

/* Refuses a file without tensors. It may hold a whole module instead, whose class only the program
 * that wrote it knows. */
static ampc_status no_tensors(const Reading *r, const PickleItem *root)
{
  const PickleItem *object = root->kind == PICKLE_opaque ? root : r->object;
  char class[200] = "", held[300] = "";
  if (object) pickle_class(&r->pickle, object, class, sizeof class);
  if (object) snprintf(held, sizeof held, ", but an object of %s", class);
  return ampc_fail(AMPC_BAD_FILE,
                   "%s has no dictionary of tensors%s; in PyTorch save model.state_dict()",
                   r->zip.path, held);
}

static ampc_status list_tensors(Reading *r)
{
  FoundList list = {calloc(1, sizeof(Found)), 1};
  if (!list.at) return no_memory(r);
  list.at[0] = (Found){.item = r->pickle.root, .name = strdup("")};
  PickleItem *root = &r->pickle.items[r->pickle.root];
  root->seen = true;
  ampc_status status = list.at[0].name ? AMPC_OK : no_memory(r);
  if (!status && root->kind == PICKLE_dict) status = find_dictionaries(r, &list);
  uint32_t holding = 0;
  for (uint32_t i = 0; i < list.n; i++) holding += list.at[i].holds;
  if (!status && !holding) status = no_tensors(r, root);
  for (uint32_t i = 0; i < list.n && !status; i++)
    if (list.at[i].holds) status = add_tensors(r, &list.at[i], holding == 1);
  for (uint32_t i = 0; i < list.n; i++) free(list.at[i].name);
  free(list.at);
  return status;
}

ampc_status torch_file_read(const char *path, int64_t file_size, bool old, TensorFile *f)
{
  Reading r = {.f = f, .zip = {.path = path, .fd = f->fd, .size = file_size}};
  f->size = file_size;
  f->header = json_object();
  ampc_status status = !f->header ? no_memory(&r) : old ? read_old(&r) : read_archive(&r);
  if (!status) status = list_tensors(&r);
  pickle_free(&r.pickle);
  free(r.bytes);
  json_decref(r.storages);
  zip_close(&r.directory);
  return status;
}

/* ---- views ---- */

static int before_view(const void *key, const void *view)
{
  int64_t begin = *(const int64_t *)key;
  const TensorView *v = view;
  return begin < v->begin ? -1 : begin >= v->begin + v->bytes;
}

/* Copies n elements from element `at` on. */
static void gather(const TensorView *v, int64_t at, int64_t n, char *to)
{
  int64_t index[TENSOR_AXES], from = 0;
  for (uint32_t i = v->rank; i-- > 0; at /= v->dim[i]) {
    index[i] = at % v->dim[i];
    from += index[i] * v->stride[i];
  }
  for (; n > 0; n--, to += v->unit) {
    memcpy(to, v->held + from * v->unit, (size_t)v->unit);
    for (uint32_t i = v->rank; i-- > 0;) {
      from += v->stride[i];
      if (++index[i] < v->dim[i]) break;
      from -= v->dim[i] * v->stride[i];
      index[i] = 0;
    }
  }
}

/* Holds the storage of a view from its first piece to its last one. */
ampc_status torch_view_load(const TensorFile *f, int64_t begin, void *to, int64_t bytes)
{
  if (!bytes) return AMPC_OK;
  TensorView *v = bsearch(&begin, f->views, f->n_views, sizeof *v, before_view);
  if (!v || bytes > v->begin + v->bytes - begin)
    return ampc_fail(AMPC_RUN_FAILED, "%s has no tensor at %lld", f->path, (long long)begin);
  if (v->gguf) return gguf_view_load(f, v, begin - v->begin, to, bytes);
  if (!v->held) {
    v->held = malloc((size_t)(v->span * v->unit));
    if (!v->held) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", f->path);
    ampc_status status = file_read_at(f->path, f->fd, v->at, v->span * v->unit, v->held);
    if (status) return status;
  }
  gather(v, (begin - v->begin) / v->unit, bytes / v->unit, to);
  if (begin + bytes == v->begin + v->bytes) {
    free(v->held);
    v->held = NULL;
  }
  return AMPC_OK;
}
